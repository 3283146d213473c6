import numpy as np
import pytest
from hypothesis import given

from strategies import seeds
from vseg.bayes.diagnostics import Convergence, assess_convergence, effective_sample_size, rhat


@given(seed=seeds)
def test_independent_chains_agree(seed):
    """R-hat stays below 1.25 in 999 of 1000 sets of four chains of 16; with 128 draws, as here, far below."""
    x = np.random.default_rng(seed).standard_normal((4, 128))
    assert rhat(x) < 1.1
    assert effective_sample_size(x) > 100


def test_different_chains_disagree_unless_they_are_in_different_groups():
    x = np.random.default_rng(0).standard_normal((4, 50)) + np.arange(4)[:, None]
    assert rhat(x) > 1.4
    assert effective_sample_size(x) < 40
    assert rhat(x, [0, 1, 2, 3]) < 1.1
    assert effective_sample_size(x, [0, 1, 2, 3]) > 100
    drifting = x + np.linspace(0, 4, 50)
    assert rhat(drifting, [0, 1, 2, 3]) > 1.4


def test_autocorrelated_chains_have_a_smaller_effective_sample_size():
    """An AR(1) chain with φ = 0.9 is worth (1-φ)/(1+φ) = 1/19 of its length; the margin is a factor of two."""
    rng = np.random.default_rng(1)
    x = np.zeros((4, 2000))
    for t in range(1, 2000):
        x[:, t] = 0.9 * x[:, t - 1] + rng.standard_normal(4)
    assert 8000 / 38 < effective_sample_size(x) < 8000 / 9.5


def test_constant_and_short_chains():
    assert rhat(np.ones((4, 8))) == 1
    assert effective_sample_size(np.ones((4, 8))) == 32
    assert np.isnan(rhat(np.ones((4, 2))))
    assert Convergence(np.nan, 8, 8, 0.8).is_good


def test_chains_that_disagree_are_reported():
    maps = np.full((4, 8, 5, 2), 0.5)
    costs = np.random.default_rng(0).standard_normal((4, 8)) + 10 * np.arange(4)[:, None]
    convergence = assess_convergence(maps, costs, 0.9, [0, 0, 0, 0])
    assert not convergence.is_good
    assert "do not agree" in convergence.message
    assert "more draws" in convergence.message
    assert convergence.rhat == pytest.approx(rhat(costs))
    assert assess_convergence(maps, costs, 0.9, [0, 1, 2, 3]).is_good
    assert Convergence(1.01, 60, 64, 0.8).is_good
