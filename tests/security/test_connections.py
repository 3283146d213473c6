"""Test slow, endless and unread connections: each is closed by a timeout, and others are served meanwhile."""

import asyncio
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from servers import STUDY, register_studies
from vseg import store
from vseg.server.api import studies
from vseg.server.app import create_app
from vseg.server.headers import SECURITY_HEADERS
from vseg.server.runner import create_uvicorn_server
from vseg.server.timeouts import MAX_BODY_BYTES, MAX_HEAD_BYTES, MAX_PIPELINED, TimeoutProtocol

PATIENCE_S = 30
SHORT_S = 0.5
TOKEN = "x" * 32
HEAD = "POST /s/tiny/records HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


class Hasty(TimeoutProtocol):
    """The same protocol with timeouts short enough for a test."""

    head_timeout_s = body_timeout_s = unread_timeout_s = SHORT_S


class Unhurried(TimeoutProtocol):
    """A protocol without timeouts, so that a connection is closed only for other reasons."""

    head_timeout_s = body_timeout_s = unread_timeout_s = linger_s = 3600


class SlowBodies(Hasty):
    """A protocol with a short timeout for heads and a long one for bodies."""

    body_timeout_s = 3600


@pytest.fixture(scope="module")
def unhurried(tmp_path_factory) -> Iterator[tuple[str, int]]:
    with running(f"sqlite:///{tmp_path_factory.mktemp('unhurried')}/vseg.db", Unhurried) as address:
        yield address


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[tuple[str, int]]:
    with running(f"sqlite:///{tmp_path_factory.mktemp('slow')}/vseg.db", Hasty) as address:
        yield address


@contextmanager
def running(url: str, protocol: type[TimeoutProtocol]) -> Iterator[tuple[str, int]]:
    """Run the server as `vseg serve` does, with other timeouts."""
    with store.open(url) as db:
        register_studies(db, STUDY)
        with listening(create_app(db), protocol) as address:
            yield address


@contextmanager
def listening(served: ASGIApp, protocol: type[TimeoutProtocol]) -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0), backlog=512) as taking:
        server = create_uvicorn_server(served)
        assert server.config.http is TimeoutProtocol, "what is tested here is what serves"
        server.config.http = protocol
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taking]})
        thread.start()
        try:
            yield taking.getsockname()
        finally:
            server.should_exit = True
            thread.join()


def connected(address: tuple[str, int], said: str = "") -> socket.socket:
    connection = socket.create_connection(address, timeout=PATIENCE_S)
    connection.sendall(said.encode())
    return connection


