"""From the word `executor` to a place of work: here, threads, processes, a Dask cluster, or any Executor."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from vseg.errors import InvalidInput, VsegError
from vseg.sweeps.clusters import Dask
from vseg.sweeps.processes import Processes
from vseg.sweeps.trials import Function, Outcome, Setting, Trial, run
from vseg.sweeps.workers import Here, Place, carried, failed, pickled

KNOWN = (
    "'threads', 'threads:N', 'processes', 'processes:N', 'dask://HOST:PORT' or a concurrent.futures.Executor"
)


@contextmanager
def workers(executor: str | Executor | Place | None) -> Iterator[Place]:
    """Workers that several sweeps can share: `sweep(..., executor=place)`.

    Examples
    --------
    >>> with workers("threads:2") as place:
    ...     place.count
    2
    """
    if isinstance(executor, Place):
        yield executor
        return
    place = _opened(executor)
    try:
        yield place
    except BaseException:
        place.close(at_once=True)
        raise
    place.close()


def _opened(executor: str | Executor | None) -> Place:
    if executor is None:
        return Here()
    if isinstance(executor, Executor):
        return Given(executor)
    if isinstance(executor, str) and executor.startswith("dask://"):
        return Dask(executor)
    name, _, number = executor.partition(":") if isinstance(executor, str) else ("", "", "")
    if name not in ("threads", "processes"):
        raise InvalidInput(f"An executor is {KNOWN}, got {executor!r}.")
    if number and (not number.isdecimal() or int(number) < 1):
        raise InvalidInput(f"The number of {name} is a whole number from 1 up, got {executor!r}.")
    count = int(number) if number else _cores()
    return Given(ThreadPoolExecutor(count), ours=True) if name == "threads" else Processes(count)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Given(Place):
    """An Executor: threads of ours, or whatever the caller made, which stays the caller's to close."""

    def __init__(self, executor: Executor, *, ours: bool = False):
        self._executor, self._ours = executor, ours
        self.count = int(getattr(executor, "_max_workers", 0) or _cores())

    def prepare(self, function: Function) -> Any:
        """Threads share the function; other executors may have to send it."""
        return pickled(function) if isinstance(self._executor, ProcessPoolExecutor) else function

    def submit(
        self, function: Any, settings: dict[int, Setting], trials: Sequence[Trial], seed: int
    ) -> "Future[Outcome]":
        """Begin a task."""
        try:
            if isinstance(self._executor, ThreadPoolExecutor):
                return self._executor.submit(run, function, settings, trials, seed)
            return carried(self._executor, function, settings, trials, seed)
        except BrokenExecutor as error:
            return failed(error)

    def lost(self, error: BaseException) -> int:
        """A caller's pool cannot be made anew from here."""
        if isinstance(error, BrokenExecutor):
            raise VsegError(
                "The executor lost a worker and cannot go on; finished trials are kept where a folder was given. "
                "With executor='processes' lost workers are replaced."
            ) from error
        return 0

    def close(self, *, at_once: bool = False) -> None:
        """Only what is ours."""
        if self._ours:
            self._executor.shutdown(wait=not at_once, cancel_futures=True)
