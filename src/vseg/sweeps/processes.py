"""Processes of ours as a place of work."""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import Any

from vseg.errors import VsegError
from vseg.sweeps.trials import Function, Outcome, Setting, Trial
from vseg.sweeps.workers import Place, carried, failed, pickled

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


class Processes(Place):
    """Processes of ours, each with one thread; a pool that breaks is replaced.

    They are spawned, not forked: forking a process whose threads hold locks (numba's, OpenBLAS's) may hang, and
    a forked one keeps the thread counts of its parent. Compiled kernels are loaded from numba's cache on disk.
    """

    def __init__(self, count: int):
        self.count = count
        self._pool = self._started()

    def prepare(self, function: Function) -> bytes:
        """Pickled."""
        return pickled(function)

    def submit(
        self, function: Any, settings: dict[int, Setting], trials: Sequence[Trial], seed: int
    ) -> "Future[Outcome]":
        """Begin a task; the pool may start a process now, which takes its environment from ours."""
        try:
            with _environment(ONE_THREAD):
                return carried(self._pool, function, settings, trials, seed)
        except BrokenExecutor as error:  # a process died while it had nothing to do
            return failed(error)

    def lost(self, error: BaseException) -> int:
        """One, which takes the whole pool with it."""
        return int(isinstance(error, BrokenExecutor))

    def renew(self) -> None:
        """Another pool."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool = self._started()

    def close(self, *, at_once: bool = False) -> None:
        """End the processes."""
        if at_once:  # the pool has no public way before Python 3.14
            for process in list((getattr(self._pool, "_processes", None) or {}).values()):
                process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(self.count, mp_context=get_context("spawn"), initializer=_enter)
        with _environment(ONE_THREAD):
            ready = [pool.submit(os.getpid) for _ in range(self.count)]
        try:
            for one in ready:
                one.result()
        except BrokenExecutor as error:
            raise VsegError(
                "The worker processes could not start: each of them reads the script anew, so it must be a file, and "
                "call sweep under if __name__ == '__main__':"
            ) from error
        return pool


def _enter() -> None:
    """In a new process: Ctrl-C is the parent's to answer, and when the parent is gone, so are we."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
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
