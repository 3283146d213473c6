"""Every route of the server, as one expression."""

from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from vseg import store
from vseg.errors import InvalidInput, NotFound
from vseg.server import auth, dashboard, participants, research, wire
from vseg.server.headers import Prefixed, Secured
from vseg.server.known import KnownSessions

PAGES = Path(__file__).with_name("pages")
STATIC = participants.STATIC


def app(db: store.Database, *, prefix: str = "") -> ASGIApp:
    """The server over a database, under a path prefix."""
    keys = auth.Keys(db)
    routes = [
        # participants, by token; the one that everybody calls all the time comes first
        Route("/s/{study}/records", participants.records, methods=["POST"]),
        Route("/s/{study}", participants.to_page),
        Route("/s/{study}/", participants.page),
        Route("/s/{study}/study.json", participants.study_json),
        Route("/s/{study}/images/{sha256}.png", participants.image),
        Route("/s/{study}/sessions", participants.sessions, methods=["POST"]),
        Route("/s/{study}/session", participants.session),
        Route("/s/{study}/complete", participants.complete, methods=["POST"]),
        Route("/s/{study}/leave", participants.leave, methods=["POST"]),
        # researchers, by cookie
        Route("/", dashboard.studies),
        Route("/setup", dashboard.setup, methods=["GET", "POST"]),
        Route("/login", dashboard.login, methods=["GET", "POST"]),
        Route("/logout", dashboard.logout, methods=["POST"]),
        Route("/studies/{name}/{what}", dashboard.change, methods=["POST"]),
        Route("/api/", dashboard.api_page),
        Mount("/api", research.api(db, keys)),
        # files
        Mount("/static", participants.FILES),
        Mount("/pages", StaticFiles(directory=PAGES)),
    ]
    inner = Starlette(routes=routes, exception_handlers=wire.HANDLERS)
    inner.state.db, inner.state.keys = db, keys
    inner.state.known, inner.state.tries = KnownSessions(), auth.Tries()
    return Prefixed(Secured(inner), checked_prefix(prefix))


def checked_prefix(prefix: str) -> str:
    """A path prefix such as /vseg, or "" for none.

    Our own first path segments are refused: whether a proxy had stripped the prefix could not be told any more.
    """
    prefix = prefix.rstrip("/")
    if prefix and (not prefix.startswith("/") or not all(c.isalnum() or c in "/-_.~" for c in prefix)):
        raise InvalidInput(f"--prefix is a path such as /vseg, got {prefix!r}.")
    ours = ("s", "setup", "login", "logout", "studies", "api", "static", "pages")
    if prefix.split("/")[1:2] and prefix.split("/")[1] in ours:
        raise InvalidInput(f"--prefix cannot begin with /{prefix.split('/')[1]}, which is a page of ours.")
    return prefix


def check_built() -> None:
    """`NotFound` if the participant's page was not built, as in a bare clone of the sources."""
    if not (STATIC / "index.html").is_file():
        raise NotFound(
            f"The participant's page is not built ({STATIC} is missing); install vseg with: pip install ."
        )
