"""A session as it is stored, and how to find it."""

import json
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, select

from vseg.errors import NotAllowed, NotFound
from vseg.plan import Trials, Unit
from vseg.store.database import Database
from vseg.store.schema import assignments, participants, sessions
from vseg.store.tokens import token_hash

NO_SESSION = "This token belongs to no session of this study; open the study's link again."


@dataclass(frozen=True)
class SessionRow:
    """One way through the experiment. `status`: active, completed, left, withdrawn or ended."""

    id: int
    name: str
    participant: str
    study: int
    status: str
    trials: Trials
    units: list[Unit]
    software: dict[str, str]
    started_at_ms: int
    finished_at_ms: int | None


def by_token(db: Database, token: str) -> SessionRow:
    """The session a token belongs to; `NotAllowed` if there is none."""
    with db.reading() as connection:
        for row in _rows(connection, sessions.c.token_hash == token_hash(token)):
            return row
    raise NotAllowed(NO_SESSION)


def by_tokens(db: Database, tokens: Collection[str]) -> dict[str, SessionRow]:
    """The sessions that tokens belong to, all together in few queries; strangers are left out."""
    whose = {token_hash(token): token for token in tokens}
    mine = select(sessions.c.id, sessions.c.token_hash).where(sessions.c.token_hash.in_(whose))
    with db.reading() as connection:
        token_of = {row.id: whose[row.token_hash] for row in connection.execute(mine)}
        return {token_of[row.id]: row for row in _rows(connection, sessions.c.id.in_(token_of))}


def numbered(db: Database, number: int) -> SessionRow:
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
    units = units_of(connection, condition)
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


def units_of(connection: Connection, condition: ColumnElement[bool]) -> dict[int, list[Unit]]:
    """What sessions were given, in the order in which they show it."""
    wanted = select(assignments.c.session, assignments.c.image, assignments.c.unit).join(sessions)
    units: dict[int, list[Unit]] = {}
    for row in connection.execute(
        wanted.where(condition).order_by(assignments.c.session, assignments.c.position)
    ):
        units.setdefault(row.session, []).append(Unit(row.image, row.unit))
    return units
