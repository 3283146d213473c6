"""How long it is known who people are: after a while their identities and personal links go, and their answers stay."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, and_, delete, func, or_, select

from vseg.store import vacuum
from vseg.store.database import Database, log_long_wait, now_ms as clock_ms
from vseg.store.schema import events, identities, links, participants, responses, sessions
from vseg.store.sessions.assignment import DAY_MS, newest_received_at_ms
from vseg.store.studies import StudyRow, list_studies

TAKING_PART_MS = 60 * 60 * 1000  # whoever is at it and was heard of since has to be known when they come back


@dataclass(frozen=True)
class ForgottenIdentities:
    """How many identities and personal links are gone, and what became of the bytes they left (`traces`).

    `kept` are those whose time is up, after so many `days`, but who are taking part.
    """

    identities: int
    links: int
    kept: int
    days: int
    traces: str


def forget_identities(
    db: Database, study: StudyRow, *, days: int = 0, now_ms: int | None = None
) -> ForgottenIdentities:
    """Delete who the people of a study are, of whom nothing was heard for so many days; their answers stay.

    What goes are the IDs of Prolific and the personal links that were used. Nobody can then tell whether one of them
    comes again. Whoever has not finished and was heard of within the last hour is still taking part, and kept.
    """
    known, reached, kept = _forgotten(db, study, clock_ms() if now_ms is None else now_ms, days)
    return ForgottenIdentities(
        known, reached, kept, days, traces=vacuum.sweep(db) if known or reached else ""
    )


def apply_retention(db: Database, *, now_ms: int | None = None) -> dict[str, ForgottenIdentities]:
    """Delete in every study what its `[privacy]` says is due, and sweep what is marked; what went, by study."""
    now_ms = clock_ms() if now_ms is None else now_ms
    gone = {
        study.name: (*_forgotten(db, study, now_ms, days), days)
        for study in list_studies(db)
        if (days := study.study.privacy.keep_identities_days) is not None
    }
    traces = vacuum.sweep(db) if vacuum.is_due(db) else ""
    return {name: ForgottenIdentities(*each, traces=traces) for name, each in gone.items() if any(each[:2])}


def _forgotten(db: Database, study: StudyRow, now_ms: int, days: int) -> tuple[int, int, int]:
    """How many identities and links are gone, and how many people are kept since they are taking part."""
    with log_long_wait(db.address), db.writing() as connection:
        due = list(connection.scalars(_known(study).where(_is_due(now_ms, days))))
        identities_gone, links_gone = (
            connection.execute(delete(table).where(table.c.participant.in_(due))).rowcount if due else 0
            for table in (identities, links)
        )
        kept = 0 if days else len(connection.scalars(_known(study)).all())
        if identities_gone or links_gone:
            vacuum.mark_due(connection)
    return identities_gone, links_gone, kept


def _known(study: StudyRow) -> Select[tuple[int]]:
    """Those with an identity or a link."""
    known = [
        select(table.c.participant).where(table.c.participant.is_not(None)) for table in (identities, links)
    ]
    return (
        select(participants.c.id)
        .join(sessions, sessions.c.participant == participants.c.id)
        .where(participants.c.study == study.id, or_(*(participants.c.id.in_(each) for each in known)))
    )


def _is_due(now_ms: int, days: int) -> ColumnElement[bool]:
    """Whether a session was last heard of so many days ago; of no days, whether it is over or silent for an hour."""
    before_ms = now_ms - max(days * DAY_MS, TAKING_PART_MS)
    heard: list[ColumnElement[int]] = [
        func.coalesce(each, 0)
        for each in (
            sessions.c.finished_at_ms,
            newest_received_at_ms(responses),
            newest_received_at_ms(events),
        )
    ]
    silent = and_(sessions.c.started_at_ms <= before_ms, *(each <= before_ms for each in heard))
    return silent if days else or_(silent, sessions.c.status != "active")
