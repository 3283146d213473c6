"""Bringing a database up to date, once, however many processes start at the same time."""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from vseg.errors import InvalidInput, SchemaMismatch
from vseg.store.schema import metadata

if TYPE_CHECKING:
    from alembic.config import Config

    from vseg.store.database import Database

MIGRATIONS = Path(__file__).parent / "migrations"
REVISIONS = sorted(
    path.name[:4] for path in (MIGRATIONS / "versions").glob("[0-9]*.py")
)  # revisions count from 0001
HEAD = REVISIONS[-1]
ADVISORY_LOCK = 0x76736567  # "vseg": the number of our advisory lock on PostgreSQL


def migrate(db: "Database") -> str | None:
    """Make the tables, or bring them up to date; `SchemaMismatch` if they are newer than this code.

    What is handed back is the schema that was there before, if tables of ours were and were changed.
    """
    if is_up_to_date(db):
        return None
    from alembic import command

    config = _config()
    with db.writing() as connection:
        if not db.is_sqlite:  # on SQLite the transaction itself is the lock
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": ADVISORY_LOCK})
        found = _revision(connection)
        _check(db, connection, found)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return found if found != HEAD else None  # another process may have been faster


def is_up_to_date(db: "Database") -> bool:
    """Whether the tables are those of this code."""
    with db.reading() as connection:
        return _revision(connection) == HEAD


def check_revision(place: str, found: str) -> None:
    """`SchemaMismatch` if this code does not know the schema of a database."""
    if found not in REVISIONS:
        raise SchemaMismatch(
            f"{place} was written by a newer vseg (its schema is {found}, this vseg knows up to {HEAD}); "
            "use that one, or a newer one."
        )


def _check(db: "Database", connection: Connection, found: str | None) -> None:
    if found is None:
        ours = sorted(set(inspect(connection).get_table_names()) & set(metadata.tables))
        if ours:
            raise SchemaMismatch(
                f"{db.place} already has a table {ours[0]!r} that vseg did not make; give vseg a database of its own."
            )
        _check_encoding(db, connection)
    else:
        check_revision(db.place, found)


def _check_encoding(db: "Database", connection: Connection) -> None:
    """Before there are tables: an answer with a character that the database cannot hold would be refused."""
    encoding = "UTF8" if db.is_sqlite else connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        raise InvalidInput(
            f"{db.place} is encoded as {encoding}, and vseg needs UTF8; make another one: "
            "createdb --encoding=UTF8 --template=template0 NAME."
        )


def _revision(connection: Connection) -> str | None:
    """Read without Alembic, which takes a third of a second to load, most times for this question alone."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.scalar(text("SELECT version_num FROM alembic_version"))


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
