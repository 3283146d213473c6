"""Test the activations of torch networks as features."""

import sys

import numpy as np
import pytest

from vseg import Grid, Scatter, features
from vseg.errors import InvalidInput, MissingExtra
from vseg.features.networks import activations

pytestmark = pytest.mark.slow

IMAGE = np.random.default_rng(0).integers(0, 256, (36, 48, 3)).astype(np.uint8)


def test_missing_torch_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # makes the import fail
    with pytest.raises(MissingExtra, match=r'need PyTorch: pip install "vseg\[torch\]"'):
        activations(None, "0")


@pytest.fixture
def torch():
    return pytest.importorskip(
        "torch", reason="activations need PyTorch, which is large and not part of vseg[test]"
    )


def test_a_layer_at_the_locations(torch):
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 5, 3, stride=2, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(5, 7, 3)
    )
    feature = activations(net, "1")
    found = features.extract(feature, IMAGE, Grid(6))
    assert found.shape == (36, 5)
    assert found.min() >= 0
    assert features.extract(activations(net, "2"), IMAGE, Scatter(Grid(3).positions)).shape == (9, 7)
    assert feature.__name__ == "Sequential.1"
    assert not net[1]._forward_hooks


def test_activations_are_sampled_at_the_locations(torch):
    """The identity network returns the pixels if locations are the centres of pixels."""
    small = IMAGE[:6, :6]
    found = features.extract(activations(torch.nn.Sequential(torch.nn.Identity()), "0"), small, Grid(6))
    assert found == pytest.approx(small.reshape(36, 3) / 255, abs=1e-6)
    doubled = activations(torch.nn.Sequential(torch.nn.Identity()), "0", prepare=lambda x: 2 * x)
    assert features.extract(doubled, small, Grid(6)) == pytest.approx(2 * found, abs=1e-6)


def test_invalid_layers_are_refused(torch):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36 * 48 * 3, 4))
    with pytest.raises(InvalidInput, match="The network has no layer 'head'; it has 0, 1"):
        activations(net, "head")
    with pytest.raises(InvalidInput, match=r"Layer 1 gives \(1, 4\); expected \(1, C, h, w\)"):
        features.extract(activations(net, "1"), IMAGE, Grid(4))
