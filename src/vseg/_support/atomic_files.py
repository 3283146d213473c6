"""Files that are whole or as they were before, whatever happens while they are written."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def whole(path: str | Path, mode: str = "w", *, durable: bool = False, **how: Any) -> Iterator[IO[Any]]:
    """As `open` for writing, but under a name beside it, which becomes `path` once everything is written.

    After a failure nothing new is left, and a file that was there is untouched. A link stays one, and what is no
    file but a device or a pipe is written to as it is. One that is `durable` is on the disk after the block, also if
    the machine loses its power then.

    Examples
    --------
    >>> with whole("responses.csv", newline="", encoding="utf-8") as file:  # doctest: +SKIP
    ...     file.write("i,j,same\\n")
    """
    if Path(path).exists() and not Path(path).is_file():
        with open(path, mode, **how) as file:
            yield file
        return
    final = Path(os.path.realpath(path))
    unfinished = final.with_name(f".{final.name[:40]}-unfinished-{secrets.token_hex(4)}")
    try:
        with open(unfinished, mode.replace("w", "x"), **how) as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if final.exists():
            shutil.copymode(final, unfinished)
        unfinished.replace(final)
        if durable:
            sync(final.parent)
    except OSError as error:
        if error.filename == str(unfinished):
            error.filename = str(path)
        raise
    finally:
        unfinished.unlink(missing_ok=True)


def put(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a file of text whole, or leave it as it was."""
    with whole(path, encoding="utf-8", durable=durable) as file:
        file.write(text)


def sync(path: Path) -> None:
    """Wait until a file, or what a folder lists, is on the disk."""
    if path.is_dir() and not hasattr(os, "O_DIRECTORY"):
        return  # Windows, which opens no folders
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
