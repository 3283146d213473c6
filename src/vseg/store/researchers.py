"""Researchers' password hashes, the browsers in which they are logged in, and the settings of this database."""

from dataclasses import dataclass

from sqlalchemy import Connection, case, delete, func, insert, select, update

from vseg.errors import Conflict, NotFound
from vseg.store.database import Database, now_ms
from vseg.store.schema import logins, researchers, settings
from vseg.store.tokens import hash_token

LOGIN_LIFETIME_MS = 12 * 60 * 60 * 1000
SETUP_SETTING = (
    "setup_token_hash"  # the setting that holds the one-time link that was given last, by its hash
)


@dataclass(frozen=True)
class Researcher:
    """Someone with a login."""

    name: str
    created_at_ms: int


def set_password(db: Database, name: str, password_hash: str) -> None:
    """A new researcher, or another password for the one of this name, whose logins all end."""
    row = {"name": name, "password_hash": password_hash, "created_at_ms": now_ms(), "signed_out_at_ms": 0}
    with db.writing() as connection:
        if connection.scalar(db.insert_or_ignore(researchers).values(row).returning(researchers.c.id)) is None:
            _replace_password(connection, name, password_hash)


def change_password(db: Database, name: str, password_hash: str) -> None:
    """Another password, as above; `NotFound` for someone who was removed meanwhile, and stays so."""
    with db.writing() as connection:
        if not _replace_password(connection, name, password_hash):
            raise NotFound(f"There is no researcher {name!r:.80}.")


def remove(db: Database, name: str) -> None:
    """Take away a researcher with their logins, tokens and sign-in links; `Conflict` for the last one.

    A one-time link that waits is void, too: it may be theirs.
    """
    with db.writing() as connection:
        # Locked, so that of two who remove each other one stays.
        there = connection.scalars(
            select(researchers.c.name).order_by(researchers.c.id).with_for_update()
        ).all()
        if name not in there:
            raise NotFound(f"There is no researcher {name!r:.80}; they may have been removed before.")
        if len(there) == 1:
            raise Conflict(f"{name} is the only researcher here; let someone else in first.", "last")
        connection.execute(
            delete(researchers).where(researchers.c.name == name)
        )  # the rest goes by its foreign key
        connection.execute(delete(settings).where(settings.c.name == SETUP_SETTING))


def get_password_hash(db: Database, name: str) -> str | None:
    """What `set_password` stored last, or None for someone unknown."""
    with db.reading() as connection:
        return connection.scalar(select(researchers.c.password_hash).where(researchers.c.name == name))


def sign_out(db: Database, name: str) -> None:
    """End all logins of a researcher, in every browser."""
    with db.writing() as connection:
        _end_logins(connection, name)


def get_signed_out_at_ms(db: Database, name: str) -> int | None:
    """When the logins of a researcher were ended last, 0 for never, or None for someone unknown."""
    with db.reading() as connection:
        return connection.scalar(select(researchers.c.signed_out_at_ms).where(researchers.c.name == name))


def log_in(db: Database, name: str, token: str, signed_out_at_ms: int | None) -> bool:
    """Store a login by the hash of its cookie's token, unless logins were ended since `signed_out_at_ms` was read.

    So whoever knew the password, or had a link, until it was changed a moment ago does not stay.
    """
    mine = (researchers.c.name == name) & (researchers.c.signed_out_at_ms == signed_out_at_ms)
    with db.writing() as connection:
        number = connection.scalar(select(researchers.c.id).where(mine).with_for_update(read=True))
        if number is None:
            return False
        connection.execute(delete(logins).where(logins.c.made_at_ms <= now_ms() - LOGIN_LIFETIME_MS))
        row = {"token_hash": hash_token(token), "researcher": number, "made_at_ms": now_ms()}
        connection.execute(insert(logins).values(row))
    return True


def find_logged_in(db: Database, token: str) -> str | None:
    """The researcher with this login, or None if there is no such login, or no longer."""
    good = (logins.c.token_hash == hash_token(token)) & (logins.c.made_at_ms > now_ms() - LOGIN_LIFETIME_MS)
    with db.reading() as connection:
        return connection.scalar(select(researchers.c.name).join(logins).where(good))


def count_researchers(db: Database) -> int:
    """How many there are; 0 before the first log-in."""
    with db.reading() as connection:
        return connection.scalar(select(func.count()).select_from(researchers)) or 0


def list_researchers(db: Database) -> list[Researcher]:
    """All of them, by name."""
    wanted = select(researchers.c.name, researchers.c.created_at_ms).order_by(researchers.c.name)
    with db.reading() as connection:
        return [Researcher(*row) for row in connection.execute(wanted)]


def get_setting(db: Database, name: str) -> str | None:
    """A secret of this database, or None."""
    with db.reading() as connection:
        return connection.scalar(select(settings.c.value).where(settings.c.name == name))


def set_setting(db: Database, name: str, value: str) -> None:
    """Store a secret, in place of one that may be there."""
    with db.writing() as connection:
        connection.execute(delete(settings).where(settings.c.name == name))
        connection.execute(insert(settings).values(name=name, value=value))


def consume_setting(db: Database, name: str, value: str) -> bool:
    """Remove a secret if it has this value; of several who try at the same time, one succeeds."""
    with db.writing() as connection:
        taken = connection.execute(delete(settings).where(settings.c.name == name, settings.c.value == value))
        return bool(taken.rowcount)


def _replace_password(connection: Connection, name: str, password_hash: str) -> bool:
    mine = researchers.c.name == name
    is_there = connection.execute(
        update(researchers).where(mine).values(password_hash=password_hash)
    ).rowcount
    _end_logins(connection, name)
    return bool(is_there)


def _end_logins(connection: Connection, name: str) -> None:
    """All of them go. One that is being made looks at this number, which therefore changes, whatever clocks say."""
    later = case(
        (researchers.c.signed_out_at_ms < now_ms(), now_ms()), else_=researchers.c.signed_out_at_ms + 1
    )
    mine = researchers.c.name == name
    connection.execute(update(researchers).where(mine).values(signed_out_at_ms=later))
    whose = select(researchers.c.id).where(mine).scalar_subquery()
    connection.execute(delete(logins).where(logins.c.researcher == whose))
