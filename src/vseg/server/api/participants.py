"""How far a study is, who took part, and erasing someone."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from vseg import monitor, store
from vseg.monitor import Answers
from vseg.server.api.dependencies import RequestedStudy, load_answers, make_etag, not_modified_response
from vseg.server.api.schemas import PEOPLE, PROGRESS, PersonAndTimeline, ProgressAndPeople
from vseg.server.compression import compressed_response
from vseg.store.changes import list_events
from vseg.store.sessions import ErasedRows

KINDS = (
    "consent", "device", "keys", "distance", "gamma", "screen", "resumed", "break", "interruption", "left", "comment",
    "contours",
)  # fmt: skip

router = APIRouter(tags=["people"])
Participant = Annotated[
    str, Path(description="The participant's random name here.", examples=["p3f6kq2mzxa"])
]


@router.get("/studies/{name}/progress", summary="A study at a glance", response_model=ProgressAndPeople)
def get_progress(request: Request, row: RequestedStudy) -> Response:
    """Counts, distributions, timing quality, checks and consistency; and everyone who has not withdrawn."""
    db, answers = request.app.state.db, load_answers(request, row)
    found = PROGRESS.dump_json(monitor.progress(db, row, answers))
    people = answers.kept("people as JSON", lambda: PEOPLE.dump_json(monitor.people(row, answers)))
    tag = make_etag(answers.version, found)
    if (same := not_modified_response(request, tag)) is not None:
        return same
    return compressed_response(
        request, b'{"progress":%b,"people":%b}' % (found, people), "application/json", headers={"ETag": tag}
    )


@router.get("/studies/{name}/participants/{participant}", summary="One participant")
def get_participant(request: Request, row: RequestedStudy, participant: Participant) -> PersonAndTimeline:
    """Their numbers and the reasons for a second look; all their answers; everything else their session reported."""
    answers = load_answers(request, row)
    person = monitor.person(row, answers, participant)
    events: Any = list_events(request.app.state.db, row.id, KINDS, participant=participant)
    return PersonAndTimeline(person=person, answers=_columns(answers, participant), events=events)


@router.delete("/studies/{name}/participants/{participant}", summary="Erase a participant")
def erase_participant(request: Request, row: RequestedStudy, participant: Participant) -> ErasedRows:
    """Delete a participant and everything of theirs, for good; says how many rows are gone."""
    return store.sessions.erase(request.app.state.db, row, participant)


def _columns(answers: Answers, participant: str) -> Any:
    rows = np.flatnonzero(np.isin(answers.session, answers.places(participant)))
    plain = ("seq", "shown_at_ms", "i", "j", "same", "rt_ms", "flagged", "used")
    columns = {name: getattr(answers, name)[rows].tolist() for name in plain}
    columns["image"] = [answers.images[place] for place in answers.image[rows]]
    columns["correct"] = [None if value < 0 else bool(value) for value in answers.correct[rows]]
    return columns
