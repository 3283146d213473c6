"""The most probable maps given the answers: L-BFGS in the weights u, compiled, from any start."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg.bayes.model import Answers, Root, contrasts, cost

MEMORY = 12
TOLERANCE = 1e-6
STEPS = 400
HALVINGS = 25
PATIENCE = 2  # steps in a row that gain next to nothing
NOISE = 0.3  # variance of the noise in fields that start a search


class Mode(NamedTuple):
    """Weights u (K-1, m) at a minimum of the cost, and that cost."""

    u: NDArray[np.float64]
    value: float


def mode(
    answers: Answers, root: Root, starts: list[NDArray[np.float64]], *, tolerance: float = TOLERANCE
) -> Mode:
    """The lowest minimum that is reached from these starts, each (K-1, m)."""
    mixing = contrasts(len(starts[0]) + 1)
    found = [Mode(*descend(np.array(u), root, mixing, answers, tolerance, STEPS)) for u in starts]
    return min(found, key=lambda one: one.value)


def weights_of(fields: NDArray[np.float64], root: Root) -> NDArray[np.float64]:
    """(K-1, m) the weights whose fields come close to these, (K-1, n): a start for the search.

    The root's rows are orthogonal, so the weights are projections, shrunk a little as if the fields were seen in
    noise: rough directions of little prior variance stay small.
    """
    return fields @ root.tall / (np.sum(root.tall**2, axis=0) + NOISE)


@compiled
def descend(u, root, mixing, answers, tolerance, steps):
    """L-BFGS with halved steps: lowers the cost at every step; returns where it ends and the cost there."""
    shape = u.shape
    d = u.size
    value, g = cost(u, root, mixing, answers, True)
    moves = np.zeros((MEMORY, d))
    turns = np.zeros((MEMORY, d))
    rho = np.zeros(MEMORY)
    alpha = np.zeros(MEMORY)
    kept = 0
    idle = 0
    for _ in range(steps):
        slope = g.ravel()
        way = -slope
        for back in range(min(kept, MEMORY)):
            r = (kept - 1 - back) % MEMORY
            alpha[r] = rho[r] * inner(moves[r], way)
            way -= alpha[r] * turns[r]
        if kept > 0:
            r = (kept - 1) % MEMORY
            way /= rho[r] * inner(turns[r], turns[r])
        else:
            way /= max(1.0, np.sqrt(inner(way, way)))
        for back in range(min(kept, MEMORY) - 1, -1, -1):
            r = (kept - 1 - back) % MEMORY
            way += (alpha[r] - rho[r] * inner(turns[r], way)) * moves[r]
        fall = inner(slope, way)
        if not fall < 0.0:
            if kept == 0:
                break
            kept = 0
            continue
        step = 1.0
        lower = value
        for _ in range(HALVINGS):
            there = u + step * way.reshape(shape)
            lower, g_there = cost(there, root, mixing, answers, True)
            if lower <= value + 1e-4 * step * fall:
                break
            step *= 0.5
        if not lower < value:
            if kept == 0:
                break
            kept = 0
            continue
        turn = g_there.ravel() - slope
        bend = step * inner(way, turn)
        if bend > 1e-10:
            r = kept % MEMORY
            moves[r] = step * way
            turns[r] = turn
            rho[r] = 1.0 / bend
            kept += 1
        gain = value - lower
        u = there
        g = g_there
        value = lower
        idle = idle + 1 if gain < tolerance * (1.0 + abs(value)) else 0
        if idle > PATIENCE:
            break
    return u, value


@compiled
def inner(x, y):
    """Σ x·y, four sums side by side so that it vectorises in a fixed order."""
    a = 0.0
    b = 0.0
    c = 0.0
    d = 0.0
    whole = x.shape[0] - x.shape[0] % 4
    for r in range(0, whole, 4):
        a += x[r] * y[r]
        b += x[r + 1] * y[r + 1]
        c += x[r + 2] * y[r + 2]
        d += x[r + 3] * y[r + 3]
    for r in range(whole, x.shape[0]):
        a += x[r] * y[r]
    return (a + b) + (c + d)
