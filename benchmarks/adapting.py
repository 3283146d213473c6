"""Fifty simultaneous participants in an adaptive study: is a pair chosen in time for every trial, and do answers wait?

Each participant answers every 1.3 s, the paper's pace. As on the page, a trial shows the pair that was chosen before it
began and does not wait for the reply. The fixed pairs at the beginning are answered at once, so that only adaptive
choices are measured. Client and server share the machine.
"""

import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collecting import PACE_S, RESPONSE, Connection, _free_port, _running

STUDY = """
name = "crowd"
segments = {segments}
participants = 1000
layout = {{grid = {grid}}}
images = [{{name = "patches", colours = {segments}}}]
design = {{name = "adaptive", trials = {trials}, shared = {shared}}}
practice = {{trials = 0}}
catch = {{per_block = 0}}
"""
ARRIVING_S = 20.0
SETTINGS = (("own maps", 11, 3, "false"), ("own maps", 16, 8, "false"), ("one map together", 11, 3, "true"))


@dataclass
class Measurements:
    """Measurements: reply times, trials with and without a chosen pair, and numbers of buffered choices."""

    latencies: list[float] = field(default_factory=list)
    chosen: int = 0
    dry: int = 0
    buffered: list[int] = field(default_factory=list)


def main(quick: bool = False) -> str:
    people, seconds = (10, 30) if quick else (50, 120)
    rows = []
    for name, grid, segments, shared in SETTINGS[:: 1 + quick]:
        seen = _crowd(people, seconds, grid=grid, segments=segments, shared=shared)
        rows.append(_row(f"{name}, N={grid}, K={segments}", seen))
        print(rows[-1], flush=True)
    return "\n".join([
        f"## {people} simultaneous participants in an adaptive study", "",
        "| study | answers | chosen in time | empty buffers | least buffered | p50, ms | p99, ms | worst, ms |",
        "|---|---|---|---|---|---|---|---|", *rows, "",
        f"Each participant answers every {PACE_S} s for {seconds} s; SQLite, one worker, client and server on one "
        "machine. If its buffer is empty, a trial shows its fixed pair; it never waits. Target: no empty buffers.", "",
    ])  # fmt: skip


def _row(name: str, seen: Measurements) -> str:
    ordered = sorted(1000 * latency for latency in seen.latencies)
    p50, p99 = ordered[len(ordered) // 2], ordered[int(0.99 * len(ordered))]
    return (
        f"| {name} | {len(ordered)} | {seen.chosen} | **{seen.dry}** | {min(seen.buffered, default=0)} | {p50:.1f} | "
        f"**{p99:.1f}** | {ordered[-1]:.0f} |"
    )


def _crowd(people: int, seconds: float, **study: Any) -> Measurements:
    with tempfile.TemporaryDirectory() as folder:
        file, port = Path(folder) / "crowd.toml", _free_port()
        most = study["grid"] ** 2 * (study["grid"] ** 2 - 1) // 2
        file.write_text(STUDY.format(trials=min(1000, most), **study), encoding="utf-8")
        command = [sys.executable, "-m", "vseg", "serve", str(file), "--db", f"sqlite:///{folder}/crowd.db"]
        with _running([*command, "--port", str(port)], port):
            start = -(-(study["grid"] ** 2) // 3)
            return asyncio.run(_all(port, people, seconds, start, shared=study["shared"] == "true"))


async def _all(port: int, people: int, seconds: float, start: int, *, shared: bool) -> Measurements:
    seen = Measurements()
    end = time.perf_counter() + ARRIVING_S + seconds
    await asyncio.gather(
        *(
            _person(port, number, people, end, 0 if shared else start, seen, (start + 5 * people) * shared)
            for number in range(people)
        )
    )
    return seen


async def _person(
    port: int, number: int, people: int, end: float, start: int, seen: Measurements, crowd: int
) -> None:
    await asyncio.sleep(ARRIVING_S * number / people)
    rng = random.Random(number)
    door = await Connection.open(port)
    _, body = await door.post("/s/crowd/sessions", {"consented": True})
    door.close()
    state = json.loads(body)
    trials, choices = state["trials"], {}
    connection, item, waiting = await Connection.open(port, state["token"]), 0, None

    def pair() -> tuple[bool, int, int]:
        if item in choices:
            return True, *choices[item]
        return False, trials["i"][item], trials["j"][item]

    def record(asked: tuple[bool, int, int]) -> dict[str, Any]:
        side = max(max(trials["i"]), max(trials["j"])) + 1
        same = (2 * asked[1] < side) == (2 * asked[2] < side)  # two halves, upper and lower
        return {
            **RESPONSE,
            "seq": item,
            "item": item,
            "same": same != (rng.random() < 0.03),
            "chosen": asked[0],
        }

    async def post(records: list[dict[str, Any]], due: float | None) -> None:
        status, body = await connection.post("/s/crowd/records", {"records": records})
        assert status == 200, body
        if due is not None:
            seen.latencies.append(time.perf_counter() - due)
        new = json.loads(body)["choices"]
        choices.update(zip(new["item"], zip(new["i"], new["j"], strict=True), strict=True))

    first = []
    for item in range(start):  # noqa: B007
        first.append(record(pair()))
    for at in range(0, len(first), 100):
        await post(first[at : at + 100], None)
    item, due = start, time.perf_counter() + PACE_S * (1 + rng.random())
    settled = (
        item + 5
    )  # trials before the first choices can arrive; in a shared study they depend on all participants
    while due < end:
        asked = pair()
        if item >= settled and len(seen.latencies) >= crowd:
            seen.chosen, seen.dry = seen.chosen + asked[0], seen.dry + (not asked[0])
            seen.buffered.append(sum(each > item for each in choices))
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        if waiting is not None:
            await waiting
        waiting = asyncio.create_task(post([record(asked)], due))
        await asyncio.sleep(0)  # the page starts its next trial at once
        item, due = item + 1, due + PACE_S
    with contextlib.suppress(asyncio.CancelledError):
        await waiting


if __name__ == "__main__":
    print(main("--quick" in sys.argv))
