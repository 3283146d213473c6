"""Who asks, for which study, and whether they have the answer already."""

import hashlib
from typing import Annotated, Any

from fastapi import Depends, Path, Request
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from vseg import store
from vseg.errors import NotAllowed
from vseg.monitor import Answers
from vseg.server import auth
from vseg.store.studies import StudyRow

SAFE = ("GET", "HEAD", "OPTIONS")
WAIT_S = 5.0  # for the first read of a large study; later ones take milliseconds


def authenticate(request: Request) -> str:
    """Who asks: by a personal token, or by the login's cookie, when what changes something comes from our pages."""
    db, logins = request.app.state.db, request.app.state.logins
    if (by_token := auth.get_researcher_by_token(db, request)) is not None:
        return by_token
    name = logins.get_visitor(request).name
    if name is None:
        raise NotAllowed("This needs a researcher's login or a personal token; log in first.")
    if request.method not in SAFE:
        logins.check_form_token(request, request.headers.get("x-csrf-token", ""))
    return str(name)


def find_study(
    request: Request, name: Annotated[str, Path(description="The study's name.", examples=["my-study"])]
) -> StudyRow:
    """The study that the address names."""
    return store.studies.get_study(request.app.state.db, name)


ResearcherName = Annotated[str, Depends(authenticate)]
RequestedStudy = Annotated[StudyRow, Depends(find_study)]


def load_answers(request: Request, row: StudyRow) -> Answers:
    """All answers of a study; 503 while a large one is read for the first time."""
    watch = request.app.state.watch
    answers: Answers | None = watch.answers(row, WAIT_S)
    if answers is None:
        raise HTTPException(
            503,
            f"The answers of {row.name} are being read ({watch.progress(row):.0%} so far); try again in a moment.",
            {"Retry-After": "1"},
        )
    return answers


def make_etag(*state: object) -> str:
    """An ETag of everything that an answer follows from."""
    return f'"{hashlib.blake2b(repr(state).encode(), digest_size=12).hexdigest()}"'


def not_modified_response(request: Request, tag: str) -> Response | None:
    """304 if whoever asks has the answer in this very state."""
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return Response(status_code=304, headers={"ETag": tag}) if tag in known else None


def describe_json_body(shape: type[BaseModel]) -> dict[str, Any]:
    """The description of a JSON body that a route reads by itself, under a cap, once the researcher is known."""
    schema = shape.model_json_schema()
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema, "example": schema.get("example")}},
        }
    }
