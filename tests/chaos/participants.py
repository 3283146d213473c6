"""Simulated participants that use the page's protocol and record exactly which answers were acknowledged.

They do what the page does: an answer is kept until the server acknowledges it, the next trial does not wait for the
network, and a request without a reply is repeated. Answers depend on the trial alone, so the maps of two rounds must be
equal.
"""

import asyncio
import itertools
import json
import random
import time
import zlib
from dataclasses import dataclass, field
from typing import Any

from chaos.connection import Connection
from servers import event, response

AT_ONCE = 100
MOST_WAITING = 4  # unsent answers; more make the participant wait, so that nobody finishes during a fault
# Events of participants who wait for the last fault after their last trial; a session may have about 200 events.
MOST_REMARKS, REMARKS_EVERY_S = 150, 0.2
MOST_QUESTIONS, LOOKS_EVERY_S = 40, 0.05
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.4
GONE = (OSError, asyncio.IncompleteReadError, TimeoutError)
Answer = tuple[int, int, int, bool]
"""The item, the two locations and the answer of one record."""


@dataclass
class Ledger:
    """What all participants sent, what the server acknowledged, and unexpected replies."""

    acknowledged: dict[tuple[str, int], Answer] = field(default_factory=dict)
    """Acknowledged answers by session and sequence number."""
    given: set[tuple[tuple[str, int], Answer]] = field(default_factory=set)
    """All answers that were ever sent, acknowledged or not; nothing else may be stored."""
    chosen: int = 0
    """Acknowledged answers to pairs that the server chose."""
    returned: int = 0
    """How often a participant returned on another page."""
    reloaded: int = 0
    """How often a participant was told that the session continues elsewhere, and reloaded the page."""
    lost: set[tuple[str, int]] = field(default_factory=set)
    """Answers that the server acknowledged and later reported as missing."""
    wrong: list[str] = field(default_factory=list)
    """Unexpected replies, such as a 500 or a refusal."""
    completed: int = 0
    gone: int = 0
    """How many participants finished or could not continue."""
    failures: int = 0
    """Requests without a reply, or with "try again"."""
    told: int = 0
    """Requests whose reply was "try again"."""
    accepted: int = 0
    """Requests with records that were accepted."""
    recovered_at: float | None = None
    """When a request was first accepted since this was set to None; before the first answer, when a session began."""
    longest_gap_s: float = 0.0
    """The longest time of any participant between two accepted requests."""
    going: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared while the database is compared: nobody begins another trial."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after the last fault; nobody completes before."""
    _waiting: list[tuple[Any, asyncio.Future[None]]] = field(default_factory=list)

    def accept(self, since: float) -> float:
        """Record an accepted request of a participant whose previous one was at `since`; return the current time."""
        now = time.perf_counter()
        self.accepted += 1
        self.longest_gap_s = max(self.longest_gap_s, now - since)
        self._recover(now)
        return now

    def begin(self) -> None:
        """Record that a participant began a session."""
        if not self.accepted:
            self._recover(time.perf_counter())

    def _recover(self, now: float) -> None:
        if self.recovered_at is None:
            self.recovered_at = now
        self.changed()

    async def until(self, condition: Any) -> None:
        """Wait until a condition holds; it is checked whenever something changes."""
        if not condition():
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((condition, future))
            await future

    def changed(self) -> None:
        for each in [each for each in self._waiting if each[1].done() or each[0]()]:
            self._waiting.remove(each)
            if not each[1].done():  # the waiting task may have been cancelled
                each[1].set_result(None)


class StuckError(Exception):
    """A participant cannot continue; the ledger says why."""


