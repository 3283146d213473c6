import numpy as np
import pytest
from hypothesis import given, strategies as st

from vseg.errors import InvalidInput
from vseg.reconstruction import losses

inside = st.floats(0.02, 0.98)


@pytest.mark.parametrize("code", losses.LOSS_CODES.values())
@given(q=inside, k=st.floats(0, 1))
def test_slope_is_the_finite_difference(code, q, k):
    step = 1e-5
    below, here, above = (losses.loss(code, q + move, k) for move in (-step, 0.0, step))
    assert here[1] == pytest.approx((above[0] - below[0]) / (2 * step), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("code", losses.LOSS_CODES.values())
@given(q=inside, k=st.floats(0, 1))
def test_the_parabola_is_lowest_at_the_observed_share(code, q, k):
    """So one step from any prediction, however wrong, leads to the answer."""
    _, slope, curvature = losses.loss(code, q, k)
    assert q - slope / curvature == pytest.approx(k, abs=1e-9)


@given(k=st.floats(0, 1), q=st.floats(0, 1))
def test_the_observed_share_is_the_best_prediction(k, q):
    for code in losses.LOSS_CODES.values():
        assert losses.loss(code, k, k)[0] <= losses.loss(code, q, k)[0] + 1e-12


@pytest.mark.parametrize(("q", "k"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (1.0, 1.0)])
def test_certain_predictions_stay_finite(q, k):
    """One-hot maps predict 0 and 1 exactly; the paper's update turned NaN there."""
    assert np.isfinite(losses.cross_entropy(q, k)).all()


def test_squared_error_of_one_pair():
    assert losses.squared_error(0.25, 1.0) == (0.5625, -1.5, 2.0)


def test_an_unknown_loss_is_named_with_the_choices():
    with pytest.raises(
        InvalidInput, match="Unknown loss 'hinge'; choose one of squared_error, cross_entropy"
    ):
        losses.get_loss_code("hinge")
