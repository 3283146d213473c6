"""Losses: the distance between the predicted P(same) of a pair and the observed share of 'same' answers.

A loss is one scalar function of the prediction q = <p_i, p_j> and the observed share k; it returns its
value, its slope in q, and the curvature of the parabola that a solver may use instead of it. Compiled code
selects it by number, so that numba caches one kernel for all losses.
"""

import numpy as np

from vseg._support.numba_cache import compiled
from vseg.errors import InvalidInput

EPS = 1e-7
SQUARED_ERROR, CROSS_ENTROPY = 0, 1
LOSS_CODES = {"squared_error": SQUARED_ERROR, "cross_entropy": CROSS_ENTROPY}


@compiled
def squared_error(q: float, k: float) -> tuple[float, float, float]:
    """Return (k - q)² of one pair (Eq. 6), its slope and its curvature in q."""
    return (k - q) ** 2, 2.0 * (q - k), 2.0


@compiled
def cross_entropy(q: float, k: float) -> tuple[float, float, float]:
    """Return the negative log-likelihood of one pair (Eq. 1), its slope and Fisher's expected curvature in q.

    The parabola with Fisher's curvature has its minimum at q = k, like the loss itself. The second derivative of the
    loss is so large next to 0 and 1 that Newton steps would never leave a certain but wrong map.
    """
    q = min(max(q, EPS), 1.0 - EPS)
    value = -(k * np.log(q) + (1.0 - k) * np.log(1.0 - q))
    fisher = 1.0 / (q * (1.0 - q))
    return value, (q - k) * fisher, fisher


@compiled
def loss(code: int, q: float, k: float) -> tuple[float, float, float]:
    """Evaluate the loss with this code."""
    if code == SQUARED_ERROR:
        return squared_error(q, k)
    return cross_entropy(q, k)


def get_loss_code(name: str) -> int:
    """Return the code of the loss with this name."""
    if name not in LOSS_CODES:
        raise InvalidInput(f"Unknown loss {name!r}; choose one of {', '.join(LOSS_CODES)}.")
    return LOSS_CODES[name]
