"""All that a study holds at one instant, session by session: what an export reads.

One transaction from the first row to the last, so that whoever answers or withdraws meanwhile is in all of an
export or in none. A session is read when it is asked for: no more than one is held at a time.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Table, func, select

from vseg.store.choices import EarlyStop, list_choices, list_stops
from vseg.store.database import Database
from vseg.store.schema import events, identities, participants, responses, sessions
from vseg.store.sessions import Identity
from vseg.store.sessions.rows import list_units
from vseg.store.studies import StudyRow
from vseg.study.trials import Trials, Unit


@dataclass(frozen=True)
class SnapshotSession:
    """A session without its trials and answers."""

    id: int
    name: str
    participant: str
    status: str
    software: dict[str, str]
    started_at_ms: int
    finished_at_ms: int | None
    units: list[Unit]


@dataclass(frozen=True)
class Snapshot:
    """The sessions of a study, in order; of those withdrawn, only the number."""

    sessions: list[SnapshotSession]
    withdrawn: int
    _study: int
    _connection: Connection

    def trials(self, session: SnapshotSession) -> Trials:
        """What the session was given to do."""
        stored = self._connection.scalar(select(sessions.c.trials).where(sessions.c.id == session.id))
        assert stored is not None  # only sessions with trials are in a snapshot
        return Trials.from_json(stored)

    def responses(self, session: SnapshotSession) -> dict[str, list[Any]]:
        """All its answers, a list a column, in the order in which they were given."""
        return self._columns(responses, session)

    def events(self, session: SnapshotSession) -> dict[str, list[Any]]:
        """Everything else it reported; `data` is JSON."""
        return self._columns(events, session)

    def choices(self, session: SnapshotSession) -> list[dict[str, Any]]:
        """The pairs that were chosen for it, with what they followed from."""
        return list_choices(self._connection, session.id)

    def stops(self, session: SnapshotSession) -> list[EarlyStop]:
        """Where its questions ended early."""
        return list_stops(self._connection, session.id)

    def identities(self) -> dict[str, Identity]:
        """Who the participants are on Prolific, by their names here."""
        names = [field.name for field in fields(Identity)]
        wanted = select(participants.c.name, *(identities.c[name] for name in names)).join(participants)
        rows = self._connection.execute(
            wanted.where(identities.c.study == self._study).order_by(participants.c.id)
        )
        return {name: Identity(*who) for name, *who in rows}

    def _columns(self, table: Table, session: SnapshotSession) -> dict[str, list[Any]]:
        wanted = [column for column in table.c if column.name != "session"]
        rows = self._connection.execute(
            select(*wanted).where(table.c.session == session.id).order_by(table.c.seq)
        ).all()
        columns = zip(*rows, strict=True) if rows else ((),) * len(wanted)
        return {column.name: list(values) for column, values in zip(wanted, columns, strict=True)}


@contextmanager
def take_snapshot(db: Database, study: StudyRow) -> Iterator[Snapshot]:
    """The study as it is now, for as long as the block lasts."""
    with db.reading() as connection:
        if not db.is_sqlite:  # on SQLite every transaction is one
            connection.execution_options(isolation_level="REPEATABLE READ")
        columns = [
            sessions.c[name]
            for name in ("id", "name", "status", "software", "started_at_ms", "finished_at_ms")
        ]
        mine = (
            (sessions.c.study == study.id)
            & sessions.c.trials.is_not(None)
            & (sessions.c.status != "withdrawn")
        )
        heads_of = select(*columns, participants.c.name.label("participant")).join(participants)
        rows = connection.execute(heads_of.where(mine).order_by(sessions.c.id)).all()
        units = list_units(connection, sessions.c.study == study.id)
        gone = select(func.count()).where(sessions.c.study == study.id, sessions.c.status == "withdrawn")
        heads = [
            SnapshotSession(
                **row._asdict() | {"software": json.loads(row.software), "units": units.get(row.id, [])}
            )
            for row in rows
        ]
        yield Snapshot(heads, connection.scalar(gone) or 0, study.id, connection)
