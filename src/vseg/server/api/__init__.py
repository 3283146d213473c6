"""The researcher's API: whatever a page can do, a script can do too.

Everything here needs the login's cookie or a personal token. Requests that change something bring the header
X-CSRF-Token with the cookie; with a token they need nothing else.

studies     create, list, preview, pause, close, reopen; links; the export
people      progress; one participant; erasing one
images      the maps of an image as arrays, as pictures and as figures; contours
posteriors  the same with intervals, worked out in the background
tokens      personal tokens
researchers who has a login, and taking one away
simulated   sending simulated participants
shapes      what requests and answers look like
asked       who asks, for which study, and whether they have the answer already
"""

from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.responses import JSONResponse, Response

from vseg import __version__, monitor, store
from vseg.errors import InvalidInput
from vseg.server import http
from vseg.server.api import (
    images,
    participants,
    posteriors,
    researchers,
    simulated_participants,
    studies,
    tokens,
)
from vseg.server.api.dependencies import authenticate
from vseg.server.api.schemas import Problem
from vseg.server.api.studies import participant_url, register_study, summarise_study
from vseg.server.simulated_participants import Simulations

__all__ = ["build_api", "register_study", "participant_url", "authenticate", "summarise_study"]

DESCRIPTION = """\
Everything that the researcher's pages show and do.

**From a script**: make a personal token on the page *Settings*, and send it as `Authorization: Bearer vseg_…`:

    curl -H "Authorization: Bearer $TOKEN" {root}/studies/my-study/progress

**From a page**: the login's cookie, and for everything that changes something the header `X-CSRF-Token` with what
`GET /me` says.

Errors are `{{"error": KIND, "message": SENTENCE}}`. Maps and pictures have an `ETag`: send it back as
`If-None-Match`, and the answer is 304 if nothing is new. Times are milliseconds since 1970, UTC.
"""
TAGS = [
    {"name": "studies", "description": "Create, look at, pause and close studies; links and the export."},
    {"name": "people", "description": "How far a study is, who took part, and erasing someone."},
    {"name": "images", "description": "Maps of an image as they stand: arrays, pictures, figures, contours."},
    {
        "name": "posterior",
        "description": "Maps with their intervals. They take seconds: 202 until they are there.",
    },
    {"name": "simulation", "description": "Simulated participants who take part like anyone else."},
    {"name": "tokens", "description": "Personal tokens for scripts, and who one is."},
    {"name": "researchers", "description": "Who has a login here, and taking one away."},
]
SECURITY: dict[str, Any] = {
    "token": {"type": "http", "scheme": "bearer", "description": "A personal token: vseg_…"},
    "login": {
        "type": "apiKey",
        "in": "cookie",
        "name": "vseg_researcher",
        "description": "The login's cookie.",
    },
}


def build_api(
    db: store.Database, logins: Any, watch: monitor.Watch, simulations: Simulations | None = None
) -> FastAPI:
    """The API, to be mounted under /api."""
    api = FastAPI(
        title="vseg",
        summary="Studies, sessions, data and maps of this server.",
        version=__version__,
        openapi_tags=TAGS,
        openapi_url=None,  # served below, behind the login
        docs_url=None,
        redoc_url=None,
        exception_handlers={**http.HANDLERS, RequestValidationError: _invalid},
        dependencies=[Depends(authenticate)],
        responses={status: {"model": Problem, "description": said} for status, said in PROBLEMS.items()},
    )
    api.state.db, api.state.logins, api.state.watch = db, logins, watch
    api.state.simulations = simulations or Simulations()
    api.state.simulations.share_through(db)
    api.get("/openapi.json", include_in_schema=False)(serve_schema)
    for noun in (tokens, researchers, studies, participants, images, posteriors, simulated_participants):
        api.include_router(noun.router)
    return api


PROBLEMS = {
    401: "No login, and no token that is good.",
    404: "There is no such study, image or participant.",
    422: "A value is not what was expected, or there are too few answers for a map.",
}


def serve_schema(request: Request) -> Response:
    """This API, described."""
    root = request.scope["root_path"]
    described = {**request.app.openapi(), "servers": [{"url": root}]}
    base = str(request.base_url).rstrip("/")
    described["info"] = {**described["info"], "description": DESCRIPTION.format(root=f"{base}/api")}
    described["components"] = {**described["components"], "securitySchemes": SECURITY}
    described["security"] = [{name: []} for name in SECURITY]
    return JSONResponse(described)


async def _invalid(request: Request, exception: RequestValidationError) -> Response:
    return await http.handle_vseg_error(
        request, InvalidInput(http.describe_validation_error(exception.errors()))
    )
