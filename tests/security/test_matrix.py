"""Every route of the server × everyone who may ask: what comes back, and that nothing of anybody else's does.

Routes are listed by the app itself: a new one fails here until this file says who may use it.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from chaos.security_counts import MATRIX, count_requests
from roles import AttackScenario, Role, run_server_with_roles

SECURITY = Path(__file__).parents[2] / "SECURITY.md"

STRANGERS = (
    "nobody", "browser without a login", "random token", "another participant", "finished participant",
    "withdrawn participant", "replaced token", "another study's participant", "researcher whose login ended",
    "researcher whose token was revoked",
)  # fmt: skip
"""Replies to requests for a researcher's page."""
FOREIGN = "researcher, form of another site"

OPEN, ENTRY, SESSION, DOOR, PAGE, FORM, READ, WRITE = (
    "open to all", "entry", "session", "door", "page", "form", "api read", "api write",
)  # fmt: skip

KINDS: dict[tuple[str, str], str] = {
    ("POST", "/s/{study}/records"): SESSION,
    ("GET", "/s/{study}"): OPEN,
    ("GET", "/s/{study}/"): OPEN,
    ("GET", "/s/{study}/study.json"): OPEN,
    ("GET", "/s/{study}/images/{sha256}.png"): OPEN,
    ("POST", "/s/{study}/sessions"): ENTRY,
    ("GET", "/s/{study}/session"): SESSION,
    ("POST", "/s/{study}/complete"): SESSION,
    ("POST", "/s/{study}/leave"): SESSION,
    ("GET", "/setup"): DOOR,
    ("POST", "/setup"): DOOR,
    ("GET", "/login"): OPEN,
    ("POST", "/login"): DOOR,
    ("POST", "/logout"): DOOR,
    ("GET", "/signin"): DOOR,
    ("GET", "/"): PAGE,
    ("GET", "/new"): PAGE,
    ("POST", "/studies"): FORM,
    ("GET", "/studies/{name}"): PAGE,
    ("GET", "/studies/{name}/data"): PAGE,
    ("GET", "/studies/{name}/images/{image}"): PAGE,
    ("GET", "/studies/{name}/participants/{participant}"): PAGE,
    ("POST", "/studies/{name}/participants/{participant}/erase"): FORM,
    ("POST", "/studies/{name}/links"): FORM,
    ("POST", "/studies/{name}/links/revoke"): FORM,
    ("POST", "/studies/{name}/simulate"): FORM,
    ("POST", "/studies/{name}/{what}"): FORM,
    ("GET", "/settings"): PAGE,
    ("POST", "/settings/password"): FORM,
    ("POST", "/settings/tokens"): FORM,
    ("POST", "/settings/tokens/revoke"): FORM,
    ("POST", "/settings/researchers"): FORM,
    ("POST", "/settings/researchers/remove"): FORM,
    ("GET", "/api/"): PAGE,
    ("GET", "/api/openapi.json"): READ,
    ("GET", "/api/me"): READ,
    ("GET", "/api/tokens"): READ,
    ("POST", "/api/tokens"): WRITE,
    ("DELETE", "/api/tokens/{number}"): WRITE,
    ("GET", "/api/researchers"): READ,
    ("DELETE", "/api/researchers"): WRITE,
    ("GET", "/api/studies"): READ,
    ("POST", "/api/studies"): WRITE,
    ("GET", "/api/studies/{name}"): READ,
    ("GET", "/api/studies/{name}/sessions"): READ,
    ("GET", "/api/studies/{name}/preview"): READ,
    ("GET", "/api/studies/{name}/export.zip"): READ,
    ("POST", "/api/studies/{name}/links"): WRITE,
    ("DELETE", "/api/studies/{name}/links"): WRITE,
    ("POST", "/api/studies/{name}/pause"): WRITE,
    ("POST", "/api/studies/{name}/close"): WRITE,
    ("POST", "/api/studies/{name}/reopen"): WRITE,
    ("GET", "/api/studies/{name}/progress"): READ,
    ("GET", "/api/studies/{name}/participants/{participant}"): READ,
    ("DELETE", "/api/studies/{name}/participants/{participant}"): WRITE,
    ("GET", "/api/studies/{name}/images/{image}/maps.json"): READ,
    ("GET", "/api/studies/{name}/images/{image}/maps.npz"): READ,
    ("GET", "/api/studies/{name}/images/{image}/segmentation.png"): READ,
    ("GET", "/api/studies/{name}/images/{image}/entropy.png"): READ,
    ("GET", "/api/studies/{name}/images/{image}/probability-{k}.png"): READ,
    ("GET", "/api/studies/{name}/images/{image}/figure.{kind}"): READ,
    ("GET", "/api/studies/{name}/images/{image}/contours.json"): READ,
    ("GET", "/api/studies/{name}/images/{image}/posterior.json"): READ,
    ("GET", "/api/studies/{name}/images/{image}/posterior.npz"): READ,
    ("GET", "/api/studies/{name}/images/{image}/posterior/entropy.png"): READ,
    ("GET", "/api/studies/{name}/images/{image}/posterior/figure.{kind}"): READ,
    ("GET", "/api/studies/{name}/images/{image}/posterior/probability-{k}.png"): READ,
    ("GET", "/api/studies/{name}/images/{image}/posterior/segmentation.png"): READ,
    ("GET", "/api/studies/{name}/images/{image}/posterior/width-{k}.png"): READ,
    ("GET", "/api/studies/{name}/images/{image}/posterior/width.png"): READ,
    ("GET", "/api/studies/{name}/simulate"): READ,
    ("POST", "/api/studies/{name}/simulate"): WRITE,
    ("GET", "/report"): PAGE,
    ("GET", "/health"): OPEN,
    ("GET", "/static/{file}"): OPEN,
    ("GET", "/pages/{file}"): OPEN,
    ("GET", "/favicon.ico"): OPEN,
}
HEAD_OF_A_FORM = {("HEAD", "/setup"), ("HEAD", "/login")}
"""Answered like a form without a token: 403."""

