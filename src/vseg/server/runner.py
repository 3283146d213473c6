"""Running the server: one process, several that share the socket, or a thread beside something else.

Several processes are children that each run `work`. A child stops when its standard input ends, so that none outlives
a parent that was killed. It says through a pipe that it serves: as long as none has, what keeps a worker from it is a
mistake to be told; later it passes, as a database that is away for a minute does.
"""

import gc
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vseg import store
from vseg.errors import VsegError
from vseg.server import precompile
from vseg.server.app import create_app
from vseg.server.log_throttle import LOG_THROTTLE
from vseg.server.simulated_participants import Simulations
from vseg.server.timeouts import TimeoutProtocol

GRACEFUL_STOP_S, FORCED_STOP_S = 10, 20  # requests under way; everything
MAX_OPEN_FILES = 65_536
UVICORN_STARTUP_FAILURE = 3  # uvicorn's exit code
FIRST_RESTART_DELAY_S, MAX_RESTART_DELAY_S = 0.5, 30.0  # before a worker that could not begin is tried again
# By default a thousand people are looked through for garbage every ten seconds, and everybody waits for 30 ms.
GC_THRESHOLDS = (2_000, 50, 50)
DATABASE, PREFIX, TRUSTED = "VSEG_SERVE_DB", "VSEG_SERVE_PREFIX", "VSEG_SERVE_TRUSTED"
MODEL = "VSEG_SERVE_MODEL"
log = logging.getLogger("vseg.server")
# Until it serves nobody looks for garbage, as in cli/serve.py.
WORKER_CODE = "import gc; gc.disable(); from vseg.server.runner import run_worker; run_worker()"


def researcher_path(db: store.Database, *, new_link: bool = False) -> str:
    """Where the researcher begins: a one-time link if there is nobody yet or one is wanted, else the studies."""
    if store.researchers.count_researchers(db) and not new_link:
        return "/"
    from vseg.server import auth  # only where a link is made: a restart does without it

    return f"/setup?token={auth.create_setup_token(db)}"


