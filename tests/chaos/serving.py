"""Run `vseg serve` and PostgreSQL as processes that can be killed and restarted on the same port."""

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
WITH_MORTAL_WRITER = """
import ctypes, runpy, signal, threading

def end_writer(*_):
    for thread in threading.enumerate():
        if thread.name == "vseg-writer":
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))

signal.signal(signal.SIGUSR1, end_writer)
runpy.run_module("vseg", run_name="__main__", alter_sys=True)
"""
"""Runs vseg; at SIGUSR1 the thread that stores records ends at its next instruction."""


class Server:
    """A server that keeps its port and database when it is restarted; `log` is the file of its log."""

    def __init__(self, study: Path, url: str, folder: Path, *options: str, ends_writer: bool = False):
        self.port = _find_port()
        program = ["-c", WITH_MORTAL_WRITER] if ends_writer else ["-m", "vseg"]
        serve = [sys.executable, *program, "serve", str(study), "--db", url, "--port", str(self.port)]
        self._command = [*serve, *options]
        self.log = folder / "server.log"
        self._process: subprocess.Popen[Any] | None = None

    def start(self) -> None:
        """Start the server; return once it has printed its links and listens."""
        with open(self.log, "a") as log:  # a pipe that nobody reads would fill up and block it
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
        """Return the PIDs of the worker processes; other children of the server compile code."""
        listed = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(pid) for pid in listed.split() if WORKER_CODE.encode() in _read_command(pid).split(b"\0")]

    def tracebacks(self) -> int:
        """Count the tracebacks in the log."""
        return self.count_in_log("Traceback (most recent call last)")

    def count_in_log(self, text: str) -> int:
        return self.log.read_text().count(text) if self.log.exists() else 0

    def wait_for_log(self, text: str, count: int) -> None:
        """Wait until the log has this text so many times, or until the server has ended."""
        process = self._process
        while self.count_in_log(text) < count and process is not None and process.poll() is None:
            _wait(process, 0.02)


def _read_command(pid: str) -> bytes:
    """Return the command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _find_port() -> int:
    """Return a free port below the range of ephemeral ports.

    A client that connects to a dead server on an ephemeral port could be given that very port, and so connect to
    itself and block the port.
    """
    start = 20_000 + os.getpid() % 10_000
    for port in range(start, start + 2000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError(f"No port from {start} to {start + 1999} is free.")


class RestartablePostgres:
    """A PostgreSQL server that can be ended and started again, with the command in data/postmaster.opts."""

    def __init__(self, postgres: Postgres):
        self.server = postgres
        self._data = postgres.folder / "data"

    def end(self, number: int) -> None:
        """Send a signal and wait for the end: SIGINT is a fast, SIGQUIT an immediate shutdown."""
        self.server.process.send_signal(number)
        self.server.process.wait()

    def start(self) -> None:
        command = shlex.split((self._data / "postmaster.opts").read_text())
        owner = self._data.stat()
        identity: dict[str, Any] = {}
        if os.geteuid() == 0:
            identity = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
        # Children of a killed server may hold its shared memory for a moment.
        for _ in range(READY_WITHIN_S * 4):
            self.server.process = started = self._start_process(command, identity)
            while started.poll() is None:
                try:
                    self.server.execute("SELECT 1")
                    return
                except psycopg.OperationalError:
                    _wait(started, 0.02)
            time.sleep(0.1)
        raise AssertionError((self.server.folder / "log").read_text()[-2000:])

    def _start_process(self, command: list[str], identity: dict[str, Any]) -> "subprocess.Popen[bytes]":
        with open(self.server.folder / "log", "ab") as log:
            return subprocess.Popen(
                command, cwd=self.server.folder, stdout=log, stderr=subprocess.STDOUT, **identity
            )


def _wait(process: "subprocess.Popen[Any]", seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


async def in_thread(function: Any, *arguments: Any) -> Any:
    """Call a function in a thread, so that the event loop continues."""
    return await asyncio.to_thread(function, *arguments)
