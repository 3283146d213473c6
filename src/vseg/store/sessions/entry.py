"""Begin or resume a session, and manage personal links."""

import base64
import json
import platform
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Self

import numpy as np
from sqlalchemy import ColumnElement, Connection, Row, Table, delete, func, insert, select, update

from vseg import __version__
from vseg.errors import Conflict, InvalidInput
from vseg.store.database import Database, now_ms as clock_ms
from vseg.store.schema import assignments, identities, links, participants, sessions, studies
from vseg.store.sessions import assignment
from vseg.store.sessions.rows import SessionRow, get_session, list_units
from vseg.store.studies import StudyRow
from vseg.store.tokens import hash_token
from vseg.study.trials import Trials, Unit

DrawTrials = Callable[[Sequence[Unit]], Trials]
MAX_LINKS = 10_000


@dataclass(frozen=True)
class Identity:
    """The identity of a participant on Prolific."""

    prolific_pid: str
    prolific_study: str = ""
    prolific_session: str = ""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if len(value) > 64 or not value.isprintable() or (name == "prolific_pid" and not value):
                raise InvalidInput(f"{name} should have 1 to 64 printable characters, got {value!r:.80}.")


@dataclass(frozen=True)
class _Visitor:
    """How a visitor is recognised: by a Prolific identity, by a personal link, or by a secret of their page.

    The secret is used only without the other two: on a shared computer it would take one person for the other.
    """

    identity: Identity | None
    link_hash: str | None
    entry_hash: str | None

    @classmethod
    def from_entry(cls, identity: Identity | None, link: str | None, entry: str | None) -> Self:
        is_anonymous = identity is None and link is None
        entry_hash = hash_token(entry) if is_anonymous and entry is not None else None
        return cls(identity, None if link is None else hash_token(link), entry_hash)


@dataclass(frozen=True)
class StartedSession:
    """A session and its token; `resumed` if the session had begun before."""

    session: SessionRow
    token: str
    resumed: bool


def begin(
    db: Database,
    study: StudyRow,
    draw: DrawTrials,
    *,
    identity: Identity | None = None,
    link: str | None = None,
    entry: str | None = None,
    admit: Callable[[int], None] = lambda since_ms: None,
    now_ms: int,
) -> StartedSession:
    """Begin a session of a study, or resume the one that this participant has begun.

    The first session freezes the study.

    Parameters
    ----------
    db : Database
        The open database.
    study : StudyRow
        The study; `Conflict` ("changed") is raised if it was replaced after it was read.
    draw : callable
        Draws the trials of the assigned units; they are stored before this function returns.
    identity : Identity, optional
        The participant's identity on Prolific.
    link : str, optional
        The token of a personal link.
    entry : str, optional
        A secret of the page, by which an anonymous participant is recognised.
    admit : callable
        Called before a new session begins without a personal link, with the time since which sessions count; it may
        raise `Conflict`.
    now_ms : int
        The current time.

    Returns
    -------
    StartedSession
        The session and its token. If nobody can begin, `Conflict` is raised; its `reason` is "full", "closed",
        "paused", "already", "ended", "link", "prolific" or "changed".
    """
    visitor = _Visitor.from_entry(identity, link, entry)
    with db.writing() as connection:
        _lock_study(connection, study)
        old = _find_session(connection, study, visitor)
        name = _random_name("s") if old is None else old.name
        token = _make_token(entry, name)
        if old is not None:
            session_id = _resume(connection, old, visitor, token)
        else:
            _check_entry(connection, study, visitor)
            session_id = _enrol(connection, study, visitor, name, token, admit, now_ms)
    _store_trials(db, session_id, draw)
    return StartedSession(get_session(db, session_id), token, resumed=old is not None)


def create_links(db: Database, study: StudyRow, count: int, *, prolific_pid: str | None = None) -> list[str]:
    """Create personal links, each for one participant; return their tokens.

    With the `prolific_pid` of somebody who has begun already, the links continue their session.
    """
    if not 1 <= count <= MAX_LINKS:
        raise InvalidInput(f"Expected 1 to {MAX_LINKS} links, got {count}.")
    tokens = [secrets.token_urlsafe(24) for _ in range(count)]
    row: dict[str, int | None] = {"study": study.id, "created_at_ms": clock_ms()}
    with db.writing() as connection:
        if prolific_pid is not None:
            is_theirs = (identities.c.study == study.id) & (identities.c.prolific_pid == prolific_pid)
            row["participant"] = connection.scalar(select(identities.c.participant).where(is_theirs))
        connection.execute(insert(links), [{**row, "token_hash": hash_token(token)} for token in tokens])
    return tokens


