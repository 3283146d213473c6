"""Algorithm 1 of the paper: exponentiated gradient descent, in the log domain.

p = 1/K is a fixed point and a probability of zero never recovers, so starts are random and probabilities have a floor
of 1e-12.
"""

import numpy as np
from numpy.typing import NDArray

from vseg._support.seeds import check_seed
from vseg.data.maps import Maps
from vseg.errors import InvalidInput
from vseg.reconstruction.objective import Objective
from vseg.reconstruction.solvers.solution import (
    CONVERGED,
    DIVERGED,
    ITERATIONS,
    STALLED,
    Solution,
    check_limits,
)

FLOOR = 1e-12
LIFT = 1e-3  # how far a start with zeros is moved towards 1/K
CONCENTRATION = 5.0  # of the Dirichlet distribution from which starts are drawn
MIN_STEP = 1e-12
PATIENCE = 10  # iterations over which a relative tolerance is judged


def exponentiated_gradient(
    objective: Objective,
    start: NDArray[np.float64] | None = None,
    *,
    seed: int,
    starts: int | None = None,
    tolerance: float = 3e-5,
    max_iterations: int = 20_000,
    learning_rate: float | None = None,
    epsilon: float | None = None,
    truth: Maps | None = None,
) -> Solution:
    """Minimise by the multiplicative steps of the paper's Algorithm 1.

    Parameters
    ----------
    objective : Objective
    start : array, shape (n, K), optional
        Where to start instead of at a random map. It is used as given, but for locations with a probability below
        1e-12, such as 0: a step multiplies, so that zero stays zero, and a tiny number takes so many steps to grow that
        the solver would stop before. Such a location is moved by 0.1 % towards 1/K.
    seed : int
    starts : int, optional
    tolerance : float
    max_iterations : int
    learning_rate : float, optional
        A fixed step (the paper's λ_r; with the four-neighbour kernel, λ·rate must stay below about 0.5).
        Without it the step backtracks, so that the objective never rises.
    epsilon : float, optional
        The paper's stopping rule: stop when the objective changes by less than this in one iteration.
        Without it, stop when it has fallen by less than `tolerance` of itself over ten iterations.
    truth : Maps, optional
        Records the MAE to these maps after each iteration in `Solution.errors`.
    """
    if learning_rate is not None and not 0 < learning_rate < np.inf:
        raise InvalidInput(f"The learning rate is a positive number, got {learning_rate!r}.")
    if epsilon is not None and not 0 <= epsilon < np.inf:
        raise InvalidInput(f"The stopping criterion epsilon is a number from 0 up, got {epsilon!r}.")
    count = check_limits(starts, tolerance, max_iterations)
    rng = np.random.default_rng(check_seed(seed))
    shape = len(objective.layout), objective.segments
    if start is not None:
        begins = [_leave_faces(objective.check_start(start))]
    else:
        begins = [_random_start(shape, rng) for _ in range(count)]
    runs = [
        _descend(objective, begin, tolerance, max_iterations, learning_rate, epsilon, truth)
        for begin in begins
    ]
    return min(runs, key=lambda run: run.trace[-1])


def _leave_faces(start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move the rows with a probability of zero off the faces of the simplex; leave the others as they are."""
    moved = (1 - LIFT) * start + LIFT / start.shape[1]
    return np.where(start.min(axis=1, keepdims=True) < FLOOR, moved, start)


def _random_start(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.dirichlet(np.full(shape[1], CONCENTRATION), shape[0])


def _descend(
    objective: Objective,
    start: NDArray[np.float64],
    tolerance: float,
    max_iterations: int,
    learning_rate: float | None,
    epsilon: float | None,
    truth: Maps | None,
) -> Solution:
    p = start
    first = value = objective.value(p)
    step = learning_rate or 1 / (1 + 2 * objective.strength)
    trace: list[float] = []
    errors: list[float] = []
    status = ITERATIONS
    for _ in range(max_iterations):
        slope = objective.gradient(p)
        if learning_rate is None:
            p, lower, step = _step_with_backtracking(objective, p, value, slope, step)
        else:
            p = _normalise(np.log(p) - step * slope)
            lower = objective.value(p)
        trace.append(lower)
        if truth is not None:
            errors.append(Maps(objective.layout, p).distance_to(truth))
        change, value = abs(value - lower), lower
        if step < MIN_STEP:
            status = CONVERGED if change == 0 else STALLED
            break
        if not np.isfinite(value) or value > 2 * first + 1:
            status = DIVERGED
            break
        if change < epsilon if epsilon is not None else _has_settled(trace, tolerance):
            status = CONVERGED if value <= first else DIVERGED
            break
    return Solution(p, len(trace), status, np.array(trace), np.array(errors))


def _step_with_backtracking(
    objective: Objective, p: NDArray[np.float64], value: float, slope: NDArray[np.float64], step: float
) -> tuple[NDArray[np.float64], float, float]:
    """Return the next maps, their objective and the next step size; halve a step that does not help."""
    step *= 1.5
    while step >= MIN_STEP:
        moved = _normalise(np.log(p) - step * slope)
        lower = objective.value(moved)
        if lower <= value + 0.1 * np.sum(slope * (moved - p)):
            return moved, lower, step
        step /= 2
    return p, value, step


def _normalise(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    p = np.maximum(np.exp(logits - logits.max(axis=1, keepdims=True)), FLOOR)
    return p / p.sum(axis=1, keepdims=True)


def _has_settled(trace: list[float], tolerance: float) -> bool:
    return len(trace) > PATIENCE and abs(trace[-1 - PATIENCE] - trace[-1]) <= tolerance * abs(trace[-1])
