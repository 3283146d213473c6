"""Algorithm 1 of the paper, fully compiled, because the figures need thousands of fits.

It is `vseg.reconstruction.solvers.exponentiated_gradient` with a fixed learning rate and no Python code between
iterations; a test checks that both take the same steps.
"""

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg.reconstruction.losses import loss
from vseg.reconstruction.objective import Objective, PairRows

EPSILON = 1e-3
"""The paper's stopping rule: the total loss changes by less than this in one iteration."""
MAX_ITERATIONS = 3000
CONCENTRATION = 5.0  # of the Dirichlet distribution of random starts
FLOOR = 1e-12  # multiplicative steps cannot leave 0


def random_start(problem: Objective, seed: int, concentration: float = CONCENTRATION) -> NDArray[np.float64]:
    """Return random rows on the simplex, (n, K); the uniform p = 1/K is a fixed point of the algorithm."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(problem.segments, concentration), len(problem.layout))


def descend(
    problem: Objective,
    start: NDArray[np.float64],
    rate: float,
    *,
    epsilon: float = EPSILON,
    max_iterations: int = MAX_ITERATIONS,
) -> tuple[NDArray[np.float64], int]:
    """Run Algorithm 1 until it stops; return the maps (n, K) and the number of iterations."""
    p = start.copy()
    i, e = _pair_ends(problem.tested)
    tested = problem.tested
    iterations = _run_descent(
        p,
        i,
        tested.partner[e],
        tested.share[e],
        tested.weight[e],
        problem.code,
        problem.strength,
        problem.smoothness.matrix,
        rate,
        epsilon,
        max_iterations,
    )
    return p, iterations


def _pair_ends(tested: PairRows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first location of each pair and its entry among the rows, which hold every pair twice."""
    ends = np.repeat(np.arange(len(tested.start) - 1), np.diff(tested.start))
    entries = np.flatnonzero(ends < tested.partner)
    return ends[entries], entries


@compiled
def _run_descent(p, i, j, share, weight, code, strength, penalty, rate, epsilon, max_iterations):
    slope = np.empty_like(p)
    before = np.inf
    for step in range(max_iterations):
        value = _slope(p, i, j, share, weight, code, strength, penalty, slope)
        if abs(before - value) < epsilon:
            return step
        before = value
        _step(p, slope, rate)
    return max_iterations


@compiled
def _slope(p, i, j, share, weight, code, strength, penalty, slope):
    """Return the objective at p and write its gradient to `slope`."""
    value = 0.0
    slope[:] = 0.0
    if strength > 0.0:
        for a in range(p.shape[0]):
            for c in range(p.shape[1]):
                slope[a, c] = penalty.diagonal[a] * p[a, c]
            for e in range(penalty.start[a], penalty.start[a + 1]):
                b, along = penalty.column[e], penalty.value[e]
                for c in range(p.shape[1]):
                    slope[a, c] += along * p[b, c]
            for c in range(p.shape[1]):
                value += strength * slope[a, c] * p[a, c]
                slope[a, c] *= 2.0 * strength
    for e in range(len(i)):
        a, b = i[e], j[e]
        q = 0.0
        for c in range(p.shape[1]):
            q += p[a, c] * p[b, c]
        lost, along, _ = loss(code, q, share[e])
        value += weight[e] * lost
        along *= weight[e]
        for c in range(p.shape[1]):
            slope[a, c] += along * p[b, c]
            slope[b, c] += along * p[a, c]
    return value


@compiled
def _step(p, slope, rate):
    """Replace p by p·exp(-rate·slope), normalised; the largest exponent of a row is subtracted to avoid overflow."""
    for i in range(p.shape[0]):
        least = np.inf
        for c in range(p.shape[1]):
            least = min(least, slope[i, c])
        total = 0.0
        for c in range(p.shape[1]):
            p[i, c] *= np.exp(rate * (least - slope[i, c]))
            total += p[i, c]
        raised = 0.0
        for c in range(p.shape[1]):
            p[i, c] = max(p[i, c] / total, FLOOR)
            raised += p[i, c]
        for c in range(p.shape[1]):
            p[i, c] /= raised
