"""Trials needed to reach an error: interpolation on a curve, and an interval over photographs."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from reproduction.annotators.trials_needed import estimate_trials_needed, interpolate_trials

TRIALS = np.array([64.0, 128.0, 256.0, 512.0])


@given(power=st.floats(0.2, 2), at=st.floats(64, 512))
def test_a_power_law_is_read_off_exactly(power, at):
    """Interpolation in logarithms is exact where the error falls as a power of the trials."""
    assert interpolate_trials(at**-power, TRIALS, TRIALS**-power) == pytest.approx(at)


def test_ends_of_the_curve():
    errors = np.array([0.4, 0.2, 0.2, 0.1])
    assert interpolate_trials(0.5, TRIALS, errors) == 64
    assert interpolate_trials(0.1, TRIALS, errors) == pytest.approx(512)
    assert interpolate_trials(0.09, TRIALS, errors) == float("inf")


def test_the_first_crossing_counts_if_the_curve_rises_again():
    assert interpolate_trials(0.2, TRIALS, np.array([0.4, 0.2, 0.25, 0.1])) == pytest.approx(128)


def test_the_interval_holds_the_value_and_shrinks_with_photographs():
    rng = np.random.default_rng(0)
    spans = []
    for images in (5, 80):
        level = np.exp(0.3 * rng.standard_normal((images, 1)))
        errors = level * TRIALS**-0.5 * np.exp(0.1 * rng.standard_normal((images, 4)))
        found = estimate_trials_needed(np.full(images, 0.07), TRIALS, errors, seed=1)
        assert found.low <= found.trials <= found.high
        spans.append(found.high / found.low)
    assert spans[1] < spans[0]


def test_goal_and_errors_use_the_same_resampled_photographs():
    """If the method needs the same number on every photograph, resampling has no effect."""
    level = np.array([0.5, 1.0, 3.0, 7.0])
    found = estimate_trials_needed(level * 200**-0.5, TRIALS, level[:, None] * TRIALS**-0.5, seed=0)
    assert found == pytest.approx((200, 200, 200))


def test_a_goal_out_of_reach_is_infinite():
    found = estimate_trials_needed(np.full(3, 0.001), TRIALS, np.tile(TRIALS**-0.5, (3, 1)), seed=0)
    assert found == (float("inf"),) * 3
