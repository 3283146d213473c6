"""Choose the pairs to ask next from draws of the posterior: pure functions.

next_pairs          the pairs to ask next, given a state
select_candidates   the best of some candidate pairs, given draws
pick_greedily       the compiled core of it: sums in a fixed order, no BLAS

With S draws, q_c (S,) what they say about P(same) of a candidate pair c, and Y what they say about the target, an
answer to c is expected to lower the target's variance by |Cov(Y, q_c)|² / (Var q_c + E[q_c(1 - q_c)]). Covariances of
draws are products of S columns, so everything is done in S×S: the target enters only as G = YᵀY, and after a pair is
chosen the draws are deflated, Q ← QM and G ← MGM with M² = I - qqᵀ/(V + R), before the next one is chosen. This
spreads a batch over different pairs.
"""

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg._support.seeds import check_seed
from vseg.adaptive.state import State
from vseg.bayes.linear_algebra import dot4
from vseg.data.layout import Layout
from vseg.data.pairs import Pairs
from vseg.designs import covering
from vseg.errors import InvalidInput

RULES = ("variance_reduction", "bald", "random")
TARGETS = ("maps", "pairs")
CANDIDATES = 1000
TARGET_PAIRS = 800
MANY_SEGMENTS = 5  # from here on labels differ too much between draws to compare probabilities one by one
OPENING_DIVISOR = 3  # a session opens with n/3 covering pairs
MIN_NOISE = 1e-3  # smallest variance of an answer

Indices = NDArray[np.int64]


def next_pairs(
    state: State,
    count: int,
    *,
    rule: str = "variance_reduction",
    pending: Pairs | None = None,
    seed: int,
) -> Pairs:
    """Choose the pairs to ask next.

    A session opens with n/3 covering pairs, in the same order for everyone who shares the state. No pair is asked
    twice while others are left, so fewer than `count` pairs are returned when the last ones are chosen.

    Parameters
    ----------
    state : State
        The posterior given the answers so far.
    count : int
        Number of pairs.
    rule : "variance_reduction", "bald" or "random"
        Choose the pairs that are expected to reduce the variance of the maps most; whose answers are most uncertain
        because of the maps; or random pairs.
    pending : Pairs, optional
        Pairs that were chosen before and are not answered yet: they count as asked.
    seed : int
        The same answers, pending pairs and seed give the same pairs.

    Returns
    -------
    Pairs
        The pairs to ask next, in order; empty when every pair was asked.

    Examples
    --------
    >>> from vseg import Grid
    >>> state = State(Grid(6), segments=2, seed=0)
    >>> len(next_pairs(state, 4, seed=0))
    4
    """
    if rule not in RULES:
        raise InvalidInput(f"Unknown rule {rule!r}; choose one of {', '.join(RULES)}.")
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise InvalidInput(f"The number of pairs is a whole number from 1 up, got {count!r}.")
    layout, waiting = state.layout, _check_pending(pending, state.layout)
    taken = np.union1d(_keys(state.pairs, layout), _keys(waiting, layout))
    opening = _opening_pairs(layout, taken, state.trials + len(waiting), count, state.seed)
    if len(opening) == count:
        return opening
    taken = np.union1d(taken, _keys(opening, layout))
    rng = np.random.default_rng([check_seed(seed), state.trials, len(waiting)])
    candidates = _draw_candidates(layout, taken, max(CANDIDATES, count), rng)
    missing = min(count - len(opening), len(candidates))
    if rule == "random" or not state.trials:
        chosen = candidates[:missing]
    else:
        asked = np.concatenate([_as_rows(waiting), _as_rows(opening)])
        target = "pairs" if state.segments >= MANY_SEGMENTS else "maps"
        best = select_candidates(
            state.draws,
            candidates,
            missing,
            rule=rule,
            target=target,
            lapses=state.lapses,
            asked=asked,
            rng=rng,
        )
        chosen = candidates[best]
    i, j = np.concatenate([_as_rows(opening), chosen]).T
    return Pairs(layout, i, j)


