"""`vseg serve` as a process that may be killed and started again on the same port, and a PostgreSQL likewise."""

import asyncio
import os
import shlex
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from databases import Postgres
from vseg.server.runner import WORKER_CODE

READY_WITHIN_S = 60


class Server:
    """On one port and one database for its whole life, however often it dies. What it logs is in `log`."""

    def __init__(self, study: Path, url: str, folder: Path, *options: str):
        self.port = _steady_port()
        serve = [sys.executable, "-m", "vseg", "serve", str(study), "--db", url, "--port", str(self.port)]
        self._command = [*serve, *options]
        self.log = folder / "server.log"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """It has printed its links, so it listens."""
        with open(self.log, "a") as log:  # a pipe that nobody reads would stop it some day
            environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
            )
        assert self._process.stdout is not None
        while "Stop with Ctrl+C" not in (line := self._process.stdout.readline()):
            if not line:
                raise AssertionError(f"vseg serve did not start: {self.log.read_text()[-2000:]}")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def workers(self) -> list[int]:
        """The processes that serve, where there are several; others of the server's children compile."""
        listed = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(pid) for pid in listed.split() if WORKER_CODE.encode() in _command_of(pid).split(b"\0")]

    def tracebacks(self) -> int:
        """How often it met something that nobody had foreseen."""
        return self.log.read_text().count("Traceback (most recent call last)") if self.log.exists() else 0


def _command_of(pid: str) -> bytes:
    """Nothing of a process that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _steady_port() -> int:
    """Free, and below those that systems give out by themselves: a client that calls a dead server from its own port
    would answer itself, and keep the port from the server.
    """
    start = 20_000 + os.getpid() % 10_000
    for port in range(start, start + 2000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError(f"No port is free from {start} on.")


class RestartedPostgres:
    """Ends and starts the PostgreSQL of the tests as itself says it was started: in data/postmaster.opts."""

    def __init__(self, postgres: Postgres):
        self.server = postgres
        self._data = postgres.folder / "data"

    def end(self, number: int) -> None:
        """SIGINT: fast; SIGQUIT: immediate; SIGKILL: none of its business."""
        self.server.process.send_signal(number)
        self.server.process.wait()

    def start(self) -> None:
        command = shlex.split((self._data / "postmaster.opts").read_text())
        owner = self._data.stat()
        identity: dict[str, Any] = {}
        if os.geteuid() == 0:
            identity = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
        # Children of one that was killed may keep its memory for a moment.
        for _ in range(READY_WITHIN_S * 4):
            self.server.process = started = self._started(command, identity)
            while started.poll() is None:
                try:
                    self.server.execute("SELECT 1")
                    return
                except psycopg.OperationalError:
                    _wait(started, 0.02)
            time.sleep(0.1)
        raise AssertionError((self.server.folder / "log").read_text()[-2000:])

    def _started(self, command: list[str], identity: dict[str, Any]) -> "subprocess.Popen[bytes]":
        with open(self.server.folder / "log", "ab") as log:
            return subprocess.Popen(
                command, cwd=self.server.folder, stdout=log, stderr=subprocess.STDOUT, **identity
            )


def _wait(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


async def in_thread(function: Any, *arguments: Any) -> Any:
    """While this process goes on with everything else."""
    return await asyncio.to_thread(function, *arguments)
