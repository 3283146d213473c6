"""What has arrived of a study since it was last looked at, for those who keep its answers in memory.

A session that has ended takes no more records, so that it is read once. Of one that goes on, the newest number and
the count say whether there is something new: records may arrive late, under lower numbers than others before them.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Integer, bindparam, case, cast, func, select

from vseg.store.database import Database
from vseg.store.schema import events, participants, responses, sessions
from vseg.store.sessions.assignment import newest_received_at_ms
from vseg.store.sessions.rows import list_units
from vseg.study.trials import Unit

SESSIONS_PER_QUERY = 500  # sessions asked about in one statement
RESPONSE_COLUMNS = (
    "seq", "item", "image", "block", "trial", "i", "j", "bits", "rt_ms", "cue_off_ms", "image_off_ms",
    "frames_dropped", "refresh_hz", "shown_at_ms",
)  # fmt: skip
"""What `responses` returns; `bits` are same, practice, catch, flagged and chosen, the lowest first."""


@dataclass(frozen=True)
class SessionState:
    """A session by its row alone; `last_at_ms` is when something of it arrived last, while it is active."""

    id: int
    name: str
    participant: str
    status: str
    started_at_ms: int
    finished_at_ms: int | None
    last_at_ms: int


class StudyReader:
    """A study at one instant, as far as somebody wants to know."""

    def __init__(self, connection: Connection, study: int):
        self._connection, self._study = connection, study

    def list_sessions(self) -> list[SessionState]:
        """Every session that is not withdrawn and has its trials, in the order in which they began."""
        active = sessions.c.status == "active"
        heard = [
            case((active, newest_received_at_ms(table))).label(table.name) for table in (responses, events)
        ]
        shown = [sessions.c[name] for name in ("id", "name", "status", "started_at_ms", "finished_at_ms")]
        wanted = (
            select(*shown, participants.c.name.label("participant"), *heard)
            .join(participants, participants.c.id == sessions.c.participant)
            .where(
                sessions.c.study == self._study,
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
            for row in self._connection.execute(wanted)
        ]  # fmt: skip

    def count_withdrawn(self) -> int:
        """How many sessions were withdrawn."""
        wanted = select(func.count()).where(sessions.c.study == self._study, sessions.c.status == "withdrawn")
        return self._connection.scalar(wanted) or 0

    def count_responses(self, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """How many responses each of these sessions has, if any, and the highest number among them."""
        wanted = select(responses.c.session, func.count(), func.max(responses.c.seq))
        found: dict[int, tuple[int, int]] = {}
        for some in _parts(ids):
            rows = self._connection.execute(
                wanted.where(responses.c.session.in_(some)).group_by(responses.c.session)
            )
            found |= {session: (count, last) for session, count, last in rows}
        return found

    def list_units(self, ids: Sequence[int]) -> dict[int, list[Unit]]:
        """What each of these sessions was given to do."""
        found: dict[int, list[Unit]] = {}
        for some in _parts(ids):
            found |= list_units(self._connection, sessions.c.id.in_(some))
        return found

    def find_simulated(self, ids: Sequence[int]) -> set[int]:
        """Those of these sessions that said with their consent that nobody sits there."""
        wanted = select(events.c.session, events.c.data).where(events.c.kind == "consent")
        found: set[int] = set()
        for some in _parts(ids):
            for session, data in self._connection.execute(wanted.where(events.c.session.in_(some))):
                if json.loads(data).get("simulated") is True:
                    found.add(session)
        return found

    def read_responses(self, session: int, after: int = -1) -> list[tuple[Any, ...]]:
        """The responses of a session whose number is above `after`, in their order: a tuple a column of `COLUMNS`."""
        rows = self._connection.execute(_ABOVE, {"session": session, "after": after}).all()
        return list(zip(*rows, strict=True)) if rows else [()] * len(RESPONSE_COLUMNS)


@contextmanager
def read_study(db: Database, study: int) -> Iterator[StudyReader]:
    """The study as it is now, for as long as the block lasts."""
    with db.reading() as connection:
        yield StudyReader(connection, study)


def list_events(
    db: Database,
    study: int,
    kinds: Iterable[str],
    *,
    participant: str | None = None,
    containing: str = "",
    newest: int | None = None,
) -> list[dict[str, Any]]:
    """Events of these kinds of all who have not withdrawn, or of one participant; `data` as an object.

    Each has `participant`, `session` (its name), `seq`, `kind`, `at_ms` and `data`. With `containing`, those alone in
    whose JSON that text is; with `newest`, at most so many, of those who began last.
    """
    wanted = (
        select(
            participants.c.name.label("participant"), sessions.c.name.label("session"),
            *(events.c[name] for name in ("seq", "kind", "at_ms", "data")),
        )
        .select_from(sessions)
        .join(participants, participants.c.id == sessions.c.participant)
        .join(events, events.c.session == sessions.c.id)
        .where(sessions.c.study == study, sessions.c.status != "withdrawn", events.c.kind.in_(list(kinds)))
        .order_by(events.c.session.desc(), events.c.seq.desc())
        .limit(newest)
    )  # fmt: skip
    if participant is not None:
        wanted = wanted.where(participants.c.name == participant)
    if containing:
        wanted = wanted.where(events.c.data.contains(containing, autoescape=True))
    with db.reading() as connection:
        rows = connection.execute(wanted).mappings().all()
    return [{**row, "data": json.loads(row["data"])} for row in reversed(rows)]


def _parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + SESSIONS_PER_QUERY] for start in range(0, len(ids), SESSIONS_PER_QUERY))


def _above() -> Any:
    """One statement for all sessions, so that it is compiled once. Sums of flags spare a conversion a row each."""
    c = responses.c
    bits = cast(c.same, Integer) + 2 * cast(c.practice, Integer) + 4 * cast(c.catch, Integer)
    bits += 16 * cast(c.chosen, Integer)
    computed: dict[str, Any] = {
        "bits": (bits + case((c.flags != "", 8), else_=0)).label("bits"),
        "cue_off_ms": (c.cue_ms - c.cue_asked_ms).label("cue_off_ms"),
        "image_off_ms": (c.image_ms - c.image_asked_ms).label("image_off_ms"),
    }
    columns = [computed[name] if name in computed else c[name] for name in RESPONSE_COLUMNS]
    mine = (c.session == bindparam("session")) & (c.seq > bindparam("after"))
    return select(*columns).where(mine).order_by(c.seq)


_ABOVE = _above()
