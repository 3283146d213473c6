"""The best pairs of a list, one after the other, compiled: pure sums in a fixed order, no BLAS.

With Q (m, S) what the draws say about each pair, around its mean, and G (S, S) their scalar products about the
target: the covariance with the target of pair c, squared, is N_c = q_cᵀGq_c. Asking a pair with q, variance V and
noise R takes a_c = q_cᵀq and b_c = q_cᵀGq to N_c - 2 a_c b_c/(V + R) + a_c² qᵀGq/(V + R)², and the variance of each
pair from V_c to V_c - a_c²/(V + R). So a pick costs two products of Q with a vector.
"""

import numpy as np

from vseg._support.numba_cache import compiled
from vseg.bayes.linear_algebra import dot4


@compiled
def picked(Q, G, noise, known, count, alone):
    """Rows of Q that are best asked next, after its first `known` rows; by their own variance if `alone`.

    Q and G are changed.
    """
    m = Q.shape[0]
    value = np.empty(m)
    variance = np.empty(m)
    for c in range(m):
        row = weighed(G, Q[c])
        value[c] = dot4(row, Q[c])
        variance[c] = dot4(Q[c], Q[c])
    is_open = np.ones(m, np.bool_)
    chosen = np.empty(count, np.int64)
    for t in range(known + count):
        best = t
        if t >= known:
            top = -np.inf
            for c in range(known, m):
                if is_open[c]:
                    score = variance[c] / noise[c] if alone else value[c] / (variance[c] + noise[c])
                    if score > top:
                        top = score
                        best = c
            chosen[t - known] = best - known
        is_open[best] = False
        deflate(Q, G, best, noise[best], value, variance)
    return chosen


@compiled
def deflate(Q, G, best, noise, value, variance):
    """What is left to learn once this row's answer is known."""
    m, S = Q.shape
    q = Q[best].copy()
    through = weighed(G, q)
    whole = dot4(q, q) + noise
    own = dot4(q, through)
    share = 1.0 / (whole + np.sqrt(noise * whole))  # of M = I - share·qqᵀ, with M² = I - qqᵀ/(V + R)
    for c in range(m):
        a = dot4(Q[c], q)
        b = dot4(Q[c], through)
        value[c] += a / whole * (a / whole * own - 2.0 * b)
        variance[c] -= a * a / whole
        for s in range(S):
            Q[c, s] -= share * a * q[s]
    for s in range(S):  # G ← MGM
        for r in range(S):
            G[s, r] -= share * (q[s] * through[r] + through[s] * q[r] - share * own * q[s] * q[r])


@compiled
def weighed(G, q):
    """Gq, of a symmetric G."""
    y = np.zeros(q.shape[0])
    for r in range(q.shape[0]):
        weight = q[r]
        for s in range(q.shape[0]):
            y[s] += weight * G[r, s]
    return y


@compiled
def squares(Y):
    """YᵀY of (y, S)."""
    S = Y.shape[1]
    G = np.zeros((S, S))
    for y in range(Y.shape[0]):
        for r in range(S):
            weight = Y[y, r]
            for s in range(S):
                G[r, s] += weight * Y[y, s]
    return G
