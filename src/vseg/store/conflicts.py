"""Decide which records of a batch may be stored: one record per number, and a limited number of events per session.

The checks run inside the transaction that stores the records, with the sessions locked, so that they also hold if
several workers store records.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select, tuple_

from vseg.errors import Conflict, InvalidInput, VsegError
from vseg.store.schema import events, responses

if TYPE_CHECKING:
    from vseg.store.writer import WriteRequest

Row = dict[str, Any]
ADDED_COLUMNS = ("session", "seq", "received_at_ms")
COMPARED_COLUMNS = {
    table: tuple(column.name for column in table.c if column.name not in ADDED_COLUMNS)
    for table in (responses, events)
}
"""The columns that distinguish a record that is sent again from another record with the same number: its content."""
MAX_STAND_IN_BYTES = 1000
"""Size of an event that replaces another record and is therefore accepted beyond the limits."""


@dataclass(frozen=True)
class EventLimits:
    """How many events a session may send, and how many of them with contours."""

    events: int
    contours: int


@dataclass
class _StoredEvents:
    """The events of one session: their numbers, and how many of them hold contours."""

    seqs: set[int] = field(default_factory=set)
    contours: int = 0

    def select_new(self, rows: Iterable[Row]) -> list[Row]:
        return [row for row in rows if row["seq"] not in self.seqs]

    def add(self, new: Iterable[Row]) -> "_StoredEvents":
        contours = sum(row["kind"] == "contours" for row in new)
        return _StoredEvents(self.seqs | {row["seq"] for row in new}, self.contours + contours)


def find_over_limit(
    connection: Connection, batch: "Iterable[WriteRequest]"
) -> "dict[WriteRequest, VsegError]":
    """Return the requests after which a session would have more events than allowed, with the error for each.

    A small event that replaces a refused record (see `_is_stand_in`) is always accepted: a page that could not report
    the refusal would have to stop. Their number is limited too, since record numbers are.
    """
    limited = [
        (request, request.limits) for request in batch if request.events and request.limits is not None
    ]
    if not limited:
        return {}
    stored: defaultdict[int, _StoredEvents] = defaultdict(_StoredEvents)
    query = select(events.c.session, events.c.seq, events.c.kind)
    session_ids = {request.session for request, _ in limited}
    for session, seq, kind in connection.execute(query.where(events.c.session.in_(session_ids))):
        stored[session].seqs.add(seq)
        stored[session].contours += kind == "contours"
    refused: dict[WriteRequest, VsegError] = {}
    for request, limits in limited:
        new = stored[request.session].select_new(request.events)
        total = stored[request.session].add(new)
        for kinds, count, maximum in (
            ("events", len(total.seqs), limits.events),
            ("events with contours", total.contours, limits.contours),
        ):
            if count > maximum and not all(_is_small_stand_in(row) for row in new):
                refused[request] = InvalidInput(
                    f"This session may send at most {maximum} {kinds}, got {count}."
                )
        if request not in refused:
            stored[request.session] = total
    return refused


def find_conflicts(
    connection: Connection, batch: "Iterable[WriteRequest]"
) -> "dict[WriteRequest, VsegError]":
    """Return the requests with a record number under which another record is stored, with the error for each.

    Two pages that continue the same session with the same token both count from the same number. The second one must
    be told: otherwise an answer would be acknowledged that is not stored.
    """
    requests = list(batch)
    keys = {
        (request.session, row["seq"]) for request in requests for row in (*request.responses, *request.events)
    }
    stored: dict[tuple[int, int], tuple[Any, ...]] = {}
    for table, names in COMPARED_COLUMNS.items():
        query = select(table.c.session, table.c.seq, *(table.c[name] for name in names))
        rows = connection.execute(query.where(tuple_(table.c.session, table.c.seq).in_(keys)))
        stored |= {(session, seq): (table.name, *values) for session, seq, *values in rows}
    return {request: _elsewhere_error() for request in requests if not all(_match_stored(request, stored))}


def _match_stored(request: "WriteRequest", stored: dict[tuple[int, int], tuple[Any, ...]]) -> Iterator[bool]:
    """Yield for each record of a request whether the stored record with its number is the same."""
    for table, rows in ((responses, request.responses), (events, request.events)):
        for row in rows:
            values = (table.name, *(row[name] for name in COMPARED_COLUMNS[table]))
            is_same = stored.get((request.session, row["seq"])) == values
            yield is_same or (table is events and _is_stand_in(row))


def _is_stand_in(event: Row) -> bool:
    """Return whether a page sent this event in place of a lost or refused record, which may be stored after all."""
    return event["kind"] == "interruption" and json.loads(event["data"]).get("reason") in ("lost", "refused")


def _is_small_stand_in(event: Row) -> bool:
    return len(event["data"]) <= MAX_STAND_IN_BYTES and _is_stand_in(event)


def _elsewhere_error() -> Conflict:
    return Conflict(
        "This session was continued in another tab or window, which has sent other answers with these numbers; "
        "continue there and close this page.",
        "elsewhere",
    )
