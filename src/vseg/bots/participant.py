"""One simulated participant: what a browser would send, trial by trial, and what it would repeat."""

import asyncio
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vseg.bots.client import Refusal, Wire
from vseg.bots.pair_source import Asked, blocks
from vseg.bots.perception import Sight
from vseg.observers import ReactionTimes

BATCH = 100
LISTEN_S = 0.02
MOST_TRIES = 3  # of one item; then its flagged answer stands


@dataclass(frozen=True)
class Taken:
    """What one participant gave."""

    answers: int
    flagged: int
    chosen: int
    completion_code: str | None


@dataclass
class _Outbox:
    """Records in the order of their numbers: kept until the server has said that all are there."""

    wire: Wire
    token: str
    sent: int
    heard: Callable[[Mapping[str, Any]], None]
    stored: Callable[[int], None] = lambda answers: None
    records: list[dict[str, Any]] = field(default_factory=list)
    first: int = 0

    def add(self, record: dict[str, Any]) -> None:
        self.records.append({"seq": self.first + len(self.records), **record})

    async def send(self, *, at_least: int = 1) -> None:
        while len(self.records) - self.sent >= at_least:
            chunk = self.records[self.sent : self.sent + BATCH]
            await self._post(chunk)
            self.sent += len(chunk)
            self.stored(sum(record["kind"] == "response" for record in chunk))

    async def listen(self) -> None:
        """Hear what is new: a record that is sent once more changes nothing, and is answered."""
        await self._post(self.records[self.sent - 1 : self.sent])

    async def _post(self, chunk: list[dict[str, Any]]) -> None:
        answer = await self.wire.ask("POST", "records", {"records": chunk}, token=self.token)
        self.heard(answer.json())

    async def complete(self) -> dict[str, Any]:
        """The completion; what the server misses is sent once more."""
        for _ in range(MOST_TRIES):
            try:
                count = self.first + len(self.records)
                return dict(
                    (await self.wire.ask("POST", "complete", {"count": count}, token=self.token)).json()
                )
            except Refusal as refusal:
                missing = {seq for seq in refusal.content.get("missing", []) if seq >= self.first}
                if not missing:
                    raise
                again = [record for record in self.records if record["seq"] in missing][:BATCH]
                await self.wire.ask("POST", "records", {"records": again}, token=self.token)
        return dict((await self.wire.ask("POST", "complete", {"count": count}, token=self.token)).json())


async def begin(wire: Wire, study: dict[str, Any], who: Mapping[str, str]) -> dict[str, Any]:
    """A session: its state and its token; `who` is what the address says of whoever comes."""
    # The same in every try, so that one whose answer is lost is no second person.
    entry = secrets.token_urlsafe(24)
    body: dict[str, Any] = {"consented": True, "entry": entry}
    if study.get("prolific") and "link" not in who:
        pid = f"simulated-{secrets.token_hex(7)}"
        body |= {"prolific_pid": pid, "prolific_study": "simulated", "prolific_session": pid}
    return dict((await wire.ask("POST", "sessions", {**body, **who})).json())


async def take_part(
    wire: Wire,
    study: dict[str, Any],
    session: dict[str, Any],
    sight: Sight,
    *,
    flagged: float,
    pace: float,
    seed: np.random.SeedSequence,
    stored: Callable[[int], None] = lambda answers: None,
) -> Taken:
    """Go through a session from its first trial, or where it was left, to its completion."""
    rng, timing = np.random.default_rng(seed).spawn(2)
    asked = await Asked.of(wire, study, session, sight)
    screen = _Screen(study, timing, time.time() * 1000)
    outbox = _Outbox(wire, session["token"], 0, asked.hear, stored, first=session["next_seq"])
    for kind, data in _preparations(study, screen.refresh_hz):
        outbox.add({"kind": kind, "at_ms": screen.now(), "data": data})
    answers = bad = chosen = 0
    before = set(session["answered"])
    for block in blocks(session["trials"]):
        queue, tries = deque(item for item in block if item not in before), Counter[int]()
        screen.wait(study["timing"]["preview_ms"])
        while queue:
            item = queue.popleft()
            if not pace:
                await _choice(item, asked, outbox)
            if item >= asked.end(block):
                continue
            tries[item] += 1
            flag = flagged > 0 and rng.random() < flagged
            q, was_chosen = asked.show(item)
            record = screen.trial(item, bool(rng.random() < q), q, flag)
            outbox.add({**record, "chosen": was_chosen})
            answers, bad, chosen = answers + 1, bad + flag, chosen + was_chosen
            if flag and tries[item] < MOST_TRIES:
                queue.append(item)
            if pace:
                await asyncio.sleep(pace * screen.last_ms / 1000)
            await outbox.send(at_least=1 if pace or asked.adaptive else BATCH)
    await outbox.send()
    done = await outbox.complete()
    return Taken(answers, bad, chosen, done.get("completion_code"))


