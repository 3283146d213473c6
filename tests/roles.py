"""Clients with and without access rights: `with run_server_with_roles(url) as world: world.roles`.

A participant, the victim, has answered some trials; only researchers may read or change the victim's data.
"""

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import httpx
from sqlalchemy import select
from starlette.routing import BaseRoute

from researchers import CHEAP_HASHER, PASSWORD, form_token
from servers import STUDY, ParticipantClient, RunningServer, event, response, run_server
from vseg import store
from vseg.server import auth
from vseg.server.app import create_app
from vseg.store.schema import metadata

TINY = STUDY.replace("participants = 3", "participants = 1000") + "[contours]\ndraw = true\n"
OTHER = TINY.replace("tiny", "other").replace("colours = 2", "colours = 3")
PID = "5f1e0c0ffee0victimspid99"
SECRET_EVENT = "what only the victim has said"

# Any use of a token is noted, whether or not it is allowed; the other columns are large and written once.
IGNORED_COLUMNS = ("last_used_at_ms", "png", "truth", "trials", "text")
COLUMNS = {
    name: [column for column in table.c if column.name not in IGNORED_COLUMNS]
    for name, table in sorted(metadata.tables.items())
}


@dataclass(frozen=True)
class Role:
    """A client: the headers of all its requests, and the token of its forms."""

    name: str
    headers: dict[str, str] = field(default_factory=dict)
    form_token: str = ""


@dataclass
class AttackScenario:
    """A server, the victim's session, and the other roles."""

    server: RunningServer
    victim: ParticipantClient
    roles: dict[str, Role]
    anns_token: str
    anns_number: int

    @cached_property
    def image(self) -> str:
        """The digest of the victim's image."""
        return str(self.victim.state["images"]["patches"]["url"]).split("/")[1].removesuffix(".png")

    def stored(self) -> tuple[str, str]:
        """Return digests of the whole database and of the victim's rows."""
        everything, victims = hashlib.sha256(), hashlib.sha256()
        with self.server.db.reading() as connection:
            for name, columns in COLUMNS.items():
                rows = connection.execute(select(*columns).order_by(*columns)).all()
                everything.update(repr((name, rows)).encode())
                victims.update(repr((name, [row for row in rows if self._is_victims(name, row)])).encode())
        return everything.hexdigest(), victims.hexdigest()

    def _is_victims(self, table: str, row: Any) -> bool:
        held = row._mapping
        session, participant = self._numbers
        if table in ("participants", "sessions"):
            return bool(held["id"] == (participant if table == "participants" else session))
        return held.get("session") == session or held.get("participant") == participant

    @cached_property
    def _numbers(self) -> tuple[int, int]:
        row = store.sessions.get_by_token(self.server.db, self.victim.state["token"])
        sessions = metadata.tables["sessions"]
        with self.server.db.reading() as connection:
            whose = connection.scalar(select(sessions.c.participant).where(sessions.c.id == row.id))
        return row.id, int(whose or 0)

    @property
    def secrets(self) -> list[str]:
        """Strings that only the victim and researchers may read."""
        state = self.victim.state
        return [state["token"], state["session"], state["participant"], PID, SECRET_EVENT]

    def ask(self, role: Role, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request with the headers of a role and no other cookies."""
        client = self.server.client
        client.cookies.clear()
        headers = {**role.headers, **options.pop("headers", {})}
        return client.request(method, path.lstrip("/"), headers=headers, **options)

    def routes(self) -> dict[tuple[str, str], str]:
        """Return the handler's name for every (method, path) of the app."""
        return list_routes(self.server.db)


def list_routes(db: store.Database) -> dict[tuple[str, str], str]:
    """Return the handler's name for every (method, path) of an app."""
    served_app: Any = create_app(db)
    inner = served_app.app.app
    return dict(_walk([*inner.routes, *inner.router.default.load().routes]))


def _walk(routes: list[BaseRoute], before: str = "") -> Iterator[tuple[tuple[str, str], str]]:
    for route in routes:
        inside: Any = getattr(route, "original_router", None)
        if inside is not None:
            yield from _walk(inside.routes, before)
        elif getattr(route, "methods", None):
            known: Any = route
            for method in known.methods:
                yield (method, before + known.path), known.name
        else:
            mount: Any = route
            if getattr(mount, "routes", None):
                yield from _walk(mount.routes, before + mount.path)
            else:
                for method in ("GET", "HEAD"):
                    yield (method, f"{before}{mount.path}/{{file}}"), "files"


@contextmanager
def run_server_with_roles(url: str) -> Iterator[AttackScenario]:
    """Run a server with two studies, a victim who has answered, and all other roles."""
    with run_server(url, TINY, OTHER) as server:
        victim = server.begin(prolific_pid=PID)
        drawn = event(1, "contours", image="patches", width_px=10, height_px=10, contours=[[[1, 1], [2, 2]]])
        sent = victim.send(event(0, "comment", text=SECRET_EVENT), drawn, response(2, 0), response(3, 1))
        assert sent.status_code == 200, sent.text
        for name in ("Ann", "Bob", "Eve"):
            store.researchers.set_password(server.db, name, CHEAP_HASHER.hash(PASSWORD))
        token = store.tokens.create(server.db, "Ann", "kept")
        number = store.tokens.list_tokens(server.db, "Ann")[0].id
        yield AttackScenario(server, victim, _roles(server, token), token, number)


def _roles(server: RunningServer, anns_token: str) -> dict[str, Role]:
    finished, withdrawn, replaced = (
        server.begin(),
        server.begin(),
        server.begin(prolific_pid="replaced", entry="an-entry-of-their-first-page"),
    )
    assert finished.post("complete", {"count": finished.answer_all()}).status_code == 200
    assert withdrawn.post("leave", {"data": "withdraw"}).status_code == 200
    server.begin(
        prolific_pid="replaced", entry="an-entry-of-their-second-page"
    )  # and the first one's is no good
    revoked = store.tokens.create(server.db, "Bob", "revoked")
    store.tokens.revoke(server.db, "Bob", store.tokens.list_tokens(server.db, "Bob")[0].id)
    nobody, ended, bob, ann = (
        _browser(server),
        _browser(server, "Eve"),
        _browser(server, "Bob"),
        _browser(server, "Ann"),
    )
    store.researchers.log_out(server.db, "Eve")
    return {
        role.name: role
        for role in (
            Role("nobody"),
            Role("browser without a login", *nobody),
            Role("random token", _bearer(secrets.token_urlsafe(24))),
            Role("another participant", server.begin().headers),
            Role("finished participant", finished.headers),
            Role("withdrawn participant", withdrawn.headers),
            Role("replaced token", replaced.headers),
            Role("another study's participant", server.begin("other").headers),
            Role("researcher whose login ended", *ended),
            Role("researcher whose token was revoked", _bearer(revoked)),
            Role("researcher, form of another site", ann[0]),
            Role("another researcher", *bob),
            Role("researcher", *ann),
            Role("researcher's script", _bearer(anns_token)),
        )
    }  # fmt: skip


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _browser(server: RunningServer, name: str | None = None) -> tuple[dict[str, str], str]:
    """Return the cookie and the form token of a browser, logged in as `name` or not at all."""
    client = server.client
    client.cookies.clear()
    link = f"signin?token={auth.create_sign_in_token(server.db, name)}" if name else "login"
    assert client.get(link).status_code in (200, 303)
    return {"Cookie": f"{auth.COOKIE}={client.cookies[auth.COOKIE]}"}, form_token(client.get("login").text)