def count_unused_links(db: Database, study: StudyRow) -> int:
    """Return the number of personal links that nobody has used yet."""
    with db.reading() as connection:
        return connection.scalar(select(func.count()).where(_is_unused(study))) or 0


def revoke_links(db: Database, study: StudyRow) -> int:
    """Delete the personal links that nobody has used; return their number."""
    with db.writing() as connection:
        # Locked: a participant who enters with one of them right now has used it, or is refused.
        _lock_study(connection, study)
        return connection.execute(delete(links).where(_is_unused(study))).rowcount


def _is_unused(study: StudyRow) -> ColumnElement[bool]:
    return (links.c.study == study.id) & links.c.participant.is_(None)


def _make_token(entry: str | None, session: str) -> str:
    """Return the token of a session: derived from the page's secret if there is one, else random.

    A request to begin that arrives twice then gets the same token twice; otherwise the valid token might be in the
    reply that is lost. Each session has its own token, even for the same page: the old session of a participant who
    withdrew or was forgotten is still stored with its token.
    """
    if entry is None:
        return secrets.token_urlsafe(24)
    return base64.urlsafe_b64encode(sha256(json.dumps([entry, session]).encode()).digest()[:24]).decode()


def _lock_study(connection: Connection, study: StudyRow) -> None:
    """Lock a study (on SQLite the transaction does) and check that it was not changed since it was read."""
    query = select(studies.c.digest).where(studies.c.id == study.id).with_for_update()
    if connection.scalar(query) != study.digest:
        raise Conflict("The study was changed a moment ago; load the page again.", "changed")


def _find_session(connection: Connection, study: StudyRow, visitor: _Visitor) -> Row | None:
    """Return the session that a visitor has begun before, or None.

    A study of personal links recognises people by their links alone: anyone may know or invent a Prolific ID.
    """
    is_closed = study.study.personal_links_only
    if is_closed and visitor.link_hash is None:
        raise Conflict(
            "This study is open only to participants with a personal link; use the link you were sent.",
            "link",
        )
    query = select(sessions.c.id, sessions.c.name, sessions.c.participant, sessions.c.status)
    if visitor.link_hash is not None:
        link_query = select(links.c.participant).where(
            links.c.study == study.id, links.c.token_hash == visitor.link_hash
        )
        link = connection.execute(link_query).one_or_none()
        if link is None:
            raise Conflict("This study has no such personal link; check that it is complete.", "link")
        if link.participant is not None:
            return connection.execute(query.where(sessions.c.participant == link.participant)).one()
    if visitor.identity is not None:
        participant = select(identities.c.participant).where(
            identities.c.study == study.id, identities.c.prolific_pid == visitor.identity.prolific_pid
        )
        session = connection.execute(query.where(sessions.c.participant.in_(participant))).one_or_none()
        if session is not None and is_closed:
            raise Conflict("The participant with this Prolific ID began with another personal link.", "link")
        return session
    if visitor.entry_hash is not None:
        has_entry = (sessions.c.study == study.id) & (sessions.c.entry_hash == visitor.entry_hash)
        return connection.execute(query.where(has_entry)).one_or_none()
    return None


def _resume(connection: Connection, old: Row, visitor: _Visitor, token: str) -> int:
    """Give an active session a new token, which makes that of another page invalid; return its id."""
    if old.status == "ended":
        raise Conflict("This session was interrupted for too long and has ended.", "ended")
    if old.status != "active":
        raise Conflict(
            "You have already taken part in this study, and each person can do so once.", "already"
        )
    connection.execute(update(sessions).where(sessions.c.id == old.id).values(token_hash=hash_token(token)))
    if visitor.identity is not None:  # the Prolific session may be a newer one
        is_participant = identities.c.participant == old.participant
        is_same = identities.c.prolific_pid == visitor.identity.prolific_pid
        connection.execute(
            update(identities).where(is_participant, is_same).values(**asdict(visitor.identity))
        )
    return int(old.id)


