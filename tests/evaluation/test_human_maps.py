"""Test the human maps, and the agreement of models' maps with them."""

import numpy as np
import pytest

from vseg import Grid, Maps, stimuli
from vseg.evaluation import metrics
from vseg.evaluation.fits import reconstruct_human_maps
from vseg.evaluation.model_comparison import MAP_SCORES, compare, compute_agreement
from vseg.models import free_maps, logistic


@pytest.fixture(scope="module")
def truth():
    return stimuli.random_maps(Grid(6), segments=2, entropy=0.2, seed=0)


def test_human_maps_do_not_depend_on_the_models(task):
    settings = {"per": "all", "folds": 2, "seed": 0, "resamples": 20}
    without = compare(task, {"colour": logistic("lab", starts=2)}, **settings)
    beside = compare(task, {"colour": logistic("lab", starts=2), "free_maps": free_maps()}, **settings)
    rows = {row["model"]: row for row in beside.table()}
    assert without.table()[0] == rows["colour"]
    assert set(without.human_maps) == {("all", "one"), ("all", "two")}
    assert -1 < rows["colour"]["entropy_r"] < 1
    assert rows["free_maps"]["mae"] < 0.05 < rows["colour"]["mae"]  # they are nearly the same maps


def test_agreement_averages_the_metrics_of_shared_images_with_matched_labels(truth):
    other = stimuli.random_maps(Grid(6), segments=3, entropy=0.2, seed=1)
    people = {("p", "a"): truth, ("p", "b"): truth, ("q", "c"): truth}
    found = compute_agreement({("p", "a"): truth.permute([1, 0]), ("p", "b"): other}, people)
    one = metrics.evaluate(other, truth)
    assert found["mae"] == pytest.approx(one["mae"] / 2)
    assert found["label_accuracy"] == pytest.approx((1 + one["label_accuracy"]) / 2)
    assert found["boundary_f"] == pytest.approx((1 + one["boundary_f"]) / 2)


def test_agreement_is_none_without_maps(truth):
    nothing = dict.fromkeys(("entropy_r", *MAP_SCORES))
    assert compute_agreement({}, {("p", "a"): truth}) == nothing
    assert compute_agreement({("p", "a"): truth}, {("p", "b"): truth}) == nothing
    certain = Maps.one_hot(truth.layout, truth.labels, 2)
    assert compute_agreement({("p", "a"): certain}, {("p", "a"): truth})["entropy_r"] is None


def test_each_group_has_its_own_maps(task):
    groups = {name: np.flatnonzero(task.responses.participant == name) for name in ("p0", "p1")}
    found = reconstruct_human_maps(task, groups, seed=0)
    assert set(found) == {(group, image) for group in groups for image in ("one", "two")}
    assert found["p0", "one"] != found["p1", "one"]
