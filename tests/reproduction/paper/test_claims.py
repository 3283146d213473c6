"""Computed verdicts, bootstrap intervals and their format."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from reproduction.paper.claims import (
    NOT_REPRODUCED,
    NOT_TESTABLE,
    ONLY_IF,
    REPRODUCED,
    format_interval,
    interval,
    is_near,
    judge,
    ratio_interval,
)

TEXTS = {"paper": "1", "ours": "2", "condition": "a condition", "reason": "a reason", "remark": "a remark"}


@pytest.mark.parametrize(
    ("holds", "holds_if", "verdict", "why"),
    [
        (True, True, REPRODUCED, "a remark"),
        (True, False, REPRODUCED, "a remark"),
        (False, True, ONLY_IF, "a condition"),
        (False, False, NOT_REPRODUCED, "a reason"),
    ],
)
def test_a_verdict_follows_from_what_holds(holds, holds_if, verdict, why):
    claim = judge("Something.", holds=holds, holds_if=holds_if, **TEXTS)
    assert (claim.verdict, claim.why) == (verdict, why)
    assert set(claim.as_dict()) == {"claim", "printed", "paper", "ours", "verdict", "why", "settings"}


@pytest.mark.parametrize(
    ("holds", "holds_if", "why"),
    [
        (True, False, "Simulated participants show it. a remark"),
        (False, True, "Simulated participants show it only if a condition"),
        (False, False, "Simulated participants do not show it: a reason"),
    ],
)
def test_a_statement_about_people_is_never_judged_by_simulated_ones(holds, holds_if, why):
    claim = judge("Something.", holds=holds, holds_if=holds_if, about_people=True, **TEXTS)
    assert (claim.verdict, claim.why) == (NOT_TESTABLE, why)


@given(st.lists(st.floats(0, 2), min_size=2, max_size=40))
def test_an_interval_holds_its_mean(values):
    mean, low, high = interval(values)
    assert low - 1e-12 <= mean <= high + 1e-12
    assert min(values) - 1e-12 <= low
    assert high <= max(values) + 1e-12


def test_the_interval_of_a_mean_is_as_wide_as_theory_says():
    """1.96 standard errors to either side; 2000 bootstrap draws miss that by a few per cent."""
    values = np.random.default_rng(0).normal(size=1000)
    _, low, high = interval(values)
    assert high - low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(1000), rel=0.1)


def test_a_ratio_of_the_same_resamples_is_paired():
    """Variation that both share cancels: the ratio of 2x to x is exactly 2."""
    values = np.random.default_rng(0).uniform(1, 9, size=50)
    assert ratio_interval(2 * values, values) == pytest.approx((2, 2, 2))


def test_a_ratio_of_different_resamples_is_not_paired():
    """Independent draws of both: the relative variances add up; 2000 draws miss that by a few per cent."""
    rng = np.random.default_rng(0)
    mean, low, high = ratio_interval(rng.normal(10, 1, 400), rng.normal(5, 1, 100))
    assert mean == pytest.approx(2, rel=0.05)
    assert high - low == pytest.approx(2 * 1.96 * 2 * np.hypot(0.1 / 20, 0.2 / 10), rel=0.2)


def test_near_is_a_factor_of_one_and_a_half():
    assert is_near(0.25, 0.25)
    assert is_near(1.34, 2, 3)
    assert is_near(4.5, 2, 3)
    assert not is_near(1.33, 2, 3)
    assert not is_near(4.51, 2, 3)


def test_format_interval():
    assert format_interval((0.5, 0.25, 0.75), 2) == "0.50 (0.25 to 0.75)"
