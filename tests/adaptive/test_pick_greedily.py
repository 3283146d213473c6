"""Picking without matrices of pairs, against the plain formula with them."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from vseg.adaptive.acquisition import gram_matrix, pick_greedily


def plainly(q, y, noise, known, count, alone):
    """The same with covariances of all pairs and of pairs with the target, deflated one by one."""
    C, D = q @ q.T, y @ q.T
    chosen = []
    for t in range(known + count):
        variance = np.diag(C)
        score = variance / noise if alone else np.sum(D**2, axis=0) / (variance + noise)
        score[:known] = -np.inf
        score[chosen] = -np.inf
        best = t if t < known else int(np.argmax(score))
        if t >= known:
            chosen.append(best)
        whole = C[best, best] + noise[best]
        D = D - np.outer(D[:, best], C[best]) / whole
        C = C - np.outer(C[best], C[best]) / whole
    return np.array(chosen) - known


@given(seed=st.integers(0, 10**6), known=st.integers(0, 4), alone=st.booleans())
def test_each_pick_is_the_best_given_those_before(seed, known, alone):
    rng = np.random.default_rng(seed)
    q, y, noise = rng.standard_normal((30, 8)), rng.standard_normal((12, 8)), rng.uniform(0.1, 2, 30)
    expected = plainly(q.copy(), y, noise, known, 6, alone)
    found = pick_greedily(q.copy(), gram_matrix(y), noise, known, 6, alone)
    np.testing.assert_array_equal(found, expected)


def test_gram_matrix():
    y = np.random.default_rng(0).standard_normal((9, 5))
    np.testing.assert_allclose(gram_matrix(y), y.T @ y, atol=1e-12)


@pytest.mark.parametrize("alone", [False, True])
def test_a_pair_that_says_the_same_as_one_before_comes_last(alone):
    q = np.array([[3.0, 0, 0], [2.9, 0, 0], [0, 1.0, 0]])
    assert pick_greedily(q, np.eye(3), np.full(3, 0.1), 0, 3, alone).tolist() == [0, 2, 1]
