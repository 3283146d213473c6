"""Start, limit, watch and kill child processes.

Every child leads a process group of its own, so that killing the group also ends whatever the child has started, and a
Ctrl+C in the terminal reaches the parent alone. A process that leaves the group, as daemons do, is recognised on Linux
by a mark in its environment, which it inherits. A child that calls `serve_requests` or `exit_with_parent` exits when
its standard input ends, so that it does not outlive a parent that was killed.

These are safeguards against accidents, not against malice: a child runs with all rights of its user.
"""

import contextlib
import os
import queue
import secrets
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal

CHECK_INTERVAL_S = 0.25  # between two checks of a child's limits; a reply is delivered at once
OWN_MEMORY_MB = 400  # what Python and vseg themselves need
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
"""Environment variables that keep numerical libraries to one thread."""
ENDED_WITHOUT_ANSWER = "Its process ended without an answer, as if it had called exit()."
MARKS = (
    "VSEG_STARTED_BY"  # environment variable with the marks of all children that this process descends from
)
MAX_SWEEPS = 100  # a process may start others while its relatives are killed
_LENGTH = struct.Struct(">Q")  # before each message in a pipe


Limit = Literal["time", "memory", "reply"]


class ChildProcess(subprocess.Popen[bytes]):
    """A child process, and the mark in the environment of all processes that descend from it."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], **options: Any):
        self.mark = secrets.token_hex(8)
        super().__init__(command, env={**env, MARKS: f"{env.get(MARKS, '')}:{self.mark}"}, **options)


class ChildEndedError(Exception):
    """The child ended before it replied; `returncode` is negative if a signal ended it."""

    def __init__(self, returncode: int):
        super().__init__(f"The child process ended with code {returncode}.")
        self.returncode = returncode


class LimitReachedError(Exception):
    """The child took too long, used too much memory or replied too much."""

    def __init__(self, limit: Limit):
        super().__init__(f"The child process reached its limit of {limit}.")
        self.limit = limit


@dataclass(frozen=True)
class Limits:
    """How long a child may work, how much memory it and the processes it starts may use, and how much it may reply."""

    seconds: float
    memory_mb: int
    reply_mb: int = 0

    def describe(self, limit: Limit) -> str:
        """Say in a sentence that the child was ended for reaching this limit."""
        if limit == "reply":
            return f"It returned more than the {self.reply_mb} MB that a result may have; return less."
        if limit == "time":
            return (
                f"It was ended after {self.seconds:g} s, its time limit; raise the limit if it needs longer."
            )
        return (
            f"It was ended because it needed more memory than the {self.memory_mb} MB it may use; "
            "raise the limit if it needs more."
        )


def start_python(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    stdin: int | None = subprocess.PIPE,
    stdout: int | None = subprocess.PIPE,
    stderr: int | None = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
) -> ChildProcess:
    """Start this Python with these arguments as the leader of a new process group.

    Parameters
    ----------
    arguments : sequence of str
        What follows the interpreter: "-m", a module and its arguments, for example.
    environment : mapping, optional
        Variables that are added to, or replace, those of this process.
    folder : path, optional
        The child's working folder; by default that of this process.
    stdin, stdout, stderr : int, optional
        As for `subprocess.Popen`; None shares this process's own.
    pass_fds : sequence of int
        File descriptors that the child inherits.
    """
    return ChildProcess(
        [sys.executable, *arguments], env={**os.environ, **(environment or {})}, cwd=folder,
        stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=pass_fds, start_new_session=True,
    )  # fmt: skip


def start_program(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start a program other than Python as the leader of a new process group, without input or output."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill a child and everything it has started, and wait for it.

    Call it once, at the latest right after the child has ended: later, its PID may belong to another process.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    if isinstance(process, ChildProcess):
        _kill_marked(process.mark)


def _kill_marked(mark: str) -> None:
    """Kill the processes with this mark, which have left the group, until there are none."""
    for _ in range(MAX_SWEEPS):
        if not (marked := [process for process in _list_processes() if _has_mark(process, mark)]):
            return
        for process in marked:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(process.name), signal.SIGKILL)


def _list_processes() -> Iterator[Path]:
    """Yield the folders of all processes below /proc; none where the system has no such folder."""
    return Path("/proc").glob("[0-9]*")


def _has_mark(process: Path, mark: str) -> bool:
    """Return whether a process has the mark in its environment; not if it belongs to another user or has ended."""
    with contextlib.suppress(OSError):
        return mark.encode() in (process / "environ").read_bytes()
    return False


def stop_group(process: "subprocess.Popen[bytes]", timeout_s: float) -> None:
    """Ask a child and everything it has started to end; kill them if the child has not ended after `timeout_s`.

    Nothing happens if the child has ended.
    """
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.terminate()
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        kill_group(process)


def wait_within_limits(process: "subprocess.Popen[bytes]", limits: Limits) -> int:
    """Return the child's exit code; raise `LimitReachedError` as soon as it is beyond its limits."""
    return _wait(process, limit_check(process, limits))


