"""Responses and events: store the records of a session, and read those of a study."""

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import compress
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, RowMapping, Table, select, true

from vseg.data.responses import COLUMNS, Responses, mark_used
from vseg.errors import InvalidInput
from vseg.store.conflicts import EventLimits
from vseg.store.database import Database, now_ms as clock_ms
from vseg.store.schema import events as event_table, participants, responses as response_table, sessions
from vseg.store.studies import StudyRow
from vseg.store.writer import WriteRequest

ADDED_COLUMNS = ("session", "received_at_ms")
"""The columns that the store fills in itself."""
RESPONSE_COLUMNS = tuple(column.name for column in response_table.c if column.name not in ADDED_COLUMNS)
USED_COLUMNS = ("session", "seq", "item", "practice", "catch", "flags")
"""The columns that `find_used` needs."""
EVENT_COLUMNS = tuple(column.name for column in event_table.c if column.name not in ADDED_COLUMNS)


def append(
    db: Database,
    session_id: int,
    responses: Sequence[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]],
    *,
    token_hash: str | None = None,
    limits: EventLimits | None = None,
    now_ms: int | None = None,
) -> "Future[None]":
    """Store records of one session; the returned future is resolved once they are durable.

    A record that is already stored remains unchanged, so that sending it again does no harm. A record number (`seq`) is
    used once, by a response or by an event.

    Parameters
    ----------
    db : Database
        The open database.
    session_id : int
        The session.
    responses : sequence of mappings
        Each has the keys in `RESPONSE_COLUMNS`; other keys are ignored.
    events : sequence of mappings
        Each has the keys in `EVENT_COLUMNS`; other keys are ignored. `data` is JSON, or is converted to JSON.
    token_hash : str, optional
        Hash of the session's token, which is checked if given.
    limits : EventLimits, optional
        How many events the session may have.
    now_ms : int, optional
        Time of arrival; the current time by default.

    Returns
    -------
    Future
        Fails, with nothing stored, with `Conflict` ("ended") if the session accepts no more records, `Conflict`
        ("elsewhere") if another page stored other records with these numbers, `NotAllowed` if the session has another
        token now, `NotFound` if there is no such session, `InvalidInput` if there are too many events or the database
        rejects a value, and `VsegError` if the database is unavailable: then the records can be sent again.
    """
    added = {"session": session_id, "received_at_ms": clock_ms() if now_ms is None else now_ms}
    try:
        response_rows = [{name: row[name] for name in RESPONSE_COLUMNS} | added for row in responses]
        event_rows = [{name: row[name] for name in EVENT_COLUMNS} | added for row in events]
    except KeyError as error:
        raise InvalidInput(f"A record has no {error.args[0]!r}; see the columns in {__name__}.") from error
    for row in event_rows:
        if not isinstance(row["data"], str):
            row["data"] = json.dumps(row["data"], ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return db.writer.append(WriteRequest(session_id, response_rows, event_rows, token_hash, limits))


def stream_responses(db: Database, study_id: int, batch: int = 5000) -> Iterator[list[RowMapping]]:
    """Yield all responses of a study, session by session in order, in lists of about `batch` rows.

    `session` and `participant` are names, `status` is that of the session. A list contains whole sessions, so that
    `find_used` can be applied to it.
    """
    return _group_sessions(_stream_rows(db, response_table, study_id, batch), batch)


def stream_events(db: Database, study_id: int, batch: int = 5000) -> Iterator[list[RowMapping]]:
    """Yield all events of a study like `stream_responses`; `data` is JSON."""
    return _group_sessions(_stream_rows(db, event_table, study_id, batch), batch)


def find_used(columns: Mapping[str, Sequence[Any]]) -> list[bool]:
    """Return for each response of some complete sessions whether it counts; see `vseg.data.responses.mark_used`.

    The columns are those in `USED_COLUMNS`; rows may come in any order.
    """
    order = np.argsort(columns["seq"], kind="stable")
    session = np.unique(columns["session"], return_inverse=True)[1]
    practice, catch, flagged = (
        np.array(columns[name], np.bool_)[order] for name in ("practice", "catch", "flags")
    )
    used = np.empty(len(order), np.bool_)
    used[order] = mark_used(
        session[order],
        np.array(columns["item"], np.int64)[order],
        practice=practice,
        catch=catch,
        flagged=flagged,
    )
    return used.tolist()


def load_responses(db: Database, study: StudyRow, image: str | None = None) -> Responses:
    """Load the answers of a study that count, for all images or for one."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    needed = [name for name in (*COLUMNS, *USED_COLUMNS) if name in response_table.c]
    condition = true() if image is None else response_table.c.image == image
    for rows in _group_sessions(_stream_rows(db, response_table, study.id, 5000, needed, condition), 5000):
        used = find_used({name: [row[name] for row in rows] for name in USED_COLUMNS})
        for name, column in columns.items():
            column.extend([row[name] for row in compress(rows, used)])
    # Empty columns, of a study without answers, need a type.
    types: dict[str, Any] = {"participant": np.str_, "image": np.str_, "same": np.bool_, "rt_ms": np.float64}
    arrays: dict[str, Any] = {
        name: np.array(each, types.get(name, np.int64)) for name, each in columns.items()
    }
    return Responses(study.study.layout.build(), **arrays)


def _stream_rows(
    db: Database,
    table: Table,
    study_id: int,
    batch: int,
    names: Sequence[str] | None = None,
    condition: ColumnElement[bool] | None = None,
) -> Iterator[RowMapping]:
    columns = [
        column for column in table.c if column.name != "session" and (not names or column.name in names)
    ]
    query = (
        select(
            participants.c.name.label("participant"),
            sessions.c.name.label("session"),
            sessions.c.status,
            *columns,
        )
        .select_from(sessions)
        .join(participants, participants.c.id == sessions.c.participant)
        .join(table, table.c.session == sessions.c.id)
        .where(sessions.c.study == study_id, true() if condition is None else condition)
        .order_by(table.c.session, table.c.seq)
    )
    with db.reading() as connection:
        yield from connection.execution_options(yield_per=batch).execute(query).mappings()


def _group_sessions(rows: Iterator[RowMapping], batch: int) -> Iterator[list[RowMapping]]:
    """Yield lists of at least `batch` rows, except the last, that end where a session ends."""
    gathered: list[RowMapping] = []
    for row in rows:
        if len(gathered) >= batch and row["session"] != gathered[-1]["session"]:
            yield gathered
            gathered = []
        gathered.append(row)
    if gathered:
        yield gathered
