"""One simulated participant: send what a browser would send, trial by trial, and repeat what it would repeat."""

import asyncio
import json
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vseg.bots.client import Refusal, StudyClient
from vseg.bots.pair_source import PairSource, split_blocks
from vseg.bots.perception import Perception
from vseg.data.contours import Contours
from vseg.observers import ReactionTimes
from vseg.study.cost import CONTOURS_S
from vseg.study.trials import MAX_ATTEMPTS

BATCH_SIZE = 100  # records in a request
POLL_S = 0.02
MAX_DRAWING_BYTES = 60_000  # as of a participant's page


@dataclass(frozen=True)
class ParticipantResult:
    """How many answers one participant gave: all, flagged ones, and those to pairs that the server chose."""

    answers: int
    flagged: int
    chosen: int
    completion_code: str | None


@dataclass
class _Outbox:
    """Numbered records of a session, kept until the server has confirmed that all have arrived."""

    client: StudyClient
    token: str
    on_reply: Callable[[Mapping[str, Any]], None]
    on_stored: Callable[[int], None] = lambda answers: None
    first: int = 0
    records: list[dict[str, Any]] = field(default_factory=list)
    sent: int = 0

    def add(self, record: dict[str, Any]) -> None:
        self.records.append({"seq": self.first + len(self.records), **record})

    async def send(self, *, at_least: int = 1) -> None:
        """Send the records that are waiting, as long as there are at least `at_least` of them."""
        while len(self.records) - self.sent >= at_least:
            batch = self.records[self.sent : self.sent + BATCH_SIZE]
            await self._post(batch)
            self.sent += len(batch)
            self.on_stored(sum(record["kind"] == "response" for record in batch))

    async def poll(self) -> None:
        """Get a new reply by sending the last record again, which changes nothing on the server."""
        await self._post(self.records[self.sent - 1 : self.sent])

    async def _post(self, batch: list[dict[str, Any]]) -> None:
        response = await self.client.request("POST", "records", {"records": batch}, token=self.token)
        self.on_reply(response.json())

    async def complete(self) -> dict[str, Any]:
        """Complete the session and return the server's reply; records that the server misses are sent again."""
        for _ in range(MAX_ATTEMPTS):
            try:
                return await self._post_completion()
            except Refusal as refusal:
                missing = {seq for seq in refusal.content.get("missing", []) if seq >= self.first}
                if not missing:
                    raise
                batch = [record for record in self.records if record["seq"] in missing][:BATCH_SIZE]
                await self.client.request("POST", "records", {"records": batch}, token=self.token)
        return await self._post_completion()

    async def _post_completion(self) -> dict[str, Any]:
        count = self.first + len(self.records)
        response = await self.client.request("POST", "complete", {"count": count}, token=self.token)
        return dict(response.json())


async def begin_session(
    client: StudyClient, study: dict[str, Any], entry: Mapping[str, str]
) -> dict[str, Any]:
    """Begin a session and return its state and token; `entry` is what the address says of the participant."""
    # The same key in every try: if a reply is lost, the next try does not create a second participant.
    body: dict[str, Any] = {"consented": True, "entry": secrets.token_urlsafe(24)}
    if study.get("prolific") and "link" not in entry:
        pid = f"simulated-{secrets.token_hex(7)}"
        body |= {"prolific_pid": pid, "prolific_study": "simulated", "prolific_session": pid}
    return dict((await client.request("POST", "sessions", {**body, **entry})).json())


async def take_part(
    client: StudyClient,
    study: dict[str, Any],
    session: dict[str, Any],
    perception: Perception,
    *,
    flagged: float,
    pace: float,
    seed: np.random.SeedSequence,
    on_stored: Callable[[int], None] = lambda answers: None,
) -> ParticipantResult:
    """Answer the trials of a session, from the first one that is not answered yet to its completion."""
    rng, timing_rng, drawing_rng = np.random.default_rng(seed).spawn(3)
    pairs = await PairSource.fetch(client, study, session, perception)
    screen = _Screen(study, timing_rng, time.time() * 1000)
    outbox = _Outbox(client, session["token"], pairs.update, on_stored, first=session["next_seq"])
    for kind, data in _preparation_events(study, screen.refresh_hz):
        outbox.add({"kind": kind, "at_ms": screen.now(), "data": data})
    answers = flags = chosen = 0
    answered = set(session["answered"])
    for block in split_blocks(session["trials"]):
        queue, tries = deque(item for item in block if item not in answered), Counter[int]()
        screen.wait(study["timing"]["preview_ms"])
        while queue:
            item = queue.popleft()
            if not pace:
                await _wait_for_choice(item, pairs, outbox)
            if item >= pairs.find_stop(block):
                continue
            tries[item] += 1
            is_flagged = flagged > 0 and rng.random() < flagged
            q, is_chosen = pairs.show(item)
            record = screen.trial(item, bool(rng.random() < q), q, is_flagged)
            outbox.add({**record, "chosen": is_chosen})
            answers, flags, chosen = answers + 1, flags + is_flagged, chosen + is_chosen
            if is_flagged and tries[item] < MAX_ATTEMPTS:
                queue.append(item)
            if pace:
                await asyncio.sleep(pace * screen.last_ms / 1000)
            await outbox.send(at_least=1 if pace or pairs.adaptive else BATCH_SIZE)
    if study.get("contours", {}).get("draw"):
        for drawing in pairs.draw_contours(drawing_rng):
            screen.wait(1000 * CONTOURS_S)
            outbox.add({"kind": "contours", "at_ms": screen.now(), "data": _pack_drawing(drawing)})
    await outbox.send()
    completion = await outbox.complete()
    return ParticipantResult(answers, flags, chosen, completion.get("completion_code"))


