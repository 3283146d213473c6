"""Sessions as they are stored, and how to find them."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, Connection, func, select

from vseg.errors import NotAllowed, NotFound
from vseg.store.database import Database
from vseg.store.schema import assignments, participants, sessions
from vseg.store.tokens import hash_token
from vseg.study.trials import Trials, Unit

SessionStatus = Literal["active", "completed", "left", "withdrawn", "ended"]
NO_SESSION_MESSAGE = "This token belongs to no session of this study; open the study's link again."


@dataclass(frozen=True, kw_only=True)
class SessionTrials:
    """The part of a session that is needed to accept its answers."""

    id: int
    name: str
    study: int
    trials: Trials


@dataclass(frozen=True, kw_only=True)
class SessionRow(SessionTrials):
    """A session with everything that is stored about it, except its records."""

    participant: str
    status: SessionStatus
    units: list[Unit]
    software: dict[str, str]
    started_at_ms: int
    finished_at_ms: int | None


def get_by_token(db: Database, token: str) -> SessionRow:
    """Return the session with this token; `NotAllowed` if there is none."""
    with db.reading() as connection:
        for row in _load_rows(connection, sessions.c.token_hash == hash_token(token)):
            return row
    raise NotAllowed(NO_SESSION_MESSAGE)


def find_by_token_hashes(db: Database, token_hashes: Collection[str]) -> dict[str, SessionTrials]:
    """Load the sessions with these token hashes in one query, by token hash; omit unknown ones."""
    query = select(sessions.c.token_hash, sessions.c.id, sessions.c.name, sessions.c.study, sessions.c.trials)
    has_trials = sessions.c.trials.is_not(None)
    with db.reading() as connection:
        rows = connection.execute(query.where(sessions.c.token_hash.in_(token_hashes), has_trials)).all()
    return {
        row.token_hash: SessionTrials(
            id=row.id, name=row.name, study=row.study, trials=Trials.from_json(row.trials)
        )
        for row in rows
    }


def list_latest_token_hashes(db: Database, count: int) -> list[str]:
    """Return the token hashes of those of the last `count` sessions that are active and have trials."""
    is_late = sessions.c.id > select(func.max(sessions.c.id) - count).scalar_subquery()
    is_ready = (sessions.c.status == "active") & sessions.c.trials.is_not(None)
    query = select(sessions.c.token_hash).where(is_late, is_ready).order_by(sessions.c.id)
    with db.reading() as connection:
        return list(connection.scalars(query))


def get_session(db: Database, session_id: int) -> SessionRow:
    """Return the session with this id; `NotFound` if there is none."""
    with db.reading() as connection:
        for row in _load_rows(connection, sessions.c.id == session_id):
            return row
    raise NotFound("There is no such session any more.")


def _load_rows(connection: Connection, condition: ColumnElement[bool]) -> list[SessionRow]:
    columns = [
        column for column in sessions.c if column.name not in ("participant", "token_hash", "entry_hash")
    ]
    query = select(*columns, participants.c.name.label("participant")).join(participants)
    rows = connection.execute(
        query.where(condition, sessions.c.trials.is_not(None)).order_by(sessions.c.id)
    ).all()
    units = list_units(connection, condition)
    return [
        SessionRow(
            **row._asdict()
            | {
                "trials": Trials.from_json(row.trials),
                "software": json.loads(row.software),
                "units": units.get(row.id, []),
            }
        )
        for row in rows
    ]


def list_units(connection: Connection, condition: ColumnElement[bool]) -> dict[int, list[Unit]]:
    """Return the assigned units of the sessions that meet a condition, in the order of presentation."""
    query = select(assignments.c.session, assignments.c.image, assignments.c.unit).join(sessions)
    units: dict[int, list[Unit]] = {}
    for row in connection.execute(
        query.where(condition).order_by(assignments.c.session, assignments.c.position)
    ):
        units.setdefault(row.session, []).append(Unit(row.image, row.unit))
    return units
