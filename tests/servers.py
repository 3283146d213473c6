"""Real servers on a free port, used over HTTP: `with run_server(url) as server: server.client.get(...)`."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import update

from vseg import store
from vseg.server.app import create_app
from vseg.server.runner import create_uvicorn_server
from vseg.store.schema import sessions
from vseg.study import pictures
from vseg.study.schema import parse_study

STUDY = """
name = "tiny"
title = "A tiny study"
segments = 2
participants = 3
layout = {grid = 4}
images = [{name = "patches", colours = 2}]
design = {trials = 12, blocks = 2}
practice = {trials = 2}
catch = {per_block = 1}
[prolific]
completion_code = "THANKS42"
"""
"""Two practice trials, then two blocks of twelve pairs and a catch trial: 28 items."""


@dataclass
class RunningServer:
    """A running server, its database, and an HTTP client."""

    db: store.Database
    base: str
    client: httpx.Client

    def begin(self, study: str = "tiny", **entry: Any) -> "ParticipantClient":
        """Begin a session of a new participant who has consented."""
        answer = self.client.post(f"s/{study}/sessions", json={"consented": True, **entry})
        assert answer.status_code == 201, answer.text
        return ParticipantClient(self.client, study, answer.json())

    def complete_session(self) -> str:
        """Begin a session, answer every item and complete it; return the participant's name."""
        person = self.begin()
        person.post("complete", {"count": person.answer_all()})
        return str(person.state["participant"])

    def let_time_pass(self, minutes: int = 60) -> None:
        """Move the beginning of all sessions back, as if participants had looked at the trials for this long."""
        with self.db.writing() as connection:
            connection.execute(
                update(sessions).values(started_at_ms=sessions.c.started_at_ms - minutes * 60_000)
            )

    def responses(self, study: str = "tiny") -> list[dict[str, Any]]:
        """Return all stored responses, one dict per row."""
        number = store.studies.get_study(self.db, study).id
        return [dict(row) for rows in store.responses.stream_responses(self.db, number) for row in rows]


@dataclass
class ParticipantClient:
    """The requests of a participant's page in one session."""

    client: httpx.Client
    study: str
    state: dict[str, Any]

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.state['token']}"}

    @property
    def items(self) -> int:
        return len(self.state["trials"]["image"])

    def post(self, what: str, body: Any) -> httpx.Response:
        return self.client.post(f"s/{self.study}/{what}", json=body, headers=self.headers)

    def send(self, *records: dict[str, Any]) -> httpx.Response:
        return self.post("records", {"records": list(records)})

    def get_state(self) -> httpx.Response:
        return self.client.get(f"s/{self.study}/session", headers=self.headers)

    def answer_all(self) -> int:
        """Answer every item once; return the number of records."""
        for start in range(0, self.items, 100):
            items = range(start, min(start + 100, self.items))
            assert self.send(*(response(item, item) for item in items)).status_code == 200
        return self.items


def response(seq: int, item: int, **changes: Any) -> dict[str, Any]:
    """Return a response record of a trial without flags."""
    return {
        "seq": seq, "kind": "response", "item": item, "same": item % 2 == 0, "rt_ms": 412.5, "key": "f",
        "shown_at_ms": 1_760_000_000_000, "cue_onset_ms": 1000.0, "cue_asked_ms": 300, "cue_ms": 300.1,
        "cue_frames": 18, "image_onset_ms": 1300.1, "image_asked_ms": 300, "image_ms": 299.9, "image_frames": 18,
        "response_onset_ms": 1600.0, "frames_dropped": 0, "longest_gap_ms": 16.9, "refresh_hz": 60.0,
        "visible": True, "focused": True, "full_screen": True, "flags": "",
    } | changes  # fmt: skip


def event(seq: int, kind: str = "device", **data: Any) -> dict[str, Any]:
    """Return an event record."""
    return {"seq": seq, "kind": kind, "at_ms": 1_760_000_000_000, "data": data}


def pause(seconds: float = 0.05) -> None:
    """Wait a moment before asking a server again: asking all the time would take the processor that it needs."""
    threading.Event().wait(seconds)


def register_studies(db: store.Database, *texts: str) -> None:
    """Register studies in a database."""
    for text in texts:
        study = parse_study(text)
        store.studies.register(db, text, study, pictures.render_pictures(study, Path()))


@contextmanager
def run_server(
    url: str, *texts: str, prefix: str = "", headers: dict[str, str] | None = None
) -> Iterator[RunningServer]:
    """Run a server in a thread, as `vseg serve` does, with these studies in a new database."""
    with store.open(url) as db, socket.create_server(("127.0.0.1", 0), backlog=512) as listening:
        register_studies(db, *(texts or (STUDY,)))
        server = create_uvicorn_server(create_app(db, prefix=prefix))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        base = f"http://127.0.0.1:{listening.getsockname()[1]}{prefix}/"
        try:
            with httpx.Client(base_url=base, headers=headers, timeout=30, trust_env=False) as client:
                yield RunningServer(db, base, client)
        finally:
            server.should_exit = True
            thread.join()


@dataclass
class ServerProcess:
    """A running `vseg serve`, and what it has printed so far."""

    process: subprocess.Popen[str]
    printed: str

    def link(self, label: str) -> str:
        found = re.search(rf"^ *{label} +(\S+)", self.printed, re.MULTILINE)
        assert found, self.printed
        return found[1]

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate()  # the time limit of a test ends it if the server does not stop
        return self.process.returncode, out, err

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def start_server_process(*arguments: object, port: int | str = 0) -> ServerProcess:
    """Start `vseg serve` in a process of its own; return once it has printed its links and listens."""
    command = [sys.executable, "-m", "vseg", "serve", *map(str, arguments), "--port", str(port)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    printed = ""
    try:
        while "Stop with Ctrl+C" not in printed:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise AssertionError(process.communicate()[1])
            printed += line
    except BaseException:
        process.kill()
        raise
    return ServerProcess(process, printed)


@contextmanager
def run_server_process(*arguments: object) -> Iterator[ServerProcess]:
    """Run `vseg serve` in a process of its own, on a free port."""
    running = start_server_process(*arguments)
    try:
        yield running
    finally:
        running.kill()
