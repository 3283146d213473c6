"""Open the workers that the argument `executor` names: this thread, threads, processes, Dask, or any Executor."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager

from vseg.errors import InvalidInput, VsegError
from vseg.sweeps.clusters import DaskWorkers
from vseg.sweeps.processes import ProcessWorkers
from vseg.sweeps.repetitions import (
    PreparedFunction,
    Repetition,
    Setting,
    SweepFunction,
    TaskOutcome,
    run_repetitions,
)
from vseg.sweeps.workers import InThreadWorker, Workers, failed_future, pickle_function, submit_to_process

EXECUTORS = (
    "'threads', 'threads:N', 'processes', 'processes:N', 'dask://HOST:PORT' or a concurrent.futures.Executor"
)


@contextmanager
def open_workers(executor: str | Executor | Workers | None) -> Iterator[Workers]:
    """Open workers that several sweeps can share: `sweep(..., executor=workers)`.

    Parameters
    ----------
    executor
        As for `sweep`.

    Examples
    --------
    >>> with open_workers("threads:2") as workers:
    ...     workers.count
    2
    """
    if isinstance(executor, Workers):
        yield executor
        return
    workers = _create_workers(executor)
    try:
        yield workers
    except BaseException:
        workers.close(at_once=True)
        raise
    workers.close()


def _create_workers(executor: str | Executor | None) -> Workers:
    if executor is None:
        return InThreadWorker()
    if isinstance(executor, Executor):
        return ExecutorWorkers(executor)
    if isinstance(executor, str) and executor.startswith("dask://"):
        return DaskWorkers(executor)
    name, _, number = executor.partition(":") if isinstance(executor, str) else ("", "", "")
    if name not in ("threads", "processes"):
        raise InvalidInput(f"An executor is {EXECUTORS}, got {executor!r}.")
    if number and (not number.isdecimal() or int(number) < 1):
        raise InvalidInput(f"The number of {name} is a whole number from 1 up, got {executor!r}.")
    count = int(number) if number else _count_cores()
    return (
        ExecutorWorkers(ThreadPoolExecutor(count), owned=True) if name == "threads" else ProcessWorkers(count)
    )


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ExecutorWorkers(Workers):
    """The workers of an Executor: threads of the sweep (`owned`), or the caller's, which the caller closes."""

    def __init__(self, executor: Executor, *, owned: bool = False):
        self._executor, self._owned = executor, owned
        self.count = int(getattr(executor, "_max_workers", 0) or _count_cores())

    def prepare(self, function: SweepFunction) -> PreparedFunction:
        """Pickle the function for a process pool; threads share it, and other executors send it in their own way."""
        return pickle_function(function) if isinstance(self._executor, ProcessPoolExecutor) else function

    def submit(
        self,
        function: PreparedFunction,
        settings: dict[int, Setting],
        repetitions: Sequence[Repetition],
        seed: int,
    ) -> "Future[TaskOutcome]":
        """Begin a task."""
        try:
            if isinstance(self._executor, ThreadPoolExecutor):
                assert callable(function)
                return self._executor.submit(run_repetitions, function, settings, repetitions, seed)
            return submit_to_process(self._executor, function, settings, repetitions, seed)
        except BrokenExecutor as error:
            return failed_future(error)

    def count_lost(self, error: BaseException) -> int:
        """Raise if a worker was lost, since the caller's pool cannot be replaced here; otherwise return 0."""
        if isinstance(error, BrokenExecutor):
            raise VsegError(
                "The executor lost a worker and cannot go on; finished repetitions are saved if a checkpoint folder "
                "was given. With executor='processes' lost workers are replaced."
            ) from error
        return 0

    def close(self, *, at_once: bool = False) -> None:
        """End the threads if they are the sweep's own."""
        if self._owned:
            self._executor.shutdown(wait=not at_once, cancel_futures=True)
