"""Test that scores do not depend on the executor, and that models that cannot be pickled are reported."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from vseg.evaluation.model_comparison import compare
from vseg.evaluation.sandbox import SandboxExecutor
from vseg.models import black_box, discrimination, free_maps, get_model, mixture
from vseg.models.classical import kmeans

pytestmark = pytest.mark.slow

SETTINGS = {"per": "participant", "folds": 2, "seed": 3, "resamples": 50}
MODELS = {
    "colour": get_model("logistic", features="lab", starts=2),
    "free": free_maps(1.0),
    "alike": discrimination("lab"),
    "clouds": mixture("lab", starts=1),
    "means": black_box(kmeans, {"clusters": (2, 4)}, trials=2),
}


@pytest.fixture(scope="module")
def sequential(task):
    return compare(task, MODELS, **SETTINGS)


@pytest.mark.parametrize(
    "executor",
    [
        lambda: ThreadPoolExecutor(1),
        lambda: ThreadPoolExecutor(3),
        lambda: ProcessPoolExecutor(2, multiprocessing.get_context("spawn")),
        lambda: SandboxExecutor(2),
    ],
    ids=["one thread", "three threads", "two processes", "two sandboxed processes"],
)
def test_scores_do_not_depend_on_the_executor(task, sequential, executor):
    with executor() as pool:
        again = compare(task, MODELS, **SETTINGS, executor=pool)
    for name, q in sequential.predictions.items():
        assert again.predictions[name].tolist() == q.tolist()
    assert again.json() == sequential.json()
    assert again.maps == sequential.maps
    assert again.human_maps == sequential.human_maps


@pytest.mark.parametrize(
    "executor", [lambda: ProcessPoolExecutor(1, multiprocessing.get_context("spawn")), SandboxExecutor]
)
def test_models_that_cannot_be_pickled_fail_and_the_others_are_scored(task, executor):
    models = {"here": lambda task, *, seed: None, "alike": MODELS["alike"]}
    with executor() as pool:
        found = compare(task, models, per="all", folds=2, seed=0, resamples=20, executor=pool)
    assert list(found.predictions) == ["alike"]
    assert found.failures["here"].startswith("It cannot be sent to another process (")
    assert "name it as FILE.py:NAME" in found.failures["here"]


def test_a_score_does_not_depend_on_the_other_models(task, sequential):
    """Seeds depend on a model's name, not on its place in the list."""
    by_itself = compare(task, {"clouds": MODELS["clouds"]}, **SETTINGS)
    assert by_itself.predictions["clouds"].tolist() == sequential.predictions["clouds"].tolist()
    assert by_itself.table()[0] == next(row for row in sequential.table() if row["model"] == "clouds")
