"""Test that families and tasks can be pickled."""

import pickle

import pytest

from vseg import models
from vseg.models.catalogue import CLASSICAL, MODEL_DESCRIPTIONS, get_model, get_model_lazily

MINE = """with open("runs.txt", "a") as file:
    file.write("x")


def model(image):
    return image[:, :, 0] > 100
"""


@pytest.mark.parametrize(
    "family",
    [get_model(name, **({"trials": 2} if name in CLASSICAL else {})) for name in MODEL_DESCRIPTIONS
     if name not in ("variance", "multilayer", "convolutional")]
    + [models.black_box(CLASSICAL["kmeans"][0], {"clusters": [2, 3]}, trials=2)],
    ids=lambda family: family.__name__,
)  # fmt: skip
def test_an_unpickled_family_predicts_the_same(task, family):
    pairs = task.tallies()["image"].pairs
    here, there = (each(task, seed=1) for each in (family, pickle.loads(pickle.dumps(family))))
    assert there.same_probability("image", pairs).tolist() == here.same_probability("image", pairs).tolist()


def test_networks_can_be_pickled(task):
    torch = pytest.importorskip("torch", reason="networks need PyTorch")
    module = torch.nn.Linear(3, 3)
    family = models.network(module, "lab", starts=1, steps=5)
    pairs = task.tallies()["image"].pairs
    here, there = (each(task, seed=1) for each in (family, pickle.loads(pickle.dumps(family))))
    assert there.same_probability("image", pairs).tolist() == here.same_probability("image", pairs).tolist()


def test_a_users_file_is_run_once_and_only_when_needed(task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    sent = pickle.dumps(get_model_lazily("mine.py"))
    assert not (tmp_path / "runs.txt").exists()
    for _ in range(3):
        pickle.loads(sent)(task, seed=0)
    assert (tmp_path / "runs.txt").read_text() == "x"


def test_a_task_is_pickled_without_its_cache(task):
    task.compute_once("cannot be pickled", lambda: lambda: 0)
    again = pickle.loads(pickle.dumps(task))
    assert again.features("lab", "image").tolist() == task.features("lab", "image").tolist()
    assert (again.responses.same == task.responses.same).all()