def _pack_drawing(drawing: Contours) -> dict[str, Any]:
    """Return the data of an event; of a drawing that is too large for it, the longest lines."""
    lines = [line.tolist() for line in drawing.lines]
    while len(json.dumps(lines)) > MAX_DRAWING_BYTES:
        lines.remove(min(lines, key=len))
    size = {"width_px": drawing.width_px, "height_px": drawing.height_px}
    return {"simulated": True, "image": drawing.image, "contours": lines, **size}


async def _wait_for_choice(item: int, pairs: PairSource, outbox: _Outbox) -> None:
    """Wait until the server has chosen a pair for this item: without a pace, participants would be faster."""
    while pairs.choosing and not pairs.has_choice(item):
        await asyncio.sleep(POLL_S)
        await outbox.poll()


class _Screen:
    """A simulated display of about 60 Hz, with a simulated clock."""

    def __init__(self, study: dict[str, Any], rng: np.random.Generator, start_ms: float):
        self.study, self.rng = study, rng
        self.refresh_hz = float(rng.normal(60, 0.02))
        self.start_ms, self.clock_ms, self.last_ms = start_ms, 2000.0, 0.0
        self.reaction_times = ReactionTimes(mean_ms=max(float(rng.normal(500, 60)), 300.0))

    def now(self) -> int:
        """Return the simulated time in milliseconds since the epoch."""
        return int(self.start_ms + self.clock_ms)

    def wait(self, duration_ms: float) -> None:
        """Advance the clock."""
        self.clock_ms += duration_ms

    def trial(self, item: int, same: bool, q: float, is_flagged: bool) -> dict[str, Any]:
        """Return the record of one trial; in a flagged one, a frame was dropped while the image was shown."""
        timing, frame = self.study["timing"], 1000 / self.refresh_hz
        shown_at, cue_onset = self.now(), self.clock_ms
        cue_frames, image_frames = (round(timing[name] / frame) for name in ("cue_ms", "image_ms"))
        cue_ms = cue_frames * frame + float(self.rng.normal(0, 0.05)) * (cue_frames > 0)
        image_ms = (image_frames + is_flagged) * frame + float(self.rng.normal(0, 0.05))
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
            "frames_dropped": int(is_flagged), "longest_gap_ms": round((1 + is_flagged) * frame, 3),
            "refresh_hz": round(self.refresh_hz, 3),
            "visible": True, "focused": True, "full_screen": True, "flags": "late" if is_flagged else "",
        }  # fmt: skip


def _preparation_events(study: dict[str, Any], refresh_hz: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the kind and data of each event that a page reports before the first trial."""
    simulated = {"simulated": True}
    size = {"width_px": 1920, "height_px": 1080}
    yield "consent", simulated | {"agreed": True}
    yield (
        "device",
        simulated
        | {f"{area}_{side}": value for area in ("window", "screen") for side, value in size.items()}
        | {"refresh_hz": round(refresh_hz, 3), "device_pixel_ratio": 1, "touch": False},
    )
    yield "keys", simulated | {"same": study["keys"]["same"], "different": study["keys"]["different"]}
    calibration = study.get("calibration", {})
    if calibration.get("distance"):
        measurements = [560.0, 565.0, 570.0, 575.0, 580.0]
        yield "distance", simulated | {"px_per_mm": 3.8, "distance_mm": 570.0, "measured_mm": measurements}
    if calibration.get("gamma"):
        matches = {"matches": [], "device_pixel_ratio": 1, "one_to_one": True}
        yield "gamma", simulated | matches | {"gamma": 2.2, "spread": 0.05}
