"""Simulated participants that a researcher sends to a study of this server, over HTTP like anyone else.

They run in a child process (`python -m vseg.bots`), one group per study at a time, and end with the server. Their
progress is also stored in the database, so that all workers of a server report the same.
"""

import hashlib
import json
import os
import secrets
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Literal, TypedDict, get_args

from starlette.requests import Request

from vseg import store
from vseg._support.subprocesses import kill_group, start_python
from vseg._support.temporary_folders import temporary_folder
from vseg.errors import Conflict, InvalidInput
from vseg.store.studies import StudyRow
from vseg.study.pictures import refine_truth

Source = Literal["truth", "picture", "model"]
"""What simulated participants see: an image's true maps, its colours, or the output of the user's model."""
MAX_PARTICIPANTS = 500
AT_ONCE = 8
STOPPED = "The simulated participants stopped before the end."
WORKER = "VSEG_SERVE_DB"  # set in the environment of a worker, whose parent is the server


class SimulationStatus(TypedDict):
    """A `SimulationJob` as pages, scripts and other workers see it."""

    wanted: int
    done: int
    running: bool
    failed: bool
    said: str


@dataclass
class SimulationJob:
    """One group of simulated participants: how many were requested and are done, and the final message."""

    wanted: int
    done: int = 0
    running: bool = True
    failed: bool = False
    said: str = ""
    finished: Event = field(default_factory=Event, repr=False)

    def to_json(self) -> SimulationStatus:
        """Return the job as JSON has it."""
        return {
            "wanted": self.wanted,
            "done": self.done,
            "running": self.running,
            "failed": self.failed,
            "said": self.said,
        }


class Simulations:
    """The groups of simulated participants of this server.

    Parameters
    ----------
    model : str, optional
        A user's FILE.py[:NAME] that participants may see by.
    """

    def __init__(self, model: str | None = None):
        self.model = model
        self._db: store.Database | None = None
        self._jobs: dict[str, SimulationJob] = {}
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._process_lock = Lock()  # so that each process is killed once
        self._lock, self._stopped = Lock(), False

    def share_through(self, db: store.Database) -> None:
        """Store progress in the database, where other workers of this server read it."""
        self._db = db

    def find_job(self, study: str) -> SimulationJob | None:
        """Return the group of a study that runs now, or ran last, in any worker; None if there was none."""
        own = self._jobs.get(study)
        if self._db is None or (own is not None and own.running):
            return own
        stored = json.loads(store.researchers.get_setting(self._db, _setting_key(study)) or "{}")
        if stored.pop("server", None) != _server_pid():
            return own
        worker, job = stored.pop("worker"), SimulationJob(**stored)
        if job.running and not _is_alive(worker):
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
    ) -> SimulationJob:
        """Send `count` participants to the study at `address`; raise `Conflict` while its last group is running."""
        from vseg import bots

        bots.parse_observer(observer)  # report a wrong name now, not from the child process
        if not 1 <= count <= MAX_PARTICIPANTS:
            raise InvalidInput(
                f"Expected 1 to {MAX_PARTICIPANTS} simulated participants at once, got {count}."
            )
        if source not in get_args(Source) or (source == "model" and not self.model):
            expected = " or ".join(repr(name) for name in self.sources)
            raise InvalidInput(
                f"Unknown source {source!r}; expected {expected}. A model is available if the server was started with "
                "one."
            )
        settings: dict[str, Any] = {
            "url": f"{address}s/{study.name}/", "count": count, "observer": observer, "pace": pace, "flagged": 0.02,
            "at_once": AT_ONCE if not pace else count, "seed": secrets.randbits(32) if seed is None else seed,
        }  # fmt: skip
        with self._lock:
            if (last := self.find_job(study.name)) is not None and last.running:
                raise Conflict(
                    f"{last.wanted - last.done} simulated participants are still taking part; wait for them."
                )
            job = self._jobs[study.name] = SimulationJob(count)
            self._share(study.name, job)
        Thread(target=self._run, args=(job, settings, source, study), daemon=True).start()
        return job

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources that are available on this server."""
        return ("truth", "picture", "model") if self.model else ("truth", "picture")

    @asynccontextmanager
    async def lifespan(self, _: object) -> AsyncIterator[None]:
        """Stop all groups when the server stops."""
        yield
        self.stop()

    def stop(self) -> None:
        """Kill the child processes of this server, also those that are about to start."""
        self._stopped = True
        for process in list(self._processes):
            self._kill(process)

    @contextmanager
    def child_process(
        self,
        arguments: Sequence[str],
        *,
        stdout: int | None = subprocess.PIPE,
        stderr: int | None = subprocess.DEVNULL,
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """Start Python with these arguments in a process that is killed when the server or the block ends."""
        process = start_python(arguments, stdout=stdout, stderr=stderr)
        self._processes.add(process)
        try:
            if self._stopped:
                self._kill(process)
            yield process
        finally:
            self._kill(process)
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # unsent data cannot be flushed
                    if pipe is not None:
                        pipe.close()

    def _kill(self, process: "subprocess.Popen[bytes]") -> None:
        with self._process_lock:
            if process in self._processes:
                self._processes.discard(process)
                kill_group(process)

    def _share(self, study: str, job: SimulationJob) -> None:
        if self._db is None:
            return
        value = {**job.to_json(), "server": _server_pid(), "worker": os.getpid()}
        with suppress(Exception):  # the group goes on; its next progress is stored again
            store.researchers.set_setting(self._db, _setting_key(study), json.dumps(value))

    def _run(self, job: SimulationJob, settings: dict[str, Any], source: Source, study: StudyRow) -> None:
        """Run a group to its end; any error becomes the job's message."""
        try:
            with temporary_folder("truth") as folder:
                if source == "truth" and _save_true_maps(study, folder):
                    settings["truth"] = str(folder)
                elif source == "model":
                    settings["model"] = self.model
                with self.child_process(["-m", "vseg.bots"]) as process:
                    _follow(job, process, settings, partial(self._share, study.name, job))
        except Exception as error:
            job.failed, job.said = (
                True,
                f"The simulated participants could not be started: {type(error).__name__}: {error}",
            )
        finally:
            job.running = False
            self._share(study.name, job)
            job.finished.set()


