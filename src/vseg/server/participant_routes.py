"""The participants' routes: the page, a session, its records, completion or leaving.

`store_records` is the route that stores responses and is called after every trial: it validates once and waits for one
commit. All other routes are called a few times per session. The trials of a session are the server's; a page names an
item, never a pair.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from typing_extensions import TypedDict

from vseg import store
from vseg.errors import Conflict, InvalidInput, NotAllowed, NotFound, SchemaMismatch, VsegError
from vseg.server.compression import PrecompressedFiles, json_response
from vseg.server.html import render_template
from vseg.server.http import error_response, read_json, run_in_thread
from vseg.server.pair_scheduler import PairScheduler
from vseg.server.record_validation import MAX_BODY_BYTES, POSTED_RECORDS, STRICT
from vseg.server.resume_policy import Answers, ResumePoint, find_resume_point
from vseg.server.session_cache import CachedSession, SessionCache
from vseg.server.session_choices import ChoicesMessage, SessionChoices
from vseg.server.session_loader import SessionLoader
from vseg.server.source_limit import SourceLimit, SourceRefused, get_source
from vseg.store.database import now_ms
from vseg.store.sessions import Identity, SessionRow
from vseg.store.sessions.entry import DrawTrials
from vseg.store.studies import StudyRow
from vseg.store.tokens import hash_token
from vseg.study import trials

STATIC = Path(str(files("vseg.server"))) / "static"
STATIC_FILES = PrecompressedFiles(directory=STATIC, check_dir=False)
PROLIFIC_QUERY = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
PROLIFIC_RETURN_URL = "https://app.prolific.com/submissions/complete?cc="
IMMUTABLE = {"Cache-Control": "public, max-age=31536000, immutable"}
MAX_CONCURRENT_BEGINS = 4  # more would slow each other down, and delay the storing of responses
PUBLIC_STUDY_FIELDS = {
    "name", "title", "language", "segments", "timing", "keys", "display", "calibration", "contours", "practice",
    "breaks", "personal_links_only", "lab",
}  # fmt: skip


@dataclass(frozen=True)
class ParticipantContext:
    """What the participants' routes share: `request.app.state.participants`."""

    db: store.Database
    session_cache: SessionCache
    session_loader: SessionLoader
    pair_scheduler: PairScheduler
    begin_limit: asyncio.Semaphore
    source_limit: SourceLimit


def _drop_placeholder(value: object) -> object:
    """Return None for Prolific's own placeholder, which remains when a researcher opens the link template."""
    return None if isinstance(value, str) and re.fullmatch(r"\{\{%\w{1,64}%\}\}", value) else value


ProlificId = Annotated[
    Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None, BeforeValidator(_drop_placeholder)
]
Token = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,128}$")]
EntryKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{22,64}$")]


def _check_consent(consented: bool) -> bool:
    if not consented:
        raise ValueError("should be true: participants must consent first")
    return consented


class EntryBody(TypedDict):
    """The body of POST sessions: consent, and who the participant is if Prolific or a personal link says so.

    `entry` is a secret that the page makes and stores: the session continues if it is sent again.
    """

    __pydantic_config__ = STRICT  # type: ignore[misc]

    consented: Annotated[bool, AfterValidator(_check_consent)]
    prolific_pid: NotRequired[ProlificId]
    prolific_study: NotRequired[ProlificId]
    prolific_session: NotRequired[ProlificId]
    link: NotRequired[Token]
    entry: NotRequired[EntryKey]


class CompletionBody(TypedDict):
    """The body of POST complete: how many records the page has sent."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    count: Annotated[int, Field(ge=0)]


class LeavingBody(TypedDict):
    """The body of POST leave: whether the participant's answers are kept."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    data: Literal["keep", "withdraw"]


ENTRY: TypeAdapter[EntryBody] = TypeAdapter(EntryBody)
COMPLETION: TypeAdapter[CompletionBody] = TypeAdapter(CompletionBody)
LEAVING: TypeAdapter[LeavingBody] = TypeAdapter(LeavingBody)


async def store_records(request: Request) -> Response:
    """Store responses and events; 200 means that they are on disk, and sending them again is harmless."""
    context, token_hash = _context(request), hash_token(_read_token(request))
    session = await _find_session(request, context, token_hash)
    records = (await read_json(request, POSTED_RECORDS, MAX_BODY_BYTES))["records"]
    choices = session.choices
    if choices is not None and session.has_unknown_choices(records):
        await run_in_thread(choices.reload, context.db)
    responses, events = session.build_rows(records)
    stored = store.responses.append(
        context.db, session.id, responses, events, token_hash=token_hash, limits=session.limits
    )
    await asyncio.wrap_future(stored)
    reply: dict[str, Any] = {"stored": [record["seq"] for record in records]}
    if choices is not None:
        context.pair_scheduler.note_records(choices, records)
        # Read before the choices: a pair that is chosen in between is in this reply, or announced by `choosing`.
        is_choosing = context.pair_scheduler.is_choosing(choices)
        reply |= {**choices.to_message(), "choosing": is_choosing}
    return JSONResponse(reply)