def select_candidates(
    draws: NDArray[np.float64],
    candidates: Indices,
    count: int,
    *,
    rule: str = "variance_reduction",
    target: str = "maps",
    lapses: tuple[float, float] = (0.0, 0.0),
    asked: Indices | None = None,
    rng: np.random.Generator,
) -> Indices:
    """Return the numbers of the best candidates, in the order in which they are chosen.

    Parameters
    ----------
    draws : (S, n, K)
        Maps drawn from the posterior.
    candidates : (m, 2)
        Pairs to choose from.
    count : int
        Number of pairs to choose.
    rule : "variance_reduction" or "bald"
        As for `next_pairs`.
    target : "maps" or "pairs"
        What is to become certain: all probabilities, or P(same) of random pairs, which does not depend on labels.
    lapses : (γ₀, γ₁)
        P('same') where all is different, P('different') where all is the same.
    asked : (a, 2), optional
        Pairs that will be answered anyway.
    rng : numpy.random.Generator
        Draws the random pairs of the target "pairs".

    Returns
    -------
    (count,) array of int
        Row numbers of `candidates`, in the order in which they are chosen.
    """
    if target not in TARGETS:
        raise InvalidInput(f"Unknown target {target!r}; choose one of {', '.join(TARGETS)}.")
    S, n, _ = draws.shape
    first = np.zeros((0, 2), np.int64) if asked is None else asked
    pairs = np.concatenate([first, candidates])
    q = lapses[0] + (1 - sum(lapses)) * _same_probabilities(draws, pairs)
    noise = np.maximum(np.mean(q * (1 - q), axis=1), MIN_NOISE)
    Q = (q - q.mean(axis=1, keepdims=True)) / np.sqrt(S)
    if target == "maps":
        Y = draws.reshape(S, -1).T
    else:
        Y = _same_probabilities(draws, _random_pairs(n, TARGET_PAIRS, rng))
    Y = (Y - Y.mean(axis=1, keepdims=True)) / np.sqrt(S)
    G = gram_matrix(np.ascontiguousarray(Y))
    return pick_greedily(Q, G, noise, len(first), min(count, len(candidates)), rule == "bald")


@compiled
def pick_greedily(Q, G, noise, first, count, by_variance):
    """Return the `count` best rows of Q, one after the other, given that its first `first` rows are asked anyway.

    With Q (m, S) what the draws say about each pair, around its mean, and G (S, S) the scalar products of what they say
    about the target: the squared covariance of pair c with the target is N_c = q_cᵀGq_c. Asking a pair with q, variance
    V and noise R changes N_c to N_c - 2 a_c b_c/(V + R) + a_c² qᵀGq/(V + R)², with a_c = q_cᵀq and b_c = q_cᵀGq, and
    the variance V_c to V_c - a_c²/(V + R). So a pick costs two products of Q with a vector. Rows are numbered from
    `first` on. If `by_variance`, pairs are scored by their own variance over noise instead. Q and G are overwritten.
    """
    m = Q.shape[0]
    value = np.empty(m)
    variance = np.empty(m)
    for c in range(m):
        row = multiply_symmetric(G, Q[c])
        value[c] = dot4(row, Q[c])
        variance[c] = dot4(Q[c], Q[c])
    is_open = np.ones(m, np.bool_)
    chosen = np.empty(count, np.int64)
    for t in range(first + count):
        best = t
        if t >= first:
            top = -np.inf
            for c in range(first, m):
                if is_open[c]:
                    score = variance[c] / noise[c] if by_variance else value[c] / (variance[c] + noise[c])
                    if score > top:
                        top = score
                        best = c
            chosen[t - first] = best - first
        is_open[best] = False
        deflate(Q, G, best, noise[best], value, variance)
    return chosen


