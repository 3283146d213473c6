"""Copy databases: a new file that is complete or absent, a snapshot of a SQLite file, and all rows of all tables."""

import errno
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, func, insert, select

from vseg._support.atomic_files import flush_to_disk
from vseg._support.progress import StartProgress
from vseg.errors import Conflict, InvalidInput, VsegError
from vseg.store.schema import metadata

ROWS_PER_INSERT = 2000
INSTRUCTIONS_PER_PROGRESS = 100_000  # SQLite instructions between two reports of progress
ABANDONED_S = 24 * 60 * 60  # an unfinished copy that was not changed for this long is abandoned
SQLITE_SUFFIXES = ("-wal", "-shm", "-journal")  # of the files that SQLite keeps next to a database


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a private temporary file next to `path`, which is renamed to `path` when the block ends.

    At that point it is on the disk. An existing file is never overwritten (`Conflict`), and if anything fails, nothing
    is left. Unfinished files for the same path that are older than a day are removed.
    """
    for existing in (path, *(Path(f"{path}{suffix}") for suffix in SQLITE_SUFFIXES)):
        if existing.exists() or existing.is_symlink():
            raise Conflict(
                f"{existing} exists and is not overwritten; choose another name, or stop the server that uses it "
                "before you move it away."
            )
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"There is no folder for {path}; create it, or choose another file.")
    _remove_abandoned(path)
    temporary = path.with_name(f".{path.name}-unfinished-{secrets.token_hex(4)}")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written ({error.strerror}); choose another file.") from error
    try:
        yield temporary
        if left := [suffix for suffix in SQLITE_SUFFIXES if Path(f"{temporary}{suffix}").exists()]:
            raise VsegError(
                f"{path} could not be completed, since SQLite still needs its {', '.join(left)} file; nothing was "
                "written."
            )
        flush_to_disk(temporary)
        _rename_without_overwriting(temporary, path)
        flush_to_disk(path.absolute().parent)
    finally:
        for suffix in ("", *SQLITE_SUFFIXES):
            Path(f"{temporary}{suffix}").unlink(missing_ok=True)


def _remove_abandoned(path: Path) -> None:
    unfinished = re.compile(
        re.escape(f".{path.name}-unfinished-") + f"[0-9a-f]{{8}}({'|'.join(SQLITE_SUFFIXES)})?"
    )
    with suppress(OSError):  # the folder cannot be listed, or another process removed the file first
        for file in path.absolute().parent.iterdir():
            if unfinished.fullmatch(file.name) and file.stat().st_mtime < time.time() - ABANDONED_S:
                file.unlink()


def copy_file(source: Path, target: Path, progress: StartProgress) -> None:
    """Copy a SQLite database, as it is at one moment, into an empty file, without the content of its free pages.

    Other processes can write meanwhile; what they write is not in the copy.
    """
    with closing(open_read_only(source)) as connection:
        ((pages,),) = connection.execute("PRAGMA page_count")
        ((size,),) = connection.execute("PRAGMA page_size")
        with progress(pages) as advance:
            done = 0

            def report_progress() -> None:
                nonlocal done
                written = min(target.stat().st_size // size, pages)
                advance(written - done)
                done = written

            connection.set_progress_handler(report_progress, INSTRUCTIONS_PER_PROGRESS)
            try:
                connection.execute("VACUUM INTO ?", (str(target),))
            except sqlite3.DatabaseError as error:
                raise VsegError(f"{source} could not be copied to {target.parent} ({error}).") from error
            advance(pages - done)


def copy_rows(source: Connection, target: Connection, progress: StartProgress) -> dict[str, int]:
    """Copy all rows of all tables to a database without rows; return how many there are in each table."""
    tables = metadata.sorted_tables
    rows = _count_rows(source)
    with progress(sum(rows.values())) as advance:
        for table in tables:
            result = source.execution_options(yield_per=ROWS_PER_INSERT).execute(select(table))
            for part in result.mappings().partitions():
                target.execute(insert(table), [dict(row) for row in part])
                advance(len(part))
    check_counts(rows, _count_rows(target))
    return rows


def check_counts(source: dict[str, int], copy: dict[str, int]) -> None:
    """Raise `VsegError` unless a copy has as many rows in every table as its source."""
    for table in sorted(source.keys() | copy.keys()):
        expected, copied = source.get(table, 0), copy.get(table, 0)
        if copied != expected:
            raise VsegError(
                f"The copy has {copied} rows in {table}, expected {expected}; it was discarded, try again."
            )


def _count_rows(connection: Connection) -> dict[str, int]:
    tables = metadata.sorted_tables
    return {table.name: connection.scalar(select(func.count()).select_from(table)) or 0 for table in tables}


def open_read_only(file: Path) -> sqlite3.Connection:
    """Open an existing SQLite file for reading only."""
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=30)


def _rename_without_overwriting(temporary: Path, path: Path) -> None:
    """Give a file its final name by a hard link, which fails if the name exists."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise Conflict(f"{path} was created meanwhile and is not overwritten.") from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        _rename_without_links(temporary, path)


def _rename_without_links(temporary: Path, path: Path) -> None:
    """Do the same on a file system without hard links: create an empty file of that name, then overwrite it."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise Conflict(f"{path} was created meanwhile and is not overwritten.") from None
    try:
        temporary.replace(path)
    except BaseException:
        path.unlink()
        raise
