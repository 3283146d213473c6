"""Algorithm 1 of the paper, compiled whole: thousands of fits are made of it.

Implement `vseg.reconstruction.solvers.exponentiated_gradient` with a fixed learning rate and no Python code
between two iterations; a test holds the two together.
"""

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg.reconstruction.losses import loss
from vseg.reconstruction.objective import Objective

EPSILON = 1e-3
"""The paper's stopping rule: the total loss changes by less than this in one iteration."""
LONGEST = 3000
CONCENTRATION = 5.0  # of the Dirichlet distribution from which starts are drawn
FLOOR = 1e-12  # a zero would never recover


def random_start(problem: Objective, seed: int, concentration: float = CONCENTRATION) -> NDArray[np.float64]:
    """Random rows on the simplex, (n, K); p = 1/K itself is a fixed point of the algorithm."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(problem.segments, concentration), len(problem.layout))


def descended(
    problem: Objective,
    start: NDArray[np.float64],
    rate: float,
    *,
    epsilon: float = EPSILON,
    longest: int = LONGEST,
) -> tuple[NDArray[np.float64], int]:
    """Maps after Algorithm 1 has stopped, shape (n, K), and the number of iterations it took."""
    p = start.copy()
    took = _descend(
        p, problem.tested, problem.code, problem.strength, problem.smoothness.matrix, rate, epsilon, longest
    )
    return p, took


@compiled
def _descend(p, tested, code, strength, penalty, rate, epsilon, longest):
    slope = np.empty_like(p)
    before = np.inf
    for step in range(longest):
        value = _slope(p, tested, code, strength, penalty, slope)
        if abs(before - value) < epsilon:
            return step
        before = value
        _step(p, slope, rate)
    return longest


@compiled
def _slope(p, tested, code, strength, penalty, slope):
    """The objective at p; its slope is left in `slope`."""
    value = 0.0
    for i in range(p.shape[0]):
        for c in range(p.shape[1]):
            slope[i, c] = penalty.diagonal[i] * p[i, c] if strength > 0.0 else 0.0
        if strength > 0.0:
            for e in range(penalty.start[i], penalty.start[i + 1]):
                for c in range(p.shape[1]):
                    slope[i, c] += penalty.value[e] * p[penalty.column[e], c]
            for c in range(p.shape[1]):
                value += strength * slope[i, c] * p[i, c]
                slope[i, c] *= 2.0 * strength
        for e in range(tested.start[i], tested.start[i + 1]):
            j = tested.partner[e]
            q = 0.0
            for c in range(p.shape[1]):
                q += p[i, c] * p[j, c]
            lost, along, _ = loss(code, q, tested.share[e])
            value += 0.5 * tested.weight[e] * lost  # each pair is met from both its ends
            for c in range(p.shape[1]):
                slope[i, c] += tested.weight[e] * along * p[j, c]
    return value


@compiled
def _step(p, slope, rate):
    """p ← p·exp(-rate·slope), normalised; the largest exponent of a row is taken out, so nothing overflows."""
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