def own_address(request: Request) -> str:
    """Return the address at which this process reaches its own server, without any proxy in between."""
    host, port = request.scope["server"]
    prefix = request.scope.get("app_root_path", request.scope.get("root_path", ""))
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{prefix}/"


def _follow(
    job: SimulationJob,
    process: "subprocess.Popen[bytes]",
    settings: dict[str, Any],
    share: Callable[[], None],
) -> None:
    """Send the settings to the child, and update the job from its events until it ends."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):  # it was stopped before it could read
        process.stdin.write(json.dumps(settings).encode() + b"\n")
        process.stdin.flush()  # not closed: the child exits when its input ends
    for line in process.stdout:
        event = json.loads(line)
        job.done += event.get("done", 0)
        job.failed = "failed" in event
        job.said = event.get("summary") or event.get("failed") or job.said
        share()
    if not job.said:
        job.failed, job.said = True, STOPPED


def _setting_key(study: str) -> str:
    """Return the name of the stored setting; it is short, however long the study's name is."""
    return f"simulation {hashlib.blake2b(study.encode(), digest_size=12).hexdigest()}"


def _server_pid() -> int:
    """Return the PID of the server, which is the parent of its workers if there are several."""
    return os.getppid() if WORKER in os.environ else os.getpid()


def _is_alive(worker: int) -> bool:
    """Return whether a worker of this server is running; a server without workers has only this process."""
    if worker == os.getpid() or WORKER not in os.environ:
        return worker == os.getpid()
    try:
        os.kill(worker, 0)
    except ProcessLookupError:
        return False
    return True


def _save_true_maps(study: StudyRow, folder: Path) -> bool:
    """Save the maps of generated images, and finer ones if contours are drawn; return whether there were any."""
    truths = {name: truth for name in study.images if (truth := study.truth(name)) is not None}
    folder.joinpath("borders").mkdir()
    for name, truth in truths.items():
        truth.save(folder / f"{name}.npz")
        if study.study.contours.draw and (fine := refine_truth(study.study, name, truth)) is not None:
            fine.save(folder / "borders" / f"{name}.npz")
    return bool(truths)
