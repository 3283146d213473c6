"""Notice that the files of a SQLite database are deleted, replaced or overwritten while they are in use.

SQLite itself does not notice. If the write-ahead log (-wal) or its index (-shm) is deleted, commits succeed, but are
gone with the process. If another file is copied over the database, what it held is gone at once. So `FileWatch.check`
runs before each transaction and again after each commit, before it is acknowledged.

A check compares devices and inodes. The log lies beside the file itself, behind all symbolic links, so the file must
also keep its place and be no link there, and must have one name only: SQLite has a separate log for each hard link.

Then a check compares the time and size of the database file. These change whenever SQLite moves
pages from the log to the file (a checkpoint), but SQLite announces each checkpoint in the index of the log first: if
the file has changed, and the index says that there was no checkpoint, another program has written to the file, unless
its size and header are as before: then it was only touched, or replaced by an identical copy. The header holds a stamp
that grows with each transaction of vseg (checksum.py), so it differs in any other state of the file. After a complete
checkpoint, a stamp that is older than the last commit shows that an earlier file was copied over the result.

The files are read through SQLite's own descriptors. Opening them again would be wrong: on POSIX systems, closing any
descriptor of a file gives up all locks that the process holds on it, SQLite's included. On Windows, where the time of
an open file changes late, only the devices and inodes are compared.
"""

import os
import sqlite3
import stat
import struct
import threading
from dataclasses import dataclass
from typing import Any

from vseg.errors import VsegError
from vseg.store import checksum

# In the index of the log (https://sqlite.org/walformat.html): two copies of a header of 48 bytes, which has the number
# of frames in the log at byte 16 and the salts of the log at byte 32; then how many frames were moved to the file, 28
# bytes of marks and locks, and how many frames the last checkpoint wanted to move.
INDEX_BYTES = 136
FRAMES_AT, SALTS, MOVED_AT, WANTED_AT = 16, slice(32, 40), 96, 128
_NUMBER = struct.Struct("=I")

FileId = tuple[int, int]  # device and inode
FileState = tuple[int, int]  # time of the last change and size


@dataclass(frozen=True)
class _Checkpoints:
    """How far checkpoints have come, as the index of the log says."""

    salts: bytes
    moved: int
    wanted: int


