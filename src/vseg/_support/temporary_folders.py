"""Temporary folders that do not outlive their process: what a killed one left is deleted by the next.

Each folder is locked while it is in use. The system gives up the lock when the process ends, however it ends, so a
folder that can be locked has been abandoned.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SUFFIX = ".vseg-tmp"
UNLOCKED_S = 60  # a folder that is younger may not have been locked yet


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
    lock = _open_locked(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def remove_abandoned_folders() -> None:
    """Delete the temporary folders of processes of this user that were killed; they may hold participants' data."""
    for folder in Path(tempfile.gettempdir()).glob(f"vseg-*{SUFFIX}"):
        with suppress(OSError):
            if time.time() - folder.lstat().st_mtime < UNLOCKED_S:
                continue
        if (lock := _open_locked(folder)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _open_locked(folder: Path) -> int | None:
    """Lock a folder of this user and return its descriptor; None if it is in use, or if there are no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None
