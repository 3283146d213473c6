"""The opponent: Algorithm 1 as the paper runs it. PyTorch, autograd, exponentiated gradient, one thread."""

import time
from dataclasses import dataclass

import numpy as np
import torch

from vseg.objective import Objective
from vseg.solvers import coordinate_descent

RATES = (2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02)
CHUNK = 500
LONGEST = 30_000
EQUAL = 1e-4


@dataclass
class Run:
    """CPU seconds and iterations until within 1e-4 of the limit; `reached` is False if it never got there."""

    seconds: float
    iterations: int
    limit: float
    reached: bool
    rate: float


def exponentiated_gradient(
    target: Objective, size: int, rate: float, seed: int, longest: int = LONGEST
) -> Run:
    """Run until within 1e-4 of the minimum it is heading for, found by polishing where it stands."""
    i, j, share = _pairs(target)
    p = torch.tensor(_start(target, seed), dtype=torch.float32, requires_grad=True)
    clock, values, spent = [], [], 0.0
    while len(values) < longest:
        began = time.thread_time()
        for _ in range(CHUNK):
            q = (p[i] * p[j]).sum(1)
            loss = ((share - q) ** 2).sum()
            if target.strength:
                loss = loss + target.strength * _penalty(p, size)
            loss.backward()
            with torch.no_grad():
                p.mul_(torch.exp(-rate * p.grad))
                p.div_(p.sum(1, keepdim=True))
                p.grad = None
            values.append(loss.item())
            clock.append(spent + time.thread_time() - began)
        spent = clock[-1]
        if not np.isfinite(values[-1]) or values[-1] > 1.5 * min(values):
            return Run(np.inf, len(values), np.inf, False, rate)
        limit = _limit(target, p.detach().numpy().astype(float))
        near = np.flatnonzero(np.array(values) <= limit * (1 + EQUAL))
        if len(near):
            return Run(clock[near[0]], int(near[0]) + 1, limit, True, rate)
    return Run(clock[-1], len(values), limit, False, rate)


def best_rates(target: Objective, size: int, seed: int, keep: int = 2) -> list[float]:
    """The fastest fixed learning rates on this problem."""
    runs = [exponentiated_gradient(target, size, rate, seed, longest=10_000) for rate in RATES]
    runs.sort(key=lambda run: (not run.reached, run.seconds))
    return [run.rate for run in runs[:keep]]


def _penalty(p: torch.Tensor, size: int) -> torch.Tensor:
    """Eq. 7 with the four-neighbour mean, edges repeated."""
    maps = p.view(size, size, -1).permute(2, 0, 1)[None]
    wide = torch.nn.functional.pad(maps, (1, 1, 1, 1), mode="replicate")
    mean = (wide[..., :-2, 1:-1] + wide[..., 2:, 1:-1] + wide[..., 1:-1, :-2] + wide[..., 1:-1, 2:]) / 4
    return ((maps - mean) ** 2).sum()


def _pairs(target: Objective) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    tested = target.tested
    ends = np.repeat(np.arange(len(target.layout)), np.diff(tested.start))
    once = ends < tested.partner
    assert np.allclose(tested.weight, 1), "the paper's loss does not weight pairs"
    return (
        torch.tensor(ends[once]),
        torch.tensor(tested.partner[once].astype(np.int64)),
        torch.tensor(tested.share[once], dtype=torch.float32),
    )


def _start(target: Objective, seed: int) -> np.ndarray:
    shape = len(target.layout), target.segments
    return np.random.default_rng(seed).dirichlet(np.full(shape[1], 5.0), shape[0])


def _limit(target: Objective, p: np.ndarray) -> float:
    start = np.maximum(p, 0) / np.maximum(p, 0).sum(axis=1, keepdims=True)
    return target.value(coordinate_descent(target, start, seed=0, tolerance=1e-8).probabilities)
