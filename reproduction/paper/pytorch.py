"""Algorithm 1 as the paper runs it: PyTorch, autograd, exponentiated gradient, one thread.

It is used for its running time only: `python -m reproduction paper run` reports how long the paper's implementation
would have taken, and the benchmarks compare with it. Only this module imports torch.
"""

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from reproduction.paper.algorithm import descend, random_start
from vseg.data.layout import Grid
from vseg.errors import InvalidInput
from vseg.reconstruction.objective import Objective

TIMED_ITERATIONS = 60  # after the warm-up
WARM_UP_ITERATIONS = 5


class PyTorchDescent:
    """One run of Algorithm 1; `step` is one iteration.

    Examples
    --------
    >>> from reproduction.paper import simulation
    >>> from vseg.reconstruction.objective import build_objective
    >>> tally = simulation.simulate_tally(simulation.truth(size=8, amplitude=3.0, xi=2.0), blocks=1, seed=0)
    >>> problem = build_objective(tally, 3, strength=10.0, weights="pairs")
    >>> run = PyTorchDescent(problem, random_start(problem, 0), rate=0.05)
    >>> run.step() > [run.step() for _ in range(50)][-1]
    True
    """

    def __init__(self, target: Objective, start: NDArray[np.float64], rate: float):
        if not isinstance(target.layout, Grid):
            raise InvalidInput(f"Expected a grid for the paper's algorithm, got {target.layout}.")
        self._strength, self._size, self._rate = target.strength, target.layout.size, rate
        self._i, self._j, self._share = _pair_tensors(target)
        self._p = torch.tensor(start, dtype=torch.float32, requires_grad=True)

    def step(self) -> float:
        """Take one step; return the loss before it."""
        p = self._p
        q = (p[self._i] * p[self._j]).sum(1)
        loss = ((self._share - q) ** 2).sum()
        if self._strength:
            loss = loss + self._strength * _penalty(p, self._size)
        loss.backward()
        with torch.no_grad():
            p.mul_(torch.exp(-self._rate * p.grad))
            p.div_(p.sum(1, keepdim=True))
            p.grad = None
        return float(loss.item())

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The current maps, (n, K)."""
        p = np.maximum(self._p.detach().numpy().astype(np.float64), 0)
        return p / p.sum(axis=1, keepdims=True)


def time_fit(problem: Objective, rate: float, *, seed: int) -> tuple[float, float]:
    """Return the CPU seconds of one fit in PyTorch and compiled.

    In PyTorch a few iterations are timed and scaled to the number that Algorithm 1 needs on this problem.
    """
    start = random_start(problem, seed)
    descend(problem, start, rate, max_iterations=1)  # loads the compiled code
    began = time.thread_time()
    _, iterations = descend(problem, start, rate)
    compiled = time.thread_time() - began
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        run = PyTorchDescent(problem, start, rate)
        for _ in range(WARM_UP_ITERATIONS):
            run.step()
        began = time.thread_time()
        for _ in range(TIMED_ITERATIONS):
            run.step()
        return iterations * (time.thread_time() - began) / TIMED_ITERATIONS, compiled
    finally:
        torch.set_num_threads(before)


def _penalty(p: Any, size: int) -> Any:
    """Compute the penalty of Eq. 7 with the four-neighbour mean, edges repeated."""
    maps = p.view(size, size, -1).permute(2, 0, 1)[None]
    wide = torch.nn.functional.pad(maps, (1, 1, 1, 1), mode="replicate")
    mean = (wide[..., :-2, 1:-1] + wide[..., 2:, 1:-1] + wide[..., 1:-1, :-2] + wide[..., 1:-1, 2:]) / 4
    return ((maps - mean) ** 2).sum()


def _pair_tensors(target: Objective) -> tuple[Any, Any, Any]:
    tested = target.tested
    if not np.allclose(tested.weight, 1):
        raise InvalidInput(
            "The paper's loss does not weight pairs; build the objective with weights='pairs'."
        )
    ends = np.repeat(np.arange(len(target.layout)), np.diff(tested.start))
    first = ends < tested.partner  # each pair is stored twice
    return (
        torch.tensor(ends[first]),
        torch.tensor(tested.partner[first].astype(np.int64)),
        torch.tensor(tested.share[first], dtype=torch.float32),
    )
