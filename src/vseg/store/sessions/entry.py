"""Coming in: a place in the study, or the place one had, and a token for the browser."""

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
    """Who someone is on Prolific."""

    prolific_pid: str
    prolific_study: str = ""
    prolific_session: str = ""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if len(value) > 64 or not value.isprintable() or (name == "prolific_pid" and not value):
                raise InvalidInput(f"{name} has 1 to 64 printable characters, got {value!r:.80}.")


@dataclass(frozen=True)
class _Visitor:
    """Who stands at the door: someone from Prolific, with a personal link, or only with what their page remembers.

    `entry` is for those who have neither: a page shared by several people could bring in one as the other.
    """

    identity: Identity | None
    link_hash: str | None
    entry_hash: str | None

    @classmethod
    def of(cls, identity: Identity | None, link: str | None, entry: str | None) -> Self:
        nameless = identity is None and link is None
        hashed = hash_token(entry) if nameless and entry is not None else None
        return cls(identity, None if link is None else hash_token(link), hashed)


@dataclass(frozen=True)
class StartedSession:
    """A session and its token; `resumed` if it was there before."""

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
    now_ms: int,
) -> StartedSession:
    """Give someone a place in a study, or the place they had.

    They are known again by their `identity`, by their `link`, or else by `entry`, a secret of their page's own.
    `Conflict.reason` says why not: "full", "closed", "paused", "already", "ended", "link", "prolific", or "changed" if
    the study was replaced since it was read. The first session freezes the study. `draw` makes the trials of the
    assigned units; they are stored before the token leaves.
    """
    visitor = _Visitor.of(identity, link, entry)
    with db.writing() as connection:
        _lock(connection, study)
        old = _session_of(connection, study, visitor)
        name = _random_name("s") if old is None else old.name
        token = _token(entry, name)
        if old is not None:
            number = _take_up(connection, old, visitor, token)
        else:
            _check_entry(connection, study, visitor)
            number = _enrol(connection, study, visitor, name, token, now_ms)
    _fix_trials(db, number, draw)
    return StartedSession(get_session(db, number), token, resumed=old is not None)


def create_links(db: Database, study: StudyRow, count: int) -> list[str]:
    """Tokens of so many new personal links, each for one person."""
    if not 1 <= count <= MAX_LINKS:
        raise InvalidInput(f"Expected 1 to {MAX_LINKS} links, got {count}.")
    tokens = [secrets.token_urlsafe(24) for _ in range(count)]
    row = {"study": study.id, "created_at_ms": clock_ms()}
    with db.writing() as connection:
        connection.execute(insert(links), [{**row, "token_hash": hash_token(token)} for token in tokens])
    return tokens


def count_unused_links(db: Database, study: StudyRow) -> int:
    """How many personal links nobody has come in with yet."""
    with db.reading() as connection:
        return connection.scalar(select(func.count()).where(_unused(study))) or 0


def revoke_links(db: Database, study: StudyRow) -> int:
    """Make the personal links that nobody has used worthless, and say how many there were."""
    with db.writing() as connection:
        _lock(connection, study)  # whoever is coming in with one of them has used it, or is refused
        return connection.execute(delete(links).where(_unused(study))).rowcount


def _unused(study: StudyRow) -> ColumnElement[bool]:
    return (links.c.study == study.id) & links.c.participant.is_(None)


def _token(entry: str | None, session: str) -> str:
    """The token of a session: from the page's own secret, so that a request to begin that arrives twice gives it twice.

    Otherwise the reply that is lost or late would carry the token that is good. Another session has another token,
    also for the same page: of someone who withdrew and comes back, or who was forgotten, the old one is still stored.
    """
    if entry is None:
        return secrets.token_urlsafe(24)
    return base64.urlsafe_b64encode(sha256(json.dumps([entry, session]).encode()).digest()[:24]).decode()


def _lock(connection: Connection, study: StudyRow) -> None:
    """One at a time from here on (PostgreSQL; on SQLite the transaction is enough), on the study as it was read."""
    wanted = select(studies.c.digest).where(studies.c.id == study.id).with_for_update()
    if connection.scalar(wanted) != study.digest:
        raise Conflict("The study was changed a moment ago; load the page again.", "changed")


def _session_of(connection: Connection, study: StudyRow, visitor: _Visitor) -> Row | None:
    """The session that this visitor has begun before."""
    begun = select(sessions.c.id, sessions.c.name, sessions.c.participant, sessions.c.status)
    if visitor.link_hash is not None:
        wanted = select(links.c.participant).where(
            links.c.study == study.id, links.c.token_hash == visitor.link_hash
        )
        bound = connection.execute(wanted).one_or_none()
        if bound is None:
            raise Conflict("This personal link is not one of this study; check that it is complete.", "link")
        if bound.participant is not None:
            return connection.execute(begun.where(sessions.c.participant == bound.participant)).one()
    if visitor.identity is not None:
        whose = select(identities.c.participant).where(
            identities.c.study == study.id, identities.c.prolific_pid == visitor.identity.prolific_pid
        )
        return connection.execute(begun.where(sessions.c.participant.in_(whose))).one_or_none()
    if visitor.entry_hash is not None:
        mine = (sessions.c.study == study.id) & (sessions.c.entry_hash == visitor.entry_hash)
        return connection.execute(begun.where(mine)).one_or_none()
    return None


