"""Processes with limits: a model that hangs, eats memory or crashes ends its own process, and all we get is a sentence.

`Fenced` is an executor for `compare`; the watching itself serves submissions to a benchmark as well. It is a fence
against accidents, not against malice: what runs inside runs as its user.
"""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from vseg.errors import InvalidInput

SECONDS, MEMORY_MB = 600.0, 4000
OWN_MB = 400  # what Python and vseg themselves need
LOOK_S = 0.25  # how often a process is looked after; an answer is not kept waiting
STARTING_S = 120.0
# Weights are loaded as numbers only, whatever a model asks for: PyTorch heeds this.
ENVIRONMENT = {"TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1", "PYTHONHASHSEED": "0"}
INSIDE = "from vseg.evaluation.sandbox import serve; serve()"


class Fenced(Executor):
    """Runs calls in processes of their own, each within limits of time and memory; a process serves many calls.

    Parameters
    ----------
    workers : int
        Processes at a time.
    seconds : float
        That one call may take.
    memory_mb : int
        That a process may use.

    Examples
    --------
    >>> with Fenced(2) as executor:
    ...     list(executor.map(abs, [-1, 2]))
    [1, 2]
    """

    def __init__(self, workers: int = 1, *, seconds: float = SECONDS, memory_mb: int = MEMORY_MB):
        self.seconds, self.memory_mb = seconds, memory_mb
        self._threads = ThreadPoolExecutor(workers, "vseg-fence")
        self._idle: list[_Inside] = []
        self._all: set[_Inside] = set()
        self._closed = False

    def submit(self, call: Callable[..., Any], /, *given: Any, **settings: Any) -> "Future[Any]":
        """As of any executor; an InvalidInput says in a sentence which limit was reached."""
        return self._threads.submit(self._asked, partial(call, *given, **settings))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; with `cancel_futures`, whatever they are at."""
        if not cancel_futures:
            self._threads.shutdown(wait)
        self._closed = True
        for each in list(self._all):
            each.end()
        self._threads.shutdown(wait, cancel_futures=True)

    def _asked(self, call: Callable[[], Any]) -> Any:
        message = pickle.dumps(call)
        try:
            inside = self._idle.pop()
        except IndexError:
            inside = self._started()
        done, answer = self._asked_of(inside, message, self.seconds)
        self._idle.append(inside)
        if done:
            return answer
        raise _too_large(self.memory_mb) if isinstance(answer, MemoryError) else answer

    def _started(self) -> "_Inside":
        inside = _Inside(self.memory_mb)
        self._all.add(inside)
        if self._closed:
            inside.end()
        # Until it is there, nobody's time runs.
        self._asked_of(inside, pickle.dumps(partial(abs, 0)), STARTING_S)
        return inside

    def _asked_of(self, inside: "_Inside", message: bytes, seconds: float) -> tuple[bool, Any]:
        """Whether the call went well, and what came; a process that reached a limit is not used again."""
        try:
            return inside.asked(message, seconds)
        except BaseException:
            self._all.discard(inside)
            inside.end()
            raise


class _Inside:
    """One process, from outside."""

    def __init__(self, memory_mb: int):
        self.memory_mb = memory_mb
        # -P: what lies in the working folder is not taken for what vseg imports.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", INSIDE, str(memory_mb)], env=os.environ | ENVIRONMENT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.reader = ThreadPoolExecutor(1, "vseg-fence-reader")
        self.ending = threading.Lock()

    def asked(self, message: bytes, seconds: float) -> tuple[bool, Any]:
        """Whether the call went well, and what it gave or raised."""
        answer = self.reader.submit(self._exchanged, message)
        until = time.monotonic() + seconds
        while True:
            with contextlib.suppress(TimeoutError):
                found = answer.result(LOOK_S)
                if found is None:
                    raise InvalidInput(_ended(self.process.wait(), self.memory_mb))
                return found
            if time.monotonic() > until:
                raise InvalidInput(
                    f"It was ended after {seconds:g} s, all that it may take at a time (--minutes)."
                )
            if resident_mb(self.process.pid) > self.memory_mb + OWN_MB:
                raise _too_large(self.memory_mb)

    def end(self) -> None:
        """Once: later, its number may be another's."""
        if not self.ending.acquire(blocking=False):
            return
        end(self.process)
        self.reader.shutdown()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):  # what was left to send has nowhere to go
                if pipe is not None:
                    pipe.close()

    def _exchanged(self, message: bytes) -> tuple[bool, Any] | None:
        """None if the process has ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(message)
            self.process.stdin.flush()
            found: tuple[bool, Any] = pickle.load(self.process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            return None
        return found


def serve() -> None:
    """The process itself: limits first, then one call after the other, until nobody asks any more."""
    limit_memory(int(sys.argv[1]))
    threading.Thread(target=_leave_with, args=(os.getppid(),), daemon=True).start()
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # what a model reads is no call,
    os.dup2(2, 1)  # and what it prints no answer
    while True:
        try:
            call = pickle.load(calls)
        except EOFError:
            return
        except Exception as error:
            answer: tuple[bool, Any] = False, error
        else:
            answer = _called(call)
        try:
            sent = pickle.dumps(answer)
        except Exception as error:
            sent = pickle.dumps((False, InvalidInput(f"What it gave cannot be sent back: {error}")))
        answers.write(sent)
        answers.flush()


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and whatever it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def limit_memory(most_mb: int) -> None:
    """No more than this beyond what is in use now; where the system has no such limit, whoever watches ends it."""
    try:
        import resource
    except ImportError:
        return
    statm = Path("/proc/self/statm")
    used = int(statm.read_text().split()[0]) * resource.getpagesize() if statm.exists() else 0
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (used + most_mb * 2**20,) * 2)


def resident_mb(group: int) -> float:
    """Memory in use by the processes of a group."""
    if not Path("/proc/self/stat").exists():
        return _told_by_ps(group)
    pages = 0
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                pages += int((place / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _told_by_ps(group: int) -> float:
    """The same where there is no /proc; 0 where there is no ps either."""
    try:
        listed = subprocess.run(
            ["ps", "-axo", "pgid=,rss="], capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        return 0.0
    rows = [line.split() for line in listed.splitlines()]
    return sum(int(rss) for pgid, rss in rows if int(pgid) == group) / 1024


def _called(call: Callable[[], Any]) -> tuple[bool, Any]:
    try:
        return True, call()
    except BaseException as error:  # an interruption, too, is for whoever asked
        return False, error


def _leave_with(parent: int) -> None:
    """When whoever asks is gone, a model that hangs would stay for ever."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _too_large(memory_mb: int) -> InvalidInput:
    return InvalidInput(
        f"It was ended, since it needed more memory than the {memory_mb} MB it may use; raise --memory."
    )


def _ended(code: int, memory_mb: int) -> str:
    if code >= 0:
        return "Its process ended without an answer, as if it had called exit()."
    return said_of_signal(signal.Signals(-code).name, memory_mb)


def said_of_signal(name: str, memory_mb: int) -> str:
    """Why a process has ended: memory that runs out ends it from outside, or has a library give up."""
    if name == "SIGKILL":
        return f"Its process was ended by {name}, as happens when memory runs out; it may use {memory_mb} MB."
    if name == "SIGABRT":
        return (
            f"Its process gave up ({name}), as libraries do when memory runs out; it may use {memory_mb} MB."
        )
    return f"Its process crashed ({name})."
