"""Studies: create, list, preview, pause, close, reopen; links; the export."""

import secrets
import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask
from starlette.responses import Response

from vseg import store
from vseg.errors import Conflict, InvalidInput, NotFound
from vseg.server import http, participants
from vseg.server.api.dependencies import RequestedStudy, describe_json_body
from vseg.server.api.schemas import (
    NEW_STUDY,
    Links,
    NewStudy,
    Problem,
    Revoked,
    Session,
    StudyDetail,
    StudySummary,
)
from vseg.server.compression import json_response
from vseg.server.resume_policy import ResumePoint
from vseg.store.sessions import SessionRow
from vseg.store.sessions.assignment import preview_units
from vseg.store.studies import StudyRow
from vseg.study import pictures
from vseg.study.schema import LARGEST_FILE, parse_study

BODY = LARGEST_FILE * 6 + 100  # JSON may write a character as \\u1234

router = APIRouter(tags=["studies"])


@router.get("/studies", summary="All studies")
def list_studies(request: Request) -> list[StudySummary]:
    """Every study in this database, and how far it is."""
    db = request.app.state.db
    return [StudySummary(**summarise_study(db, row, request)) for row in store.studies.list_studies(db)]


@router.post(
    "/studies", status_code=201, summary="Create a study", openapi_extra=describe_json_body(NewStudy),
    responses={409: {"model": Problem, "description": "There is a study of that name already."}},
)  # fmt: skip
async def create_study(request: Request) -> StudySummary:
    """A new study from the text of its file; it is open at once.

    Images are samples or generated: files can only be read where they are, by `vseg serve FILE`.
    """
    text = (await http.read_json(request, NEW_STUDY, BODY)).text

    def created() -> StudySummary:
        db = request.app.state.db
        return StudySummary(**summarise_study(db, register_study(db, text), request))

    return await http.run_in_thread(created)


@router.get("/studies/{name}", summary="One study")
def get_study(request: Request, row: RequestedStudy) -> StudyDetail:
    """One study with its file, and its sessions by image."""
    db = request.app.state.db
    counts: Any = store.sessions.count_sessions(db, row).images
    return StudyDetail(
        **summarise_study(db, row, request),
        text=row.text,
        created_at_ms=row.created_at_ms,
        frozen_at_ms=row.frozen_at_ms,
        images=counts,
    )


@router.get("/studies/{name}/sessions", summary="Sessions of a study")
def list_sessions(request: Request, row: RequestedStudy) -> list[Session]:
    """Names, status and times, in the order in which they began; nobody's identity."""
    return [Session(**each) for each in store.sessions.list_sessions(request.app.state.db, row)]


@router.post("/studies/{name}/pause", summary="Pause a study")
def pause_study(request: Request, row: RequestedStudy) -> StudySummary:
    """Take no new participants for the time being; sessions under way go on."""
    return _changed(request, row, store.studies.pause)


@router.post("/studies/{name}/close", summary="Close a study")
def close_study(request: Request, row: RequestedStudy) -> StudySummary:
    """Take no new participants any more; sessions under way go on."""
    return _changed(request, row, store.studies.close)


@router.post("/studies/{name}/reopen", summary="Reopen a study")
def reopen_study(request: Request, row: RequestedStudy) -> StudySummary:
    """Take participants again after a pause, or after it was closed."""
    return _changed(request, row, store.studies.reopen)


@router.get(
    "/studies/{name}/preview", summary="What a participant would get", response_class=Response,
    responses={200: {"content": {"application/json": {"example": {
        "session": "preview", "participant": "preview", "status": "active", "token": "", "next_item": 0, "trials": {
            "image": ["patches"], "i": [3], "j": [12], "…": [],
        },
    }}}}},
)  # fmt: skip
def preview_session(request: Request, row: RequestedStudy) -> Response:
    """The images and trials of a fresh draw, as a session's page is told them. Nothing is stored, and nobody counts."""
    units = preview_units(row.study, secrets.randbits(32))
    trials = participants.make_trial_drawer(row)(units)
    session = SessionRow(
        id=0, name="preview", study=row.id, trials=trials, participant="preview", status="active", units=units,
        software={}, started_at_ms=0, finished_at_ms=None,
    )  # fmt: skip
    state = participants.describe_session(row, session, ResumePoint([], [], 0))
    return json_response(request, {**state, "token": ""})


