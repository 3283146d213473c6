"""The course of a session: how far it is, and how it ends."""

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, delete, select, update

from vseg.errors import Conflict, NotFound
from vseg.store import choices, vacuum
from vseg.store.database import Database, now_ms as clock_ms
from vseg.store.schema import RECORD_TABLES, events, identities, responses, sessions
from vseg.store.sessions.rows import SessionRow

CLOCK_RESET_MS = 60_000  # a clock that falls by more between two records was set anew


@dataclass(frozen=True)
class SessionProgress:
    """How far a session is: the number of its next record, when it was last heard of, its answers in order.

    `answered_at_ms` is when the last answer was given, or the session began: events that a page sends by itself when
    it is opened again do not count there. Both times are the server's, but of what happened, not of its arrival: a
    page that was offline, or closed, sends what it had kept when it is back. `answers` are (seq, item, flags);
    `restarts` are (seq, item): the page said with its record `seq` that the block of `item` begins again.
    """

    next_seq: int
    last_at_ms: int
    answered_at_ms: int
    answers: list[tuple[int, int, str]]
    restarts: list[tuple[int, int]]


def get_progress(db: Database, session: SessionRow) -> SessionProgress:
    """What has arrived of a session so far."""
    mine = select(
        responses.c.seq,
        responses.c.item,
        responses.c.flags,
        responses.c.shown_at_ms.label("at_ms"),
        responses.c.received_at_ms,
    )
    with db.reading() as connection:
        answers = connection.execute(
            mine.where(responses.c.session == session.id).order_by(responses.c.seq)
        ).all()
        others = connection.execute(
            select(events.c.seq, events.c.at_ms, events.c.received_at_ms).where(
                events.c.session == session.id
            )
        ).all()
        resumed = connection.execute(
            select(events.c.seq, events.c.data)
            .where(events.c.session == session.id, events.c.kind == "resumed")
            .order_by(events.c.seq)
        ).all()
    heard = sorted((*answers, *others), key=lambda row: row.seq)
    # The page's clock may be wrong, but it is one clock, at least since the page was opened last, perhaps on another
    # device, or since it was set back: the record that was under way the least tells by how much.
    set_back = [row.seq for before, row in pairwise(heard) if row.at_ms < before.at_ms - CLOCK_RESET_MS]
    since = max((*set_back, *(row.seq for row in resumed)), default=0)
    behind = min((row.received_at_ms - row.at_ms for row in heard if row.seq >= since), default=0)

    def happened_at_ms(row: Any) -> int:
        return int(row.at_ms + behind if row.seq >= since else row.received_at_ms)

    items = range(len(session.trials))
    repeats = [(row.seq, json.loads(row.data).get("repeat")) for row in resumed]
    return SessionProgress(
        next_seq=max((row.seq for row in heard), default=-1) + 1,
        last_at_ms=max(map(happened_at_ms, heard), default=session.started_at_ms),
        answered_at_ms=max(map(happened_at_ms, answers), default=session.started_at_ms),
        answers=[(row.seq, row.item, row.flags) for row in answers],
        restarts=[(seq, item) for seq, item in repeats if type(item) is int and item in items],
    )


def complete(db: Database, session: SessionRow, count: int) -> list[int]:
    """Mark a session completed if records 0..count-1 are all here; else return the numbers of those that are not.

    `Conflict` if the session has ended otherwise ("ended"), or if a trial has no answer at all ("unanswered").
    """
    with db.writing() as connection:
        status = _locked_status(connection, session)
        if status == "completed":
            return []
        if status != "active":
            raise Conflict(f"This session is {status} and cannot be completed any more.", "ended")
        arrived, answered = _arrived(connection, session.id)
        if missing := sorted(set(range(count)) - arrived):
            return missing
        asked = set(range(len(session.trials))) - choices.list_skipped_items(
            choices.list_stops(connection, session.id)
        )
        if unanswered := sorted(asked - answered):
            raise Conflict(
                f"{len(unanswered)} of {len(asked)} trials have no answer yet, the first is item "
                f"{unanswered[0]}; a session is completed when all have one.",
                "unanswered",
            )
        _finish(connection, session, "completed")
    return []


def leave(db: Database, session: SessionRow, keep: bool) -> None:
    """End a session before its end. Without `keep`, all that it sent and whose it was is erased, at any time."""
    with db.writing() as connection:
        status = _locked_status(connection, session)
        if not keep and status != "withdrawn":
            _finish(connection, session, "withdrawn")
            for table in RECORD_TABLES:
                connection.execute(delete(table).where(table.c.session == session.id))
            whose = select(sessions.c.participant).where(sessions.c.id == session.id).scalar_subquery()
            connection.execute(delete(identities).where(identities.c.participant == whose))
            vacuum.mark_due(connection)
        elif keep and status == "active":
            _finish(connection, session, "left")


def end(db: Database, session: SessionRow) -> None:
    """End a session that was away for longer than its study allows."""
    with db.writing() as connection:
        if _locked_status(connection, session) == "active":
            _finish(connection, session, "ended")


def _arrived(connection: Connection, session: int) -> tuple[set[int], set[int]]:
    """The numbers of all records that are here, and the items that have an answer."""
    answers = connection.execute(
        select(responses.c.seq, responses.c.item).where(responses.c.session == session)
    ).all()
    others = connection.scalars(select(events.c.seq).where(events.c.session == session)).all()
    return {row.seq for row in answers} | set(others), {row.item for row in answers}


def _locked_status(connection: Connection, session: SessionRow) -> str:
    wanted = select(sessions.c.status).where(sessions.c.id == session.id).with_for_update()
    status = connection.scalar(wanted)
    if status is None:
        raise NotFound("There is no such session any more.")
    return status


def _finish(connection: Connection, session: SessionRow, status: str) -> None:
    mine = update(sessions).where(sessions.c.id == session.id)
    connection.execute(mine.values(status=status, finished_at_ms=clock_ms()))
