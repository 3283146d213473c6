"""All routes of the server: the participants' are loaded at once, the researchers' after the server has started."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing, nullcontext
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from vseg import store
from vseg.errors import InvalidInput, NotFound
from vseg.server import error_pages, html, participant_routes
from vseg.server.headers import PathPrefix, PrivateCaching, SecurityHeaders
from vseg.server.health import health, watch_database
from vseg.server.lazy_app import LazyApp
from vseg.server.pair_scheduler import PairScheduler
from vseg.server.retention import enforce_retention
from vseg.server.session_cache import SessionCache
from vseg.server.session_loader import SessionLoader, follow_other_workers
from vseg.server.simulated_participants import Simulations
from vseg.server.source_limit import SourceLimit

PAGES = Path(__file__).with_name("pages")
STATIC = participant_routes.STATIC
RESERVED_PATHS = frozenset({
    "s", "setup", "login", "logout", "signin", "new", "studies", "settings", "api", "report", "health",
    "static", "pages",
})  # fmt: skip
"""The first segments of the paths below."""


def create_app(
    db: store.Database,
    *,
    prefix: str = "",
    simulations: Simulations | None = None,
    report: Path | None = None,
    several_workers: bool = False,
) -> ASGIApp:
    """Create the server's app.

    Parameters
    ----------
    db : Database
        The database of the studies.
    prefix : str
        The path prefix under which a reverse proxy serves the app.
    simulations : Simulations, optional
        The simulated participants that researchers can start.
    report : Path, optional
        The folder of the demonstration, where its report is written.
    several_workers : bool
        Whether other processes serve the same database; then sessions that begin with them are loaded ahead.
    """
    routes = [
        # participants, by token; the route that is called after every trial comes first
        Route("/s/{study}/records", participant_routes.store_records, methods=["POST"]),
        Route("/s/{study}", participant_routes.redirect_to_page),
        Route("/s/{study}/", participant_routes.show_page),
        Route("/s/{study}/study.json", participant_routes.get_study),
        Route("/s/{study}/images/{sha256}.png", participant_routes.get_image),
        Route("/s/{study}/sessions", participant_routes.begin_session, methods=["POST"]),
        Route("/s/{study}/session", participant_routes.get_session),
        Route("/s/{study}/complete", participant_routes.complete_session, methods=["POST"]),
        Route("/s/{study}/leave", participant_routes.leave_study, methods=["POST"]),
        # monitoring
        Route("/health", health),
        # files
        Mount("/static", participant_routes.STATIC_FILES),
        Mount("/pages", StaticFiles(directory=PAGES)),
        Route("/favicon.ico", html.favicon),
    ]
    groups, at_exit = simulations or Simulations(), ExitStack()
    context = participant_routes.ParticipantContext(
        db=db,
        session_cache=SessionCache(),
        session_loader=SessionLoader(db),
        pair_scheduler=PairScheduler(db),
        begin_limit=asyncio.Semaphore(participant_routes.MAX_CONCURRENT_BEGINS),
        source_limit=SourceLimit(),
    )
    researchers = LazyApp(lambda: _create_researchers_app(db, groups, report, at_exit))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        following = (
            follow_other_workers(db, context.session_loader, context.session_cache)
            if several_workers
            else nullcontext()
        )
        async with (
            groups.lifespan(app),
            watch_database(db),
            enforce_retention(db),
            researchers.load_in_background(),
            following,
        ):
            yield
        context.pair_scheduler.close()
        at_exit.close()

    app = Starlette(routes=routes, exception_handlers=error_pages.build_handlers(), lifespan=lifespan)
    app.router.default = researchers
    app.state.db, app.state.participants = db, context
    return PathPrefix(SecurityHeaders(app), check_prefix(prefix))


def _create_researchers_app(
    db: store.Database, groups: Simulations, report: Path | None, at_exit: ExitStack
) -> Starlette:
    """Create the researchers' pages and API; importing them takes half as long as everything else."""
    from vseg import monitor
    from vseg.server import api, auth, dashboard, demo

    logins, live_data = auth.BrowserLogins(db), at_exit.enter_context(closing(monitor.LiveData(db)))
    routes = [
        # by cookie
        Route("/", dashboard.studies_page),
        Route("/setup", dashboard.set_up_researcher, methods=["GET", "POST"]),
        Route("/login", dashboard.log_in_with_password, methods=["GET", "POST"]),
        Route("/logout", dashboard.log_out, methods=["POST"]),
        Route("/signin", dashboard.log_in_with_link),
        Route("/new", dashboard.new_study_page),
        Route("/studies", dashboard.create_study, methods=["POST"]),
        Route("/studies/{name}", dashboard.study_page),
        Route("/studies/{name}/data", dashboard.data_page),
        Route("/studies/{name}/images/{image}", dashboard.image_page),
        Route("/studies/{name}/participants/{participant}", dashboard.participant_page),
        Route(
            "/studies/{name}/participants/{participant}/erase", dashboard.erase_participant, methods=["POST"]
        ),
        Route("/studies/{name}/links", dashboard.create_links, methods=["POST"]),
        Route("/studies/{name}/links/revoke", dashboard.revoke_links, methods=["POST"]),
        Route("/studies/{name}/simulate", dashboard.start_simulation, methods=["POST"]),
        Route("/studies/{name}/{what}", dashboard.change_status, methods=["POST"]),
        Route("/settings", dashboard.settings_page),
        Route("/settings/password", dashboard.change_password, methods=["POST"]),
        Route("/settings/tokens", dashboard.create_token, methods=["POST"]),
        Route("/settings/tokens/revoke", dashboard.revoke_token, methods=["POST"]),
        Route("/settings/researchers", dashboard.create_researcher_link, methods=["POST"]),
        Route("/settings/researchers/remove", dashboard.remove_researcher, methods=["POST"]),
        Route("/report", demo.report),
        # by cookie or personal token
        Route("/api/", dashboard.api_page),
        Mount("/api", api.build_api(db, logins, live_data, groups)),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers=error_pages.build_handlers(dashboard.menu_values),
        middleware=[Middleware(PrivateCaching)],
    )
    app.state.db, app.state.logins, app.state.login_attempts = db, logins, auth.LoginAttempts()
    app.state.simulations, app.state.report = groups, report
    app.state.live_data, app.state.overviews = live_data, dashboard.OverviewCache(db, live_data)
    return app


def check_prefix(prefix: str) -> str:
    """Return a path prefix such as /vseg without a slash at its end; "" means none.

    The app's own first path segments are rejected: with them one could not tell whether a proxy has stripped the
    prefix.
    """
    prefix = prefix.rstrip("/")
    if prefix and (not prefix.startswith("/") or not all(c.isalnum() or c in "/-_.~" for c in prefix)):
        raise InvalidInput(f"The path prefix should be a path such as /vseg, got {prefix!r}.")
    first = prefix.strip("/").partition("/")[0]
    if first in RESERVED_PATHS:
        raise InvalidInput(
            f"The path prefix cannot begin with /{first}, which is a page of the server itself."
        )
    return prefix


def check_page_is_built() -> None:
    """Raise `NotFound` if the participant's page was not built, as in a bare clone of the sources."""
    if not (STATIC / "index.html").is_file():
        raise NotFound(
            f"The participant's page is not built ({STATIC} is missing); install vseg with: pip install ."
        )
