"""Every route of the server, as one expression."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from vseg import monitor, store
from vseg.errors import InvalidInput, NotFound
from vseg.server import auth, dashboard, participants, research, showing
from vseg.server.adapting import Adapting
from vseg.server.headers import Prefixed, Secured
from vseg.server.health import health
from vseg.server.known import KnownSessions
from vseg.server.retention import keeping_promises
from vseg.server.simulation import Simulations

PAGES = Path(__file__).with_name("pages")
STATIC = participants.STATIC
OURS = frozenset({
    "s", "setup", "login", "logout", "signin", "new", "studies", "settings", "api", "report", "health",
    "static", "pages",
})  # fmt: skip
"""The first steps of the paths below."""


def app(
    db: store.Database,
    *,
    prefix: str = "",
    simulations: Simulations | None = None,
    report: Path | None = None,
) -> ASGIApp:
    """The server over a database, under a path prefix; `report` is the folder of a demonstration."""
    keys, watch = auth.Keys(db), monitor.Watch(db)
    groups = simulations or Simulations()
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
        Route("/signin", dashboard.sign_in),
        Route("/new", dashboard.new),
        Route("/studies", dashboard.create, methods=["POST"]),
        Route("/studies/{name}", dashboard.study),
        Route("/studies/{name}/data", dashboard.data),
        Route("/studies/{name}/images/{image}", dashboard.image),
        Route("/studies/{name}/participants/{participant}", dashboard.participant),
        Route("/studies/{name}/participants/{participant}/erase", dashboard.erase, methods=["POST"]),
        Route("/studies/{name}/links", dashboard.links, methods=["POST"]),
        Route("/studies/{name}/simulate", dashboard.simulate, methods=["POST"]),
        Route("/studies/{name}/{what}", dashboard.change_status, methods=["POST"]),
        Route("/settings", dashboard.settings),
        Route("/settings/password", dashboard.change_password, methods=["POST"]),
        Route("/settings/tokens", dashboard.new_token, methods=["POST"]),
        Route("/settings/tokens/revoke", dashboard.revoke_token, methods=["POST"]),
        Route("/settings/researchers", dashboard.new_researcher_link, methods=["POST"]),
        Route("/settings/researchers/remove", dashboard.remove_researcher, methods=["POST"]),
        Route("/api/", dashboard.api_page),
        Mount("/api", research.api(db, keys, watch, groups)),
        Route("/report", showing.report),
        # whoever watches over the server
        Route("/health", health),
        # files
        Mount("/static", participants.FILES),
        Mount("/pages", StaticFiles(directory=PAGES)),
        Route("/favicon.ico", dashboard.favicon),
    ]
    adapting = Adapting(db)

    @asynccontextmanager
    async def lifespan(served: Starlette) -> AsyncIterator[None]:
        async with groups.lifespan(served), keeping_promises(db):
            yield
        adapting.close()
        watch.close()

    inner = Starlette(routes=routes, exception_handlers=dashboard.HANDLERS, lifespan=lifespan)
    inner.state.db, inner.state.keys = db, keys
    inner.state.adapting = adapting
    inner.state.known, inner.state.tries = KnownSessions(), auth.Tries()
    inner.state.simulations, inner.state.report = groups, report
    inner.state.watch = watch
    inner.state.glances = dashboard.Glances(db, watch)
    return Prefixed(Secured(inner), checked_prefix(prefix))


def checked_prefix(prefix: str) -> str:
    """A path prefix such as /vseg, or "" for none.

    Our own first path segments are refused: whether a proxy had stripped the prefix could not be told any more.
    """
    prefix = prefix.rstrip("/")
    if prefix and (not prefix.startswith("/") or not all(c.isalnum() or c in "/-_.~" for c in prefix)):
        raise InvalidInput(f"--prefix is a path such as /vseg, got {prefix!r}.")
    first = prefix.strip("/").partition("/")[0]
    if first in OURS:
        raise InvalidInput(f"--prefix cannot begin with /{first}, which is a page of ours.")
    return prefix


def check_built() -> None:
    """`NotFound` if the participant's page was not built, as in a bare clone of the sources."""
    if not (STATIC / "index.html").is_file():
        raise NotFound(
            f"The participant's page is not built ({STATIC} is missing); install vseg with: pip install ."
        )
