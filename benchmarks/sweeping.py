"""Sweeps: two workers against one, the overhead of a trial, and the cost of replacing a killed worker.

Wall-clock seconds, so the machine should be idle. The trial is a whole simulated session: answers, reconstruction with
the smoothness chosen by cross-validation, error.
"""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import vseg
from tables import table
from vseg.sweeps import open_workers, sweep

SETTINGS = {"blocks": [2, 8, 32]}
BRIEF_S = 0.01


def session(blocks: int, seed: int, where: str = "") -> dict[str, float]:
    truth = vseg.stimuli.random_maps(vseg.Grid(16), segments=3, seed=0)
    pairs = vseg.designs.scattered(truth.layout, segments=3, seed=seed)
    responses = vseg.simulate(truth, pairs, blocks=blocks, seed=seed + 1)
    result = vseg.reconstruct(responses, segments=3, seed=seed, threads=1)
    if where:
        (Path(where) / str(os.getpid())).touch()
    return {"error": vseg.metrics.mae(result.maps, truth)}


def brief(blocks: int, seed: int) -> dict[str, float]:
    """Use ten milliseconds of CPU time."""
    until = time.process_time() + BRIEF_S
    while time.process_time() < until:
        pass
    return {"x": 0.0}


def main(quick: bool = False) -> str:
    repeats, times = (8, 1) if quick else (60, 3)
    session(2, seed=0)  # fill the disk cache of compiled code before timing
    rows = []
    for kind in ("threads", "processes"):
        one, two = ([_seconds(f"{kind}:{count}", repeats) for _ in range(times)] for count in (1, 2))
        ratio = np.median(two) / np.median(one)
        rows.append([kind, f"{np.median(one):.2f} s", f"{np.median(two):.2f} s", f"**{ratio:.2f}**"])
    note = (
        f"{3 * repeats} simulated sessions (16×16, K = 3), median of {times}, workers started beforehand; target: at "
        f"most 0.6. Sending a trial of 10 ms to a process and storing its result costs {_overhead_ms(quick):.2f} ms "
        f"(target: under 1). Killing a worker during the run costs {_lost_s(repeats):.1f} s more."
    )
    return table("Sweeps: two workers against one", ["workers", "one", "two", "two / one"], rows, note)


def _seconds(executor: str, repeats: int, **options) -> float:
    with open_workers(executor) as place:
        sweep(
            session, SETTINGS, repeats=4, seed=1, executor=place
        )  # import, and load compiled code from the disk
        began = time.perf_counter()
        sweep(session, SETTINGS, repeats=repeats, seed=0, executor=place, **options)
        return time.perf_counter() - began


def _overhead_ms(quick: bool) -> float:
    """Measure the overhead of a trial with one process and a checkpoint."""
    trials = 200 if quick else 1000
    with tempfile.TemporaryDirectory() as folder, open_workers("processes:1") as place:
        began = time.perf_counter()
        sweep(brief, {"blocks": [1]}, repeats=trials, seed=0, executor=place, checkpoint=folder)
        return 1000 * ((time.perf_counter() - began) / trials - BRIEF_S)


def _lost_s(repeats: int) -> float:
    """Measure how much longer a sweep takes if one of two processes is killed after the first trials."""
    usual = _seconds("processes:2", repeats)
    with tempfile.TemporaryDirectory() as where, open_workers("processes:2") as place:
        sweep(session, SETTINGS, repeats=4, seed=1, executor=place)
        killed: list[int] = []

        def kill(_: int) -> None:
            if not killed:
                killed.append(int(os.listdir(where)[0]))
                os.kill(killed[0], signal.SIGKILL)

        began = time.perf_counter()
        settings = {**SETTINGS, "where": [where]}
        sweep(session, settings, repeats=repeats, seed=0, executor=place, progress=kill)
        return time.perf_counter() - began - usual


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
