"""Where fits run changes no number, and what cannot be sent there is told of."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from vseg.evaluation.compare import compare
from vseg.evaluation.sandbox import SandboxExecutor
from vseg.models import black_box, discrimination, free_maps, get_model, mixture
from vseg.models.classical import kmeans

SETTINGS = {"per": "participant", "folds": 2, "seed": 3, "resamples": 50}
MODELS = {
    "colour": get_model("logistic", features="lab", starts=2),
    "free": free_maps(1.0),
    "alike": discrimination("lab"),
    "clouds": mixture("lab", starts=1),
    "means": black_box(kmeans, {"clusters": (2, 4)}, trials=2),
}


@pytest.fixture(scope="module")
def alone(task):
    return compare(task, MODELS, **SETTINGS)


@pytest.mark.parametrize(
    "executor",
    [
        lambda: ThreadPoolExecutor(1),
        lambda: ThreadPoolExecutor(3),
        lambda: ProcessPoolExecutor(2, multiprocessing.get_context("spawn")),
        lambda: SandboxExecutor(2),
    ],
    ids=["one thread", "three threads", "two processes", "two fenced processes"],
)
def test_numbers_do_not_depend_on_the_workers(task, alone, executor):
    with executor() as place:
        again = compare(task, MODELS, **SETTINGS, executor=place)
    for name, q in alone.predictions.items():
        assert again.predictions[name].tolist() == q.tolist()
    assert again.json() == alone.json()
    assert again.maps == alone.maps
    assert again.human_maps == alone.human_maps


@pytest.mark.parametrize(
    "executor", [lambda: ProcessPoolExecutor(1, multiprocessing.get_context("spawn")), SandboxExecutor]
)
def test_what_cannot_be_sent_is_told_of_and_the_others_are_scored(task, executor):
    models = {"here": lambda task, *, seed: None, "alike": MODELS["alike"]}
    with executor() as place:
        found = compare(task, models, per="all", folds=2, seed=0, resamples=20, executor=place)
    assert list(found.predictions) == ["alike"]
    assert found.failures["here"].startswith("It cannot be sent to another process (")
    assert "name it as FILE.py:NAME" in found.failures["here"]


def test_a_score_does_not_depend_on_its_rivals(task, alone):
    """Seeds go with a model's name, not with its place in the list."""
    by_itself = compare(task, {"clouds": MODELS["clouds"]}, **SETTINGS)
    assert by_itself.predictions["clouds"].tolist() == alone.predictions["clouds"].tolist()
    assert by_itself.table()[0] == next(row for row in alone.table() if row["model"] == "clouds")
