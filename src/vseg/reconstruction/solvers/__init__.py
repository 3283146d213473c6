"""Solvers, all with one signature:
`solver(objective, start=None, *, seed, starts=None, tolerance=…, max_iterations=…) -> Solution`.

How to choose: `coordinate_descent` is right unless you study the paper's own algorithm; then take
`exponentiated_gradient`, a few hundred times slower.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg._support.seeds import check_seed
from vseg.errors import InvalidInput
from vseg.reconstruction.objective import Objective
from vseg.reconstruction.solvers.coordinate_descent import coordinate_descent
from vseg.reconstruction.solvers.exponentiated_gradient import exponentiated_gradient
from vseg.reconstruction.solvers.solution import Solution

Solver = Callable[..., Solution]
SOLVERS: dict[str, Solver] = {
    "coordinate_descent": coordinate_descent,
    "exponentiated_gradient": exponentiated_gradient,
}

__all__ = [
    "SOLVERS",
    "Solution",
    "Solver",
    "batch",
    "coordinate_descent",
    "exponentiated_gradient",
    "solver_of",
]


def solver_of(solver: str | Solver) -> Solver:
    """A solver by its name, or the function itself."""
    if callable(solver):
        return solver
    if solver not in SOLVERS:
        raise InvalidInput(f"Unknown solver {solver!r}; choose one of {', '.join(SOLVERS)}.")
    return SOLVERS[solver]


def batch(
    objectives: Sequence[Objective],
    starts_from: Sequence[NDArray[np.float64] | None] | None = None,
    *,
    seed: int,
    solver: str | Solver = "coordinate_descent",
    threads: int | None = None,
    **options: Any,
) -> list[Solution]:
    """Solve many problems, one a thread at a time; the results do not depend on the number of threads."""
    solve = solver_of(solver)
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise InvalidInput(f"The number of threads is a whole number from 1 up, got {threads!r}.")
    seeds = (
        np.random.SeedSequence(check_seed(seed)).generate_state(len(objectives)).tolist()
        if objectives
        else []
    )
    warm = starts_from if starts_from is not None else [None] * len(objectives)
    jobs = list(zip(objectives, warm, seeds, strict=True))

    def solved(job: tuple[Objective, NDArray[np.float64] | None, int]) -> Solution:
        return solve(job[0], job[1], seed=job[2], **options)

    if threads == 1:  # a pool costs as much as a small fit
        return [solved(job) for job in jobs]
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        return list(pool.map(solved, jobs))