async def _find_session(request: Request, context: ParticipantContext, token_hash: str) -> CachedSession:
    """Return the session of a token from the cache or the database; the writer checks that the token is still valid."""
    study = request.path_params["study"]
    session = context.session_cache.get(token_hash, study)
    if session is None:
        with _unreadable_is_server_error():
            session = await context.session_loader.load(token_hash)
        if session is None or session.study != study:
            await _load_study(request)
            raise NotAllowed(store.sessions.NO_SESSION_MESSAGE)
        session = context.session_cache.add(token_hash, session)
    return session


async def show_page(request: Request) -> Response:
    """Return the participant's page, or a page that says that there is no such study."""
    try:
        await _load_study(request)
    except NotFound:
        return render_template(request, "unknown_study.html", status=404)
    return STATIC_FILES.send_file(STATIC / "index.html", request.headers)


async def redirect_to_page(request: Request) -> Response:
    """Redirect to the address with a slash at its end, since the page's own addresses are relative to it."""
    try:
        study = await _load_study(request)
    except NotFound:  # never redirect to a name that is not a study: anyone can write one into a link
        return render_template(request, "unknown_study.html", status=404)
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"./{study.name}/{query}", 307)


async def get_study(request: Request) -> Response:
    """Return what the page needs before consent; the completion code is not included."""
    db, study = _context(request).db, await _load_study(request)
    reason = await run_in_thread(store.sessions.get_refusal_reason, db, study, now_ms=now_ms())
    description = study.study.model_dump(mode="json", include=PUBLIC_STUDY_FIELDS) | {
        "open": reason is None,
        "reason": reason,
        "blocks": study.study.design.blocks,
        "tries": trials.MAX_ATTEMPTS,
        "texts": study.study.all_texts,
        "prolific": study.study.prolific is not None,
        "prolific_required": bool(study.study.prolific and study.study.prolific.required),
    }
    return await run_in_thread(json_response, request, description)


async def get_image(request: Request) -> Response:
    """Return an image by its digest; the bytes of an address never change."""
    digest = request.path_params["sha256"]
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise NotFound("There is no such image; images are named by their SHA-256 digest.")
    study = await _load_study(request)
    png = await run_in_thread(store.studies.get_image, _context(request).db, study.id, digest)
    return Response(png, media_type="image/png", headers=IMMUTABLE)


async def begin_session(request: Request) -> Response:
    """Begin a session, or continue the one that this participant has."""
    context, study = _context(request), await _load_study(request)
    entry = await read_json(request, ENTRY)
    prolific_pid = entry.get("prolific_pid")
    prolific_ids = (entry.get("prolific_study") or "", entry.get("prolific_session") or "")
    source = get_source(request)

    def begin() -> Response:
        started = store.sessions.begin(
            context.db,
            study,
            make_trial_drawer(study),
            identity=Identity(prolific_pid, *prolific_ids) if prolific_pid else None,
            link=entry.get("link"),
            entry=entry.get("entry"),
            admit=lambda since_ms: context.source_limit.admit(study, source, since_ms),
            now_ms=now_ms(),
        )
        if started.resumed:
            context.session_cache.remove(started.session.id)
        session = context.session_cache.add(
            hash_token(started.token), CachedSession.from_row(study, started.session)
        )
        choices = session.choices
        state = _session_state(context.db, study, started.session, choices, is_new=not started.resumed)
        if choices is not None:
            context.pair_scheduler.note_records(choices)
        return json_response(request, state | {"token": started.token}, 201)

    async with context.begin_limit:
        if await request.is_disconnected():  # the page has sent the request again meanwhile, or will
            raise HTTPException(400, "The connection ended while the request was waiting; send it again.")
        try:
            return await run_in_thread(begin)
        except SourceRefused:
            if context.source_limit.is_note_due(study):
                await run_in_thread(store.sessions.note_refused_source, context.db, study)
            raise


def make_trial_drawer(study: StudyRow) -> DrawTrials:
    """Return the function that draws the trials of a participant from the units assigned to them."""
    sizes = {name: (image.width_px, image.height_px) for name, image in study.images.items()}
    return lambda units: trials.draw_trials(study.study, units, sizes)


async def get_session(request: Request) -> Response:
    """Return the state of a session."""
    db, (study, row) = _context(request).db, await _load_session(request)
    return await run_in_thread(
        lambda: json_response(request, _session_state(db, study, row, SessionChoices.for_session(study, row)))
    )


