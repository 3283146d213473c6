"""Send invalid headers to every kind of route: they are refused or ignored, never a server error."""

import socket
from urllib.parse import urlencode, urlsplit

import pytest

from roles import AttackScenario, run_server_with_roles
from vseg.server import auth

NAMES = (
    "Origin", "Referer", "Cookie", "Accept", "Accept-Language", "Accept-Encoding", "Authorization", "Range", "If-Range",
    "If-None-Match", "If-Modified-Since", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-CSRF-Token",
    "X-Forwarded-Prefix", "Forwarded", "Sec-Fetch-Site", "Content-Type", "Host", "Content-Length", "Transfer-Encoding",
    "Expect", "Upgrade",
)  # fmt: skip
ODD = (
    b"", b"http://[", b"http://a]b", b"http://a:99999999", b"http://\xe2\x84\x80", b"[", b"\xff\xfe", b"null", b"*",
    b"-1", b"9" * 5000, b"\xc2\xb2", b"text/html;q=\xff", b"bytes=0-,1-,-0", b"Bearer ", b"bearer vseg_\xff",
    b'=;"\\000', b"W/", b"multipart/form-data; boundary=", b"application/json; charset=klingon", b"chunked, chunked",
)  # fmt: skip
COOKIES = (b"", b"x" * 43, b'"\\000"', b"\xff" * 43, b"[", b"=" * 43)
ASKED = (
    ("GET", "/"), ("GET", "/login"), ("GET", "/api/studies"), ("GET", "/s/tiny"), ("GET", "/s/tiny/study.json"),
    ("GET", "/s/tiny/session"), ("GET", "/pages/researcher.css"), ("GET", "/health"), ("GET", "/nothing"),
    ("POST", "/login"), ("POST", "/setup"), ("POST", "/logout"), ("POST", "/studies"), ("POST", "/api/studies"),
    ("POST", "/s/tiny/sessions"), ("POST", "/s/tiny/records"),
)  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with run_server_with_roles(f"sqlite:///{tmp_path_factory.mktemp('odd')}/vseg.db") as world:
        yield world


def status(world: AttackScenario, method: str, path: str, body: bytes, **headers: bytes) -> int:
    """Send a request with raw headers; return the status code, 0 for a closed connection."""
    given = {b"Host": b"here", b"Accept": b"text/html", b"Connection": b"close"}
    given |= {b"Content-Length": b"%d" % len(body)} if body else {}
    given |= {name.replace("_", "-").encode(): value for name, value in headers.items()}
    head = [f"{method} {path} HTTP/1.1".encode(), *(b"%s: %s" % each for each in given.items())]
    at = urlsplit(world.server.base)
    with socket.create_connection((at.hostname, at.port), timeout=30) as connection:
        connection.sendall(b"\r\n".join([*head, b"", body]))
        if "Content_Length" in headers or "Transfer_Encoding" in headers:
            connection.shutdown(socket.SHUT_WR)  # the server may wait for more data
        with connection.makefile("rb") as answer:
            said = answer.readline().split()
    return int(said[1]) if said else 0


def body_of(method: str, token: str) -> bytes:
    form = {"form_token": token, "name": "é", "password": "x", "token": "x"}
    return urlencode(form).encode() if method == "POST" else b""


@pytest.mark.parametrize(("method", "path"), ASKED)
def test_no_header_causes_a_server_error(world, method, path):
    """`Origin: http://[` on a form, an invalid URL, once caused one."""
    role = world.roles["browser without a login"]
    usual = {"Cookie": role.headers["Cookie"].encode(), "Content_Type": b"application/x-www-form-urlencoded"}
    failed = {}
    for name in NAMES:
        for value in ODD:
            said = status(
                world,
                method,
                path,
                body_of(method, role.form_token),
                **usual | {name.replace("-", "_"): value},
            )
            is_refused = (name, said) == ("Transfer-Encoding", 501)  # an unknown coding, as HTTP wants it
            if said >= 500 and not is_refused:
                failed[name, value] = said
    for value in COOKIES:
        said = status(world, method, path, b"", Cookie=b"%s=%s" % (auth.COOKIE.encode(), value))
        if said >= 500:
            failed["Cookie", value] = said
    assert failed == {}


@pytest.mark.parametrize("origin", [b"http://[", b"http://a]b", b"http://[::1", b"null", b""])
@pytest.mark.parametrize("path", ["/login", "/setup", "/logout"])
def test_an_invalid_origin_counts_as_another_site(world, path, origin):
    role = world.roles["browser without a login"]
    cookie = role.headers["Cookie"].encode()
    assert status(world, "POST", path, body_of("POST", role.form_token), Cookie=cookie, Origin=origin) == 403
