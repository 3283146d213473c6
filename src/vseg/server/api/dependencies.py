"""What the routes of the API share: the login, the study of the path, its answers, and ETags."""

import hashlib
from typing import Annotated, Any, Protocol, cast

from fastapi import Depends, Path, Request
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from vseg import store
from vseg.errors import NotAllowed
from vseg.monitor import Answers, LiveData
from vseg.server import auth
from vseg.server.simulated_participants import Simulations
from vseg.store.studies import StudyRow

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
FIRST_READ_TIMEOUT_S = 5.0  # for the first read of a large study; later reads take milliseconds


class ApiState(Protocol):
    """What `build_api` stores in `app.state`."""

    db: store.Database
    logins: auth.BrowserLogins
    live_data: LiveData
    simulations: Simulations


def get_state(request: Request) -> ApiState:
    """Return the application's state with its types."""
    return cast(ApiState, request.app.state)


def authenticate(request: Request) -> str:
    """Return the name of the researcher, by a personal token or by the login's cookie.

    A request that changes something and has a cookie also needs the form token, so that other sites cannot send it.
    """
    state = get_state(request)
    if (by_token := auth.get_researcher_by_token(state.db, request)) is not None:
        return by_token
    name = state.logins.get_visitor(request).name
    if name is None:
        raise NotAllowed("This needs a researcher's login or a personal token; log in first.")
    if request.method not in SAFE_METHODS:
        state.logins.check_form_token(request, request.headers.get("x-csrf-token", ""))
    return name


def require_login(request: Request, name: Annotated[str, Depends(authenticate)]) -> str:
    """Return the name of the researcher, who must be logged in: a stolen token must not decide who has access."""
    if auth.get_researcher_by_token(get_state(request).db, request) is not None:
        raise HTTPException(
            403, "A token cannot create tokens or remove researchers; log in and use the page Settings."
        )
    return name


def find_study(
    request: Request, name: Annotated[str, Path(description="The study's name.", examples=["my-study"])]
) -> StudyRow:
    """Return the study that the path names."""
    return store.studies.get_study(get_state(request).db, name)


ResearcherName = Annotated[str, Depends(authenticate)]
LoggedInName = Annotated[str, Depends(require_login)]
RequestedStudy = Annotated[StudyRow, Depends(find_study)]


def load_answers(request: Request, study: StudyRow) -> Answers:
    """Return all answers of a study; raise 503 while a large study is read for the first time."""
    live_data = get_state(request).live_data
    answers = live_data.answers(study, FIRST_READ_TIMEOUT_S)
    if answers is None:
        progress = f"{live_data.loading_progress(study):.0%} so far"
        message = f"The answers of {study.name} are being read ({progress}); try again in a moment."
        raise HTTPException(503, message, {"Retry-After": "1"})
    return answers


def make_etag(*state: object) -> str:
    """Return an ETag for a response that depends on `state` only."""
    return f'"{hashlib.blake2b(repr(state).encode(), digest_size=12).hexdigest()}"'


def not_modified_response(request: Request, etag: str) -> Response | None:
    """Return a 304 response if the client already has the version with this ETag, else None."""
    client_etags = request.headers.get("if-none-match", "").split(",")
    has_it = etag in (client_etag.strip().removeprefix("W/") for client_etag in client_etags)
    return Response(status_code=304, headers={"ETag": etag}) if has_it else None


def describe_json_body(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a JSON body that a route reads itself.

    Such routes check the login before they read the body, and limit its size; FastAPI would do neither.
    """
    schema = model.model_json_schema()
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema, "example": schema.get("example")}},
        }
    }