@router.post("/studies/{name}/links", summary="Make personal links")
def create_links(
    request: Request,
    row: RequestedStudy,
    count: Annotated[int, Query(ge=1, le=store.sessions.MAX_LINKS, description="How many.")] = 1,
) -> Links:
    """New personal links, each for one person; they are not shown again."""
    tokens = store.sessions.create_links(request.app.state.db, row, count)
    return Links(links=[f"{participant_url(request, row.name)}?link={token}" for token in tokens])


@router.delete("/studies/{name}/links", summary="Revoke personal links that nobody has used")
def revoke_links(request: Request, row: RequestedStudy) -> Revoked:
    """Who has begun with theirs goes on; nobody begins with one of the others any more."""
    return Revoked(revoked=store.sessions.revoke_links(request.app.state.db, row))


@router.get(
    "/studies/{name}/export.zip", summary="All data of a study", response_class=FileResponse,
    responses={200: {"content": {"application/zip": {}}, "description": "The folder, zipped."}},
)  # fmt: skip
def export_study(request: Request, row: RequestedStudy) -> FileResponse:
    """All data as a Psych-DS folder, zipped: what `vseg.load` and `vseg fit` take. Without identities."""
    from vseg import export

    folder = Path(tempfile.mkdtemp(prefix="vseg-export-"))
    try:
        folder.joinpath(row.name).mkdir()
        export.write_dataset(request.app.state.db, row, folder / row.name)
        file = shutil.make_archive(str(folder / "export"), "zip", root_dir=folder, base_dir=row.name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    cleanup = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
    return FileResponse(file, media_type="application/zip", filename=f"{row.name}.zip", background=cleanup)


def register_study(db: store.Database, text: str) -> StudyRow:
    """Store a new study from the text of its file; `Conflict` if there is one of that name."""
    if len(text) > LARGEST_FILE:
        raise InvalidInput(f"A study file has at most {LARGEST_FILE} characters, got {len(text)}.")
    given = parse_study(text, "The study file")
    for image in given.images:
        if image.file is not None:
            raise InvalidInput(
                f"Image {image.name!r} is the file {image.file!r:.80}, which this server cannot read from here; take a "
                "sample, texture or colours, or start the server with: vseg serve FILE."
            )
    try:
        store.studies.get_study(db, given.name)
    except NotFound:
        return store.studies.register(db, text, given, pictures.render_pictures(given, Path()))
    raise Conflict(f"There is a study {given.name!r} already; give this one another name.", "exists")


def summarise_study(db: store.Database, row: StudyRow, request: Request) -> dict[str, Any]:
    """A study and how far it is, for the API and for the page."""
    counts = store.sessions.count_sessions(db, row)
    link = participant_url(request, row.name)
    return {
        "name": row.name,
        "title": row.study.title,
        "status": row.status,
        "frozen": row.frozen_at_ms is not None,
        "participants": row.study.participants,
        "completed": counts.completed,
        "active": counts.alive,
        "silent": counts.active - counts.alive,
        "left": counts.left,
        "ended": counts.ended,
        "withdrawn": counts.withdrawn,
        "link": link,
        "prolific_link": f"{link}?{participants.PROLIFIC_QUERY}" if row.study.prolific else None,
    }


def participant_url(request: Request, name: str) -> str:
    """Where participants begin, as this browser reaches the server."""
    return f"{request.base_url}s/{name}/"


def _changed(request: Request, row: StudyRow, change: Any) -> StudySummary:
    db = request.app.state.db
    change(db, row.name)
    return StudySummary(**summarise_study(db, store.studies.get_study(db, row.name), request))
