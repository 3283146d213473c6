"""A round: a crowd takes part from beginning to end while one kind of fault happens again and again."""

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
    Verdict,
    compared,
    exported,
    in_database,
    in_export,
    map_of,
    sessions_in,
    verdict_of,
)
from chaos.disks import Disk, small_disk
from chaos.faults import PATIENCE_S, SQLITE, Fault, Scene
from chaos.people import Ledger, Person
from chaos.proxy import Proxy
from chaos.serving import RestartedPostgres, Server, in_thread
from databases import Postgres
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

BY_THEN = 0.6  # of all answers, the last fault is due: while some last, people go on
ONE_IN = 3  # people has a Prolific ID, and comes back on another page
LONGEST_S = 600  # a round; many times of what the longest takes


@dataclass(frozen=True)
class Crowd:
    """How many people, and how many trials each."""

    people: int
    trials: int

    @property
    def answers(self) -> int:
        return self.people * self.trials


@dataclass
class Outcome:
    """What came of a round."""

    fault: str
    database: str
    how: str = ""
    planned: int = 0
    injected: int = 0
    to_spoil: int = 0
    requests_spoilt: int = 0
    """Of those that a fault has asked the proxy to spoil."""
    responses: int = 0
    """Acknowledged; a page that someone has left may not have heard of its last ones."""
    stored: int = 0
    """In the export."""
    chosen: int = 0
    """Responses to pairs that the server has chosen."""
    returned: int = 0
    """How often someone came back on another page."""
    verdict: Verdict = field(default_factory=Verdict)
    people: int = 0
    completed: int = 0
    """Or shown a clear screen, where that is what should come."""
    turned_away: int = 0
    """How many should be shown one, and leave no session that is complete."""
    sessions: int = 0
    """Complete in the export."""
    kills_server: bool = False
    left_out: str = ""
    """Why this fault cannot be tried here; nothing else is said of it then."""
    wrong: list[str] = field(default_factory=list)
    tracebacks: int = 0
    map_equal: bool | None = False
    """None where pairs were chosen from the answers, so that no two maps need be equal."""
    recoveries_s: list[float] = field(default_factory=list)
    """From the end of each fault to the first request with records that was accepted."""
    longest_gap_s: float = 0.0
    """Of one person, between two such requests."""
    seconds: float = 0.0

    @property
    def well(self) -> bool:
        everyone = self.people == self.completed == self.sessions + self.turned_away
        everything = self.injected == self.planned and self.requests_spoilt == self.to_spoil
        same = self.map_equal or (self.map_equal is None and self.chosen > 0)
        return bool(self.verdict) and everyone and everything and same and not (self.wrong or self.tracebacks)


