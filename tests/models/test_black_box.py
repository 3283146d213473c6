"""Test functions as models: their output, the search for their settings, and the classical algorithms."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from strategies import seeds
from vseg import Grid, Maps, Scatter
from vseg.errors import InvalidInput
from vseg.models import Task, base_rate, black_box, pair_model
from vseg.models.black_box import fit_lapse_rates, to_location_probabilities
from vseg.models.classical import CLASSICAL
from vseg.models.search import minimise

IMAGE = np.zeros((6, 9, 3), np.uint8)


@given(seeds, st.floats(0, 0.4), st.floats(0, 0.4))
def test_lapse_rates_are_recovered(seed, low, high):
    rng = np.random.default_rng(seed)
    alike, count = rng.integers(0, 2, 400).astype(float), np.full(400, 50.0)
    q = low + (1 - low - high) * alike
    found, cost = fit_lapse_rates(alike, rng.binomial(50, q).astype(float), count)
    assert found == pytest.approx((low, high), abs=0.03)
    assert np.isfinite(cost)


def test_uninformative_labels_predict_the_base_rate(task, nats):
    fitted = black_box(lambda image: np.zeros(image.shape[:2], int))(task, seed=0)
    assert nats(fitted) == pytest.approx(nats(base_rate()(task, seed=0)), abs=0.002)


def test_labels_as_shares_of_each_cell():
    labels = np.zeros((6, 9), int)
    labels[:, 4:] = 7
    shares = to_location_probabilities(labels, IMAGE, Grid(3)).reshape(3, 3, 2)
    assert shares[0, :, 1] == pytest.approx([0, 2 / 3, 1])
    assert (
        to_location_probabilities(labels.astype(float), IMAGE, Grid(3)).tolist()
        == shares.reshape(9, 2).tolist()
    )
    assert to_location_probabilities(labels == 7, IMAGE, Grid(3)).tolist() == shares.reshape(9, 2).tolist()
    assert to_location_probabilities(labels, IMAGE, Grid(8)).shape == (64, 2)


def test_probabilities_and_maps():
    p = np.random.default_rng(0).dirichlet([1, 1, 1], (6, 9))
    assert to_location_probabilities(p, IMAGE, Grid(3))[0] == pytest.approx(p[:2, :3].mean(axis=(0, 1)))
    maps = Maps(Grid(3), np.full((9, 2), 0.5))
    assert to_location_probabilities(maps, IMAGE, Grid(3)) is maps.probabilities
    assert to_location_probabilities(maps.probabilities, IMAGE, Grid(3)).shape == (9, 2)


@pytest.mark.parametrize(
    ("segmentation", "message"),
    [
        (np.zeros((6, 8), int), r"of an image of 6 x 9 pixels, got an array of shape \(6, 8\)"),
        (np.full((6, 9), 0.5), "Labels are whole numbers, got float64 from 0.5 to 0.5"),
        (np.full((6, 9), np.nan), "Labels are whole numbers"),
        (np.full((6, 9, 2), 0.9), "sum to 1; these run from 0.9 to 0.9 and sum to 1.8 to 1.8"),
        (np.full((6, 9, 2), np.nan), "Probabilities are finite numbers; 108 are not"),
        (np.stack([np.full((6, 9), 1.5), np.full((6, 9), -0.5)], axis=2), "run from -0.5 to 1.5"),
        (None, "got NoneType"),
        ("cat", "Expected labels"),
        (Maps(Grid(4), np.full((16, 2), 0.5)), "Expected maps on a 3x3 grid, got maps on a 4x4 grid"),
    ],
)
def test_invalid_segmentations_are_refused(segmentation, message):
    with pytest.raises(InvalidInput, match=message):
        to_location_probabilities(segmentation, IMAGE, Grid(3))


@given(seeds)
def test_a_search_finds_a_simple_minimum(seed):
    found, value = minimise(
        lambda at: (np.log(at["scale"] / 30)) ** 2 + (at["count"] - 5) ** 2 + (at["kind"] != "b"),
        {"scale": (1.0, 1000.0), "count": (2, 9), "kind": ["a", "b"]},
        trials=80,
        seed=seed,
    )
    assert isinstance(found["count"], int)
    assert 10 < found["scale"] < 90
    assert abs(found["count"] - 5) <= 1
    assert value < 2


def test_a_search_without_ranges_calls_the_cost_once():
    asked = []
    assert minimise(lambda at: asked.append(at) or 1.0, {}, seed=0) == ({}, 1.0)
    assert asked == [{}]


@pytest.mark.parametrize("given_", [(1, 1), (3, 2), (1, 2, 3), [], "ab", 5])
def test_invalid_ranges_are_refused(given_):
    with pytest.raises(InvalidInput, match="The range of x is"):
        minimise(lambda at: 0.0, {"x": given_}, seed=0)


def test_the_best_threshold_is_found(task, truth, nats):
    """Only the setting that separates one colour fits; settings that all folds try are computed once."""
    asked = []

    def level(image, cut):
        asked.append(cut)
        return image[:, :, 0].astype(int) - image[:, :, 2] > cut

    level.search = {"cut": (-200, 200)}
    family = black_box(level)
    fitted = family(task, seed=0)
    assert nats(fitted) < nats(base_rate()(task, seed=0)) - 0.1
    assert set(fitted.parameters) == {"cut", "slips"}
    first = len(asked)
    assert family(task, seed=0).parameters == fitted.parameters
    assert len(asked) - first <= first // 2 + 1


def test_segments_are_passed_to_functions_that_take_them(task):
    def stripes(image, segments):
        return np.tile(np.arange(image.shape[1]) * segments // image.shape[1], (len(image), 1))

    assert black_box(stripes)(task, seed=0).maps("image").segments == 3


@pytest.mark.parametrize("name", CLASSICAL)
def test_classical_algorithms(task, nats, name):
    """On three flat colours: better than the base rate, deterministic, and no failure on a uniform image."""
    function, search = CLASSICAL[name]
    fitted, again = (black_box(function, search, trials=10)(task, seed=0) for _ in range(2))
    assert nats(fitted) < nats(base_rate()(task, seed=0))
    assert fitted.parameters == again.parameters
    flat = Task(task.responses, {"image": np.full((40, 30), 9, np.uint8)}, 3)
    assert np.isfinite(nats(black_box(function, search, trials=2)(flat, seed=0)))
    assert function(task.get_image("image")).shape[:2] == (90, 90)


def test_the_output_has_the_size_of_a_large_image():
    picture = np.random.default_rng(0).integers(0, 256, (150, 210, 3)).astype(np.uint8)
    for function, _ in CLASSICAL.values():
        assert function(picture).shape[:2] == (150, 210)


def test_a_pair_model(task, nats):
    def alike(x, pairs, reach):
        return np.exp(-np.linalg.norm(x[pairs.i] - x[pairs.j], axis=1) / reach)

    alike.search = {"reach": (1.0, 100.0)}
    fitted = pair_model(alike, "lab")(task, seed=0)
    assert nats(fitted) < nats(base_rate()(task, seed=0))
    assert 1 < fitted.parameters["reach"] < 100
    assert pair_model(alike, "lab").__name__ == "alike[lab]"


@pytest.mark.parametrize("output", [[0.5], np.nan, 2.0])
def test_a_pair_model_without_probabilities_is_refused(task, output):
    with pytest.raises(InvalidInput, match=r"P\(same\)"):
        pair_model(lambda x, pairs: np.broadcast_to(output, len(pairs) if np.ndim(output) == 0 else 1))(
            task, seed=0
        )


def test_a_scatter():
    layout = Scatter(np.random.default_rng(0).random((12, 2)))
    assert to_location_probabilities(np.eye(20, dtype=int), np.zeros((20, 20), np.uint8), layout).shape == (
        12,
        2,
    )
