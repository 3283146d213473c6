"""Run a round: a group of participants takes part from beginning to end while one kind of fault happens repeatedly."""

import asyncio
import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chaos.checking import (
    Found,
    Verdict,
    compare_records,
    count_sessions,
    export_study,
    judge_export,
    read_database,
    read_export,
    reconstruct_map,
)
from chaos.disks import Disk, small_disk
from chaos.faults import PATIENCE_S, SQLITE, Fault, Scene
from chaos.participants import Ledger, Participant
from chaos.proxy import Proxy
from chaos.serving import RestartablePostgres, Server, in_thread
from databases import Postgres
from proxies import run_proxy
from vseg import store

STUDY = """
name = "crowd"
segments = 2
participants = {people}
layout = {{grid = 6}}
images = [{{name = "patches", colours = 2}}]
design = {design}
practice = {{trials = 0}}
catch = {{per_block = 0}}
"""

FIXED, ADAPTIVE = "{{blocks = 1, trials = {}}}", '{{name = "adaptive", trials = {}}}'

LAST_FAULT_BY = 0.6  # share of all answers; participants continue while a fault lasts
ONE_IN = 3  # one in three has a Prolific ID, and returns on another page
LONGEST_S = 600  # time limit of a round, many times what the longest takes


@dataclass(frozen=True)
class Crowd:
    """The number of participants, and of trials of each."""

    people: int
    trials: int

    @property
    def answers(self) -> int:
        return self.people * self.trials


