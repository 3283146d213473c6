"""Researchers: password hashes and logins; and the settings of the database."""

from dataclasses import dataclass

from sqlalchemy import Connection, case, delete, func, insert, select, update

from vseg.errors import Conflict, NotFound
from vseg.store.database import Database, now_ms
from vseg.store.schema import logins, researchers, settings
from vseg.store.tokens import hash_token

LOGIN_LIFETIME_MS = 12 * 60 * 60 * 1000
SETUP_SETTING = "setup_token_hash"  # setting with the hash of the one-time link that was created last


@dataclass(frozen=True)
class Researcher:
    """A researcher who can log in."""

    name: str
    created_at_ms: int


def set_password(db: Database, name: str, password_hash: str) -> None:
    """Create a researcher, or change the password of an existing one and end all their logins."""
    row = {"name": name, "password_hash": password_hash, "created_at_ms": now_ms(), "signed_out_at_ms": 0}
    with db.writing() as connection:
        if (
            connection.scalar(db.insert_or_ignore(researchers).values(row).returning(researchers.c.id))
            is None
        ):
            _replace_password(connection, name, password_hash)


def change_password(db: Database, name: str, password_hash: str) -> None:
    """Change the password of an existing researcher and end all their logins; `NotFound` if there is none."""
    with db.writing() as connection:
        if not _replace_password(connection, name, password_hash):
            raise NotFound(f"There is no researcher {name!r:.80}.")


def remove(db: Database, name: str) -> None:
    """Delete a researcher with their logins, tokens and sign-in links; `Conflict` for the last researcher.

    An unused one-time link is deleted too, since it may be theirs.
    """
    with db.writing() as connection:
        # Locked: if two researchers remove each other at once, one remains.
        names = connection.scalars(
            select(researchers.c.name).order_by(researchers.c.id).with_for_update()
        ).all()
        if name not in names:
            raise NotFound(f"There is no researcher {name!r:.80}; they may have been removed before.")
        if len(names) == 1:
            raise Conflict(f"{name} is the only researcher; add another one first.", "last")
        # The foreign keys delete logins, tokens and sign-in links.
        connection.execute(delete(researchers).where(researchers.c.name == name))
        connection.execute(delete(settings).where(settings.c.name == SETUP_SETTING))


def get_password_hash(db: Database, name: str) -> str | None:
    """Return the password hash of a researcher, or None if there is no such researcher."""
    with db.reading() as connection:
        return connection.scalar(select(researchers.c.password_hash).where(researchers.c.name == name))


def log_out(db: Database, name: str) -> None:
    """End all logins of a researcher, in every browser."""
    with db.writing() as connection:
        _end_logins(connection, name)


def get_signed_out_at_ms(db: Database, name: str) -> int | None:
    """Return when all logins of a researcher were last ended (0 for never), or None for an unknown researcher."""
    with db.reading() as connection:
        return connection.scalar(select(researchers.c.signed_out_at_ms).where(researchers.c.name == name))


def log_in(db: Database, name: str, token: str, signed_out_at_ms: int | None) -> bool:
    """Store a login by the hash of its cookie's token; return whether it was stored.

    It is not stored if all logins were ended after the caller read `signed_out_at_ms`: a password or link that was
    valid until a moment ago no longer logs anyone in.
    """
    is_unchanged = (researchers.c.name == name) & (researchers.c.signed_out_at_ms == signed_out_at_ms)
    with db.writing() as connection:
        query = select(researchers.c.id).where(is_unchanged).with_for_update(read=True)
        researcher_id = connection.scalar(query)
        if researcher_id is None:
            return False
        connection.execute(delete(logins).where(logins.c.made_at_ms <= now_ms() - LOGIN_LIFETIME_MS))
        row = {"token_hash": hash_token(token), "researcher": researcher_id, "made_at_ms": now_ms()}
        connection.execute(insert(logins).values(row))
    return True


def find_logged_in(db: Database, token: str) -> str | None:
    """Return the researcher with this login, or None if the login is unknown, ended or expired."""
    is_valid = (logins.c.token_hash == hash_token(token)) & (
        logins.c.made_at_ms > now_ms() - LOGIN_LIFETIME_MS
    )
    with db.reading() as connection:
        return connection.scalar(select(researchers.c.name).join(logins).where(is_valid))


def count_researchers(db: Database) -> int:
    """Return the number of researchers; 0 before the first one was set up."""
    with db.reading() as connection:
        return connection.scalar(select(func.count()).select_from(researchers)) or 0


def list_researchers(db: Database) -> list[Researcher]:
    """Return all researchers, sorted by name."""
    query = select(researchers.c.name, researchers.c.created_at_ms).order_by(researchers.c.name)
    with db.reading() as connection:
        return [Researcher(*row) for row in connection.execute(query)]


def get_setting(db: Database, name: str) -> str | None:
    """Return the value of a setting of the database, or None."""
    with db.reading() as connection:
        return connection.scalar(select(settings.c.value).where(settings.c.name == name))


def set_setting(db: Database, name: str, value: str) -> None:
    """Store a setting, replacing the old value."""
    with db.writing() as connection:
        connection.execute(db.insert_or_replace(settings, name=name, value=value))


def consume_setting(db: Database, name: str, value: str) -> bool:
    """Delete a setting if it has this value; of several simultaneous calls, one returns True."""
    with db.writing() as connection:
        result = connection.execute(
            delete(settings).where(settings.c.name == name, settings.c.value == value)
        )
        return bool(result.rowcount)


def _replace_password(connection: Connection, name: str, password_hash: str) -> bool:
    """Change the password of a researcher and end all logins; return whether the researcher exists."""
    change = update(researchers).where(researchers.c.name == name).values(password_hash=password_hash)
    exists = bool(connection.execute(change).rowcount)
    _end_logins(connection, name)
    return exists


def _end_logins(connection: Connection, name: str) -> None:
    """Delete all logins of a researcher and set `signed_out_at_ms` to a higher value, even if the clock went back.

    `log_in` compares that value, so that a login that is being made at the same time fails.
    """
    later = case(
        (researchers.c.signed_out_at_ms < now_ms(), now_ms()), else_=researchers.c.signed_out_at_ms + 1
    )
    is_this = researchers.c.name == name
    connection.execute(update(researchers).where(is_this).values(signed_out_at_ms=later))
    researcher_id = select(researchers.c.id).where(is_this).scalar_subquery()
    connection.execute(delete(logins).where(logins.c.researcher == researcher_id))
