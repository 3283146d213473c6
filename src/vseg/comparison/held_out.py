"""Every model fitted without a fold and asked about it. A model that fails is told of, and the others go on."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vseg.errors import InvalidInput
from vseg.maps import Maps
from vseg.models.task import Task
from vseg.pairs import Pairs
from vseg.responses import COLUMNS, Responses


class Fitted(Protocol):
    """A model that has been fitted; one that predicts maps also has `maps(image) -> Maps`."""

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """P(same) of pairs on an image."""
        ...


Family = Callable[..., Fitted]


@dataclass(frozen=True, eq=False)
class Job:
    """One fit: the model, what it sees, what it is asked, and its seed."""

    model: str
    family: Family
    task: Task
    seen: NDArray[np.int64]
    asked: NDArray[np.int64]
    seed: int


def held_out(
    task: Task,
    models: Mapping[str, Family],
    groups: Mapping[str, NDArray[np.int64]],
    fold: NDArray[np.int64],
    seeds: np.random.SeedSequence,
    executor: Executor | None,
    progress: Callable[[int], None],
    kept: Path | None,
) -> tuple[dict[str, NDArray[np.float64]], dict[str, str]]:
    """P(same) of every answer by each model that could be fitted, and a sentence for each that could not."""
    jobs = list(_jobs(task, models, groups, fold, seeds))
    found = {name: np.full(len(task.responses), np.nan) for name in models}
    failures: dict[str, str] = {}
    of_task = _digest(task)
    files = [_file(kept, job, of_task) for job in jobs]
    for job, (q, failed) in zip(jobs, _each(executor, jobs, files), strict=True):
        found[job.model][job.asked] = q
        if failed and job.model not in failures:
            failures[job.model] = failed
        progress(1)
    return {name: q for name, q in found.items() if name not in failures}, failures


def described(
    task: Task,
    models: Mapping[str, Family],
    groups: Mapping[str, NDArray[np.int64]],
    seeds: np.random.SeedSequence,
    executor: Executor | None,
    kept: Path | None = None,
) -> dict[str, dict[tuple[str, str], Maps]]:
    """Maps of each model that has any, fitted to all answers: by model, then by group and image.

    A model that was scored but cannot be fitted to all answers has no maps.
    """
    numbers = [int(each.generate_state(1)[0]) for each in seeds.spawn(len(models) * len(groups))]
    wanted = [(name, group) for name in models for group in groups]
    of_task = _digest(task)

    def drawn(place: int) -> dict[tuple[str, str], Maps]:
        name, group = wanted[place]
        job = Job(name, models[name], task, groups[group], groups[group], numbers[place])
        return {(group, image): maps for image, maps in _drawn(job, _file(kept, job, of_task)).items()}

    found: dict[str, dict[tuple[str, str], Maps]] = {name: {} for name in models}
    for (name, _), maps in zip(wanted, _mapped(executor, drawn, range(len(wanted))), strict=True):
        found[name] |= maps
    return {name: maps for name, maps in found.items() if maps}


def predicted(fitted: Fitted, responses: Responses) -> NDArray[np.float64]:
    """(m,) what a fitted model says of each answer, checked."""
    q = np.empty(len(responses))
    n = len(responses.layout)
    for image in responses.images:
        rows = np.flatnonzero(responses.image == image)
        low, high = (np.minimum(responses.i, responses.j)[rows], np.maximum(responses.i, responses.j)[rows])
        key, again = np.unique(low * n + high, return_inverse=True)
        said = np.asarray(
            fitted.same_probability(image, Pairs(responses.layout, *np.divmod(key, n))), np.float64
        )
        if said.shape != key.shape:
            raise InvalidInput(f"Expected P(same) of {len(key)} pairs, got an array of shape {said.shape}.")
        if not (np.isfinite(said).all() and said.min() >= -1e-9 and said.max() <= 1 + 1e-9):
            raise InvalidInput(
                f"P(same) is a number from 0 to 1, got {_range(said[np.isfinite(said)])}"
                f"{' and some that are no numbers' if not np.isfinite(said).all() else ''}."
            )
        q[rows] = said[again]
    return q


def _range(values: NDArray[np.float64]) -> str:
    return f"values from {values.min():.3g} to {values.max():.3g}" if len(values) else "none"


def _jobs(
    task: Task,
    models: Mapping[str, Family],
    groups: Mapping[str, NDArray[np.int64]],
    fold: NDArray[np.int64],
    seeds: np.random.SeedSequence,
) -> Iterator[Job]:
    """A seed for each fit from its place in the list, whoever runs it and when."""
    places = [(group, each) for group in groups for each in np.unique(fold)]
    for (name, family), own in zip(models.items(), seeds.spawn(len(models)), strict=True):
        for (group, each), one in zip(places, own.spawn(len(places)), strict=True):
            rows = groups[group]
            seen, asked = rows[fold[rows] != each], rows[fold[rows] == each]
            if len(asked):
                yield Job(name, family, task, seen, asked, int(one.generate_state(1)[0]))


def _each(
    executor: Executor | None, jobs: list[Job], files: list[Path | None]
) -> Iterable[tuple[NDArray[np.float64], str]]:
    return _mapped(executor, lambda place: _done(jobs[place], files[place]), range(len(jobs)))


def _mapped(executor: Executor | None, function: Callable[[int], Any], places: range) -> Iterable[Any]:
    return map(function, places) if executor is None else executor.map(function, places)


def _done(job: Job, file: Path | None) -> tuple[NDArray[np.float64], str]:
    """What the model says of the answers held out, from an earlier run if there is one; or why it could not."""
    stored = _stored(file)
    if stored is not None and stored.shape == job.asked.shape:
        return stored, ""
    try:
        if not len(job.seen):
            raise InvalidInput("nothing is left to fit when a fold is held out; use fewer folds.")
        fitted = job.family(job.task.where(job.seen), seed=job.seed)
        q = predicted(fitted, job.task.where(job.asked).responses)
    except Exception as error:  # a user's model may raise anything; the others are still scored
        return np.full(len(job.asked), np.nan), f"{type(error).__name__}: {error}"
    _store(file, q)
    return q, ""


def _drawn(job: Job, file: Path | None) -> dict[str, Maps]:
    """Maps of every image of a fit, from an earlier run if there is one; none if the model has no maps."""
    images = job.task.where(job.seen).responses.images
    stored = _stored(file)
    if stored is not None and stored.ndim == 3 and len(stored) in (0, len(images)):
        return {image: Maps(job.task.layout, p) for image, p in zip(images, stored, strict=False)}
    try:
        fitted: Any = job.family(job.task.where(job.seen), seed=job.seed)
        maps = {image: fitted.maps(image) for image in images} if hasattr(fitted, "maps") else {}
    except Exception:  # it has been scored without a fold, and that stands
        return {}
    if len({each.segments for each in maps.values()}) <= 1:  # of one shape, as those of most models
        none = np.zeros((0, 0, 0))
        _store(file, np.stack([each.probabilities for each in maps.values()]) if maps else none)
    return maps


def _stored(file: Path | None) -> NDArray[np.float64] | None:
    """What an earlier run left; nothing if it is damaged."""
    if file is None or not file.is_file():
        return None
    try:
        return np.asarray(np.load(file, allow_pickle=False), np.float64)
    except (ValueError, OSError, EOFError):
        return None


def _store(file: Path | None, values: NDArray[np.float64]) -> None:
    if file is not None:
        unfinished = file.with_suffix(f".{os.getpid()}.npy")
        np.save(unfinished, values)
        unfinished.replace(file)


def _digest(task: Task) -> "hashlib._Hash":
    """Of the answers and the images; computed once for all fits."""
    digest = hashlib.sha256(str(task.segments).encode())
    for name in COLUMNS[:-1]:
        digest.update(np.ascontiguousarray(getattr(task.responses, name)).tobytes())
    for name, image in sorted(task.images.items()):
        digest.update(name.encode() + np.ascontiguousarray(image).tobytes())
    return digest


def _file(kept: Path | None, job: Job, of_task: "hashlib._Hash") -> Path | None:
    """Named after all that the predictions follow from; of the model's code only its name is known."""
    if kept is None:
        return None
    digest = of_task.copy()
    digest.update(f"{job.model} {job.seed}".encode())
    for rows in (job.seen, job.asked):
        digest.update(rows.tobytes())
    kept.mkdir(parents=True, exist_ok=True)
    return kept / f"{digest.hexdigest()[:24]}.npy"
