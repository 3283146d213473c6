"""A session as it is stored, and how to find it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, select

from vseg.errors import NotAllowed, NotFound
from vseg.plan import Trials, Unit
from vseg.store.database import Database
from vseg.store.schema import assignments, participants, sessions, studies
from vseg.store.studies import parsed_once
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


def fixed(db: Database, tokens: Sequence[str]) -> dict[str, tuple[int, str, Trials]]:
    """For each token its session's `id`, the name of the study and the trials, all together in few queries.

    Those of studies that choose pairs are left out: their trials are not all there is to know.
    """
    whose = {token_hash(token): token for token in tokens}
    mine = select(sessions.c.token_hash, sessions.c.id, sessions.c.study).where(
        sessions.c.token_hash.in_(whose)
    )
    with db.reading() as connection:
        rows = {row.id: row for row in connection.execute(mine)}
        texts = select(studies.c.id, studies.c.name, studies.c.text)
        named = {
            study.id: study.name
            for study in connection.execute(
                texts.where(studies.c.id.in_({row.study for row in rows.values()}))
            )
            if not parsed_once(study.text).design.adaptive
        }
        wanted = [number for number, row in rows.items() if row.study in named]
        drawn = select(sessions.c.id, sessions.c.trials).where(
            sessions.c.id.in_(wanted), sessions.c.trials.is_not(None)
        )
        trials = connection.execute(drawn).all() if wanted else []
    return {
        whose[rows[number].token_hash]: (number, named[rows[number].study], Trials.from_json(text))
        for number, text in trials
    }


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
