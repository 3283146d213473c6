"""Runs that go on where they were cut: what is finished lies in the folder `unfinished` of the results until all is."""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from vseg.errors import Conflict

if TYPE_CHECKING:
    from vseg.models.task import Task

UNFINISHED = "unfinished"


def check(out: Path, finished: str, *, force: bool) -> None:
    """A folder may be new, or hold an unfinished run; one with the file `finished` is replaced only if asked for."""
    if out.is_file():
        raise Conflict(f"{out} is a file; choose another --out.")
    if not out.is_dir() or force:
        return
    if (out / finished).exists():
        raise Conflict(f"{out} holds the results of an earlier run; choose another --out, or pass --force.")
    foreign = sorted(entry.name for entry in out.iterdir() if entry.name != UNFINISHED)
    if foreign:
        raise Conflict(f"{out} holds {foreign[0]}, which is no unfinished run; choose another --out.")


def folder(out: Path, task: "Task", names: Mapping[str, str], features: str | None) -> Path:
    """Named after all that a run follows from: with another model.py or other answers it begins anew."""
    from vseg import __version__
    from vseg.evaluation import tasks
    from vseg.evaluation.submissions import file_digest

    found = hashlib.sha256(f"{__version__} {tasks.digest(task)} {task.segments} {features}".encode())
    for name, source in names.items():
        path = Path(source.rpartition(".py")[0] + ".py")
        if path.is_file():
            found.update(f"{name} {file_digest(path)}".encode())
    return out / UNFINISHED / found.hexdigest()[:16]


def remove(out: Path) -> None:
    """What was kept on the way, and the folder itself if there is nothing else in it."""
    shutil.rmtree(out / UNFINISHED, ignore_errors=True)
    if out.is_dir() and not any(out.iterdir()):
        out.rmdir()
