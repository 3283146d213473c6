import numpy as np
import pytest
from scipy import stats

from vseg.evaluation.group_tests import welch
from vseg.planning.power import (
    Condition,
    _approximate_power,
    _is_significant,
    estimate_power,
    match_assumptions,
    participants_needed,
)


def exact_condition(mean, spread=1.0, participants=200, seed=0):
    """A condition in which every participant's entropy is measured without error."""
    truths = mean + spread * np.random.default_rng(seed).normal(size=participants)
    return Condition(truths, truths, mean, spread)


@pytest.mark.parametrize(("participants", "expected"), [(17, 0.807), (10, 0.562), (40, 0.993)])
def test_power_matches_the_noncentral_t(participants, expected):
    """The noncentral t at d = 1: 0.8070, 0.5620, 0.9930. Margin: participants are a random sample, ± 0.03."""
    power = estimate_power(exact_condition(0), exact_condition(1, seed=1), participants, seed=2)
    assert power.value == pytest.approx(expected, abs=0.03)
    assert power.low <= power.value <= power.high


def test_without_a_difference_the_power_is_alpha():
    """4000 studies at 5 %, participants as assumed: within ± 0.015."""
    assert estimate_power(exact_condition(0), exact_condition(0, seed=1), 12, seed=2).value == pytest.approx(
        0.05, abs=0.015
    )


def test_significance_is_that_of_welchs_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, (50, 7)), rng.normal(1, 2, (50, 7))
    assert _is_significant(a, b).tolist() == [welch(x, y).p < 0.05 for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize(("n", "d"), [(5, 0.8), (12, 0.8), (12, 1.5), (40, 0.4), (30, 20.0)])
def test_approximate_power_is_close_to_the_noncentral_t(n, d):
    """Equal variances: 2n - 2 degrees of freedom, noncentrality d √(n/2). Margin of the approximation: 0.01."""
    a = np.array([-1.0, 1.0])
    limit = stats.t.ppf(0.975, 2 * n - 2)
    shift = d * np.sqrt(n / 2)
    golden = stats.nct.sf(limit, 2 * n - 2, shift) + stats.nct.cdf(-limit, 2 * n - 2, shift)
    assert _approximate_power(a, a + d, n) == pytest.approx(golden, abs=0.01)


def test_participants_without_any_variance_are_always_told_apart():
    fixed = [Condition(np.full(10, m), np.full(10, m), m, 0.0) for m in (0.1, 0.2)]
    assert estimate_power(*fixed, 2, seed=0) == (1, 1, 1)


def test_match_assumptions_moves_along_the_regression_line():
    """Estimates 2·truth + 1 without errors become 2·assumption + 1, whichever participants were drawn."""
    truths = np.random.default_rng(0).normal(0.31, 0.2, 30)
    moved = match_assumptions(Condition(2 * truths + 1, truths, 0.25, 0.1))
    assert (moved.mean(), moved.std()) == pytest.approx((1.5, 0.2))


@pytest.mark.slow
def test_the_interval_contains_the_true_power():
    """True power from 40,000 participants; of 40 forecasts with 40 participants each, 36 intervals or more contain it
    (95 % nominal).
    """
    rng = np.random.default_rng(3)

    def condition(mean, participants):
        truths = rng.normal(mean, 0.08, participants)
        return Condition(truths + rng.normal(0.02, 0.05, participants), truths, mean, 0.08)

    truth = estimate_power(condition(0.2, 40_000), condition(0.3, 40_000), 12, seed=0).value
    estimates = [estimate_power(condition(0.2, 40), condition(0.3, 40), 12, seed=seed) for seed in range(40)]
    assert sum(power.low <= truth <= power.high for power in estimates) >= 36
    assert np.mean([power.value for power in estimates]) == pytest.approx(truth, abs=0.03)


def test_participants_needed_is_where_the_power_is_reached():
    first, second = exact_condition(0), exact_condition(1, seed=1)
    count = participants_needed(first, second, 0.8, 100, seed=2)
    assert 15 <= count <= 19  # 17 by the noncentral t
    assert estimate_power(first, second, count, seed=2).value >= 0.8
    assert estimate_power(first, second, count - 1, seed=2).value < 0.8
    assert participants_needed(first, second, 0.8, 10, seed=2) is None
