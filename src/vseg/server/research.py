"""The researcher's API: studies, their sessions, links and data.

Everything here needs the login's cookie, and what changes something also the header X-CSRF-Token.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from pydantic import BaseModel
from starlette.background import BackgroundTask
from starlette.responses import Response

from vseg import __version__, store
from vseg.errors import InvalidInput, NotAllowed
from vseg.server import wire
from vseg.store.studies import StudyRow

PROLIFIC_QUERY = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
SAFE = ("GET", "HEAD", "OPTIONS")


class Me(BaseModel):
    """Who is logged in, and the header that requests which change something bring."""

    name: str
    csrf_token: str


class StudySummary(BaseModel):
    """A study and how far it is; counts are sessions."""

    name: str
    title: str
    status: Literal["open", "closed"]
    frozen: bool
    participants: int
    completed: int
    active: int
    left: int
    withdrawn: int
    link: str
    prolific_link: str | None


class StudyDetail(StudySummary):
    """A study with its file and its sessions by image."""

    text: str
    created_at_ms: int
    frozen_at_ms: int | None
    images: dict[str, dict[str, Any]]


class Problem(BaseModel):
    """Whatever went wrong: its kind and a sentence."""

    error: str
    message: str


class Links(BaseModel):
    """New personal links; they are not shown again."""

    links: list[str]


def researcher(request: Request) -> str:
    """The name of who is logged in; requests that change something come from our own pages."""
    keys = request.app.state.keys
    name = keys.visitor(request).name
    if name is None:
        raise NotAllowed("This needs a researcher's login; log in first.")
    if request.method not in SAFE:
        keys.check_from_here(request, request.headers.get("x-csrf-token", ""))
    return str(name)


Researcher = Annotated[str, Depends(researcher)]


def api(db: store.Database, keys: Any) -> FastAPI:
    """The API, to be mounted under /api."""
    api = FastAPI(
        title="vseg",
        summary="Studies, sessions and data of this server.",
        version=__version__,
        openapi_url=None,  # served below, behind the login
        docs_url=None,
        redoc_url=None,
        exception_handlers={**wire.HANDLERS, RequestValidationError: _invalid},
        dependencies=[Depends(researcher)],
        responses={status: {"model": Problem} for status in (401, 404, 422)},
    )
    api.state.db, api.state.keys = db, keys
    api.get("/openapi.json", include_in_schema=False)(schema)
    api.get("/me")(me)
    api.get("/studies")(studies)
    api.get("/studies/{name}")(study)
    api.get("/studies/{name}/sessions")(sessions)
    api.post("/studies/{name}/close")(close)
    api.post("/studies/{name}/reopen")(reopen)
    api.post("/studies/{name}/links")(links)
    api.get("/studies/{name}/export.zip", response_class=FileResponse)(export)
    return api


def schema(request: Request) -> Response:
    """This API, described."""
    described = {**request.app.openapi(), "servers": [{"url": request.scope["root_path"]}]}
    return JSONResponse(described)


def me(request: Request, name: Researcher) -> Me:
    """Who is logged in."""
    keys = request.app.state.keys
    return Me(name=name, csrf_token=keys.form_token(keys.visitor(request)))


def studies(request: Request) -> list[StudySummary]:
    """Every study in this database."""
    db = request.app.state.db
    return [StudySummary(**summary(db, row, request)) for row in store.studies.listed(db)]


def study(request: Request, name: str) -> StudyDetail:
    """One study, with its file."""
    db = request.app.state.db
    row = store.studies.named(db, name)
    return StudyDetail(
        **summary(db, row, request),
        text=row.text,
        created_at_ms=row.created_at_ms,
        frozen_at_ms=row.frozen_at_ms,
        images=store.sessions.counts(db, row).images,
    )


def sessions(request: Request, name: str) -> list[dict[str, Any]]:
    """The sessions of a study: names, status and times; nobody's identity."""
    db = request.app.state.db
    return store.sessions.listed(db, store.studies.named(db, name))


def close(request: Request, name: str) -> StudySummary:
    """Take no new participants; sessions under way go on."""
    db = request.app.state.db
    store.studies.close(db, name)
    return StudySummary(**summary(db, store.studies.named(db, name), request))


def reopen(request: Request, name: str) -> StudySummary:
    """Take participants again."""
    db = request.app.state.db
    store.studies.reopen(db, name)
    return StudySummary(**summary(db, store.studies.named(db, name), request))


def links(
    request: Request, name: str, count: Annotated[int, Query(ge=1, le=store.sessions.MOST_LINKS)] = 1
) -> Links:
    """New personal links, each for one person."""
    db = request.app.state.db
    row = store.studies.named(db, name)
    tokens = store.sessions.new_links(db, row, count)
    return Links(links=[f"{participant_link(request, name)}?link={token}" for token in tokens])


def export(request: Request, name: str) -> FileResponse:
    """All data of a study as a Psych-DS folder, zipped; without identities."""
    from vseg import export

    row = store.studies.named(request.app.state.db, name)
    folder = Path(tempfile.mkdtemp(prefix="vseg-export-"))
    try:
        folder.joinpath(name).mkdir()
        export.write(request.app.state.db, row, folder / name)
        file = shutil.make_archive(str(folder / "export"), "zip", root_dir=folder, base_dir=name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    cleanup = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
    return FileResponse(file, media_type="application/zip", filename=f"{name}.zip", background=cleanup)


def summary(db: store.Database, row: StudyRow, request: Request) -> dict[str, Any]:
    """A study and how far it is, for the API and for the page."""
    counts = store.sessions.counts(db, row)
    link = participant_link(request, row.name)
    return {
        "name": row.name,
        "title": row.study.title,
        "status": row.status,
        "frozen": row.frozen_at_ms is not None,
        "participants": row.study.participants,
        "completed": counts.completed,
        "active": counts.active,
        "left": counts.left,
        "withdrawn": counts.withdrawn,
        "link": link,
        "prolific_link": f"{link}?{PROLIFIC_QUERY}" if row.study.prolific else None,
    }


def participant_link(request: Request, name: str) -> str:
    """Where participants begin, as this browser reaches the server."""
    return f"{request.base_url}s/{name}/"


async def _invalid(request: Request, exception: RequestValidationError) -> Response:
    return await wire.of_vseg(request, InvalidInput(wire.sentence(exception.errors())))
