"""Who is given what: images by fewest sessions, then the lowest share of an image's pairs that nobody has.

A session counts while it is completed or alive. Alive is an active one that was heard of lately; what someone who
left or fell silent was asked to do is free again. A page reports the consent at once: a session that never sent
anything is nobody's after a few minutes.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from sqlalchemy import ColumnElement, Connection, ScalarSelect, Table, and_, func, or_, select

from vseg.errors import Conflict
from vseg.store.schema import assignments, events, responses, sessions
from vseg.study.schema import Study
from vseg.study.trials import Unit

MIN_ALIVE_MINUTES = 60
ALIVE_WITHOUT_RECORDS_MINUTES = 5
DAILY_SESSIONS_PER_PLACE, EXTRA_DAILY_SESSIONS = (
    20,
    100,
)  # that may begin within a day, of people without a personal link
DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class Occupancy:
    """What completed and alive sessions hold of a study."""

    sessions: int
    units: dict[str, set[int]]
    per_image: Counter[str]
    per_condition: Counter[str]


def count_occupancy(connection: Connection, study_id: int, study: Study, now_ms: int) -> Occupancy:
    """Count the sessions that are completed or alive."""
    of = {image.name: image.condition for image in study.images}
    counting = select(assignments.c.session, assignments.c.image, assignments.c.unit).join(sessions)
    found = connection.execute(counting.where(sessions.c.study == study_id, is_counted(study, now_ms)))
    # By column: as rows with names, those of a thousand people would take longer than the query.
    holders, names, numbers = list(zip(*found, strict=True)) or ((), (), ())
    units: dict[str, set[int]] = {name: set() for name in of}
    for name, unit in zip(names, numbers, strict=True):
        units.setdefault(name, set()).add(unit)
    conditions = set(zip(holders, map(of.get, names), strict=True))
    return Occupancy(
        sessions=len(set(holders)),
        units=units,
        per_image=Counter(names),
        per_condition=Counter(condition for _, condition in conditions if condition is not None),
    )


def count_started(connection: Connection, study_id: int) -> int:
    """How many sessions there have been."""
    return connection.scalar(select(func.count()).where(sessions.c.study == study_id)) or 0


def check_start_rate(connection: Connection, study_id: int, study: Study, now_ms: int) -> None:
    """`Conflict` where more sessions were begun within a day than any study needs: each takes room on the disk."""
    lately = (sessions.c.study == study_id) & (sessions.c.started_at_ms > now_ms - DAY_MS)
    number = connection.scalar(select(func.count()).where(lately)) or 0
    if number >= DAILY_SESSIONS_PER_PLACE * study.participants + EXTRA_DAILY_SESSIONS:
        raise Conflict(
            f"{number} sessions were begun within a day for {study.participants} places; come back tomorrow.",
            "full",
        )


def assign_units(study: Study, held: Occupancy, number: int) -> list[Unit]:
    """The images of the next session, in the order in which it shows them; `Conflict` if there is no place left.

    Ties, and the order, are drawn by chance from the study's seed and the `number` of the session.
    """
    if held.sessions >= study.participants:
        raise study_full_error()
    free = list_available_images(study, held)
    if len(free) < study.images_each:
        raise study_full_error()
    rng = np.random.default_rng((study.seed, number))
    rng.shuffle(free)
    names = sorted(free, key=lambda name: held.per_image[name])[: study.images_each]
    rng.shuffle(names)
    return [Unit(name, _lowest_free(held.units[name])) for name in names]


def preview_units(study: Study, number: int) -> list[Unit]:
    """What someone could be given in a study that nobody has begun."""
    nobody = Occupancy(0, {image.name: set() for image in study.images}, Counter(), Counter())
    return assign_units(study, nobody, number)


def list_available_images(study: Study, held: Occupancy) -> list[str]:
    """The images that still have a place, by their own quota and by their condition's.

    The even share that applies without a quota is no bound here: choosing the fewest keeps it by itself, and where
    people left unevenly, a bound would turn away the last ones wanted.
    """
    per_image = study.assignment.quota_per_image
    per_condition = study.assignment.quota_per_condition
    return [
        image.name
        for image in study.images
        if (per_image is None or held.per_image[image.name] < per_image)
        and (
            image.condition not in per_condition
            or held.per_condition[image.condition] < per_condition[image.condition]
        )
    ]


def study_full_error() -> Conflict:
    """Nobody else is wanted."""
    return Conflict("This study has all the participants it needs.", "full")


def is_counted(study: Study, now_ms: int) -> ColumnElement[bool]:
    """Whether a session is completed or alive."""
    return or_(sessions.c.status == "completed", is_alive(study, now_ms))


def is_alive(study: Study, now_ms: int) -> ColumnElement[bool]:
    """Whether a session is active and sent something not too long ago, or has only just begun."""
    since = now_ms - 60_000 * max(MIN_ALIVE_MINUTES, study.interruption.after_minutes)
    just_now = now_ms - 60_000 * ALIVE_WITHOUT_RECORDS_MINUTES
    heard = [newest_received_at_ms(table) >= since for table in (responses, events)]
    return and_(sessions.c.status == "active", or_(sessions.c.started_at_ms >= just_now, *heard))


def newest_received_at_ms(table: Table) -> ScalarSelect[int]:
    """When the newest record of a session arrived, newest by its number.

    That is one look into the primary key, however many records there are.
    """
    newest = select(table.c.received_at_ms).where(table.c.session == sessions.c.id)
    return newest.order_by(table.c.seq.desc()).limit(1).scalar_subquery()


def _lowest_free(held: Collection[int]) -> int:
    return next(unit for unit in range(len(held) + 1) if unit not in held)
