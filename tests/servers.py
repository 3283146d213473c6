"""A real server on a free port, spoken to over HTTP: `with served(url) as server: server.client.get(...)`."""

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

from vseg import store
from vseg.server.app import create_app
from vseg.server.runner import create_uvicorn_server
from vseg.study import pictures
from vseg.study.schema import parsed

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
class Served:
    """A running server, its database, and a client of its pages."""

    db: store.Database
    base: str
    client: httpx.Client

    def begin(self, study: str = "tiny", **entry: Any) -> "Person":
        """Someone new, who has agreed."""
        answer = self.client.post(f"s/{study}/sessions", json={"consented": True, **entry})
        assert answer.status_code == 201, answer.text
        return Person(self.client, study, answer.json())

    def answered(self) -> str:
        """Someone new who answers everything; their name."""
        person = self.begin()
        person.post("complete", {"count": person.answer_all()})
        return str(person.state["participant"])

    def responses(self, study: str = "tiny") -> list[dict[str, Any]]:
        """Everything that is stored, a dict a row."""
        number = store.studies.get_study(self.db, study).id
        return [dict(row) for rows in store.responses.stream_responses(self.db, number) for row in rows]


@dataclass
class Person:
    """A participant's page, as far as the server sees it."""

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

    def now(self) -> httpx.Response:
        return self.client.get(f"s/{self.study}/session", headers=self.headers)

    def answer_all(self) -> int:
        """Answer every item once; the number of records."""
        for start in range(0, self.items, 100):
            items = range(start, min(start + 100, self.items))
            assert self.send(*(response(item, item) for item in items)).status_code == 200
        return self.items


def response(seq: int, item: int, **changes: Any) -> dict[str, Any]:
    """An answer to a trial that was shown as asked."""
    return {
        "seq": seq, "kind": "response", "item": item, "same": item % 2 == 0, "rt_ms": 412.5, "key": "f",
        "shown_at_ms": 1_760_000_000_000, "cue_onset_ms": 1000.0, "cue_asked_ms": 300, "cue_ms": 300.1,
        "cue_frames": 18, "image_onset_ms": 1300.1, "image_asked_ms": 300, "image_ms": 299.9, "image_frames": 18,
        "response_onset_ms": 1600.0, "frames_dropped": 0, "longest_gap_ms": 16.9, "refresh_hz": 60.0,
        "visible": True, "focused": True, "full_screen": True, "flags": "",
    } | changes  # fmt: skip


def event(seq: int, kind: str = "device", **data: Any) -> dict[str, Any]:
    """Something else that happened."""
    return {"seq": seq, "kind": kind, "at_ms": 1_760_000_000_000, "data": data}


def register(db: store.Database, *texts: str) -> None:
    """Put studies into a database."""
    for text in texts:
        study = parsed(text)
        store.studies.register(db, text, study, pictures.shown(study, Path()))


@contextmanager
def served(
    url: str, *texts: str, prefix: str = "", headers: dict[str, str] | None = None
) -> Iterator[Served]:
    """As `vseg serve` runs it, over a new database with these studies, for the time of this block."""
    with store.open(url) as db, socket.create_server(("127.0.0.1", 0), backlog=512) as listening:
        register(db, *(texts or (STUDY,)))
        server = create_uvicorn_server(create_app(db, prefix=prefix))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        base = f"http://127.0.0.1:{listening.getsockname()[1]}{prefix}/"
        try:
            with httpx.Client(base_url=base, headers=headers, timeout=30, trust_env=False) as client:
                yield Served(db, base, client)
        finally:
            server.should_exit = True
            thread.join()


@dataclass
class Process:
    """A running `vseg serve`, and what it has printed."""

    process: subprocess.Popen[str]
    printed: str

    def link(self, label: str) -> str:
        found = re.search(rf"^ *{label} +(\S+)", self.printed, re.MULTILINE)
        assert found, self.printed
        return found[1]

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def started(*arguments: object, port: int | str = 0) -> Process:
    """The command in a process of its own; it has printed its links, so it listens."""
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
    return Process(process, printed)


@contextmanager
def serving(*arguments: object) -> Iterator[Process]:
    """`vseg serve` on a free port for the time of this block."""
    running = started(*arguments)
    try:
        yield running
    finally:
        running.kill()
