import numpy as np
import pytest
from hypothesis import given

from strategies import seeds
from vseg.bayes.diagnostics import Convergence, assess_convergence, bulk_ess, rhat, tail_ess


def autoregressive_chains(slope, draws=100, shift=0.0):
    """Return four chains x_t = slope·x_{t-1} + noise, each `shift` above the one before."""
    noise = np.random.default_rng(7).standard_normal((4, draws))
    x = noise.copy()
    for t in range(1, draws):
        x[:, t] = slope * x[:, t - 1] + noise[:, t]
    return x + shift * np.arange(4)[:, None]


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (autoregressive_chains(0.0), (0.998389, 412.809207, 338.609171)),
        (autoregressive_chains(0.8), (1.075187, 49.513005, 61.111028)),
        (autoregressive_chains(0.3, shift=0.5), (1.218621, 14.5306, 150.815262)),
        (autoregressive_chains(-0.6, draws=101), (0.998591, 1040.823997, 275.731243)),
        (np.round(autoregressive_chains(0.2), 1), (1.002855, 300.686181, 290.524012)),
        (autoregressive_chains(0.5, draws=9), (1.22688, 48.164799, 48.164799)),
    ],
)
def test_numbers_are_those_of_arviz(x, expected):
    """The expected numbers are those of rhat(x), ess(x) and ess(x, method="tail") in ArviZ 0.23.4."""
    assert (rhat(x), bulk_ess(x), tail_ess(x)) == pytest.approx(expected, rel=1e-6)


@given(seed=seeds)
def test_independent_chains_agree(seed):
    x = np.random.default_rng(seed).standard_normal((4, 200))
    assert rhat(x) < 1.05
    assert min(bulk_ess(x), tail_ess(x)) > 200


def test_chains_of_different_spread_disagree():
    """Their means are equal, so that only the folded draws show the difference."""
    x = np.random.default_rng(0).standard_normal((4, 200)) * np.array([[0.3], [0.3], [3], [3]])
    assert rhat(x) > 1.2


def test_constant_and_short_chains():
    assert rhat(np.ones((4, 8))) == 1
    assert bulk_ess(np.ones((4, 8))) == 32
    assert np.isnan(rhat(np.ones((4, 2))))
    assert np.isnan(bulk_ess(np.ones((4, 2))))
    convergence = assess_convergence([np.ones((4, 2))])
    assert not convergence.is_good
    assert convergence.message == "8 draws are too few to tell whether the chains agree."


def test_the_worst_quantity_counts():
    good = np.random.default_rng(0).standard_normal((4, 200))
    bad = good + np.arange(4)[:, None]
    assert assess_convergence([good]).is_good
    convergence = assess_convergence([good, bad], accepted=0.9)
    assert (convergence.rhat, convergence.ess) == (rhat(bad), bulk_ess(bad))
    assert not convergence.is_good
    assert "do not agree" in convergence.message
    assert "do not publish the intervals" in convergence.message


@pytest.mark.parametrize(
    ("numbers", "is_good"), [((1.05, 100, 100), True), ((1.06, 100, 100), False), ((1.0, 99, 200), False),
                             ((1.0, 200, 99), False)],
)  # fmt: skip
def test_limits(numbers, is_good):
    assert Convergence(*numbers, draws=400, accepted=0.8).is_good == is_good
