"""Time a thousand fits, as in simulation studies and bootstraps, against a loop of PyTorch fits."""

import time

import numpy as np
import torch

from paper import best_rates
from problems import problem
from single import papers
from tables import table
from vseg.reconstruction.solvers import solve_batch


def main(quick: bool = False) -> str:
    torch.set_num_threads(1)
    count = 100 if quick else 1000
    rows = []
    for strength in (1.0, 10.0):
        targets = [problem(20, 3, strength, seed)[1] for seed in range(count)]
        rates = best_rates(targets[0], 20, 0)
        loop = count * np.mean([papers(target, 20, rates, s).seconds for s, target in enumerate(targets[:8])])
        seconds = {}
        for threads in (1, 2):
            solve_batch(targets[:50], seed=0, threads=threads)
            runs = []
            for _ in range(3):
                began = time.perf_counter()
                solve_batch(targets, seed=0, threads=threads)
                runs.append(time.perf_counter() - began)
            seconds[threads] = min(runs)
        rows.append([
            f"{strength:g}", f"{loop:.0f}", f"{seconds[1]:.2f}", f"{seconds[2]:.2f}",
            f"**{loop / seconds[1]:.0f}×**", f"**{loop / seconds[2]:.0f}×**", f"{seconds[1] / seconds[2]:.2f}",
        ])  # fmt: skip
    columns = ["λ", "PyTorch loop, s", "ours, 1 thread, s", "2 threads, s", "ratio, 1 thread", "2 threads",
               "1 thread ÷ 2 threads"]  # fmt: skip
    note = "Wall-clock time; the PyTorch loop is extrapolated from the mean of eight fits. Target: 500×."
    return table(f"{count} fits, N = 20, K = 3", columns, rows, note)
