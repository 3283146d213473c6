"""Send bad bodies to every route that takes one: too large, nested, cut off, of the wrong type, with SQL."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from roles import AttackScenario, run_server_with_roles
from servers import event, response
from vseg.server.record_validation import MAX_BODY_BYTES

SMALL = 8_192
STUDY_BODY = 6_000_100
ROUTES = {
    "s/tiny/records": MAX_BODY_BYTES,
    "s/tiny/sessions": SMALL,
    "s/tiny/complete": SMALL,
    "s/tiny/leave": SMALL,
    "api/tokens": SMALL,
    "api/studies": STUDY_BODY,
    "api/studies/tiny/simulate": SMALL,
}
FORMS = {
    "login": SMALL, "setup": SMALL, "logout": SMALL, "studies": 2_000_000, "studies/tiny/links": SMALL,
    "studies/tiny/links/revoke": SMALL,
    "studies/tiny/close": SMALL, "studies/tiny/simulate": SMALL, "settings/password": SMALL, "settings/tokens": SMALL,
    "settings/tokens/revoke": SMALL, "settings/researchers": SMALL, "studies/tiny/participants/p/erase": SMALL,
}  # fmt: skip
NOTHING_BUT_A_TOKEN = {"studies/tiny/close", "studies/tiny/links/revoke", "settings/researchers", "logout"}
BAD = {
    "nothing": b"",
    "cut off": b'{"records": [{"seq": 0, "kind": "resp',
    "cut off in a character": b'{"data": "\xe2\x82',
    "not UTF-8": b'{"data": "\xff\xfe"}',
    "half a surrogate": b'{"data": "\\ud800", "text": "\\udfff", "label": "\\ud800"}',
    "a number without end": b'{"count": ' + b"9" * 5000 + b"}",
    "an exponent": b'{"count": 1e999999999}',
    "a key twice": b'{"count": 1, "count": -1, "data": "keep", "data": 3}',
    "deeply nested lists": b'{"records":' + b"[" * 3000 + b"]" * 3000 + b"}",
    "deeply nested objects": b'{"a":' * 1000 + b"1" + b"}" * 1000,
    "a million zeros": b"0" * 8000,
    "NUL": b'{"data": "\\u0000", "label": "\\u0000", "text": "\\u0000", "prolific_pid": "\\u0000", "consented": true}',
    "__proto__": b'{"__proto__": {"admin": true}, "constructor": 1}',
}  # fmt: skip
SQL = (
    "'; DROP TABLE responses; --", '" OR ""="', "x'||(SELECT token_hash FROM sessions)||'", "%' UNION SELECT 1 --",
    "{{7*7}}", "../../etc/passwd", "a\0b", "\U0001f600",
)  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[AttackScenario]:
    with run_server_with_roles(f"sqlite:///{tmp_path_factory.mktemp('bodies')}/vseg.db") as world:
        yield world


@pytest.fixture
def on_both(database_url) -> Iterator[AttackScenario]:
    with run_server_with_roles(database_url) as world:
        yield world


def sender(world: AttackScenario, path: str) -> dict[str, str]:
    if path == "api/tokens":  # needs a login
        role = world.roles["researcher"]
        who = {**role.headers, "X-CSRF-Token": role.form_token}
    else:
        who = world.victim.headers if path.startswith("s/") else world.roles["researcher's script"].headers
    return {**who, "Content-Type": "application/json"}


@pytest.mark.parametrize("path", ROUTES)
def test_bad_json_is_refused_in_a_sentence(world, path):
    before = world.stored()
    for name, body in BAD.items():
        answer = world.server.client.post(path, content=body, headers=sender(world, path))
        assert answer.status_code == 422, f"{name}: {answer.text}"
        said = answer.json()
        assert said["error"] == "InvalidInput"
        assert said["message"].endswith((".", "…")), said
        assert len(said["message"]) < 1000, said
    assert world.stored() == before


@pytest.mark.parametrize("path", [*ROUTES, *FORMS])
def test_a_compressed_body_is_refused(world, path):
    """It would be read, and perhaps stored, as if it were not compressed."""
    who = {"Cookie": world.roles["researcher"].headers["Cookie"]} if path in FORMS else sender(world, path)
    for encoding in ("gzip", "identity, gzip", "x"):
        reply = world.server.client.post(path, content=b"{}", headers={**who, "Content-Encoding": encoding})
        assert reply.status_code == 415, encoding
        assert "Expected a body without compression" in reply.text
    plain = world.server.client.post(path, content=b"{}", headers={**who, "Content-Encoding": "identity"})
    assert plain.status_code != 415 or path in FORMS


@pytest.mark.parametrize("path", ROUTES)
def test_a_body_declared_too_large_is_refused_at_once(world, path):
    """The reply comes before the body, by its declared length; a body without one is refused while it is read."""
    most = ROUTES[path]
    head = f"POST /{path} HTTP/1.1\r\nHost: x\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in sender(world, path).items())
    assert answered(world, f"{head}Content-Length: {most + 1}\r\n\r\n".encode()).startswith(b"HTTP/1.1 413")
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    whole = head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * (most // 0x10000 + 1)
    assert answered(world, whole).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("path", FORMS)
def test_a_form_declared_too_large_is_refused_at_once(world, path):
    cookie = world.roles["researcher"].headers["Cookie"]
    head = (
        f"POST /{path} HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\nContent-Length: {FORMS[path] + 1}\r\n\r\n"
    )
    assert answered(world, head.encode()).startswith(b"HTTP/1.1 413")


def answered(world: AttackScenario, said: bytes) -> bytes:
    host, port = world.server.base.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(said)
        return connection.recv(100)


@pytest.mark.parametrize("path", FORMS)
def test_forms_with_invalid_bodies(world, path):
    """Send too many fields, no fields, text that is not UTF-8 and another form encoding."""
    role = world.roles["researcher"]
    before = world.stored()
    token = f"form_token={role.form_token}".encode()
    for body, kind in (
        (b"", "application/x-www-form-urlencoded"),
        (b"&".join([b"a=1"] * 1000), "application/x-www-form-urlencoded"),
        (
            token + b"&count=%ff%fe&name=%00&password=\xff&label=%00&token=%00&text=%00",
            "application/x-www-form-urlencoded",
        ),
        (
            b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--",
            "multipart/form-data; boundary=x",
        ),
        (b'{"form_token": 1}', "application/json"),
    ):
        headers = {"Content-Type": kind}
        if path in NOTHING_BUT_A_TOKEN and body.startswith(token):
            continue
        answer = world.ask(role, "POST", path, content=body, headers=headers)
        assert answer.status_code in (401, 403, 404, 413, 422), (
            f"{body[:40]!r}: {answer.status_code} {answer.text[:300]}"
        )
    assert world.stored() == before


def test_sql_in_every_field(on_both):
    """SQL is stored as text where text is allowed, refused elsewhere, and never executed; nothing else changes."""
    world, client = on_both, on_both.server.client
    script = world.roles["researcher's script"]
    before = world.stored()[1]
    for number, text in enumerate(SQL):
        asked: list[httpx.Response] = []
        for field in ("prolific_pid", "prolific_study", "prolific_session", "link", "entry"):
            entry = {"consented": True, "prolific_pid": f"p{number}", field: text}
            asked.append(client.post("s/tiny/sessions", json=entry))
        person = world.server.begin()
        for change in ({"key": text}, {"flags": text}, {"kind": text}, {"seq": text}, {"item": text}):
            asked.append(person.send(response(0, 0) | change))
        asked.append(person.send(event(1, "comment", text=text, **{text: text})))
        asked.append(person.send(event(2, "contours", image=text, contours=[[[text]]], width_px=text)))
        asked.append(person.send(event(3, "resumed", repeat=text)))
        asked += [
            person.get_state(),
            person.post("complete", {"count": text}),
            person.post("leave", {"data": text}),
        ]
        for path in (
            "studies/{}", "studies/{}/sessions", "studies/tiny/participants/{}", "studies/tiny/images/{}/maps.json",
            "studies/tiny/images/patches/maps.json?participant={}",
            "studies/tiny/images/patches/maps.json?smoothness={}",
            "studies/tiny/images/patches/contours.json?participant={}", "studies/tiny/images/patches/figure.{}",
            "studies/{}/simulate", "tokens/{}",
        ):  # fmt: skip
            quoted = path.format(quote(text, safe=""))
            asked.append(world.ask(script, "GET", f"api/{quoted}"))
            asked.append(world.ask(world.roles["researcher"], "GET", quoted))
        asked.append(world.ask(script, "POST", "api/tokens", json={"label": text}))
        asked.append(world.ask(script, "POST", "api/studies", json={"text": f"name = {json.dumps(text)}"}))
        asked.append(client.get(f"s/{quote(text, safe='')}/study.json"))
        form = {
            "form_token": world.roles["browser without a login"].form_token,
            "name": text,
            "password": text,
            "next": text,
        }
        asked.append(world.ask(world.roles["browser without a login"], "POST", "login", data=form))
        wrong = [
            f"{each.request.method} {each.url}: {each.text[:200]}"
            for each in asked
            if each.status_code >= 500
        ]
        assert wrong == []
        assert "49" not in "".join(each.text for each in asked if "{{" in text and each.status_code == 422)
    assert world.stored()[1] == before
    exported = world.ask(script, "GET", "api/studies/tiny/export.zip")
    assert exported.status_code == 200, exported.text


@pytest.mark.parametrize(
    "digits", ["0123456789" * 500, "9" * 5000, "0" * 5000 + "2", "-" + "0" * 5000, "\u0663" * 5000]
)
def test_numbers_with_thousands_of_digits_are_refused_in_addresses(world, digits):
    """Python itself refuses to read them, with an error that must not become a server error."""
    ann, text = world.roles["researcher"], quote(digits)
    paths = [
        f"studies/tiny/images/patches?{name}={text}"
        for name in ("segments", "smoothness", "part=fit&segments")
    ]
    paths += [f"studies/tiny?page={text}", f"api/studies/tiny/images/patches/posterior.json?segments={text}"]
    paths += [
        f"api/studies/tiny/images/patches/{file}?segments={text}" for file in ("maps.json", "entropy.png")
    ]
    for path in paths:
        for accept in ("text/html", "application/json"):
            answer = world.ask(ann, "GET", path, headers={"Accept": accept})
            assert answer.status_code < 500, f"{path:.80}: {answer.text:.200}"
