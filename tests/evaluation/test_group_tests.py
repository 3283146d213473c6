import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from vseg.errors import InvalidInput
from vseg.evaluation import group_tests, random_effects

# R's data set mtcars: weight and miles a gallon of cars with automatic and with manual gears.
WEIGHT_AUTOMATIC = [3.215, 3.44, 3.46, 3.57, 3.19, 3.15, 3.44, 3.44, 4.07, 3.73, 3.78, 5.25, 5.424, 5.345,
                    2.465, 3.52, 3.435, 3.84, 3.845]  # fmt: skip
WEIGHT_MANUAL = [2.62, 2.875, 2.32, 2.2, 1.615, 1.835, 1.935, 2.14, 1.513, 3.17, 2.77, 3.57, 2.78]
MPG_AUTOMATIC = [21.4, 18.7, 18.1, 14.3, 24.4, 22.8, 19.2, 17.8, 16.4, 17.3, 15.2, 10.4, 10.4, 14.7,
                 21.5, 15.5, 15.2, 13.3, 19.2]  # fmt: skip
MPG_MANUAL = [21.0, 21.0, 22.8, 32.4, 30.4, 33.9, 27.3, 26.0, 30.4, 15.8, 19.7, 15.0, 21.4]


def groups():
    value = st.floats(-100, 100).map(lambda x: round(x, 3))
    varied = st.lists(value, min_size=3, max_size=12).filter(lambda x: np.std(x) > 0.1)
    return st.tuples(varied, varied)


def two_groups_as_in_the_paper():
    """15 + 15 values with d = 1.003 and variances 1 ± x, x² = 28/25.5 - 1, for 25.5 degrees of freedom."""
    z = stats.norm.ppf((np.arange(15) + 0.5) / 15)
    z /= z.std(ddof=1)
    x = np.sqrt(28 / 25.5 - 1)
    return z * np.sqrt(1 - x), 1.003 + z * np.sqrt(1 + x)


def test_the_papers_comparison_is_consistent():
    """Texture experiment, 15 + 15 participants: d = 1.003, t = 2.746, p = 0.0109; t = d √(n/2)."""
    found = group_tests.compare_values(*two_groups_as_in_the_paper())
    assert found.cohens_d.value == pytest.approx(1.003)
    assert found.welch.t == pytest.approx(1.003 * np.sqrt(15 / 2))
    assert found.welch.t == pytest.approx(2.746, abs=2e-3)
    assert found.welch.p == pytest.approx(0.0109, abs=2e-4)


def test_welch_golden():
    """R: t.test(mpg ~ am, data = mtcars) gives t = -3.7671, df = 18.332, p-value = 0.001374."""
    t, p, freedom = group_tests.welch(MPG_AUTOMATIC, MPG_MANUAL)
    assert (t, p, freedom) == pytest.approx((3.7671, 0.001374, 18.332), rel=1e-4, abs=1e-6)


def test_cohens_d_golden():
    """The tests of R's effectsize: cohens_d(wt ~ am, data = mtcars) is 1.892 [1.030, 2.732]."""
    found = group_tests.cohens_d(WEIGHT_MANUAL, WEIGHT_AUTOMATIC)
    assert found == pytest.approx((1.892, 1.030, 2.732), abs=1e-3)


def test_cohens_d_golden_shifted():
    """The tests of R's effectsize: cohens_d(1:9, c(1, 1:9), mu = 3.125) is -0.969 [-1.913, 0]."""
    found = group_tests.cohens_d([1, *range(1, 10)], np.arange(1, 10) - 3.125)
    assert found == pytest.approx((-0.969, -1.913, 0), abs=0.01)


@given(groups())
@settings(max_examples=40, deadline=None)
def test_swapping_the_groups_swaps_the_sign(both):
    a, b = both
    forth, back = group_tests.compare_values(a, b), group_tests.compare_values(b, a)
    assert forth.welch.t == pytest.approx(-back.welch.t)
    assert forth.welch.p == pytest.approx(back.welch.p)
    assert forth.cohens_d == pytest.approx([-back.cohens_d[at] for at in (0, 2, 1)], abs=1e-6)


@given(groups(), st.floats(0.5, 0.99))
@settings(max_examples=40, deadline=None)
def test_the_interval_holds_the_effect_and_agrees_with_the_t_test(both, confidence):
    """The interval leaves 0 out exactly when Student's test is significant at that level."""
    a, b = both
    d, low, high = group_tests.cohens_d(a, b, confidence)
    assert low <= d <= high
    p = stats.ttest_ind(b, a).pvalue
    if abs(p - (1 - confidence)) > 1e-6:
        assert (low > 0 or high < 0) == (p < 1 - confidence)


