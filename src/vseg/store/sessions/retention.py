"""How long it is known who people are: after a while their identities and personal links go, and their answers stay."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, func, or_, select

from vseg.store import erasing
from vseg.store.database import Database, now_ms as clock_ms
from vseg.store.schema import events, identities, links, participants, responses, sessions
from vseg.store.sessions.assignment import DAY_MS, newest_at_ms
from vseg.store.studies import StudyRow, listed

HERE_MS = 60 * 60 * 1000  # whoever was heard of since is taking part, and has to be known when they come back


@dataclass(frozen=True)
class Forgotten:
    """How many identities and personal links are gone, and what became of the bytes they left (`traces`)."""

    identities: int
    links: int
    traces: str


def forget(db: Database, study: StudyRow, *, days: int = 0, now_ms: int | None = None) -> Forgotten:
    """Delete who the people of a study are, of whom nothing was heard for so many days; their answers stay.

    What goes are the IDs of Prolific and the personal links that were used. Nobody can then tell whether one of them
    comes again. Whoever was heard of within the last hour is still taking part, and kept.
    """
    deleted = _forgotten(db, study, clock_ms() if now_ms is None else now_ms, days)
    return Forgotten(*deleted, traces=erasing.sweep(db) if any(deleted) else "")


def keep_promises(db: Database, *, now_ms: int | None = None) -> dict[str, Forgotten]:
    """Delete in every study what its `[privacy]` says is due, and sweep what is marked; what went, by study."""
    now_ms = clock_ms() if now_ms is None else now_ms
    gone = {
        study.name: _forgotten(db, study, now_ms, days)
        for study in listed(db)
        if (days := study.study.privacy.keep_identities_days) is not None
    }
    traces = erasing.sweep(db) if erasing.is_due(db) else ""
    return {name: Forgotten(*deleted, traces=traces) for name, deleted in gone.items() if any(deleted)}


def _forgotten(db: Database, study: StudyRow, now_ms: int, days: int) -> tuple[int, int]:
    with db.writing() as connection:
        due = _silent_since(connection, study, now_ms - max(days * DAY_MS, HERE_MS))
        deleted = tuple(
            connection.execute(delete(table).where(table.c.participant.in_(due))).rowcount if due else 0
            for table in (identities, links)
        )
        if any(deleted):
            erasing.mark(connection)
    return deleted[0], deleted[1]


def _silent_since(connection: Connection, study: StudyRow, before_ms: int) -> list[int]:
    """Those with an identity or a link whose session ended, or was last heard of, no later than this."""
    heard: list[ColumnElement[int]] = [
        func.coalesce(each, 0)
        for each in (sessions.c.finished_at_ms, newest_at_ms(responses), newest_at_ms(events))
    ]
    known = [
        select(table.c.participant).where(table.c.participant.is_not(None)) for table in (identities, links)
    ]
    wanted = (
        select(participants.c.id)
        .join(sessions, sessions.c.participant == participants.c.id)
        .where(
            participants.c.study == study.id,
            or_(*(participants.c.id.in_(each) for each in known)),
            sessions.c.started_at_ms <= before_ms,
            *(each <= before_ms for each in heard),
        )
    )
    return list(connection.scalars(wanted))