def _session_state(
    db: store.Database,
    study: StudyRow,
    row: SessionRow,
    choices: SessionChoices | None,
    *,
    is_new: bool = False,
) -> dict[str, Any]:
    """Return what the page is told about a session; apply the study's policy on interruptions."""
    _check_not_ended(row.status)
    if choices is not None:
        choices.reload(db)
    progress = store.sessions.get_progress(db, row)
    policy, limit_ms = study.study.interruption.policy, study.study.interruption.after_minutes * 60_000
    is_back = not is_new and row.status == "active"
    # A page also reports that it was opened again; only answers show that the participant went on working.
    repeat = is_back and policy == "repeat-block" and now_ms() - progress.answered_at_ms > limit_ms
    skipped = store.choices.list_skipped_items(choices.stops) if choices else set()
    resume = find_resume_point(
        row.trials, progress.answers, progress.restarts, repeat_block=repeat, skipped=skipped
    )
    was_away = is_back and policy == "end" and now_ms() - progress.last_at_ms > limit_ms
    if was_away and not resume.is_over:
        store.sessions.end(db, row)
        _check_not_ended("ended")
    state = describe_session(study, row, resume, next_seq=progress.next_seq, repeat=repeat)
    return state if choices is None else {**state, **_open_choices(db, choices, progress.answers, resume)}


def _check_not_ended(status: str) -> None:
    if status == "ended":
        raise Conflict(
            "This session was interrupted for longer than its study allows and has ended.", "ended"
        )
    if status in ("left", "withdrawn"):
        raise Conflict("This participant has left the study, so the session cannot continue.", "already")


def describe_session(
    study: StudyRow, row: SessionRow, resume: ResumePoint, *, next_seq: int = 0, repeat: bool = False
) -> dict[str, Any]:
    """Return a session as JSON for the page; for a preview the session need not be stored."""
    return {
        "session": row.name,
        "participant": row.participant,
        "status": row.status,
        "images": {
            name: {
                "url": f"images/{image.sha256}.png",
                "width_px": image.width_px,
                "height_px": image.height_px,
            }
            for name, image in study.images.items()
            if name in set(row.trials.image)
        },
        "trials": row.trials.to_wire(),
        "next_seq": next_seq,
        "next_item": resume.next_item,
        "repeat_block": repeat and resume.next_item < len(row.trials),
        "answered": resume.answered,
        "asked_again": resume.asked_again,
    }


def _open_choices(
    db: store.Database, choices: SessionChoices, answers: Answers, resume: ResumePoint
) -> ChoicesMessage:
    """Return the chosen pairs of items that are still to be asked, without those already asked with a fixed pair."""
    choices.note_answered([item for _, item, _ in answers])
    closed = store.choices.list_fixed_items(db, choices.session) | set(resume.answered)
    return choices.to_message([item for item in choices.pairs if item not in closed])


async def complete_session(request: Request) -> Response:
    """Complete a session and return the completion code; 409 with the missing numbers if records are missing.

    A program that sends answers faster than people can see the trials gets no code.
    """
    study, row = await _load_session(request)
    count = (await read_json(request, COMPLETION))["count"]
    if count > CachedSession.max_records(len(row.trials)):
        raise InvalidInput(f"count is the number of records sent, got {count}; a session has fewer.")
    missing = await run_in_thread(store.sessions.complete, _context(request).db, row, count)
    if missing:
        message = f"{len(missing)} of {count} records have not arrived; send them again, then complete."
        return error_response(409, "Conflict", message, reason="missing", missing=missing)
    is_too_fast: bool = await run_in_thread(store.sessions.is_too_fast, _context(request).db, study, row)
    # The dashboard says that there was no code, and why; the researcher decides.
    code = study.study.prolific.completion_code if study.study.prolific and not is_too_fast else None
    return JSONResponse({"completion_code": code, "return_url": PROLIFIC_RETURN_URL + code if code else None})


async def leave_study(request: Request) -> Response:
    """End a session early; keep or delete the answers, as the participant chose."""
    _, row = await _load_session(request)
    keep = (await read_json(request, LEAVING))["data"] == "keep"
    await run_in_thread(store.sessions.leave, _context(request).db, row, keep=keep)
    return JSONResponse({})


def _context(request: Request) -> ParticipantContext:
    context: ParticipantContext = request.app.state.participants
    return context


def _read_token(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not re.fullmatch(r"[A-Za-z0-9_-]{1,128}", token):
        raise NotAllowed("Expected the session's token in the header Authorization: Bearer ….")
    return token


async def _load_study(request: Request) -> StudyRow:
    name = request.path_params["study"]
    try:
        if re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name):
            with _unreadable_is_server_error():
                return await run_in_thread(store.studies.get_study, _context(request).db, name)
    except NotFound:
        pass  # the store's message lists all studies, which participants need not know
    raise NotFound(f"There is no study {name!r:.80} here; check the link.")


async def _load_session(request: Request) -> tuple[StudyRow, SessionRow]:
    token = _read_token(request)
    study = await _load_study(request)
    row = await run_in_thread(store.sessions.get_by_token, _context(request).db, token)
    if row.study != study.id:  # the reply must not reveal that the token is valid for another study
        raise NotAllowed(store.sessions.NO_SESSION_MESSAGE)
    return study, row


@contextmanager
def _unreadable_is_server_error() -> Iterator[None]:
    """Turn `SchemaMismatch` into 503: pages keep their records and retry, whereas they would discard refused ones."""
    try:
        yield
    except SchemaMismatch as error:
        raise VsegError(str(error)) from error
