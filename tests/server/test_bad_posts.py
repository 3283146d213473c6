"""Whatever a browser or a stranger sends: the right status, one sentence, and nothing stored half."""

import json
import re
import socket

import pytest

from servers import STUDY, event, response, run_server
from vseg.server.records import MAX_BODY_BYTES


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for all, on SQLite: nothing here gets as far as the database."""
    study = STUDY.replace("participants = 3", "participants = 1000")
    with run_server(
        f"sqlite:///{tmp_path_factory.mktemp('bad')}/vseg.db", study, study.replace("tiny", "other")
    ) as running:
        yield running


@pytest.fixture
def person(server):
    person = server.begin()
    before = server.responses()
    yield person
    assert server.responses() == before, "a refused post left something"


def refusal(answer, status: int, error: str) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    said = answer.json()
    assert said["error"] == error
    assert said["message"].endswith(".")
    return said["message"]


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
def test_records(person, changes, message):
    """The first record is fine; it is not stored either, since a post is stored whole or not at all."""
    answer = person.send(response(0, 0), response(1, 1) | changes)
    assert refusal(answer, 422, "InvalidInput").startswith(message)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none(server, person, number):
    body = json.dumps({"records": [response(0, 0)]}).replace("412.5", number)
    answer = server.client.post(
        "s/tiny/records", content=body, headers={**person.headers, "Content-Type": "application/json"}
    )
    assert "records[0].rt_ms should be" in refusal(answer, 422, "InvalidInput")


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
def test_bodies(server, person, body, message):
    answer = server.client.post(
        "s/tiny/records", content=body, headers={**person.headers, "Content-Type": "application/json"}
    )
    assert refusal(answer, 422, "InvalidInput").startswith(message)


def test_more_records_than_a_post_may_have(person):
    answer = person.send(*(event(seq) for seq in range(101)))
    assert "at most 100 items" in refusal(answer, 422, "InvalidInput")


def test_an_event_that_is_too_large(person):
    answer = person.send(event(0, "contours", lines="x" * 64_001))
    assert "should take at most 64000 bytes" in refusal(answer, 422, "InvalidInput")
    for kind in ("comment", "device", "resumed"):
        answer = person.send(event(0, kind, text="x" * 4_000))
        message = refusal(answer, 422, "InvalidInput")
        assert message.startswith("records[0].data should take at most 4000 bytes as JSON, takes 4011, got")


def test_a_body_that_is_too_large(person):
    answer = person.send(*(event(seq, "contours", lines="x" * 50_000) for seq in range(6)))
    message = refusal(answer, 413, "RequestEntityTooLarge" if "Entity" in answer.text else "ContentTooLarge")
    assert message == f"The body is larger than {MAX_BODY_BYTES} bytes; send less at once."


def test_a_body_without_an_end_is_refused_on_the_way(server, person):
    """No Content-Length and megabytes to come: the answer comes before they do."""
    host, port = server.base.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        token = person.state["token"]
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
def test_only_json(server, person, kind):
    """Forms of other sites can send the other kinds without asking."""
    body = json.dumps({"records": [response(0, 0)]})
    headers = person.headers | ({"Content-Type": kind} if kind else {})
    answer = server.client.post("s/tiny/records", content=body.encode(), headers=headers)
    assert "Expected a body of type application/json" in refusal(answer, 415, "UnsupportedMediaType")


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
def test_tokens(server, person, authorization, what):
    headers = {} if authorization is None else {"Authorization": authorization}
    answer = server.client.post(f"s/tiny/{what}", json={"records": [response(0, 0)]}, headers=headers)
    refusal(answer, 401, "NotAllowed")


def test_a_token_of_another_study(server, person):
    """Also when this very token was used a moment ago where it belongs."""
    assert person.send(event(0)).status_code == 200
    body = {"records": [response(1, 0)]}
    answer = server.client.post("s/other/records", json=body, headers=person.headers)
    assert "belongs to no session of this study" in refusal(answer, 401, "NotAllowed")


def test_a_participants_token_opens_no_researchers_door(server, person):
    for path in ("api/me", "api/studies", "api/studies/tiny/sessions"):
        refusal(server.client.get(path, headers=person.headers), 401, "NotAllowed")
    assert server.client.get("", headers=person.headers).status_code == 303


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
def test_entries(server, entry):
    refusal(server.client.post("s/tiny/sessions", json=entry), 422, "InvalidInput")


@pytest.mark.parametrize("count", [-1, 1.5, "5", None, True, 10**9])
def test_counts(person, count):
    refusal(person.post("complete", {"count": count}), 422, "InvalidInput")


def test_what_becomes_of_the_data_is_said_clearly(person):
    refusal(person.post("leave", {"data": "whatever"}), 422, "InvalidInput")
    assert person.get_state().json()["status"] == "active"


@pytest.mark.parametrize("name", ["nope", "Tiny", "..%2f", "%00", "tiny%00", "x" * 300, "<script>alert(1)"])
def test_a_study_that_is_not_there(server, name):
    """Plain words for people, JSON for programs; neither lists the studies that there are."""
    page = server.client.get(f"s/{name}/", follow_redirects=True)
    if "%2f" not in name:
        assert page.status_code == 404
        assert "There is no study at this address" in page.text
    assert "<script>alert" not in page.text
    for answer in (
        server.client.get(f"s/{name}/study.json"),
        server.client.post(f"s/{name}/sessions", json={"consented": True}),
    ):
        assert answer.status_code == 404
        assert "other" not in answer.json()["message"]


@pytest.mark.parametrize(
    "name",
    [
        "https:evil.example", "https:evil.example%2f", "https:%2f%2fevil.example", "%2fevil.example", "/evil.example",
        "/evil", "%5cevil.example", "javascript:alert(1)", "..", "%2e%2e", ".%2f", "tiny%0d%0aLocation:%20x", "nope",
    ],
)  # fmt: skip
def test_nobody_is_sent_elsewhere(server, name):
    """A link to this server that leads to another: only a study's own name is ever redirected to."""
    for slash in ("", "/"):
        host, port = server.base.removeprefix("http://").rstrip("/").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            asked = f"GET /s/{name}{slash}?next=x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            connection.sendall(asked.encode())
            answer = connection.makefile("rb").read().partition(b"\r\n\r\n")[0].decode()
        sent = re.search(r"^location: (.*)$", answer, re.MULTILINE | re.IGNORECASE)
        if sent is None:
            assert answer.startswith("HTTP/1.1 404")
        else:  # two slashes at the end become none, which is then not found
            assert sent[1].startswith(f"http://{host}/s/")


def test_methods_and_addresses(server):
    refusal(server.client.get("s/tiny/records"), 405, "MethodNotAllowed")
    refusal(server.client.delete("s/tiny/session"), 405, "MethodNotAllowed")
    refusal(server.client.get("s/tiny/../../etc/passwd"), 404, "NotFound")
    refusal(server.client.get("pages/..%2fauth.py"), 404, "NotFound")
    refusal(server.client.get("s/tiny/images/x.png"), 404, "NotFound")
