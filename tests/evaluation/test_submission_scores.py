"""Test that a submission's maps are scored like any other model, with only two lapse rates fitted."""

import numpy as np
import pytest

import vseg
from vseg.evaluation.fits import reconstruct_human_maps
from vseg.evaluation.leaderboard import create_entry
from vseg.evaluation.model_comparison import compare
from vseg.models import Task, fixed_maps


@pytest.fixture(scope="module")
def truth():
    return vseg.stimuli.random_maps(vseg.Grid(6), segments=2, entropy=0.2, seed=0)


@pytest.fixture(scope="module")
def task(truth):
    pairs = vseg.designs.scattered(truth.layout, segments=3, seed=1)
    parts = [
        vseg.simulate(truth, pairs, blocks=3, participant=f"p{number}", image="a", seed=number)
        for number in range(3)
    ]
    return Task(vseg.data.responses.concatenate(parts), {"a": np.zeros((12, 12, 3), np.uint8)}, 2)


def score(task, maps, human_maps=None, seed=0):
    """Return the leaderboard entry of these maps, which are compared with human maps by image name."""
    human = None if human_maps is None else {("all", image): each for image, each in human_maps.items()}
    comparison = compare(task, {"mine": fixed_maps({"a": maps})}, per="all", seed=seed, human_maps=human)
    return create_entry(comparison, "mine", task, file="0" * 64, seconds=1.234)


def reconstruct_shared_maps(task):
    """Return the maps of image a, reconstructed from the answers of all participants together."""
    return reconstruct_human_maps(task, {"all": np.arange(len(task.responses))}, seed=0)["all", "a"]


def test_certain_labels_do_not_cost_infinitely_much(task, truth):
    """Lapse rates account for the participants' own uncertainty."""
    certain = vseg.Maps.one_hot(truth.layout, truth.labels, 2)
    fitted = fixed_maps({"a": certain})(task, seed=0)
    assert 0 < min(fitted.lapses) <= max(fitted.lapses) < 0.5
    assert np.isfinite(score(task, certain, {}).scores["bits"])


def test_better_maps_score_better(task, truth):
    rng = np.random.default_rng(0)
    guessed = vseg.Maps.one_hot(truth.layout, rng.integers(0, 2, len(truth.layout)), 2)
    right, wrong = (score(task, maps, {"a": truth}) for maps in (truth, guessed))
    floor = next(each["bits"] for each in right.references if each["name"] == "floor")
    assert right.scores["bits"] > floor + 0.1
    assert right.scores["bits"] > wrong.scores["bits"]
    assert right.scores["low"] < right.scores["bits"] < right.scores["high"]
    assert right.scores["entropy_r"] == pytest.approx(1)
    assert right.scores["normalised"] > 0.5


def test_scoring_again_gives_the_same_entry_and_another_seed_another_key(task, truth):
    assert score(task, truth, {}) == score(task, truth, {})
    assert score(task, truth, {}).key != score(task, truth, {}, seed=1).key


def test_maps_of_every_image_are_needed(task, truth):
    comparison = compare(task, {"mine": fixed_maps({"b": truth})}, per="all", seed=0, human_maps={})
    assert comparison.failures["mine"].startswith("There are no maps of image a")


def test_human_maps_of_all_participants_are_better_than_those_of_one(task, truth):
    alone = reconstruct_shared_maps(task.take(np.flatnonzero(task.responses.participant == "p0")))
    together = reconstruct_shared_maps(task)
    assert together.distance_to(truth) < alone.distance_to(truth) < 0.7


def test_maps_are_compared_with_human_maps_that_are_given_or_reconstructed(task, truth):
    scores = score(task, truth, {"a": truth}).scores
    assert scores["mae"] == 0
    assert scores["adjusted_rand_index"] == scores["label_accuracy"] == 1
    reconstructed = score(task, truth).scores
    assert 0 < reconstructed["mae"] == pytest.approx(truth.distance_to(reconstruct_shared_maps(task)))
