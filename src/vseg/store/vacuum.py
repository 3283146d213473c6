"""Remove what deleted rows leave behind in the files of a database.

After a DELETE the bytes of a row may remain: in the write-ahead log of SQLite (-wal), and in pages that were split
while rows were moved, even with `secure_delete`. So a transaction that deletes personal data calls `mark_due`, and
`remove_traces` then rewrites the file and empties the log (`vseg erase --sweep` does it at once). If it could not
finish, because the computer stopped or someone was reading, the mark remains and the server tries again once a day.
"""

import secrets

from sqlalchemy import Connection, delete, insert, select

from vseg.errors import VsegError
from vseg.store.database import LOCK_TIMEOUT_S, Database
from vseg.store.schema import PERSONAL_TABLES, settings

MARK = "traces-"  # prefix of the settings that record a deletion whose traces were not removed yet
VACUUM_PERSONAL_TABLES = "VACUUM " + ", ".join(table.name for table in PERSONAL_TABLES)
MAX_READER_WAIT_S = 5  # responses wait this long for a reader to finish; after that the log is not emptied

TRACES_REMOVED = "The database file was rewritten and its log emptied: no trace is left in them."
LOG_KEPT = (
    "The database is being read (by an export, perhaps), so its file and its log may still hold traces; the server "
    "rewrites them within a day. To do it at once, sweep again when nobody reads the database."
)
VACUUMED = (
    "PostgreSQL may now reuse the space (VACUUM), but the bytes are not overwritten yet: VACUUM FULL rewrites the "
    "tables; the write-ahead log, its archives and replicas lose the data when they are recycled."
)
OUT_OF_REACH = (
    "Earlier backups, exports and copies still contain the data: delete them, or erase the data there, too."
)


def mark_due(connection: Connection) -> None:
    """Record, in a transaction that deletes personal data, that its traces must be removed."""
    connection.execute(insert(settings).values(name=MARK + secrets.token_hex(8), value=""))


def is_due(db: Database) -> bool:
    """Return whether personal data were deleted whose traces were not removed yet."""
    return bool(_list_marks(db))


def remove_traces(db: Database) -> str:
    """Remove the traces of deleted rows from the database's files; return a message that says what was done."""
    try:
        marks = _list_marks(db)
        if not db.is_sqlite:
            db.run_outside_transaction(VACUUM_PERSONAL_TABLES)
        elif not _rewrite_file(db):
            return LOG_KEPT
        with db.writing() as connection:
            connection.execute(delete(settings).where(settings.c.name.in_(marks)))
    except VsegError as error:
        return (
            "The rows were deleted, but their traces in the files were not removed yet; the server tries again within "
            f"a day. {error}"
        )
    return TRACES_REMOVED if db.is_sqlite else VACUUMED


def _rewrite_file(db: Database) -> bool:
    """Rewrite a SQLite file and empty its log; return False if the log could not be emptied because of a reader."""
    db.run_outside_transaction("VACUUM")
    set_timeout = f"PRAGMA busy_timeout = {1000 * MAX_READER_WAIT_S}"
    try:
        ((busy, *_),) = db.run_outside_transaction(set_timeout, "PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.run_outside_transaction(f"PRAGMA busy_timeout = {1000 * LOCK_TIMEOUT_S}")
    return not busy


def _list_marks(db: Database) -> list[str]:
    with db.reading() as connection:
        return list(connection.scalars(select(settings.c.name).where(settings.c.name.startswith(MARK))))
