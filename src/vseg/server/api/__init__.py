"""The researchers' API: scripts can do what the dashboard can.

Every route needs the login's cookie or a personal token; creating tokens and removing researchers need the cookie. With
the cookie, requests that change something also need the header X-CSRF-Token.

studies                 create, list, preview, pause, close and reopen studies; links; the export
participants            the progress of a study; one participant; erasing a participant
images                  the penalised maps of an image as arrays, pictures and figures; contours
posteriors              the same with intervals, computed in the background
simulated_participants  send simulated participants to a study
tokens                  personal tokens
researchers             list and remove researchers
schemas                 the JSON bodies of requests and responses
dependencies            what the routes share
"""

from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.responses import JSONResponse, Response

from vseg import __version__, monitor, store
from vseg.errors import InvalidInput
from vseg.server import auth, http
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
from vseg.server.simulated_participants import Simulations

__all__ = ["build_api"]

DESCRIPTION = """\
Everything that the dashboard shows and does.

**From a script**: create a personal token on the page *Settings* and send it as `Authorization: Bearer vseg_…`:

    curl -H "Authorization: Bearer $TOKEN" {root}/studies/my-study/progress

A token cannot create tokens or remove researchers.

**From a browser**: the login's cookie is enough to read. Requests that change something also need the header
`X-CSRF-Token` with the value `csrf_token` of `GET /me`.

Errors have the form `{{"error": KIND, "message": SENTENCE}}`. Maps and pictures have an `ETag`: send it back as
`If-None-Match` to get 304 if nothing has changed. Times are milliseconds since 1970, UTC.
"""
TAGS = [
    {"name": "studies", "description": "Create, inspect, pause and close studies; links and the export."},
    {"name": "participants", "description": "The progress of a study, its participants, and erasing one."},
    {
        "name": "images",
        "description": "Maps of an image by the penalised estimator: arrays, pictures, figures; drawn contours.",
    },
    {
        "name": "posterior",
        "description": "Maps with intervals, as `vseg fit` computes them from the exported data. They take seconds to "
        "compute; until then the status is 202.",
    },
    {"name": "simulation", "description": "Simulated participants, who use the same pages as everyone else."},
    {"name": "tokens", "description": "Personal tokens for scripts; the name of the current researcher."},
    {"name": "researchers", "description": "List the researchers of this server, or remove one."},
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
PROBLEMS = {
    401: "Neither a login nor a valid token.",
    404: "There is no such study, image or participant.",
    422: "A value is not valid, or there are too few answers for a map.",
}


def build_api(
    db: store.Database,
    logins: auth.BrowserLogins,
    live_data: monitor.LiveData,
    simulations: Simulations | None = None,
) -> FastAPI:
    """Build the API, to be mounted under /api."""
    api = FastAPI(
        title="vseg",
        summary="Studies, sessions, data and maps of this server.",
        version=__version__,
        openapi_tags=TAGS,
        openapi_url=None,  # served below, behind the login
        docs_url=None,
        redoc_url=None,
        exception_handlers={**http.HANDLERS, RequestValidationError: _handle_invalid_request},
        dependencies=[Depends(authenticate)],
        responses={status: {"model": Problem, "description": text} for status, text in PROBLEMS.items()},
    )
    api.state.db, api.state.logins, api.state.live_data = db, logins, live_data
    api.state.simulations = simulations or Simulations()
    api.state.simulations.share_through(db)
    api.get("/openapi.json", include_in_schema=False)(get_schema)
    for module in (tokens, researchers, studies, participants, images, posteriors, simulated_participants):
        api.include_router(module.router)
    return api


def get_schema(request: Request) -> Response:
    """Return the OpenAPI schema, with the addresses by which the client reaches this server."""
    schema = {**request.app.openapi(), "servers": [{"url": request.scope["root_path"]}]}
    base = str(request.base_url).rstrip("/")
    schema["info"] = {**schema["info"], "description": DESCRIPTION.format(root=f"{base}/api")}
    schema["components"] = {**schema["components"], "securitySchemes": SECURITY}
    schema["security"] = [{name: []} for name in SECURITY]
    return JSONResponse(schema)


async def _handle_invalid_request(request: Request, exception: RequestValidationError) -> Response:
    return await http.handle_vseg_error(
        request, InvalidInput(http.describe_request_errors(exception.errors()))
    )
