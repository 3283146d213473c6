"""What is left of deleted rows in the files of a database, and how it goes.

Deleting takes a row out of every table; its bytes may stay: in SQLite's log (-wal), and in pages that were divided
while rows were moved, `secure_delete` or not. So whoever deletes something personal calls `mark` in the same
transaction, and `sweep` rewrites the file and empties the log. What was marked and not swept, because the computer
stopped or someone was reading, is still marked: the server sweeps once a day.
"""

import secrets

from sqlalchemy import Connection, delete, insert, select

from vseg.errors import VsegError
from vseg.store.database import LOCK_TIMEOUT_S, Database
from vseg.store.schema import PERSONAL_TABLES, settings

MARK = "traces-"  # the names of the settings that say: something was deleted and not yet swept
VACUUM_PERSONAL_TABLES = "VACUUM " + ", ".join(table.name for table in PERSONAL_TABLES)
MAX_READER_WAIT_S = 5  # so long answers wait for someone who reads; after that the log stays for now

SWEPT = "The database file was rewritten and its log emptied: no trace is left in them."
LOG_KEPT = (
    "The database is being read (by an export, perhaps), so that its file and its log may hold traces for now; the "
    "server rewrites them within a day, and vseg erase STUDY --sweep does it at once when nobody reads."
)
VACUUMED = (
    "PostgreSQL was told to reuse the space (VACUUM), which frees the bytes without overwriting them: VACUUM FULL "
    "rewrites the tables, and its write-ahead log, archives of it and replicas forget when they are recycled."
)
OUT_OF_REACH = "Backups, exports and copies made before still hold the data: delete them, or erase there too."


def mark_due(connection: Connection) -> None:
    """Note in a transaction that deletes something personal that a sweep is due."""
    connection.execute(insert(settings).values(name=MARK + secrets.token_hex(8), value=""))


def is_due(db: Database) -> bool:
    """Whether something was deleted that is not swept yet."""
    return bool(_marks(db))


def sweep(db: Database) -> str:
    """Leave no trace of deleted rows in the database's files, as far as we reach; a sentence says how far that is."""
    try:
        marks = _marks(db)
        if not db.is_sqlite:
            db.run_outside_transaction(VACUUM_PERSONAL_TABLES)
        elif not _rewritten(db):
            return LOG_KEPT
        with db.writing() as connection:
            connection.execute(delete(settings).where(settings.c.name.in_(marks)))
    except VsegError as error:
        return (
            "The rows are gone, but the traces that they left in the files are not yet; the server tries again within "
            f"a day. {error}"
        )
    return SWEPT if db.is_sqlite else VACUUMED


def _rewritten(db: Database) -> bool:
    """Rewrite the file through its log, and empty that; whether it was emptied, which nobody may read meanwhile."""
    db.run_outside_transaction("VACUUM")
    waits = f"PRAGMA busy_timeout = {1000 * MAX_READER_WAIT_S}"
    try:
        ((busy, *_),) = db.run_outside_transaction(waits, "PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.run_outside_transaction(f"PRAGMA busy_timeout = {1000 * LOCK_TIMEOUT_S}")
    return not busy


def _marks(db: Database) -> list[str]:
    with db.reading() as connection:
        return list(connection.scalars(select(settings.c.name).where(settings.c.name.startswith(MARK))))
