"""One fit, wherever it runs: `run(job)` gives numbers, maps or a sentence, and keeps them on disk.

A job can be sent to another process: with its own answers and pictures alone, and without what was computed from them.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg._support import user_code
from vseg._support.atomic_files import atomic_write
from vseg.data.maps import Maps
from vseg.data.responses import COLUMNS
from vseg.errors import InvalidInput, VsegError
from vseg.models.families import Family, predict
from vseg.models.task import Task

LONGEST_SENTENCE = 400


@dataclass(frozen=True, eq=False)
class FitJob:
    """One fit: the model, the rows that it sees, those that it is asked about, and its seed.

    Attributes
    ----------
    whole : str
        Digest of the task that it is a part of: jobs of one task share what is computed from its images.
    drawn : bool
        Whether maps and parameters are wanted as well.
    file : Path, optional
        Where it is kept when it is done.
    """

    model: str
    family: Family
    task: Task
    seen: NDArray[np.int64]
    asked: NDArray[np.int64]
    seed: int
    whole: str
    drawn: bool = False
    file: Path | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        rows = np.union1d(self.seen, self.asked)
        part = self.task.where(rows)
        pictures = {name: part.images[name] for name in part.responses.images if name in part.images}
        own = Task(part.responses, pictures, part.segments)
        seen, asked = np.searchsorted(rows, self.seen), np.searchsorted(rows, self.asked)
        return _received, (
            (self.model, self.family, own, seen, asked, self.seed, self.whole, self.drawn, self.file),
        )


@dataclass(frozen=True, eq=False)
class FitOutcome:
    """What came of a job: P(same) of the answers asked about; maps and parameters, if it has any; or why not."""

    q: NDArray[np.float64]
    maps: dict[str, Maps] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    failed: str = ""


def run_fit(job: FitJob) -> FitOutcome:
    """Fit and ask the model, or read what an earlier run found. Whatever a model raises becomes a sentence."""
    kept = _read(job)
    if kept is not None:
        return kept
    try:
        if not len(job.seen):
            raise InvalidInput("Nothing is left to fit when a fold is held out; use fewer folds.")
        fitted = job.family(job.task.where(job.seen), seed=job.seed)
        told = FitOutcome(predict(fitted, job.task.where(job.asked).responses), *(_drawn(fitted, job)))
    except MemoryError:  # how much it may use is known to whoever runs this
        raise
    except SystemExit:
        return failed_outcome(job, "It called exit().")
    except Exception as error:  # a user's model may raise anything; the others are still scored
        return failed_outcome(job, describe_error(error))
    _write(job, told)
    # As it was written: maps are normalised when they are read, so that a run that goes on has the very same numbers.
    return _read(job) or told


def failed_outcome(job: FitJob, why: str) -> FitOutcome:
    """Nothing but a sentence."""
    return FitOutcome(np.full(len(job.asked), np.nan), failed=why)


def describe_error(error: BaseException) -> str:
    """An error in one line: our own say all by themselves, others need their kind."""
    said = str(error) if isinstance(error, VsegError) else f"{user_code.describe_error(error)}."
    line = " ".join(said.split())
    return line if len(line) <= LONGEST_SENTENCE else f"{line[:LONGEST_SENTENCE]}…"


def to_json_value(value: Any) -> Any:
    """As JSON has it, which knows neither arrays nor NaN."""
    if isinstance(value, Mapping):
        return {str(name): to_json_value(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [to_json_value(each) for each in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def digest(task: Task) -> str:
    """Of the answers and the images, in their order; computed once for all fits."""
    found = hashlib.sha256(str(task.segments).encode())
    for name in COLUMNS[:-1]:
        found.update(np.ascontiguousarray(getattr(task.responses, name)).tobytes())
    for name, image in sorted(task.images.items()):
        found.update(f"{name} {image.shape}".encode() + np.ascontiguousarray(image).tobytes())
    return found.hexdigest()


def checkpoint_file(
    kept: Path | None, whole: str, model: str, seed: int, *rows: NDArray[np.int64]
) -> Path | None:
    """Named after all that the numbers follow from; of the model's code only its name is known."""
    if kept is None:
        return None
    found = hashlib.sha256(f"{whole} {model} {seed}".encode())
    for each in rows:
        found.update(f"{len(each)} ".encode() + each.tobytes())
    return kept / f"{found.hexdigest()[:24]}.npz"


_COMPUTED: dict[str, dict[Any, NDArray[np.float64]]] = {}


def _received(sent: tuple[Any, ...]) -> FitJob:
    """In another process: what jobs of the same task have computed there is shared, until another task comes."""
    job = FitJob(*sent)
    if job.whole not in _COMPUTED:
        _COMPUTED.clear()
        _COMPUTED[job.whole] = {}
    own = Task(job.task.responses, job.task.images, job.task.segments, _COMPUTED[job.whole])
    return replace(job, task=own)


def _drawn(fitted: Any, job: FitJob) -> tuple[dict[str, Maps], dict[str, Any]]:
    """Maps of every image that was seen, if the model has any, and its parameters."""
    if not job.drawn:
        return {}, {}
    images = job.task.where(job.seen).responses.images if hasattr(fitted, "maps") else []
    return {image: _located(fitted.maps(image), job.task) for image in images}, _parameters(fitted)


def _located(maps: Any, task: Task) -> Maps:
    if not isinstance(maps, Maps):
        raise InvalidInput(f"Expected maps(image) to give vseg.Maps, got {type(maps).__name__}.")
    return maps if maps.layout == task.layout else maps.resampled(task.layout)


def _parameters(fitted: Any) -> dict[str, Any]:
    """As the model tells them, or else the numbers and arrays that it holds."""
    told = getattr(fitted, "parameters", None)
    if not isinstance(told, Mapping):
        told = {name: each for name, each in getattr(fitted, "__dict__", {}).items() if _is_numeric(each)}
    return {str(name): to_json_value(each) for name, each in told.items()}


def _is_numeric(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.number) or (
        isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    )


def _read(job: FitJob) -> FitOutcome | None:
    """What an earlier run left; nothing if it is damaged."""
    if job.file is None or not job.file.is_file():
        return None
    try:
        with open(job.file, "rb") as file, np.load(file, allow_pickle=False) as held:
            names = held["images"].tolist()
            maps = {name: Maps(job.task.layout, held[f"maps-{place}"]) for place, name in enumerate(names)}
            told = FitOutcome(held["q"], maps, json.loads(str(held["parameters"])))
    except Exception:  # a file that was cut may fail in any way
        return None
    return told if told.q.shape == job.asked.shape else None


def _write(job: FitJob, told: FitOutcome) -> None:
    if job.file is None:
        return
    arrays: dict[str, Any] = {
        f"maps-{place}": each.probabilities for place, each in enumerate(told.maps.values())
    }
    arrays |= {
        "q": told.q,
        "images": np.array(list(told.maps), np.str_),
        "parameters": json.dumps(told.parameters),
    }
    job.file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(job.file, "wb") as file:
        np.savez(file, **arrays)
