"""Studies: create, list, preview, pause, close and reopen them; personal links; the export."""

import secrets
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask
from starlette.responses import Response

from vseg import store
from vseg._support.temporary_folders import temporary_folder
from vseg.errors import InvalidInput
from vseg.server import http, participant_routes
from vseg.server.api.dependencies import RequestedStudy, describe_json_body, get_state
from vseg.server.api.schemas import (
    NEW_STUDY,
    ImageCounts,
    Links,
    NewStudy,
    Problem,
    Revoked,
    Session,
    StudyDetail,
    StudySummary,
)
from vseg.server.compression import json_response
from vseg.server.headers import DOWNLOAD
from vseg.server.resume_policy import ResumePoint
from vseg.store.sessions import SessionRow
from vseg.store.sessions.assignment import preview_units
from vseg.store.studies import StudyRow
from vseg.study import pictures
from vseg.study.schema import LARGEST_FILE, parse_study

MAX_BODY_BYTES = LARGEST_FILE * 6 + 100  # JSON may write a character as \\u1234
MAX_DRAWN_IMAGES = (
    32  # of 512 x 512 pixels: others who create a study wait for them, about ten seconds at most
)

router = APIRouter(tags=["studies"])


@router.get("/studies", summary="List all studies")
def list_studies(request: Request) -> list[StudySummary]:
    """Return every study in this database, with the numbers of its sessions."""
    db = get_state(request).db
    return [summarise_study_row(db, row, request) for row in store.studies.list_studies(db)]


@router.post(
    "/studies", status_code=201, summary="Create a study", openapi_extra=describe_json_body(NewStudy),
    responses={409: {"model": Problem, "description": "There is already a study with this name."}},
)  # fmt: skip
async def create_study(request: Request) -> StudySummary:
    """Create a study from the text of its file; it is open at once.

    Its images must be samples or generated. For image files, start the server with `vseg serve FILE`.
    """
    text = (await http.read_json(request, NEW_STUDY, MAX_BODY_BYTES)).text

    def create(check_running: Callable[[], None]) -> StudySummary:
        db = get_state(request).db
        return summarise_study_row(db, register_study(db, text, check_running), request)

    return await http.run_one_at_a_time(create)


@router.get("/studies/{name}", summary="Get one study")
def get_study(request: Request, row: RequestedStudy) -> StudyDetail:
    """Return one study with its file, and the numbers of its sessions for each image."""
    db = get_state(request).db
    images = store.sessions.count_sessions(db, row).images
    return StudyDetail(
        **summarise_study_row(db, row, request).model_dump(),
        text=row.text,
        created_at_ms=row.created_at_ms,
        frozen_at_ms=row.frozen_at_ms,
        images={name: ImageCounts(**counts) for name, counts in images.items()},
    )


@router.get("/studies/{name}/sessions", summary="List the sessions of a study")
def list_sessions(request: Request, row: RequestedStudy) -> list[Session]:
    """Return names, status and times in the order in which the sessions began, without identities."""
    return [Session(**session) for session in store.sessions.list_sessions(get_state(request).db, row)]


@router.post("/studies/{name}/pause", summary="Pause a study")
def pause_study(request: Request, row: RequestedStudy) -> StudySummary:
    """Accept no new participants until the study is reopened; sessions in progress continue."""
    return _change_status(request, row, store.studies.pause)


@router.post("/studies/{name}/close", summary="Close a study")
def close_study(request: Request, row: RequestedStudy) -> StudySummary:
    """Accept no new participants; sessions in progress continue."""
    return _change_status(request, row, store.studies.close)


@router.post("/studies/{name}/reopen", summary="Reopen a study")
def reopen_study(request: Request, row: RequestedStudy) -> StudySummary:
    """Accept new participants again after the study was paused or closed."""
    return _change_status(request, row, store.studies.reopen)


@router.get(
    "/studies/{name}/preview", summary="Preview a session", response_class=Response,
    responses={200: {"content": {"application/json": {"example": {
        "session": "preview", "participant": "preview", "status": "active", "token": "", "next_item": 0, "trials": {
            "image": ["patches"], "i": [3], "j": [12], "…": [],
        },
    }}}}},
)  # fmt: skip
def preview_session(request: Request, row: RequestedStudy) -> Response:
    """Return the images and trials that a new participant would get; each call draws them anew and stores nothing."""
    units = preview_units(row.study, secrets.randbits(32))
    trials = participant_routes.make_trial_drawer(row)(units)
    session = SessionRow(
        id=0, name="preview", study=row.id, trials=trials, participant="preview", status="active", units=units,
        software={}, started_at_ms=0, finished_at_ms=None,
    )  # fmt: skip
    state = participant_routes.describe_session(row, session, ResumePoint([], [], 0))
    return json_response(request, {**state, "token": ""})


