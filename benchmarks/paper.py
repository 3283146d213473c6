"""Time Algorithm 1 as the paper runs it (reproduction.paper.pytorch) until it is close to its minimum."""

import time
from dataclasses import dataclass

import numpy as np

from reproduction.paper.algorithm import random_start
from reproduction.paper.pytorch import PyTorchDescent
from vseg.reconstruction.objective import Objective
from vseg.reconstruction.solvers import coordinate_descent

RATES = (2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02)
CHUNK = 500
MAX_ITERATIONS = 30_000
EQUAL = 1e-4


@dataclass
class Run:
    """CPU seconds and iterations until within 1e-4 of the limit; `reached` is False if the run ended before."""

    seconds: float
    iterations: int
    limit: float
    reached: bool
    rate: float


def exponentiated_gradient(
    target: Objective, _size: int, rate: float, seed: int, max_iterations: int = MAX_ITERATIONS
) -> Run:
    """Run until within 1e-4 of the local minimum, which is found by coordinate descent from the current maps."""
    descent = PyTorchDescent(target, random_start(target, seed), rate)
    clock, values, spent = [], [], 0.0
    while len(values) < max_iterations:
        began = time.thread_time()
        for _ in range(CHUNK):
            values.append(descent.step())
            clock.append(spent + time.thread_time() - began)
        spent = clock[-1]
        if not np.isfinite(values[-1]) or values[-1] > 1.5 * min(values):
            return Run(np.inf, len(values), np.inf, False, rate)
        polished = coordinate_descent(target, descent.probabilities, seed=0, tolerance=1e-8)
        limit = target.value(polished.probabilities)
        near = np.flatnonzero(np.array(values) <= limit * (1 + EQUAL))
        if len(near):
            return Run(clock[near[0]], int(near[0]) + 1, limit, True, rate)
    return Run(clock[-1], len(values), limit, False, rate)


def best_rates(target: Objective, size: int, seed: int, keep: int = 2) -> list[float]:
    """Return the fastest fixed learning rates on this problem."""
    runs = [exponentiated_gradient(target, size, rate, seed, max_iterations=10_000) for rate in RATES]
    runs.sort(key=lambda run: (not run.reached, run.seconds))
    return [run.rate for run in runs[:keep]]
