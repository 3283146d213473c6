"""The course of a session: its progress, and how it is completed, left or ended."""

import json
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from sqlalchemy import Connection, Row, delete, func, select, update

from vseg.errors import Conflict, NotFound
from vseg.store import choices, vacuum
from vseg.store.database import Database, now_ms as clock_ms
from vseg.store.schema import RECORD_TABLES, events, identities, responses, sessions
from vseg.store.sessions.rows import SessionRow
from vseg.store.studies import StudyRow
from vseg.study.trials import MAX_ATTEMPTS

CLOCK_RESET_MS = 60_000  # if the clock goes back by more between two records, it was set anew


@dataclass(frozen=True)
class SessionProgress:
    """How far a session is.

    Both times are by the server's clock, but tell when something happened, not when the record arrived: a page that was
    offline or closed sends its records later.

    Parameters
    ----------
    next_seq : int
        The number of the next record.
    last_at_ms : int
        When the session last did anything.
    answered_at_ms : int
        When the last answer was given, or the session began; events, which a page also sends by itself when it is
        opened again, do not count.
    answers : list of (int, int, str)
        The number (seq), item and flags of each answer, in order.
    restarts : list of (int, int)
        (seq, item): with its record `seq` the page reported that the block of `item` begins again.
    """

    next_seq: int
    last_at_ms: int
    answered_at_ms: int
    answers: list[tuple[int, int, str]]
    restarts: list[tuple[int, int]]


def get_progress(db: Database, session: SessionRow) -> SessionProgress:
    """Return the progress of a session according to the records that have arrived."""
    query = select(
        responses.c.seq,
        responses.c.item,
        responses.c.flags,
        responses.c.shown_at_ms.label("at_ms"),
        responses.c.received_at_ms,
    )
    with db.reading() as connection:
        answers = connection.execute(
            query.where(responses.c.session == session.id).order_by(responses.c.seq)
        ).all()
        event_rows = connection.execute(
            select(events.c.seq, events.c.at_ms, events.c.received_at_ms).where(
                events.c.session == session.id
            )
        ).all()
        resumed = connection.execute(
            select(events.c.seq, events.c.data)
            .where(events.c.session == session.id, events.c.kind == "resumed")
            .order_by(events.c.seq)
        ).all()
    records = sorted((*answers, *event_rows), key=lambda row: row.seq)
    # The page's clock may be wrong, but by a constant offset since the page was last opened (perhaps on another device)
    # or the clock was set back. The record with the shortest way to the server gives the best estimate of the offset.
    # If the clock was set forward by more than the session is old, the estimate is before its beginning: then the
    # server's clock counts, as it does in any case for the latest time at which something can have happened.
    resets = [row.seq for before, row in pairwise(records) if row.at_ms < before.at_ms - CLOCK_RESET_MS]
    since = max((*resets, *(row.seq for row in resumed)), default=0)
    offset_ms = min((row.received_at_ms - row.at_ms for row in records if row.seq >= since), default=0)

    def happened_at_ms(row: Row) -> int:
        at_ms = row.at_ms + offset_ms
        return int(at_ms if row.seq >= since and at_ms >= session.started_at_ms else row.received_at_ms)

    items = range(len(session.trials))
    repeats = [(row.seq, json.loads(row.data).get("repeat")) for row in resumed]
    return SessionProgress(
        next_seq=max((row.seq for row in records), default=-1) + 1,
        last_at_ms=max(map(happened_at_ms, records), default=session.started_at_ms),
        answered_at_ms=max(map(happened_at_ms, answers), default=session.started_at_ms),
        answers=[(row.seq, row.item, row.flags) for row in answers],
        restarts=[(seq, item) for seq, item in repeats if type(item) is int and item in items],
    )


def complete(db: Database, session: SessionRow, count: int) -> list[int]:
    """Mark a session completed if records 0 to count - 1 are stored; else return the numbers of the missing ones.

    `Conflict` is raised if the session has ended in another way ("ended"), or if a trial has no answer, or only flagged
    ones although it must be asked again ("unanswered").
    """
    with db.writing() as connection:
        status = _lock_session(connection, session)
        if status == "completed":
            return []
        if status != "active":
            raise Conflict(f"This session is {status} and cannot be completed any more.", "ended")
        arrived, answered = _list_arrived(connection, session.id)
        if missing := sorted(set(range(count)) - arrived):
            return missing
        skipped = choices.list_skipped_items(choices.list_stops(connection, session.id))
        items = set(range(len(session.trials))) - skipped
        if unanswered := sorted(items - answered):
            raise Conflict(
                f"{len(unanswered)} of {len(items)} trials have no answer yet or have to be asked again, the first is "
                f"item {unanswered[0]}; answer all trials before you complete the session.",
                "unanswered",
            )
        _finish(connection, session, "completed")
    return []


def is_too_fast(db: Database, study: StudyRow, session: SessionRow) -> bool:
    """Return whether the last answer arrived sooner after the session began than its trials take to be shown."""
    query = select(func.count(), func.max(responses.c.received_at_ms)).where(
        responses.c.session == session.id
    )
    with db.reading() as connection:
        count, answered_at_ms = connection.execute(query).one()
    return study.study.timing.is_too_fast(count, session.started_at_ms, answered_at_ms)


def leave(db: Database, session: SessionRow, keep: bool) -> None:
    """Leave a session early; without `keep` it is withdrawn: its records and the participant's identity are deleted.

    A session can be withdrawn at any time, also after it was completed.
    """
    with db.writing() as connection:
        status = _lock_session(connection, session)
        if not keep and status != "withdrawn":
            _finish(connection, session, "withdrawn")
            for table in RECORD_TABLES:
                connection.execute(delete(table).where(table.c.session == session.id))
            participant = select(sessions.c.participant).where(sessions.c.id == session.id).scalar_subquery()
            connection.execute(delete(identities).where(identities.c.participant == participant))
            vacuum.mark_due(connection)
        elif keep and status == "active":
            _finish(connection, session, "left")


def end(db: Database, session: SessionRow) -> None:
    """End a session that was interrupted for longer than its study allows."""
    with db.writing() as connection:
        if _lock_session(connection, session) == "active":
            _finish(connection, session, "ended")


def _list_arrived(connection: Connection, session_id: int) -> tuple[set[int], set[int]]:
    """Return the numbers of all stored records, and the items that need no further answer.

    Such an item has an answer without flags, or was asked as often as a trial is that is never shown right. A page that
    repeats a block asks its items more often, so restarts need not be considered.
    """
    columns = (responses.c.seq, responses.c.item, responses.c.flags)
    answers = connection.execute(select(*columns).where(responses.c.session == session_id)).all()
    event_seqs = connection.scalars(select(events.c.seq).where(events.c.session == session_id)).all()
    attempts = Counter(row.item for row in answers)
    done = {row.item for row in answers if not row.flags or attempts[row.item] >= MAX_ATTEMPTS}
    return {row.seq for row in answers} | set(event_seqs), done


def _lock_session(connection: Connection, session: SessionRow) -> str:
    """Lock a session and return its status; `NotFound` if it was erased."""
    query = select(sessions.c.status).where(sessions.c.id == session.id).with_for_update()
    status = connection.scalar(query)
    if status is None:
        raise NotFound("There is no such session any more.")
    return status


def _finish(connection: Connection, session: SessionRow, status: str) -> None:
    change = update(sessions).where(sessions.c.id == session.id)
    connection.execute(change.values(status=status, finished_at_ms=clock_ms()))