def test_large_effects_have_an_interval():
    d, low, high = group_tests.cohens_d([0, 0.1, 0.2], [10, 10.1, 10.2])
    assert d == pytest.approx(100)
    assert 0 < low < d < high


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([0, 0, 0, 1e-9], [0.7] * 4),
        ([0, 1e-6, 2e-6], [1, 1, 1.000001]),
        ([0, 1], [1e12, 1e12 + 1]),
    ],
)
def test_huge_effects_have_an_interval_in_python_floats(a, b):
    """The noncentral t distribution cannot be computed there."""
    forth, back = group_tests.compare_values(a, b), group_tests.cohens_d(b, a)
    d, low, high = forth.cohens_d
    assert 0 < low < d < high < np.inf
    assert back == (-d, -high, -low)
    assert {type(value) for value in (*forth.cohens_d, *forth.welch, *forth.means)} == {float}


@pytest.mark.parametrize("freedom", [2, 4, 28, 1000])
def test_the_approximate_interval_agrees_with_the_exact_one(freedom):
    """At the largest t of the exact interval, they agree to a thousandth of its width."""
    exact = group_tests._exact_noncentralities(group_tests.MAX_EXACT_T, freedom, 0.95)
    found = group_tests._large_noncentralities(group_tests.MAX_EXACT_T, freedom, 0.95)
    assert found == pytest.approx(exact, abs=1e-3 * (exact[1] - exact[0]))


