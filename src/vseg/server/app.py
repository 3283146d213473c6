"""Every route of the server, on one screen: the participants' at once, the researchers' when those are served."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing, nullcontext
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from vseg import store
from vseg.errors import InvalidInput, NotFound
from vseg.server import error_pages, html, participants
from vseg.server.headers import Prefixed, Secured
from vseg.server.health import health
from vseg.server.lazy_app import Later
from vseg.server.pair_scheduler import Adapting
from vseg.server.retention import keeping_promises
from vseg.server.session_cache import KnownSessions
from vseg.server.session_loader import Recall, getting_to_know
from vseg.server.simulated_participants import Simulations

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
    one_of_several: bool = False,
) -> ASGIApp:
    """The server over a database, under a path prefix; `report` is the folder of a demonstration.

    With `one_of_several`, sessions begin with other workers, too, and this one gets to know them.
    """
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
        # whoever watches over the server
        Route("/health", health),
        # files
        Mount("/static", participants.FILES),
        Mount("/pages", StaticFiles(directory=PAGES)),
        Route("/favicon.ico", html.favicon),
    ]
    adapting, groups, at_end = Adapting(db), simulations or Simulations(), ExitStack()
    known, recall = KnownSessions(), Recall(db)
    researchers = Later(lambda: _researchers(db, groups, report, at_end))

    @asynccontextmanager
    async def lifespan(served: Starlette) -> AsyncIterator[None]:
        others = getting_to_know(db, recall, known) if one_of_several else nullcontext()
        async with groups.lifespan(served), keeping_promises(db), researchers.loading(), others:
            yield
        adapting.close()
        at_end.close()

    inner = Starlette(routes=routes, exception_handlers=error_pages.handlers(), lifespan=lifespan)
    inner.router.default = researchers
    inner.state.db, inner.state.adapting = db, adapting
    inner.state.known, inner.state.recall = known, recall
    inner.state.door = asyncio.Semaphore(participants.BEGIN_AT_ONCE)
    return Prefixed(Secured(inner), checked_prefix(prefix))


def _researchers(
    db: store.Database, groups: Simulations, report: Path | None, at_end: ExitStack
) -> Starlette:
    """The researchers' pages and API. Loading them takes as long as half of all the rest."""
    from vseg import monitor
    from vseg.server import api, auth, dashboard, demo

    keys, watch = auth.Keys(db), at_end.enter_context(closing(monitor.Watch(db)))
    routes = [
        # by cookie
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
        Route("/studies/{name}/links/revoke", dashboard.revoke_links, methods=["POST"]),
        Route("/studies/{name}/simulate", dashboard.simulate, methods=["POST"]),
        Route("/studies/{name}/{what}", dashboard.change_status, methods=["POST"]),
        Route("/settings", dashboard.settings),
        Route("/settings/password", dashboard.change_password, methods=["POST"]),
        Route("/settings/tokens", dashboard.new_token, methods=["POST"]),
        Route("/settings/tokens/revoke", dashboard.revoke_token, methods=["POST"]),
        Route("/settings/researchers", dashboard.new_researcher_link, methods=["POST"]),
        Route("/settings/researchers/remove", dashboard.remove_researcher, methods=["POST"]),
        Route("/report", demo.report),
        # by cookie or personal token
        Route("/api/", dashboard.api_page),
        Mount("/api", api.api(db, keys, watch, groups)),
    ]
    inner = Starlette(routes=routes, exception_handlers=error_pages.handlers(dashboard.menu))
    inner.state.db, inner.state.keys, inner.state.tries = db, keys, auth.Tries()
    inner.state.simulations, inner.state.report = groups, report
    inner.state.watch, inner.state.glances = watch, dashboard.Glances(db, watch)
    return inner


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
