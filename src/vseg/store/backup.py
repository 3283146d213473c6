"""A database as one file, taken while the server writes, and such a file as a database again.

A backup is a SQLite database, whichever kind it was taken from: one format, which `vseg export --db sqlite:///FILE`
opens as it is, and which can be restored into either kind. Of SQLite it is taken by VACUUM INTO, of PostgreSQL row by
row; both see one instant. A file is private, on the disk, sealed and checked before it has its name.
"""

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, Connection, delete, exists, func, inspect, literal, select

from vseg.errors import Conflict, InvalidInput, NotFound, SchemaMismatch, VsegError
from vseg.store import checksum, researchers
from vseg.store.database import Database, locked_message, log_long_wait, parse_url
from vseg.store.migrate import ADVISORY_LOCK, check_revision, is_up_to_date, migrate
from vseg.store.schema import logins, metadata, settings, sign_ins
from vseg.store.transfer import (
    Progress,
    check_counts,
    copy_file,
    copy_rows,
    new_file,
    no_progress,
    open_read_only,
)

DAMAGED_FILE_ERRORS = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What reading a damaged SQLite file raises."""


@dataclass(frozen=True)
class BackupContents:
    """What a backup holds: how many rows of each table."""

    rows: dict[str, int]

    def __str__(self) -> str:
        shown = ("studies", "participants", "responses")
        counts = ", ".join(f"{table} {self.rows.get(table, 0)}" for table in shown)
        return f"{counts}; {sum(self.rows.values())} rows in {len(self.rows)} tables"


def back_up(db: Database, file: Path, *, progress: Progress = no_progress) -> BackupContents:
    """Write all of a database, as it is at one instant, into a new file; `Conflict` if there is one of that name.

    Examples
    --------
    >>> with store.open("sqlite:///vseg.db", update_schema=False) as db:  # doctest: +SKIP
    ...     print(store.backup.back_up(db, Path("vseg-backup.db")))
    studies 3, participants 41, responses 31201; 33012 rows in 17 tables
    """
    with new_file(file) as temporary:
        if db.is_sqlite:
            with log_long_wait(db.place):
                _check_seal(Path(db.place))
                _tables(Path(db.place), "database")
            copy_file(Path(db.place), temporary, progress)
        else:
            _read_out(db, temporary, progress)
        checksum.write_checksum(temporary)
        return check_backup(temporary)


def restore(file: Path, url: str, *, progress: Progress = no_progress) -> BackupContents:
    """Make a new database out of a backup, brought up to date; one that holds anything is left alone (`Conflict`).

    Logins end, since whoever logged out after the backup would otherwise be logged in again, and links that let a
    researcher in are void, since they may have been used.
    """
    check_backup(file)
    with closing(open_read_only(file)) as connection:
        for (revision,) in connection.execute("SELECT version_num FROM alembic_version"):
            check_revision(str(file), revision)  # by its own name, not by that of a copy
    where = parse_url(url)
    if where.get_backend_name() == "sqlite":
        with new_file(Path(str(where.database))) as temporary:
            _brought_up_to_date(file, temporary, progress).close()
            _without_log(temporary)
            return check_backup(temporary)
    with tempfile.TemporaryDirectory(prefix="vseg-") as folder:
        temporary = Path(folder, "backup.db")
        with _brought_up_to_date(file, temporary, no_progress) as source, Database(where) as target:
            with target.reading() as connection:
                _check_empty(target, connection)  # before anything is brought up to date there
            migrate(target)
            _write_in(source, target, progress)
        return check_backup(temporary)


def check_backup(file: Path) -> BackupContents:
    """How many rows a backup has, once it is known to be whole and one of ours; else a sentence."""
    _check_file(file)
    _check_seal(file)
    _tables(file)
    try:
        with closing(open_read_only(file)) as connection:
            found = [row[0] for row in connection.execute("PRAGMA integrity_check(1)")]
            orphan = connection.execute("PRAGMA foreign_key_check").fetchone()
        rows = _counts(file)
    except DAMAGED_FILE_ERRORS as error:
        _check_unlocked(file, error)
        raise InvalidInput(f"{file} is damaged ({error}); use another backup.") from error
    if found != ["ok"] or orphan is not None:
        why = found[0] if orphan is None else f"rows that {orphan[0]} refers to are missing"
        raise InvalidInput(f"{file} is damaged ({why}); use another backup.")
    return BackupContents(rows)


def _counts(file: Path) -> dict[str, int]:
    names = _tables(file)
    with closing(open_read_only(file)) as connection:
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}


def _tables(file: Path, what: str = "backup") -> list[str]:
    """Which of our tables a SQLite file has; a sentence if it is none of ours."""
    _check_file(file)
    try:
        with closing(open_read_only(file)) as connection:
            names = {
                row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
    except DAMAGED_FILE_ERRORS as error:
        _check_unlocked(file, error)
        raise InvalidInput(
            f"{file} is not a {what} of vseg, or is damaged ({error}); name another file."
        ) from error
    if not {"alembic_version", "studies"} <= names:
        raise InvalidInput(f"{file} is not a {what} of vseg; name another file.")
    return [name for name in metadata.tables if name in names]


def _check_file(file: Path) -> None:
    if not file.is_file():
        what_is_there = f"{file} is a folder" if file.is_dir() else f"There is no file {file}"
        raise NotFound(f"{what_is_there}; name a backup that vseg backup wrote.")


def _check_seal(file: Path) -> None:
    if not checksum.is_intact(file):
        raise InvalidInput(
            f"{file} is damaged, or another program has changed it since vseg backup wrote it; use another backup."
        )


def _check_unlocked(file: Path, error: Exception) -> None:
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        raise VsegError(locked_message(str(file))) from error


def _read_out(db: Database, file: Path, progress: Progress) -> None:
    """The rows of a PostgreSQL database at one instant, into an empty file."""
    if not is_up_to_date(db):
        raise SchemaMismatch(
            f"{db.place} is of another version of vseg, or empty; take the backup with that version, or let this one "
            "bring it up to date first: vseg export does."
        )
    with _opened(file) as target, db.reading() as source, target.writing() as connection:
        source.execution_options(isolation_level="REPEATABLE READ")
        copy_rows(source, connection, progress)
    _without_log(file)


def _without_log(file: Path) -> None:
    """All of it in one file, which can also be read where nothing may be written."""
    try:
        with closing(sqlite3.connect(file)) as plain:
            plain.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.DatabaseError as error:
        raise VsegError(
            f"{file.parent} has no room for it ({error}); nothing of it is left there."
        ) from error


def _brought_up_to_date(file: Path, copy: Path, progress: Progress) -> Database:
    """A copy of a backup, open, with the tables of this code and nobody logged in."""
    copy_file(file, copy, progress)
    check_counts(_counts(file), _counts(copy))
    db = _opened(copy)
    try:
        for each in researchers.list_researchers(db):
            researchers.sign_out(db, each.name)
        with db.writing() as connection:
            for table in (logins, sign_ins):
                connection.execute(delete(table))
            connection.execute(delete(settings).where(settings.c.name == researchers.SETUP_SETTING))
    except BaseException:
        db.close()
        raise
    return db


def _opened(file: Path) -> Database:
    db = Database(URL.create("sqlite+pysqlite", database=str(file)))
    try:
        migrate(db)
    except BaseException:
        db.close()
        raise
    return db


def _write_in(source: Database, target: Database, progress: Progress) -> None:
    """All rows of a SQLite database into an empty PostgreSQL database, or none."""
    with source.reading() as rows, target.writing() as connection:
        connection.execute(
            select(func.pg_advisory_xact_lock(ADVISORY_LOCK))
        )  # of two who restore at once, one does
        _check_empty(target, connection)
        copy_rows(rows, connection, progress)
        for table in metadata.sorted_tables:
            # The next row is numbered by a sequence, which does not see that rows have come.
            if "id" in table.c:
                sequence = func.pg_get_serial_sequence(table.name, "id")
                newest = select(func.max(table.c.id)).scalar_subquery()
                connection.execute(select(func.setval(sequence, newest)))


def _check_empty(target: Database, connection: Connection) -> None:
    there = inspect(connection).get_table_names()
    for table in metadata.sorted_tables:
        if table.name in there and connection.scalar(select(exists(select(literal(1)).select_from(table)))):
            raise Conflict(
                f"{target.place} has rows in {table.name} already, and nothing is overwritten; restore into a new "
                "database (createdb NAME)."
            )
