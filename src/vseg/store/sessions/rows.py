"""A session as it is stored, and how to find it."""

import json
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, select

from vseg.errors import NotAllowed, NotFound
from vseg.store.database import Database
from vseg.store.schema import assignments, participants, sessions
from vseg.store.tokens import hash_token
from vseg.study.trials import Trials, Unit

NO_SESSION_MESSAGE = "This token belongs to no session of this study; open the study's link again."


@dataclass(frozen=True, kw_only=True)
class SessionTrials:
    """What a session is asked: enough of it to take its answers."""

    id: int
    name: str
    study: int
    trials: Trials


@dataclass(frozen=True, kw_only=True)
class SessionRow(SessionTrials):
    """One way through the experiment. `status`: active, completed, left, withdrawn or ended."""

    participant: str
    status: str
    units: list[Unit]
    software: dict[str, str]
    started_at_ms: int
    finished_at_ms: int | None


def get_by_token(db: Database, token: str) -> SessionRow:
    """The session a token belongs to; `NotAllowed` if there is none."""
    with db.reading() as connection:
        for row in _rows(connection, sessions.c.token_hash == hash_token(token)):
            return row
    raise NotAllowed(NO_SESSION_MESSAGE)


def find_by_token_hashes(db: Database, hashes: Collection[str]) -> dict[str, SessionTrials]:
    """By the hash of its token, what a session is asked; all in one query, and strangers are left out."""
    wanted = select(
        sessions.c.token_hash, sessions.c.id, sessions.c.name, sessions.c.study, sessions.c.trials
    )
    mine = wanted.where(sessions.c.token_hash.in_(hashes), sessions.c.trials.is_not(None))
    with db.reading() as connection:
        found = connection.execute(mine).all()
    return {
        row.token_hash: SessionTrials(
            id=row.id, name=row.name, study=row.study, trials=Trials.from_json(row.trials)
        )
        for row in found
    }


def list_latest_token_hashes(db: Database, most: int) -> list[str]:
    """The tokens' hashes of those among the last so many sessions that have their trials and go on."""
    is_late = sessions.c.id > select(func.max(sessions.c.id) - most).scalar_subquery()
    is_ready = (sessions.c.status == "active") & sessions.c.trials.is_not(None)
    wanted = select(sessions.c.token_hash).where(is_late, is_ready).order_by(sessions.c.id)
    with db.reading() as connection:
        return list(connection.scalars(wanted))


def get_session(db: Database, number: int) -> SessionRow:
    """One session by its `id`."""
    with db.reading() as connection:
        for row in _rows(connection, sessions.c.id == number):
            return row
    raise NotFound("There is no such session any more.")


def _rows(connection: Connection, condition: ColumnElement[bool]) -> list[SessionRow]:
    columns = [
        column for column in sessions.c if column.name not in ("participant", "token_hash", "entry_hash")
    ]
    wanted = select(*columns, participants.c.name.label("participant")).join(participants)
    found = connection.execute(
        wanted.where(condition, sessions.c.trials.is_not(None)).order_by(sessions.c.id)
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
        for row in found
    ]


def list_units(connection: Connection, condition: ColumnElement[bool]) -> dict[int, list[Unit]]:
    """What sessions were given, in the order in which they show it."""
    wanted = select(assignments.c.session, assignments.c.image, assignments.c.unit).join(sessions)
    units: dict[int, list[Unit]] = {}
    for row in connection.execute(
        wanted.where(condition).order_by(assignments.c.session, assignments.c.position)
    ):
        units.setdefault(row.session, []).append(Unit(row.image, row.unit))
    return units
