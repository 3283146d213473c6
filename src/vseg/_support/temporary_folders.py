"""Temporary folders and files that do not outlive their process: what a killed one left is deleted by the next.

Each is locked while it is in use. The system gives up the lock when the process ends, however it ends, so one that can
be locked has been abandoned.
"""

import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SUFFIX = ".vseg-tmp"
UNFINISHED = f".*-unfinished-????????{SUFFIX}"
UNLOCKED_S = 60  # one that is younger may not have been locked yet, or its file was just completed


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Create a folder that only this user can read; delete it at the end of the block.

    Parameters
    ----------
    purpose : str
        A word in the name of the folder, such as "export".

    Examples
    --------
    >>> with temporary_folder("export") as folder:
    ...     folder.is_dir()
    True
    """
    remove_abandoned_folders()
    folder = Path(tempfile.mkdtemp(prefix=f"vseg-{purpose}-", suffix=SUFFIX))
    lock = open_locked(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def remove_abandoned_folders() -> None:
    """Delete the temporary folders of processes of this user that were killed; they may hold participants' data."""
    remove_abandoned(Path(tempfile.gettempdir()), f"vseg-*{SUFFIX}/")  # with the slash, only folders


def name_unfinished(path: Path) -> Path:
    """Return a new name beside `path` for a file or folder that is renamed to `path` once it is complete."""
    return path.with_name(f".{path.name[:40]}-unfinished-{secrets.token_hex(4)}{SUFFIX}")


def remove_abandoned(folder: Path, pattern: str = UNFINISHED) -> None:
    """Delete files and folders in `folder` with names of this pattern, of processes of this user that were killed."""
    for path in folder.glob(pattern):
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime < UNLOCKED_S:
                continue
        if (lock := open_locked(path)) is not None:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
            os.close(lock)


def open_locked(path: Path) -> int | None:
    """Lock a file or folder of this user and return its descriptor.

    None if it is in use, if it is neither a file nor a folder, or if the system has no such locks.
    """
    try:
        import fcntl
    except ImportError:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        is_ours = status.st_uid == os.geteuid()
        if is_ours and (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None
