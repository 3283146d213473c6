"""The way of one participant: the page, a session, its records, completion or leaving.

`records` is the hot route: one validation, one wait for the commit. Everything else is called a few times a
session. A session's trials are the server's own; what a page sends names an item, never a pair.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
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
from vseg.server.pair_scheduler import Adapting
from vseg.server.pending_choices import Ahead
from vseg.server.records import MAX_BODY_BYTES, POSTED_RECORDS, STRICT
from vseg.server.resume_policy import MAX_ATTEMPTS, Answers, ResumePoint, find_resume_point
from vseg.server.session_cache import CachedSession, SessionCache
from vseg.store.database import now_ms
from vseg.store.sessions import Identity, SessionRow
from vseg.store.studies import StudyRow
from vseg.store.tokens import hash_token
from vseg.study import trials

STATIC = Path(str(files("vseg.server"))) / "static"
STATIC_FILES = PrecompressedFiles(directory=STATIC, check_dir=False)
PROLIFIC_QUERY = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
PROLIFIC_RETURN_URL = "https://app.prolific.com/submissions/complete?cc="
IMMUTABLE = {"Cache-Control": "public, max-age=31536000, immutable"}
MAX_CONCURRENT_BEGINS = 4  # more would all be slow together, and hold up those who answer
PUBLIC_STUDY_FIELDS = {
    "name", "title", "language", "segments", "timing", "keys", "display", "calibration", "contours", "practice",
    "breaks", "personal_links_only", "lab",
}  # fmt: skip


def _filled_in(value: Any) -> Any:
    """None for Prolific's placeholder itself: someone who opens the template of the link, to try it."""
    return None if isinstance(value, str) and re.fullmatch(r"\{\{%\w{1,64}%\}\}", value) else value


ProlificId = Annotated[
    Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None, BeforeValidator(_filled_in)
]
Token = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,128}$")]
EntryKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{22,64}$")]


def _agreed(consented: bool) -> bool:
    if not consented:
        raise ValueError("should be true: nobody takes part without having agreed")
    return consented


class Entry(TypedDict):
    """Who begins: someone who agreed, perhaps sent by Prolific or with a personal link.

    `entry` is a secret that the page has made and keeps: who sends it again goes on with the same session.
    """

    __pydantic_config__ = STRICT  # type: ignore[misc]

    consented: Annotated[bool, AfterValidator(_agreed)]
    prolific_pid: NotRequired[ProlificId]
    prolific_study: NotRequired[ProlificId]
    prolific_session: NotRequired[ProlificId]
    link: NotRequired[Token]
    entry: NotRequired[EntryKey]


class Completion(TypedDict):
    """How many records the page has sent."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    count: Annotated[int, Field(ge=0)]


class Leaving(TypedDict):
    """What becomes of the answers of someone who leaves."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    data: Literal["keep", "withdraw"]


ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)
COMPLETION: TypeAdapter[Completion] = TypeAdapter(Completion)
LEAVING: TypeAdapter[Leaving] = TypeAdapter(Leaving)


async def store_records(request: Request) -> Response:
    """Store answers and events; a 200 means that they are on the disk, and a resend does no harm."""
    db, hashed = request.app.state.db, hash_token(_token(request))
    known = await _known(request, hashed)
    batch = await read_json(request, POSTED_RECORDS, MAX_BODY_BYTES)
    if known.ahead is not None and known.unknown_choices(batch["records"]):
        await run_in_thread(known.ahead.reload, db)
    responses, events = known.rows(batch["records"])
    stored = store.responses.append(
        db, known.session, responses, events, token_hash=hashed, limits=known.limits
    )
    await asyncio.wrap_future(stored)
    reply: dict[str, Any] = {"stored": [record["seq"] for record in batch["records"]]}
    if known.ahead is not None:
        adapting: Adapting = request.app.state.adapting
        adapting.heard(known.ahead, batch["records"])
        # First: what was chosen since is then told, or still to come.
        choosing = adapting.is_choosing(known.ahead)
        reply |= known.ahead.told() | {"choosing": choosing}
    return JSONResponse(reply)


