"""Running the server: in this process, in several that share a socket, or in a thread.

Several workers are child processes that each call `run_worker`. A worker stops when its standard input ends, so that
none outlives a parent that was killed. It reports through a pipe that it has started. If a worker fails before any has
started, the server stops and shows the error; later failures are temporary, such as a database that is restarted, and
the worker is replaced.
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

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vseg import store
from vseg._support.subprocesses import exit_with_parent, start_python
from vseg.errors import VsegError
from vseg.server import precompile
from vseg.server.app import create_app
from vseg.server.http import announce_stop
from vseg.server.log_throttle import LOG_THROTTLE
from vseg.server.simulated_participants import Simulations
from vseg.server.timeouts import TimeoutProtocol

GRACEFUL_STOP_S, FORCED_STOP_S = 10, 20  # for requests in progress; for everything
MAX_OPEN_FILES = 65_536
UVICORN_STARTUP_FAILURE = 3  # uvicorn's exit code
FIRST_RESTART_DELAY_S, MAX_RESTART_DELAY_S = 0.5, 30.0  # before a worker that could not start is replaced
# With Python's default, a thousand sessions are scanned for garbage every ten seconds, for 30 ms each time.
GC_THRESHOLDS = (2_000, 50, 50)
DATABASE, PREFIX, TRUSTED = "VSEG_SERVE_DB", "VSEG_SERVE_PREFIX", "VSEG_SERVE_TRUSTED"
MODEL = "VSEG_SERVE_MODEL"
log = logging.getLogger("vseg.server")
# No garbage collection until it serves, as in cli/serve.py: start-up is quicker.
WORKER_CODE = "import gc; gc.disable(); from vseg.server.runner import run_worker; run_worker()"


def get_researcher_path(db: store.Database, *, new_link: bool = False) -> str:
    """Return the path where researchers start: a one-time setup link if there is no researcher yet or one is wanted."""
    if store.researchers.count_researchers(db) and not new_link:
        return "/"
    from vseg.server import auth  # imported only where a link is made, so that a restart is quicker

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
    """Serve until SIGINT or SIGTERM; answer the requests in progress. The caller closes the database.

    Parameters
    ----------
    db : Database
        The open database; with several workers each opens `url` itself.
    listening : socket.socket
        The socket to serve on.
    url : str
        The address of the database.
    prefix : str
        The path prefix under which a reverse proxy serves the app.
    workers : int
        The number of processes; with 1, this process serves.
    forwarded_allow_ips : str
        The addresses of reverse proxies whose X-Forwarded headers are trusted.
    simulations : Simulations, optional
        The simulated participants that researchers can start.
    report : Path, optional
        The folder of the demonstration.
    """
    simulations = simulations or Simulations()
    raise_open_file_limit()
    # From the start a signal only sets an event. A handler that raises may do so while Python finalises an object,
    # where the exception is lost.
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with precompile.compile_in_background():
        if workers > 1:
            settings = {
                DATABASE: url,
                PREFIX: prefix,
                TRUSTED: forwarded_allow_ips,
                MODEL: simulations.model or "",
            }
            _supervise(listening, workers, settings, stopped)
        else:
            app = create_app(db, prefix=prefix, simulations=simulations, report=report)
            try:
                _run(app, listening, forwarded_allow_ips, stopped)
            finally:
                simulations.stop()


def create_uvicorn_server(app: ASGIApp, forwarded_allow_ips: str = "127.0.0.1") -> uvicorn.Server:
    """Create the server of an app; it logs failures only: addresses and requests could identify participants."""
    config = uvicorn.Config(
        app, access_log=False, log_level="warning", server_header=False, ws="none", http=TimeoutProtocol,
        forwarded_allow_ips=forwarded_allow_ips, timeout_graceful_shutdown=GRACEFUL_STOP_S,
    )  # fmt: skip
    for name in ("uvicorn.error", "vseg.server"):
        logging.getLogger(name).addFilter(LOG_THROTTLE)
    return _Server(config)


@contextmanager
def serve_in_thread(db: store.Database, listening: socket.socket) -> Iterator[None]:
    """Serve in a thread while the block lasts; at its end answer the requests in progress."""
    server = create_uvicorn_server(create_app(db))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="vseg server")
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()


def _run(
    app: ASGIApp,
    listening: socket.socket,
    forwarded_allow_ips: str,
    stopped: threading.Event,
    on_startup: Callable[[], object] = lambda: None,
) -> None:
    server = create_uvicorn_server(_with_startup_hook(app, on_startup), forwarded_allow_ips)

    # For a signal that arrives before uvicorn handles them, and for the one that uvicorn raises again at its end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    if stopped.is_set():
        server.handle_exit(signal.SIGTERM, None)
    # What is loaded so far is never freed; scanning it for garbage would delay all requests by 0.1 s each time.
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
    server.run(sockets=[listening])


def _with_startup_hook(app: ASGIApp, on_startup: Callable[[], object]) -> ASGIApp:
    """Return an app that calls `on_startup` once it has started."""

    async def app_with_hook(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_and_call(message: Message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                on_startup()

        await app(scope, receive, send_and_call if scope["type"] == "lifespan" else send)

    return app_with_hook


class _Server(uvicorn.Server):
    """Stops within a limited time: Python would wait for ever for a thread that a hanging database blocks."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            timer = threading.Timer(FORCED_STOP_S, self._exit_now)
            timer.daemon = True
            timer.start()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        announce_stop()
        await super().shutdown(sockets)

    def _exit_now(self) -> None:
        log.error(
            "Stopped without waiting any longer for what was in progress, such as a database that does not answer or "
            "is being vacuumed; records were acknowledged only after they were committed."
        )
        os._exit(1)