@compiled
def deflate(Q, G, best, noise, value, variance):
    """Update Q, G, value and variance for the answer to row `best`."""
    m, S = Q.shape
    q = Q[best].copy()
    product = multiply_symmetric(G, q)
    total = dot4(q, q) + noise
    own = dot4(q, product)
    share = 1.0 / (total + np.sqrt(noise * total))  # of M = I - share·qqᵀ, with M² = I - qqᵀ/(V + R)
    for c in range(m):
        a = dot4(Q[c], q)
        b = dot4(Q[c], product)
        value[c] += a / total * (a / total * own - 2.0 * b)
        variance[c] -= a * a / total
        for s in range(S):
            Q[c, s] -= share * a * q[s]
    for s in range(S):  # G ← MGM
        for r in range(S):
            G[s, r] -= share * (q[s] * product[r] + product[s] * q[r] - share * own * q[s] * q[r])


@compiled
def multiply_symmetric(G, q):
    """Return Gq for a symmetric G."""
    y = np.zeros(q.shape[0])
    for r in range(q.shape[0]):
        weight = q[r]
        for s in range(q.shape[0]):
            y[s] += weight * G[r, s]
    return y


@compiled
def gram_matrix(Y):
    """Return YᵀY for Y (y, S)."""
    S = Y.shape[1]
    G = np.zeros((S, S))
    for y in range(Y.shape[0]):
        for r in range(S):
            weight = Y[y, r]
            for s in range(S):
                G[r, s] += weight * Y[y, s]
    return G


def _same_probabilities(draws: NDArray[np.float64], pairs: Indices) -> NDArray[np.float64]:
    """Return P(same) of each pair in each draw, (m, S)."""
    rows = np.ascontiguousarray(draws.transpose(1, 0, 2))
    return np.einsum("msk,msk->ms", rows[pairs[:, 0]], rows[pairs[:, 1]])


def _opening_pairs(layout: Layout, taken: Indices, asked: int, count: int, seed: int) -> Pairs:
    """Return what is left of the session's opening, at most `count` pairs."""
    n = len(layout)
    length = -(-n // OPENING_DIVISOR)
    if asked >= length:
        return Pairs(layout, [], [])
    opening = covering(layout, trials=-(-n // 2), seed=seed).take(np.arange(length))
    fresh = np.flatnonzero(~np.isin(_keys(opening, layout), taken))
    return opening.take(fresh[: min(count, length - asked)])


def _draw_candidates(layout: Layout, taken: Indices, count: int, rng: np.random.Generator) -> Indices:
    """Draw pairs, (m, 2), that were not asked; any pairs once all have been."""
    n = len(layout)
    total = n * (n - 1) // 2
    if len(taken) >= total:
        taken = taken[:0]
    if 2 * (len(taken) + count) > total:
        i, j = np.triu_indices(n, 1)
        keys = rng.permutation(np.setdiff1d(i * n + j, taken))[:count]
    else:
        pairs = _random_pairs(n, 3 * count, rng)
        keys = pairs[:, 0] * n + pairs[:, 1]
        keys = keys[np.sort(np.unique(keys, return_index=True)[1])]
        keys = keys[~np.isin(keys, taken)][:count]
    return np.stack(np.divmod(keys, n), axis=1)


def _random_pairs(n: int, count: int, rng: np.random.Generator) -> Indices:
    """Draw pairs of different locations, (count, 2), the smaller number first."""
    i = rng.integers(n, size=count)
    j = (i + rng.integers(1, n, size=count)) % n
    return np.stack([np.minimum(i, j), np.maximum(i, j)], axis=1)


def _check_pending(pending: Pairs | None, layout: Layout) -> Pairs:
    if pending is None:
        return Pairs(layout, [], [])
    if pending.layout != layout:
        raise InvalidInput(f"The pending pairs lie on {pending.layout}, the state on {layout}.")
    return pending


def _as_rows(pairs: Pairs) -> Indices:
    """Return the pairs as an array (count, 2)."""
    return np.stack([pairs.i, pairs.j], axis=1)


def _keys(pairs: Pairs, layout: Layout) -> Indices:
    """Return one number for each pair, to compare pairs by."""
    return pairs.i * len(layout) + pairs.j
