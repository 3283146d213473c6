"""Delete identities and personal links after some time; the responses remain."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, and_, delete, func, or_, select

from vseg.store import vacuum
from vseg.store.database import Database, log_long_wait, now_ms as clock_ms
from vseg.store.schema import events, identities, links, participants, responses, sessions
from vseg.store.sessions.assignment import DAY_MS, newest_received_at_ms
from vseg.store.studies import StudyRow, list_studies

# An active session with a record in this time may be resumed, for which its participant has to be recognised.
TAKING_PART_MS = 60 * 60 * 1000


@dataclass(frozen=True)
class ForgottenIdentities:
    """How many identities and personal links were deleted, after `days` days without a record.

    `kept` counts participants whose time is up but who are still taking part; `traces` is a message about what is left
    in the files.
    """

    identities: int
    links: int
    kept: int
    days: int
    traces: str


def forget_identities(
    db: Database, study: StudyRow, *, days: int = 0, now_ms: int | None = None
) -> ForgottenIdentities:
    """Delete the identities of participants who have sent nothing for `days` days; their responses remain.

    Prolific IDs and used personal links are deleted; after that a participant who comes back is not recognised.
    Participants who have not finished and have sent something within the last hour are kept.
    """
    deleted_identities, deleted_links, kept = _delete_due(
        db, study, clock_ms() if now_ms is None else now_ms, days
    )
    traces = vacuum.remove_traces(db) if deleted_identities or deleted_links else ""
    return ForgottenIdentities(deleted_identities, deleted_links, kept, days, traces)


def apply_retention(db: Database, *, now_ms: int | None = None) -> dict[str, ForgottenIdentities]:
    """Delete the identities that are due in every study, by its `[privacy]` section, and then the traces of deletions.

    Returns what was deleted, by the name of the study.
    """
    now_ms = clock_ms() if now_ms is None else now_ms
    deleted = {
        study.name: (*_delete_due(db, study, now_ms, days), days)
        for study in list_studies(db)
        if (days := study.study.privacy.keep_identities_days) is not None
    }
    traces = vacuum.remove_traces(db) if vacuum.is_due(db) else ""
    return {
        name: ForgottenIdentities(*counts, traces=traces)
        for name, counts in deleted.items()
        if any(counts[:2])
    }


def _delete_due(db: Database, study: StudyRow, now_ms: int, days: int) -> tuple[int, int, int]:
    """Delete what is due; return the numbers of identities and links, and of participants who are kept."""
    with log_long_wait(db.address), db.writing() as connection:
        due = list(connection.scalars(_select_identified(study).where(_is_due(now_ms, days))))
        deleted_identities, deleted_links = (
            connection.execute(delete(table).where(table.c.participant.in_(due))).rowcount if due else 0
            for table in (identities, links)
        )
        kept = 0 if days else len(connection.scalars(_select_identified(study)).all())
        if deleted_identities or deleted_links:
            vacuum.mark_due(connection)
    return deleted_identities, deleted_links, kept


def _select_identified(study: StudyRow) -> Select[tuple[int]]:
    """Return the query for the participants with an identity or a personal link."""
    identified = [
        select(table.c.participant).where(table.c.participant.is_not(None)) for table in (identities, links)
    ]
    return (
        select(participants.c.id)
        .join(sessions, sessions.c.participant == participants.c.id)
        .where(participants.c.study == study.id, or_(*(participants.c.id.in_(query) for query in identified)))
    )


def _is_due(now_ms: int, days: int) -> ColumnElement[bool]:
    """Return the SQL condition that a session has sent nothing for `days` days.

    For 0 days: that it is over, or has sent nothing for an hour.
    """
    before_ms = now_ms - max(days * DAY_MS, TAKING_PART_MS)
    last_times: list[ColumnElement[int]] = [
        func.coalesce(time_ms, 0)
        for time_ms in (
            sessions.c.finished_at_ms,
            newest_received_at_ms(responses),
            newest_received_at_ms(events),
        )
    ]
    is_silent = and_(sessions.c.started_at_ms <= before_ms, *(time_ms <= before_ms for time_ms in last_times))
    return is_silent if days else or_(is_silent, sessions.c.status != "active")