def raise_open_file_limit() -> None:
    """Allow as many open files as this user may have: the default is too low for a thousand connections."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _supervise(
    listening: socket.socket, workers: int, environment: dict[str, str], stopped: threading.Event
) -> None:
    """Keep this number of workers running; replace those that die, but give up if none has ever started."""
    running: dict[int, subprocess.Popen[bytes]] = {}
    stopping = False
    startups = StartupPipe()

    def start() -> None:
        inherited = [listening.fileno(), startups.write_end]
        worker = start_python(
            ["-c", WORKER_CODE, *map(str, inherited)],
            environment=environment,
            pass_fds=inherited,
            stdout=None,
            stderr=None,
        )
        running[worker.pid] = worker
        if stopping:  # the signal arrived while this worker was being started, so it was not terminated
            worker.terminate()

    def stop(*_: object) -> None:
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
            if not startups.has_any():
                failed = True
                stop()
            restart_at = time.monotonic() + startups.next_delay_s()
            while not stopping and time.monotonic() < restart_at:
                time.sleep(0.05)  # short, so that a signal is handled soon
        if not stopping:
            start()
    startups.close()
    if failed:
        raise VsegError("A worker could not start; see the reason in the log above.")


class StartupPipe:
    """A pipe into which each worker writes a byte when it has started; also the delay before a failed one restarts."""

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._has_any, self._failures = False, 0

    def has_any(self) -> bool:
        """Return whether a worker has ever started; one that started since the last call resets the delay."""
        try:
            is_new = bool(os.read(self._read_end, 1024))
        except BlockingIOError:
            is_new = False
        self._has_any |= is_new
        self._failures = 0 if is_new else self._failures
        return self._has_any

    def next_delay_s(self) -> float:
        """Count a failure and return the delay before the next start; it doubles each time."""
        self._failures += 1
        return min(FIRST_RESTART_DELAY_S * 2.0 ** (self._failures - 1), MAX_RESTART_DELAY_S)

    def close(self) -> None:
        """Close both ends of the pipe."""
        os.close(self._read_end)
        os.close(self.write_end)


def run_worker() -> None:
    """Run one worker: the environment has its settings, the arguments are the file numbers of socket and pipe."""
    listening, startup_pipe = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    exit_with_parent(partial(os.kill, os.getpid(), signal.SIGTERM))
    try:
        with store.open(os.environ[DATABASE]) as db:
            simulations = Simulations(os.environ[MODEL] or None)
            app = create_app(db, prefix=os.environ[PREFIX], simulations=simulations, several_workers=True)
            on_startup = partial(os.write, startup_pipe, b".")
            _run(app, listening, os.environ[TRUSTED], threading.Event(), on_startup)
    except VsegError as error:
        sys.exit(f"vseg: a worker stopped: {error}")
