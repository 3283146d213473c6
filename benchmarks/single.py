"""Time one cold fit against the paper's algorithm."""

import time

import numpy as np
import torch

from paper import EQUAL, Run, best_rates, exponentiated_gradient
from problems import problem
from tables import table
from vseg.reconstruction.objective import Objective
from vseg.reconstruction.solvers import coordinate_descent

CASES = ((11, 2, 10.0, 3000), (20, 3, 1.0, 300), (20, 3, 10.0, 1000), (16, 5, 1.0, 200), (64, 3, 10.0, 500))
REPEATS = 9


def main(quick: bool = False) -> str:
    torch.set_num_threads(1)
    rows = [_row(*case, seeds=2 if quick else 5) for case in (CASES[:2] if quick else CASES)]
    columns = ["N", "K", "λ", "paper, s", "iterations", "ours, ms", "sweeps", "ratio: median", "each seed", "target",
               "objective relative to the paper's"]  # fmt: skip
    return table(
        "One cold fit",
        columns,
        rows,
        "Medians over seeds; > if the paper's run was stopped before it converged.",
    )


def ours(target: Objective) -> tuple[float, int, float]:
    """Return the CPU seconds of a whole call that ends within 1e-4 of its minimum, its sweeps and objective."""
    for tolerance in (1e-4, 1e-5, 1e-6, 1e-7, 1e-8):
        solution = coordinate_descent(target, seed=0, tolerance=tolerance)
        value = target.value(solution.probabilities)
        limit = coordinate_descent(target, solution.probabilities, seed=0, tolerance=1e-9).trace[-1]
        if value <= limit * (1 + EQUAL):
            break
    times = []
    for _ in range(REPEATS):
        began = time.thread_time()
        coordinate_descent(target, seed=0, tolerance=tolerance)
        times.append(time.thread_time() - began)
    return float(np.median(times)), solution.iterations, value


def papers(target: Objective, size: int, rates: list[float], seed: int) -> Run:
    runs = [exponentiated_gradient(target, size, rate, seed) for rate in rates]
    return min(runs, key=lambda run: (not run.reached, run.seconds))


def _row(size: int, segments: int, strength: float, wanted: int, *, seeds: int) -> list[str]:
    rates, runs, mine, gaps = None, [], [], []
    for seed in range(seeds):
        _, target = problem(size, segments, strength, seed)
        rates = rates or best_rates(target, size, seed)
        runs.append(papers(target, size, rates, seed))
        mine.append(ours(target))
        gaps.append(mine[-1][2] / runs[-1].limit - 1)
    ratios = [run.seconds / seconds for run, (seconds, _, _) in zip(runs, mine, strict=True)]
    each = ", ".join(
        f"{'' if run.reached else '>'}{ratio:.0f}" for run, ratio in zip(runs, ratios, strict=True)
    )
    seconds, sweeps, _ = (np.median(column) for column in zip(*mine, strict=True))
    return [
        f"{size}", f"{segments}", f"{strength:g}",
        f"{np.median([run.seconds for run in runs]):.2f}",
        f"{np.median([run.iterations for run in runs]):.0f}",
        f"{1e3 * seconds:.2f}", f"{sweeps:.0f}", f"**{np.median(ratios):.0f}×**", each, f"{wanted}×",
        f"{100 * min(gaps):+.3f} … {100 * max(gaps):+.3f} %",
    ]  # fmt: skip
