"""Solvers of the objective, all with one signature:
`solver(objective, start=None, *, seed, starts=None, tolerance=…, max_iterations=…) -> Solution`.

Use `coordinate_descent`, unless you study the paper's own algorithm: `exponentiated_gradient` is a few hundred times
slower.
"""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
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
    "check_options",
    "coordinate_descent",
    "exponentiated_gradient",
    "get_solver",
    "solve_batch",
]


def get_solver(solver: str | Solver) -> Solver:
    """Return the solver with this name; a function is returned unchanged."""
    if callable(solver):
        return solver
    if solver not in SOLVERS:
        raise InvalidInput(f"Unknown solver {solver!r}; choose one of {', '.join(SOLVERS)}.")
    return SOLVERS[solver]


def check_options(solver: str | Solver, options: Mapping[str, Any]) -> None:
    """Raise InvalidInput if a solver of vseg has no such option; functions of the user take what they like."""
    if callable(solver):
        return
    parameters = inspect.signature(get_solver(solver)).parameters.values()
    names = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.name != "seed"]
    for option in options:
        if option not in names:
            raise InvalidInput(f"The solver {solver} has no option {option!r}; it has {', '.join(names)}.")


def solve_batch(
    objectives: Sequence[Objective],
    starts_from: Sequence[NDArray[np.float64] | None] | None = None,
    *,
    seed: int,
    solver: str | Solver = "coordinate_descent",
    threads: int | None = None,
    **options: Any,
) -> list[Solution]:
    """Solve many problems in parallel threads; the results do not depend on the number of threads."""
    solve = get_solver(solver)
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise InvalidInput(f"The number of threads is a whole number from 1 up, got {threads!r}.")
    seeds = (
        np.random.SeedSequence(check_seed(seed)).generate_state(len(objectives)).tolist()
        if objectives
        else []
    )
    warm = starts_from if starts_from is not None else [None] * len(objectives)
    jobs = list(zip(objectives, warm, seeds, strict=True))

    def solve_job(job: tuple[Objective, NDArray[np.float64] | None, int]) -> Solution:
        return solve(job[0], job[1], seed=job[2], **options)

    if threads == 1:  # a pool costs as much as a small fit
        return [solve_job(job) for job in jobs]
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        return list(pool.map(solve_job, jobs))
