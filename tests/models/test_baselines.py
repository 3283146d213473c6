"""Test chance, the base rate, the free maps and the posterior."""

import numpy as np
import pytest

from vseg import Grid, Pairs, Responses, reconstruct
from vseg.data.responses import concatenate
from vseg.errors import NotFound
from vseg.models import Task, base_rate, chance, free_maps, posterior_maps

PAIRS = Pairs(Grid(3), [0, 1], [5, 6])


def test_chance_predicts_one_half(task):
    assert chance()(task, seed=0).same_probability("any", PAIRS).tolist() == [0.5, 0.5]


def test_each_image_has_its_own_base_rate():
    yes, no = ([1, 1, 1, 0], [0, 0, 0, 1])
    both = concatenate(
        Responses(Grid(3), [0, 0, 0, 0], [1, 2, 3, 4], same, image=name)
        for same, name in ((yes, "a"), (no, "b"))
    )
    fitted = base_rate()(Task(both), seed=0)
    predictions = [fitted.same_probability(name, PAIRS)[0] for name in ("a", "b", "unseen")]
    assert predictions == pytest.approx([3.5 / 5, 1.5 / 5, 0.5])
    assert fitted.parameters == {"a": 0.7, "b": 0.3}


@pytest.mark.parametrize("smoothness", ["auto", 0.5])
def test_free_maps_are_those_of_reconstruct(task, truth, smoothness):
    fitted = free_maps(smoothness)(task, seed=4)
    result = reconstruct(task.responses, segments=3, smoothness=smoothness, seed=4)
    assert fitted.maps("image") == result.maps
    assert fitted.parameters == {"image": result.smoothness}
    assert fitted.maps("image").distance_to(truth) < 0.3
    assert fitted.same_probability("image", task.tallies()["image"].pairs).shape == (
        len(task.tallies()["image"]),
    )


def test_free_maps_of_few_answers(task):
    """Too few pairs for cross-validation and untested locations: a fold must still be fitted, without warnings."""
    fitted = free_maps()(task.take(np.arange(8)), seed=0)
    assert fitted.maps("image").segments == 3
    assert fitted.parameters == {"image": 1.0}


def test_free_maps_of_an_image_without_answers(task):
    with pytest.raises(
        NotFound, match="Free maps know nothing about image other, which had no answers; there are image"
    ):
        free_maps(1.0)(task, seed=0).maps("other")


def test_the_posterior_predicts_better_than_the_base_rate_and_includes_lapses(task, truth):
    pairs = task.responses.tally().pairs
    expected = truth.same_probability(pairs)
    fitted = posterior_maps(draws=16)(task, seed=0)
    predictions = fitted.same_probability("image", pairs)
    rate = base_rate()(task, seed=0).same_probability("image", pairs)
    assert np.abs(predictions - expected).mean() < 0.5 * np.abs(rate - expected).mean()
    assert fitted.maps("image").segments == task.segments
    lapsing = posterior_maps((0.1, 0.05), draws=16)(task, seed=0).same_probability("image", pairs)
    assert lapsing.min() >= 0.1
    assert lapsing.max() <= 0.95


def test_the_posterior_of_an_image_without_answers(task):
    with pytest.raises(NotFound, match="posterior knows nothing about image other"):
        posterior_maps(draws=16)(task, seed=0).same_probability("other", task.responses.tally().pairs)
