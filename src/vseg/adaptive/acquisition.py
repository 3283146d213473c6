"""Choosing pairs from posterior draws: pure functions.

With S draws, q_c (S,) what they say about P(same) of a candidate pair c, and Y what they say about the target, an
answer to c is expected to lower the target's variance by |Cov(Y, q_c)|² / (Var q_c + E[q_c(1 - q_c)]). Covariances of
draws are products of S columns, so everything happens in S×S: the target enters as G = YᵀY alone, and asking a pair
deflates the draws, Q ← QM and G ← MGM with M² = I - qqᵀ/(V + R), before the next one is chosen. A batch so spreads out.
"""

import numpy as np
from numpy.typing import NDArray

from vseg._support.seeds import check_seed
from vseg.adaptive.greedy_selection import picked, squares
from vseg.adaptive.state import State
from vseg.data.layout import Layout
from vseg.data.pairs import Pairs
from vseg.designs import covering
from vseg.errors import InvalidInput

RULES = ("variance_reduction", "bald", "random")
TARGETS = ("maps", "pairs")
CANDIDATES = 1000
TARGET_PAIRS = 800
MANY_SEGMENTS = 5  # from here on labels of draws are too loose to be compared entry by entry
OPENING_SHARE = 3  # a session opens with n/3 covering pairs
LEAST_NOISE = 1e-3  # variance of an answer, at least

Indices = NDArray[np.int64]


def next_pairs(
    state: State,
    count: int,
    *,
    rule: str = "variance_reduction",
    pending: Pairs | None = None,
    seed: int,
) -> Pairs:
    """The pairs to ask next.

    A session opens with n/3 covering pairs, in the same order for everyone who shares the state. No pair is asked
    twice while there are others, so that the last ones before all were asked may be fewer than `count`.

    Parameters
    ----------
    state : State
    count : int
    rule : "variance_reduction", "bald" or "random"
        What is expected to be learnt about the maps, or about the answer alone, or nothing.
    pending : Pairs, optional
        Pairs that were chosen before and are not answered yet: they are taken as asked.
    seed : int
        The same answers, pending pairs and seed give the same pairs.

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
    layout, waiting = state.layout, _checked(pending, state.layout)
    asked = _keys(state.pairs, layout)
    taken = np.union1d(asked, _keys(waiting, layout))
    opening = _opening(layout, taken, state.trials + len(waiting), count, state.seed)
    if len(opening) == count:
        return opening
    taken = np.union1d(taken, _keys(opening, layout))
    rng = np.random.default_rng([check_seed(seed), state.trials, len(waiting)])
    candidates = _candidates(layout, taken, max(CANDIDATES, count), rng)
    wanted = min(count - len(opening), len(candidates))
    if rule == "random" or not state.trials:
        chosen = candidates[:wanted]
    else:
        first = np.concatenate([_both(waiting), _both(opening)])
        target = "pairs" if state.segments >= MANY_SEGMENTS else "maps"
        found = choose(
            state.draws,
            candidates,
            wanted,
            rule=rule,
            target=target,
            lapses=state.lapses,
            asked=first,
            rng=rng,
        )
        chosen = candidates[found]
    i, j = np.concatenate([_both(opening), chosen]).T
    return Pairs(layout, i, j)


def choose(
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
    """Rows of the candidates (m, 2) to ask, in order of choice.

    Parameters
    ----------
    draws : (S, n, K) maps drawn from the posterior
    target : "maps" or "pairs"
        What is to become certain: all probabilities, or P(same) of random pairs, which knows no labels.
    asked : (a, 2) pairs that will be answered anyway
    """
    if target not in TARGETS:
        raise InvalidInput(f"Unknown target {target!r}; choose one of {', '.join(TARGETS)}.")
    S, n, _ = draws.shape
    known = np.zeros((0, 2), np.int64) if asked is None else asked
    listed = np.concatenate([known, candidates])
    q = lapses[0] + (1 - sum(lapses)) * _same(draws, listed)
    noise = np.maximum(np.mean(q * (1 - q), axis=1), LEAST_NOISE)
    Q = (q - q.mean(axis=1, keepdims=True)) / np.sqrt(S)
    if target == "maps":
        Y = draws.reshape(S, -1).T
    else:
        Y = _same(draws, _random_pairs(n, TARGET_PAIRS, rng))
    Y = (Y - Y.mean(axis=1, keepdims=True)) / np.sqrt(S)
    wanted = min(count, len(candidates))
    return picked(Q, squares(np.ascontiguousarray(Y)), noise, len(known), wanted, rule == "bald")


def _same(draws: NDArray[np.float64], pairs: Indices) -> NDArray[np.float64]:
    """(m, S) P(same) of each pair in each draw."""
    rows = np.ascontiguousarray(draws.transpose(1, 0, 2))
    return np.einsum("msk,msk->ms", rows[pairs[:, 0]], rows[pairs[:, 1]])


def _opening(layout: Layout, taken: Indices, asked: int, count: int, seed: int) -> Pairs:
    """What is left of the session's opening, `count` pairs at most."""
    n = len(layout)
    length = -(-n // OPENING_SHARE)
    if asked >= length:
        return Pairs(layout, [], [])
    whole = covering(layout, trials=-(-n // 2), seed=seed).take(np.arange(length))
    fresh = np.flatnonzero(~np.isin(_keys(whole, layout), taken))
    return whole.take(fresh[: min(count, length - asked)])


def _candidates(layout: Layout, taken: Indices, count: int, rng: np.random.Generator) -> Indices:
    """(m, 2) random pairs that were not asked; any pairs once all have been."""
    n = len(layout)
    most = n * (n - 1) // 2
    if len(taken) >= most:
        taken = taken[:0]
    if 2 * (len(taken) + count) > most:
        i, j = np.triu_indices(n, 1)
        keys = rng.permutation(np.setdiff1d(i * n + j, taken))[:count]
    else:
        pairs = _random_pairs(n, 3 * count, rng)
        keys = pairs[:, 0] * n + pairs[:, 1]
        keys = keys[np.sort(np.unique(keys, return_index=True)[1])]
        keys = keys[~np.isin(keys, taken)][:count]
    return np.stack(np.divmod(keys, n), axis=1)


def _random_pairs(n: int, count: int, rng: np.random.Generator) -> Indices:
    """(count, 2) pairs of different locations, the smaller number first."""
    i = rng.integers(n, size=count)
    j = (i + rng.integers(1, n, size=count)) % n
    return np.stack([np.minimum(i, j), np.maximum(i, j)], axis=1)


def _checked(pending: Pairs | None, layout: Layout) -> Pairs:
    if pending is None:
        return Pairs(layout, [], [])
    if pending.layout != layout:
        raise InvalidInput(f"The pending pairs lie on {pending.layout}, the state on {layout}.")
    return pending


def _both(pairs: Pairs) -> Indices:
    return np.stack([pairs.i, pairs.j], axis=1)


def _keys(pairs: Pairs, layout: Layout) -> Indices:
    return pairs.i * len(layout) + pairs.j
