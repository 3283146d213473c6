"""Invalid requests get the right status and one sentence, and nothing of them is stored."""

import json
import re
import socket

import pytest

from servers import STUDY, event, response, run_server
from vseg.server.record_validation import MAX_BODY_BYTES


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Run one server for all tests, on SQLite: these requests do not reach the database."""
    study = STUDY.replace("participants = 3", "participants = 1000")
    with run_server(
        f"sqlite:///{tmp_path_factory.mktemp('bad')}/vseg.db", study, study.replace("tiny", "other")
    ) as running:
        yield running


@pytest.fixture
def participant(server):
    participant = server.begin()
    before = server.responses()
    yield participant
    assert server.responses() == before, "a refused request must not store anything"


def check_refusal(reply, status: int, error: str) -> str:
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/json"
    body = reply.json()
    assert body["error"] == error
    assert body["message"].endswith(".")
    return body["message"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rt_ms": "fast"}, "records[1].rt_ms should be a valid number, got 'fast'."),
        ({"rt_ms": None}, "records[1].rt_ms should be a valid number, got None."),
        ({"rt_ms": -1}, "records[1].rt_ms should be greater than or equal to 0, got -1"),
        ({"rt_ms": 1e300}, "records[1].rt_ms should be less than or equal to 1000000000, got 1e+300."),
        ({"same": 1}, "records[1].same should be a valid boolean, got 1."),
        ({"seq": -1}, "records[1].seq should be greater than or equal to 0, got -1."),
        ({"seq": 1.5}, "records[1].seq should be a valid integer, got 1.5."),
        ({"seq": 28 * 4 + 1000}, "seq 1112 is out of range; this session has fewer than 1112 records."),
        ({"seq": 0}, "seq 0 comes twice in one post; number records from 0, each once."),
        ({"item": 28}, "item 28 is not in this session, whose items are 0..27."),
        (
            {"item": 2**70},
            "records[1].item should be less than or equal to 1000000, got 1180591620717411303424.",
        ),
        (
            {"flags": "late nice"},
            "records[1].flags should be words among blurred, hidden, late, slow_refresh, window",
        ),
        ({"flags": "late late"}, "records[1].flags should be words among"),
        ({"key": ""}, "records[1].key should match pattern"),
        ({"key": "f\0"}, "records[1].key should match pattern"),
        (
            {"kind": "guess"},
            "records[1] tag 'guess' found using 'kind' does not match any of the expected tags",
        ),
        ({"i": 3, "j": 4}, "records[1].i: Extra inputs are not permitted."),
        ({"image": "other"}, "records[1].image: Extra inputs are not permitted."),
        ({"practice": True}, "records[1].practice: Extra inputs are not permitted."),
    ],
)
def test_an_invalid_record(participant, changes, message):
    """The first record is valid but not stored either: a request is stored completely or not at all."""
    reply = participant.send(response(0, 0), response(1, 1) | changes)
    assert check_refusal(reply, 422, "InvalidInput").startswith(message)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite(server, participant, number):
    body = json.dumps({"records": [response(0, 0)]}).replace("412.5", number)
    reply = server.client.post(
        "s/tiny/records", content=body, headers={**participant.headers, "Content-Type": "application/json"}
    )
    assert "records[0].rt_ms should be" in check_refusal(reply, 422, "InvalidInput")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "The body: Invalid JSON: EOF while parsing"),
        (b"{", "The body: Invalid JSON: EOF while parsing"),
        (b"\xff\xfe{}", "The body: Invalid JSON: expected value"),
        (b"[]", "The body should be an object, got []."),
        (b"{}", "records: Field required."),
        (b'{"records": []}', "records should have at least 1 item"),
        (b'{"records": [3]}', "records[0] should be an object, got 3."),
        (
            b'{"records": ' + b"[" * 5000 + b"]" * 5000 + b"}",
            "The body: Invalid JSON: recursion limit exceeded",
        ),
    ],
)
def test_an_invalid_body(server, participant, body, message):
    reply = server.client.post(
        "s/tiny/records", content=body, headers={**participant.headers, "Content-Type": "application/json"}
    )
    assert check_refusal(reply, 422, "InvalidInput").startswith(message)


def test_too_many_records(participant):
    reply = participant.send(*(event(seq) for seq in range(101)))
    assert "at most 100 items" in check_refusal(reply, 422, "InvalidInput")


def test_too_large_an_event(participant):
    reply = participant.send(event(0, "contours", lines="x" * 64_001))
    assert "should take at most 64000 bytes" in check_refusal(reply, 422, "InvalidInput")
    for kind in ("comment", "device", "resumed"):
        reply = participant.send(event(0, kind, text="x" * 4_000))
        message = check_refusal(reply, 422, "InvalidInput")
        assert message.startswith("records[0].data should take at most 4000 bytes as JSON, takes 4011, got")


def test_too_large_a_body(participant):
    reply = participant.send(*(event(seq, "contours", lines="x" * 50_000) for seq in range(6)))
    message = check_refusal(
        reply, 413, "RequestEntityTooLarge" if "Entity" in reply.text else "ContentTooLarge"
    )
    assert message == f"The body is larger than {MAX_BODY_BYTES} bytes; send less at once."


def test_too_large_a_chunked_body_is_refused_before_its_end(server, participant):
    """Without Content-Length the size is counted while the body arrives."""
    host, port = server.base.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        token = participant.state["token"]
        connection.sendall(
            f"POST /s/tiny/records HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        for _ in range(MAX_BODY_BYTES // 0x10000 + 1):
            connection.sendall(chunk)
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None]
)
def test_other_content_types_are_refused(server, participant, kind):
    """Forms of other sites can send these types without the browser asking the server first."""
    body = json.dumps({"records": [response(0, 0)]})
    headers = participant.headers | ({"Content-Type": kind} if kind else {})
    reply = server.client.post("s/tiny/records", content=body.encode(), headers=headers)
    assert "Expected a body of type application/json" in check_refusal(reply, 415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Basic YTpi",
        "Bearer wrong",
        "Bearer a b",
        "Bearer " + "x" * 200,
    ],
)
@pytest.mark.parametrize("what", ["records", "complete", "leave"])
def test_an_invalid_token(server, participant, authorization, what):
    headers = {} if authorization is None else {"Authorization": authorization}
    reply = server.client.post(f"s/tiny/{what}", json={"records": [response(0, 0)]}, headers=headers)
    check_refusal(reply, 401, "NotAllowed")


def test_a_token_of_another_study(server, participant):
    """It is refused even if the token is cached for its own study."""
    assert participant.send(event(0)).status_code == 200
    body = {"records": [response(1, 0)]}
    reply = server.client.post("s/other/records", json=body, headers=participant.headers)
    assert "belongs to no session of this study" in check_refusal(reply, 401, "NotAllowed")


def test_a_participants_token_gives_no_access_to_researchers_routes(server, participant):
    for path in ("api/me", "api/studies", "api/studies/tiny/sessions"):
        check_refusal(server.client.get(path, headers=participant.headers), 401, "NotAllowed")
    assert server.client.get("", headers=participant.headers).status_code == 303


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"consented": False},
        {"consented": 1},
        {"consented": True, "prolific_pid": ""},
        {"consented": True, "prolific_pid": "a b"},
        {"consented": True, "prolific_pid": "a\0"},
        {"consented": True, "prolific_pid": "x" * 65},
        {"consented": True, "prolific_pid": ["a"]},
        {"consented": True, "prolific_pid": "{{%PROLIFIC_PID"},
        {"consented": True, "link": "x" * 129},
        {"consented": True, "entry": "x" * 21},
        {"consented": True, "entry": "x" * 65},
        {"consented": True, "entry": "x" * 22 + "!"},
        {"consented": True, "name": "Ann"},
    ],
)
def test_an_invalid_entry(server, entry):
    check_refusal(server.client.post("s/tiny/sessions", json=entry), 422, "InvalidInput")


@pytest.mark.parametrize("count", [-1, 1.5, "5", None, True, 10**9])
def test_an_invalid_count(participant, count):
    check_refusal(participant.post("complete", {"count": count}), 422, "InvalidInput")


def test_an_invalid_choice_on_leaving(participant):
    check_refusal(participant.post("leave", {"data": "whatever"}), 422, "InvalidInput")
    assert participant.get_state().json()["status"] == "active"


@pytest.mark.parametrize("name", ["nope", "Tiny", "..%2f", "%00", "tiny%00", "x" * 300, "<script>alert(1)"])
def test_an_unknown_study(server, name):
    """Browsers get a page and programs JSON; neither lists the existing studies."""
    page = server.client.get(f"s/{name}/", follow_redirects=True)
    if "%2f" not in name:
        assert page.status_code == 404
        assert "There is no study at this address" in page.text
    assert "<script>alert" not in page.text
    for reply in (
        server.client.get(f"s/{name}/study.json"),
        server.client.post(f"s/{name}/sessions", json={"consented": True}),
    ):
        assert reply.status_code == 404
        assert "other" not in reply.json()["message"]


@pytest.mark.parametrize(
    "name",
    [
        "https:evil.example", "https:evil.example%2f", "https:%2f%2fevil.example", "%2fevil.example", "/evil.example",
        "/evil", "%5cevil.example", "javascript:alert(1)", "..", "%2e%2e", ".%2f", "tiny%0d%0aLocation:%20x", "nope",
    ],
)  # fmt: skip
def test_no_redirect_to_other_sites(server, name):
    """Only the name of a study is redirected to; a link to this server must not lead to another one."""
    for slash in ("", "/"):
        host, port = server.base.removeprefix("http://").rstrip("/").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            request = f"GET /s/{name}{slash}?next=x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            connection.sendall(request.encode())
            reply = connection.makefile("rb").read().partition(b"\r\n\r\n")[0].decode()
        location = re.search(r"^location: (.*)$", reply, re.MULTILINE | re.IGNORECASE)
        if location is None:
            assert reply.startswith("HTTP/1.1 404")
        else:  # two slashes at the end are redirected to none, which is then not found
            assert location[1].startswith(f"http://{host}/s/")


def test_wrong_methods_and_addresses(server):
    check_refusal(server.client.get("s/tiny/records"), 405, "MethodNotAllowed")
    check_refusal(server.client.delete("s/tiny/session"), 405, "MethodNotAllowed")
    check_refusal(server.client.get("s/tiny/../../etc/passwd"), 404, "NotFound")
    check_refusal(server.client.get("pages/..%2fauth.py"), 404, "NotFound")
    check_refusal(server.client.get("s/tiny/images/x.png"), 404, "NotFound")
