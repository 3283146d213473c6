"""Erasing a person: every row that is about them, and the one that says that they were here."""

from dataclasses import dataclass

from sqlalchemy import delete, select

from vseg.errors import NotFound
from vseg.store.database import Database
from vseg.store.schema import assignments, events, identities, links, participants, responses, sessions
from vseg.store.studies import StudyRow


@dataclass(frozen=True)
class Erased:
    """How many rows are gone."""

    sessions: int
    responses: int
    events: int
    identities: int
    links: int


def erase(db: Database, study: StudyRow, participant: str) -> Erased:
    """Delete a participant and all that is theirs, for good; `NotFound` if there is none of that name.

    Their place is free again, and whoever they are could take part anew, but not by the same personal link.
    """
    who = select(participants.c.id).where(
        participants.c.study == study.id, participants.c.name == participant
    )
    with db.writing() as connection:
        number = connection.scalar(who.with_for_update())  # of two who erase at once, one does
        if number is None:
            raise NotFound(
                f"There is no participant {participant!r:.80} in study {study.name!r}, or no longer."
            )
        # Locked, so that no record arrives between the count and the end.
        mine = select(sessions.c.id).where(sessions.c.participant == number).with_for_update()
        own = connection.scalars(mine).all()
        gone = {
            table.name: connection.execute(delete(table).where(table.c.session.in_(own))).rowcount
            for table in (responses, events, assignments)
        }
        gone |= {
            table.name: connection.execute(delete(table).where(table.c.participant == number)).rowcount
            for table in (sessions, identities, links)
        }
        connection.execute(delete(participants).where(participants.c.id == number))
    return Erased(**{name: gone[name] for name in Erased.__dataclass_fields__})
