"""Fit models with each fold held out, and to all answers.

A fit is a `FitJob`. Jobs run one after the other, or in an executor: threads or processes. A job sent to another
process carries only its own answers and images. Finished fits are stored in a checkpoint folder, so that an
interrupted run resumes. A model that fails is reported, and the others continue.
"""

import hashlib
import json
import pickle
import zlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vseg._support import user_code
from vseg._support.atomic_files import atomic_write
from vseg._support.progress import Progress
from vseg.data.maps import Maps
from vseg.errors import InvalidInput, VsegError
from vseg.models.baselines import free_maps
from vseg.models.model_interface import Family, FittedModel, predict
from vseg.models.task import Task

MAX_MESSAGE_LENGTH = 400

Groups: TypeAlias = Mapping[str, NDArray[np.int64]]
"""The rows that each fit uses, by the name of the group: a participant, an image, or "all"."""
MapsByGroup: TypeAlias = Mapping[tuple[str, str], Maps]
"""Maps by group and image."""


@dataclass(frozen=True, eq=False)
class FitJob:
    """One fit.

    Attributes
    ----------
    model : str
        The model's name.
    family : Family
        The model.
    task : Task
        The task that the rows belong to.
    train_rows, test_rows : NDArray
        The answers it is fitted to, and those it predicts.
    seed : int
        Seed of the fit.
    task_key : str
        Identifies the whole task: jobs with the same key share what is computed from its images.
    with_maps : bool
        Whether maps and parameters are wanted as well.
    file : Path, optional
        Where the outcome is stored.
    """

    model: str
    family: Family
    task: Task
    train_rows: NDArray[np.int64]
    test_rows: NDArray[np.int64]
    seed: int
    task_key: str
    with_maps: bool = False
    file: Path | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        rows = np.union1d(self.train_rows, self.test_rows)
        part = self.task.take(rows)
        images = {name: part.images[name] for name in part.responses.images if name in part.images}
        task = Task(part.responses, images, part.segments)
        train, test = np.searchsorted(rows, self.train_rows), np.searchsorted(rows, self.test_rows)
        return _unpickle_job, (
            (self.model, self.family, task, train, test, self.seed, self.task_key, self.with_maps, self.file),
        )


@dataclass(frozen=True, eq=False)
class FitOutcome:
    """The outcome of a job.

    Attributes
    ----------
    q : NDArray
        P(same) of the test rows; NaN after a failure.
    maps : dict
        Maps by image, if wanted and if the model predicts maps.
    parameters : dict
        The model's parameters as JSON values, if wanted.
    failure : str
        Why the fit failed; empty after a success.
    """

    q: NDArray[np.float64]
    maps: dict[str, Maps] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    failure: str = ""


def predict_held_out(
    task: Task,
    models: Mapping[str, Family],
    groups: Groups,
    fold: NDArray[np.int64],
    *,
    seed: int,
    executor: Executor | None = None,
    progress: Progress = lambda steps: None,
    checkpoint: Path | None = None,
) -> tuple[dict[str, NDArray[np.float64]], dict[str, str]]:
    """Fit every model without each fold in turn; return P(same) of every answer by model, and failures by model."""
    task_key, jobs = _task_key(task), []
    places = [(group, number) for group in groups for number in np.unique(fold)]
    for name, family in models.items():
        for (group, number), fit_seed in zip(
            places, _spawn_seeds(seed, name, "fold", len(places)), strict=True
        ):
            rows = groups[group]
            train, test = rows[fold[rows] != number], rows[fold[rows] == number]
            if len(test):
                file = _checkpoint_file(checkpoint, task_key, name, fit_seed, train, test)
                jobs.append(FitJob(name, family, task, train, test, fit_seed, task_key, file=file))
    predictions = {name: np.full(len(task.responses), np.nan) for name in models}
    failures: dict[str, str] = {}
    for job, outcome in _run_jobs(jobs, executor, failures):
        predictions[job.model][job.test_rows] = outcome.q
        progress(1)
    return {name: q for name, q in predictions.items() if name not in failures}, failures


def fit_to_all_answers(
    task: Task,
    models: Mapping[str, Family],
    groups: Groups,
    *,
    seed: int,
    executor: Executor | None = None,
    progress: Progress = lambda steps: None,
    checkpoint: Path | None = None,
) -> dict[str, dict[str, FitOutcome]]:
    """Fit every model to all answers of each group; return the outcomes by model, then by group."""
    task_key, jobs, places = _task_key(task), [], []
    for name, family in models.items():
        for group, fit_seed in zip(groups, _spawn_seeds(seed, name, "all", len(groups)), strict=True):
            rows = groups[group]
            file = _checkpoint_file(checkpoint, task_key, name, fit_seed, rows, rows)
            jobs.append(FitJob(name, family, task, rows, rows, fit_seed, task_key, with_maps=True, file=file))
            places.append((name, group))
    outcomes: dict[str, dict[str, FitOutcome]] = {name: {} for name in models}
    for (name, group), (_, outcome) in zip(places, _run_jobs(jobs, executor), strict=True):
        outcomes[name][group] = outcome
        progress(1)
    return outcomes


