"""The model, compiled: maps from weights, their cost given the answers, its gradient and its curvature.

    h_c = B u_c, u ~ N(0, I);   f = Q h;   p = softmax(f);   q_ij = γ₀ + (1 - γ₀ - γ₁) <p_i, p_j>
    cost = -Σ log P(answers | q) + ½ |u|²

with BBᵀ the prior covariance over locations. The softmax ignores what all K fields have in common, so only their K - 1
orthonormal contrasts Q are computed: the same prior and the same posterior with fewer unknowns. Loops run along whole
rows, which compilers vectorise without changing the order of sums.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg.data.responses import Tally

MIN_PROBABILITY = 1e-9  # of any answer, so that logarithms stay finite


class AnswerCounts(NamedTuple):
    """Answers to each tested pair as flat arrays, and the lapse rates.

    Attributes
    ----------
    i, j : (T,)
        The locations of each pair.
    same, trials : (T,)
        The number of 'same' answers, and of all answers, to each pair.
    gamma0, gamma1 : float
        P('same') where all is different, and P('different') where all is the same.
    """

    i: NDArray[np.uint32]
    j: NDArray[np.uint32]
    same: NDArray[np.float64]
    trials: NDArray[np.float64]
    gamma0: float
    gamma1: float


class CovarianceRoot(NamedTuple):
    """The root B of a covariance over locations: `tall` is B, (n, m), `wide` its transpose; both are contiguous."""

    wide: NDArray[np.float64]
    tall: NDArray[np.float64]

    def rescale(self, scale: float) -> "CovarianceRoot":
        """Return the root of the covariance times scale²."""
        return CovarianceRoot(scale * self.wide, scale * self.tall)


def count_answers(tally: Tally, gamma0: float = 0.0, gamma1: float = 0.0) -> AnswerCounts:
    """Return the counts of a tally as the compiled functions take them."""
    return AnswerCounts(
        tally.pairs.i.astype(np.uint32),
        tally.pairs.j.astype(np.uint32),
        tally.k.astype(np.float64),
        tally.n.astype(np.float64),
        float(gamma0),
        float(gamma1),
    )


def helmert_contrasts(segments: int) -> NDArray[np.float64]:
    """Return Helmert's contrasts: (K, K-1) orthonormal columns, each summing to zero."""
    q = np.zeros((segments, segments - 1))
    for c in range(1, segments):
        q[:c, c - 1] = 1
        q[c, c - 1] = -c
    return q / np.sqrt((q**2).sum(axis=0))


@compiled
def compute_maps(u, root, contrasts):
    """Return the maps (n, K) for the weights u, (K-1, m)."""
    return softmax_fields(compute_fields(u, root.wide), contrasts)


@compiled
def compute_fields(u, wide):
    """Return the fields h (K-1, n) for the weights u, (K-1, m)."""
    C, m = u.shape
    n = wide.shape[1]
    h = np.zeros((C, n))
    for c in range(C):
        for a in range(m):
            weight = u[c, a]
            for i in range(n):
                h[c, i] += weight * wide[a, i]
    return h


@compiled
def softmax_fields(h, contrasts):
    """Return the maps (n, K) for the fields h, (K-1, n)."""
    C, n = h.shape
    K = contrasts.shape[0]
    p = np.empty((n, K))
    for i in range(n):
        top = -np.inf
        for k in range(K):
            f = 0.0
            for c in range(C):
                f += contrasts[k, c] * h[c, i]
            p[i, k] = f
            top = max(top, f)
        total = 0.0
        for k in range(K):
            p[i, k] = np.exp(p[i, k] - top)
            total += p[i, k]
        for k in range(K):
            p[i, k] /= total
    return p


@compiled
def cost_and_gradient(u, root, contrasts, answers, with_cost):
    """Return the cost and its gradient (K-1, m) in u.

    If `with_cost` is false the cost is returned as 0, which saves the logarithms.
    """
    C, m = u.shape
    p = compute_maps(u, root, contrasts)
    n, K = p.shape
    g = np.zeros((n, K))
    low = answers.gamma0 + MIN_PROBABILITY
    span = 1.0 - answers.gamma0 - answers.gamma1 - 2.0 * MIN_PROBABILITY
    value = 0.0
    for t in range(answers.i.shape[0]):
        i = answers.i[t]
        j = answers.j[t]
        d = 0.0
        for k in range(K):
            d += p[i, k] * p[j, k]
        q = min(low + span * d, 1.0 - MIN_PROBABILITY)
        same = answers.same[t]
        other = answers.trials[t] - same
        if with_cost:
            if same > 0.0:
                value -= same * np.log(q)
            if other > 0.0:
                value -= other * np.log(1.0 - q)
        pull = span * (other / (1.0 - q) - same / q)
        for k in range(K):
            g[i, k] += pull * p[j, k]
            g[j, k] += pull * p[i, k]
    gradient = u.copy()
    along = np.empty(C)
    for i in range(n):
        mean = 0.0
        for k in range(K):
            mean += g[i, k] * p[i, k]
        for c in range(C):
            along[c] = 0.0
        for k in range(K):
            f = p[i, k] * (g[i, k] - mean)
            for c in range(C):
                along[c] += contrasts[k, c] * f
        for c in range(C):
            weight = along[c]
            for a in range(m):
                gradient[c, a] += weight * root.tall[i, a]
    if with_cost:
        for c in range(C):
            for a in range(m):
                value += 0.5 * u[c, a] * u[c, a]
    return value, gradient


