"""The model's cost and slope, compiled: from weights of a covariance's root to maps, to the answers' likelihood.

    h_c = Bᵀ u_c, u ~ N(0, I);   f = Q h;   p = softmax(f);   q_ij = γ₀ + (1 - γ₀ - γ₁) <p_i, p_j>
    cost = -Σ log P(answers | q) + ½ |u|²

with BBᵀ the prior covariance over locations. The softmax does not see what all K fields share, so only their K - 1
orthonormal contrasts Q are carried: the same prior and the same posterior with fewer unknowns. Products run along
whole rows, which compilers vectorise without changing the order of sums.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg.data.responses import Tally

SURE = 1e-9  # no answer is ever quite impossible


class Answers(NamedTuple):
    """The tested pairs as flat arrays: 'same' answers of all trials, and the shares of errors γ₀, γ₁."""

    i: NDArray[np.uint32]
    j: NDArray[np.uint32]
    same: NDArray[np.float64]
    trials: NDArray[np.float64]
    gamma0: float
    gamma1: float


class Root(NamedTuple):
    """B of a covariance s²C, from both sides: `wide` is (m, n), `tall` its transpose, both contiguous."""

    wide: NDArray[np.float64]
    tall: NDArray[np.float64]

    def scaled(self, scale: float) -> "Root":
        """The root of the covariance times scale²."""
        return Root(scale * self.wide, scale * self.tall)


def answers_of(tally: Tally, gamma0: float = 0.0, gamma1: float = 0.0) -> Answers:
    """A tally as the kernels take it."""
    return Answers(
        tally.pairs.i.astype(np.uint32),
        tally.pairs.j.astype(np.uint32),
        tally.k.astype(np.float64),
        tally.n.astype(np.float64),
        float(gamma0),
        float(gamma1),
    )


def contrasts(segments: int) -> NDArray[np.float64]:
    """(K, K-1) orthonormal columns, each summing to zero (Helmert's)."""
    q = np.zeros((segments, segments - 1))
    for c in range(1, segments):
        q[:c, c - 1] = 1
        q[c, c - 1] = -c
    return q / np.sqrt((q**2).sum(axis=0))


@compiled
def maps_of(u, root, mixing):
    """(n, K) maps of the weights u, shape (K-1, m)."""
    C, m = u.shape
    n = root.wide.shape[1]
    K = mixing.shape[0]
    h = np.zeros((C, n))
    for c in range(C):
        for a in range(m):
            weight = u[c, a]
            for i in range(n):
                h[c, i] += weight * root.wide[a, i]
    p = np.empty((n, K))
    for i in range(n):
        top = -np.inf
        for k in range(K):
            f = 0.0
            for c in range(C):
                f += mixing[k, c] * h[c, i]
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
def cost(u, root, mixing, answers, valued):
    """The cost and its slope (K-1, m) in u; without the cost, which only the logarithms make dear, if not `valued`."""
    C, m = u.shape
    p = maps_of(u, root, mixing)
    n, K = p.shape
    g = np.zeros((n, K))
    low = answers.gamma0 + SURE
    span = 1.0 - answers.gamma0 - answers.gamma1 - 2.0 * SURE
    value = 0.0
    for t in range(answers.i.shape[0]):
        i = answers.i[t]
        j = answers.j[t]
        d = 0.0
        for k in range(K):
            d += p[i, k] * p[j, k]
        q = min(low + span * d, 1.0 - SURE)
        same = answers.same[t]
        other = answers.trials[t] - same
        if valued:
            if same > 0.0:
                value -= same * np.log(q)
            if other > 0.0:
                value -= other * np.log(1.0 - q)
        pull = span * (other / (1.0 - q) - same / q)
        for k in range(K):
            g[i, k] += pull * p[j, k]
            g[j, k] += pull * p[i, k]
    slope = u.copy()
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
                along[c] += mixing[k, c] * f
        for c in range(C):
            weight = along[c]
            for a in range(m):
                slope[c, a] += weight * root.tall[i, a]
    if valued:
        for c in range(C):
            for a in range(m):
                value += 0.5 * u[c, a] * u[c, a]
    return value, slope


@compiled
def curvature(u, root, mixing, answers):
    """(d, d) Fisher's curvature of the cost, I + JᵀWJ with W = n/(q(1-q)), d = (K-1)·m, contrast by contrast.

    A pair touches two locations, so JᵀWJ = B D Bᵀ with a sparse D: its product with B takes two rows a pair.
    """
    C, m = u.shape
    p = maps_of(u, root, mixing)
    n, K = p.shape
    T = answers.i.shape[0]
    low = answers.gamma0 + SURE
    span = 1.0 - answers.gamma0 - answers.gamma1 - 2.0 * SURE
    at_i = np.zeros((T, C))
    at_j = np.zeros((T, C))
    for t in range(T):
        i = answers.i[t]
        j = answers.j[t]
        d = 0.0
        for k in range(K):
            d += p[i, k] * p[j, k]
        q = min(low + span * d, 1.0 - SURE)
        weight = span * np.sqrt(answers.trials[t] / (q * (1.0 - q)))
        for k in range(K):
            both = p[i, k] * p[j, k]
            slope_i = weight * (both - p[i, k] * d)
            slope_j = weight * (both - p[j, k] * d)
            for c in range(C):
                at_i[t, c] += mixing[k, c] * slope_i
                at_j[t, c] += mixing[k, c] * slope_j
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
def slopes_of(u, root, mixing, answers):
    """(T, d) the slope of each answer's expectation in u, over its standard deviation: JᵀJ + I is the curvature."""
    C, m = u.shape
    p = maps_of(u, root, mixing)
    K = p.shape[1]
    T = answers.i.shape[0]
    low = answers.gamma0 + SURE
    span = 1.0 - answers.gamma0 - answers.gamma1 - 2.0 * SURE
    found = np.zeros((T, C * m))
    for t in range(T):
        i = answers.i[t]
        j = answers.j[t]
        d = 0.0
        for k in range(K):
            d += p[i, k] * p[j, k]
        q = min(low + span * d, 1.0 - SURE)
        weight = span * np.sqrt(answers.trials[t] / (q * (1.0 - q)))
        for c in range(C):
            at_i = 0.0
            at_j = 0.0
            for k in range(K):
                both = p[i, k] * p[j, k]
                at_i += mixing[k, c] * weight * (both - p[i, k] * d)
                at_j += mixing[k, c] * weight * (both - p[j, k] * d)
            for a in range(m):
                found[t, c * m + a] = at_i * root.tall[i, a] + at_j * root.tall[j, a]
    return found