def reconstruct_human_maps(
    task: Task,
    groups: Groups,
    *,
    seed: int,
    executor: Executor | None = None,
    progress: Progress = lambda steps: None,
    checkpoint: Path | None = None,
) -> dict[tuple[str, str], Maps]:
    """Reconstruct the maps of each group and image from the answers; groups that cannot be fitted are left out.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.Maps.one_hot(vseg.Grid(4), [0, 0, 1, 1] * 4)
    >>> answers = vseg.simulate(truth, vseg.designs.all_pairs(truth.layout), seed=0)
    >>> maps = reconstruct_human_maps(Task(answers), {"all": np.arange(len(answers))}, seed=0)
    >>> maps["all", "image"].distance_to(truth) < 0.1
    True
    """
    outcomes = fit_to_all_answers(
        task, {"people": free_maps()}, groups, seed=seed, executor=executor, progress=progress,
        checkpoint=checkpoint,
    )["people"]  # fmt: skip
    return {
        (group, image): maps for group, outcome in outcomes.items() for image, maps in outcome.maps.items()
    }


def run_fit_job(job: FitJob) -> FitOutcome:
    """Fit the model and predict the test rows, or load the stored outcome; a model's errors become a failure."""
    stored = _load_outcome(job)
    if stored is not None:
        return stored
    try:
        if not len(job.train_rows):
            raise InvalidInput("Nothing is left to fit when a fold is held out; use fewer folds.")
        fitted = job.family(job.task.take(job.train_rows), seed=job.seed)
        q = predict(fitted, job.task.take(job.test_rows).responses)
        maps, parameters = (_get_maps(fitted, job), _get_parameters(fitted)) if job.with_maps else ({}, {})
        outcome = FitOutcome(q, maps, parameters)
    except MemoryError:  # the caller knows the memory limit and reports it
        raise
    except SystemExit:
        return _fail(job, "It called exit().")
    except Exception as error:  # a user's model may raise anything; the others are still scored
        return _fail(job, describe_failure(error))
    _store_outcome(job, outcome)
    # Maps are normalised when they are loaded: return them as loaded, so that a resumed run has the same numbers.
    return _load_outcome(job) or outcome


def describe_failure(error: BaseException) -> str:
    """Return the error in one line; errors that are not vseg's own start with their type."""
    message = str(error) if isinstance(error, VsegError) else f"{user_code.describe_error(error)}."
    line = " ".join(message.split())
    return line if len(line) <= MAX_MESSAGE_LENGTH else f"{line[:MAX_MESSAGE_LENGTH]}…"


