"""The greedy choice of pairs, against the plain formula with covariances of all pairs."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from vseg.adaptive.acquisition import gram_matrix, pick_greedily


def pick_plainly(q, y, noise, first, count, by_variance):
    """Pick with covariances of all pairs and of pairs with the target, deflated one by one."""
    C, D = q @ q.T, y @ q.T
    chosen = []
    for t in range(first + count):
        variance = np.diag(C)
        score = variance / noise if by_variance else np.sum(D**2, axis=0) / (variance + noise)
        score[:first] = -np.inf
        score[chosen] = -np.inf
        best = t if t < first else int(np.argmax(score))
        if t >= first:
            chosen.append(best)
        total = C[best, best] + noise[best]
        D = D - np.outer(D[:, best], C[best]) / total
        C = C - np.outer(C[best], C[best]) / total
    return np.array(chosen) - first


@given(seed=st.integers(0, 10**6), first=st.integers(0, 4), by_variance=st.booleans())
def test_each_pick_is_the_best_given_earlier_ones(seed, first, by_variance):
    rng = np.random.default_rng(seed)
    q, y, noise = rng.standard_normal((30, 8)), rng.standard_normal((12, 8)), rng.uniform(0.1, 2, 30)
    expected = pick_plainly(q.copy(), y, noise, first, 6, by_variance)
    found = pick_greedily(q.copy(), gram_matrix(y), noise, first, 6, by_variance)
    np.testing.assert_array_equal(found, expected)


def test_gram_matrix():
    y = np.random.default_rng(0).standard_normal((9, 5))
    np.testing.assert_allclose(gram_matrix(y), y.T @ y, atol=1e-12)


@pytest.mark.parametrize("by_variance", [False, True])
def test_a_redundant_pair_is_picked_last(by_variance):
    q = np.array([[3.0, 0, 0], [2.9, 0, 0], [0, 1.0, 0]])
    assert pick_greedily(q, np.eye(3), np.full(3, 0.1), 0, 3, by_variance).tolist() == [0, 2, 1]
