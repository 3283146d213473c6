"""Test mixtures: recovery of components, and smoothing fitted to answers."""

import numpy as np
import pytest
from hypothesis import given, settings

from strategies import layouts, seeds
from vseg.errors import InvalidInput
from vseg.models import base_rate, mixture
from vseg.models.mixture import log_posterior, smoothing


@settings(max_examples=10)
@given(seeds)
def test_components_far_apart_are_found(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, 150)
    x = np.array([[0, 0], [8, 0], [0, 8]])[labels] + rng.standard_normal((150, 2))
    for freedom in (np.inf, 4.0):
        p = np.exp(log_posterior(x, 3, freedom, rng=rng))
        assert p.sum(axis=1) == pytest.approx(np.ones(150))
        together = p @ p.T
        assert np.mean((together > 0.5) == (labels[:, None] == labels[None])) > 0.97


@given(layouts())
def test_smoothing_weights(layout):
    for width in (0.0, 1.0):
        weight = smoothing(layout, width)
        assert weight.sum(axis=1) == pytest.approx(np.ones(len(layout)))
    assert (smoothing(layout, 0.0) @ np.arange(len(layout))).tolist() == list(range(len(layout)))


@pytest.mark.parametrize("tails", ["gaussian", "student"])
def test_a_mixture_of_colours(task, truth, nats, tails):
    fitted, again = (mixture("lab", tails=tails)(task, seed=seed) for seed in (0, 1))
    assert nats(fitted) < nats(base_rate()(task, seed=0)) - 0.1
    assert fitted.parameters == again.parameters  # the components do not depend on the seed
    assert set(fitted.parameters) == {"width_cells", "temperature"}
    assert fitted.maps("image").distance_to(truth) < 0.6


def test_uninformative_features(task, nats):
    flat = {"image": np.ones((81, 2))}
    assert np.isfinite(nats(mixture(flat)(task, seed=0)))


def test_unknown_tails():
    with pytest.raises(InvalidInput, match="The tails of a mixture are gaussian or student, got 'short'"):
        mixture(tails="short")
