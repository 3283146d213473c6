"""Erase a participant: delete every row about them, and the traces of these rows in the database's files."""

import re
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Table, delete, or_, select

from vseg.errors import NotFound
from vseg.store import vacuum
from vseg.store.database import Database, log_long_wait
from vseg.store.schema import PERSONAL_TABLES, batches, identities, links, participants, sessions
from vseg.store.studies import StudyRow
from vseg.store.tokens import hash_token

NAME_HINT = "the dashboard and the file names of an export show the names of all participants"


@dataclass(frozen=True)
class ErasedRows:
    """How many rows of each table were deleted; `traces` is a message about what is left in the files."""

    participants: int
    identities: int
    links: int
    sessions: int
    assignments: int
    responses: int
    events: int
    batches: int
    takings: int
    choices: int
    stops: int
    traces: str


def erase(db: Database, study: StudyRow, participant: str) -> ErasedRows:
    """Delete a participant and all their data permanently; `NotFound` if the study has no such participant.

    Their place is free again. They could take part again, but not with the same personal link. On SQLite the file is
    rewritten afterwards; responses of other participants wait meanwhile, about one second per 100 MB.
    """
    with log_long_wait(db.address), db.writing() as connection:
        deleted = _delete_rows(connection, _get_participant_id(connection, study, participant, lock=True))
        vacuum.mark_due(connection)
    return ErasedRows(**deleted, traces=vacuum.remove_traces(db))


def check_participant(db: Database, study: StudyRow, participant: str) -> None:
    """Raise `NotFound` if a study has no participant of this name."""
    with db.reading() as connection:
        _get_participant_id(connection, study, participant, lock=False)


def find_by_prolific_id(db: Database, study: StudyRow, prolific_pid: str) -> str:
    """Return the random name of the participant with this Prolific ID or lab code; `NotFound` if there is none."""
    is_identity = (identities.c.study == study.id) & (identities.c.prolific_pid == prolific_pid)
    with db.reading() as connection:
        name = connection.scalar(select(participants.c.name).join(identities).where(is_identity))
    if name is None:
        raise NotFound(
            f"No participant of study {study.name!r} has the Prolific ID or code {prolific_pid!r:.80}, or it was "
            f"deleted; check it, or use the participant's random name: {NAME_HINT}."
        )
    return name


def find_by_link(db: Database, study: StudyRow, link: str) -> str:
    """Return the random name of the participant who used this personal link; `NotFound` if there is none.

    The link is an address with link=TOKEN, or the token alone.
    """
    in_address = re.search(r"[?&]link=([^&#\s]+)", link)
    token = in_address[1] if in_address else link.strip()
    is_link = (links.c.study == study.id) & (links.c.token_hash == hash_token(token))
    query = select(participants.c.name).join(links, links.c.participant == participants.c.id)
    with db.reading() as connection:
        name = connection.scalar(query.where(is_link))
    if name is None:
        raise NotFound(
            f"No participant of study {study.name!r} has used this personal link, or the link was deleted; check that "
            "it is complete."
        )
    return name


def _get_participant_id(connection: Connection, study: StudyRow, participant: str, *, lock: bool) -> int:
    """Return the id of a participant; with `lock`, only one of two simultaneous calls of `erase` finds it."""
    is_participant = (participants.c.study == study.id) & (participants.c.name == participant)
    query = select(participants.c.id).where(is_participant)
    participant_id = connection.scalar(query.with_for_update() if lock else query)
    if participant_id is None:
        raise NotFound(
            f"Study {study.name!r} has no participant {participant!r:.80}, or they were erased; {NAME_HINT}."
        )
    return participant_id


def _delete_rows(connection: Connection, participant_id: int) -> dict[str, int]:
    """Delete all rows about a participant, table by table and not by cascade, so that they can be counted."""
    # Locked, so that no record arrives meanwhile.
    query = select(sessions.c.id).where(sessions.c.participant == participant_id).with_for_update()
    session_ids = connection.scalars(query).all()
    batch_ids = select(batches.c.id).where(batches.c.session.in_(session_ids))

    def is_theirs(table: Table) -> ColumnElement[bool]:
        if "batch" in table.c:
            return or_(table.c.session.in_(session_ids), table.c.batch.in_(batch_ids))
        if "session" in table.c:
            return table.c.session.in_(session_ids)
        return (participants.c.id if table is participants else table.c.participant) == participant_id

    return {
        table.name: connection.execute(delete(table).where(is_theirs(table))).rowcount
        for table in PERSONAL_TABLES
    }