@router.post("/studies/{name}/links", summary="Create personal links")
def create_links(
    request: Request,
    row: RequestedStudy,
    count: Annotated[int, Query(ge=1, le=store.sessions.MAX_LINKS, description="Number of links.")] = 1,
) -> Links:
    """Create personal links, each for one participant; they cannot be shown again."""
    return Links(links=create_personal_links(request, get_state(request).db, row, count))


@router.delete("/studies/{name}/links", summary="Revoke unused personal links")
def revoke_links(request: Request, row: RequestedStudy) -> Revoked:
    """Revoke all personal links that nobody has used; participants who have begun with theirs can continue."""
    return Revoked(revoked=store.sessions.revoke_links(get_state(request).db, row))


@router.get(
    "/studies/{name}/export.zip", summary="Export all data of a study", response_class=FileResponse,
    responses={200: {"content": {"application/zip": {}}, "description": "The folder as a zip file."}},
)  # fmt: skip
def export_study(request: Request, row: RequestedStudy) -> FileResponse:
    """Return all data as a zipped Psych-DS folder, without identities; `vseg.load` and `vseg fit` read it."""
    from vseg import export

    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder("export"))
        folder.joinpath(row.name).mkdir()
        export.write_dataset(get_state(request).db, row, folder / row.name)
        file = shutil.make_archive(str(folder / "export"), "zip", root_dir=folder, base_dir=row.name)
        cleanup = BackgroundTask(stack.pop_all().close)
    return FileResponse(
        file, headers=DOWNLOAD, media_type="application/zip", filename=f"{row.name}.zip", background=cleanup
    )


def register_study(db: store.Database, text: str, check_running: Callable[[], None]) -> StudyRow:
    """Store a new study from the text of its file; raise `Conflict` if its name is taken.

    Call it with `http.run_one_at_a_time`: it computes for up to half a second for each image.
    """
    study = parse_study(text, "The study file")
    if len(study.images) > MAX_DRAWN_IMAGES:
        raise InvalidInput(
            f"A study created here has at most {MAX_DRAWN_IMAGES} images, which the server has to draw, got "
            f"{len(study.images)}; start the server with the study file instead: vseg serve FILE."
        )
    for image in study.images:
        if image.file is not None:
            raise InvalidInput(
                f"Image {image.name!r} is the file {image.file!r:.80}, which this server cannot read from here; use a "
                "sample, texture or colours, or start the server with: vseg serve FILE."
            )
    store.studies.check_name_is_free(db, study.name)
    drawn = pictures.render_pictures(study, Path(), before_each=check_running)
    return store.studies.register(db, text, study, drawn, must_be_new=True)


def summarise_study_row(db: store.Database, row: StudyRow, request: Request) -> StudySummary:
    """Return a study and the numbers of its sessions, for the API and the dashboard."""
    counts = store.sessions.count_sessions(db, row)
    link = participant_url(request, row.name)
    return StudySummary(
        name=row.name,
        title=row.study.title,
        status=row.status,
        frozen=row.frozen_at_ms is not None,
        participants=row.study.participants,
        completed=counts.completed,
        active=counts.alive,
        silent=counts.active - counts.alive,
        left=counts.left,
        ended=counts.ended,
        withdrawn=counts.withdrawn,
        link=link,
        prolific_link=f"{link}?{participant_routes.PROLIFIC_QUERY}" if row.study.prolific else None,
    )


def create_personal_links(request: Request, db: store.Database, row: StudyRow, count: int) -> list[str]:
    """Create `count` personal links to a study and return their addresses."""
    url = participant_url(request, row.name)
    return [f"{url}?link={token}" for token in store.sessions.create_links(db, row, count)]


def participant_url(request: Request, name: str) -> str:
    """Return the address at which participants begin a study, as the client reaches this server."""
    return f"{request.base_url}s/{name}/"


def _change_status(
    request: Request, row: StudyRow, change: Callable[[store.Database, str], None]
) -> StudySummary:
    db = get_state(request).db
    change(db, row.name)
    return summarise_study_row(db, store.studies.get_study(db, row.name), request)
