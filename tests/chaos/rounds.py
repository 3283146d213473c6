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

from chaos.checking import Verdict, compared, exported, in_database, map_of, sessions_in, verdict_of
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
design = {{blocks = 1, trials = {trials}}}
practice = {{trials = 0}}
catch = {{per_block = 0}}
"""

BY_THEN = 0.6  # of all answers, the last fault is due: while some last, people go on


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
    requests_spoilt: int = 0
    responses: int = 0
    verdict: Verdict = field(default_factory=Verdict)
    people: int = 0
    completed: int = 0
    sessions: int = 0
    wrong: list[str] = field(default_factory=list)
    tracebacks: int = 0
    map_equal: bool = False
    recoveries_s: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def well(self) -> bool:
        everyone = self.people == self.completed == self.sessions and self.injected == self.planned
        return bool(self.verdict) and everyone and self.map_equal and not self.wrong and not self.tracebacks


class Rounds:
    """Rounds of the same crowd, whose map without any fault is found first."""

    def __init__(self, crowd: Crowd, folder: Path, postgres: Postgres, seed: int):
        self.crowd, self.folder, self.postgres, self.seed = crowd, folder, postgres, seed
        self._restarted = RestartedPostgres(postgres)
        self._number = 0
        self._map: NDArray[np.float64] | None = None

    def close(self) -> None:
        """End the PostgreSQL that a fault has started anew, which nobody else knows of."""
        self._restarted.close()

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
            study.write_text(STUDY.format(people=self.crowd.people, trials=self.crowd.trials))
            server = Server(study, url, folder, *(faults[0].options if faults else ()))
            stack.callback(server.kill)
            server.start()
            postgres = None if database == SQLITE else self._restarted
            db = stack.enter_context(store.open(url))
            scene = Scene(database, url, server, None, postgres, disk, Ledger(), rng, self.crowd.people)
            outcome = Outcome(name, database, disk.how if disk else "", len(faults), people=self.crowd.people)
            asyncio.run(self._taken(faults, scene, db, outcome))
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
                Person("crowd", port, scene.ledger, random.Random(scene.rng.random()), patience_s)
                for _ in range(self.crowd.people)
            ]
            await asyncio.gather(
                self._injected(faults, scene, db, outcome), *(person.take_part() for person in crowd)
            )
            if scene.proxy:
                await scene.proxy.settled()
                outcome.requests_spoilt = scene.proxy.spoilt

    async def _injected(
        self, faults: Sequence[Fault], scene: Scene, db: store.Database, outcome: Outcome
    ) -> None:
        """Each at a moment of chance, spread over the answers; the first while people are still coming in."""
        ledger = scene.ledger
        ledger.going.set()
        for number, fault in enumerate(faults):
            share = (number + scene.rng.random()) / len(faults) if number else 0.0
            due = BY_THEN * share * self.crowd.answers
            await scene.until(partial(_reached, ledger, due))
            if ledger.gone == scene.everyone:
                break
            await fault.inject(scene)
            await scene.until(partial(_reached, ledger, len(ledger.acknowledged) + 1))
            outcome.injected += 1
            outcome.recoveries_s.append(time.perf_counter() - scene.lifted_at)
            ledger.going.clear()
            acknowledged = dict(ledger.acknowledged)
            verdict = compared(acknowledged, await in_thread(in_database, db, "crowd"))
            ledger.going.set()
            if not verdict:
                ledger.wrong.append(f"after {fault.name} ({number + 1}): {verdict}")

    def _judged(self, scene: Scene, db: store.Database, folder: Path, outcome: Outcome) -> None:
        exported(db, "crowd", folder)
        found = map_of(folder)
        if self._map is None:
            self._map = found
        outcome.responses = len(scene.ledger.acknowledged)
        outcome.verdict = verdict_of(scene.ledger, folder)
        outcome.completed, outcome.wrong = scene.ledger.completed, scene.ledger.wrong
        outcome.sessions = sessions_in(folder)["completed"]
        outcome.tracebacks = scene.server.tracebacks()
        outcome.map_equal = bool(np.array_equal(found, self._map))


def _reached(ledger: Ledger, answers: float) -> bool:
    return len(ledger.acknowledged) >= answers