def _check_entry(connection: Connection, study: StudyRow, visitor: _Visitor) -> None:
    """Raise `Conflict` if this visitor may not begin a session."""
    status = connection.scalar(select(studies.c.status).where(studies.c.id == study.id))
    if status == "paused":
        raise Conflict(
            "This study is paused and takes no new participants for now; come back later.", "paused"
        )
    if status != "open":
        raise Conflict("This study is closed and takes no new participants.", "closed")
    if study.study.prolific is not None and study.study.prolific.required and visitor.identity is None:
        raise Conflict(
            "This study is open only to participants from Prolific; enter from its page there.", "prolific"
        )


def _enrol(
    connection: Connection,
    study: StudyRow,
    visitor: _Visitor,
    name: str,
    token: str,
    admit: Callable[[int], None],
    now_ms: int,
) -> int:
    """Create a participant with a session and its units, and freeze the study; return the id of the session."""
    occupancy = assignment.count_occupancy(connection, study.id, study.study, now_ms)
    units = assignment.assign_units(study.study, occupancy, assignment.count_started(connection, study.id))
    if visitor.link_hash is None:  # the number of personal links is limited anyway
        assignment.check_start_rate(connection, study.id, study.study, now_ms)
        assignment.delete_old_empty_sessions(connection, study.id, study.study, now_ms)
        admit(assignment.get_admitted_since_ms(connection, study.id))
    freeze = update(studies).where(studies.c.id == study.id, studies.c.frozen_at_ms.is_(None))
    connection.execute(freeze.values(frozen_at_ms=now_ms))
    participant_id = _insert_row(
        connection, participants, study=study.id, name=_random_name("p"), created_at_ms=now_ms
    )
    if visitor.identity is not None:
        keys = {"participant": participant_id, "study": study.id}
        connection.execute(insert(identities).values(**keys, **asdict(visitor.identity)))
    if visitor.link_hash is not None:
        is_link = links.c.token_hash == visitor.link_hash
        connection.execute(update(links).where(is_link).values(participant=participant_id))
    session_id = _insert_row(
        connection, sessions, study=study.id, participant=participant_id, name=name,
        token_hash=hash_token(token), entry_hash=visitor.entry_hash, status="active",
        software=json.dumps(_software()), started_at_ms=now_ms,
    )  # fmt: skip
    rows = [
        {
            "session": session_id,
            "study": study.id,
            "position": position,
            "image": unit.image,
            "unit": unit.unit,
        }
        for position, unit in enumerate(units)
    ]
    connection.execute(insert(assignments), rows)
    return session_id


def _store_trials(db: Database, session_id: int, draw: DrawTrials) -> None:
    """Draw and store the trials of a session without trials; they are drawn outside of any lock.

    If two requests do so at the same time, the trials that are stored first remain.
    """
    is_session = sessions.c.id == session_id
    lacks_trials = sessions.c.trials.is_(None)
    with db.reading() as connection:
        row = connection.execute(select(sessions.c.id).where(is_session, lacks_trials)).one_or_none()
        units = list_units(connection, is_session).get(session_id, [])
    if row is None:
        return
    try:
        trials = draw(units).to_json()
    except BaseException:
        _discard_session(db, session_id)
        raise
    with db.writing() as connection:
        connection.execute(update(sessions).where(is_session, lacks_trials).values(trials=trials))


def _discard_session(db: Database, session_id: int) -> None:
    """Delete the participant of a session without trials, so that the place is free and they can enter again.

    If a second request of theirs has stored trials meanwhile, the participant is kept.
    """
    query = select(sessions.c.participant).where(sessions.c.id == session_id, sessions.c.trials.is_(None))
    with db.writing() as connection:
        participant_id = connection.scalar(query.with_for_update())
        connection.execute(delete(participants).where(participants.c.id == participant_id))


def _insert_row(connection: Connection, table: Table, **values: Any) -> int:
    key = connection.execute(insert(table).values(**values)).inserted_primary_key
    assert key is not None
    return int(key[0])


def _random_name(letter: str) -> str:
    """Return a letter followed by 50 random bits in base 32."""
    return letter + base64.b32encode(secrets.token_bytes(7)).decode().lower()[:10]


def _software() -> dict[str, str]:
    return {"vseg": __version__, "python": platform.python_version(), "numpy": np.__version__}
