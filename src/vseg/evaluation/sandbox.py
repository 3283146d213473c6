"""Run calls in child processes with limits, so that a model that hangs, fills the memory or crashes is one error.

This is a safeguard against accidents, not against malice: a child runs with all rights of its user.
"""

import pickle
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from vseg._support.subprocesses import (
    ChildEndedError,
    LimitReachedError,
    Limits,
    PipeWorker,
    describe_exit,
    limit_check,
    limit_memory,
    serve_requests,
)
from vseg.errors import InvalidInput

SECONDS, MEMORY_MB = 600.0, 4000
REPLY_MB = 100  # probabilities and maps of a fit; without a limit, the parent would read as much as the child may use
START_SECONDS = 120.0
# PyTorch then loads weights as numbers only, whatever a model asks for.
ENVIRONMENT = {"TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1", "PYTHONHASHSEED": "0"}
# Fits are imported at start-up, which does not count towards the time limit of the first fit.
CHILD = "import vseg.evaluation.fits; from vseg.evaluation.sandbox import serve_calls; serve_calls()"


class SandboxExecutor(Executor):
    """Run calls in child processes, each within limits of time and memory; a process serves many calls.

    Parameters
    ----------
    workers : int
        Processes at a time.
    seconds : float
        How long one call may take.
    memory_mb : int
        How much memory a process may use.

    Examples
    --------
    >>> with SandboxExecutor(2) as executor:
    ...     list(executor.map(abs, [-1, 2]))
    [1, 2]
    """

    def __init__(self, workers: int = 1, *, seconds: float = SECONDS, memory_mb: int = MEMORY_MB):
        self.seconds, self.memory_mb = seconds, memory_mb
        self._threads = ThreadPoolExecutor(workers, "vseg-sandbox")
        self._idle: list[PipeWorker] = []
        self._all: set[PipeWorker] = set()
        self._closed = False

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run a call in a child process; its future raises `InvalidInput` if the call reached a limit."""
        return self._threads.submit(self._run, partial(call, *args, **kwargs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; with `cancel_futures` even those that are working."""
        if not cancel_futures:
            self._threads.shutdown(wait)
        self._closed = True
        for worker in list(self._all):
            worker.kill()
        self._threads.shutdown(wait, cancel_futures=True)

    def _run(self, call: Callable[[], Any]) -> Any:
        message = pickle.dumps(call)
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = self._start_worker()
        succeeded, result = self._request(worker, message, self.seconds)
        self._idle.append(worker)
        if succeeded:
            return result
        if isinstance(result, MemoryError):
            raise InvalidInput(Limits(self.seconds, self.memory_mb).describe("memory"))
        raise result

    def _start_worker(self) -> PipeWorker:
        # -P: modules in the working folder must not shadow what vseg imports.
        worker = PipeWorker(["-P", "-c", CHILD, str(self.memory_mb)], environment=ENVIRONMENT, stderr=None)
        self._all.add(worker)
        if self._closed:
            worker.kill()
        # Start-up does not count towards the time limit of a call.
        self._request(worker, pickle.dumps(partial(abs, 0)), START_SECONDS)
        return worker

    def _request(self, worker: PipeWorker, message: bytes, seconds: float) -> tuple[bool, Any]:
        """Return whether the call succeeded, and its result or what it raised; a failed worker is not used again."""
        limits = Limits(seconds, self.memory_mb, REPLY_MB)
        try:
            reply = worker.request(message, limit_check(worker.process, limits), REPLY_MB * 10**6)
            outcome: tuple[bool, Any] = pickle.loads(reply)
        except BaseException as error:
            self._all.discard(worker)
            worker.kill()
            if isinstance(error, LimitReachedError):
                raise InvalidInput(limits.describe(error.limit)) from None
            if isinstance(error, ChildEndedError):
                raise InvalidInput(describe_exit(error.returncode, self.memory_mb)) from None
            raise
        return outcome


def serve_calls() -> None:
    """Limit the memory of this process, then run one call after the other, in the child."""
    limit_memory(int(sys.argv[1]))
    serve_requests(_answer_call)


def _answer_call(message: bytes) -> bytes:
    outcome: tuple[bool, Any]
    try:
        call = pickle.loads(message)
    except Exception as error:
        outcome = False, error
    else:
        outcome = _run_call(call)
    try:
        return pickle.dumps(outcome)
    except Exception as error:
        return pickle.dumps((False, InvalidInput(f"What it returned cannot be sent back: {error}")))


def _run_call(call: Callable[[], Any]) -> tuple[bool, Any]:
    try:
        return True, call()
    except BaseException as error:  # an interrupt, too, is raised in the caller
        return False, error
