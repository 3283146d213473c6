"""What of a batch may be stored: one record a number, and no more events than a session can have to report.

Asked inside the transaction that stores, with the sessions locked, so that it holds across workers too.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Table, select, tuple_

from vseg.errors import InvalidInput, VsegError
from vseg.store.schema import events, responses

Row = dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """How many events a session may send, and how many of them with contours."""

    events: int
    contours: int


@dataclass
class _Sent:
    """The events of one session: their numbers, and how many hold contours."""

    seqs: set[int] = field(default_factory=set)
    contours: int = 0

    def with_new(self, rows: Iterable[Row]) -> "_Sent":
        new = [row for row in rows if row["seq"] not in self.seqs]
        drawn = sum(row["kind"] == "contours" for row in new)
        return _Sent(self.seqs | {row["seq"] for row in new}, self.contours + drawn)


def beyond_limits(connection: Connection, batch: Iterable[Any]) -> dict[Any, VsegError]:
    """Those of a batch whose session would have more events than its limits, with the sentence for each."""
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
        then = sent[each.session].with_new(each.events)
        for what, count, most in (
            ("events", len(then.seqs), each.limits.events),
            ("events with contours", then.contours, each.limits.contours),
        ):
            if count > most and then.seqs != sent[each.session].seqs:
                refused[each] = InvalidInput(
                    f"A session like this one sends at most {most} {what}, got {count}."
                )
        if each not in refused:
            sent[each.session] = then
    return refused


def one_a_number(
    connection: Connection, answers: list[Row], others: list[Row]
) -> tuple[list[Row], list[Row]]:
    """Responses and events without those whose number the session has used for the other kind.

    What was stored first stays; of two that come together, the response.
    """
    answers = _without(answers, _there(connection, events, answers))
    others = _without(others, _there(connection, responses, others))
    return answers, _without(others, {(row["session"], row["seq"]) for row in answers})


def _there(connection: Connection, table: Table, rows: Collection[Row]) -> set[tuple[int, int]]:
    if not rows:
        return set()
    numbers = {(row["session"], row["seq"]) for row in rows}
    place = tuple_(table.c.session, table.c.seq)
    found = connection.execute(select(table.c.session, table.c.seq).where(place.in_(numbers)))
    return {(session, seq) for session, seq in found}


def _without(rows: list[Row], numbers: set[tuple[int, int]]) -> list[Row]:
    return [row for row in rows if (row["session"], row["seq"]) not in numbers] if numbers else rows