def _take_up(connection: Connection, old: Row, visitor: _Visitor, token: str) -> int:
    """Go on with a session under this page's token; another page's is no longer good for anything."""
    if old.status == "ended":
        raise Conflict("This session was interrupted for too long and has ended.", "ended")
    if old.status != "active":
        raise Conflict(
            "You have already taken part in this study, and each person can do so once.", "already"
        )
    connection.execute(update(sessions).where(sessions.c.id == old.id).values(token_hash=hash_token(token)))
    if visitor.identity is not None:  # the same person may come with a newer Prolific session
        mine = identities.c.participant == old.participant
        same = identities.c.prolific_pid == visitor.identity.prolific_pid
        connection.execute(update(identities).where(mine, same).values(**asdict(visitor.identity)))
    return int(old.id)


def _check_entry(connection: Connection, study: StudyRow, visitor: _Visitor) -> None:
    status = connection.scalar(select(studies.c.status).where(studies.c.id == study.id))
    if status == "paused":
        raise Conflict(
            "This study is paused and takes no new participants for now; come back later.", "paused"
        )
    if status != "open":
        raise Conflict("This study is closed and takes no new participants.", "closed")
    if study.study.personal_links_only and visitor.link_hash is None:
        raise Conflict(
            "This study is open to those with a personal link only; use the one you were sent.", "link"
        )
    if study.study.prolific is not None and study.study.prolific.required and visitor.identity is None:
        raise Conflict(
            "This study is open to participants from Prolific only; enter from its page there.", "prolific"
        )


def _enrol(
    connection: Connection, study: StudyRow, visitor: _Visitor, name: str, token: str, now_ms: int
) -> int:
    """A new participant with a session and its units; the study is frozen from here on."""
    held = assignment.count_occupancy(connection, study.id, study.study, now_ms)
    units = assignment.assign_units(study.study, held, assignment.count_started(connection, study.id))
    if visitor.link_hash is None:  # of links there are as many as a researcher has made
        assignment.check_start_rate(connection, study.id, study.study, now_ms)
    freeze = update(studies).where(studies.c.id == study.id, studies.c.frozen_at_ms.is_(None))
    connection.execute(freeze.values(frozen_at_ms=now_ms))
    participant = _inserted(
        connection, participants, study=study.id, name=_random_name("p"), created_at_ms=now_ms
    )
    if visitor.identity is not None:
        whose = {"participant": participant, "study": study.id}
        connection.execute(insert(identities).values(**whose, **asdict(visitor.identity)))
    if visitor.link_hash is not None:
        mine = links.c.token_hash == visitor.link_hash
        connection.execute(update(links).where(mine).values(participant=participant))
    session = _inserted(
        connection, sessions, study=study.id, participant=participant, name=name,
        token_hash=hash_token(token), entry_hash=visitor.entry_hash, status="active",
        software=json.dumps(_software()), started_at_ms=now_ms,
    )  # fmt: skip
    rows = [
        {"session": session, "study": study.id, "position": position, "image": unit.image, "unit": unit.unit}
        for position, unit in enumerate(units)
    ]
    connection.execute(insert(assignments), rows)
    return session


def _fix_trials(db: Database, number: int, draw: DrawTrials) -> None:
    """Draw the trials of a session that has none, outside of any lock; of two who do so, the first one's count."""
    mine = sessions.c.id == number
    with db.reading() as connection:
        empty = connection.execute(
            select(sessions.c.id).where(mine, sessions.c.trials.is_(None))
        ).one_or_none()
        units = list_units(connection, mine).get(number, [])
    if empty is None:
        return
    try:
        trials = draw(units).to_json()
    except BaseException:
        _give_up(db, number)
        raise
    with db.writing() as connection:
        connection.execute(update(sessions).where(mine, sessions.c.trials.is_(None)).values(trials=trials))


def _give_up(db: Database, number: int) -> None:
    """A place is free again, and the person can come back; unless their request came twice and the other one drew."""
    mine = select(sessions.c.participant).where(sessions.c.id == number, sessions.c.trials.is_(None))
    with db.writing() as connection:
        whose = connection.scalar(mine.with_for_update())
        connection.execute(delete(participants).where(participants.c.id == whose))


def _inserted(connection: Connection, table: Table, **values: Any) -> int:
    key = connection.execute(insert(table).values(**values)).inserted_primary_key
    assert key is not None
    return int(key[0])


def _random_name(letter: str) -> str:
    """A letter and 50 random bits."""
    return letter + base64.b32encode(secrets.token_bytes(7)).decode().lower()[:10]


def _software() -> dict[str, str]:
    return {"vseg": __version__, "python": platform.python_version(), "numpy": np.__version__}
