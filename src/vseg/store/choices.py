"""The pairs that an adaptive study chose, what each choice was based on, and where it stopped early.

A choice is stored before it is sent to the page and never changes. What a batch of choices was based on is stored as
numbers only: for each session, all records below `records` were known, and the choices for items below `ahead` were not
answered yet. So the choices can be repeated from the responses, with the same result. Batches are ordered by `id`; a
batch that knows more than the ones before has taken the new answers session by session, in the order in which the
sessions began.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from sqlalchemy import Connection, func, insert, select

from vseg.adaptive.history import AdaptiveAnswer, Pair
from vseg.data.responses import is_real_trial
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

BATCH_COLUMNS = ("image", "rule", "seed", "answers", "expected_error", "chosen_at_ms")
"""The columns of a batch that `list_choices` adds to each choice."""


@dataclass(frozen=True)
class SessionAnswers:
    """The answers among the records of a session, from some number up to `records` (excluded), without gaps."""

    records: int
    answers: list[AdaptiveAnswer]


class SessionBasis(NamedTuple):
    """What a batch knew of a session: all records below `records`; choices for items below `ahead` were unanswered."""

    records: int
    ahead: int


@dataclass(frozen=True)
class ChoiceBatch:
    """Pairs that were chosen together for a session; `basis` says what was known of each session, by its id.

    `name` is that of the session: an erased session may have left its id to another one.
    """

    session: int
    name: str
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
    """An early stop for one image: the items from `item` to before `until` are not asked."""

    image: str
    item: int
    until: int
    answers: int
    expected_error: float


class ContributingSession(NamedTuple):
    """A session whose answers other sessions may use; known by name, since SQLite reuses the ids of erased sessions."""

    name: str
    is_active: bool = True


@dataclass(frozen=True)
class ImageOutcome:
    """The state of an image when pairs were last chosen or it was stopped early.

    `answers` are those that the expected error is based on: for a choice of a shared study those of all participants,
    for a stop only those of this session.
    """

    image: str
    answers: int
    expected_error: float
    is_stop: bool


class ChoiceRow(TypedDict):
    """A choice with its batch, as it is exported; `taken` lists (name of a session, records, ahead)."""

    session: int
    item: int
    batch: int
    i: int
    j: int
    image: str
    rule: str
    seed: int
    answers: int
    expected_error: float
    chosen_at_ms: int
    taken: list[tuple[str, int, int]]


def read_answers(connection: Connection, session_id: int, since: int = 0) -> SessionAnswers:
    """Return the answers among the records of a session from number `since` on, up to the first missing record."""
    c = responses.c
    names = ("seq", "item", "image", "i", "j", "same", "flags", "practice", "catch", "chosen")
    rows = connection.execute(
        select(*(c[name] for name in names)).where(c.session == session_id, c.seq >= since).order_by(c.seq)
    ).all()
    event_seqs = connection.scalars(
        select(events.c.seq).where(events.c.session == session_id, events.c.seq >= since)
    ).all()
    arrived = {row.seq for row in rows} | set(event_seqs)
    records = since
    while records in arrived:
        records += 1
    return SessionAnswers(
        records,
        [
            AdaptiveAnswer(row.seq, row.item, row.image, row.i, row.j, row.same, not row.flags, row.chosen)
            for row in rows
            if row.seq < records and is_real_trial(practice=row.practice, catch=row.catch)
        ],
    )


def list_contributing_sessions(
    connection: Connection, study_id: int, image: str
) -> dict[int, ContributingSession]:
    """Return the sessions whose answers about an image count, by id, in the order in which they began."""
    query = (
        select(sessions.c.id, sessions.c.name, sessions.c.status)
        .join(assignments, assignments.c.session == sessions.c.id)
        .where(sessions.c.study == study_id, assignments.c.image == image, sessions.c.status != "withdrawn")
        .order_by(sessions.c.id)
    )
    return {
        row.id: ContributingSession(row.name, row.status == "active") for row in connection.execute(query)
    }


def list_chosen_pairs(
    connection: Connection, image: str, session_ids: Collection[int]
) -> dict[int, dict[int, Pair]]:
    """Return the pairs of an image that were chosen for each of these sessions, by item."""
    query = (
        select(choices.c.session, choices.c.item, choices.c.i, choices.c.j)
        .join(batches, batches.c.id == choices.c.batch)
        .where(choices.c.session.in_(session_ids), batches.c.image == image)
        .order_by(choices.c.session, choices.c.item)
    )
    pairs: dict[int, dict[int, Pair]] = {}
    for row in connection.execute(query):
        pairs.setdefault(row.session, {})[row.item] = (row.i, row.j)
    return pairs


def list_bases(
    connection: Connection, image: str, session_ids: Collection[int], since: int = 0
) -> dict[int, dict[int, int]]:
    """Return for each batch of an image with an id above `since` how many records of which sessions it knew."""
    query = (
        select(takings.c.batch, takings.c.session, takings.c.records)
        .join(batches, batches.c.id == takings.c.batch)
        .where(batches.c.image == image, batches.c.id > since, batches.c.session.in_(session_ids))
        .order_by(takings.c.batch, takings.c.session)
    )
    bases: dict[int, dict[int, int]] = {}
    for row in connection.execute(query):
        bases.setdefault(row.batch, {})[row.session] = row.records
    return bases


def save_batch(
    db: Database,
    batch: ChoiceBatch,
    *,
    after: int,
    session_ids: Collection[int],
    now_ms: int | None = None,
) -> int | None:
    """Store a batch before it is sent to the page; return its id, or None if it came too late and was not stored.

    Parameters
    ----------
    db : Database
        The open database.
    batch : ChoiceBatch
        It is too late if its session is over or if one of its items already has a chosen pair.
    after : int
        The last batch of the image that the batch knew. It is too late if these sessions have a newer one: another
        worker has chosen meanwhile, and its choice is valid.
    session_ids : collection of int
        The sessions that share their answers about the image.
    now_ms : int, optional
        The current time by default.

    Returns
    -------
    int or None
        The id of the batch.
    """
    is_about_image = (batches.c.image == batch.image) & batches.c.session.in_(session_ids)
    has_same_items = (choices.c.session == batch.session) & choices.c.item.in_(batch.items)
    with db.writing() as connection:
        # All batches of sharing sessions lock the first of these sessions, so that they are stored one after the other;
        # the lock on the session itself keeps it from ending.
        lock_ids = {min(session_ids), batch.session}
        lock = select(sessions.c.id).where(sessions.c.id.in_(lock_ids)).order_by(sessions.c.id)
        connection.execute(lock.with_for_update(key_share=True))
        existing = set(connection.scalars(select(sessions.c.id).where(sessions.c.id.in_(session_ids))))
        last = connection.scalar(select(func.max(batches.c.id)).where(is_about_image)) or 0
        already_chosen = connection.scalar(select(func.count()).where(has_same_items))
        if not _is_active(connection, batch.session, batch.name) or last != after or already_chosen:
            return None
        batch_row = insert(batches).values(
            session=batch.session, image=batch.image, rule=batch.rule, seed=batch.seed, answers=batch.answers,
            expected_error=batch.expected_error, chosen_at_ms=clock_ms() if now_ms is None else now_ms,
        )  # fmt: skip
        key = connection.execute(batch_row).inserted_primary_key
        assert key is not None
        batch_id = int(key[0])
        basis_rows = [
            {"batch": batch_id, "session": session, **basis._asdict()}
            for session, basis in batch.basis.items()
            if session in existing  # it may have been erased meanwhile
        ]
        connection.execute(insert(takings), basis_rows)
        choice_rows = [
            {"session": batch.session, "batch": batch_id, "item": item, "i": i, "j": j}
            for item, i, j in zip(batch.items, batch.i, batch.j, strict=True)
        ]
        connection.execute(insert(choices), choice_rows)
    return batch_id


def get_chosen_pairs(db: Database, session_id: int) -> dict[int, Pair]:
    """Return the chosen pair of each item of a session that has one, in the order of the items."""
    query = select(choices.c.item, choices.c.i, choices.c.j).where(choices.c.session == session_id)
    with db.reading() as connection:
        return {row.item: (row.i, row.j) for row in connection.execute(query.order_by(choices.c.item))}


def list_fixed_items(db: Database, session_id: int) -> set[int]:
    """Return the items that were answered with the pair in the session's trials; they keep it when asked again."""
    query = select(responses.c.item).where(responses.c.session == session_id, ~responses.c.chosen)
    with db.reading() as connection:
        return set(connection.scalars(query))


