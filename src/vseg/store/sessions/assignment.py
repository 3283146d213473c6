"""Assign images to a new session: those with the fewest sessions, and of each the lowest unit that nobody has.

Sessions count if they are completed or alive. A session is alive if it is active and has sent something recently; the
units of other sessions are free again. A page reports the consent at once, so a session without any record is given up
after a few minutes, and one without an answer after some more: anyone can begin sessions, and people answer.

A session is empty if it is neither alive nor has an answer: its participant left at once, or never came. Empty sessions
do not count towards the sessions that may begin within a day, and the oldest of too many are deleted.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    ScalarSelect,
    Table,
    and_,
    delete,
    false,
    func,
    not_,
    or_,
    select,
)

from vseg.errors import Conflict
from vseg.store import vacuum
from vseg.store.schema import (
    assignments,
    events,
    identities,
    links,
    participants,
    responses,
    sessions,
    settings,
)
from vseg.store.studies import ADMITTED_SINCE
from vseg.study.schema import Study
from vseg.study.trials import Unit

MIN_ALIVE_MINUTES = 60
ALIVE_WITHOUT_RECORDS_MINUTES = 5
MAX_MINUTES_TO_FIRST_ANSWER = 20
# Without personal links, this many sessions may begin within a day: per wanted participant, and in addition. The same
# number of empty ones is kept.
DAILY_SESSIONS_PER_PLACE, EXTRA_DAILY_SESSIONS = 20, 100
DAY_MS = 24 * 60 * 60 * 1000
MAX_DELETED = 100  # empty sessions deleted when a new one begins


@dataclass(frozen=True)
class Occupancy:
    """What the completed and alive sessions of a study hold: how many there are, and which units they have."""

    sessions: int
    units: dict[str, set[int]]
    per_image: Counter[str]
    per_condition: Counter[str]


def count_occupancy(connection: Connection, study_id: int, study: Study, now_ms: int) -> Occupancy:
    """Count the sessions that are completed or alive, and collect their units."""
    condition_of = {image.name: image.condition for image in study.images}
    query = select(assignments.c.session, assignments.c.image, assignments.c.unit).join(sessions)
    rows = connection.execute(query.where(sessions.c.study == study_id, is_counted(study, now_ms)))
    # By column: for a thousand participants, building rows with names would take longer than the query.
    session_ids, image_names, unit_numbers = list(zip(*rows, strict=True)) or ((), (), ())
    units: dict[str, set[int]] = {name: set() for name in condition_of}
    for name, unit in zip(image_names, unit_numbers, strict=True):
        units.setdefault(name, set()).add(unit)
    conditions = set(zip(session_ids, map(condition_of.get, image_names), strict=True))
    return Occupancy(
        sessions=len(set(session_ids)),
        units=units,
        per_image=Counter(image_names),
        per_condition=Counter(condition for _, condition in conditions if condition is not None),
    )


def count_started(connection: Connection, study_id: int) -> int:
    """Return how many sessions of a study were begun."""
    return connection.scalar(select(func.count()).where(sessions.c.study == study_id)) or 0


def check_start_rate(connection: Connection, study_id: int, study: Study, now_ms: int) -> None:
    """Raise `Conflict` if more sessions were begun within a day than any study needs, since each takes disk space."""
    since_ms = max(now_ms - DAY_MS, get_admitted_since_ms(connection, study_id))
    is_recent = (sessions.c.study == study_id) & (sessions.c.started_at_ms > since_ms)
    most = max_daily_sessions(study)
    if _count_sessions(connection, is_recent) < most:  # which sessions are empty takes longer to find out
        return
    count = _count_sessions(connection, is_recent & not_(is_empty(study, now_ms)))
    if count >= most:
        raise Conflict(
            f"{count} sessions were begun within a day for {study.participants} places; come back later.",
            "paused",
        )


def _count_sessions(connection: Connection, condition: ColumnElement[bool]) -> int:
    return connection.scalar(select(func.count()).select_from(sessions).where(condition)) or 0


def max_daily_sessions(study: Study) -> int:
    """Return how many sessions may begin within a day, without empty ones and personal links."""
    return DAILY_SESSIONS_PER_PLACE * study.participants + EXTRA_DAILY_SESSIONS


def delete_old_empty_sessions(connection: Connection, study_id: int, study: Study, now_ms: int) -> None:
    """Delete the oldest empty sessions of a day, if there are more than are kept; those with a link remain."""
    is_recent = (sessions.c.study == study_id) & (sessions.c.started_at_ms > now_ms - DAY_MS)
    has_link = sessions.c.participant.in_(select(links.c.participant).where(links.c.participant.is_not(None)))
    kept, empty = max_daily_sessions(study), is_empty(study, now_ms)
    if _count_sessions(connection, is_recent) <= kept:
        return
    query = select(sessions.c.id).where(is_recent, empty, not_(has_link)).order_by(sessions.c.id.desc())
    found = list(connection.scalars(query.offset(kept).limit(MAX_DELETED)))
    # Lock them and look again: a page may have sent its first answer meanwhile. A session that is being written to is
    # locked already, and is not empty.
    lock = select(sessions.c.id).where(sessions.c.id.in_(found)).order_by(sessions.c.id)
    locked = list(connection.scalars(lock.with_for_update(skip_locked=True)))
    old = list(connection.scalars(select(sessions.c.participant).where(sessions.c.id.in_(locked), empty)))
    if not old:
        return
    if connection.execute(delete(identities).where(identities.c.participant.in_(old))).rowcount:
        vacuum.mark_due(connection)
    connection.execute(delete(participants).where(participants.c.id.in_(old)))


def get_admitted_since_ms(connection: Connection, study_id: int) -> int:
    """Return when a researcher last reopened a study: sessions before that do not count towards any limit."""
    name = f"{ADMITTED_SINCE}{study_id}"
    return int(connection.scalar(select(settings.c.value).where(settings.c.name == name)) or 0)


def assign_units(study: Study, occupancy: Occupancy, session_number: int) -> list[Unit]:
    """Return the units of the next session, in the order of presentation; `Conflict` if no place is left.

    Ties are broken, and the order is drawn, at random from the study's seed and the number of the session.
    """
    if occupancy.sessions >= study.participants:
        raise study_full_error()
    available = list_available_images(study, occupancy)
    if len(available) < study.images_per_participant:
        raise study_full_error()
    rng = np.random.default_rng((study.seed, session_number))
    rng.shuffle(available)
    names = sorted(available, key=lambda name: occupancy.per_image[name])[: study.images_per_participant]
    rng.shuffle(names)
    return [Unit(name, _lowest_free_unit(occupancy.units[name])) for name in names]


def preview_units(study: Study, session_number: int) -> list[Unit]:
    """Return the units that a session would be assigned in a study without sessions."""
    empty = Occupancy(0, {image.name: set() for image in study.images}, Counter(), Counter())
    return assign_units(study, empty, session_number)


def list_available_images(study: Study, occupancy: Occupancy) -> list[str]:
    """Return the images whose own quota and whose condition's quota are not reached.

    Without quotas the images are balanced by assigning the ones with the fewest sessions; an upper limit would turn
    away the last participants of a study in which others left early.
    """
    per_image = study.assignment.quota_per_image
    per_condition = study.assignment.quota_per_condition
    return [
        image.name
        for image in study.images
        if (per_image is None or occupancy.per_image[image.name] < per_image)
        and (
            image.condition not in per_condition
            or occupancy.per_condition[image.condition] < per_condition[image.condition]
        )
    ]


def study_full_error() -> Conflict:
    """Return the error for a study that has all its participants."""
    return Conflict("This study has all the participants it needs.", "full")


def is_counted(study: Study, now_ms: int) -> ColumnElement[bool]:
    """Return the SQL condition that a session is completed or alive."""
    return or_(sessions.c.status == "completed", is_alive(study, now_ms))


def is_alive(study: Study, now_ms: int) -> ColumnElement[bool]:
    """Return the SQL condition that a session is active and has sent something recently, or has just begun.

    Before its first answer, a session is alive for a shorter time, however many events it sends.
    """
    since = now_ms - 60_000 * max(MIN_ALIVE_MINUTES, study.interruption.after_minutes)
    shortly_before = now_ms - 60_000 * ALIVE_WITHOUT_RECORDS_MINUTES
    just_begun = sessions.c.started_at_ms >= shortly_before
    last_answer, last_event = newest_received_at_ms(responses), newest_received_at_ms(events)
    is_preparing = and_(
        sessions.c.started_at_ms >= now_ms - 60_000 * MAX_MINUTES_TO_FIRST_ANSWER,
        last_event >= shortly_before,
    )
    is_answering = and_(last_answer.is_not(None), or_(last_answer >= since, last_event >= since))
    return and_(sessions.c.status == "active", or_(just_begun, is_preparing, is_answering))


def is_empty(study: Study, now_ms: int) -> ColumnElement[bool]:
    """Return the SQL condition that a session has no answer and is not alive."""
    has_answer = select(responses.c.seq).where(responses.c.session == sessions.c.id).exists()
    # By coalesce: comparisons with the time of a record that does not exist are NULL.
    return and_(not_(has_answer), not_(func.coalesce(is_counted(study, now_ms), false())))


def newest_received_at_ms(table: Table) -> ScalarSelect[int]:
    """Return the SQL expression for the arrival of the record with the highest number of a session.

    It needs a single look-up in the primary key, however many records there are.
    """
    newest = select(table.c.received_at_ms).where(table.c.session == sessions.c.id)
    return newest.order_by(table.c.seq.desc()).limit(1).scalar_subquery()


def _lowest_free_unit(taken: Collection[int]) -> int:
    return next(unit for unit in range(len(taken) + 1) if unit not in taken)
