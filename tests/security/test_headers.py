"""Test the security headers of every reply, and that no page contains anything that its own policy forbids."""

import re
import sqlite3
from contextlib import closing
from html.parser import HTMLParser

import pytest

from roles import AttackScenario, run_server_with_roles
from vseg.server.headers import SECURITY_HEADERS

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data: blob:",
    "connect-src": "'self'",
    "font-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
LEADS = ("href", "src", "action", "formaction")
PAGES = (
    "", "new", "new?sample=patches", "settings", "studies/tiny", "studies/tiny?part=live", "studies/tiny/data",
    "studies/tiny/images/patches", "studies/tiny/images/patches?part=live", "studies/tiny/images/patches?part=fit",
    "studies/tiny/participants/{participant}", "api/", "login", "setup?token=x", "signin?token=x", "s/tiny/", "s/nope/",
    "nope", "studies/nope", "report",
)  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with run_server_with_roles(f"sqlite:///{tmp_path_factory.mktemp('headers')}/vseg.db") as world:
        yield world


def directives(policy: str) -> dict[str, str]:
    return {part.split()[0]: " ".join(part.split()[1:]) for part in policy.split(";")}


def test_the_policy_allows_no_other_origin_and_no_inline_script():
    assert directives(SECURITY_HEADERS["Content-Security-Policy"]) == POLICY


def test_every_route_and_every_error_has_the_headers(world):
    ann = world.roles["researcher"]
    values = {"study": "tiny", "name": "tiny", "image": "patches", "sha256": world.image, "k": 0, "kind": "png",
              "number": 1, "participant": world.victim.state["participant"], "what": "x", "file": "nope"}  # fmt: skip
    statuses = set()
    for _, path in sorted(world.routes()):
        for role, method in ((world.roles["nobody"], "GET"), (ann, "GET"), (ann, "OPTIONS"), (ann, "POST")):
            answer = world.ask(
                role, method, path.format(**values), content=b"{" if method == "POST" else None
            )
            statuses.add(answer.status_code)
            assert_secured(answer, f"{method} {path}: {answer.status_code}")
    assert statuses >= {200, 301, 303, 307, 401, 403, 404, 405, 415}


def test_only_the_browser_may_store_what_researchers_see(world):
    """A cache between them must not, and a download is not stored at all."""
    ann, stored = world.roles["researcher"], set()
    values = {"study": "tiny", "name": "tiny", "image": "patches", "sha256": world.image, "k": 0, "kind": "png",
              "number": 1, "participant": world.victim.state["participant"], "what": "x", "file": "nope"}  # fmt: skip
    for method, path in sorted(world.routes()):
        if method != "GET" or re.match(r"/?(s|static|pages|health|favicon.ico)\b", path):
            continue
        answer = world.ask(ann, "GET", path.format(**values))
        caching = answer.headers["cache-control"]
        assert "no-store" in caching or caching == "private, no-cache", path
        stored.add(caching)
    assert "private, no-cache" in stored
    export = world.ask(ann, "GET", "api/studies/tiny/export.zip")
    assert (export.status_code, export.headers["cache-control"]) == (200, "private, no-store")


def test_files_and_too_large_requests_have_the_headers(world):
    nobody = world.roles["nobody"]
    for answer in (
        world.ask(nobody, "GET", "static/experiment.js"),
        world.ask(nobody, "GET", "static/experiment.js", headers={"Range": "bytes=0-10"}),
        world.ask(nobody, "GET", "pages/researcher.css", headers={"Accept-Encoding": "gzip"}),
        world.ask(nobody, "POST", "s/tiny/sessions", json={"consented": True, "link": "x" * 10_000}),
        world.ask(nobody, "POST", "login", data={"name": "x" * 100_000}),
    ):
        assert_secured(answer, f"{answer.url}: {answer.status_code}")


def test_server_errors_have_the_headers(tmp_path):
    with run_server_with_roles(f"sqlite:///{tmp_path}/vseg.db") as broken:
        with closing(sqlite3.connect(tmp_path / "vseg.db")) as connection:
            connection.execute("ALTER TABLE studies RENAME TO gone")
        for path in ("s/tiny/study.json", "s/tiny/session", "api/studies", "studies/tiny"):
            answer = broken.ask(broken.roles["researcher"], "GET", path, headers={"Accept": "text/html"})
            assert answer.status_code in (401, 500, 503), answer.text
            assert_secured(answer, path)
            assert "Traceback" not in answer.text
            assert str(tmp_path) not in answer.text


def assert_secured(answer, where: str) -> None:
    for name, value in SECURITY_HEADERS.items():
        assert answer.headers.get_list(name) == [value], f"{where}: {name}"
    assert "cache-control" in answer.headers, where
    assert "server" not in answer.headers or "/" not in answer.headers["server"], where
    assert "access-control-allow-origin" not in answer.headers, where


def test_browsers_stay_with_https_where_the_proxy_uses_it(world):
    """A server in the laboratory has no HTTPS, so that nothing is promised there."""
    name, nobody = "strict-transport-security", world.roles["nobody"]
    for path in ("s/tiny/", "health", "login", "nope", "pages/researcher.css"):
        secure = world.ask(nobody, "GET", path, headers={"X-Forwarded-Proto": "https"})
        assert secure.headers.get_list(name) == ["max-age=31536000"], path
        assert name not in world.ask(nobody, "GET", path).headers


class Found(HTMLParser):
    """Collect the parts of a page that a strict policy forbids, and its forms without a token."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.forms: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        for name, value in attrs:
            runs = name in LEADS and re.match(
                r"\s*(javascript|vbscript|data:text):", value or "", re.IGNORECASE
            )
            elsewhere = name in ("src", "href") and tag != "a" and re.match(r"(https?:)?//", value or "")
            if name.startswith("on") or name in ("style", "srcdoc") or runs or elsewhere:
                self.wrong.append(f"<{tag} {name}={value!r}>")
        inline = tag == "script" and not given.get("src") and given.get("type") != "application/json"
        if inline or tag in ("style", "base", "iframe", "object", "embed"):
            self.wrong.append(f"<{tag}>")
        if tag == "form":
            self.forms.append({"method": given.get("method"), "token": None})
        if tag == "input" and given.get("name") == "form_token" and self.forms:
            self.forms[-1]["token"] = given.get("value")


@pytest.mark.parametrize("path", PAGES)
def test_pages_have_no_inline_script_or_style_and_every_form_has_a_token(world: AttackScenario, path):
    for role in (world.roles["researcher"], world.roles["nobody"]):
        page = world.ask(role, "GET", path.format(participant=world.victim.state["participant"]))
        found = Found()
        found.feed(page.text)
        assert found.wrong == []
        posted = [form for form in found.forms if (form["method"] or "get").lower() == "post"]
        assert all(re.fullmatch(r"[0-9a-f]{64}", form["token"] or "") for form in posted), path
