"""Test that check() finds the problems of a model."""

import numpy as np
import pytest

from vseg import Grid, Maps, Scatter
from vseg.models import check, logistic

IMAGE = np.random.default_rng(0).integers(0, 256, (48, 64, 3)).astype(np.uint8)
CALLS = []


def image_model(function):
    """Return a model of images that calls the function; kinds are detected by the argument names."""

    def model(image):
        return function(image)

    return model


def pair_model(function):
    """Return a model of pairs that calls the function with the number of pairs."""

    def model(features, pairs):
        return function(len(pairs))

    return model


def raising(*arguments):
    raise ValueError("too hot")


class Half:
    def same_probability(self, image, pairs):
        return np.full(len(pairs), 0.5)


def changes(image):
    image[:] = 0
    return image[:, :, 0]


@pytest.mark.parametrize(
    "model",
    [
        "logistic",
        "distance",
        image_model(lambda image: image[:, :, 0] > 9),
        image_model(lambda image: np.full((*image.shape[:2], 2), 0.5)),
        pair_model(lambda m: np.full(m, 0.2)),
        lambda task, *, seed: Half(),
        logistic("rgb"),
    ],
)
def test_models_without_problems(model):
    assert check(model, IMAGE) == []


def test_maps_on_the_layout():
    assert check(lambda image: Maps(Grid(5), np.full((25, 2), 0.5)), IMAGE, layout=Grid(5)) == []
    assert (
        check(
            image_model(lambda image: image[:, :, 1] > 99),
            IMAGE,
            layout=Scatter(np.random.default_rng(0).random((9, 2))),
        )
        == []
    )


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (image_model(lambda image: image[:, :, 0] / 0.7), "Labels are whole numbers"),
        (image_model(lambda image: np.full(image.shape[:2], np.nan)), "Labels are whole numbers"),
        (image_model(lambda image: np.full((*image.shape[:2], 2), 0.7)), "sum to 1"),
        (
            image_model(lambda image: np.full((*image.shape[:2], 2), np.nan)),
            "Probabilities are finite numbers",
        ),
        (image_model(lambda image: np.zeros((3, 3), int)), r"the model gave an array of shape \(3, 3\)"),
        (image_model(raising), "failed on a small image .*ValueError: too hot"),
        (
            image_model(lambda image: np.random.default_rng().random(image.shape[:2]) > 0.5),
            "It is not deterministic",
        ),
        (changes, "It changes its input image; work on a copy"),
        (
            image_model(lambda image: np.arange(image[:, :, 0].size).reshape(image.shape[:2])),
            "It finds 3072 segments at 64 loc",
        ),
        (pair_model(lambda m: np.full(m, 2.0)), "P.same. is a number from 0 to 1, got values from 2 to 2"),
        (pair_model(lambda m: np.full(m, np.nan)), "63 of 63 are not finite"),
        (
            pair_model(lambda m: np.full((m, 2), 0.5)),
            r"Expected P.same. of 63 pairs, got an array of shape \(63, 2\)",
        ),
        (pair_model(lambda m: "cat"), "Expected P.same. as numbers, got str"),
        (pair_model(lambda m: np.random.default_rng().random(m)), "It is not deterministic"),
        (pair_model(raising), "It fails: ValueError: too hot"),
        (lambda task, *, seed: 1 / 0, "It fails: ZeroDivisionError"),
        (
            lambda task, *, seed: None,
            "It fails: AttributeError: 'NoneType' object has no attribute 'same_prob",
        ),
        ("nothing", "There is no model 'nothing'"),
        (5, "A model is a callable, got int"),
    ],
)
def test_models_with_a_problem(model, message):
    import re

    problems = check(model, IMAGE)
    assert len(problems) == 1
    assert re.search(message, problems[0])


def test_an_invalid_image_or_invalid_features_are_reported():
    assert check("logistic", np.zeros((4, 4))) == [
        "An image is uint8 of shape (H, W) or (H, W, 3), got float64 (4, 4)."
    ]
    assert check(pair_model(lambda m: np.full(m, 0.2)), IMAGE, features="colours")[0].startswith(
        "There are no features"
    )


def test_networks():
    torch = pytest.importorskip("torch", reason="networks need PyTorch")
    nn = torch.nn

    class Cut(nn.Module):
        """A module whose logits do not depend on its weights."""

        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x):
            return x[:, :2]

    class Still(Cut):
        def forward(self, x):
            return x[:, :2] + 0 * self.weight

    class Nan(Cut):
        def forward(self, x):
            return x[:, :2] * self.weight / 0

    def build(inputs, segments):
        return nn.Linear(inputs, segments)

    assert check(build, IMAGE) == []
    assert check(nn.Linear(3, 2), IMAGE) == []
    assert check(nn.Linear(3, 5), IMAGE) == [
        "Expected logits of shape (64, 2), a row for each location, got (64, 5)."
    ]
    assert check(nn.Linear(7, 2), IMAGE)[0].startswith("It fails: RuntimeError")
    assert check(Cut(), IMAGE) == ["Its logits do not depend on any weights: there is no gradient."]
    assert check(nn.Identity(), IMAGE, segments=3)[0].startswith("It has no weights to fit")
    assert check(Still(), IMAGE) == ["The gradient is 0 at all weights; fitting would not move them."]
    assert check(Nan(), IMAGE)[0] == "128 of its logits are not finite numbers."