RECORD = {"seq": 900, "kind": "comment", "at_ms": 1_760_000_000_000, "data": {"text": "forged"}}
BODIES: dict[str, Any] = {
    "/s/{study}/records": {"records": [RECORD]},
    "/s/{study}/sessions": {"consented": True},
    "/s/{study}/complete": {"count": 0},
    "/s/{study}/leave": {"data": "withdraw"},
    "/api/tokens": {"label": "mine"},
    "/api/studies": {"text": 'name = "forged"'},
    "/api/studies/{name}/simulate": {"count": 0},
}
FORMS: dict[str, dict[str, str]] = {
    "/studies": {"text": 'name = "forged"'},
    "/studies/{name}/participants/{participant}/erase": {"confirmed": "yes"},
    "/studies/{name}/links": {"count": "1"},
    "/studies/{name}/simulate": {"count": "0"},
    "/settings/password": {"old": "wrong", "password": "another horse battery"},
    "/settings/tokens": {"label": "mine"},
    "/settings/researchers/remove": {"name": "Eve", "confirmed": "yes"},
    "/login": {"name": "Ann", "password": "a wrong password"},
    "/setup": {"token": "wrong", "name": "Ann", "password": "another horse battery"},
}
OPEN_ANSWERS = {"/s/{study}": 307, "/favicon.ico": 301}
SESSION_ANSWERS = {  # for participants with a session in this study
    "another participant": {"records": 200, "session": 200, "complete": 409, "leave": 200},
    "finished participant": {"records": 409, "session": 200, "complete": 200, "leave": 200},
    "withdrawn participant": {"records": 409, "session": 409, "complete": 409, "leave": 200},
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with run_server_with_roles(f"sqlite:///{tmp_path_factory.mktemp('matrix')}/vseg.db") as world:
        yield world


def every_route(world: AttackScenario) -> list[tuple[str, str]]:
    """Return all routes; those that only read first, those that end a session or study last."""
    late = ("/leave", "/close", "/erase", "/{what}", "/logout")
    routes = sorted(
        world.routes(), key=lambda each: (each[0] not in ("GET", "HEAD"), each[1].endswith(late), each)
    )
    unknown = [each for each in routes if each[0] != "HEAD" and each not in KINDS]
    assert unknown == [], "say in KINDS who may use these"
    assert sorted(set(KINDS) - set(routes)) == [], "these are no more"
    return routes


def kind_of(method: str, path: str) -> str:
    return DOOR if (method, path) in HEAD_OF_A_FORM else KINDS["GET" if method == "HEAD" else method, path]


def filled(world: AttackScenario, path: str, **others: str) -> str:
    """Fill in a path with the names of the victim's or Ann's data."""
    values = {
        "study": "tiny", "name": "tiny", "image": "patches", "sha256": world.image, "k": "0", "kind": "svg",
        "participant": world.victim.state["participant"], "number": world.anns_number, "what": "close",
        "file": "experiment.js" if path.startswith("/static") else "researcher.css",
    }  # fmt: skip
    return path.format(**values | others)


def asked(world: AttackScenario, role: Role, method: str, path: str, **others: str) -> Any:
    """Send the best request that this role can make; return the reply."""
    options: dict[str, Any] = {}
    if path in BODIES and method == "POST":
        options["json"] = BODIES[path]
    elif kind_of(method, path) in (FORM, DOOR) and method == "POST":
        number = {"token": str(world.anns_number)} if path.endswith("revoke") else {}
        options["data"] = FORMS.get(path, {}) | number | {"form_token": role.form_token}
    if kind_of(method, path) == WRITE and role.form_token:
        options["headers"] = {"X-CSRF-Token": role.form_token}
    return world.ask(role, method, filled(world, path, **others), **options)


def expected(kind: str, role: str, path: str) -> set[int]:
    """Return the expected status codes for a role without permission; for OPEN and SESSION, for any role."""
    match kind:
        case "open to all":
            return {OPEN_ANSWERS.get(path, 200)}
        case "entry":
            return {201}
        case "session":
            return {SESSION_ANSWERS.get(role, {}).get(path.rpartition("/")[2], 401)}
        case "door":
            return {303, 401, 403} if path == "/logout" else {401, 403, 429}
        case "page":
            return {303}
        case "form":
            return {403 if role == FOREIGN else 303}
        case "api read":
            return {401}
    return {403 if role == FOREIGN else 401}


def is_refused(answer: Any) -> bool:
    """Return whether a reply is a refusal; a redirect to the login is one."""
    return answer.status_code >= 400 or answer.headers.get("location", "").startswith("/login")


def test_roles_without_permission_read_and_change_nothing(world):
    """Refusals are counted for SECURITY.md and for the table of `make chaos`."""
    with count_requests(MATRIX, "strangers") as counts:
        everyone_asks(world, counts)
        promised = re.search(r"more than ([\d,]+) refused requests", SECURITY.read_text("utf-8"))
        assert promised, "SECURITY.md says how many requests these are"
        assert counts["refused"] > int(promised[1].replace(",", "")), counts


def everyone_asks(world: AttackScenario, counts: Counter[str]) -> None:
    """Let every role request everything it may not; count what it gets before the test fails."""
    before = world.stored()
    for method, path in every_route(world):
        kind = kind_of(method, path)
        for name in (*STRANGERS, FOREIGN):
            if name == FOREIGN and kind in (PAGE, READ):
                continue  # links from other sites are allowed, and the site does not see the reply
            answer = asked(world, world.roles[name], method, path)
            counts["refused"] += is_refused(answer)
            counts["read"] += any(secret in answer.text for secret in world.secrets)
            where = f"{method} {path} by {name}: {answer.status_code} {answer.text[:200]}"
            assert answer.status_code in expected(kind, name, path), where
            assert not counts["read"], where
            if answer.status_code == 303 and kind in (PAGE, FORM):
                assert answer.headers["location"].startswith("/login"), where
            if method in ("GET", "HEAD") and name != STRANGERS[-1]:
                continue  # routes that only read: check once after all roles
            now = world.stored()
            own = kind in (ENTRY, SESSION)  # these routes change the own session
            counts["written"] += now[1] != before[1] if own else now != before
            assert not counts["written"], where
            before = now


def test_requests_of_other_sites_change_nothing(world):
    """The cookie is sent; a token of another browser, or the right token from another origin, is not enough."""
    ann, bob = world.roles["researcher"], world.roles["another researcher"]
    token, wrong = ann.form_token, (bob.form_token, "0" * 64, "", "é")
    elsewhere = (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    )
    attempts: list[tuple[str, dict[str, str]]] = [
        *((each, {}) for each in wrong),
        *((token, each) for each in elsewhere),
    ]
    before, tried = world.stored(), 0
    for method, path in every_route(world):
        kind = kind_of(method, path)
        if method not in ("POST", "DELETE") or kind not in (FORM, DOOR, WRITE):
            continue
        for brought, headers in attempts:
            role = Role("elsewhere", {**ann.headers, **headers}, brought)
            if kind == WRITE and not brought.isascii():
                continue
            answer = asked(world, role, method, path)
            assert answer.status_code == 403, (
                f"{method} {path} with {brought!r} and {headers}: {answer.text[:200]}"
            )
            tried += 1
    assert world.stored() == before
    assert tried > 150


BY_LOGIN_ONLY = (("POST", "/api/tokens"), ("DELETE", "/api/researchers"))


def test_roles_with_permission_are_served(world):
    """Otherwise the tests above would also pass with a server that refuses everything."""
    ann, script = world.roles["researcher"], world.roles["researcher's script"]
    spare = world.server.begin().state["participant"]
    ends = {"/api/tokens/{number}", "/settings/tokens/revoke", "/settings/password", "/logout"}
    for method, path in every_route(world):
        kind = kind_of(method, path)
        if kind not in (PAGE, FORM, READ, WRITE) or path in ends:
            continue
        for role in (ann,) if kind in (PAGE, FORM) else (ann, script):
            answer = asked(world, role, method, path, participant=spare)
            if role is script and (method, path) in BY_LOGIN_ONLY:
                assert answer.status_code == 403, f"{method} {path} by a token"
                continue
            assert answer.status_code in (200, 201, 202, 303, 404, 422), (
                f"{method} {path} by {role.name}: {answer.text}"
            )
            location = answer.headers.get("location", "")
            assert not location.startswith("/login"), f"{method} {path} by {role.name}"


def test_researchers_tokens_are_their_own(world):
    """All researchers see all studies, but nobody sees or revokes the tokens of others."""
    bob, ann = world.roles["another researcher"], world.roles["researcher's script"]
    headers = {"X-CSRF-Token": bob.form_token}
    theirs = world.ask(bob, "DELETE", f"api/tokens/{world.anns_number}", headers=headers)
    nobodys = world.ask(bob, "DELETE", "api/tokens/999999", headers=headers)
    assert theirs.status_code == nobodys.status_code == 404
    assert theirs.text.replace(str(world.anns_number), "N") == nobodys.text.replace("999999", "N")
    form = {"token": str(world.anns_number), "form_token": bob.form_token}
    assert world.ask(bob, "POST", "settings/tokens/revoke", data=form).status_code == 404
    assert all(row["id"] != world.anns_number for row in world.ask(bob, "GET", "api/tokens").json())
    assert world.ask(ann, "GET", "api/me").json()["name"] == "Ann"


def test_unsupported_methods_are_refused(world):
    """Every role gets a 405 or a refusal, and nothing changes."""
    before, paths = world.stored(), sorted({path for _, path in world.routes()})
    for path in paths:
        for method in ("PUT", "PATCH", "DELETE", "TRACE", "QUERY"):
            if (method, path) in KINDS:
                continue
            answer = world.ask(world.roles["researcher's script"], method, filled(world, path))
            assert answer.status_code in (404, 405), f"{method} {path}"
    assert world.stored() == before
