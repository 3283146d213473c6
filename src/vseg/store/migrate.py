"""Bring the tables of a database up to date; safe if several processes start at the same time."""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from vseg.errors import InvalidInput, SchemaMismatch
from vseg.store.schema import metadata

if TYPE_CHECKING:
    from alembic.config import Config

    from vseg.store.database import Database

MIGRATIONS = Path(__file__).parent / "migrations"
REVISIONS = sorted(path.name[:4] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))
"""All schema revisions that this version of vseg knows, from 0001."""
HEAD = REVISIONS[-1]
ADVISORY_LOCK = 0x76736567  # "vseg" in ASCII; the number of the advisory lock on PostgreSQL


def migrate(db: "Database") -> str | None:
    """Create the tables or bring them up to date; `SchemaMismatch` if they are newer than this code.

    Returns
    -------
    str or None
        The revision before the update, or None if the tables were new or already up to date.
    """
    from vseg.store.database import log_long_wait

    with log_long_wait(db.address):
        if is_up_to_date(db):
            return None
    from alembic import command

    config = _config()
    with log_long_wait(db.address) as stop_waiting, db.writing() as connection:
        if not db.is_sqlite:  # on SQLite the transaction itself is the lock
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": ADVISORY_LOCK})
        stop_waiting()  # what follows takes long on a busy computer, but nobody has locked the database
        revision = _read_revision(connection)
        _check_database(db, connection, revision)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return revision if revision != HEAD else None  # another process may have updated it first


def is_up_to_date(db: "Database") -> bool:
    """Return whether the database has the newest revision of the tables."""
    with db.reading() as connection:
        return _read_revision(connection) == HEAD


def check_revision(address: str, revision: str) -> None:
    """Raise `SchemaMismatch` if this code does not know the schema revision of a database."""
    if revision not in REVISIONS:
        raise SchemaMismatch(
            f"{address} was written by a newer vseg (its schema is {revision}, this vseg knows up to {HEAD}); "
            "use that version or a newer one."
        )


def _check_database(db: "Database", connection: Connection, revision: str | None) -> None:
    """Check that the tables can be created in an empty database, or updated in one of vseg."""
    if revision is not None:
        check_revision(db.address, revision)
        return
    conflicting = sorted(set(inspect(connection).get_table_names()) & set(metadata.tables))
    if conflicting:
        raise SchemaMismatch(
            f"{db.address} already has a table {conflicting[0]!r} that vseg did not create; use a separate database "
            "for vseg."
        )
    _check_encoding(db, connection)


def _check_encoding(db: "Database", connection: Connection) -> None:
    """Check that the database can hold every character; otherwise some responses could not be stored."""
    encoding = "UTF8" if db.is_sqlite else connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        raise InvalidInput(
            f"{db.address} has the encoding {encoding}, but vseg needs UTF8; create another database: "
            "createdb --encoding=UTF8 --template=template0 NAME."
        )


def _read_revision(connection: Connection) -> str | None:
    """Return the schema revision, or None for a database without tables of vseg.

    Alembic could do this too, but takes a third of a second to import.
    """
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.scalar(text("SELECT version_num FROM alembic_version"))


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