@dataclass
class Outcome:
    """The result of a round."""

    fault: str
    database: str
    how: str = ""
    planned: int = 0
    injected: int = 0
    to_spoil: int = 0
    requests_spoilt: int = 0
    """How many of the requests in `to_spoil` the proxy damaged, or that reached the server if they were smuggled."""
    responses: int = 0
    """Acknowledged responses; a page that was closed may have missed the last acknowledgements."""
    stored: int = 0
    """Responses in the export."""
    chosen: int = 0
    """Responses to pairs that the server chose from earlier answers."""
    returned: int = 0
    """How often a participant returned on another page."""
    verdict: Verdict = field(default_factory=Verdict)
    people: int = 0
    completed: int = 0
    """Participants who finished, or who were shown the expected message."""
    turned_away: int = 0
    """How many participants should be shown a message instead, and leave no complete session."""
    sessions: int = 0
    """Complete sessions in the export."""
    kills_server: bool = False
    skipped: str = ""
    """Why this fault cannot be tried on this machine; empty if it was tried."""
    wrong: list[str] = field(default_factory=list)
    tracebacks: int = 0
    map_equal: bool | None = False
    """None if pairs were chosen from the answers, because the maps then need not be equal."""
    recoveries_s: list[float] = field(default_factory=list)
    """Times from the end of each fault until a request with records was accepted."""
    longest_gap_s: float = 0.0
    """The longest time of one participant between two such requests."""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Return whether nothing was lost, everybody finished and every fault had an effect."""
        everyone = self.people == self.completed == self.sessions + self.turned_away
        everything = self.injected == self.planned and self.requests_spoilt == self.to_spoil
        same = self.map_equal or (self.map_equal is None and self.chosen > 0)
        return bool(self.verdict) and everyone and everything and same and not (self.wrong or self.tracebacks)


class Rounds:
    """Rounds with the same participants; the first, without faults, gives the map that all others must give."""

    def __init__(self, crowd: Crowd, folder: Path, postgres: Postgres, seed: int):
        self.crowd, self.folder, self.postgres, self.seed = crowd, folder, postgres, seed
        self._restarted = RestartablePostgres(postgres)
        self._number = 0
        self._map: NDArray[np.float64] | None = None

    def undisturbed(self) -> Outcome:
        """Run a round without faults; its map is the one that all others must give."""
        self._map = None
        return self.run("none", SQLITE, [])

    def run(self, name: str, database: str, faults: Sequence[Fault]) -> Outcome:
        """Run a round with these faults, one after the other, at random times."""
        self._number += 1
        folder = self.folder / f"round-{self._number}"
        folder.mkdir()
        rng = random.Random(f"{self.seed} {name} {database}")
        began = time.perf_counter()
        with ExitStack() as stack:
            small = any(fault.small_disk for fault in faults)
            disk = stack.enter_context(small_disk()) if small else None
            url = stack.enter_context(self._database(database, folder, disk))
            study = folder / "study.toml"
            adaptive = any(fault.adaptive for fault in faults)
            design = (ADAPTIVE if adaptive else FIXED).format(self.crowd.trials)
            study.write_text(STUDY.format(people=self.crowd.people, design=design))
            server = Server(
                study, url, folder, *(faults[0].options if faults else ()),
                ends_writer=any(fault.ends_writer for fault in faults),
            )  # fmt: skip
            stack.callback(server.kill)
            server.start()
            postgres = None if database == SQLITE else self._restarted
            scene = Scene(database, url, server, None, postgres, disk, Ledger(), rng, self.crowd.people)
            outcome = Outcome(name, database, disk.how if disk else "", len(faults), people=self.crowd.people)
            for behind in {fault.behind for fault in faults if fault.behind}:
                scene.address = stack.enter_context(run_proxy(behind, folder, server.port))
            outcome.kills_server = any(fault.kills_server for fault in faults)
            asyncio.run(self._run_participants(faults, scene, outcome))
            outcome.map_equal = None if adaptive else False
            self._judge_export(scene, folder / "export", outcome)
        outcome.seconds = time.perf_counter() - began
        return outcome

    @contextmanager
    def _database(self, database: str, folder: Path, disk: Disk | None) -> Iterator[str]:
        if database == SQLITE:
            yield f"sqlite:///{(disk.folder if disk else folder) / 'crowd.db'}"
            return
        url = self.postgres.fresh()
        name = url.removeprefix("postgresql://postgres@/").partition("?")[0]
        if disk is not None:
            owner = self.postgres.folder.stat()
            os.chown(disk.folder, owner.st_uid, owner.st_gid)
            self.postgres.execute(f"CREATE TABLESPACE {name} LOCATION '{disk.folder}'")
            self.postgres.execute(f"ALTER DATABASE {name} SET TABLESPACE {name}")
        yield url
        self.postgres.drop(url)
        if disk is not None:
            self.postgres.execute(f"DROP TABLESPACE {name}")

    async def _run_participants(self, faults: Sequence[Fault], scene: Scene, outcome: Outcome) -> None:
        """Let all participants take part while the faults happen."""
        patience_s = min((fault.patience_s for fault in faults), default=PATIENCE_S)
        async with AsyncExitStack() as stack:
            if any(fault.proxied for fault in faults):
                scene.proxy = await stack.enter_async_context(Proxy.to(scene.server.port))
            port = scene.proxy.port if scene.proxy else (scene.address or ("", scene.server.port))[1]
            crowd = [
                Participant("crowd", port, scene.ledger, random.Random(scene.rng.random()), patience_s, pid)
                for pid in _prolific_ids(self.crowd.people)
            ]
            everything = asyncio.gather(
                self._inject_faults(faults, scene, outcome), *(person.take_part() for person in crowd)
            )
            try:
                async with asyncio.timeout(LONGEST_S):
                    await everything
            except TimeoutError:
                scene.ledger.wrong.append(f"The round was not over after {LONGEST_S} s.")
                scene.server.kill()  # a thread may be waiting for it
            if scene.proxy:
                await scene.proxy.settled()
            outcome.requests_spoilt = scene.smuggled + (scene.proxy.spoilt if scene.proxy else 0)
            outcome.to_spoil = scene.to_spoil

    async def _inject_faults(self, faults: Sequence[Fault], scene: Scene, outcome: Outcome) -> None:
        """Inject each fault at its time, and compare the database with the acknowledged answers after it."""
        ledger = scene.ledger
        ledger.going.set()
        shares = moments(len(faults), scene.rng)
        for number, (fault, share) in enumerate(zip(faults, shares, strict=True)):
            await scene.until(partial(_reached, ledger, share * self.crowd.answers))
            if ledger.gone == scene.everyone:
                break
            felt = await fault.inject(scene)
            await scene.until(lambda: ledger.recovered_at is not None)
            if not felt or ledger.recovered_at is None:
                ledger.wrong.append(
                    f"{fault.name} ({number + 1}) had no effect, or nobody continued after it."
                )
                continue
            outcome.injected += 1
            outcome.recoveries_s.append(ledger.recovered_at - scene.lifted_at)
            ledger.going.clear()
            acknowledged = dict(ledger.acknowledged)
            found = await in_thread(_read_stored, scene.url)
            verdict = compare_records(acknowledged, ledger.given, found)
            ledger.going.set()
            if not verdict:
                ledger.wrong.append(f"after {fault.name} ({number + 1}): {verdict}")
        ledger.over.set()

    def _judge_export(self, scene: Scene, folder: Path, outcome: Outcome) -> None:
        with store.open(scene.url) as db:
            export_study(db, "crowd", folder)
        outcome.responses = len(scene.ledger.acknowledged)
        outcome.stored = len(read_export(folder))
        outcome.verdict = judge_export(scene.ledger, folder)
        outcome.completed, outcome.wrong = scene.ledger.completed, scene.ledger.wrong
        if outcome.stored != self.crowd.answers:  # including answers whose acknowledgement was lost
            outcome.wrong.append(f"The export has {outcome.stored} of {self.crowd.answers} answers.")
        outcome.sessions = count_sessions(folder)["completed"]
        outcome.tracebacks = scene.server.tracebacks()
        outcome.chosen, outcome.returned = scene.ledger.chosen, scene.ledger.returned
        outcome.longest_gap_s = scene.ledger.longest_gap_s
        if outcome.map_equal is not None:
            found = reconstruct_map(folder)
            self._map = found if self._map is None else self._map
            outcome.map_equal = bool(np.array_equal(found, self._map))


def moments(faults: int, rng: random.Random) -> list[float]:
    """Draw random times of faults, as shares of all answers.

    The first of several faults happens while participants are still arriving. A single fault happens after the first
    answers: gaps are measured only within sessions, so otherwise the longest gap would not include the fault.
    """
    spread = [LAST_FAULT_BY * (number + 1 - rng.random()) / faults for number in range(faults)]
    return spread if faults < 2 else [0.0, *spread[1:]]


def _read_stored(url: str) -> Found:
    """Read the database with a connection of its own: faults delete and replace its files between two reads."""
    with store.open(url, update_schema=False) as db:
        return read_database(db, "crowd")


def _reached(ledger: Ledger, answers: float) -> bool:
    return len(ledger.acknowledged) >= answers


def _prolific_ids(people: int) -> list[str | None]:
    return [f"person-{number}" if number % ONE_IN == 0 else None for number in range(people)]
