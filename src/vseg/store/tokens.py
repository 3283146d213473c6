"""Personal tokens for researchers' scripts, and sign-in links that work once.

Only the hashes of tokens are stored.
"""

import hashlib
import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, or_, select, update

from vseg.errors import Conflict, InvalidInput, NotFound
from vseg.store.database import Database, now_ms as clock_ms
from vseg.store.schema import researchers, sign_ins, tokens

PREFIX = "vseg_"
MAX_LABEL_LENGTH, MAX_TOKENS = 64, 100
LAST_USE_RESOLUTION_MS = 60_000
LIFETIME_MS = 365 * 24 * 60 * 60 * 1000
SIGN_IN_LIFETIME_MS = 10 * 60_000


def hash_token(token: str) -> str:
    """Return the hash under which a token or another secret is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True)
class TokenRow:
    """What is known of a token; `last_used_at_ms` is accurate to the minute, and None if it was never used."""

    id: int
    label: str
    created_at_ms: int
    last_used_at_ms: int | None
    ends_at_ms: int


def create(db: Database, researcher: str, label: str) -> str:
    """Create a token for a researcher, for a year, and return it; it cannot be shown again.

    The label says what it is for.
    """
    label = label.strip()
    if not 1 <= len(label) <= MAX_LABEL_LENGTH or not label.isprintable():
        raise InvalidInput(
            f"The label of a token says what it is for, in 1 to {MAX_LABEL_LENGTH} printable characters; got "
            f"{len(label)} characters."
        )
    token = PREFIX + secrets.token_urlsafe(32)
    with db.writing() as connection:
        researcher_id = _get_researcher_id(connection, researcher)
        is_over = tokens.c.created_at_ms <= clock_ms() - LIFETIME_MS
        connection.execute(delete(tokens).where(tokens.c.researcher == researcher_id, is_over))
        count = connection.scalar(select(func.count()).where(tokens.c.researcher == researcher_id)) or 0
        if count >= MAX_TOKENS:
            raise Conflict(
                f"A researcher has at most {MAX_TOKENS} tokens; revoke one that you no longer need."
            )
        row = {
            "researcher": researcher_id,
            "label": label,
            "token_hash": hash_token(token),
            "created_at_ms": clock_ms(),
        }
        connection.execute(insert(tokens).values(row))
    return token


def list_tokens(db: Database, researcher: str) -> list[TokenRow]:
    """Return the tokens of a researcher in the order in which they were created."""
    ends_at_ms = (tokens.c.created_at_ms + LIFETIME_MS).label("ends_at_ms")
    columns = [tokens.c.id, tokens.c.label, tokens.c.created_at_ms, tokens.c.last_used_at_ms, ends_at_ms]
    query = select(*columns).join(researchers).where(researchers.c.name == researcher).order_by(tokens.c.id)
    with db.reading() as connection:
        return [TokenRow(*row) for row in connection.execute(query)]


def revoke(db: Database, researcher: str, token_id: int) -> None:
    """Delete a token of a researcher; `NotFound` if the researcher has no token with this `id`."""
    with db.writing() as connection:
        researcher_id = _get_researcher_id(connection, researcher)
        own_token = (tokens.c.researcher == researcher_id) & (tokens.c.id == token_id)
        if not connection.execute(delete(tokens).where(own_token)).rowcount:
            raise NotFound(f"You have no token {token_id}; it may have been revoked before.")


def find_researcher(db: Database, token: str, *, now_ms: int | None = None) -> str | None:
    """Return the name of the researcher with this token, or None; record its use at most once a minute."""
    now_ms = clock_ms() if now_ms is None else now_ms
    query = select(tokens.c.id, tokens.c.last_used_at_ms, researchers.c.name).join(researchers)
    with db.reading() as connection:
        is_this = (tokens.c.token_hash == hash_token(token)) & (tokens.c.created_at_ms > now_ms - LIFETIME_MS)
        row = connection.execute(query.where(is_this)).one_or_none()
    if row is None:
        return None
    before = now_ms - LAST_USE_RESOLUTION_MS
    if row.last_used_at_ms is None or row.last_used_at_ms <= before:
        is_stale = or_(tokens.c.last_used_at_ms.is_(None), tokens.c.last_used_at_ms <= before)
        with db.writing() as connection:
            connection.execute(
                update(tokens).where(tokens.c.id == row.id, is_stale).values(last_used_at_ms=now_ms)
            )
    return str(row.name)


def create_sign_in(db: Database, researcher: str, *, now_ms: int | None = None) -> str:
    """Create a token that logs a researcher in once, within ten minutes; return it."""
    now_ms = clock_ms() if now_ms is None else now_ms
    token = secrets.token_urlsafe(32)
    with db.writing() as connection:
        connection.execute(delete(sign_ins).where(sign_ins.c.expires_at_ms <= now_ms))
        row = {"token_hash": hash_token(token), "expires_at_ms": now_ms + SIGN_IN_LIFETIME_MS}
        connection.execute(
            insert(sign_ins).values(row | {"researcher": _get_researcher_id(connection, researcher)})
        )
    return token


def consume_sign_in(db: Database, token: str, *, now_ms: int | None = None) -> str | None:
    """Use up a sign-in token and return its researcher, or None if it is unknown, used or expired.

    If several requests try the same token at once, one of them succeeds.
    """
    now_ms = clock_ms() if now_ms is None else now_ms
    is_this = sign_ins.c.token_hash == hash_token(token)
    query = select(researchers.c.name).join(sign_ins).where(is_this, sign_ins.c.expires_at_ms > now_ms)
    with db.writing() as connection:
        name = connection.scalar(query)
        deleted = connection.execute(delete(sign_ins).where(is_this)).rowcount
    return name if deleted else None


def _get_researcher_id(connection: Connection, researcher: str) -> int:
    """Return the id of a researcher, locked so that nobody removes the researcher meanwhile."""
    query = select(researchers.c.id).where(researchers.c.name == researcher)
    researcher_id = connection.scalar(query.with_for_update(read=True))
    if researcher_id is None:
        raise NotFound(f"There is no researcher {researcher!r:.80}.")
    return researcher_id
