"""Running the server: one process, or several that share the socket.

Several processes are this module run as a script, a child for each worker. A child stops when its standard input
ends, so that none outlives a parent that was killed.
"""

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from vseg import store
from vseg.errors import VsegError
from vseg.monitor import warm
from vseg.server import auth
from vseg.server.app import app
from vseg.server.patience import Patient
from vseg.server.simulation import Simulations

STOP_WITHIN_S = 10
MOST_FILES = 65_536
STOPPED_BEFORE_IT_BEGAN = 3  # uvicorn's exit code
DATABASE, PREFIX, TRUSTED = "VSEG_SERVE_DB", "VSEG_SERVE_PREFIX", "VSEG_SERVE_TRUSTED"
MODEL = "VSEG_SERVE_MODEL"


def researcher_path(db: store.Database, *, new_link: bool = False) -> str:
    """Where the researcher begins: a one-time link if there is nobody yet or one is wanted, else the studies."""
    if store.researchers.count(db) and not new_link:
        return "/"
    return f"/setup?token={auth.new_setup_token(db)}"


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
    _allow_connections()
    # From the first moment on a signal is only noted: one that raises an exception while an object is being finalised,
    # before anybody serves, is lost.
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with warm.compiling():
        if workers > 1:
            given = {
                DATABASE: url,
                PREFIX: prefix,
                TRUSTED: forwarded_allow_ips,
                MODEL: simulations.model or "",
            }
            _supervise(listening, workers, {**os.environ, **given}, stopped)
        else:
            served = app(db, prefix=prefix, simulations=simulations, report=report)
            try:
                _run(served, listening, forwarded_allow_ips, stopped)
            finally:
                simulations.stop()


def uvicorn_server(served: ASGIApp, forwarded_allow_ips: str = "127.0.0.1") -> uvicorn.Server:
    """What serves the app. Nothing that tells who took part is logged: no addresses, no requests, only failures."""
    config = uvicorn.Config(
        served, access_log=False, log_level="warning", server_header=False, ws="none", http=Patient,
        forwarded_allow_ips=forwarded_allow_ips, timeout_graceful_shutdown=STOP_WITHIN_S,
    )  # fmt: skip
    return uvicorn.Server(config)


def _run(
    served: ASGIApp, listening: socket.socket, forwarded_allow_ips: str, stopped: threading.Event
) -> None:
    server = uvicorn_server(served, forwarded_allow_ips)

    def stop(*_: Any) -> None:
        server.should_exit = True

    # For a signal that comes before uvicorn listens for them, and for the one that it sends itself when it has stopped.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    server.should_exit = server.should_exit or stopped.is_set()
    # What was loaded so far stays for good. Looking through it for garbage would hold up everybody for 0.1 s each time.
    gc.collect()
    gc.freeze()
    server.run(sockets=[listening])


def _allow_connections() -> None:
    """As many open files as this user may have: by default a thousand connections would be too many."""
    try:
        import resource
    except ImportError:  # on Windows, where there is no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _supervise(
    listening: socket.socket, workers: int, environment: dict[str, str], stopped: threading.Event
) -> None:
    """Keep so many workers running; one that dies is replaced, unless it could not even begin."""
    running: dict[int, subprocess.Popen[bytes]] = {}
    stopping = False

    def start() -> None:
        command = [sys.executable, "-m", "vseg.server.run", str(listening.fileno())]
        worker = subprocess.Popen(
            command,
            env=environment,
            pass_fds=[listening.fileno()],
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
        if not stopping and worker.returncode in (STOPPED_BEFORE_IT_BEGAN, 1):
            failed = True
            stop()
        elif not stopping:
            start()
    if failed:
        raise VsegError("A worker could not begin; the log above has its reason.")


def _work(listening: socket.socket) -> None:
    """One worker, told by its environment what the command was told."""
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    with store.open(os.environ[DATABASE]) as db:
        simulations = Simulations(os.environ[MODEL] or None)
        served = app(db, prefix=os.environ[PREFIX], simulations=simulations)
        _run(served, listening, os.environ[TRUSTED], threading.Event())


def _stop_with_parent() -> None:
    # The bare file: Python's own stdin could not be closed at the end while this waits for it.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    _work(socket.socket(fileno=int(sys.argv[1])))