async def begin_session(request: Request) -> Response:
    """Begin a session, or go on with the one this person has."""
    db, study = request.app.state.db, await _study(request)
    entry = await read_json(request, ENTRY)
    pid = entry.get("prolific_pid")
    more = (entry.get("prolific_study") or "", entry.get("prolific_session") or "")

    def begin() -> Response:
        begun = store.sessions.begin(
            db,
            study,
            make_trial_drawer(study),
            identity=Identity(pid, *more) if pid else None,
            link=entry.get("link"),
            entry=entry.get("entry"),
            now_ms=now_ms(),
        )
        known: SessionCache = request.app.state.known
        if begun.resumed:
            known.forget(begun.session.id)
        mine = known.remember(hash_token(begun.token), CachedSession.of(study, begun.session))
        state = _state(db, study, begun.session, mine.ahead, is_new=not begun.resumed)
        if mine.ahead is not None:
            request.app.state.adapting.heard(mine.ahead)
        return json_response(request, state | {"token": begun.token}, 201)

    async with request.app.state.door:
        if await request.is_disconnected():  # they have asked again meanwhile, or will
            raise HTTPException(400, "The connection ended before its turn came; send it again.")
        return await run_in_thread(begin)


async def get_session(request: Request) -> Response:
    """Where this session stands."""
    db, (study, row) = request.app.state.db, await _session(request)
    return await run_in_thread(lambda: json_response(request, _state(db, study, row, Ahead.of(study, row))))


async def complete_session(request: Request) -> Response:
    """The completion code, once everything the page sent is here; else the numbers of what is missing."""
    study, row = await _session(request)
    count = (await read_json(request, COMPLETION))["count"]
    if count > CachedSession.most_records(len(row.trials)):
        raise InvalidInput(f"count is the number of records sent, got {count}; a session has fewer.")
    missing = await run_in_thread(store.sessions.complete, request.app.state.db, row, count)
    if missing:
        message = f"{len(missing)} of {count} records have not arrived; send them again, then complete."
        return error_response(409, "Conflict", message, reason="missing", missing=missing)
    code = study.study.prolific.completion_code if study.study.prolific else None
    return JSONResponse({"completion_code": code, "return_url": PROLIFIC_RETURN_URL + code if code else None})


async def leave_study(request: Request) -> Response:
    """End before the end; the answers stay or go, as the person chose."""
    _, row = await _session(request)
    keep = (await read_json(request, LEAVING))["data"] == "keep"
    await run_in_thread(store.sessions.leave, request.app.state.db, row, keep=keep)
    return JSONResponse({})


async def get_study(request: Request) -> Response:
    """What the page needs before anyone agreed to anything. The completion code is not in it."""
    db, study = request.app.state.db, await _study(request)
    reason = await run_in_thread(store.sessions.get_refusal_reason, db, study, now_ms=now_ms())
    said = study.study.model_dump(mode="json", include=PUBLIC_STUDY_FIELDS)
    said |= {
        "open": reason is None,
        "reason": reason,
        "blocks": study.study.design.blocks,
        "tries": MAX_ATTEMPTS,
        "texts": study.study.all_texts,
        "prolific": study.study.prolific is not None,
        "prolific_required": bool(study.study.prolific and study.study.prolific.required),
    }
    return await run_in_thread(json_response, request, said)


async def get_image(request: Request) -> Response:
    """An image by its digest: the same bytes for ever."""
    digest = request.path_params["sha256"]
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise NotFound("There is no such image; images are named by their SHA-256 digest.")
    study = await _study(request)
    png = await run_in_thread(store.studies.get_image, request.app.state.db, study.id, digest)
    return Response(png, media_type="image/png", headers=IMMUTABLE)


async def show_page(request: Request) -> Response:
    """The experiment itself, or plain words where there is no such study."""
    try:
        await _study(request)
    except NotFound:
        return render_template(request, "unknown.html", status=404)
    return STATIC_FILES.send_file(STATIC / "index.html", request.headers)


async def redirect_to_page(request: Request) -> Response:
    """The page's addresses are relative to its own, which therefore ends in a slash."""
    try:
        study = await _study(request)
    except NotFound:  # nobody is sent to an address that a stranger has written into the link
        return render_template(request, "unknown.html", status=404)
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"./{study.name}/{query}", 307)


def make_trial_drawer(study: StudyRow) -> Any:
    """The function that draws the trials of someone who is given some units."""
    sizes = {name: (image.width_px, image.height_px) for name, image in study.images.items()}
    return lambda units: trials.trials(study.study, units, sizes)


