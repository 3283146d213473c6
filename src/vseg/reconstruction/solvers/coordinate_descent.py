"""Block coordinate descent from a coarse-to-fine start: the default solver.

A random map of a few groups of locations is fitted first, which takes microseconds, and interpolated to finer and finer
levels. A weak smoothness is approached from a strong one. Together this avoids bad local minima: one start finds what
twenty find (`make bench`, "Bad minima").
"""

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg._support.seeds import check_seed
from vseg.reconstruction.losses import SQUARED_ERROR
from vseg.reconstruction.objective import Objective, data_term
from vseg.reconstruction.solvers.coarse_to_fine import build_levels, get_penalty, group_pairs, interpolate
from vseg.reconstruction.solvers.row_updates import update_rows
from vseg.reconstruction.solvers.solution import CONVERGED, ITERATIONS, Solution, check_limits

LEVEL_SWEEPS = 3
COARSEST_SWEEPS = 60
WEAK = 0.3  # below this λ the fit passes through λ = 1, 0.2, 0.04, …
WEAKEST = 1e-4
WAY_SWEEPS = 6
PERFECT = 1e-8  # a mean loss per pair below this counts as zero
RELAX = 1.4  # over-relaxation, clipped to the simplex: still monotone


def coordinate_descent(
    objective: Objective,
    start: NDArray[np.float64] | None = None,
    *,
    seed: int,
    starts: int | None = None,
    tolerance: float = 1e-4,
    max_iterations: int = 5000,
) -> Solution:
    """Minimise by exact updates of one location at a time.

    Parameters
    ----------
    objective : Objective
    start : array, shape (n, K), optional
        Warm start; without it, coarse to fine from a random map.
    starts : int, optional
        Fit from this many random maps (default 1) and keep the solution with the lowest objective.
    tolerance : float
        Stop when the estimated remaining decrease is below this share of the objective. With λ above about 1000
        the maps are nearly constant and change so slowly that the estimate is too low.
    max_iterations : int
        Maximum number of sweeps over all locations.

    Returns
    -------
    Solution
    """
    runs = check_limits(starts, tolerance, max_iterations)
    if start is not None:
        return _solve_from(objective.check_start(start), objective, tolerance, max_iterations)
    seed = check_seed(seed)
    found = [_solve_from_random(objective, seed, run, tolerance, max_iterations) for run in range(runs)]
    return min(found, key=lambda solution: solution.trace[-1]) if runs > 1 else found[0]


def _solve_from_random(
    objective: Objective, seed: int, run: int, tolerance: float, max_iterations: int
) -> Solution:
    trace = np.empty(max_iterations)
    p, sweeps, converged = _fit(
        objective.tested, objective.segments, objective.code, objective.strength, build_levels(objective.smoothness),
        np.uint64(seed % 2**64), run, tolerance, trace,
    )  # fmt: skip
    return Solution(p, sweeps, CONVERGED if converged else ITERATIONS, trace[:sweeps])


def _solve_from(
    p: NDArray[np.float64], objective: Objective, tolerance: float, max_iterations: int
) -> Solution:
    trace = np.empty(max_iterations)
    sweeps, converged = _descend(
        p, objective.tested, objective.code, objective.strength, objective.smoothness.matrix, tolerance, trace
    )
    return Solution(p, sweeps, CONVERGED if converged else ITERATIONS, trace[:sweeps])


@compiled
def _fit(tested, segments, code, strength, level, seed, run, tolerance, trace):
    p = _coarse_to_fine(tested, segments, strength, level, seed, run)
    sweeps, converged = _descend(p, tested, code, strength, get_penalty(0, level), tolerance, trace)
    return p, sweeps, converged


@compiled
def _descend(p, tested, code, strength, penalty, tolerance, trace):
    """Sweep until the remaining decrease, extrapolated from the last two, is small twice in a row."""
    rows = np.arange(p.shape[0])
    value = _value(p, tested, code, strength, penalty)
    floor = 1e-3 * value
    perfect = 0.0  # stop below this value, where rounding or a flat minimum would never meet the tolerance
    for e in range(tested.weight.size):
        perfect += PERFECT * tested.weight[e]
    before = np.inf
    small = 0
    for s in range(trace.size):
        fallen = update_rows(p, tested, code, strength, penalty, RELAX, rows)
        value = max(value - fallen, 0.0)
        trace[s] = value
        ratio = min(max(fallen / before, 0.5), 0.98) if before > 0.0 else 0.5
        small = small + 1 if fallen * ratio / (1.0 - ratio) <= tolerance * max(value, floor) else 0
        if small == 2 or value <= perfect:
            return s + 1, True
        before = fallen
    return trace.size, False


@compiled
def _coarse_to_fine(tested, segments, strength, level, seed, run):
    """Compute the start of a fit, shape (n, K), with the squared error whatever the loss."""
    code = np.int64(SQUARED_ERROR)
    strong = max(strength, 1.0) if strength < WEAK else strength
    few = np.empty(LEVEL_SWEEPS)
    many = np.empty(COARSEST_SWEEPS)
    problems = [tested]
    for depth in range(level.size.size - 1):
        problems.append(group_pairs(depth, level, problems[depth]))
    last = level.size.size - 1
    p = _random_maps(level.size[last], segments, seed, run)
    _descend(p, problems[last], code, strong, get_penalty(last, level), 1e-3, many)
    for depth in range(level.size.size - 2, -1, -1):
        p = interpolate(depth, level, p)
        if depth > 0:
            _descend(p, problems[depth], code, strong, get_penalty(depth, level), 0.0, few)
    way = np.empty(WAY_SWEEPS if strong > strength else 0)
    while strong > max(strength, WEAKEST):  # so that what the answers do not determine is filled in smoothly
        _descend(p, tested, code, strong, get_penalty(0, level), 0.0, way)
        strong = max(strength, 0.2 * strong)
    return p


@compiled
def _random_maps(n, segments, seed, run):
    """Draw random rows on the simplex: normalised exponentials of hashed numbers (splitmix64).

    Making one of NumPy's generators would take as long as a small fit.
    """
    p = np.empty((n, segments))
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(run) * np.uint64(0xD1342543DE82EF95)
    for i in range(n):
        total = 0.0
        for r in range(segments):
            state += np.uint64(0x9E3779B97F4A7C15)
            z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z = (z ^ (z >> np.uint64(31))) >> np.uint64(11)
            p[i, r] = -np.log((np.float64(z) + 0.5) * 2.0**-53)
            total += p[i, r]
        for r in range(segments):
            p[i, r] /= total
    return p


@compiled
def _value(p, tested, code, strength, penalty):
    """Compute the objective from R instead of W: the same number up to rounding."""
    value = data_term(p, tested, code)
    if strength > 0.0:
        for i in range(p.shape[0]):
            for c in range(p.shape[1]):
                h = penalty.diagonal[i] * p[i, c]
                for e in range(penalty.start[i], penalty.start[i + 1]):
                    h += penalty.value[e] * p[penalty.column[e], c]
                value += strength * h * p[i, c]
    return value
