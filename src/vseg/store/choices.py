"""Pairs chosen while a session goes on: what they followed from, what they are, and where questions ended early.

A choice is stored before it is sent and never changes. What a batch knew is told by numbers alone: of each session
all records below `records`, and that its choices below item `ahead` were still to be answered. So whoever has the
answers can choose again, and must come to the same pairs. Batches are in the order of their `id`; one that knew more
than those before has taken what is new session by session, in the order in which these began.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, insert, select

from vseg.store.database import Database, now_ms as clock_ms
from vseg.store.schema import (
    assignments,
    batches,
    choices,
    events,
    participants,
    responses,
    sessions,
    stops,
    takings,
)


@dataclass(frozen=True)
class AdaptiveAnswer:
    """One answer to a real trial; `good` if the trial was shown right."""

    seq: int
    item: int
    image: str
    i: int
    j: int
    same: bool
    good: bool
    chosen: bool


@dataclass(frozen=True)
class SessionAnswers:
    """The answers among a session's records from some number up to `records`, without a gap."""

    records: int
    answers: list[AdaptiveAnswer]


class SessionBasis(NamedTuple):
    """What a batch knew of a session: records below `records`, and choices below item `ahead`, to be answered soon."""

    records: int
    ahead: int


@dataclass(frozen=True)
class ChoiceBatch:
    """Pairs that were chosen together; `taken` says how much was known of each session, by its id."""

    session: int
    name: str
    """Of the session: who was erased may have left their number to another."""
    image: str
    rule: str
    seed: int
    answers: int
    expected_error: float
    basis: Mapping[int, SessionBasis]
    items: Sequence[int]
    i: Sequence[int]
    j: Sequence[int]


@dataclass(frozen=True)
class EarlyStop:
    """Items from `item` up to `until`, which is not among them, are not asked."""

    image: str
    item: int
    until: int
    answers: int
    expected_error: float


Pair = tuple[int, int]
ABOUT = ("image", "rule", "seed", "answers", "expected_error", "chosen_at_ms")


def read_answers(connection: Connection, session: int, since: int = 0) -> SessionAnswers:
    """What a session has sent from record `since` on, as far as nothing is missing."""
    c = responses.c
    names = ("seq", "item", "image", "i", "j", "same", "flags", "practice", "catch", "chosen")
    rows = connection.execute(
        select(*(c[name] for name in names)).where(c.session == session, c.seq >= since).order_by(c.seq)
    ).all()
    others = connection.scalars(
        select(events.c.seq).where(events.c.session == session, events.c.seq >= since)
    ).all()
    arrived = {row.seq for row in rows} | set(others)
    records = since
    while records in arrived:
        records += 1
    return SessionAnswers(
        records,
        [
            AdaptiveAnswer(row.seq, row.item, row.image, row.i, row.j, row.same, not row.flags, row.chosen)
            for row in rows
            if row.seq < records and not (row.practice or row.catch)
        ],
    )


class ContributingSession(NamedTuple):
    """A session that others may learn from: SQLite may give the number of one that was erased to the next."""

    name: str
    is_active: bool = True


def list_contributing_sessions(
    connection: Connection, study: int, image: str
) -> dict[int, ContributingSession]:
    """The sessions whose answers about an image count, by id, in the order in which they began."""
    wanted = (
        select(sessions.c.id, sessions.c.name, sessions.c.status)
        .join(assignments, assignments.c.session == sessions.c.id)
        .where(sessions.c.study == study, assignments.c.image == image, sessions.c.status != "withdrawn")
        .order_by(sessions.c.id)
    )
    return {
        row.id: ContributingSession(row.name, row.status == "active") for row in connection.execute(wanted)
    }


def list_chosen_pairs(
    connection: Connection, image: str, session_ids: Collection[int]
) -> dict[int, dict[int, Pair]]:
    """For each of these sessions the pairs that were chosen for it about an image, by item."""
    wanted = (
        select(choices.c.session, choices.c.item, choices.c.i, choices.c.j)
        .join(batches, batches.c.id == choices.c.batch)
        .where(choices.c.session.in_(session_ids), batches.c.image == image)
        .order_by(choices.c.session, choices.c.item)
    )
    found: dict[int, dict[int, Pair]] = {}
    for row in connection.execute(wanted):
        found.setdefault(row.session, {})[row.item] = (row.i, row.j)
    return found


def list_bases(
    connection: Connection, image: str, session_ids: Collection[int], since: int = 0
) -> dict[int, dict[int, int]]:
    """For each batch above `since` about an image, in their order, how many records of which sessions it knew."""
    wanted = (
        select(takings.c.batch, takings.c.session, takings.c.records)
        .join(batches, batches.c.id == takings.c.batch)
        .where(batches.c.image == image, batches.c.id > since, batches.c.session.in_(session_ids))
        .order_by(takings.c.batch, takings.c.session)
    )
    found: dict[int, dict[int, int]] = {}
    for row in connection.execute(wanted):
        found.setdefault(row.batch, {})[row.session] = row.records
    return found


