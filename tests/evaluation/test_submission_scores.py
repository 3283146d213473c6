"""A submission's maps are scored like any other model, and nothing but two slips is fitted."""

import numpy as np
import pytest

import vseg
from vseg.errors import InvalidInput
from vseg.evaluation import submission_scores
from vseg.evaluation.submission_scores import given_maps, peoples_maps
from vseg.evaluation.submissions import Ran
from vseg.models import Task


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
    return Task(vseg.data.responses.concatenated(parts), {"a": np.zeros((12, 12, 3), np.uint8)}, 2)


def ran(maps, name="mine"):
    return Ran(name, "0" * 64, {"a": maps}, 1.234, True)


def test_certain_labels_are_not_charged_without_end(task, truth):
    """Slips take up what the participants' own uncertainty costs labels without any."""
    certain = vseg.Maps.one_hot(truth.layout, truth.labels, 2)
    fitted = given_maps({"a": certain})(task, seed=0)
    assert 0 < min(fitted.slips) <= max(fitted.slips) < 0.5
    assert np.isfinite(submission_scores.score(task, ran(certain), {}).scores["bits"])


def test_better_maps_score_better(task, truth):
    rng = np.random.default_rng(0)
    guessed = vseg.Maps.one_hot(truth.layout, rng.integers(0, 2, len(truth.layout)), 2)
    right, wrong = (submission_scores.score(task, ran(maps), {"a": truth}) for maps in (truth, guessed))
    floor = next(each["bits"] for each in right.references if each["name"] == "floor")
    assert right.scores["bits"] > floor + 0.1
    assert right.scores["bits"] > wrong.scores["bits"]
    assert right.scores["low"] < right.scores["bits"] < right.scores["high"]
    assert right.scores["entropy_r"] == pytest.approx(1)
    assert right.scores["normalised"] > 0.5


def test_the_same_again(task, truth):
    assert submission_scores.score(task, ran(truth), {}) == submission_scores.score(task, ran(truth), {})
    assert (
        submission_scores.score(task, ran(truth), {}).key
        != submission_scores.score(task, ran(truth), {}, seed=1).key
    )


def test_maps_of_every_image_are_needed(task, truth):
    with pytest.raises(InvalidInput, match="no maps of image a"):
        submission_scores.score(task, Ran("mine", "0" * 64, {"b": truth}, 1.0, True), {})


def test_people_are_all_of_them_together(task, truth):
    """Three people's answers tell more than one's."""
    alone = peoples_maps(task.where(np.flatnonzero(task.responses.participant == "p0")), seed=0)
    together = peoples_maps(task, seed=0)
    assert together["a"].distance_to(truth) < alone["a"].distance_to(truth) < 0.7


def test_maps_are_set_against_peoples(task, truth):
    """Given or found, what people saw is what a submission's maps are compared with."""
    scores = submission_scores.score(task, ran(truth), {"a": truth}).scores
    assert scores["mae"] == 0
    assert scores["adjusted_rand_index"] == scores["label_accuracy"] == 1
    found = submission_scores.score(task, ran(truth)).scores
    assert 0 < found["mae"] == pytest.approx(truth.distance_to(peoples_maps(task, seed=0)["a"]))