@compiled
def curvature(u, root, contrasts, answers):
    """Return the Fisher curvature of the cost, I + JᵀWJ with W = n/(q(1-q)): (d, d) with d = (K-1)·m.

    A pair involves two locations, so JᵀWJ = BᵀDB with a sparse D: its product with B takes two rows per pair.
    """
    C, m = u.shape
    p = compute_maps(u, root, contrasts)
    n, K = p.shape
    T = answers.i.shape[0]
    low = answers.gamma0 + MIN_PROBABILITY
    span = 1.0 - answers.gamma0 - answers.gamma1 - 2.0 * MIN_PROBABILITY
    at_i = np.zeros((T, C))
    at_j = np.zeros((T, C))
    for t in range(T):
        i = answers.i[t]
        j = answers.j[t]
        d = 0.0
        for k in range(K):
            d += p[i, k] * p[j, k]
        q = min(low + span * d, 1.0 - MIN_PROBABILITY)
        weight = span * np.sqrt(answers.trials[t] / (q * (1.0 - q)))
        for k in range(K):
            both = p[i, k] * p[j, k]
            slope_i = weight * (both - p[i, k] * d)
            slope_j = weight * (both - p[j, k] * d)
            for c in range(C):
                at_i[t, c] += contrasts[k, c] * slope_i
                at_j[t, c] += contrasts[k, c] * slope_j
    H = np.zeros((C * m, C * m))
    own = np.empty(n)
    spread = np.empty((n, m))
    for c in range(C):
        for e in range(c + 1):
            own[:] = 0.0
            spread[:] = 0.0
            for t in range(T):
                i = answers.i[t]
                j = answers.j[t]
                own[i] += at_i[t, c] * at_i[t, e]
                own[j] += at_j[t, c] * at_j[t, e]
                forth = at_i[t, c] * at_j[t, e]
                back = at_j[t, c] * at_i[t, e]
                for a in range(m):
                    spread[i, a] += forth * root.tall[j, a]
                    spread[j, a] += back * root.tall[i, a]
            for i in range(n):
                for a in range(m):
                    spread[i, a] += own[i] * root.tall[i, a]
            block = np.dot(root.wide, spread)
            for a in range(m):
                for b in range(m):
                    H[c * m + a, e * m + b] = block[a, b]
                    H[e * m + b, c * m + a] = block[a, b]
    for a in range(C * m):
        H[a, a] += 1.0
    return H


@compiled
def scaled_jacobian(u, root, contrasts, answers):
    """Return J (T, d) with I + JᵀJ the curvature: gradients of the answers' means over their standard deviations."""
    C, m = u.shape
    p = compute_maps(u, root, contrasts)
    K = p.shape[1]
    T = answers.i.shape[0]
    low = answers.gamma0 + MIN_PROBABILITY
    span = 1.0 - answers.gamma0 - answers.gamma1 - 2.0 * MIN_PROBABILITY
    jacobian = np.zeros((T, C * m))
    for t in range(T):
        i = answers.i[t]
        j = answers.j[t]
        d = 0.0
        for k in range(K):
            d += p[i, k] * p[j, k]
        q = min(low + span * d, 1.0 - MIN_PROBABILITY)
        weight = span * np.sqrt(answers.trials[t] / (q * (1.0 - q)))
        for c in range(C):
            at_i = 0.0
            at_j = 0.0
            for k in range(K):
                both = p[i, k] * p[j, k]
                at_i += contrasts[k, c] * weight * (both - p[i, k] * d)
                at_j += contrasts[k, c] * weight * (both - p[j, k] * d)
            for a in range(m):
                jacobian[t, c * m + a] = at_i * root.tall[i, a] + at_j * root.tall[j, a]
    return jacobian