def save_batch(
    db: Database, batch: ChoiceBatch, *, after: int, session_ids: Collection[int], now_ms: int | None = None
) -> int | None:
    """Store a batch before anyone is told of it; its number, or None, with nothing stored, if it came too late.

    It is too late if the session is over, if one of its items has a pair already, or if `after` is not the last batch
    about the image that the sessions `among` which it chose have got: another worker has chosen meanwhile, and what it
    chose stands.
    """
    about = (batches.c.image == batch.image) & batches.c.session.in_(session_ids)
    same_items = (choices.c.session == batch.session) & choices.c.item.in_(batch.items)
    with db.writing() as connection:
        # A crowd's batches wait for each other at its first session; a person's own lock keeps the session from ending.
        keys = {min(session_ids), batch.session}
        locked = select(sessions.c.id).where(sessions.c.id.in_(keys)).order_by(sessions.c.id)
        connection.execute(locked.with_for_update(key_share=True))
        there = set(connection.scalars(select(sessions.c.id).where(sessions.c.id.in_(session_ids))))
        last = connection.scalar(select(func.max(batches.c.id)).where(about)) or 0
        chosen = connection.scalar(select(func.count()).where(same_items))
        if not _goes_on(connection, batch.session, batch.name) or last != after or chosen:
            return None
        made = insert(batches).values(
            session=batch.session, image=batch.image, rule=batch.rule, seed=batch.seed, answers=batch.answers,
            expected_error=batch.expected_error, chosen_at_ms=clock_ms() if now_ms is None else now_ms,
        )  # fmt: skip
        key = connection.execute(made).inserted_primary_key
        assert key is not None
        number = int(key[0])
        knew = [
            {"batch": number, "session": session, **taking._asdict()}
            for session, taking in batch.basis.items()
            if session in there  # not erased meanwhile
        ]
        connection.execute(insert(takings), knew)
        rows = [
            {"session": batch.session, "batch": number, "item": item, "i": i, "j": j}
            for item, i, j in zip(batch.items, batch.i, batch.j, strict=True)
        ]
        connection.execute(insert(choices), rows)
    return number


def get_chosen_pairs(db: Database, session: int) -> dict[int, Pair]:
    """The chosen pair of each item that has one, in the items' order."""
    wanted = select(choices.c.item, choices.c.i, choices.c.j).where(choices.c.session == session)
    with db.reading() as connection:
        return {row.item: (row.i, row.j) for row in connection.execute(wanted.order_by(choices.c.item))}


def list_fixed_items(db: Database, session: int) -> set[int]:
    """The items that were asked with the pair of the trials: asked again, they keep it."""
    wanted = select(responses.c.item).where(responses.c.session == session, ~responses.c.chosen)
    with db.reading() as connection:
        return set(connection.scalars(wanted))


def save_stop(db: Database, session: int, name: str, at: EarlyStop, *, now_ms: int | None = None) -> None:
    """Store where the questions about an image end, unless the session is over; what was stored first stays."""
    row = {**vars(at), "session": session, "stopped_at_ms": clock_ms() if now_ms is None else now_ms}
    with db.writing() as connection:
        locked = select(sessions.c.id).where(sessions.c.id == session).with_for_update(key_share=True)
        connection.execute(locked)
        if _goes_on(connection, session, name):
            connection.execute(db.insert_or_ignore(stops), [row])


def _goes_on(connection: Connection, session: int, name: str) -> bool:
    """Whether a session is there, under that name, and active."""
    mine = (sessions.c.id == session) & (sessions.c.name == name) & (sessions.c.status == "active")
    return connection.scalar(select(sessions.c.id).where(mine)) is not None


def list_stops(connection: Connection, session: int) -> list[EarlyStop]:
    """Where a session's questions ended early."""
    names = ("image", "item", "until", "answers", "expected_error")
    wanted = select(*(stops.c[name] for name in names)).where(stops.c.session == session)
    return [EarlyStop(*row) for row in connection.execute(wanted.order_by(stops.c.item))]


@dataclass(frozen=True)
class ImageOutcome:
    """How well a session knew an image when it last chose pairs, or stopped: the error expected after so many answers.

    In a crowd the answers of a stop are the session's own, those of a choice everybody's.
    """

    image: str
    answers: int
    expected_error: float
    is_stop: bool


def list_outcomes(db: Database, study: int, participant: str) -> list[ImageOutcome]:
    """The last word on each image of a participant."""
    mine = (
        select(sessions.c.id)
        .join(participants)
        .where(sessions.c.study == study, participants.c.name == participant)
    )
    found: dict[str, ImageOutcome] = {}
    with db.reading() as connection:
        for table, order in ((batches, batches.c.id), (stops, stops.c.item)):
            wanted = select(table.c.image, table.c.answers, table.c.expected_error).where(
                table.c.session.in_(mine)
            )
            for row in connection.execute(wanted.order_by(order)):
                found[row.image] = ImageOutcome(*row, is_stop=table is stops)
    return list(found.values())


def list_skipped_items(found: Iterable[EarlyStop]) -> set[int]:
    """The items that are not asked."""
    return {item for each in found for item in range(each.item, each.until)}


def list_choices(connection: Connection, session: int) -> list[dict[str, Any]]:
    """Every choice of a session with its batch, a dict a choice; `taken` lists (session's name, records, ahead)."""
    wanted = (
        select(choices, *(batches.c[name] for name in ABOUT))
        .join(batches, batches.c.id == choices.c.batch)
        .where(choices.c.session == session)
        .order_by(choices.c.item)
    )
    knew = (
        select(takings.c.batch, sessions.c.name, takings.c.records, takings.c.ahead)
        .join(sessions, sessions.c.id == takings.c.session)
        .where(takings.c.batch.in_(select(batches.c.id).where(batches.c.session == session)))
        .order_by(takings.c.session)
    )
    taken: dict[int, list[tuple[str, int, int]]] = {}
    for row in connection.execute(knew):
        taken.setdefault(row.batch, []).append((row.name, row.records, row.ahead))
    return [{**row, "taken": taken.get(row["batch"], [])} for row in connection.execute(wanted).mappings()]
