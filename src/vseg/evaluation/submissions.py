"""Run a submission in a child process with limits, so that one that hangs, fills the memory or crashes is one error."""

import hashlib
import json
import math
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg._support.subprocesses import (
    ENDED_WITHOUT_ANSWER,
    LimitReachedError,
    Limits,
    describe_exit,
    kill_group,
    start_python,
    wait_within_limits,
)
from vseg._support.temporary_folders import temporary_folder
from vseg.data.layout import Grid, Layout
from vseg.data.maps import INVALID_FILE_ERRORS, Maps, read_arrays
from vseg.errors import InvalidInput, NotFound, VsegError
from vseg.evaluation import submission_worker
from vseg.evaluation.sandbox import ENVIRONMENT, MEMORY_MB, SECONDS

MAX_RESULT_BYTES, MAX_REPORT_BYTES = 2**28, 2**20  # of all maps together, unpacked; of the report
LONGEST_ERROR = 2000  # characters


@dataclass(frozen=True, eq=False)
class SubmissionResult:
    """A submission's maps of every image.

    Attributes
    ----------
    name : str
        What it is called in tables.
    digest : str
        SHA-256 of its file, or of all files of its package.
    maps : dict
        From image names to Maps.
    seconds : float
        How long the maps took.
    repeatable : bool
        Whether a second call for the first image gave the same map.
    """

    name: str
    digest: str
    maps: dict[str, Maps]
    seconds: float
    repeatable: bool


class SubmissionFailed(InvalidInput):
    """A submission that could not be scored; the message says why."""


def run_submission(
    source: str,
    images: Mapping[str, NDArray[np.uint8]],
    layout: Layout,
    *,
    name: str | None = None,
    seconds: float = SECONDS,
    memory_mb: int = MEMORY_MB,
) -> SubmissionResult:
    """Return the maps of FILE.py[:NAME], or of a package FOLDER[:NAME], for these images.

    Parameters
    ----------
    source : str
        The file or folder, and optionally the function; without a name, the function called `model`.
    images : mapping from names to arrays
        uint8, (H, W) or (H, W, 3).
    layout : Layout
        The locations of the maps.
    name : str, optional
        What it is called in tables; by default as its file.
    seconds, memory_mb : float and int
        Limits for all images together, the submission's imports included.

    Returns
    -------
    SubmissionResult
    """
    file, _, function = source.partition(":") if ":" in Path(source).name else (source, "", "")
    path = Path(file)
    if not path.exists():
        raise NotFound(f"There is no file {path}; a submission is FILE.py, or a folder with __init__.py.")
    if not images:
        raise InvalidInput(
            "The dataset has no pictures in study/images; expected at least one, since a submission segments pictures."
        )
    full = str(path.resolve()) + (f":{function}" if function else "")
    limits = Limits(seconds, memory_mb)
    with temporary_folder("bench") as job:
        _write_job(job, full, images, layout, memory_mb)
        returncode = _run_job(job, path.resolve().parent, limits)
        maps, duration, repeatable = _read_results(job, returncode, list(images), layout, limits)
    default_name = path.stem + (f":{function}" if function else "")
    return SubmissionResult(name or default_name, file_digest(path), maps, duration, repeatable)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of all files of a package."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            digest.update(f"{file.relative_to(path)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def _write_job(
    job: Path, source: str, images: Mapping[str, NDArray[np.uint8]], layout: Layout, memory_mb: int
) -> None:
    grid = layout.size if isinstance(layout, Grid) else 0
    settings = {"source": source, "images": list(images), "grid": grid, "memory_mb": memory_mb}
    (job / submission_worker.JOB).write_text(json.dumps(settings), encoding="utf-8")
    arrays: dict[str, NDArray[Any]] = {
        f"image-{number}": image for number, image in enumerate(images.values())
    }
    if not grid:
        arrays["positions"] = layout.positions
    np.savez(job / submission_worker.IMAGES, **arrays)  # type: ignore[arg-type]


def _run_job(job: Path, folder: Path, limits: Limits) -> int:
    """Run the child to its end and return its exit code; raise `SubmissionFailed` at a limit."""
    nowhere = subprocess.DEVNULL
    process = start_python(
        # -P: the folder of submission_worker.py holds names that a submission may import, too.
        ["-P", str(Path(submission_worker.__file__)), str(job)],
        environment=ENVIRONMENT, folder=folder, stdin=nowhere, stdout=nowhere, stderr=nowhere,
    )  # fmt: skip
    try:
        return wait_within_limits(process, limits)
    except LimitReachedError as error:
        raise SubmissionFailed(limits.describe(error.limit)) from None
    finally:
        kill_group(process)


def _read_results(
    job: Path, returncode: int, images: list[str], layout: Layout, limits: Limits
) -> tuple[dict[str, Maps], float, bool]:
    """Return maps, seconds and repeatability from the job's folder; raise `SubmissionFailed` if there are none.

    The submission could write to this folder, too: nothing in it is trusted, neither in its size nor in its content.
    """
    try:
        report = _read_report(job / submission_worker.REPORT)
    except INVALID_FILE_ERRORS as error:
        raise SubmissionFailed(f"Its report cannot be read ({type(error).__name__}).") from error
    if report.get("out_of_memory"):
        raise SubmissionFailed(limits.describe("memory"))
    if returncode < 0:
        raise SubmissionFailed(describe_exit(returncode, limits.memory_mb))
    if "error" in report:
        raise SubmissionFailed(" ".join(str(report["error"])[:LONGEST_ERROR].split()))
    file = job / submission_worker.MAPS
    if not file.is_file() or "seconds" not in report:
        raise SubmissionFailed(ENDED_WITHOUT_ANSWER)
    names = [f"maps-{number}" for number in range(len(images))]
    try:
        seconds = float(report["seconds"])
        if not 0 <= seconds < math.inf:
            raise ValueError(f"it took {seconds} s")
        arrays = read_arrays(file, names, MAX_RESULT_BYTES)
        maps = {image: Maps(layout, arrays[name]) for image, name in zip(images, names, strict=True)}
    except (*INVALID_FILE_ERRORS, VsegError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}"[:LONGEST_ERROR].split())
        raise SubmissionFailed(f"The maps that its process left cannot be read ({reason}).") from error
    return maps, seconds, bool(report.get("repeatable"))


def _read_report(file: Path) -> dict[str, Any]:
    """Return what the child reports; empty if it wrote no file."""
    if not file.is_file():
        return {}
    with open(file, "rb") as opened:
        content = opened.read(MAX_REPORT_BYTES + 1)
    if len(content) > MAX_REPORT_BYTES:
        raise ValueError(f"the report has more than {MAX_REPORT_BYTES} bytes")
    report = json.loads(content)  # RecursionError is a RuntimeError
    if not isinstance(report, dict):
        raise TypeError("the report is no object")
    return report
