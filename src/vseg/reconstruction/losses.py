"""Losses: how far the predicted P(same) of a pair is from the share of 'same' answers.

A loss is one scalar function of the prediction q = <p_i, p_j> and the observed share k; it returns its
value, its slope in q, and the curvature of the parabola that a solver may put in its place. Compiled code
selects it by number, so that numba can keep one kernel on disk for all losses.
"""

import numpy as np

from vseg._support.numba_cache import compiled
from vseg.errors import InvalidInput

EPS = 1e-7
SQUARED_ERROR, CROSS_ENTROPY = 0, 1
CODES = {"squared_error": SQUARED_ERROR, "cross_entropy": CROSS_ENTROPY}


@compiled
def squared_error(q: float, k: float) -> tuple[float, float, float]:
    """(k - q)² of one pair (Eq. 5), its slope and curvature in q."""
    return (k - q) ** 2, 2.0 * (q - k), 2.0


@compiled
def cross_entropy(q: float, k: float) -> tuple[float, float, float]:
    """Bernoulli negative log-likelihood of one pair (Eq. 1), its slope and Fisher's expected curvature in q.

    That parabola is lowest at q = k, like the loss itself. The loss' own curvature is not: next to 0 and 1 it is so
    large that Newton steps from a certain but wrong map would never leave it.
    """
    q = min(max(q, EPS), 1.0 - EPS)
    value = -(k * np.log(q) + (1.0 - k) * np.log(1.0 - q))
    fisher = 1.0 / (q * (1.0 - q))
    return value, (q - k) * fisher, fisher


@compiled
def loss(code: int, q: float, k: float) -> tuple[float, float, float]:
    """The loss with that number."""
    if code == SQUARED_ERROR:
        return squared_error(q, k)
    return cross_entropy(q, k)


def code_of(name: str) -> int:
    """The number of a loss by its name."""
    if name not in CODES:
        raise InvalidInput(f"Unknown loss {name!r}; choose one of {', '.join(CODES)}.")
    return CODES[name]