def save_stop(
    db: Database, session_id: int, name: str, stop: EarlyStop, *, now_ms: int | None = None
) -> None:
    """Store an early stop, unless the session is over or the image already has a stop."""
    row = {**vars(stop), "session": session_id, "stopped_at_ms": clock_ms() if now_ms is None else now_ms}
    with db.writing() as connection:
        lock = select(sessions.c.id).where(sessions.c.id == session_id).with_for_update(key_share=True)
        connection.execute(lock)
        if _is_active(connection, session_id, name):
            connection.execute(db.insert_or_ignore(stops), [row])


def _is_active(connection: Connection, session_id: int, name: str) -> bool:
    """Return whether the session exists, has this name and is active."""
    is_this = (sessions.c.id == session_id) & (sessions.c.name == name) & (sessions.c.status == "active")
    return connection.scalar(select(sessions.c.id).where(is_this)) is not None


def list_stops(connection: Connection, session_id: int) -> list[EarlyStop]:
    """Return the early stops of a session, in the order of the items."""
    names = ("image", "item", "until", "answers", "expected_error")
    query = select(*(stops.c[name] for name in names)).where(stops.c.session == session_id)
    return [EarlyStop(*row) for row in connection.execute(query.order_by(stops.c.item))]


def list_skipped_items(early_stops: Iterable[EarlyStop]) -> set[int]:
    """Return the items that are not asked because of early stops."""
    return {item for stop in early_stops for item in range(stop.item, stop.until)}


