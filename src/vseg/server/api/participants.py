"""The progress of a study, its participants, and erasing one."""

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from vseg import monitor, store
from vseg.monitor import Answers
from vseg.server.api.dependencies import (
    RequestedStudy,
    get_state,
    load_answers,
    make_etag,
    not_modified_response,
)
from vseg.server.api.schemas import (
    PEOPLE,
    PROGRESS,
    AnswerColumns,
    Event,
    PersonAndTimeline,
    ProgressAndPeople,
)
from vseg.server.compression import compressed_response
from vseg.store.changes import list_events
from vseg.store.sessions import ErasedRows

EVENT_KINDS = (
    "consent", "device", "keys", "distance", "gamma", "screen", "resumed", "break", "interruption", "left", "comment",
    "contours",
)  # fmt: skip

router = APIRouter(tags=["participants"])
ParticipantName = Annotated[str, Path(description="The participant's random name.", examples=["p3f6kq2mzxa"])]


@router.get(
    "/studies/{name}/progress", summary="Get the progress of a study", response_model=ProgressAndPeople
)
def get_progress(request: Request, row: RequestedStudy) -> Response:
    """Return counts, distributions, timing, catch trials and consistency, and all participants who did not withdraw."""
    answers = load_answers(request, row)
    progress = PROGRESS.dump_json(monitor.compute_progress(get_state(request).db, row, answers))
    people = answers.get_or_compute(
        "people as JSON", lambda: PEOPLE.dump_json(monitor.summarise_participants(row, answers))
    )
    etag = make_etag(answers.version, progress)
    if (not_modified := not_modified_response(request, etag)) is not None:
        return not_modified
    body = b'{"progress":%b,"people":%b}' % (progress, people)
    return compressed_response(request, body, "application/json", headers={"ETag": etag})


@router.get("/studies/{name}/participants/{participant}", summary="Get one participant")
def get_participant(request: Request, row: RequestedStudy, participant: ParticipantName) -> PersonAndTimeline:
    """Return a participant's numbers and warnings, all answers, and the other events of their sessions."""
    answers = load_answers(request, row)
    person = monitor.summarise_participant(row, answers, participant)
    events = list_events(get_state(request).db, row.id, EVENT_KINDS, participant=participant)
    return PersonAndTimeline(
        person=person,
        answers=_answer_columns(answers, participant),
        events=[Event.model_validate(event) for event in events],
    )


@router.delete("/studies/{name}/participants/{participant}", summary="Erase a participant")
def erase_participant(request: Request, row: RequestedStudy, participant: ParticipantName) -> ErasedRows:
    """Delete a participant and all their data permanently; return how many rows were deleted."""
    return store.sessions.erase(get_state(request).db, row, participant)


def _answer_columns(answers: Answers, participant: str) -> AnswerColumns:
    rows = np.flatnonzero(np.isin(answers.session, answers.session_indices(participant)))
    return AnswerColumns(
        seq=answers.seq[rows].tolist(),
        shown_at_ms=answers.shown_at_ms[rows].tolist(),
        image=[answers.images[place] for place in answers.image[rows]],
        i=answers.i[rows].tolist(),
        j=answers.j[rows].tolist(),
        same=answers.same[rows].tolist(),
        rt_ms=answers.rt_ms[rows].tolist(),
        flagged=answers.flagged[rows].tolist(),
        used=answers.used[rows].tolist(),
        correct=[None if value < 0 else bool(value) for value in answers.correct[rows]],
    )
