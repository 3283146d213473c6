"""Read what is new in a study, for code that keeps its responses in memory.

A session that has ended gets no more records, so it is read once. For an active session, the highest record number and
the number of responses show whether something is new: records may arrive late, with lower numbers than earlier ones.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypedDict

from sqlalchemy import ColumnElement, Connection, Integer, Select, bindparam, case, cast, func, select

from vseg.store.database import Database
from vseg.store.schema import events, participants, responses, sessions
from vseg.store.sessions.assignment import newest_received_at_ms
from vseg.store.sessions.rows import SessionStatus, list_units
from vseg.study.trials import Unit

SESSIONS_PER_QUERY = 500
RESPONSE_COLUMNS = (
    "seq", "item", "image", "block", "trial", "i", "j", "bits", "rt_ms", "presentation_ms", "cue_off_ms",
    "image_off_ms", "frames_dropped", "refresh_hz", "shown_at_ms", "received_at_ms",
)  # fmt: skip
"""The columns that `StudyReader.read_responses` returns.

`bits` combines, from the lowest bit, same, practice, catch, flagged and chosen; `presentation_ms` is the measured
duration of the dots alone and the image, `cue_off_ms` and `image_off_ms` are measured minus planned durations.
"""


@dataclass(frozen=True)
class SessionState:
    """A session without its trials; `last_at_ms` is when its last record arrived, or when it was finished."""

    id: int
    name: str
    participant: str
    status: SessionStatus
    started_at_ms: int
    finished_at_ms: int | None
    last_at_ms: int


class EventRow(TypedDict):
    """An event with the names of its participant and session; `data` is the parsed JSON."""

    participant: str
    session: str
    seq: int
    kind: str
    at_ms: int
    data: dict[str, Any]


class StudyReader:
    """Reads a study within one transaction; made by `read_study`."""

    def __init__(self, connection: Connection, study_id: int):
        self._connection, self._study_id = connection, study_id

    def list_sessions(self) -> list[SessionState]:
        """Return all sessions that have trials and are not withdrawn, in the order in which they began."""
        is_active = sessions.c.status == "active"
        last_received = [
            case((is_active, newest_received_at_ms(table))).label(table.name) for table in (responses, events)
        ]
        columns = [sessions.c[name] for name in ("id", "name", "status", "started_at_ms", "finished_at_ms")]
        query = (
            select(*columns, participants.c.name.label("participant"), *last_received)
            .join(participants, participants.c.id == sessions.c.participant)
            .where(
                sessions.c.study == self._study_id,
                sessions.c.status != "withdrawn",
                sessions.c.trials.is_not(None),
            )
            .order_by(sessions.c.id)
        )
        return [
            SessionState(
                row.id, row.name, row.participant, row.status, row.started_at_ms, row.finished_at_ms,
                row.finished_at_ms or max(row.responses or 0, row.events or 0, row.started_at_ms),
            )
            for row in self._connection.execute(query)
        ]  # fmt: skip

    def count_withdrawn(self) -> int:
        """Return the number of withdrawn sessions."""
        is_withdrawn = (sessions.c.study == self._study_id) & (sessions.c.status == "withdrawn")
        return self._connection.scalar(select(func.count()).where(is_withdrawn)) or 0

    def count_responses(self, session_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return the number of responses and the highest record number of each session that has responses."""
        query = select(responses.c.session, func.count(), func.max(responses.c.seq))
        counts: dict[int, tuple[int, int]] = {}
        for part in _split(session_ids):
            rows = self._connection.execute(
                query.where(responses.c.session.in_(part)).group_by(responses.c.session)
            )
            counts |= {session: (count, last_seq) for session, count, last_seq in rows}
        return counts

    def list_units(self, session_ids: Sequence[int]) -> dict[int, list[Unit]]:
        """Return the units that each of these sessions was assigned."""
        units: dict[int, list[Unit]] = {}
        for part in _split(session_ids):
            units |= list_units(self._connection, sessions.c.id.in_(part))
        return units

    def find_simulated(self, session_ids: Sequence[int]) -> set[int]:
        """Return which of these sessions belong to simulated participants, as their consent event says."""
        query = select(events.c.session, events.c.data).where(events.c.kind == "consent")
        simulated: set[int] = set()
        for part in _split(session_ids):
            for session, data in self._connection.execute(query.where(events.c.session.in_(part))):
                if json.loads(data).get("simulated") is True:
                    simulated.add(session)
        return simulated

    def read_responses(self, session_id: int, after: int = -1) -> list[tuple[Any, ...]]:
        """Return the responses of a session with record numbers above `after`, in order.

        The result has one tuple for each of `RESPONSE_COLUMNS`.
        """
        rows = self._connection.execute(_SELECT_NEW, {"session": session_id, "after": after}).all()
        return list(zip(*rows, strict=True)) if rows else [()] * len(RESPONSE_COLUMNS)