def to_json_value(value: Any) -> Any:
    """Convert a value to JSON types: arrays become lists, NaN becomes None, other objects become text."""
    if isinstance(value, Mapping):
        return {str(name): to_json_value(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [to_json_value(each) for each in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _task_key(task: Task) -> str:
    """Identify the answers, the images, K and the order of the rows, which stored predictions depend on."""
    digest = hashlib.sha256(f"{task.digest} {task.segments}".encode())
    digest.update(task.canonical_order.tobytes())
    return digest.hexdigest()


def _checkpoint_file(
    folder: Path | None, task_key: str, model: str, seed: int, *rows: NDArray[np.int64]
) -> Path | None:
    """Return a file name that depends on all inputs of the fit except the model's code."""
    if folder is None:
        return None
    digest = hashlib.sha256(f"{task_key} {model} {seed}".encode())
    for each in rows:
        digest.update(f"{len(each)} ".encode() + each.tobytes())
    return folder / f"{digest.hexdigest()[:24]}.npz"


def _spawn_seeds(seed: int, model: str, purpose: str, count: int) -> list[int]:
    """Return a seed for each fit, which depends on neither the executor nor the other models."""
    sequence = np.random.SeedSequence([seed, *(zlib.crc32(text.encode()) for text in (model, purpose))])
    return [int(each.generate_state(1)[0]) for each in sequence.spawn(count)]


def _run_jobs(
    jobs: Sequence[FitJob], executor: Executor | None, failures: dict[str, str] | None = None
) -> Iterator[tuple[FitJob, FitOutcome]]:
    """Yield the outcomes in the order of the jobs.

    With `failures`, the first failure of each model is stored there, and its other jobs are not run.
    """
    futures = None if executor is None else [_submit(executor, job) for job in jobs]
    try:
        for index, job in enumerate(jobs):
            if failures is not None and job.model in failures:
                outcome = _fail(job, failures[job.model])
                if futures is not None:
                    futures[index].cancel()
            else:
                outcome = _get_outcome(job, None if futures is None else futures[index])
            if failures is not None and outcome.failure:
                failures[job.model] = outcome.failure
            yield job, outcome
    finally:
        for future in futures or ():
            future.cancel()


def _submit(executor: Executor, job: FitJob) -> "Future[FitOutcome]":
    if isinstance(executor, ProcessPoolExecutor):
        try:  # a pool of processes breaks if a job cannot be pickled, so try it first
            pickle.dumps(job.family)
        except Exception as error:
            failed: Future[FitOutcome] = Future()
            failed.set_exception(error)
            return failed
    return executor.submit(run_fit_job, job)


def _get_outcome(job: FitJob, future: "Future[FitOutcome] | None") -> FitOutcome:
    try:
        return run_fit_job(job) if future is None else future.result()
    except VsegError as error:
        return _fail(job, str(error))
    except MemoryError:
        return _fail(job, "It needed more memory than there is.")
    except OSError:
        # A full disk, or no more processes, is not the model's fault; its own errors are in the outcome.
        raise
    except BrokenExecutor:
        return _fail(job, "The process that it ran in has ended, as happens when memory runs out.")
    except Exception as error:
        return _fail(
            job,
            f"It cannot be sent to another process ({describe_failure(error)}); name it as FILE.py:NAME, or use "
            "threads.",
        )


def _fail(job: FitJob, reason: str) -> FitOutcome:
    return FitOutcome(np.full(len(job.test_rows), np.nan), failure=reason)


_COMPUTED: dict[str, dict[Hashable, NDArray[np.float64]]] = {}


def _unpickle_job(arguments: tuple[Any, ...]) -> FitJob:
    """Create the job in another process; jobs of one task share computed features until another task comes."""
    job = FitJob(*arguments)
    if job.task_key not in _COMPUTED:
        _COMPUTED.clear()
        _COMPUTED[job.task_key] = {}
    task = Task(job.task.responses, job.task.images, job.task.segments, _COMPUTED[job.task_key])
    return replace(job, task=task)


def _get_maps(fitted: FittedModel, job: FitJob) -> dict[str, Maps]:
    """Return the maps of every image in the training rows, if the model predicts maps."""
    if not hasattr(fitted, "maps"):
        return {}
    images = job.task.take(job.train_rows).responses.images
    return {image: _check_maps(fitted.maps(image), job.task) for image in images}


def _check_maps(maps: object, task: Task) -> Maps:
    if not isinstance(maps, Maps):
        raise InvalidInput(f"Expected maps(image) to return vseg.Maps, got {type(maps).__name__}.")
    return maps if maps.layout == task.layout else maps.resample(task.layout)


def _get_parameters(fitted: FittedModel) -> dict[str, Any]:
    """Return the model's attribute `parameters`, or else its numeric attributes."""
    parameters = getattr(fitted, "parameters", None)
    if not isinstance(parameters, Mapping):
        attributes = getattr(fitted, "__dict__", {})
        parameters = {name: value for name, value in attributes.items() if _is_numeric(value)}
    return {str(name): to_json_value(value) for name, value in parameters.items()}


def _is_numeric(value: object) -> bool:
    return isinstance(value, bool | int | float | np.number) or (
        isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    )


def _load_outcome(job: FitJob) -> FitOutcome | None:
    """Load the outcome of an earlier run; None if there is none or the file is damaged."""
    if job.file is None or not job.file.is_file():
        return None
    try:
        with open(job.file, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            names = arrays["images"].tolist()
            maps = {name: Maps(job.task.layout, arrays[f"maps-{k}"]) for k, name in enumerate(names)}
            outcome = FitOutcome(arrays["q"], maps, json.loads(str(arrays["parameters"])))
    except Exception:  # reading a truncated file may raise anything
        return None
    return outcome if outcome.q.shape == job.test_rows.shape else None


def _store_outcome(job: FitJob, outcome: FitOutcome) -> None:
    if job.file is None:
        return
    arrays: dict[str, Any] = {f"maps-{k}": each.probabilities for k, each in enumerate(outcome.maps.values())}
    arrays["q"] = outcome.q
    arrays["images"] = np.array(list(outcome.maps), np.str_)
    arrays["parameters"] = json.dumps(outcome.parameters)
    job.file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(job.file, "wb") as file:
        np.savez(file, **arrays)
