"""What a researcher sees of the people in a study: how many, with which images, how far."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from vseg.errors import Conflict
from vseg.store.database import Database, now_ms as clock_ms
from vseg.store.schema import assignments, participants, responses, sessions, studies
from vseg.store.sessions import assignment
from vseg.store.studies import StudyRow


@dataclass(frozen=True)
class SessionCounts:
    """How many sessions of a study there are of each status, and how many of the active ones are alive.

    `images` has for each image how many are `wanted`, `completed` and `alive`, and the status of the `units` taken.
    """

    active: int
    completed: int
    left: int
    withdrawn: int
    ended: int
    alive: int
    images: dict[str, dict[str, Any]]


def get_refusal_reason(db: Database, study: StudyRow, *, now_ms: int) -> str | None:
    """Why nobody new can begin: "closed", "paused", "full", or None if someone can."""
    with db.reading() as connection:
        status = connection.scalar(select(studies.c.status).where(studies.c.id == study.id))
        if status in ("closed", "paused"):
            return str(status)
        try:
            held = assignment.count_occupancy(connection, study.id, study.study, now_ms)
            assignment.assign_units(study.study, held, assignment.count_started(connection, study.id))
        except Conflict as full:
            return full.reason
    return None


def count_sessions(db: Database, study: StudyRow, *, now_ms: int | None = None) -> SessionCounts:
    """How far a study is."""
    now_ms = clock_ms() if now_ms is None else now_ms
    alive = assignment.is_alive(study.study, now_ms)
    with db.reading() as connection:
        rows = connection.execute(
            select(sessions.c.id, sessions.c.status, alive.label("alive")).where(sessions.c.study == study.id)
        ).all()
        given = connection.execute(select(assignments).where(assignments.c.study == study.id)).all()
    status = {row.id: "alive" if row.alive else row.status for row in rows}
    tally = Counter(row.status for row in rows)
    return SessionCounts(
        **{name: tally[name] for name in ("active", "completed", "left", "withdrawn", "ended")},
        alive=sum(each == "alive" for each in status.values()),
        images={
            image.name: {"wanted": study.study.quota(image.name)}
            | _of_image([(row.unit, status[row.session]) for row in given if row.image == image.name])
            for image in study.study.images
        },
    )


def list_sessions(db: Database, study: StudyRow) -> list[dict[str, Any]]:
    """The sessions of a study in the order in which they began: names, status, times and how many responses."""
    shown = ("name", "status", "started_at_ms", "finished_at_ms")
    answers = select(func.count()).where(responses.c.session == sessions.c.id).scalar_subquery()
    wanted = (
        select(
            participants.c.name.label("participant"),
            *(sessions.c[name] for name in shown),
            answers.label("responses"),
            assignment.newest_received_at_ms(responses).label("last_response_at_ms"),
        )
        .join(participants, participants.c.id == sessions.c.participant)
        .where(sessions.c.study == study.id)
        .order_by(sessions.c.id)
    )
    with db.reading() as connection:
        return [dict(row) for row in connection.execute(wanted).mappings()]


def _of_image(given: list[tuple[int, str]]) -> dict[str, Any]:
    tally = Counter(status for _, status in given)
    taken = {unit: status for unit, status in given if status in ("completed", "alive")}
    return {"completed": tally["completed"], "alive": tally["alive"], "units": dict(sorted(taken.items()))}
