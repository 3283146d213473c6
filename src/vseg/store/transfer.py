"""Copies of a database: a file that is whole or not there, a SQLite file as it is at one instant, rows."""

import errno
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path

from sqlalchemy import Connection, func, insert, select

from vseg._support.atomic_files import flush_to_disk
from vseg.errors import Conflict, InvalidInput, VsegError
from vseg.store.schema import metadata

ROWS_PER_INSERT = 2000
INSTRUCTIONS_PER_PROGRESS = 100_000  # of SQLite, between two looks at how far a copy is
ABANDONED_S = 24 * 60 * 60  # nobody writes a copy without touching it for so long
SQLITE_SUFFIXES = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a file

Advance = Callable[[int], None]
Progress = Callable[[int], AbstractContextManager[Advance]]


def no_progress(total: int) -> AbstractContextManager[Advance]:
    """No progress is shown."""
    return nullcontext(lambda done: None)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A temporary file beside `path`, its owner's alone, that takes its name at the end and nobody else's place.

    By then it is on the disk. If anything fails, nothing is left; what one that was killed a day ago or more left under
    this name is removed.
    """
    for taken in (path, *(Path(f"{path}{suffix}") for suffix in SQLITE_SUFFIXES)):
        if taken.exists() or taken.is_symlink():
            raise Conflict(
                f"{taken} exists, and nothing is overwritten; choose another name, or stop the server that uses it "
                "before you move it away."
            )
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"There is no folder for {path}; make it, or name another file.")
    _remove_abandoned(path)
    temporary = path.with_name(f".{path.name}-unfinished-{secrets.token_hex(4)}")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written ({error.strerror}); name another file.") from error
    try:
        yield temporary
        if left := [each for each in SQLITE_SUFFIXES if Path(f"{temporary}{each}").exists()]:
            raise VsegError(
                f"{path} could not be completed: {', '.join(left)} is still needed; nothing is left."
            )
        flush_to_disk(temporary)
        _put(temporary, path)
        flush_to_disk(path.absolute().parent)
    finally:
        for suffix in ("", *SQLITE_SUFFIXES):
            Path(f"{temporary}{suffix}").unlink(missing_ok=True)


def _remove_abandoned(path: Path) -> None:
    ours = re.compile(re.escape(f".{path.name}-unfinished-") + f"[0-9a-f]{{8}}({'|'.join(SQLITE_SUFFIXES)})?")
    with suppress(OSError):  # a folder that cannot be listed, or someone who was faster
        for each in path.absolute().parent.iterdir():
            if ours.fullmatch(each.name) and each.stat().st_mtime < time.time() - ABANDONED_S:
                each.unlink()


def copy_file(source: Path, target: Path, progress: Progress) -> None:
    """A SQLite database at one instant, without what its free pages remember, into an empty file.

    Whoever writes meanwhile does not wait, and is not in it.
    """
    with closing(open_read_only(source)) as connection:
        ((pages,),) = connection.execute("PRAGMA page_count")
        ((size,),) = connection.execute("PRAGMA page_size")
        with progress(pages) as advance:
            done = 0

            def look() -> None:
                nonlocal done
                there = min(target.stat().st_size // size, pages)
                advance(there - done)
                done = there

            connection.set_progress_handler(look, INSTRUCTIONS_PER_PROGRESS)
            try:
                connection.execute("VACUUM INTO ?", (str(target),))
            except sqlite3.DatabaseError as error:
                raise VsegError(f"{source} could not be copied to {target.parent} ({error}).") from error
            advance(pages - done)


def copy_rows(source: Connection, target: Connection, progress: Progress) -> dict[str, int]:
    """All rows of all tables from one transaction to another, which had none; how many of each."""
    tables = metadata.sorted_tables
    rows = _counts(source)
    with progress(sum(rows.values())) as advance:
        for table in tables:
            found = source.execution_options(yield_per=ROWS_PER_INSERT).execute(select(table))
            for part in found.mappings().partitions():
                target.execute(insert(table), [dict(row) for row in part])
                advance(len(part))
    check_counts(rows, _counts(target))
    return rows


def check_counts(source: dict[str, int], copy: dict[str, int]) -> None:
    """`VsegError` unless a copy has as many rows of every table as what it was made of."""
    for table in sorted(source.keys() | copy.keys()):
        had, has = source.get(table, 0), copy.get(table, 0)
        if had != has:
            raise VsegError(
                f"The copy has {has} rows in {table}, not {had}; nothing of it is kept, try again."
            )


def _counts(connection: Connection) -> dict[str, int]:
    tables = metadata.sorted_tables
    return {table.name: connection.scalar(select(func.count()).select_from(table)) or 0 for table in tables}


def open_read_only(file: Path) -> sqlite3.Connection:
    """A SQLite file that is only read; it has to be there."""
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=30)


def _put(temporary: Path, path: Path) -> None:
    """Give a file its name, unless someone was faster: a second name first, where the file system has such."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise Conflict(f"{path} has appeared meanwhile, and nothing is overwritten.") from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        _put_over_own(temporary, path)


def _put_over_own(temporary: Path, path: Path) -> None:
    """The same without second names: an empty file takes the name, if nobody has it, and only that is overwritten."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise Conflict(f"{path} has appeared meanwhile, and nothing is overwritten.") from None
    try:
        temporary.replace(path)
    except BaseException:
        path.unlink()
        raise
