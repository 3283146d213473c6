"""What of a batch may be stored: one record a number, and no more events than a session can have to report.

Asked inside the transaction that stores, with the sessions locked, so that it holds across workers too.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import JSON, ColumnElement, Connection, Table, bindparam, column, exists, func, select, tuple_

from vseg.errors import Conflict, InvalidInput, VsegError
from vseg.store.schema import events, responses

if TYPE_CHECKING:
    from vseg.store.database import Database

Row = dict[str, Any]
Insertion = Callable[[Connection, list[Row]], int]
"""Stores rows, and says how many of them were new."""
IDENTIFYING_COLUMNS = {responses: ("item", "same", "shown_at_ms"), events: ("kind", "at_ms")}
"""By what a record that is sent again is known from another one under its number."""
MAX_STAND_IN_BYTES = 1000
"""Bytes of an event that stands in for another record: such a one is taken beyond the limits, too."""


@dataclass(frozen=True)
class EventLimits:
    """How many events a session may send, and how many of them with contours."""

    events: int
    contours: int


@dataclass
class _Sent:
    """The events of one session: their numbers, and how many hold contours."""

    seqs: set[int] = field(default_factory=set)
    contours: int = 0

    def new(self, rows: Iterable[Row]) -> list[Row]:
        return [row for row in rows if row["seq"] not in self.seqs]

    def with_new(self, new: Iterable[Row]) -> "_Sent":
        drawn = sum(row["kind"] == "contours" for row in new)
        return _Sent(self.seqs | {row["seq"] for row in new}, self.contours + drawn)


def find_over_limit(connection: Connection, batch: Iterable[Any]) -> dict[Any, VsegError]:
    """Those of a batch whose session would have more events than its limits, with the sentence for each.

    An event that stands in for a refused one is none too many: a page that could not even say so would have to stop.
    It is small, and its number is one of the session's, so that there is an end to these, too.
    """
    limited = [each for each in batch if each.events and each.limits is not None]
    if not limited:
        return {}
    sent: defaultdict[int, _Sent] = defaultdict(_Sent)
    stored = select(events.c.session, events.c.seq, events.c.kind)
    for session, seq, kind in connection.execute(
        stored.where(events.c.session.in_({each.session for each in limited}))
    ):
        sent[session].seqs.add(seq)
        sent[session].contours += kind == "contours"
    refused: dict[Any, VsegError] = {}
    for each in limited:
        new = sent[each.session].new(each.events)
        then = sent[each.session].with_new(new)
        for what, count, most in (
            ("events", len(then.seqs), each.limits.events),
            ("events with contours", then.contours, each.limits.contours),
        ):
            if count > most and not all(_is_small_stand_in(row) for row in new):
                refused[each] = InvalidInput(
                    f"A session like this one sends at most {most} {what}, got {count}."
                )
        if each not in refused:
            sent[each.session] = then
    return refused


def find_conflicts(connection: Connection, batch: Iterable[Any]) -> dict[Any, VsegError]:
    """Those of a batch of which another record is stored under one of its numbers, with the sentence for each.

    Two pages that go on with one session, under one token, both count from where it was. Whoever comes second has to
    know: an answer that was acknowledged and is not there would be lost.
    """
    sent = list(batch)
    numbers = {(each.session, row["seq"]) for each in sent for row in (*each.responses, *each.events)}
    stored: dict[tuple[int, int], tuple[Any, ...]] = {}
    for table, names in IDENTIFYING_COLUMNS.items():
        wanted = select(table.c.session, table.c.seq, *(table.c[name] for name in names))
        found = connection.execute(wanted.where(tuple_(table.c.session, table.c.seq).in_(numbers)))
        stored |= {(session, seq): (table.name, *told) for session, seq, *told in found}
    return {each: _elsewhere() for each in sent if not all(_is_stored(each, stored))}


def _is_stored(records: Any, stored: dict[tuple[int, int], tuple[Any, ...]]) -> Iterable[bool]:
    for table, rows in ((responses, records.responses), (events, records.events)):
        for row in rows:
            told = (table.name, *(row[name] for name in IDENTIFYING_COLUMNS[table]))
            yield stored.get((records.session, row["seq"])) == told or (table is events and _stands_in(row))


def _stands_in(event: Row) -> bool:
    """Whether a page has sent this for a record that was lost or refused: what is stored may be that very record."""
    return event["kind"] == "interruption" and json.loads(event["data"]).get("reason") in ("lost", "refused")


def _is_small_stand_in(event: Row) -> bool:
    return len(event["data"]) <= MAX_STAND_IN_BYTES and _stands_in(event)


def _elsewhere() -> Conflict:
    return Conflict(
        "This session goes on in another tab or window, which has sent other answers under these numbers; go on there, "
        "and close this page.",
        "elsewhere",
    )


def insertion(db: "Database", table: Table, other: Table) -> Insertion:
    """What stores rows of one table whose number the session has used neither there nor in the other.

    What was stored first stays. The look is part of the statement, so that it costs no journey of its own. Types are
    the caller's to check: PostgreSQL takes "yes" for true, SQLite does not.
    """
    row = _each_row(table) if db.is_sqlite else _rows_of_json(table)
    is_taken = exists().where(other.c.session == row["session"], other.c.seq == row["seq"])
    new = select(*row.values()).where(~is_taken)
    if not db.is_sqlite:  # in one order, so that two workers with the same rows never wait for each other
        new = new.order_by(row["session"], row["seq"])
    statement = (
        db.insert_or_ignore(table).from_select(list(row), new).execution_options(preserve_rowcount=True)
    )

    def store(connection: Connection, rows: list[Row]) -> int:
        sent: Any = rows if db.is_sqlite else {"rows": rows}
        return connection.execute(statement, sent).rowcount

    return store


def _each_row(table: Table) -> dict[str, ColumnElement[Any]]:
    """SQLite: the values of one row, for a statement that is run for each."""
    return {each.name: bindparam(each.name, type_=each.type) for each in table.c}


def _rows_of_json(table: Table) -> dict[str, ColumnElement[Any]]:
    """PostgreSQL: the columns of all rows, out of one text; a statement for each takes twice the time."""
    columns = (column(each.name, each.type) for each in table.c)
    given = func.json_to_recordset(bindparam("rows", type_=JSON)).table_valued(*columns)
    return dict(given.render_derived(name="given", with_types=True).c)
