"""Test torch networks: the gradient of the cost, fitted networks, and safe loading of weights."""

import pickle

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="networks need PyTorch, which is large and not part of vseg[test]"
)

from vseg import designs, simulate, stimuli  # noqa: E402
from vseg.data.responses import concatenate  # noqa: E402
from vseg.errors import InvalidInput, NotConverged, NotFound  # noqa: E402
from vseg.models import Task, base_rate, image_network, load_weights, logistic, network  # noqa: E402
from vseg.models.networks import compute_cost, convolutional, multilayer, sample_at_locations  # noqa: E402
from vseg.reconstruction.objective import build_objective  # noqa: E402

pytestmark = pytest.mark.slow

torch.set_num_threads(1)


def linear(inputs, segments):
    return torch.nn.Linear(inputs, segments)


@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
def test_the_gradient_of_the_cost(task, loss):
    problem = build_objective(task.tallies()["image"], 3, loss=loss, strength=0.7)
    logits = torch.randn(
        81, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True
    )
    assert torch.autograd.gradcheck(
        lambda f: compute_cost(problem, torch.softmax(f, 1)), logits, atol=1e-4, rtol=1e-3
    )


def test_a_linear_network_is_the_logistic_model(task):
    """The same model fitted in another way has the same maps, except for the difference of the priors."""
    ours = logistic("lab", prior_width=8.0)(task, seed=0).maps("image")
    theirs = network(linear, "lab", decay=1e-5)(task, seed=0).maps("image")
    assert theirs.distance_to(ours) < 0.1


@pytest.mark.parametrize("method", ["lbfgs", "adam"])
def test_a_hidden_layer(task, nats, method):
    family = network(multilayer, "lab", method=method, starts=2, steps=60)
    fitted = family(task, seed=0)
    assert nats(fitted) < nats(base_rate()(task, seed=0)) - 0.1
    assert family(task, seed=0).maps("image") == fitted.maps("image")
    assert fitted.parameters["weights"] == (3 + 1) * 16 + (16 + 1) * 3


def test_a_module_is_copied_and_initialised_again(task):
    module = torch.nn.Linear(3, 3)
    before = module.weight.detach().clone()
    fitted = network(module, "lab", steps=20)(task, seed=0)
    assert torch.equal(module.weight, before)
    assert fitted.module is not module
    assert network(module).__name__ == "Linear[lab]"


def test_a_convolutional_network_is_shared_by_images(truth, task):
    other = stimuli.random_maps(truth.layout, segments=3, entropy=0.05, seed=5)
    pictures = {**task.images, "other": stimuli.colour_image(other, spread=0.04, seed=6).render(72)}
    pairs = designs.scattered(truth.layout, segments=3, seed=7)
    both = concatenate([task.responses, simulate(other, pairs, blocks=3, image="other", seed=8)])
    fitted = image_network(steps=60, starts=1)(Task(both, pictures, 3), seed=0)
    assert fitted.maps("image").distance_to(truth) < 0.3
    assert fitted.maps("other").distance_to(other) < 0.3
    assert image_network().__name__ == "convolutional"


def test_the_global_random_state_is_not_changed(task):
    torch.manual_seed(3)
    wanted = torch.rand(1)
    torch.manual_seed(3)
    network(multilayer, steps=2)(task, seed=0)
    assert torch.equal(torch.rand(1), wanted)


def test_values_at_locations(truth):
    x = torch.arange(9.0, dtype=torch.float64)[None, None, None].expand(1, 2, 9, 9)
    assert sample_at_locations(x, truth.layout)[:9, 0].numpy() == pytest.approx(np.arange(9))


def test_weights_are_saved_and_loaded(task, tmp_path):
    fitted = network(multilayer, "lab", steps=5, starts=1)(task, seed=0)
    fitted.save(tmp_path / "weights.pt")
    again = load_weights(multilayer(3, 3).double(), tmp_path / "weights.pt")
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), fitted.module.parameters(), strict=True))
    with pytest.raises(InvalidInput, match=r"weights.pt holds no weights for this network"):
        load_weights(multilayer(4, 3), tmp_path / "weights.pt")
    with pytest.raises(NotFound, match="There are no weights at"):
        load_weights(multilayer(3, 3), tmp_path / "none.pt")


class Trap:
    """An object that runs code when it is unpickled."""

    def __reduce__(self):
        return (open, ("opened", "w"))


def test_a_file_with_code_in_it_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"weight": Trap()}, "bad.pt")
    (tmp_path / "worse.pt").write_bytes(pickle.dumps(Trap()))
    for name in ("bad.pt", "worse.pt"):
        with pytest.raises(InvalidInput, match="holds no weights for this network"):
            load_weights(multilayer(3, 3), name)
    assert not (tmp_path / "opened").exists()


class Fixed(torch.nn.Module):
    """A module with fixed output."""

    def __init__(self, output):
        super().__init__()
        self.weight, self.output = torch.nn.Parameter(torch.ones(1)), output

    def forward(self, x):
        return (
            torch.full((len(x), 3), 1.0, dtype=x.dtype)
            if self.output is None
            else self.output.expand(len(x), -1) * self.weight
        )


@pytest.mark.parametrize(
    ("module", "kind", "message"),
    [
        (
            linear(3, 4),
            InvalidInput,
            r"Expected logits of shape \(81, 3\), a row for each location, got \(81, 4\)",
        ),
        (Fixed(torch.full((1, 3), torch.nan)), InvalidInput, "logits are not all finite numbers"),
        (Fixed(None), InvalidInput, "do not depend on its weights: there is no gradient"),
        (lambda inputs, segments: 5, InvalidInput, "to return a torch.nn.Module, got int"),
    ],
)
def test_networks_that_cannot_be_fitted(task, module, kind, message):
    with pytest.raises(kind, match=message):
        network(module)(task, seed=0)


def test_invalid_settings_are_refused():
    with pytest.raises(InvalidInput, match="A network is fitted by lbfgs or adam, got 'sgd'"):
        network(linear, method="sgd")
    with pytest.raises(InvalidInput, match="Expected at least one start and one step"):
        image_network(convolutional, starts=0)


def test_a_learning_rate_that_is_too_high(task):
    with pytest.raises((NotConverged, InvalidInput), match="finite"):
        network(multilayer, method="adam", rate=1e300, steps=3, starts=1)(task, seed=0)
