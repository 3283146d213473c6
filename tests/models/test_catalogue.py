"""Test models by name, and users' models of every kind."""

import subprocess
import sys

import numpy as np
import pytest

from vseg import Maps, models
from vseg.errors import InvalidInput, MissingExtra, NotFound
from vseg.models.catalogue import MODEL_DESCRIPTIONS, MODELS_WITH_FEATURES, as_family, detect_kind, get_model

TORCH = ("multilayer", "convolutional")

MINE = """
import numpy as np

def model(image):
    return image[:, :, 0] > image[:, :, 1]

def levels(image, level):
    return image[:, :, 0] > level
levels.search = {"level": (10, 240)}

def alike(features, pairs):
    return np.exp(-np.abs(features[pairs.i] - features[pairs.j]).sum(axis=1) / 20)

def broken(image):
    raise RuntimeError("no idea")

def short(image):
    return np.zeros(7)

class Half:
    def same_probability(self, image, pairs):
        return np.full(len(pairs), 0.5)

def family(task, *, seed):
    return Half()

def odd(image):
    return 1
odd.kind = "picture"
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)


@pytest.mark.parametrize("name", [name for name in MODEL_DESCRIPTIONS if name not in TORCH])
def test_every_model_by_name_can_be_fitted(task, name):
    small = {"trials": 2} if name in models.catalogue.CLASSICAL else {}
    two = name == "variance"
    given = models.Task(task.responses, task.images, 2) if two else task
    fitted = get_model(name, **small)(given, seed=0)
    pairs = task.tallies()["image"].pairs
    q = fitted.same_probability("image", pairs)
    assert q.shape == (len(pairs),)
    assert ((q >= 0) & (q <= 1)).all()
    if hasattr(fitted, "maps"):
        assert isinstance(fitted.maps("image"), Maps)


@pytest.mark.parametrize("name", TORCH)
def test_networks_by_name(task, name):
    pytest.importorskip("torch", reason="networks need PyTorch")
    fitted = get_model(name, starts=1, steps=3)(task, seed=0)
    assert fitted.maps("image").segments == 3


def test_every_model_has_a_description_and_some_take_features():
    assert all(text.endswith(".") and len(text) > 15 for text in MODEL_DESCRIPTIONS.values())
    for name in set(MODELS_WITH_FEATURES) - set(TORCH):
        assert "rgb" in get_model(name, features="rgb").__name__
    assert get_model("slic", features="rgb").__name__ == "slic"


@pytest.mark.parametrize(
    ("function", "kind"),
    [("model", "maps"), ("levels", "maps"), ("alike", "pairs"), ("family", "family")],
)
def test_users_models_of_every_kind_are_fitted(mine, task, function, kind):
    from vseg._support.user_code import load_function as function_of

    assert detect_kind(function_of(f"mine.py:{function}")) == kind
    fitted = get_model(f"mine.py:{function}", features="lab")(task, seed=0)
    pairs = task.tallies()["image"].pairs
    assert fitted.same_probability("image", pairs).shape == (len(pairs),)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("nothing", InvalidInput, "There is no model 'nothing'; there are chance, base_rate"),
        ("none.py", NotFound, "There is no file none.py"),
        ("mine.py:broken", InvalidInput, "failed on a small image .*RuntimeError: no idea"),
        ("mine.py:short", InvalidInput, r"24 x 24 pixels the model gave an array of shape \(7,\)"),
        ("mine.py:odd", InvalidInput, "A model's kind is one of family, maps, logits, pairs, got 'picture'"),
    ],
)
def test_invalid_models_are_refused(mine, source, error, message):
    with pytest.raises(error, match=message):
        get_model(source)


def test_unknown_settings_are_refused():
    with pytest.raises(InvalidInput, match=r"Model chance: .*unexpected keyword argument 'width'"):
        get_model("chance", width=3)
    with pytest.raises(InvalidInput, match="A model is a callable, got int"):
        as_family(5)


def test_a_declared_kind_is_used():
    def family(a, b):
        return 0

    family.kind = "family"
    assert as_family(family) is family


def test_torch_is_not_imported_unless_needed():
    program = (
        "import sys, vseg, vseg.models, vseg.features, vseg.evaluation.model_comparison\n"
        "vseg.models.get_model('logistic')\n"
        "vseg.models.catalogue.detect_kind(lambda image: image[:, :, 0])\n"
        "print({'torch', 'sklearn', 'optuna'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    "call",
    [
        lambda: get_model("multilayer"),
        lambda: get_model("convolutional"),
        lambda: models.load_weights(None, "x.pt"),
    ],
)
def test_missing_torch_is_reported(monkeypatch, call):
    monkeypatch.setitem(sys.modules, "torch", None)  # makes the import fail
    with pytest.raises(MissingExtra, match=r'Fitting a network needs PyTorch: pip install "vseg\[torch\]"\.'):
        call()


def test_torch_modules_are_detected_without_importing_torch():
    assert not models.catalogue.is_torch_module(np.zeros(3))