class FileWatch:
    """The files of a SQLite database since they were opened for writing; `check` may be called by any thread.

    Parameters
    ----------
    file : str
        The database file itself, behind all symbolic links; it must exist.
    name : str
        The name by which it was opened, perhaps a link to it.
    """

    def __init__(self, file: str, name: str):
        self.file, self.log, self.index = file, f"{file}-wal", f"{file}-shm"
        self.name = name
        self._file_id = _get_id(file)
        self._log_ids: tuple[FileId | None, ...] | None = None  # of log and index; None if nobody writes
        self._seen: tuple[FileState, bytes | None, _Checkpoints] | None = None  # with the header of the file
        self._header = _FileStart(checksum.HEADER_BYTES)
        self._index_start = _FileStart(INDEX_BYTES)
        self._lock = threading.Lock()
        self._overwritten = False
        self._committed_stamp = 0  # of the last commit of this process
        self.is_log_deleted = False
        """Whether the last check found the log deleted, but not replaced: what it holds can still be rescued."""

    def begin(self, connection: sqlite3.Connection, *_: Any) -> None:
        """Note the log and its index; call it when the writing connection was opened."""
        connection.execute(
            "SELECT 1 FROM sqlite_master"
        ).fetchone()  # SQLite opens the log when it first reads
        # After a crash, the index does not tell about checkpoints until there is one.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        with self._lock:
            self._log_ids, self._seen = (_get_id(self.log), _get_id(self.index)), None
            self._note_changes()

    def end(self, *_: Any) -> None:
        """Forget the log, which SQLite deletes with the last connection; call it when the writing connection closes."""
        with self._lock:
            self._log_ids = self._seen = None

    def note_commit(self, stamp: int) -> None:
        """Note the stamp of a transaction that was committed."""
        with self._lock:
            self._committed_stamp = max(self._committed_stamp, stamp)

    def check(self) -> None:
        """Raise `VsegError` if the files are not those that were opened, or if another program has written to them."""
        # Behind a link that took the place of the file there is the same inode, but no log.
        if not self._file_id == _get_id(self.name) == _get_id(self.file, follow_symlinks=False):
            raise VsegError(
                f"The database file {self.name} was moved, replaced or deleted while it was in use; put it back "
                f"together with {self.log}, or restart vseg with the database that you want to use."
            )
        if has_several_names(self.file):
            raise VsegError(several_names_message(self.name))
        with self._lock:
            self.is_log_deleted = False
            self._note_changes()  # first: a deleted log must not be written to a file that was overwritten
            self._check_log()
        if self._overwritten:
            raise VsegError(
                f"Another program has written to the database file {self.file} while it was in use, as when a backup "
                f"is copied over it; stop vseg, keep a copy of the file and of {self.log}, and restore the newest "
                "backup to a new file."
            )

    def _check_log(self) -> None:
        if self._log_ids is None or self._overwritten:
            return
        ids = _get_id(self.log), _get_id(self.index)
        if ids == self._log_ids:
            return
        # Files that are not ours belong to a process that has begun a new log.
        self.is_log_deleted = all(
            found in (None, ours) for found, ours in zip(ids, self._log_ids, strict=True)
        )
        raise VsegError(
            f"The log of the database, {self.log} or {self.index}, was deleted or replaced while it was in use; no "
            "more responses are stored until vseg is restarted."
        )

    def _note_changes(self) -> None:
        """Compare the file and the checkpoints with those of the last check, and remember them."""
        if self._log_ids is None:
            return
        seen = self._seen
        before, frames = self._read_checkpoints()
        state = _get_state(self.file)
        is_touched = seen is None or state != seen[0]
        # Also if the time is as before: two checkpoints may fall into one step of the clock of the file system.
        header = self._header.read(self._file_id)
        after, frames_after = self._read_checkpoints()
        if state is None or before is None or after is None:
            return  # deleted at this moment, which the next check reports, or not to be read on this system
        is_settled = after.wanted == after.moved
        if is_touched and header is not None and checksum.is_present(header):  # a backup
            self._overwritten = True
        if seen is not None and is_touched and after == seen[2] and is_settled:
            is_same = header is not None and (header, state[1]) == (seen[1], seen[0][1])
            self._overwritten = self._overwritten or not is_same
        is_complete = before == after and is_settled and frames == frames_after == after.moved
        if is_complete and header is not None and checksum.read_stamp(header) < self._committed_stamp:
            self._overwritten = True
        if before == after and is_settled:  # else a checkpoint may have written between the two
            self._seen = state, header, after

    def _read_checkpoints(self) -> tuple[_Checkpoints | None, int]:
        """Return how far checkpoints have come, None if that cannot be read, and the number of frames in the log."""
        assert self._log_ids is not None
        index = self._index_start.read(self._log_ids[1])
        if index is None:
            return None, 0
        moved, wanted, frames = (_NUMBER.unpack_from(index, at)[0] for at in (MOVED_AT, WANTED_AT, FRAMES_AT))
        return _Checkpoints(index[SALTS], moved, wanted), frames


class _FileStart:
    """The first bytes of a file that SQLite has open in this process."""

    def __init__(self, length: int):
        self._length = length
        self._descriptor: int | None = None

    def read(self, file_id: FileId | None) -> bytes | None:
        """Return the bytes of the file with this device and inode; None if they cannot be read, as on Windows."""
        if file_id is None or not hasattr(os, "pread"):
            return None
        if self._descriptor is None or _get_id(self._descriptor) != file_id:
            self._descriptor = next((each for each in _list_descriptors() if _get_id(each) == file_id), None)
        if self._descriptor is None:
            return None
        try:
            content = os.pread(self._descriptor, self._length, 0)
        except OSError:
            return None
        # SQLite may have closed it just now, and its number may have been given to another file.
        is_same = _get_id(self._descriptor) == file_id
        return content if is_same and len(content) == self._length else None


def _list_descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return []


def has_several_names(file: str) -> bool:
    """Return whether a file has hard links."""
    try:
        status = os.stat(file)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def several_names_message(file: str) -> str:
    """Return the message for a database file that has hard links."""
    return (
        f"The database file {file} has another name (a hard link), and SQLite has a separate log for each name, so "
        "that responses would be lost; delete every other name; of a backup, make a copy and use that."
    )


def _get_id(file: str | int, *, follow_symlinks: bool = True) -> FileId | None:
    """Return the device and inode of a file or descriptor, or None if it does not exist."""
    try:
        status = os.stat(file, follow_symlinks=follow_symlinks)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _get_state(file: str) -> FileState | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
