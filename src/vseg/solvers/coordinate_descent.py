"""Block coordinate descent from a coarse-to-fine start: the default solver.

Random starts are tried only on the coarsest level, where they cost microseconds; the best is carried down
level by level. A weak smoothness is approached from a strong one: that is what keeps the fit out of bad
local minima.
"""

import numpy as np
from numpy.typing import NDArray

from vseg.compiled import compiled
from vseg.losses import SQUARED_ERROR
from vseg.objective import Objective, data_term
from vseg.solvers.levels import grouped_pairs, interpolated, levels, penalty_of
from vseg.solvers.solution import CONVERGED, ITERATIONS, Solution
from vseg.solvers.sweeps import sweep

LEVEL_SWEEPS = 6
COARSEST_SWEEPS = 60
WEAK = 0.3  # below this λ the way leads through λ = 1, 0.2, 0.04, …
WEAKEST = 1e-3
RELAX = 1.4  # over-relaxation, clipped to the simplex: still monotone
SPREAD = 0.7  # standard deviation of the log-odds of a random start


def coordinate_descent(
    objective: Objective,
    start: NDArray[np.float64] | None = None,
    *,
    seed: int,
    starts: int | None = None,
    tolerance: float = 3e-5,
    max_iterations: int = 5000,
) -> Solution:
    """Minimise by exact updates of one location at a time.

    Parameters
    ----------
    start : array, shape (n, K), optional
        Warm start; without it, coarse to fine from `starts` random maps (8 if λ < 0.3, else 2).
    tolerance : float
        Stop when the decrease still to come is estimated at less than this share of the objective.

    Returns
    -------
    Solution
    """
    level = levels(objective.smoothness)
    trace = np.empty(max_iterations)
    if start is None:
        count = (8 if objective.strength < WEAK else 2) if starts is None else starts
        noise = np.random.default_rng(seed).standard_normal((count, level.size[-1], objective.segments))
        random = np.exp(SPREAD * noise)
        random /= random.sum(axis=2, keepdims=True)
        p = _coarse_to_fine(
            objective.tested, SQUARED_ERROR, objective.strength, level, random
        )  # whatever the loss
    else:
        p = np.array(start, np.float64, order="C")
    sweeps, converged = _descend(
        p, objective.tested, objective.code, objective.strength, objective.smoothness.matrix, tolerance, trace
    )
    return Solution(p, sweeps, CONVERGED if converged else ITERATIONS, trace[:sweeps])


@compiled
def _descend(p, tested, code, strength, penalty, tolerance, trace):
    """Sweep until the decrease still to come, extrapolated from the last two, is small twice in a row."""
    rows = np.arange(p.shape[0])
    value = _value(p, tested, code, strength, penalty)
    floor = 1e-3 * value
    before = np.inf
    small = 0
    for s in range(trace.size):
        fallen = sweep(p, tested, code, strength, penalty, RELAX, rows)
        value -= fallen
        trace[s] = value
        ratio = min(max(fallen / before, 0.5), 0.98) if before > 0.0 else 0.5
        small = small + 1 if fallen * ratio / (1.0 - ratio) <= tolerance * max(value, floor) else 0
        if small == 2:
            return s + 1, True
        before = fallen
    return trace.size, False


@compiled
def _coarse_to_fine(tested, code, strength, level, random):
    """The start of a fit, shape (n, K)."""
    strong = max(strength, 1.0) if strength < WEAK else strength
    few = np.empty(LEVEL_SWEEPS)
    many = np.empty(COARSEST_SWEEPS)
    problems = [tested]
    for depth in range(level.size.size - 1):
        problems.append(grouped_pairs(depth, level, problems[depth]))
    p = random[0]
    lowest = np.inf
    for s in range(random.shape[0]):  # the best of several random starts
        trial = random[s]
        last, _ = _descend(
            trial, problems[-1], code, strong, penalty_of(level.size.size - 1, level), 1e-3, many
        )
        if many[last - 1] < lowest:
            lowest = many[last - 1]
            p = trial
    for depth in range(level.size.size - 2, -1, -1):
        p = interpolated(depth, level, p)
        if depth > 0 or strong > strength:
            _descend(p, problems[depth], code, strong, penalty_of(depth, level), 0.0, few)
    weaker = strong
    while weaker > max(strength, WEAKEST):  # so that what the answers leave open stays as smooth as it can
        weaker = max(strength, 0.2 * weaker)
        _descend(p, tested, code, weaker, penalty_of(0, level), 0.0, few)
    return p


@compiled
def _value(p, tested, code, strength, penalty):
    """The objective, from R instead of W: the same number up to rounding."""
    value = data_term(p, tested, code)
    if strength > 0.0:
        for i in range(p.shape[0]):
            for c in range(p.shape[1]):
                h = penalty.diagonal[i] * p[i, c]
                for e in range(penalty.start[i], penalty.start[i + 1]):
                    h += penalty.value[e] * p[penalty.column[e], c]
                value += strength * h * p[i, c]
    return value
