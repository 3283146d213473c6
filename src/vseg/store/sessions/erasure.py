"""Erasing a person: every row that is about them, the one that says that they were here, and their traces."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Table, delete, or_, select

from vseg.errors import NotFound
from vseg.store import vacuum
from vseg.store.database import Database, log_long_wait
from vseg.store.schema import PERSONAL_TABLES, batches, identities, links, participants, sessions
from vseg.store.studies import StudyRow
from vseg.store.tokens import hash_token

WHERE_NAMES_ARE = "the dashboard and the names of an export's files"


@dataclass(frozen=True)
class ErasedRows:
    """How many rows are gone of each table, and what became of the bytes they left (`traces`, a sentence)."""

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
    """Delete a participant and all that is theirs, for good; `NotFound` if there is none of that name.

    Their place is free again, and whoever they are could take part anew, but not by the same personal link. On SQLite
    the file is then rewritten, for which answers of others wait: a second for every 100 MB or so.
    """
    with log_long_wait(db.address), db.writing() as connection:
        gone = _deleted(connection, _number(connection, study, participant, lock=True))
        vacuum.mark_due(connection)
    return ErasedRows(**gone, traces=vacuum.sweep(db))


def check_participant(db: Database, study: StudyRow, participant: str) -> None:
    """`NotFound` if a study has no participant of that name, for those who ask before they erase."""
    with db.reading() as connection:
        _number(connection, study, participant, lock=False)


def find_by_prolific_id(db: Database, study: StudyRow, prolific_pid: str) -> str:
    """The name of the participant with that ID of Prolific, or code of a lab; `NotFound` if there is none any more."""
    mine = (identities.c.study == study.id) & (identities.c.prolific_pid == prolific_pid)
    with db.reading() as connection:
        name = connection.scalar(select(participants.c.name).join(identities).where(mine))
    if name is None:
        raise NotFound(
            f"Nobody in study {study.name!r} is known by the Prolific ID or code {prolific_pid!r:.80}, or no longer; "
            f"check it, or give their random name: {WHERE_NAMES_ARE} have it."
        )
    return name


def find_by_link(db: Database, study: StudyRow, token: str) -> str:
    """The name of the participant who came by that personal link; `NotFound` if nobody did, or no longer."""
    mine = (links.c.study == study.id) & (links.c.token_hash == hash_token(token))
    wanted = select(participants.c.name).join(links, links.c.participant == participants.c.id)
    with db.reading() as connection:
        name = connection.scalar(wanted.where(mine))
    if name is None:
        raise NotFound(
            f"Nobody in study {study.name!r} has come by this personal link, or it is no longer known who; check that "
            "the link is complete."
        )
    return name


def _number(connection: Connection, study: StudyRow, participant: str, *, lock: bool) -> int:
    """Locked where something is written: of two who erase at once, one does."""
    mine = (participants.c.study == study.id) & (participants.c.name == participant)
    wanted = select(participants.c.id).where(mine)
    number = connection.scalar(wanted.with_for_update() if lock else wanted)
    if number is None:
        raise NotFound(
            f"There is no participant {participant!r:.80} in study {study.name!r}, or no longer; {WHERE_NAMES_ARE} say "
            "who is there."
        )
    return number


def _deleted(connection: Connection, number: int) -> dict[str, int]:
    """Table by table rather than by cascade, so that what is gone is counted."""
    # Locked, so that no record arrives between the count and the end.
    mine = select(sessions.c.id).where(sessions.c.participant == number).with_for_update()
    own = connection.scalars(mine).all()
    chosen = select(batches.c.id).where(batches.c.session.in_(own))

    def theirs(table: Table) -> ColumnElement[bool]:
        if "batch" in table.c:
            return or_(table.c.session.in_(own), table.c.batch.in_(chosen))
        if "session" in table.c:
            return table.c.session.in_(own)
        return (participants.c.id if table is participants else table.c.participant) == number

    return {
        table.name: connection.execute(delete(table).where(theirs(table))).rowcount
        for table in PERSONAL_TABLES
    }