async def _choice(item: int, asked: Asked, outbox: _Outbox) -> None:
    """Who answers without any waiting is faster than the choosing: wait for what the server is about to choose."""
    while asked.choosing and not asked.has_choice(item):
        await asyncio.sleep(LISTEN_S)
        await outbox.listen()


class _Screen:
    """A display of about 60 Hz and its clock, which runs by itself: nothing waits for it."""

    def __init__(self, study: dict[str, Any], rng: np.random.Generator, start_ms: float):
        self.study, self.rng = study, rng
        self.refresh_hz = float(rng.normal(60, 0.02))
        self.start_ms, self.clock_ms, self.last_ms = start_ms, 2000.0, 0.0
        self.reaction_times = ReactionTimes(mean_ms=max(float(rng.normal(500, 60)), 300.0))

    def now(self) -> int:
        """Epoch time by this clock."""
        return int(self.start_ms + self.clock_ms)

    def wait(self, duration_ms: float) -> None:
        self.clock_ms += duration_ms

    def trial(self, item: int, same: bool, q: float, flag: bool) -> dict[str, Any]:
        """The record of one trial; a flagged one lost a frame in the middle of the image."""
        timing, frame = self.study["timing"], 1000 / self.refresh_hz
        shown_at, cue_onset = self.now(), self.clock_ms
        cue_frames, image_frames = (round(timing[name] / frame) for name in ("cue_ms", "image_ms"))
        cue_ms = cue_frames * frame + float(self.rng.normal(0, 0.05)) * (cue_frames > 0)
        image_ms = (image_frames + flag) * frame + float(self.rng.normal(0, 0.05))
        rt_ms = float(self.reaction_times.draw(np.array([q]), self.rng)[0])
        self.last_ms = cue_ms + image_ms + rt_ms + timing["pause_ms"]
        self.clock_ms += self.last_ms
        return {
            "kind": "response", "item": int(item), "same": same, "rt_ms": round(rt_ms, 3),
            "key": self.study["keys"]["same" if same else "different"],
            "shown_at_ms": shown_at,
            "cue_onset_ms": round(cue_onset, 3), "cue_asked_ms": float(timing["cue_ms"]),
            "cue_ms": round(max(cue_ms, 0.0), 3), "cue_frames": cue_frames,
            "image_onset_ms": round(cue_onset + cue_ms, 3), "image_asked_ms": float(timing["image_ms"]),
            "image_ms": round(max(image_ms, 0.0), 3), "image_frames": image_frames,
            "response_onset_ms": round(cue_onset + cue_ms + image_ms, 3),
            "frames_dropped": int(flag), "longest_gap_ms": round((1 + flag) * frame, 3),
            "refresh_hz": round(self.refresh_hz, 3),
            "visible": True, "focused": True, "full_screen": True, "flags": "late" if flag else "",
        }  # fmt: skip


def _preparations(study: dict[str, Any], refresh_hz: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a page reports before the first trial, under the page's own names."""
    simulated = {"simulated": True}
    size = {"width_px": 1920, "height_px": 1080}
    yield "consent", simulated | {"agreed": True}
    yield (
        "device",
        simulated
        | {f"{of}_{side}": value for of in ("window", "screen") for side, value in size.items()}
        | {"refresh_hz": round(refresh_hz, 3), "device_pixel_ratio": 1, "touch": False},
    )
    yield "keys", simulated | {"same": study["keys"]["same"], "different": study["keys"]["different"]}
    calibration = study.get("calibration", {})
    if calibration.get("distance"):
        measured = [560.0, 565.0, 570.0, 575.0, 580.0]
        yield "distance", simulated | {"px_per_mm": 3.8, "distance_mm": 570.0, "measured_mm": measured}
    if calibration.get("gamma"):
        seen = simulated | {"matches": [], "device_pixel_ratio": 1, "one_to_one": True}
        yield "gamma", seen | {"gamma": 2.2, "spread": 0.05}
