"""Algorithm 1 as the paper runs it: PyTorch, autograd, exponentiated gradient, one thread.

Only its running time matters: `python -m reproduction paper run` reports how long the paper's implementation
would have taken, and the benchmarks compare with it. The only file of this room with torch.
"""

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from reproduction.paper.algorithm import descended, random_start
from vseg.data.layout import Grid
from vseg.errors import InvalidInput
from vseg.reconstruction.objective import Objective

TIMED = 60  # iterations; the first few are not counted
WARM = 5


class Descent:
    """One run of Algorithm 1; `step` is one iteration.

    Examples
    --------
    >>> from reproduction.paper import simulation
    >>> from vseg.reconstruction.objective import objective
    >>> tally = simulation.answered(simulation.truth(size=8, amplitude=3.0, xi=2.0), blocks=1, seed=0)
    >>> problem = objective(tally, 3, strength=10.0, weights="pairs")
    >>> run = Descent(problem, random_start(problem, 0), rate=0.05)
    >>> run.step() > [run.step() for _ in range(50)][-1]
    True
    """

    def __init__(self, target: Objective, start: NDArray[np.float64], rate: float):
        if not isinstance(target.layout, Grid):
            raise InvalidInput(f"The paper's algorithm runs on a grid, got {target.layout}.")
        self._strength, self._size, self._rate = target.strength, target.layout.size, rate
        self._i, self._j, self._share = _pairs(target)
        self._p = torch.tensor(start, dtype=torch.float32, requires_grad=True)

    def step(self) -> float:
        """Take one step; the loss is that of the maps before it."""
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
        """(n, K) where it stands."""
        p = np.maximum(self._p.detach().numpy().astype(np.float64), 0)
        return p / p.sum(axis=1, keepdims=True)


def seconds(problem: Objective, rate: float, *, seed: int) -> tuple[float, float]:
    """CPU seconds that one fit takes in PyTorch, and compiled.

    In PyTorch a few iterations are timed, and multiplied by as many as Algorithm 1 needs on this problem.
    """
    start = random_start(problem, seed)
    descended(problem, start, rate, longest=1)  # loads the compiled code
    began = time.thread_time()
    _, needed = descended(problem, start, rate)
    compiled = time.thread_time() - began
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        run = Descent(problem, start, rate)
        for _ in range(WARM):
            run.step()
        began = time.thread_time()
        for _ in range(TIMED):
            run.step()
        return needed * (time.thread_time() - began) / TIMED, compiled
    finally:
        torch.set_num_threads(before)


def _penalty(p: Any, size: int) -> Any:
    """Eq. 7 with the four-neighbour mean, edges repeated."""
    maps = p.view(size, size, -1).permute(2, 0, 1)[None]
    wide = torch.nn.functional.pad(maps, (1, 1, 1, 1), mode="replicate")
    mean = (wide[..., :-2, 1:-1] + wide[..., 2:, 1:-1] + wide[..., 1:-1, :-2] + wide[..., 1:-1, 2:]) / 4
    return ((maps - mean) ** 2).sum()


def _pairs(target: Objective) -> tuple[Any, Any, Any]:
    tested = target.tested
    if not np.allclose(tested.weight, 1):
        raise InvalidInput(
            "The paper's loss does not weight pairs; build the objective with weights='pairs'."
        )
    ends = np.repeat(np.arange(len(target.layout)), np.diff(tested.start))
    once = ends < tested.partner
    return (
        torch.tensor(ends[once]),
        torch.tensor(tested.partner[once].astype(np.int64)),
        torch.tensor(tested.share[once], dtype=torch.float32),
    )