@contextmanager
def read_study(db: Database, study_id: int) -> Iterator[StudyReader]:
    """Open a transaction in which a study is read."""
    with db.reading() as connection:
        yield StudyReader(connection, study_id)


def list_events(
    db: Database,
    study_id: int,
    kinds: Iterable[str],
    *,
    participant: str | None = None,
    containing: str = "",
    newest: int | None = None,
) -> list[EventRow]:
    """Return the events of a study, except those of withdrawn sessions.

    Parameters
    ----------
    db : Database
        The open database.
    study_id : int
        The study.
    kinds : iterable of str
        The kinds of events.
    participant : str, optional
        Only events of this participant.
    containing : str
        Only events whose JSON contains this text.
    newest : int, optional
        At most this many events, from the sessions that began last.

    Returns
    -------
    list of EventRow
        In the order of the sessions, then of the records.
    """
    query = (
        select(
            participants.c.name.label("participant"), sessions.c.name.label("session"),
            *(events.c[name] for name in ("seq", "kind", "at_ms", "data")),
        )
        .select_from(sessions)
        .join(participants, participants.c.id == sessions.c.participant)
        .join(events, events.c.session == sessions.c.id)
        .where(sessions.c.study == study_id, sessions.c.status != "withdrawn", events.c.kind.in_(list(kinds)))
        .order_by(events.c.session.desc(), events.c.seq.desc())
        .limit(newest)
    )  # fmt: skip
    if participant is not None:
        query = query.where(participants.c.name == participant)
    if containing:
        query = query.where(events.c.data.contains(containing, autoescape=True))
    with db.reading() as connection:
        rows = connection.execute(query).all()
    return [
        EventRow(
            participant=row.participant,
            session=row.session,
            seq=row.seq,
            kind=row.kind,
            at_ms=row.at_ms,
            data=json.loads(row.data),
        )
        for row in reversed(rows)
    ]


def _split(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + SESSIONS_PER_QUERY] for start in range(0, len(ids), SESSIONS_PER_QUERY))


def _select_new() -> Select[Any]:
    """Return the query of `read_responses`, the same for all sessions, so that it is compiled once.

    One sum of bits replaces five booleans, whose conversion would take time in every row.
    """
    c = responses.c
    bits: ColumnElement[int] = cast(c.same, Integer) + 2 * cast(c.practice, Integer)
    bits += 4 * cast(c.catch, Integer) + case((c.flags != "", 8), else_=0) + 16 * cast(c.chosen, Integer)
    computed: dict[str, ColumnElement[Any]] = {
        "bits": bits.label("bits"),
        "presentation_ms": (c.cue_ms + c.image_ms).label("presentation_ms"),
        "cue_off_ms": (c.cue_ms - c.cue_asked_ms).label("cue_off_ms"),
        "image_off_ms": (c.image_ms - c.image_asked_ms).label("image_off_ms"),
    }
    columns = [computed[name] if name in computed else c[name] for name in RESPONSE_COLUMNS]
    is_new = (c.session == bindparam("session")) & (c.seq > bindparam("after"))
    return select(*columns).where(is_new).order_by(c.seq)


_SELECT_NEW = _select_new()
