"""Test slow, endless and unread connections: each is closed by a timeout, and others are served meanwhile."""

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
from vseg.server.app import create_app
from vseg.server.headers import SECURITY_HEADERS
from vseg.server.runner import create_uvicorn_server
from vseg.server.timeouts import MAX_HEAD_BYTES, TimeoutProtocol

PATIENCE_S = 30
SHORT_S = 0.5
TOKEN = "x" * 32
HEAD = "POST /s/tiny/records HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


class Hasty(TimeoutProtocol):
    """The same protocol with timeouts short enough for a test."""

    head_timeout_s = body_timeout_s = unread_timeout_s = SHORT_S


class Unhurried(TimeoutProtocol):
    """A protocol without timeouts, so that a connection is closed only for other reasons."""

    head_timeout_s = body_timeout_s = unread_timeout_s = 3600


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


def test_a_connection_that_does_not_read_is_closed(address, caplog):
    """Request a file repeatedly without reading any reply."""
    with httpx.Client(base_url="http://{}:{}".format(*address), trust_env=False) as client:
        asked = "GET /pages/researcher.css HTTP/1.1\r\nHost: x\r\n\r\n"
        size = len(client.get("pages/researcher.css").content)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(PATIENCE_S)
    with closing(connection):
        connection.connect(address)
        connection.sendall(asked.encode() * (20_000_000 // size))
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
