"""Simulated participants that a researcher sends through this very server, over HTTP like anyone else.

They run in a process of their own (`python -m vseg.bots`), one group a study at a time, and end with the server. How
far they are is in the database, too, so that all workers of a server say the same.
"""

import hashlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Literal, get_args

from starlette.requests import Request

from vseg import store
from vseg.errors import Conflict, InvalidInput
from vseg.store.studies import StudyRow

Source = Literal["truth", "picture", "model"]
MOST = 500
AT_ONCE = 8
STOPPED = "They stopped before the end."
WORKER = "VSEG_SERVE_DB"  # in the environment of a worker: its parent is the server


@dataclass
class Job:
    """One group of simulated participants: how many were wanted, how many are done, and what came of it."""

    wanted: int
    done: int = 0
    running: bool = True
    failed: bool = False
    said: str = ""
    finished: Event = field(default_factory=Event, repr=False)

    def shown(self) -> dict[str, Any]:
        """What a page or a script may know."""
        return {
            "wanted": self.wanted,
            "done": self.done,
            "running": self.running,
            "failed": self.failed,
            "said": self.said,
        }


class Simulations:
    """The groups under way in this server; `model` is a user's FILE.py[:NAME], if the server was given one."""

    def __init__(self, model: str | None = None):
        self.model = model
        self._db: store.Database | None = None
        self._jobs: dict[str, Job] = {}
        self._processes: set[subprocess.Popen[str]] = set()
        self._lock, self._stopped = Lock(), False

    def share_through(self, db: store.Database) -> None:
        """Let other workers of this server know through its database."""
        self._db = db

    def of(self, study: str) -> Job | None:
        """The group of a study that runs now, or ran last, whichever worker was asked to send it."""
        mine = self._jobs.get(study)
        if self._db is None or (mine is not None and mine.running):
            return mine
        told = json.loads(store.researchers.get_setting(self._db, _place(study)) or "{}")
        if told.pop("server", None) != _server():
            return mine
        worker, job = told.pop("worker"), Job(**told)
        if job.running and not _lives(worker):
            job.running, job.failed, job.said = False, True, STOPPED
        return job

    def start(
        self,
        address: str,
        study: StudyRow,
        *,
        count: int,
        source: Source = "picture",
        observer: str = "lapsing:0.05",
        pace: float = 0.0,
        seed: int | None = None,
    ) -> Job:
        """Send `count` participants to the study at `address`; `Conflict` while others of its own are there."""
        from vseg import bots

        bots.observer_named(observer)  # a wrong name is said now, not by the process
        if not 1 <= count <= MOST:
            raise InvalidInput(f"Expected 1 to {MOST} simulated participants at once, got {count}.")
        if source not in get_args(Source) or (source == "model" and not self.model):
            raise InvalidInput(
                f"They see by {' or '.join(self.sources)}, got {source!r}; start the server with --model to add yours."
            )
        settings: dict[str, Any] = {
            "url": f"{address}s/{study.name}/", "count": count, "observer": observer, "pace": pace, "flagged": 0.02,
            "at_once": AT_ONCE if not pace else count, "seed": secrets.randbits(32) if seed is None else seed,
        }  # fmt: skip
        with self._lock:
            if (before := self.of(study.name)) is not None and before.running:
                raise Conflict(
                    f"{before.wanted - before.done} simulated participants are still taking part; wait for them."
                )
            job = self._jobs[study.name] = Job(count)
            self._share(study.name, job)
        Thread(target=self._run, args=(job, settings, source, study), daemon=True).start()
        return job

    @property
    def sources(self) -> tuple[Source, ...]:
        """What simulated participants can be asked to see by."""
        return ("truth", "picture", "model") if self.model else ("truth", "picture")

    @asynccontextmanager
    async def lifespan(self, _: Any) -> AsyncIterator[None]:
        """What is under way ends with the server."""
        yield
        self.stop()

    def stop(self) -> None:
        """End what is under way, or about to be."""
        self._stopped = True
        for process in list(self._processes):
            process.kill()

    @contextmanager
    def alongside(self, command: list[str]) -> Iterator["subprocess.Popen[str]"]:
        """A process that ends with this server."""
        with subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            self._processes.add(process)
            if self._stopped:
                process.kill()
            try:
                yield process
            finally:
                self._processes.discard(process)

    def _share(self, study: str, job: Job) -> None:
        if self._db is None:
            return
        told = {**job.shown(), "server": _server(), "worker": os.getpid()}
        with suppress(Exception):  # those who look are told later; the group itself goes on
            store.researchers.set_setting(self._db, _place(study), json.dumps(told))

    def _run(self, job: Job, settings: dict[str, Any], source: Source, study: StudyRow) -> None:
        """Follow a group to its end; whatever goes wrong is said in the job."""
        try:
            with tempfile.TemporaryDirectory(prefix="vseg-truth-") as folder:
                if source == "truth" and _saved_truth(study, Path(folder)):
                    settings["truth"] = folder
                elif source == "model":
                    settings["model"] = self.model
                with self.alongside([sys.executable, "-m", "vseg.bots"]) as process:
                    _follow(job, process, settings, partial(self._share, study.name, job))
        except Exception as error:
            job.failed, job.said = True, f"They could not be started: {type(error).__name__}: {error}"
        finally:
            job.running = False
            self._share(study.name, job)
            job.finished.set()


def address_of(request: Request) -> str:
    """How this process reaches its own server: past any proxy, and so without the name that people use."""
    host, port = request.scope["server"]
    prefix = request.scope.get("app_root_path", request.scope.get("root_path", ""))
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{prefix}/"


def _follow(
    job: Job, process: "subprocess.Popen[str]", settings: dict[str, Any], share: Callable[[], None]
) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):  # it was stopped before it could listen
        process.stdin.write(json.dumps(settings) + "\n")
        process.stdin.close()
    for line in process.stdout:
        told = json.loads(line)
        job.done += told.get("done", 0)
        job.failed = "failed" in told
        job.said = told.get("said") or told.get("failed") or job.said
        share()
    if not job.said:
        job.failed, job.said = True, STOPPED


def _place(study: str) -> str:
    """Under which the database keeps it: short, however long the study's name."""
    return f"simulation {hashlib.blake2b(study.encode(), digest_size=12).hexdigest()}"


def _server() -> int:
    """The process that all workers of a server have in common."""
    return os.getppid() if WORKER in os.environ else os.getpid()


def _lives(worker: int) -> bool:
    """Whether a worker of this server is there; where there are no others, it is this one."""
    if worker == os.getpid() or WORKER not in os.environ:
        return worker == os.getpid()
    try:
        os.kill(worker, 0)
    except ProcessLookupError:
        return False
    return True


def _saved_truth(study: StudyRow, folder: Path) -> bool:
    """The maps of those images that vseg generated, as files; whether there were any."""
    known = {name: truth for name in study.images if (truth := study.truth(name)) is not None}
    for name, truth in known.items():
        truth.save(folder / f"{name}.npz")
    return bool(known)
