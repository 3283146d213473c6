import numpy as np
import pytest
from scipy import stats

from vseg.evaluation.group_tests import welch
from vseg.planning.power import Condition, _expected, _found, as_guessed, needed, power


def exact(mean, spread=1.0, people=200, seed=0):
    truths = mean + spread * np.random.default_rng(seed).normal(size=people)
    return Condition(truths, truths, mean, spread)


@pytest.mark.parametrize(("people", "expected"), [(17, 0.807), (10, 0.562), (40, 0.993)])
def test_power_golden(people, expected):
    """The noncentral t at d = 1: 0.8070, 0.5620, 0.9930. Margin: people drawn by chance, ± 0.03."""
    found = power(exact(0), exact(1, seed=1), people, seed=2)
    assert found.value == pytest.approx(expected, abs=0.03)
    assert found.low <= found.value <= found.high


def test_no_difference_is_found_as_often_as_chance_allows():
    """4000 studies at 5 %, people as guessed: within ± 0.015."""
    assert power(exact(0), exact(0, seed=1), 12, seed=2).value == pytest.approx(0.05, abs=0.015)


def test_found_is_welchs_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, (50, 7)), rng.normal(1, 2, (50, 7))
    assert _found(a, b).tolist() == [welch(x, y).p < 0.05 for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize(("n", "d"), [(5, 0.8), (12, 0.8), (12, 1.5), (40, 0.4), (30, 20.0)])
def test_expected_power_is_close_to_the_noncentral_ts(n, d):
    """Equal variances: 2n - 2 degrees of freedom, noncentrality d √(n/2). Margin of the approximation: 0.01."""
    a = np.array([-1.0, 1.0])
    limit = stats.t.ppf(0.975, 2 * n - 2)
    shift = d * np.sqrt(n / 2)
    golden = stats.nct.sf(limit, 2 * n - 2, shift) + stats.nct.cdf(-limit, 2 * n - 2, shift)
    assert _expected(a, a + d, n) == pytest.approx(golden, abs=0.01)


def test_people_known_exactly_who_do_not_vary_are_told_apart():
    sure = [Condition(np.full(10, m), np.full(10, m), m, 0.0) for m in (0.1, 0.2)]
    assert power(*sure, 2, seed=0) == (1, 1, 1)


def test_as_guessed_moves_along_the_line():
    """Estimates 2·truth + 1 without errors become 2·guess + 1, whoever was drawn."""
    truths = np.random.default_rng(0).normal(0.31, 0.2, 30)
    moved = as_guessed(Condition(2 * truths + 1, truths, 0.25, 0.1))
    assert (moved.mean(), moved.std()) == pytest.approx((1.5, 0.2))


def test_the_interval_holds_the_power_of_other_people():
    """True power by 40,000 people; of 40 forecasts with 40 people each, 36 intervals or more hold it (95 % nominal)."""
    rng = np.random.default_rng(3)

    def condition(mean, people):
        truths = rng.normal(mean, 0.08, people)
        return Condition(truths + rng.normal(0.02, 0.05, people), truths, mean, 0.08)

    truth = power(condition(0.2, 40_000), condition(0.3, 40_000), 12, seed=0).value
    found = [power(condition(0.2, 40), condition(0.3, 40), 12, seed=seed) for seed in range(40)]
    assert sum(one.low <= truth <= one.high for one in found) >= 36
    assert np.mean([one.value for one in found]) == pytest.approx(truth, abs=0.03)


def test_needed_is_where_the_power_is_reached():
    first, second = exact(0), exact(1, seed=1)
    people = needed(first, second, 0.8, 100, seed=2)
    assert 15 <= people <= 19  # 17 by the noncentral t
    assert power(first, second, people, seed=2).value >= 0.8
    assert power(first, second, people - 1, seed=2).value < 0.8
    assert needed(first, second, 0.8, 10, seed=2) is None
