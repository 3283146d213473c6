"""Write a database to one file while the server is running, and restore a database from such a file.

A backup is always a SQLite database. It can be opened like any other database and be restored to SQLite or PostgreSQL.
SQLite databases are copied with VACUUM INTO, PostgreSQL databases row by row; both copies show one moment. A backup is
private, on the disk, has a checksum and was verified before it gets its name.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, Connection, delete, exists, func, inspect, literal, select

from vseg._support.progress import StartProgress, no_progress
from vseg._support.temporary_folders import temporary_folder
from vseg.errors import Conflict, InvalidInput, NotFound, SchemaMismatch, VsegError
from vseg.store import checksum, researchers
from vseg.store.database import Database, locked_message, log_long_wait, parse_url
from vseg.store.migrate import ADVISORY_LOCK, check_revision, is_up_to_date, migrate
from vseg.store.schema import logins, metadata, settings, sign_ins
from vseg.store.transfer import check_counts, copy_file, copy_rows, new_file, open_read_only

DAMAGED_FILE_ERRORS = (sqlite3.DatabaseError, UnicodeDecodeError)
"""The exceptions that reading a damaged SQLite file raises."""


@dataclass(frozen=True)
class BackupContents:
    """The content of a backup: how many rows each table has."""

    rows: dict[str, int]

    def __str__(self) -> str:
        main_tables = ("studies", "participants", "responses")
        counts = ", ".join(f"{table} {self.rows.get(table, 0)}" for table in main_tables)
        return f"{counts}; {sum(self.rows.values())} rows in {len(self.rows)} tables"


def back_up(db: Database, file: Path, *, progress: StartProgress = no_progress) -> BackupContents:
    """Write a database, as it is at one moment, to a new file; `Conflict` if the file exists.

    Examples
    --------
    >>> with store.open("sqlite:///vseg.db", update_schema=False) as db:  # doctest: +SKIP
    ...     print(store.backup.back_up(db, Path("vseg-backup.db")))
    studies 3, participants 41, responses 31201; 33012 rows in 17 tables
    """
    with new_file(file) as temporary:
        if db.is_sqlite:
            with log_long_wait(db.address):
                _check_checksum(Path(db.address))
                _list_tables(Path(db.address), "database")
            copy_file(Path(db.address), temporary, progress)
        else:
            _copy_from_postgresql(db, temporary, progress)
        checksum.write_checksum(temporary)
        return check_backup(temporary)


def restore(file: Path, url: str, *, progress: StartProgress = no_progress) -> BackupContents:
    """Create a new database from a backup and bring it up to date; `Conflict` if the target is not empty.

    All researchers are logged out, since some may have logged out after the backup, and their sign-in links become
    invalid, since they may have been used.
    """
    check_backup(file)
    with closing(open_read_only(file)) as connection:
        for (revision,) in connection.execute("SELECT version_num FROM alembic_version"):
            check_revision(str(file), revision)  # here, so that the message names this file and not a copy
    target_url = parse_url(url)
    if target_url.get_backend_name() == "sqlite":
        with new_file(Path(str(target_url.database))) as temporary:
            _copy_and_update(file, temporary, progress).close()
            _remove_log(temporary)
            return check_backup(temporary)
    with temporary_folder("restore") as folder:
        temporary = folder / "backup.db"
        with _copy_and_update(file, temporary, no_progress) as source, Database(target_url) as target:
            with target.reading() as connection:
                _check_empty(target, connection)  # before its tables are created or updated
            migrate(target)
            _copy_to_postgresql(source, target, progress)
        return check_backup(temporary)


def check_backup(file: Path) -> BackupContents:
    """Verify that a file is an undamaged backup of vseg and return its content; `InvalidInput` if it is not."""
    _check_file(file)
    _check_checksum(file)
    _list_tables(file)
    try:
        with closing(open_read_only(file)) as connection:
            problems = [row[0] for row in connection.execute("PRAGMA integrity_check(1)")]
            orphan = connection.execute("PRAGMA foreign_key_check").fetchone()
        rows = _count_rows(file)
    except DAMAGED_FILE_ERRORS as error:
        _check_unlocked(file, error)
        raise InvalidInput(f"{file} is damaged ({error}); use another backup.") from error
    if problems != ["ok"] or orphan is not None:
        reason = problems[0] if orphan is None else f"rows that {orphan[0]} refers to are missing"
        raise InvalidInput(f"{file} is damaged ({reason}); use another backup.")
    return BackupContents(rows)


def _count_rows(file: Path) -> dict[str, int]:
    names = _list_tables(file)
    with closing(open_read_only(file)) as connection:
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}


def _list_tables(file: Path, kind: str = "backup") -> list[str]:
    """Return the tables of vseg in a SQLite file; `InvalidInput` if it is not a database of vseg."""
    _check_file(file)
    try:
        with closing(open_read_only(file)) as connection:
            names = {
                row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
    except DAMAGED_FILE_ERRORS as error:
        _check_unlocked(file, error)
        raise InvalidInput(
            f"{file} is not a {kind} of vseg, or is damaged ({error}); choose another file."
        ) from error
    if not {"alembic_version", "studies"} <= names:
        raise InvalidInput(f"{file} is not a {kind} of vseg; choose another file.")
    return [name for name in metadata.tables if name in names]


def _check_file(file: Path) -> None:
    if not file.is_file():
        problem = f"{file} is a folder" if file.is_dir() else f"There is no file {file}"
        raise NotFound(f"{problem}; expected a file that vseg backup wrote.")


def _check_checksum(file: Path) -> None:
    if not checksum.is_intact(file):
        raise InvalidInput(
            f"{file} is damaged, or another program changed it after vseg backup wrote it; use another backup."
        )


def _check_unlocked(file: Path, error: Exception) -> None:
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        raise VsegError(locked_message(str(file))) from error


def _copy_from_postgresql(db: Database, file: Path, progress: StartProgress) -> None:
    """Copy all rows of a PostgreSQL database, as it is at one moment, to an empty file."""
    if not is_up_to_date(db):
        raise SchemaMismatch(
            f"{db.address} is empty or was written by another version of vseg; make the backup with that version, or "
            "bring the database up to date first, for example with vseg export."
        )
    with _open_and_update(file) as target, db.reading() as source, target.writing() as connection:
        source.execution_options(isolation_level="REPEATABLE READ")
        copy_rows(source, connection, progress)
    _remove_log(file)


def _remove_log(file: Path) -> None:
    """Merge the write-ahead log into the file, so that it can be read from a read-only medium."""
    try:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.DatabaseError as error:
        raise VsegError(f"{file.parent} has no room for the copy ({error}); nothing was written.") from error


def _copy_and_update(file: Path, copy: Path, progress: StartProgress) -> Database:
    """Copy a backup, bring the copy up to date and log out all researchers; return the open copy."""
    copy_file(file, copy, progress)
    check_counts(_count_rows(file), _count_rows(copy))
    db = _open_and_update(copy)
    try:
        for researcher in researchers.list_researchers(db):
            researchers.log_out(db, researcher.name)
        with db.writing() as connection:
            for table in (logins, sign_ins):
                connection.execute(delete(table))
            connection.execute(delete(settings).where(settings.c.name == researchers.SETUP_SETTING))
    except BaseException:
        db.close()
        raise
    return db


def _open_and_update(file: Path) -> Database:
    db = Database(URL.create("sqlite+pysqlite", database=str(file)))
    try:
        migrate(db)
    except BaseException:
        db.close()
        raise
    return db


def _copy_to_postgresql(source: Database, target: Database, progress: StartProgress) -> None:
    """Copy all rows of a SQLite database to an empty PostgreSQL database in one transaction."""
    with source.reading() as rows, target.writing() as connection:
        # If two processes restore at once, the second one is refused.
        connection.execute(select(func.pg_advisory_xact_lock(ADVISORY_LOCK)))
        _check_empty(target, connection)
        copy_rows(rows, connection, progress)
        for table in metadata.sorted_tables:
            # Sequences number the next row; they have not noticed the copied rows.
            if "id" in table.c:
                sequence = func.pg_get_serial_sequence(table.name, "id")
                newest = select(func.max(table.c.id)).scalar_subquery()
                connection.execute(select(func.setval(sequence, newest)))


def _check_empty(target: Database, connection: Connection) -> None:
    existing = inspect(connection).get_table_names()
    for table in metadata.sorted_tables:
        if table.name in existing and connection.scalar(
            select(exists(select(literal(1)).select_from(table)))
        ):
            raise Conflict(
                f"{target.address} already has rows in {table.name} and is not overwritten; restore to a new database "
                "(createdb NAME)."
            )
