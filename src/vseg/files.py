"""Files that are whole or as they were before, whatever happens while they are written."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def whole(path: str | Path, mode: str = "w", **how: Any) -> Iterator[IO[Any]]:
    """As `open` for writing, but under a name beside it, which becomes `path` once everything is written.

    After a failure nothing new is left, and a file that was there is untouched. A link stays one, and what is no
    file but a device or a pipe is written to as it is.

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
        if final.exists():
            shutil.copymode(final, unfinished)
        unfinished.replace(final)
    except OSError as error:
        if error.filename == str(unfinished):
            error.filename = str(path)
        raise
    finally:
        unfinished.unlink(missing_ok=True)


def put(path: Path, text: str) -> None:
    """Write a file of text whole, or leave it as it was."""
    with whole(path, encoding="utf-8") as file:
        file.write(text)