def _wait(process: "subprocess.Popen[bytes]", check: Callable[[], None]) -> int:
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(CHECK_INTERVAL_S)
        check()


def limit_check(process: "subprocess.Popen[bytes]", limits: Limits) -> Callable[[], None]:
    """Return a function that raises `LimitReachedError` once the child is beyond its limits; the time runs from now."""
    deadline = time.monotonic() + limits.seconds

    def check() -> None:
        if time.monotonic() > deadline:
            raise LimitReachedError("time")
        if measure_memory_mb(process.pid, getattr(process, "mark", None)) > limits.memory_mb + OWN_MEMORY_MB:
            raise LimitReachedError("memory")

    return check


def measure_memory_mb(group: int, mark: str | None = None) -> float:
    """Return the resident memory of all processes of a group, or with a mark; 0 if the system does not tell."""
    if not Path("/proc/self/stat").exists():
        return _measure_memory_with_ps(group)
    pages = 0
    for process in _list_processes():
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group or (mark is not None and _has_mark(process, mark)):
                pages += int((process / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _measure_memory_with_ps(group: int) -> float:
    try:
        table = subprocess.run(
            ["ps", "-axo", "pgid=,rss="], capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        return 0.0
    rows = [line.split() for line in table.splitlines()]
    return sum(int(rss) for pgid, rss in rows if int(pgid) == group) / 1024


def describe_exit(returncode: int, memory_mb: int) -> str:
    """Say in a sentence why a child that may use this much memory ended before it had answered."""
    if returncode >= 0:
        return ENDED_WITHOUT_ANSWER
    name = signal.Signals(-returncode).name
    if name == "SIGKILL":  # by the system, when memory runs out
        return f"Its process was ended by {name}, as happens when memory runs out; it may use {memory_mb} MB."
    if name == "SIGABRT":
        return (
            f"Its process gave up ({name}), as libraries do when memory runs out; it may use {memory_mb} MB."
        )
    return f"Its process crashed ({name})."


class PipeWorker:
    """A child process that answers requests through pipes, one at a time; the child calls `serve_requests`.

    Parameters
    ----------
    arguments, environment
        As for `start_python`.
    stderr : int, optional
        As for `subprocess.Popen`; what the child prints goes there, too.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        stderr: int | None = subprocess.DEVNULL,
    ):
        self.process = start_python(arguments, environment=environment, stderr=stderr)
        self._kill_once = threading.Lock()
        self._exchange: threading.Thread | None = None

    def request(self, message: bytes, check: Callable[[], None], max_bytes: int | None = None) -> bytes:
        """Send a message and return the reply.

        While it waits, `check` is called again and again; it may raise to give up. `ChildEndedError` is raised if the
        child ends first, and `LimitReachedError` if the reply has more than `max_bytes`. After any exception the child
        has been killed, and takes no more requests.
        """
        replies: queue.SimpleQueue[bytes | LimitReachedError | None] = queue.SimpleQueue()
        exchange = threading.Thread(
            target=self._exchange_messages, args=(message, replies, max_bytes), name="vseg-pipe", daemon=True
        )
        exchange.start()
        self._exchange = exchange  # only now: `kill` joins it from another thread
        try:
            while True:
                try:
                    reply = replies.get(timeout=CHECK_INTERVAL_S)
                except queue.Empty:
                    check()
                else:
                    if reply is None:
                        raise ChildEndedError(_wait(self.process, check))
                    if isinstance(reply, LimitReachedError):
                        raise reply
                    return reply
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """Kill the child and everything it has started; only the first call has an effect."""
        if not self._kill_once.acquire(blocking=False):
            return
        kill_group(self.process)
        if self._exchange is not None:
            self._exchange.join()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):  # unsent data cannot be flushed
                if pipe is not None:
                    pipe.close()

    def _exchange_messages(
        self,
        message: bytes,
        replies: "queue.SimpleQueue[bytes | LimitReachedError | None]",
        max_bytes: int | None,
    ) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            write_message(self.process.stdin, message)
            replies.put(read_message(self.process.stdout, max_bytes))
        except LimitReachedError as error:
            replies.put(error)
        except (OSError, EOFError, ValueError):  # the child has ended, or `kill` has closed the pipes
            replies.put(None)


def serve_requests(handle: Callable[[bytes], bytes]) -> None:
    """Answer the requests of a `PipeWorker`, in the child; never return.

    `handle` runs in the main thread. It reads nothing from standard input, and what it prints goes to standard error.
    The process exits as soon as its standard input ends, even in the middle of a request.
    """
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive_requests, args=(requests, waiting), daemon=True).start()
    while True:
        write_message(replies, handle(waiting.get()))


def _receive_requests(requests: BinaryIO, waiting: "queue.SimpleQueue[bytes]") -> None:
    try:
        while True:
            waiting.put(read_message(requests))
    except MemoryError:
        os.abort()  # as libraries do: the parent says that memory ran out
    finally:
        os._exit(0)


def write_message(pipe: IO[bytes], message: bytes) -> None:
    """Write the length of a message and the message itself."""
    pipe.write(_LENGTH.pack(len(message)))
    pipe.write(message)
    pipe.flush()


def read_message(pipe: IO[bytes], max_bytes: int | None = None) -> bytes:
    """Read one message; `EOFError` if the pipe ends before or within it, `LimitReachedError` if it is too large."""
    header = pipe.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(header)
    if max_bytes is not None and length > max_bytes:
        raise LimitReachedError("reply")
    message = pipe.read(length)
    if len(message) < length:
        raise EOFError
    return message


def exit_with_parent(leave: Callable[[], None] = lambda: os._exit(1)) -> None:
    """Call `leave` when standard input ends, as it does when the parent has ended; in a thread of the child.

    Standard input must be a pipe that the parent keeps open and writes nothing more to.
    """
    threading.Thread(target=_leave_at_end_of_input, args=(leave,), daemon=True).start()


def _leave_at_end_of_input(leave: Callable[[], None]) -> None:
    # The descriptor itself: Python could not close its own sys.stdin at exit while this thread reads from it.
    while os.read(0, 1):
        pass
    leave()


def limit_memory(most_mb: int) -> None:
    """Limit the memory that this process may use beyond what it uses now.

    Where the system has no such limit, nothing happens: the parent measures and ends the child.
    """
    try:
        import resource
    except ImportError:
        return
    statm = Path("/proc/self/statm")
    used = int(statm.read_text().split()[0]) * resource.getpagesize() if statm.exists() else 0
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (used + most_mb * 2**20,) * 2)
