"""People as the server sees them, each of whom knows exactly what was acknowledged.

They do what the page does: an answer is kept until the server says that it has it, the next trial does not wait for
the network, a request without a reply is sent again. What they answer follows from the trial alone, so that the maps
of two crowds must be equal.
"""

import asyncio
import json
import random
import zlib
from dataclasses import dataclass, field
from typing import Any

from chaos.connection import Connection
from servers import event, response

AT_ONCE = 100
MOST_WAITING = 4  # a person takes time to answer; nobody is through before a fault is over
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.4
GONE = (OSError, asyncio.IncompleteReadError, TimeoutError)
Answer = tuple[int, int, int, bool]
"""Of one record: its item, the two locations, whether they were said to be the same."""


@dataclass
class Ledger:
    """What all people together were told, and what they should not have been told."""

    acknowledged: dict[tuple[str, int], Answer] = field(default_factory=dict)
    """By session and number of the record."""
    lost: set[tuple[str, int]] = field(default_factory=set)
    """What the server once had and then said that it lacks."""
    wrong: list[str] = field(default_factory=list)
    """Replies that nobody should get, such as a 500 or a refusal."""
    completed: int = 0
    gone: int = 0
    """How many have completed, or could not go on."""
    failures: int = 0
    """Requests without a reply, or with "try again"."""
    told: int = 0
    """Requests whose reply was "try again"."""
    going: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared, nobody begins another trial: what is stored is being compared."""
    _waiting: list[tuple[Any, asyncio.Future[None]]] = field(default_factory=list)

    async def until(self, condition: Any) -> None:
        """Return as soon as a condition holds; it is looked at whenever something happened."""
        if not condition():
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((condition, future))
            await future

    def changed(self) -> None:
        for each in [each for each in self._waiting if each[1].done() or each[0]()]:
            self._waiting.remove(each)
            if not each[1].done():  # who waited may have been cancelled
                each[1].set_result(None)


class StuckError(Exception):
    """Someone who can't go on; the ledger says why."""


class Person:
    """Takes part in a study from beginning to end, whatever happens to the network and the server."""

    def __init__(self, study: str, port: int, ledger: Ledger, rng: random.Random, patience_s: float):
        self.study, self.port, self.ledger, self.rng, self.patience_s = study, port, ledger, rng, patience_s
        self.session = self.token = ""
        self.waiting: dict[int, dict[str, Any]] = {}
        self.answers: dict[int, Answer] = {}
        self._connection: Connection | None = None
        self._failures = 0

    async def take_part(self) -> None:
        try:
            await self._take_part()
        except StuckError:
            pass
        finally:
            self._hang_up()
            self.ledger.gone += 1
            self.ledger.changed()

    async def _take_part(self) -> None:
        entry = f"{self.rng.getrandbits(120):030x}"
        state = await self._persistently("sessions", {"consented": True, "entry": entry}, 201)
        self.session, self.token = state["session"], state["token"]
        self._hang_up()
        trials = state["trials"]
        self.waiting[0] = event(0, "consent")
        for item in range(len(trials["image"])):
            await self.ledger.going.wait()
            i, j = trials["i"][item], trials["j"][item]
            same = answer(i, j, item)
            self.answers[item + 1] = item, i, j, same
            self.waiting[item + 1] = response(item + 1, item, same=same)
            await self._deliver()
            while len(self.waiting) >= MOST_WAITING:
                await self._deliver()
        while self.waiting:
            await self._deliver()
        await self._complete(len(trials["image"]) + 1)
        self.ledger.completed += 1

    async def _deliver(self) -> None:
        """One try; whether it succeeds or not, the next trial comes."""
        batch = list(self.waiting.values())[:AT_ONCE]
        said = await self._ask("records", {"records": batch}, 200)
        if said is None:
            return
        for seq in said["stored"]:
            self.waiting.pop(seq, None)
            if seq in self.answers:
                self.ledger.acknowledged[self.session, seq] = self.answers[seq]
        self.ledger.changed()

    async def _complete(self, count: int) -> None:
        said = await self._persistently("complete", {"count": count}, 200, 409)
        if "missing" in said:  # everything was acknowledged, so that nothing may be missing
            self.ledger.lost |= {(self.session, seq) for seq in said["missing"]}
            raise StuckError

    async def _persistently(self, what: str, body: Any, *expected: int) -> dict[str, Any]:
        while (said := await self._ask(what, body, *expected)) is None:
            pass
        return said

    async def _ask(self, what: str, body: Any, *expected: int) -> dict[str, Any] | None:
        """The server's reply; None, after a pause, where there was none or it said "try again"."""
        try:
            async with asyncio.timeout(self.patience_s):
                if self._connection is None:
                    self._connection = await Connection.open(self.port, self.token)
                status, content = await self._connection.post(f"/s/{self.study}/{what}", body)
        except GONE:
            self._hang_up()
            return await self._pause()
        try:
            said = json.loads(content)
        except ValueError:
            said = {}
        if status == 503 and said.get("message"):
            self.ledger.told += 1
            return await self._pause()
        if status not in expected:
            self.ledger.wrong.append(f"{what}: {status} {content[:200].decode(errors='replace')}")
            raise StuckError
        self._failures = 0
        return dict(said)

    async def _pause(self) -> None:
        self._failures += 1
        self.ledger.failures += 1
        self.ledger.changed()
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**self._failures)
        await asyncio.sleep(longest * self.rng.uniform(0.5, 1))

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def answer(i: int, j: int, item: int) -> bool:
    """Two halves of a grid of six by six, with one answer in eight turned round, always the same ones."""
    return (i % 6 < 3) == (j % 6 < 3) if zlib.crc32(f"{i} {j} {item}".encode()) % 8 else (i + j) % 2 == 0