def _state(
    db: store.Database, study: StudyRow, row: SessionRow, ahead: Ahead | None, *, is_new: bool = False
) -> dict[str, Any]:
    _check_goes_on(row.status)
    if ahead is not None:
        ahead.reload(db)
    progress = store.sessions.get_progress(db, row)
    policy, after_ms = study.study.interruption.policy, study.study.interruption.after_minutes * 60_000
    comes_back = not is_new and row.status == "active"
    # A page reports that it is back, which is no sign of work: only answers end the need to repeat a block.
    repeat = comes_back and policy == "repeat-block" and now_ms() - progress.answered_at_ms > after_ms
    skipped = store.choices.list_skipped_items(ahead.stops) if ahead else set()
    now = find_resume_point(
        row.trials, progress.answers, progress.restarts, repeat_block=repeat, skipped=skipped
    )
    away = comes_back and policy == "end" and now_ms() - progress.last_at_ms > after_ms
    if away and not now.is_over:
        store.sessions.end(db, row)
        _check_goes_on("ended")
    state = describe_session(study, row, now, next_seq=progress.next_seq, repeat=repeat)
    return state if ahead is None else state | _chosen(db, ahead, progress.answers, now)


def _chosen(db: store.Database, ahead: Ahead, answers: Answers, now: ResumePoint) -> dict[str, Any]:
    """The choices for what is still to be asked, but for items that were asked already with the pair of the trials."""
    ahead.answered([item for _, item, _ in answers])
    done = store.choices.list_fixed_items(db, ahead.session) | set(now.answered)
    return ahead.told(among=[item for item in ahead.choices if item not in done])


def describe_session(
    study: StudyRow, row: SessionRow, now: ResumePoint, *, next_seq: int = 0, repeat: bool = False
) -> dict[str, Any]:
    """A session as its page is told about it; a preview is one that is not stored."""
    return {
        "session": row.name,
        "participant": row.participant,
        "status": row.status,
        "images": {
            name: {
                "url": f"images/{shown.sha256}.png",
                "width_px": shown.width_px,
                "height_px": shown.height_px,
            }
            for name, shown in study.images.items()
            if name in set(row.trials.image)
        },
        "trials": row.trials.wire(),
        "next_seq": next_seq,
        "next_item": now.next_item,
        "repeat_block": repeat and now.next_item < len(row.trials),
        "answered": now.answered,
        "asked_again": now.asked_again,
    }


def _check_goes_on(status: str) -> None:
    if status == "ended":
        raise Conflict("This session was away for longer than its study allows and has ended.", "ended")
    if status in ("left", "withdrawn"):
        raise Conflict("This participant has left the study, so that the session does not go on.", "already")


@contextmanager
def _readable() -> Iterator[None]:
    """A study that this vseg cannot read is the server's trouble: what a page has sent is not refused for it."""
    try:
        yield
    except SchemaMismatch as error:
        raise VsegError(str(error)) from error


async def _study(request: Request) -> StudyRow:
    name = request.path_params["study"]
    try:
        if re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name):
            with _readable():
                return await run_in_thread(store.studies.get_study, request.app.state.db, name)
    except NotFound:
        pass  # the store's own sentence lists all studies, which participants need not know
    raise NotFound(f"There is no study {name!r:.80} here; check the link.")


async def _session(request: Request) -> tuple[StudyRow, SessionRow]:
    token = _token(request)
    study = await _study(request)
    row = await run_in_thread(store.sessions.get_by_token, request.app.state.db, token)
    if row.study != study.id:  # who tries tokens here does not learn that one is good elsewhere
        raise NotAllowed(store.sessions.NO_SESSION_MESSAGE)
    return study, row


async def _known(request: Request, hashed: str) -> CachedSession:
    """The session of a token's hash, from memory where it was seen before; the writer checks that it is still good."""
    name = request.path_params["study"]
    known_sessions: SessionCache = request.app.state.known
    known = known_sessions.of(hashed, name)
    if known is None:
        with _readable():
            known = await request.app.state.recall.of(hashed)
        if known is None or known.study != name:
            await _study(request)
            raise NotAllowed(store.sessions.NO_SESSION_MESSAGE)
        known = known_sessions.remember(hashed, known)
    return known


def _token(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not re.fullmatch(r"[A-Za-z0-9_-]{1,128}", token):
        raise NotAllowed("Expected the session's token in the header Authorization: Bearer ….")
    return token
