"""Count and list the sessions of a study, for researchers."""

from collections import Counter
from dataclasses import dataclass
from typing import TypedDict

from sqlalchemy import func, select

from vseg.errors import Conflict
from vseg.store.database import Database, now_ms as clock_ms
from vseg.store.researchers import set_setting
from vseg.store.schema import assignments, participants, responses, sessions, settings, studies
from vseg.store.sessions import assignment
from vseg.store.sessions.rows import SessionStatus
from vseg.store.studies import StudyRow

SOURCE_REFUSED = "source_refused_at_ms:"  # the setting of a study; its id follows


class ImageSessionCounts(TypedDict):
    """How many sessions with an image are wanted, completed and alive, and the status of each unit that is taken."""

    wanted: int
    completed: int
    alive: int
    units: dict[int, str]


class SessionSummary(TypedDict):
    """A session in the list of a study."""

    participant: str
    name: str
    status: SessionStatus
    started_at_ms: int
    finished_at_ms: int | None
    responses: int
    last_response_at_ms: int | None


@dataclass(frozen=True)
class SessionCounts:
    """How many sessions of a study have each status, and how many of the active ones are alive."""

    active: int
    completed: int
    left: int
    withdrawn: int
    ended: int
    alive: int
    images: dict[str, ImageSessionCounts]


def get_refusal_reason(db: Database, study: StudyRow, *, has_link: bool = False, now_ms: int) -> str | None:
    """Return why nobody new can begin ("closed", "paused" or "full"), or None if someone can.

    For somebody with a personal link, the number of sessions that were begun today does not matter.
    """
    with db.reading() as connection:
        status = connection.scalar(select(studies.c.status).where(studies.c.id == study.id))
        if status in ("closed", "paused"):
            return str(status)
        try:
            occupancy = assignment.count_occupancy(connection, study.id, study.study, now_ms)
            assignment.assign_units(study.study, occupancy, assignment.count_started(connection, study.id))
            if not has_link and not study.study.personal_links_only:
                assignment.check_start_rate(connection, study.id, study.study, now_ms)
        except Conflict as refusal:
            return refusal.reason
    return None


@dataclass(frozen=True)
class StartLimits:
    """Whether new sessions are refused although there are places: all of them, or those of some addresses.

    Parameters
    ----------
    all_refused : bool
        Whether as many sessions as allowed were begun within a day.
    source_refused_at_ms : int or None
        When sessions of an address that had begun too many were last refused, if that was within a day.
    """

    all_refused: bool
    source_refused_at_ms: int | None


def get_start_limits(db: Database, study: StudyRow, *, now_ms: int | None = None) -> StartLimits:
    """Return which limits on new sessions a study has reached; reopening it lifts them."""
    now_ms = clock_ms() if now_ms is None else now_ms
    name = f"{SOURCE_REFUSED}{study.id}"
    with db.reading() as connection:
        since_ms = max(now_ms - assignment.DAY_MS, assignment.get_admitted_since_ms(connection, study.id))
        refused_at_ms = int(connection.scalar(select(settings.c.value).where(settings.c.name == name)) or 0)
        try:
            assignment.check_start_rate(connection, study.id, study.study, now_ms)
            all_refused = False
        except Conflict:
            all_refused = not study.study.personal_links_only
    return StartLimits(all_refused, refused_at_ms if refused_at_ms > since_ms else None)


def note_refused_source(db: Database, study: StudyRow, *, now_ms: int | None = None) -> None:
    """Store that sessions of an address that had begun too many were refused; the address itself is not stored."""
    set_setting(db, f"{SOURCE_REFUSED}{study.id}", str(clock_ms() if now_ms is None else now_ms))


def count_sessions(db: Database, study: StudyRow, *, now_ms: int | None = None) -> SessionCounts:
    """Count the sessions of a study by status and by image."""
    now_ms = clock_ms() if now_ms is None else now_ms
    is_alive = assignment.is_alive(study.study, now_ms)
    with db.reading() as connection:
        rows = connection.execute(
            select(sessions.c.id, sessions.c.status, is_alive.label("alive")).where(
                sessions.c.study == study.id
            )
        ).all()
        assigned = connection.execute(select(assignments).where(assignments.c.study == study.id)).all()
    status = {row.id: "alive" if row.alive else row.status for row in rows}
    tally = Counter(row.status for row in rows)
    return SessionCounts(
        **{name: tally[name] for name in ("active", "completed", "left", "withdrawn", "ended")},
        alive=sum(value == "alive" for value in status.values()),
        images={
            image.name: _count_image(
                study.study.quota(image.name),
                [(row.unit, status[row.session]) for row in assigned if row.image == image.name],
            )
            for image in study.study.images
        },
    )


def list_sessions(db: Database, study: StudyRow) -> list[SessionSummary]:
    """Return the sessions of a study in the order in which they began."""
    columns = ("name", "status", "started_at_ms", "finished_at_ms")
    response_count = select(func.count()).where(responses.c.session == sessions.c.id).scalar_subquery()
    query = (
        select(
            participants.c.name.label("participant"),
            *(sessions.c[name] for name in columns),
            response_count.label("responses"),
            assignment.newest_received_at_ms(responses).label("last_response_at_ms"),
        )
        .join(participants, participants.c.id == sessions.c.participant)
        .where(sessions.c.study == study.id)
        .order_by(sessions.c.id)
    )
    with db.reading() as connection:
        rows = connection.execute(query).mappings().all()
    return [SessionSummary(**row) for row in rows]  # type: ignore[typeddict-item]


def _count_image(wanted: int, assigned: list[tuple[int, str]]) -> ImageSessionCounts:
    """Count the sessions of an image, given the unit and status of each."""
    tally = Counter(status for _, status in assigned)
    taken = {unit: status for unit, status in assigned if status in ("completed", "alive")}
    return {
        "wanted": wanted,
        "completed": tally["completed"],
        "alive": tally["alive"],
        "units": dict(sorted(taken.items())),
    }