def test_a_comparison_prints_as_a_sentence():
    a, b = (0.31 + 0.13 * np.array(group) for group in two_groups_as_in_the_paper())
    found = str(group_tests.compare_values(a, b, quantity="mean entropy", unit="nats"))
    assert found == (
        "mean entropy 0.31 vs 0.44 nats, Welch t(25.5) = 2.75, p = 0.011, Cohen's d = 1.00 [0.23, 1.76]"
    )
    assert "p < 0.001" in str(group_tests.compare_values([0, 1, 2], [50, 51, 52]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: group_tests.welch([1], [1, 2]), r"at least 2 values .* got an array of shape \(1,\)"),
        (lambda: group_tests.welch([1, np.nan, 3], [1, 2]), "1 of 3 are NaN"),
        (lambda: group_tests.cohens_d([1, 1], [2, 2]), "groups that vary"),
        (lambda: group_tests.cohens_d([1, 2], [2, 3], confidence=95), "between 0 and 1.*got 95"),
        (lambda: group_tests.standard_error([]), "at least 2 values"),
        (lambda: group_tests.standard_error(["a", "b"]), "Expected numbers"),
        (lambda: group_tests.compare_values([0, 1e-300], [1, 1]), "double precision"),
        (lambda: group_tests.compare_values([0, 1e300], [1, 1]), "double precision"),
    ],
)
def test_invalid_values_are_refused(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()


def measured(rng, mean, between, spreads):
    """Draw participants around a mean, each measured with an error of known size."""
    people = mean + between * rng.standard_normal(len(spreads))
    return people + spreads * rng.standard_normal(len(spreads))


@given(groups(), st.floats(0.5, 0.99))
@settings(max_examples=40, deadline=None)
def test_exact_measurements_give_welchs_test(both, confidence):
    """The same difference, p, degrees of freedom and interval as scipy's, for any two groups."""
    a, b = both
    found = random_effects.compare_uncertain(a, b, np.zeros(len(a)), np.zeros(len(b)), confidence=confidence)
    golden = stats.ttest_ind(b, a, equal_var=False)
    assert (found.p, found.degrees_of_freedom) == pytest.approx((golden.pvalue, golden.df), rel=1e-6)
    assert found.difference[1:] == pytest.approx(tuple(golden.confidence_interval(confidence)), abs=1e-8)
    assert found.probability_larger == pytest.approx(stats.t.cdf(golden.statistic, golden.df), abs=1e-9)
    assert found.groups[0].between == pytest.approx(np.std(a, ddof=1))


def test_small_spreads_change_little():
    """There is no jump between spreads of 1e-6, where τ is searched for, and 0."""
    a, b = np.array(MPG_AUTOMATIC), np.array(MPG_MANUAL)
    sure = random_effects.compare_uncertain(a, b, 0 * a, 0 * b)
    nearly = random_effects.compare_uncertain(a, b, 0 * a + 1e-6, 0 * b + 1e-6)
    assert nearly.difference == pytest.approx(sure.difference, rel=1e-5)


def test_equal_errors_are_subtracted_from_the_variance():
    """With equal s the restricted likelihood has τ² = max(S² - s², 0), and the mean is unweighted."""
    a = np.array(WEIGHT_AUTOMATIC)
    group = random_effects.estimate_group(a, np.full(len(a), 0.3))
    assert group.between**2 == pytest.approx(a.var(ddof=1) - 0.09, rel=1e-6)
    assert group.mean == pytest.approx(a.mean())
    assert group.standard_error == pytest.approx(group_tests.standard_error(a), rel=1e-6)
    large = random_effects.estimate_group(a, np.full(len(a), 3.0))
    assert large.between == 0
    assert large.standard_error == pytest.approx(3 / np.sqrt(len(a)))


def test_intervals_cover_the_true_difference():
    """400 studies of 10 + 10: intervals of 90 % hold the difference in 90 ± 4 % (two standard errors: 3 %)."""
    rng = np.random.default_rng(5)
    spreads = np.geomspace(0.01, 0.15, 10)
    inside, differences, between = 0, [], []
    for _ in range(400):
        a, b = measured(rng, 0.2, 0.05, spreads), measured(rng, 0.3, 0.05, spreads)
        found = random_effects.compare_uncertain(a, b, spreads, spreads, confidence=0.9)
        inside += found.difference.low <= 0.1 <= found.difference.high
        differences.append(found.difference.value)
        between.append(found.groups[0].between ** 2)
    assert inside / 400 == pytest.approx(0.9, abs=0.04)
    assert np.mean(differences) == pytest.approx(0.1, abs=0.004)
    assert np.sqrt(np.mean(between)) == pytest.approx(0.05, abs=0.01)
    unweighted = [np.var(measured(rng, 0.2, 0.05, spreads)) for _ in range(400)]
    assert np.var(differences) < 0.8 * 2 * np.mean(unweighted) / 9, "who is well known counts more"


def test_uncertain_measurements_count_less():
    values = [0.2, 0.2001, 0.1999, 5.0]
    group = random_effects.estimate_group(values, [0.01, 0.01, 0.01, 100.0])
    assert group.mean == pytest.approx(0.2, abs=1e-4)


def test_swapping_the_groups_of_measurements_swaps_the_sign():
    rng = np.random.default_rng(0)
    a, b, s = rng.normal(0, 1, 6), rng.normal(1, 1, 6), np.full(6, 0.5)
    forth, back = (
        random_effects.compare_uncertain(a, b, s, 2 * s),
        random_effects.compare_uncertain(b, a, 2 * s, s),
    )
    assert back.difference.value == pytest.approx(-forth.difference.value)
    assert (back.p, 1 - back.probability_larger) == pytest.approx((forth.p, forth.probability_larger))


def test_an_uncertain_comparison_prints_as_a_sentence():
    found = random_effects.compare_uncertain(
        [0.2, 0.3, 0.25], [0.4, 0.5, 0.6], [0.02] * 3, [0.02] * 3, quantity="mean entropy", unit="nats"
    )
    assert str(found).startswith(
        "mean entropy 0.250 vs 0.500 nats (3 and 3 participants), difference 0.250 [0.0"
    )
    assert "participants differ by 0.046 and 0.098" in str(found)


@pytest.mark.parametrize(
    ("spreads", "message"),
    [
        ((0.2, 0.2), "; no difference between participants could be distinguished from measurement error"),
        (
            (0.02, 0.2),
            "; participants of the first group differ by 0.046 (standard deviations without measurement error); "
            "in the ",
        ),
        (
            (0.2, 0.02),
            "; participants of the second group differ by 0.098 (standard deviations without measurement error); "
            "in the ",
        ),
    ],
)
def test_a_spread_below_measurement_error_is_not_reported(spreads, message):
    """Spreads of 0.2 are larger than the variation of these values."""
    a, b = ([spread] * 3 for spread in spreads)
    found = str(random_effects.compare_uncertain([0.2, 0.3, 0.25], [0.4, 0.5, 0.6], a, b))
    assert message in found
    assert "0.000" not in found.split(";", 1)[1]


@pytest.mark.parametrize(
    ("values", "spreads", "message"),
    [
        ([1, 2, 3], [0.1, 0.1], "a spread for each value"),
        ([1, 2, 3], [0.1, -0.1, 0], "0 or more"),
        ([1, 2, 3], [0.1, np.nan, 0], "finite"),
        ([1], [0.1], "at least 2 values"),
        ([1, 1, 1], [0, 0, 0], "groups that vary"),
    ],
)
def test_invalid_spreads_are_refused(values, spreads, message):
    with pytest.raises(InvalidInput, match=message):
        random_effects.compare_uncertain(values, values, spreads, spreads)