def list_outcomes(db: Database, study_id: int, participant: str) -> list[ImageOutcome]:
    """Return the last known state of each image of a participant."""
    own_sessions = (
        select(sessions.c.id)
        .join(participants)
        .where(sessions.c.study == study_id, participants.c.name == participant)
    )
    outcomes: dict[str, ImageOutcome] = {}
    with db.reading() as connection:
        for table, order in ((batches, batches.c.id), (stops, stops.c.item)):
            query = select(table.c.image, table.c.answers, table.c.expected_error).where(
                table.c.session.in_(own_sessions)
            )
            for row in connection.execute(query.order_by(order)):
                outcomes[row.image] = ImageOutcome(*row, is_stop=table is stops)
    return list(outcomes.values())


def list_choices(connection: Connection, session_id: int) -> list[ChoiceRow]:
    """Return every choice of a session with its batch, in the order of the items."""
    query = (
        select(choices, *(batches.c[name] for name in BATCH_COLUMNS))
        .join(batches, batches.c.id == choices.c.batch)
        .where(choices.c.session == session_id)
        .order_by(choices.c.item)
    )
    basis_query = (
        select(takings.c.batch, sessions.c.name, takings.c.records, takings.c.ahead)
        .join(sessions, sessions.c.id == takings.c.session)
        .where(takings.c.batch.in_(select(batches.c.id).where(batches.c.session == session_id)))
        .order_by(takings.c.session)
    )
    taken: dict[int, list[tuple[str, int, int]]] = {}
    for row in connection.execute(basis_query):
        taken.setdefault(row.batch, []).append((row.name, row.records, row.ahead))
    return [
        ChoiceRow(**row, taken=taken.get(row["batch"], []))  # type: ignore[typeddict-item]
        for row in connection.execute(query).mappings()
    ]