def serve(
    db: store.Database,
    listening: socket.socket,
    *,
    url: str,
    prefix: str = "",
    workers: int = 1,
    forwarded_allow_ips: str = "127.0.0.1",
    simulations: Simulations | None = None,
    report: Path | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; requests under way are answered, and the caller closes the database."""
    simulations = simulations or Simulations()
    raise_open_file_limit()
    # From the first moment on a signal is only noted: one that raises an exception while an object is being finalised,
    # before anybody serves, is lost.
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with precompile.compile_in_background():
        if workers > 1:
            given = {
                DATABASE: url,
                PREFIX: prefix,
                TRUSTED: forwarded_allow_ips,
                MODEL: simulations.model or "",
            }
            _supervise(listening, workers, {**os.environ, **given}, stopped)
        else:
            served = create_app(db, prefix=prefix, simulations=simulations, report=report)
            try:
                _run(served, listening, forwarded_allow_ips, stopped)
            finally:
                simulations.stop()


def create_uvicorn_server(served: ASGIApp, forwarded_allow_ips: str = "127.0.0.1") -> uvicorn.Server:
    """What serves the app. Nothing that tells who took part is logged: no addresses, no requests, only failures."""
    config = uvicorn.Config(
        served, access_log=False, log_level="warning", server_header=False, ws="none", http=TimeoutProtocol,
        forwarded_allow_ips=forwarded_allow_ips, timeout_graceful_shutdown=GRACEFUL_STOP_S,
    )  # fmt: skip
    for name in ("uvicorn.error", "vseg.server"):
        logging.getLogger(name).addFilter(LOG_THROTTLE)
    return _Server(config)


@contextmanager
def serve_in_thread(db: store.Database, listening: socket.socket) -> Iterator[None]:
    """Serve in a thread for as long as the block lasts; at the end requests under way are answered first."""
    server = create_uvicorn_server(create_app(db))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="vseg server")
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()


def _run(
    served: ASGIApp,
    listening: socket.socket,
    forwarded_allow_ips: str,
    stopped: threading.Event,
    begun: Callable[[], object] = lambda: None,
) -> None:
    server = create_uvicorn_server(_telling(served, begun), forwarded_allow_ips)

    # For a signal that comes before uvicorn listens for them, and for the one that it sends itself when it has stopped.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    if stopped.is_set():
        server.handle_exit(signal.SIGTERM, None)
    # What was loaded so far stays for good. Looking through it for garbage would hold up everybody for 0.1 s each time.
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
    server.run(sockets=[listening])


def _telling(served: ASGIApp, begun: Callable[[], object]) -> ASGIApp:
    """The app, which tells when it has started."""

    async def telling(scope: Scope, receive: Receive, send: Send) -> None:
        async def heard(message: Message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                begun()

        await served(scope, receive, heard if scope["type"] == "lifespan" else send)

    return telling


class _Server(uvicorn.Server):
    """Has an end once it is told to stop: Python would wait for ever for a thread that a hanging database holds."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            timer = threading.Timer(FORCED_STOP_S, self._leave)
            timer.daemon = True
            timer.start()
        super().handle_exit(sig, frame)

    def _leave(self) -> None:
        log.error(
            "Stopped without waiting any longer for the database, which does not answer or is being swept; what was "
            "acknowledged is stored."
        )
        os._exit(1)


def raise_open_file_limit() -> None:
    """As many open files as this user may have: by default a thousand connections would be too many."""
    try:
        import resource
    except ImportError:  # on Windows, where there is no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _supervise(
    listening: socket.socket, workers: int, environment: dict[str, str], stopped: threading.Event
) -> None:
    """Keep so many workers running; one that dies is replaced, unless none of them could even begin."""
    running: dict[int, subprocess.Popen[bytes]] = {}
    stopping = False
    beginnings = StartupPipe()

    def start() -> None:
        given = [listening.fileno(), beginnings.told]
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER_CODE, *map(str, given)],
            env=environment,
            pass_fds=given,
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        running[worker.pid] = worker
        if stopping:  # the signal came while this one was being started, and passed it by
            worker.terminate()

    def stop(*_: Any) -> None:
        nonlocal stopping
        stopping = True
        for worker in list(running.values()):
            worker.terminate()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    if stopped.is_set():
        stop()
    for _ in range(workers):
        if not stopping:
            start()
    failed = False
    while running:
        ended, status = os.wait()
        if (worker := running.pop(ended, None)) is None:
            continue
        worker.returncode = os.waitstatus_to_exitcode(status)
        if worker.stdin is not None:
            worker.stdin.close()
        if not stopping and worker.returncode in (UVICORN_STARTUP_FAILURE, 1):
            if not beginnings.any():
                failed = True
                stop()
            again = time.monotonic() + beginnings.pause_s()
            while not stopping and time.monotonic() < again:
                time.sleep(0.05)  # short, for the sake of a signal
        if not stopping:
            start()
    beginnings.close()
    if failed:
        raise VsegError("A worker could not begin; the log above has its reason.")


class StartupPipe:
    """Whether workers have begun to serve, by a pipe into which each of them writes a byte; and how long to wait."""

    def __init__(self) -> None:
        self._heard, self.told = os.pipe()
        os.set_blocking(self._heard, False)
        self._any, self._failures = False, 0

    def any(self) -> bool:
        """Whether a worker has ever begun; one that has since the last look ends the row of failures."""
        try:
            new = bool(os.read(self._heard, 1024))
        except BlockingIOError:
            new = False
        self._any |= new
        self._failures = 0 if new else self._failures
        return self._any

    def pause_s(self) -> float:
        """How long to wait after one more that could not."""
        self._failures += 1
        return min(FIRST_RESTART_DELAY_S * 2.0 ** (self._failures - 1), MAX_RESTART_DELAY_S)

    def close(self) -> None:
        os.close(self._heard)
        os.close(self.told)


def run_worker() -> None:
    """One worker, told by its environment what the command was told, and by its arguments where to listen and tell."""
    listening, told = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    try:
        with store.open(os.environ[DATABASE]) as db:
            simulations = Simulations(os.environ[MODEL] or None)
            served = create_app(db, prefix=os.environ[PREFIX], simulations=simulations, one_of_several=True)
            begun = partial(os.write, told, b".")
            _run(served, listening, os.environ[TRUSTED], threading.Event(), begun)
    except VsegError as error:
        sys.exit(f"vseg: a worker stopped: {error}")


def _stop_with_parent() -> None:
    # The bare file: Python's own stdin could not be closed at the end while this waits for it.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
