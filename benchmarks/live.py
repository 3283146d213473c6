"""Time a refit after one more answer."""

import time

import numpy as np

import vseg
from problems import problem
from tables import table
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.online import OnlineReconstruction
from vseg.reconstruction.solvers import coordinate_descent

ANSWERS = 200


def main(quick: bool = False) -> str:
    rows = []
    for size, segments in ((11, 2), (20, 3)) if quick else ((11, 2), (20, 3), (64, 3)):
        for strength in (1.0, 10.0):
            rows.append(_row(size, segments, strength))
    columns = ["N", "K", "λ", "answers", "median, ms", "95 %, ms", "objective above a full fit's"]
    note = (
        "Wall-clock time of `OnlineReconstruction.add` for answers that contradict the maps (the worst case). "
        "Target: under 1 ms at N = 64. The last column compares with a full fit after all of these answers."
    )
    return table("Refit after one answer", columns, rows, note)


def _row(size: int, segments: int, strength: float) -> list[str]:
    truth, _ = problem(size, segments, strength, 0)
    pairs = vseg.designs.covering(truth.layout, segments=segments, seed=1)
    known = vseg.simulate(truth, pairs, blocks=1, seed=1)
    live = OnlineReconstruction(truth.layout, segments=segments, smoothness=strength, responses=known, seed=0)
    live.settle()
    rng = np.random.default_rng(2)
    new: list[tuple[int, int, bool]] = []
    times = []
    for _ in range(min(ANSWERS, len(known) // 3)):
        i, j = rng.choice(len(truth.layout), 2, replace=False)
        p = live.maps.probabilities
        same = bool(p[i] @ p[j] < 0.5)
        began = time.perf_counter()
        live.add(i, j, same)
        times.append(1e3 * (time.perf_counter() - began))
        new.append((i, j, same))
    i, j, same = (np.array(column) for column in zip(*new, strict=True))
    every = vseg.Responses(
        truth.layout, np.append(known.i, i), np.append(known.j, j), np.append(known.same, same)
    )
    target = build_objective(every.tally(), segments, strength=strength)
    p = live.maps.probabilities
    gap = target.value(p) / coordinate_descent(target, p, seed=0, tolerance=1e-8).trace[-1] - 1
    return [
        f"{size}", f"{segments}", f"{strength:g}", f"{len(times)}", f"**{np.median(times):.2f}**",
        f"{np.quantile(times, 0.95):.2f}", f"{100 * gap:.2f} %",
    ]  # fmt: skip