class Rounds:
    """Rounds of the same crowd, whose map without any fault is found first."""

    def __init__(self, crowd: Crowd, folder: Path, postgres: Postgres, seed: int):
        self.crowd, self.folder, self.postgres, self.seed = crowd, folder, postgres, seed
        self._restarted = RestartedPostgres(postgres)
        self._number = 0
        self._map: NDArray[np.float64] | None = None

    def undisturbed(self) -> Outcome:
        """A round without any fault; its map is the one that all others must find."""
        self._map = None
        return self.run("none", SQLITE, [])

    def run(self, name: str, database: str, faults: Sequence[Fault]) -> Outcome:
        """A round with these faults, one after the other, each at its moment."""
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
            server = Server(study, url, folder, *(faults[0].options if faults else ()))
            stack.callback(server.kill)
            server.start()
            postgres = None if database == SQLITE else self._restarted
            db = stack.enter_context(store.open(url))
            scene = Scene(database, url, server, None, postgres, disk, Ledger(), rng, self.crowd.people)
            outcome = Outcome(name, database, disk.how if disk else "", len(faults), people=self.crowd.people)
            outcome.kills_server = any(fault.kills_server for fault in faults)
            asyncio.run(self._taken(faults, scene, db, outcome))
            outcome.map_equal = None if adaptive else False
            self._judged(scene, db, folder / "export", outcome)
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

    async def _taken(
        self, faults: Sequence[Fault], scene: Scene, db: store.Database, outcome: Outcome
    ) -> None:
        """Everybody takes part, whatever happens."""
        patience_s = min((fault.patience_s for fault in faults), default=PATIENCE_S)
        async with AsyncExitStack() as stack:
            if any(fault.proxied for fault in faults):
                scene.proxy = await stack.enter_async_context(Proxy.to(scene.server.port))
            port = scene.proxy.port if scene.proxy else scene.server.port
            crowd = [
                Person("crowd", port, scene.ledger, random.Random(scene.rng.random()), patience_s, pid)
                for pid in _prolific_ids(self.crowd.people)
            ]
            everything = asyncio.gather(
                self._injected(faults, scene, db, outcome), *(person.take_part() for person in crowd)
            )
            try:
                async with asyncio.timeout(LONGEST_S):
                    await everything
            except TimeoutError:
                scene.ledger.wrong.append(f"After {LONGEST_S} s the round was not over.")
                scene.server.kill()  # so that no thread waits for it
            if scene.proxy:
                await scene.proxy.settled()
                outcome.requests_spoilt, outcome.to_spoil = scene.proxy.spoilt, scene.to_spoil

    async def _injected(
        self, faults: Sequence[Fault], scene: Scene, db: store.Database, outcome: Outcome
    ) -> None:
        """Each at its moment."""
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
                ledger.wrong.append(f"Nobody felt {fault.name} ({number + 1}), or nobody went on after it.")
                continue
            outcome.injected += 1
            outcome.recoveries_s.append(ledger.recovered_at - scene.lifted_at)
            ledger.going.clear()
            acknowledged = dict(ledger.acknowledged)
            found = await in_thread(in_database, db, "crowd")
            verdict = compared(acknowledged, ledger.given, found)
            ledger.going.set()
            if not verdict:
                ledger.wrong.append(f"after {fault.name} ({number + 1}): {verdict}")
        ledger.over.set()

    def _judged(self, scene: Scene, db: store.Database, folder: Path, outcome: Outcome) -> None:
        exported(db, "crowd", folder)
        outcome.responses = len(scene.ledger.acknowledged)
        outcome.stored = len(in_export(folder))
        outcome.verdict = verdict_of(scene.ledger, folder)
        outcome.completed, outcome.wrong = scene.ledger.completed, scene.ledger.wrong
        if outcome.stored != self.crowd.answers:  # also what no page was told of
            outcome.wrong.append(f"The export has {outcome.stored} of {self.crowd.answers} answers.")
        outcome.sessions = sessions_in(folder)["completed"]
        outcome.tracebacks = scene.server.tracebacks()
        outcome.chosen, outcome.returned = scene.ledger.chosen, scene.ledger.returned
        outcome.longest_gap_s = scene.ledger.longest_gap_s
        if outcome.map_equal is not None:
            found = map_of(folder)
            self._map = found if self._map is None else self._map
            outcome.map_equal = bool(np.array_equal(found, self._map))


def moments(faults: int, rng: random.Random) -> list[float]:
    """Shares of all answers at which faults are due: by chance, spread over them.

    The first of several comes while people are still coming in. One that is alone comes after the first answers: who
    has no session yet waits unmeasured, and the longest gap would say nothing of the fault.
    """
    spread = [BY_THEN * (number + 1 - rng.random()) / faults for number in range(faults)]
    return spread if faults < 2 else [0.0, *spread[1:]]


def _reached(ledger: Ledger, answers: float) -> bool:
    return len(ledger.acknowledged) >= answers


def _prolific_ids(people: int) -> list[str | None]:
    return [f"person-{number}" if number % ONE_IN == 0 else None for number in range(people)]
