"""Researchers' password hashes, and the secrets of this database."""

from sqlalchemy import delete, func, insert, select, update

from vseg.errors import Conflict, NotFound
from vseg.store.database import Database, now_ms
from vseg.store.schema import researchers, settings


def add(db: Database, name: str, password_hash: str) -> None:
    """A new researcher; `Conflict` if the name is taken."""
    row = {"name": name, "password_hash": password_hash, "created_at_ms": now_ms()}
    with db.writing() as connection:
        if connection.scalar(db.insert(researchers).values(row).returning(researchers.c.id)) is None:
            raise Conflict(f"There is already a researcher called {name!r}; choose another name.", "name")


def password_hash(db: Database, name: str) -> str | None:
    """What `add` or `change` stored, or None for someone unknown."""
    with db.reading() as connection:
        return connection.scalar(select(researchers.c.password_hash).where(researchers.c.name == name))


def change(db: Database, name: str, password_hash: str) -> None:
    """Another password for a researcher."""
    with db.writing() as connection:
        changed = connection.execute(
            update(researchers).where(researchers.c.name == name).values(password_hash=password_hash)
        )
        if not changed.rowcount:
            raise NotFound(f"There is no researcher called {name!r}.")


def count(db: Database) -> int:
    """How many there are; 0 before the first log-in."""
    with db.reading() as connection:
        return connection.scalar(select(func.count()).select_from(researchers)) or 0


def setting(db: Database, name: str) -> str | None:
    """A secret of this database, or None."""
    with db.reading() as connection:
        return connection.scalar(select(settings.c.value).where(settings.c.name == name))


def set_setting(db: Database, name: str, value: str) -> None:
    """Store a secret, in place of one that may be there."""
    with db.writing() as connection:
        connection.execute(delete(settings).where(settings.c.name == name))
        connection.execute(insert(settings).values(name=name, value=value))


def agreed_setting(db: Database, name: str, proposed: str) -> str:
    """The secret that is there, or this one from now on: workers that start together end with the same."""
    with db.writing() as connection:
        connection.execute(db.insert(settings).values(name=name, value=proposed))
        return connection.scalars(select(settings.c.value).where(settings.c.name == name)).one()


def take_setting(db: Database, name: str, value: str) -> bool:
    """Remove a secret if it has this value; of several who try at the same time, one succeeds."""
    with db.writing() as connection:
        taken = connection.execute(delete(settings).where(settings.c.name == name, settings.c.value == value))
        return bool(taken.rowcount)
