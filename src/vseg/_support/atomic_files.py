"""Write files in one step: after a crash the file is either complete or as it was before."""

import functools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from vseg._support.temporary_folders import name_unfinished, open_locked, remove_abandoned


@contextmanager
def atomic_write(
    path: str | Path, mode: str = "w", *, durable: bool = False, **options: Any
) -> Iterator[IO[Any]]:
    """Open a temporary file beside `path` for writing and rename it to `path` when the block ends.

    If the block raises, the temporary file is deleted and an existing file at `path` is unchanged. What killed
    processes left is deleted when a process first writes to their folder. A symbolic link stays a link: the file it
    points to is replaced. Devices and pipes are opened and written directly. The file keeps the permissions of the one
    it replaces.

    Parameters
    ----------
    path : path
        The file to write.
    mode : str
        "w" or "wb", as for `open`.
    durable : bool
        Whether to wait until the file is on the disk, so that it survives a power failure after the block.
    **options
        Passed to `open`, such as `encoding`.

    Examples
    --------
    >>> with atomic_write("responses.csv", newline="", encoding="utf-8") as file:  # doctest: +SKIP
    ...     file.write("i,j,same\\n")
    """
    if Path(path).exists() and not Path(path).is_file():
        with open(path, mode, **options) as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    _remove_abandoned_once(target.parent)
    temporary = name_unfinished(target)
    lock = None
    try:
        with open(temporary, mode.replace("w", "x"), **options) as file:
            lock = open_locked(temporary)
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
        if durable:
            flush_to_disk(target.parent)
    except OSError as error:
        if error.filename == str(temporary):  # name the file that the caller knows
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


@functools.cache  # once per folder: an export writes thousands of files to one
def _remove_abandoned_once(folder: Path) -> None:
    remove_abandoned(folder)


def write_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a UTF-8 text file in one step; on failure the old file is unchanged."""
    with atomic_write(path, encoding="utf-8", durable=durable) as file:
        file.write(text)


def flush_to_disk(path: Path) -> None:
    """Wait until the content of a file, or the list of files of a folder, is on the disk."""
    if path.is_dir() and not hasattr(os, "O_DIRECTORY"):
        return  # Windows cannot open folders
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
