"""A submission run in a process of its own: it may hang, eat memory or crash, and all we get is a sentence."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Grid, Layout
from vseg.data.maps import Maps
from vseg.errors import InvalidInput, NotFound
from vseg.evaluation import submission_worker
from vseg.evaluation.sandbox import (
    ENVIRONMENT,
    LOOK_S,
    MEMORY_MB,
    OWN_MB,
    SECONDS,
    end,
    resident_mb,
    said_of_signal,
)


@dataclass(frozen=True, eq=False)
class Ran:
    """A submission's maps of every image, how long they took, and by what its file is known."""

    name: str
    digest: str
    maps: dict[str, Maps]
    seconds: float
    repeatable: bool


class Failed(InvalidInput):
    """A submission that could not be scored, and why."""


def run(
    source: str,
    images: Mapping[str, NDArray[np.uint8]],
    layout: Layout,
    *,
    name: str | None = None,
    seconds: float = SECONDS,
    memory_mb: int = MEMORY_MB,
) -> Ran:
    """The maps of FILE.py[:NAME], or of a package FOLDER[:NAME], on these images.

    Parameters
    ----------
    source : str
    images : mapping from names to arrays
    layout : Layout
        Where the maps are wanted.
    name : str, optional
        What it is called in tables; without it, as its file.
    seconds, memory_mb : float and int
        For all images together, the submission's imports included.
    """
    place, _, function = source.partition(":") if ":" in Path(source).name else (source, "", "")
    path = Path(place)
    if not path.exists():
        raise NotFound(f"There is no file {path}; a submission is FILE.py, or a folder with __init__.py.")
    if not images:
        raise InvalidInput("The dataset has no pictures in study/images, and a submission looks at pictures.")
    full = str(path.resolve()) + (f":{function}" if function else "")
    with TemporaryDirectory(prefix="vseg-bench-") as folder:
        job = Path(folder)
        _write_job(job, full, images, layout, memory_mb)
        ended = _attended(job, path.resolve().parent, seconds, memory_mb)
        return Ran(
            name or _called(path, function),
            file_digest(path),
            *_found(job, ended, images, layout, seconds, memory_mb),
        )


def file_digest(path: Path) -> str:
    """SHA-256 of a file, or of all the files of a package."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    found = hashlib.sha256()
    for each in sorted(path.rglob("*")):
        if each.is_file() and "__pycache__" not in each.parts:
            found.update(f"{each.relative_to(path)}\n".encode() + each.read_bytes())
    return found.hexdigest()


def _called(path: Path, function: str) -> str:
    return path.stem + (f":{function}" if function else "")


def _write_job(
    job: Path, source: str, images: Mapping[str, NDArray[np.uint8]], layout: Layout, memory_mb: int
) -> None:
    grid = layout.size if isinstance(layout, Grid) else 0
    told = {"source": source, "images": list(images), "grid": grid, "memory_mb": memory_mb}
    (job / submission_worker.JOB).write_text(json.dumps(told), encoding="utf-8")
    arrays: dict[str, NDArray[Any]] = {
        f"image-{number}": image for number, image in enumerate(images.values())
    }
    if not grid:
        arrays["positions"] = layout.positions
    np.savez(job / submission_worker.IMAGES, **arrays)  # type: ignore[arg-type]


def _attended(job: Path, beside: Path, seconds: float, memory_mb: int) -> str:
    """How the process ended: "" by itself, "time" or "memory" by us, or the name of a signal."""
    # -P: the folder of inside.py holds names that a submission's own imports may have, too.
    command = [sys.executable, "-P", str(Path(submission_worker.__file__)), str(job)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        command, cwd=beside, env=os.environ | ENVIRONMENT, stdin=quiet, stdout=quiet, stderr=quiet,
        start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + seconds
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(LOOK_S)
                return "" if code >= 0 else signal.Signals(-code).name
            if time.monotonic() > until:
                return "time"
            if resident_mb(process.pid) > memory_mb + OWN_MB:
                return "memory"
    finally:
        end(process)


def _found(
    job: Path,
    ended: str,
    images: Mapping[str, NDArray[np.uint8]],
    layout: Layout,
    seconds: float,
    memory_mb: int,
) -> tuple[dict[str, Maps], float, bool]:
    """What the process left behind, or why it left nothing."""
    if ended == "time":
        raise Failed(
            f"It was ended after {seconds:g} s, which is all it may take for all images together; raise --seconds."
        )
    said = (
        json.loads((job / submission_worker.SAID).read_text("utf-8"))
        if (job / submission_worker.SAID).is_file()
        else {}
    )
    if ended == "memory" or said.get("out_of_memory"):
        raise Failed(
            f"It was ended, since it needed more memory than the {memory_mb} MB it may use; raise --memory."
        )
    if ended:
        raise Failed(said_of_signal(ended, memory_mb))
    if "error" in said:
        raise Failed(said["error"])
    if not (job / submission_worker.FOUND).is_file() or "seconds" not in said:
        raise Failed("Its process ended without an answer, as if it had called exit().")
    with np.load(job / submission_worker.FOUND, allow_pickle=False) as stored:
        maps = {name: Maps(layout, stored[f"maps-{place}"]) for place, name in enumerate(images)}
    return maps, float(said["seconds"]), bool(said["repeatable"])