class Participant:
    """Take part in a study from beginning to end, whatever happens to the network and the server.

    A participant with a Prolific ID returns in the middle on another page, which has no data of the first.
    """

    def __init__(
        self,
        study: str,
        port: int,
        ledger: Ledger,
        rng: random.Random,
        patience_s: float,
        pid: str | None = None,
    ):
        self.study, self.port, self.ledger, self.rng, self.patience_s = study, port, ledger, rng, patience_s
        self.pid = pid
        self.session = self.token = ""
        self.waiting: dict[int, dict[str, Any]] = {}
        self.answers: dict[int, Answer] = {}
        self.choices: dict[int, tuple[int, int]] = {}
        self.next_seq = 0
        self._choosing = False
        self._last: dict[str, Any] = {}
        self._accepted_at = 0.0
        self._connection: Connection | None = None
        self._failures = 0
        self._entry: dict[str, Any] = {}
        self._given_up = 0  # requests to begin that may still be on their way

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
        state = await self._begin()
        self.ledger.begin()
        trials = state["trials"]
        self._queue(event(self.next_seq, "consent"))
        items = len(trials["image"])
        returns_at = self.rng.randrange(items // 4, items - items // 4) if self.pid else None
        item = 0
        while item < items:
            await self.ledger.going.wait()
            if item == returns_at:
                returns_at, state = None, await self._come_back()
                item = state["next_item"]
                continue
            await self._await_choice(item)
            self._answer(item, trials)
            item += 1
            await self._deliver_until(MOST_WAITING)
        await self._linger()
        await self._deliver_until(1)
        await self._complete()
        self.ledger.completed += 1

    async def _begin(self) -> dict[str, Any]:
        self._entry = {"consented": True, "entry": f"{self.rng.getrandbits(120):030x}"}
        if self.pid is not None:
            self._entry["prolific_pid"] = self.pid
        while (state := await self._ask("sessions", self._entry, 201)) is None:
            self._given_up += 1
        self.session, self.token, self.next_seq = state["session"], state["token"], state["next_seq"]
        self._hang_up()
        self._store_choices(state)
        self._accepted_at = time.perf_counter()
        return state

    async def _come_back(self) -> dict[str, Any]:
        """Return on another page: unsent answers of the first page are lost, acknowledged ones are not."""
        before = self.session
        self.waiting, self.choices, self._choosing = {}, {}, False
        state = await self._begin()
        self.ledger.returned += 1
        known = {seq for session, seq in self.ledger.acknowledged if session == before}
        here = set(state["answered"])
        if self.session != before:
            self.ledger.wrong.append(f"{self.pid} came back to another session.")
        self.ledger.lost |= {(before, seq) for seq in known if self.answers[seq][0] not in here}
        self.answers = {seq: given for seq, given in self.answers.items() if seq < self.next_seq}
        self._queue(event(self.next_seq, "resumed", away_ms=None, repeat=None))
        return state

    async def _reload(self) -> None:
        """Reload the page after a late request of the first page to begin took the session from it.

        The page asks for this; it still has its token and its unsent answers.
        """
        self._given_up -= 1
        self.ledger.reloaded += 1
        self._hang_up()
        state = await self._persistently("sessions", self._entry, 201)
        if (state["session"], state["token"]) != (self.session, self.token):
            self.ledger.wrong.append(f"{self.pid} has another session or token after a reload.")
        self._hang_up()

    def _answer(self, item: int, trials: dict[str, Any]) -> None:
        """Answer a trial, with the pair that the server chose if it arrived in time."""
        chosen = self.choices.get(item)
        i, j = chosen or (trials["i"][item], trials["j"][item])
        same = answer(i, j, item)
        self.answers[self.next_seq] = item, i, j, same
        self.ledger.given.add(((self.session, self.next_seq), self.answers[self.next_seq]))
        self._queue(response(self.next_seq, item, same=same, chosen=chosen is not None))

    def _queue(self, record: dict[str, Any]) -> None:
        self.waiting[self.next_seq] = self._last = record
        self.next_seq += 1

    async def _deliver_until(self, fewer_than: int) -> None:
        """Send once, then until few enough answers are unsent for the next trial."""
        await self._deliver()
        while len(self.waiting) >= fewer_than:
            await self._deliver()

    async def _deliver(self) -> None:
        """Try once to send the waiting records."""
        # With nothing to send, repeat the last record: it does no harm, and the reply brings new choices.
        batch = list(self.waiting.values())[:AT_ONCE] or [self._last]
        said = await self._ask("records", {"records": batch}, 200)
        if said is None:
            return
        for seq in said["stored"]:
            record = self.waiting.pop(seq, None)
            if record is not None and seq in self.answers:
                self.ledger.acknowledged[self.session, seq] = self.answers[seq]
                self.ledger.chosen += record["chosen"]
        self._store_choices(said)
        self._accepted_at = self.ledger.accept(self._accepted_at)

    def _store_choices(self, said: dict[str, Any]) -> None:
        """Store the pairs that an adaptive study chose, and whether it is choosing more."""
        if "choices" in said:
            columns = said["choices"]
            pairs = zip(columns["i"], columns["j"], strict=True)
            self.choices |= dict(zip(columns["item"], pairs, strict=True))
            self._choosing = said.get("choosing", False)

    async def _await_choice(self, item: int) -> None:
        """Wait for the choice of a pair for this item, for as long as a participant takes to answer."""
        for _ in range(MOST_QUESTIONS):
            if not self._choosing or item in self.choices:
                return
            await asyncio.sleep(LOOKS_EVERY_S)
            await self._deliver()

    async def _linger(self) -> None:
        """Send comments until the faults are over, so that every fault has somebody to affect."""
        for remark in itertools.count():
            if self.ledger.over.is_set():
                return
            await self.ledger.going.wait()
            if remark < MOST_REMARKS:
                self._queue(event(self.next_seq, "comment", text=str(remark)))
            await self._deliver_until(MOST_WAITING)
            await asyncio.sleep(REMARKS_EVERY_S * self.rng.uniform(0.5, 1))

    async def _complete(self) -> None:
        said = await self._persistently("complete", {"count": self.next_seq}, 200, 409)
        if "missing" in said:  # everything was acknowledged, so nothing may be missing
            self.ledger.lost |= {(self.session, seq) for seq in said["missing"]}
            raise StuckError

    async def _persistently(self, what: str, body: Any, *expected: int) -> dict[str, Any]:
        while (said := await self._ask(what, body, *expected)) is None:
            pass
        return said

    async def _ask(self, what: str, body: Any, *expected: int) -> dict[str, Any] | None:
        """Return the server's reply; None, after a pause, if there was none or it was "try again"."""
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
        except ValueError:  # such as the reply to somebody else's request
            said, expected = {}, ()
        if status == 503 and said.get("message"):
            self.ledger.told += 1
            return await self._pause()
        if status == 401 and self.pid and self._given_up:
            return await self._reload()
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
    """Answer as an observer who sees two halves of a 6x6 grid; one answer in eight, always the same, is changed."""
    return (i % 6 < 3) == (j % 6 < 3) if zlib.crc32(f"{i} {j} {item}".encode()) % 8 else (i + j) % 2 == 0
