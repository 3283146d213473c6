"""What lets a researcher in besides the password: personal tokens for scripts, and links that work once.

Of these and of all other tokens only hashes are stored.
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
SIGN_IN_LIFETIME_MS = 10 * 60_000


def hash_token(token: str) -> str:
    """What is stored of a token, or of another secret."""
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True)
class TokenRow:
    """A token without the token itself; `last_used_at_ms` to the minute, None if it never was."""

    id: int
    label: str
    created_at_ms: int
    last_used_at_ms: int | None


def create(db: Database, researcher: str, label: str) -> str:
    """A new token of a researcher, to be shown once; the label says what it is for."""
    label = label.strip()
    if not 1 <= len(label) <= MAX_LABEL_LENGTH or not label.isprintable():
        raise InvalidInput(
            f"A token has a label of 1 to {MAX_LABEL_LENGTH} characters that says what it is for, got {len(label)}."
        )
    token = PREFIX + secrets.token_urlsafe(32)
    with db.writing() as connection:
        whose = _number_of(connection, researcher)
        made = connection.scalar(select(func.count()).where(tokens.c.researcher == whose)) or 0
        if made >= MAX_TOKENS:
            raise Conflict(f"A researcher has at most {MAX_TOKENS} tokens; revoke one that is not needed.")
        row = {
            "researcher": whose,
            "label": label,
            "token_hash": hash_token(token),
            "created_at_ms": clock_ms(),
        }
        connection.execute(insert(tokens).values(row))
    return token


def list_tokens(db: Database, researcher: str) -> list[TokenRow]:
    """A researcher's tokens in the order in which they were made."""
    shown = [tokens.c[name] for name in TokenRow.__dataclass_fields__]
    wanted = select(*shown).join(researchers).where(researchers.c.name == researcher).order_by(tokens.c.id)
    with db.reading() as connection:
        return [TokenRow(*row) for row in connection.execute(wanted)]


def revoke(db: Database, researcher: str, number: int) -> None:
    """Make one of a researcher's own tokens worthless; `NotFound` if there is none of that `id`."""
    with db.writing() as connection:
        mine = (tokens.c.researcher == _number_of(connection, researcher)) & (tokens.c.id == number)
        if not connection.execute(delete(tokens).where(mine)).rowcount:
            raise NotFound(f"You have no token {number}; it may have been revoked before.")


def find_researcher(db: Database, token: str, *, now_ms: int | None = None) -> str | None:
    """Whose token this is, or None; that it was used is noted at most once a minute."""
    now_ms = clock_ms() if now_ms is None else now_ms
    wanted = select(tokens.c.id, tokens.c.last_used_at_ms, researchers.c.name).join(researchers)
    with db.reading() as connection:
        found = connection.execute(wanted.where(tokens.c.token_hash == hash_token(token))).one_or_none()
    if found is None:
        return None
    before = now_ms - LAST_USE_RESOLUTION_MS
    if found.last_used_at_ms is None or found.last_used_at_ms <= before:
        stale = or_(tokens.c.last_used_at_ms.is_(None), tokens.c.last_used_at_ms <= before)
        with db.writing() as connection:
            connection.execute(
                update(tokens).where(tokens.c.id == found.id, stale).values(last_used_at_ms=now_ms)
            )
    return str(found.name)


def create_sign_in(db: Database, researcher: str, *, now_ms: int | None = None) -> str:
    """A token that logs a researcher in once, within ten minutes."""
    now_ms = clock_ms() if now_ms is None else now_ms
    token = secrets.token_urlsafe(32)
    with db.writing() as connection:
        connection.execute(delete(sign_ins).where(sign_ins.c.expires_at_ms <= now_ms))
        row = {"token_hash": hash_token(token), "expires_at_ms": now_ms + SIGN_IN_LIFETIME_MS}
        connection.execute(insert(sign_ins).values(row | {"researcher": _number_of(connection, researcher)}))
    return token


def consume_sign_in(db: Database, token: str, *, now_ms: int | None = None) -> str | None:
    """Who is logged in by this token, which is used up; None if it was, or is too old. Of several who try, one is."""
    now_ms = clock_ms() if now_ms is None else now_ms
    mine = sign_ins.c.token_hash == hash_token(token)
    wanted = select(researchers.c.name).join(sign_ins).where(mine, sign_ins.c.expires_at_ms > now_ms)
    with db.writing() as connection:
        name = connection.scalar(wanted)
        taken = connection.execute(delete(sign_ins).where(mine)).rowcount
    return name if taken else None


def _number_of(connection: Connection, researcher: str) -> int:
    mine = select(researchers.c.id).where(researchers.c.name == researcher)
    number = connection.scalar(mine.with_for_update(read=True))  # nobody removes them meanwhile
    if number is None:
        raise NotFound(f"There is no researcher {researcher!r:.80}.")
    return number
