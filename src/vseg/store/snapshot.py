"""Read all data of a study, session by session, as they are at one moment; used by the export.

Everything is read in one transaction, so that responses and withdrawals that arrive meanwhile do not show. The data of
a session are read when they are requested, so that only one session is in memory at a time.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Table, func, select

from vseg.store.choices import ChoiceRow, EarlyStop, list_choices, list_stops
from vseg.store.database import Database
from vseg.store.schema import events, identities, participants, responses, sessions
from vseg.store.sessions import Identity
from vseg.store.sessions.rows import SessionStatus, list_units
from vseg.store.studies import StudyRow
from vseg.study.trials import Trials, Unit


@dataclass(frozen=True)
class SnapshotSession:
    """A session without its trials and responses."""

    id: int
    name: str
    participant: str
    status: SessionStatus
    software: dict[str, str]
    started_at_ms: int
    finished_at_ms: int | None
    units: list[Unit]


@dataclass(frozen=True)
class Snapshot:
    """The sessions of a study, in the order in which they began, and the number of withdrawn sessions."""

    sessions: list[SnapshotSession]
    withdrawn: int
    _study_id: int
    _connection: Connection

    def trials(self, session: SnapshotSession) -> Trials:
        """Return the trials of a session."""
        stored = self._connection.scalar(select(sessions.c.trials).where(sessions.c.id == session.id))
        assert stored is not None  # only sessions with trials are in a snapshot
        return Trials.from_json(stored)

    def responses(self, session: SnapshotSession) -> dict[str, list[Any]]:
        """Return the columns of all responses of a session, in the order in which they were given."""
        return self._read_columns(responses, session)

    def events(self, session: SnapshotSession) -> dict[str, list[Any]]:
        """Return the columns of all events of a session; `data` is JSON."""
        return self._read_columns(events, session)

    def choices(self, session: SnapshotSession) -> list[ChoiceRow]:
        """Return the pairs that were chosen for a session, with what the choice was based on."""
        return list_choices(self._connection, session.id)

    def stops(self, session: SnapshotSession) -> list[EarlyStop]:
        """Return where a session was stopped early."""
        return list_stops(self._connection, session.id)

    def identities(self) -> dict[str, Identity]:
        """Return the Prolific identities of the participants, by their random names."""
        names = [field.name for field in fields(Identity)]
        query = select(participants.c.name, *(identities.c[name] for name in names)).join(participants)
        rows = self._connection.execute(
            query.where(identities.c.study == self._study_id).order_by(participants.c.id)
        )
        return {name: Identity(*identity) for name, *identity in rows}

    def _read_columns(self, table: Table, session: SnapshotSession) -> dict[str, list[Any]]:
        columns = [column for column in table.c if column.name != "session"]
        rows = self._connection.execute(
            select(*columns).where(table.c.session == session.id).order_by(table.c.seq)
        ).all()
        values = zip(*rows, strict=True) if rows else ((),) * len(columns)
        return {column.name: list(cells) for column, cells in zip(columns, values, strict=True)}


@contextmanager
def take_snapshot(db: Database, study: StudyRow) -> Iterator[Snapshot]:
    """Open a transaction that shows a study as it is now until the block ends."""
    with db.reading() as connection:
        if not db.is_sqlite:  # on SQLite every transaction reads a snapshot
            connection.execution_options(isolation_level="REPEATABLE READ")
        columns = [
            sessions.c[name]
            for name in ("id", "name", "status", "software", "started_at_ms", "finished_at_ms")
        ]
        is_exported = (
            (sessions.c.study == study.id)
            & sessions.c.trials.is_not(None)
            & (sessions.c.status != "withdrawn")
        )
        query = select(*columns, participants.c.name.label("participant")).join(participants)
        rows = connection.execute(query.where(is_exported).order_by(sessions.c.id)).all()
        units = list_units(connection, sessions.c.study == study.id)
        is_withdrawn = (sessions.c.study == study.id) & (sessions.c.status == "withdrawn")
        withdrawn = connection.scalar(select(func.count()).where(is_withdrawn)) or 0
        snapshot_sessions = [
            SnapshotSession(
                **row._asdict() | {"software": json.loads(row.software), "units": units.get(row.id, [])}
            )
            for row in rows
        ]
        yield Snapshot(snapshot_sessions, withdrawn, study.id, connection)