def heard_until_the_end(connection: socket.socket) -> bytes:
    """Return everything received until the server closes the connection; fail by a timeout if it does not."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def is_left_alone(connection: socket.socket, seconds: float) -> bool:
    """Return whether the server sends nothing for this long and keeps the connection open."""
    return select.select([connection], [], [], seconds)[0] == []


def dribbled(connection: socket.socket, byte: bytes) -> bytes:
    """Send a byte whenever nothing has come for a tenth of a second, until the server closes."""
    connection.settimeout(0.1)
    for _ in range(PATIENCE_S * 10):
        try:
            if (part := connection.recv(65536)) == b"":
                return part
        except TimeoutError:
            try:
                connection.sendall(byte)
            except OSError:
                return b""
        except ConnectionResetError:
            return b""
    raise AssertionError("The connection was never closed.")


@pytest.mark.parametrize(
    ("said", "byte"),
    [
        ("", b"G"),
        ("GET / HTTP/1.1\r\nHost: x\r\n", b"X"),
        ("GET / HTTP/1.1\r\nHost: x\r\nA: ", b"b"),
        (f"{HEAD}Authorization: Bearer {TOKEN}\r\nContent-Length: 1000\r\n\r\n", b" "),
        (f"{HEAD}Authorization: Bearer {TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        ("GET /login HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", b" "),
        ("GET /login HTTP/1.1\r\nHost: x\r\n\r\n", b"\r\n"),
    ],
    ids=[
        "a method",
        "a header's name",
        "a header's value",
        "a body",
        "chunks",
        "a body nobody reads",
        "empty lines",
    ],
)
def test_a_slow_connection_is_closed_even_if_bytes_keep_arriving(address, said, byte):
    with closing(connected(address, said)) as connection:
        dribbled(connection, byte)


def test_a_silent_connection_is_closed(address):
    with closing(connected(address)) as connection:
        assert heard_until_the_end(connection) == b""


async def says_much(scope: Scope, receive: Receive, send: Send) -> None:
    """Send a reply that no socket buffer holds."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(100):
            await send({"type": "http.response.body", "body": bytes(1_000_000), "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def test_a_connection_that_does_not_read_is_closed(caplog):
    """Request a long reply without reading it."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(PATIENCE_S)
    with listening(says_much, Hasty) as address, closing(connection):
        connection.connect(address)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        waiting = select.poll()
        waiting.register(connection, select.POLLHUP)
        assert waiting.poll(PATIENCE_S * 1000), "The connection was never closed."
    assert caplog.records == [], "nobody fills the log by leaving"


def test_others_are_served_while_many_connections_are_slow(address):
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(closing(connected(address, "GET / HTTP/1.1\r\nHo")))
        with httpx.Client(
            base_url="http://{}:{}".format(*address), timeout=PATIENCE_S, trust_env=False
        ) as client:
            for _ in range(20):
                assert client.get("s/tiny/study.json").status_code == 200


@pytest.mark.parametrize(
    "head",
    [
        lambda: "A: " + "b" * 1000 + "\r\n",
        lambda: "b" * 1000,
    ],
    ids=["many headers", "one long header"],
)
def test_a_head_without_an_end_is_refused(unhurried, head: Callable[[], str]):
    """Refuse it by its size, not by a timeout: it must not be collected in memory without limit."""
    with closing(connected(unhurried, "GET / HTTP/1.1\r\nHost: x\r\n")) as connection:
        try:
            for _ in range(1000 * MAX_HEAD_BYTES // 1000):
                connection.sendall(head().encode())
        except OSError:
            pass
        else:
            raise AssertionError("A head of a thousand times the limit was taken.")


def test_a_long_head_is_refused_with_a_message(unhurried):
    with closing(
        connected(unhurried, f"GET / HTTP/1.1\r\nHost: x\r\nA: {'b' * MAX_HEAD_BYTES}")
    ) as connection:
        assert_secured(heard_until_the_end(connection), 431)


@pytest.mark.parametrize(
    "said", ["\0\0\0\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET \u00e4 HTTP/1.1\r\nHost: x\r\n\r\n"]
)
def test_invalid_requests_are_refused(address, said):
    """They are refused before they reach the app, with the same security headers."""
    with closing(connected(address, said)) as connection:
        assert_secured(heard_until_the_end(connection), 400)


@pytest.mark.parametrize(
    "said",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        "Content-Length: -5\r\n\r\nabcdef",
    ],
)
def test_request_smuggling_is_refused(address, said):
    """Requests that a proxy could split differently are refused."""
    with closing(connected(address, f"POST /login HTTP/1.1\r\nHost: x\r\n{said}")) as connection:
        assert heard_until_the_end(connection).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "said",
    [
        "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: gzip, chunked\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n0\r\n\r\n",
    ],
)
def test_transfer_codings_but_chunked_are_refused(address, said):
    """The body would be stored as it was sent, compressed."""
    with closing(connected(address, f"POST /login HTTP/1.1\r\nHost: x\r\n{said}")) as connection:
        assert_secured(heard_until_the_end(connection), 501)


@pytest.mark.parametrize("coding", ["chunked", "Chunked"])
def test_chunked_bodies_are_read(address, coding):
    said = f"{HEAD}Transfer-Encoding: {coding}\r\nConnection: close\r\n\r\n0\r\n\r\n"
    with closing(connected(address, said)) as connection:
        assert heard_until_the_end(connection).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("GET /health HTTP/1.1\r\n", b"400"),
        ("GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n", b"400"),
        ("GET /health HTTP/1.1\r\nHost: a\r\nhost: a\r\n", b"400"),
        ("GET /health HTTP/1.0\r\nHost: a\r\nHost: b\r\n", b"400"),
        ("GET /health HTTP/1.0\r\n", b"200"),
        ("GET /health HTTP/1.1\r\nHost:\r\nConnection: close\r\n", b"200"),
    ],
)
def test_a_request_has_one_host(address, said, status):
    with closing(connected(address, f"{said}\r\n")) as connection:
        assert heard_until_the_end(connection).startswith(b"HTTP/1.1 " + status)


BODY = b'{"consented": true}'
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
SMUGGLED = b"POST /smuggled HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
OFFERS = {
    "h2c": "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
    "unknown": "Upgrade: foo/2\r\nconnection: keep-alive, uPgRaDe\r\n",
    "twice": "Connection: Upgrade\r\nUpgrade: a\r\nConnection: upgrade\r\nUpgrade: b\r\n",
    "TLS": "Connection: Upgrade\r\nUpgrade: TLS/1.3, HTTP/1.1\r\n",
    "websocket without a key": "Connection: Upgrade\r\nUpgrade: websocket\r\n",
}


@contextmanager
def recording() -> Iterator[tuple[tuple[str, int], list[tuple[str, bytes]]]]:
    """Run an app that notes the path and the body of each request that it gets."""
    seen: list[tuple[str, bytes]] = []

    async def note(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        seen.append((scope["path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    with listening(note, Unhurried) as address:
        yield address, seen


@pytest.mark.parametrize("pieces", ["at once", "head and body", "byte by byte"])
@pytest.mark.parametrize("framing", ["Content-Length", "Transfer-Encoding"])
@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS.keys())
def test_a_request_that_offers_an_upgrade_keeps_its_body(offer, framing, pieces):
    """It is answered as if it offered nothing; what follows it is never taken for a request."""
    value, body = (str(len(BODY)), BODY) if framing == "Content-Length" else ("chunked", CHUNKED)
    head = f"POST /honest HTTP/1.1\r\nHost: x\r\n{offer}{framing}: {value}\r\n\r\n".encode()
    sent = head + body + SMUGGLED
    cuts = {"at once": [0], "head and body": [0, len(head)], "byte by byte": list(range(len(sent)))}[pieces]
    with recording() as (address, seen), closing(connected(address)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError):  # closed after the response
            for start, end in zip(cuts, [*cuts[1:], len(sent)], strict=True):
                connection.sendall(sent[start:end])
        heard = heard_until_the_end(connection)
    assert heard.startswith(b"HTTP/1.1 200"), heard
    assert heard.endswith(b"ok"), heard
    assert heard.count(b"HTTP/1.1") == 1
    assert b"connection: close" in heard.lower()
    assert seen == [("/honest", BODY)]


def test_a_body_is_not_parsed_as_a_request():
    """Send a request as the body of one that offers an upgrade, in a second packet."""
    head = f"POST /honest HTTP/1.1\r\nHost: x\r\n{OFFERS['h2c']}Content-Length: {len(SMUGGLED)}\r\n\r\n"
    with recording() as (address, seen), closing(connected(address, head)) as connection:
        assert is_left_alone(connection, SHORT_S), "it waits for the body"
        connection.sendall(SMUGGLED)
        heard = heard_until_the_end(connection)
    assert heard.count(b"HTTP/1.1 ") == 1
    assert seen == [("/honest", SMUGGLED)]


def test_an_upgrade_after_other_requests_on_one_connection():
    """The replies keep their order, also if the requests come at once."""
    get = b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n"
    offer = f"POST /honest HTTP/1.1\r\nHost: x\r\n{OFFERS['h2c']}Content-Length: {len(BODY)}\r\n\r\n".encode()
    with recording() as (address, seen), closing(connected(address)) as connection:
        connection.sendall(get % 1 + get % 2 + offer + BODY + get % 3)
        assert heard_until_the_end(connection).count(b"HTTP/1.1 200") == 3
    assert seen == [("/1", b""), ("/2", b""), ("/honest", BODY)]


WEBSOCKET = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


@pytest.mark.parametrize(
    "said",
    [
        "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n",
        "CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody",
        f"GET /login HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{WEBSOCKET}\r\n",
        f"POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n{WEBSOCKET}Content-Length: 9\r\n\r\n",
    ],
    ids=["CONNECT", "CONNECT with a body", "websocket", "both"],
)
def test_tunnels_and_websockets_are_refused(said):
    with recording() as (address, seen), closing(connected(address, said)) as connection:
        with suppress(OSError):
            connection.sendall(SMUGGLED)
        assert_secured(heard_until_the_end(connection), 501)
    assert seen == []


def test_http2_without_an_offer_is_refused():
    with (
        recording() as (address, seen),
        closing(connected(address, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")) as client,
    ):
        assert_secured(heard_until_the_end(client), 400)
    assert seen == []


@pytest.mark.parametrize("header", ["A: b\r\n c", "A: b\r\n\tContent-Length: 5", "A: b\rContent-Length: 5"])
def test_a_folded_header_in_an_offer_changes_no_length(header):
    """The head is parsed twice; both times it must say the same."""
    said = (
        f"POST /honest HTTP/1.1\r\nHost: x\r\n{OFFERS['h2c']}{header}\r\nContent-Length: {len(BODY)}\r\n\r\n"
    )
    with recording() as (address, seen), closing(connected(address, said)) as connection:
        with suppress(OSError):
            connection.sendall(BODY + SMUGGLED)
        heard_until_the_end(connection)
    assert seen in ([], [("/honest", BODY)])


CHUNKED_HEAD = "POST /honest HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"


@pytest.mark.parametrize("offer", ["", OFFERS["h2c"]], ids=["plain", "h2c"])
@pytest.mark.parametrize(
    ("before", "part"),
    [
        ("1\r\nx\r\n0\r\n", "A: b\r\n" * 100),
        ("1\r\nx\r\n0\r\nA: ", "b" * 1000),
        ("1\r\nx\r\n0\r\n", "b" * 1000),
        ("1;a=", "b" * 1000),
        ("1;", "a=b;" * 1000),
        ("", "1\r\nx\r\n" * 100),
        ("", "0" * 1000),
    ],
    ids=["trailers", "a trailer", "a trailer's name", "an extension", "extensions", "small chunks", "a size"],
)
def test_a_request_without_an_end_is_refused(before, part, offer):
    """Refuse it by its size, whatever part of it grows."""
    with (
        recording() as (address, _),
        closing(connected(address, f"{CHUNKED_HEAD}{offer}\r\n{before}")) as connection,
    ):
        try:
            for _ in range(100 * MAX_HEAD_BYTES // len(part)):
                connection.sendall(part.encode())
        except OSError:
            return
        raise AssertionError("A hundred times the limit was taken.")


def test_a_body_that_no_route_reads_has_a_limit(unhurried):
    part = bytes(100_000)
    head = f"GET /login HTTP/1.1\r\nHost: x\r\nContent-Length: {100 * MAX_BODY_BYTES}\r\n\r\n"
    with closing(connected(unhurried, head)) as connection:
        try:
            for _ in range(10 * MAX_BODY_BYTES // len(part)):
                connection.sendall(part)
        except OSError:
            return
        raise AssertionError("Ten times the limit was taken.")


def test_the_largest_body_of_any_route_is_below_the_limit():
    assert studies.MAX_BODY_BYTES < MAX_BODY_BYTES


def test_trailers_are_not_headers():
    """A proxy checks and adds headers; what comes after the body must not replace them."""
    names: list[bytes] = []

    async def note(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            while (await receive()).get("more_body"):
                pass
            names.extend(name for name, _ in scope["headers"])
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    said = f"{CHUNKED_HEAD}Connection: close\r\n\r\n1\r\nx\r\n0\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    with listening(note, Unhurried) as address, closing(connected(address, said)) as connection:
        assert heard_until_the_end(connection).startswith(b"HTTP/1.1 204")
    assert names == [b"host", b"transfer-encoding", b"connection"]


def test_a_long_head_that_comes_at_once_is_refused(unhurried):
    """Count the head itself: one read from the socket may be longer than the limit."""
    said = f"GET /login HTTP/1.1\r\nHost: x\r\nA: {'b' * (MAX_HEAD_BYTES + 1000)}\r\n\r\n"
    with closing(connected(unhurried, said)) as connection:
        assert_secured(heard_until_the_end(connection), 431)


def test_requests_that_wait_for_a_response_are_few():
    """Each takes some kilobytes, so thousands of the shortest must not be queued; the client is told, in its turn."""
    go_on, paths = threading.Event(), []

    async def answer_later(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            paths.append(scope["path"])
            await asyncio.to_thread(go_on.wait, PATIENCE_S)
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    asked = "".join(f"GET /{number} HTTP/1.1\r\nHost: x\r\n\r\n" for number in range(1000)).encode()
    with listening(answer_later, Unhurried) as address, closing(connected(address)) as connection:
        connection.sendall(asked)
        go_on.set()
        heard = heard_until_the_end(connection)
    answered = 1 + MAX_PIPELINED  # the first did not have to wait
    assert paths == [f"/{number}" for number in range(answered)]
    assert heard.count(b"HTTP/1.1 204") == answered
    assert_secured(heard[heard.index(b"HTTP/1.1 429") :], 429)
    assert heard.endswith(b"wait for their responses.")


def test_a_refusal_reaches_a_client_that_goes_on_sending(unhurried):
    """A connection closed with unread data is reset, and the client's system may then discard the refusal."""
    said = f"GET /login HTTP/1.1\r\nHost: x\r\nA: {'b' * (MAX_HEAD_BYTES + 1000)}\r\n\r\n"
    with closing(connected(unhurried, said)) as connection:
        heard = b""
        while b"too long." not in heard:
            heard += connection.recv(65536)
        for _ in range(10):
            connection.sendall(b"x" * 1000)  # a reset connection would raise
        assert connection.recv(1) == b"", "the end, and no reset"


def test_a_refused_client_that_does_not_close_is_cut_off():
    """The server has ended its side; the rest of the connection ends soon after."""

    class Short(Unhurried):
        linger_s = SHORT_S

    said = "nonsense\r\n\r\n"
    with listening(says_half, Short) as address, closing(connected(address, said)) as connection:
        assert_secured(heard_until_the_end(connection), 400)
        for _ in range(20 * PATIENCE_S):  # it learns that only when it sends something
            try:
                connection.sendall(b"x")
            except OSError:
                return
            threading.Event().wait(0.05)
        raise AssertionError("The connection was kept.")


def answered(connection: socket.socket, asked: str) -> bytes:
    """Send a request whose reply has no body; read the reply and return its first line."""
    file = connection.makefile("rb")
    connection.sendall(asked.encode())
    first = file.readline()
    while file.readline() not in (b"\r\n", b""):
        pass
    return first


def test_successive_requests_on_one_connection(address):
    """The time limit applies to each request separately, not to the pauses between them."""
    with closing(connected(address)) as connection:
        for number in range(30):
            asked = f"HEAD /login?{number} HTTP/1.1\r\nHost: x\r\n\r\n"
            assert answered(connection, asked).startswith(b"HTTP/1.1 403")
            if number % 15 == 0:
                assert is_left_alone(connection, 3 * SHORT_S)


def test_a_body_that_comes_slowly_but_in_time(tmp_path):
    """A body that takes longer than a head may is read to its end and then answered."""
    body = b'{"consented": true}'
    asked = HEAD.replace("records", "sessions") + f"Content-Length: {len(body)}\r\n\r\n"
    with ExitStack() as stack:
        address = stack.enter_context(running(f"sqlite:///{tmp_path}/vseg.db", SlowBodies))
        connection = stack.enter_context(closing(connected(address, asked)))
        for start in range(0, len(body), 5):
            assert is_left_alone(connection, SHORT_S)
            connection.sendall(body[start : start + 5])
        assert connection.recv(100).startswith(b"HTTP/1.1 201")


async def says_half(scope: Scope, receive: Receive, send: Send) -> None:
    """Send a reply that does not end while the client is connected."""
    if scope["type"] == "http":
        if scope["path"] == "/half":
            headers = [(b"content-length", b"1000")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"half of it", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass


@pytest.mark.parametrize("second", [f"GET / HTTP/1.1\r\nA: {'b' * 2 * MAX_HEAD_BYTES}", "\0\0\0\r\n\r\n"])
@pytest.mark.parametrize(("path", "half"), [("half", b"half of it"), ("nothing", b"")])
def test_a_refusal_is_never_the_reply_to_another_request(path, half, second):
    """Refuse the second of two pipelined requests while the first is being answered; keep the replies apart."""
    with ExitStack() as stack:
        address = stack.enter_context(listening(says_half, Unhurried))
        connection = stack.enter_context(closing(connected(address)))
        connection.sendall(f"GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        heard = b""
        while half not in heard:
            heard += connection.recv(1000)
        with suppress(OSError):
            for _ in range(20):
                connection.sendall(second.encode())
        assert heard_until_the_end(connection) == b""


def assert_secured(answer: bytes, status: int) -> None:
    head = answer.partition(b"\r\n\r\n")[0].decode()
    assert head.startswith(f"HTTP/1.1 {status}"), head
    for name, value in SECURITY_HEADERS.items():
        assert f"{name}: {value}" in head


def test_the_timeouts_are_those_in_the_documentation():
    assert (
        TimeoutProtocol.head_timeout_s,
        TimeoutProtocol.body_timeout_s,
        TimeoutProtocol.unread_timeout_s,
    ) == (20, 120, 60)
    assert create_uvicorn_server(says_half).config.http is TimeoutProtocol, (
        "and it is what vseg serve serves with"
    )
