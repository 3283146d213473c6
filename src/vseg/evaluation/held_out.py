"""Every model fitted without a fold and asked about it; and fitted to all answers, for its maps and parameters.

A model that fails is told of, and the others go on. Jobs run one after the other, or wherever an executor runs them.
"""

import pickle
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.errors import VsegError
from vseg.evaluation.fit_jobs import (
    FitJob,
    FitOutcome,
    checkpoint_file,
    describe_error,
    digest,
    failed_outcome,
    run_fit,
)
from vseg.models.families import Family
from vseg.models.task import Task

Groups = Mapping[str, NDArray[np.int64]]
Progress = Callable[[int], None]


def predict_held_out(
    task: Task,
    models: Mapping[str, Family],
    groups: Groups,
    fold: NDArray[np.int64],
    *,
    seed: int,
    executor: Executor | None = None,
    progress: Progress = lambda done: None,
    kept: Path | None = None,
) -> tuple[dict[str, NDArray[np.float64]], dict[str, str]]:
    """P(same) of every answer by each model that could be fitted, and a sentence for each that could not."""
    whole, jobs = digest(task), []
    places = [(group, each) for group in groups for each in np.unique(fold)]
    for name, family in models.items():
        for (group, each), number in zip(places, _seeds(seed, name, "fold", len(places)), strict=True):
            rows = groups[group]
            seen, asked = rows[fold[rows] != each], rows[fold[rows] == each]
            if len(asked):
                file = checkpoint_file(kept, whole, name, number, seen, asked)
                jobs.append(FitJob(name, family, task, seen, asked, number, whole, file=file))
    found = {name: np.full(len(task.responses), np.nan) for name in models}
    failures: dict[str, str] = {}
    for job, told in _outcomes(jobs, executor, failures):
        found[job.model][job.asked] = told.q
        progress(1)
    return {name: q for name, q in found.items() if name not in failures}, failures


def fit_to_all(
    task: Task,
    models: Mapping[str, Family],
    groups: Groups,
    *,
    seed: int,
    executor: Executor | None = None,
    progress: Progress = lambda done: None,
    kept: Path | None = None,
) -> dict[str, dict[str, FitOutcome]]:
    """What each model says when it is fitted to all answers of a group: by model, then by group."""
    whole, jobs, places = digest(task), [], []
    for name, family in models.items():
        for group, number in zip(groups, _seeds(seed, name, "all", len(groups)), strict=True):
            rows = groups[group]
            file = checkpoint_file(kept, whole, name, number, rows, rows)
            jobs.append(FitJob(name, family, task, rows, rows, number, whole, drawn=True, file=file))
            places.append((name, group))
    found: dict[str, dict[str, FitOutcome]] = {name: {} for name in models}
    for (name, group), (_, told) in zip(places, _outcomes(jobs, executor), strict=True):
        found[name][group] = told
        progress(1)
    return found


def _seeds(seed: int, model: str, what: str, count: int) -> list[int]:
    """Of each fit by its place, whoever runs it and whichever other models there are."""
    own = np.random.SeedSequence([seed, *(zlib.crc32(each.encode()) for each in (model, what))])
    return [int(each.generate_state(1)[0]) for each in own.spawn(count)]


def _outcomes(
    jobs: Sequence[FitJob], executor: Executor | None, failures: dict[str, str] | None = None
) -> Iterator[tuple[FitJob, FitOutcome]]:
    """In the order of the jobs. With `failures`, a model that has failed once is put there and not tried again."""
    futures = None if executor is None else [_submitted(executor, job) for job in jobs]
    try:
        for place, job in enumerate(jobs):
            if failures is not None and job.model in failures:
                told = failed_outcome(job, failures[job.model])
                if futures is not None:
                    futures[place].cancel()
            else:
                told = _outcome(job, None if futures is None else futures[place])
            if failures is not None and told.failed:
                failures[job.model] = told.failed
            yield job, told
    finally:
        for each in futures or ():
            each.cancel()


def _submitted(executor: Executor, job: FitJob) -> "Future[Told]":
    """A pool of processes does not survive what it cannot send: that is found out before."""
    if isinstance(executor, ProcessPoolExecutor):
        try:
            pickle.dumps(job.family)
        except Exception as error:
            unsent: Future[FitOutcome] = Future()
            unsent.set_exception(error)
            return unsent
    return executor.submit(run_fit, job)


def _outcome(job: FitJob, future: "Future[Any] | None") -> FitOutcome:
    try:
        told: FitOutcome = run_fit(job) if future is None else future.result()
        return told
    except VsegError as error:
        return failed_outcome(job, str(error))
    except MemoryError:
        return failed_outcome(job, "It needed more memory than there is.")
    except OSError:
        # A full disk, or no more processes, is no model's fault: what it raises itself is in `told`.
        raise
    except BrokenExecutor:
        return failed_outcome(job, "The process that it ran in has ended, as happens when memory runs out.")
    except Exception as error:
        why = f"It cannot be sent to another process ({describe_error(error)}); name it as FILE.py:NAME, or use threads."
        return failed_outcome(job, why)
