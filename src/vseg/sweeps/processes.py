"""Worker processes on this machine."""

import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process

from vseg._support.subprocesses import ONE_THREAD
from vseg.errors import VsegError
from vseg.sweeps.repetitions import PreparedFunction, Repetition, Setting, SweepFunction, TaskOutcome
from vseg.sweeps.workers import Workers, failed_future, pickle_function, submit_to_process


class ProcessWorkers(Workers):
    """A pool of processes with one thread each; a pool that breaks is replaced.

    Processes are spawned, not forked: a fork of a process whose threads hold locks (numba's, OpenBLAS's) may hang, and
    keeps the thread counts of its parent. Compiled kernels are loaded from numba's cache on disk.
    """

    def __init__(self, count: int):
        self.count = count
        self._pool = self._start_pool()

    def prepare(self, function: SweepFunction) -> bytes:
        """Pickle the function."""
        return pickle_function(function)

    def submit(
        self,
        function: PreparedFunction,
        settings: dict[int, Setting],
        repetitions: Sequence[Repetition],
        seed: int,
    ) -> "Future[TaskOutcome]":
        """Begin a task; the pool may start a process now, which copies the environment of this one."""
        try:
            with _environment(ONE_THREAD):
                return submit_to_process(self._pool, function, settings, repetitions, seed)
        except BrokenExecutor as error:  # a process died while it was idle
            return failed_future(error)

    def count_lost(self, error: BaseException) -> int:
        """Return 1 if the pool is broken: one lost process breaks it."""
        return int(isinstance(error, BrokenExecutor))

    def replace_lost(self) -> None:
        """Start a new pool."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool = self._start_pool()

    def close(self, *, at_once: bool = False) -> None:
        """End the processes; with `at_once` even those that are working."""
        if at_once:  # there is no public way before Python 3.14
            for process in list((getattr(self._pool, "_processes", None) or {}).values()):
                process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _start_pool(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(
            self.count, mp_context=get_context("spawn"), initializer=_initialise_process
        )
        with _environment(ONE_THREAD):
            started = [pool.submit(os.getpid) for _ in range(self.count)]
        try:
            for future in started:
                future.result()
        except BrokenExecutor as error:
            raise VsegError(
                "The worker processes could not start. Each of them imports the main script, so it must be a file that "
                "calls sweep under if __name__ == '__main__':"
            ) from error
        return pool


def _initialise_process() -> None:
    """Leave Ctrl+C to the parent, and exit when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    parent = (
        parent_process()
    )  # of a pool's process; its standard input is not a pipe that ends with the parent
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
