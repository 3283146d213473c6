import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from strategies import grids, seeds, some_responses
from vseg import Grid, designs, simulate, stimuli
from vseg.models.fisher_scoring import ROWS_PER_BATCH, build_problem, compute_derivatives, minimise_cost
from vseg.reconstruction.kernels import build_smoothness
from vseg.reconstruction.losses import CROSS_ENTROPY, SQUARED_ERROR

CODES = st.sampled_from([SQUARED_ERROR, CROSS_ENTROPY])


def draw_problem(responses, segments, parameters, seed, *, images=1, **settings):
    """Return a problem with random designs and the same answers to each image, and parameters."""
    rng = np.random.default_rng(seed)
    shown = rng.standard_normal((images, len(responses.layout), segments, parameters))
    return build_problem(list(shown), [responses.tally()] * images, **settings), rng.standard_normal(
        parameters
    )


@settings(max_examples=20)
@given(some_responses(grids(4)), st.integers(2, 4), st.integers(1, 2), seeds, CODES, st.booleans())
def test_gradients_equal_finite_differences(responses, segments, images, seed, code, smooth):
    penalty = {"strength": 0.7, "smoothness": build_smoothness(responses.layout)} if smooth else {}
    shown, theta = draw_problem(responses, segments, 5, seed, images=images, code=code, **penalty)
    slope, step = compute_derivatives(shown, theta)[1], 1e-5
    found = [
        (compute_derivatives(shown, theta + step * e)[0] - compute_derivatives(shown, theta - step * e)[0])
        / (2 * step)
        for e in np.eye(5)
    ]
    assert slope == pytest.approx(np.array(found), rel=1e-4, abs=1e-4)


@settings(max_examples=20)
@given(some_responses(grids(4)), seeds)
def test_the_gradient_is_zero_at_the_minimum(responses, seed):
    shown, start = draw_problem(responses, 2, 4, seed)
    fit = minimise_cost(shown, start)
    assert fit.converged
    assert fit.value <= compute_derivatives(shown, start)[0]
    assert np.abs(compute_derivatives(shown, fit.theta)[1]).max() < 0.05 * (1 + len(responses))


@pytest.mark.parametrize("code", [SQUARED_ERROR, CROSS_ENTROPY])
@pytest.mark.parametrize("parameters", [3, ROWS_PER_BATCH + 5])
def test_the_information_does_not_depend_on_the_batch_size(code, parameters):
    """It equals JᵀVJ with J by finite differences, for any number of rows per batch."""
    maps = stimuli.random_maps(Grid(8), segments=3, seed=0)
    answers = simulate(maps, designs.scattered(maps.layout, segments=3, seed=1), blocks=2, seed=2)
    assert len(answers.tally()) > ROWS_PER_BATCH
    shown, theta = draw_problem(answers, 3, parameters, 3, code=code)
    theta *= 0.1

    def same(at):
        f = shown.design @ at
        p = np.exp(f) / np.exp(f).sum(axis=1, keepdims=True)
        return np.sum(p[shown.i] * p[shown.j], axis=1)

    jacobian = np.stack(
        [(same(theta + 1e-5 * e) - same(theta - 1e-5 * e)) / 2e-5 for e in np.eye(parameters)]
    )
    q = same(theta)
    bend = 2.0 if code == SQUARED_ERROR else 1 / (q * (1 - q))
    expected = (jacobian * shown.weight * bend) @ jacobian.T
    assert compute_derivatives(shown, theta)[2] == pytest.approx(
        expected, rel=1e-6, abs=1e-6 * np.abs(expected).max()
    )


def test_images_add_up():
    maps = stimuli.random_maps(Grid(4), segments=2, seed=0)
    answers = simulate(maps, designs.scattered(maps.layout, segments=2, seed=1), blocks=2, seed=2)
    penalty = {"strength": 0.3, "smoothness": build_smoothness(maps.layout)}
    both, theta = draw_problem(answers, 2, 3, 3, images=2, **penalty)
    n = len(maps.layout)
    parts = [
        compute_derivatives(build_problem([design], [answers.tally()], **penalty), theta)
        for design in (both.design[:n], both.design[n:])
    ]
    value, slope, information = compute_derivatives(both, theta)
    prior = 0.5 * theta @ theta
    assert value == pytest.approx(sum(part[0] for part in parts) - prior)
    assert slope == pytest.approx(sum(part[1] for part in parts) - theta)
    assert information == pytest.approx(sum(part[2] for part in parts))
