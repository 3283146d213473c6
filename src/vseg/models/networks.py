"""Torch networks as models: any module from features to logits (n, K), or from an image to logits (K, h, w).

The cost of the maps and its gradient are those of `Objective`, passed to torch as a function with a known gradient.
So a network is fitted with the same cost as `vseg.reconstruct`: the same losses, weights and smoothness. Weights are
saved as plain tensors and only loaded as such.
"""

import copy
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput, MissingExtra, NotConverged, NotFound
from vseg.features import FeatureSource, standardise
from vseg.features.extraction import describe_features
from vseg.models.model_interface import picklable
from vseg.models.task import Task
from vseg.reconstruction.kernels import build_smoothness as penalty_of
from vseg.reconstruction.objective import Objective, build_objective

if TYPE_CHECKING:
    import torch

STARTS, STEPS, LEARNING_RATE = 3, 200, 0.02
DECAY = 1e-3  # weight decay, relative to the cost per answer
Method: TypeAlias = Literal["lbfgs", "adam"]
CELL_PX = 8  # pixels per cell of the image that a network sees

ModuleSource: TypeAlias = "torch.nn.Module | Callable[[int, int], torch.nn.Module]"
"""A module, or a function `(inputs, segments)` that returns one."""

# torch has one random state per process: fits use it in turn, so that results do not depend on threads.
_RANDOM_STATE_LOCK = threading.Lock()


@dataclass(frozen=True)
class TrainingSettings:
    """How a network is trained: the optimiser, the cost, and the number of starts and steps."""

    method: Method
    loss: str
    smoothness: float
    starts: int
    steps: int
    rate: float
    decay: float

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise InvalidInput(
                f"A network is fitted by {' or '.join(get_args(Method))}, got {self.method!r}."
            )
        if self.starts < 1 or self.steps < 1:
            raise InvalidInput(
                f"Expected at least one start and one step, got starts={self.starts} and steps={self.steps}."
            )


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A fitted network.

    Attributes
    ----------
    task : Task
        The task it was fitted to.
    module : torch.nn.Module
        The network.
    get_input : callable
        From an image's name to the network's input.
    sample : callable
        From the network's output to logits (n, K) at the locations.
    cost : float
        Per answer, in the units of the loss.
    """

    task: Task
    module: "torch.nn.Module"
    get_input: "Callable[[str], torch.Tensor]"
    sample: "Callable[[torch.Tensor], torch.Tensor]"
    cost: float

    @property
    def parameters(self) -> dict[str, float]:
        """The number of weights and the cost per answer."""
        return {"weights": sum(each.numel() for each in self.module.parameters()), "cost": self.cost}

    def maps(self, image: str) -> Maps:
        """Return the maps of an image."""
        import torch

        with torch.no_grad():
            logits = _check_logits(self.sample(self.module(self.get_input(image))), self.task)
            return Maps(self.task.layout, torch.softmax(logits, 1).numpy())

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """Return P(same) of pairs on an image (Eq. 2)."""
        return self.maps(image).same_probability(pairs)

    def save(self, path: str | Path) -> None:
        """Write the weights to a file."""
        import torch

        torch.save(self.module.state_dict(), path)


@picklable
def network(
    module: ModuleSource,
    features: FeatureSource = "lab",
    *,
    method: Method = "lbfgs",
    loss: str = "cross_entropy",
    smoothness: float = 0.0,
    starts: int = STARTS,
    steps: int = STEPS,
    rate: float = LEARNING_RATE,
    decay: float = DECAY,
) -> Callable[..., NetworkModel]:
    """Return a family from any torch network from standardised features (n, D) to logits (n, K).

    The network is shared by all images of a task.

    Parameters
    ----------
    module : torch.nn.Module, or a function `(inputs, segments) -> torch.nn.Module`
        A module is copied; its own weights are the first start, and for the other starts its parts with
        `reset_parameters` are initialised again.
    features : str, callable or mapping
        The features.
    method : "lbfgs" or "adam"
        The optimiser: the paper's, or one for large networks.
    loss : str
        The loss of an answer, as in `vseg.reconstruct`.
    smoothness : float
        λ, as in `vseg.reconstruct`.
    starts : int
        Number of starts, of which the best is used.
    steps : int
        Number of optimiser steps.
    rate : float
        Adam's learning rate.
    decay : float
        Weight decay, a prior.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> NetworkModel`.
    """
    _import_torch()
    training = TrainingSettings(method, loss, smoothness, starts, steps, rate, decay)

    def fit(task: Task, *, seed: int) -> NetworkModel:
        import torch

        rows = np.concatenate([task.features(features, name) for name in task.responses.images])
        _, mean, scale = standardise(rows)

        def get_input(image: str) -> torch.Tensor:
            return torch.from_numpy((task.features(features, image) - mean) / scale)

        return _fit(task, module, rows.shape[1], get_input, lambda logits: logits, training, seed)

    fit.__name__ = f"{_module_name(module)}[{describe_features(features)}]"
    return fit


@picklable
def image_network(
    module: "ModuleSource | None" = None,
    *,
    method: Method = "adam",
    loss: str = "cross_entropy",
    smoothness: float = 0.0,
    starts: int = 2,
    steps: int = 150,
    rate: float = LEARNING_RATE,
    decay: float = DECAY,
    side_px: int | None = None,
) -> Callable[..., NetworkModel]:
    """Return a family from a network from an image (1, 3, H, W), from -1 to 1, to logits (1, K, h, w).

    The logits are interpolated at the locations.

    Parameters
    ----------
    module : torch.nn.Module, or a function `(inputs, segments) -> torch.nn.Module`, optional
        By default a small convolutional network, `convolutional`.
    method, loss, smoothness, starts, steps, rate, decay
        As for `network`.
    side_px : int, optional
        The longer side of the network's input; by default 8 pixels per cell.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> NetworkModel`.
    """
    _import_torch()
    training = TrainingSettings(method, loss, smoothness, starts, steps, rate, decay)
    chosen = convolutional if module is None else module

    def fit(task: Task, *, seed: int) -> NetworkModel:
        import torch

        side = side_px or CELL_PX * round(np.sqrt(len(task.layout)))

        def get_input(image: str) -> torch.Tensor:
            small = task.compute_once(
                ("network", side, image), lambda: _resize_image(task.get_image(image), side)
            )
            return torch.from_numpy(small)[None]

        def sample(logits: torch.Tensor) -> torch.Tensor:
            if logits.ndim != 4 or len(logits) != 1:
                raise InvalidInput(f"Expected logits (1, K, h, w) for an image, got {tuple(logits.shape)}.")
            return sample_at_locations(logits, task.layout)

        return _fit(task, chosen, 3, get_input, sample, training, seed)

    fit.__name__ = _module_name(chosen)
    return fit


def multilayer(inputs: int, segments: int, hidden: int = 16) -> "torch.nn.Module":
    """Return a network with one hidden layer."""
    nn = _import_torch().nn
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, segments))


def convolutional(inputs: int, segments: int, channels: int = 12) -> "torch.nn.Module":
    """Return a network of three small convolutions with growing receptive fields, at a quarter of the resolution."""
    nn = _import_torch().nn
    return nn.Sequential(
        nn.Conv2d(inputs, channels, 5, stride=2, padding=2), nn.SiLU(),
        nn.Conv2d(channels, channels, 3, stride=2, padding=1), nn.SiLU(),
        nn.Conv2d(channels, channels, 3, padding=2, dilation=2), nn.SiLU(),
        nn.Conv2d(channels, segments, 1),
    )  # fmt: skip


def load_weights(module: "torch.nn.Module", path: str | Path) -> "torch.nn.Module":
    """Load weights written by `NetworkModel.save` into a module of the same shape.

    Only plain tensors are loaded; a file with anything else raises InvalidInput.

    Parameters
    ----------
    module : torch.nn.Module
        The module, whose weights are replaced.
    path : str or Path
        The file.

    Returns
    -------
    torch.nn.Module
        The same module.
    """
    torch = _import_torch()
    if not Path(path).is_file():
        raise NotFound(f"There are no weights at {path}.")
    try:
        module.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:
        first = str(error).strip().splitlines()[0]
        raise InvalidInput(f"{path} holds no weights for this network: {first}") from error
    return module


def logits_and_gradients(
    module: ModuleSource, x: NDArray[np.float64], segments: int
) -> tuple[NDArray[np.float64], dict[str, float] | None]:
    """Return the logits of features and the norm of the gradient of each weight; None if there is no gradient."""
    torch = _import_torch()
    with _RANDOM_STATE_LOCK, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = _build_module(module, x.shape[1], segments, reset=False).eval()
        logits = network(torch.from_numpy(x))
        values = np.asarray(logits.detach().numpy(), np.float64)
        weights = {name: each for name, each in network.named_parameters() if each.requires_grad}
        if not weights:
            return values, {}
        if not logits.requires_grad:
            return values, None
        # Squares and not a sum, because the softmax ignores what all logits share.
        torch.sum(torch.log_softmax(logits, -1) ** 2).backward()
    return values, {
        name: 0.0 if each.grad is None else float(each.grad.norm()) for name, each in weights.items()
    }


def sample_at_locations(values: "torch.Tensor", layout: Layout) -> "torch.Tensor":
    """Return (n, C), the values (1, C, h, w) of an image interpolated bilinearly at the locations."""
    torch = _import_torch()
    positions = torch.from_numpy(2 * layout.positions - 1).to(values.dtype)[None, None]
    sampled = torch.nn.functional.grid_sample(values, positions, padding_mode="border", align_corners=False)
    return sampled[0, :, 0].T


def compute_cost(problem: Objective, probabilities: "torch.Tensor") -> "torch.Tensor":
    """Return the objective of maps as a tensor with a gradient."""
    cost: torch.Tensor = _cost_function().apply(probabilities, problem)
    return cost


@cache
def _cost_function() -> Any:
    """Return the torch function of the cost, whose gradient is that of `Objective`."""
    torch = _import_torch()

    class Cost(torch.autograd.Function):  # type: ignore[misc, name-defined, unused-ignore]
        @staticmethod
        def forward(ctx: Any, p: Any, problem: Objective) -> Any:
            ctx.p, ctx.problem = np.ascontiguousarray(p.detach().numpy(), np.float64), problem
            return torch.tensor(problem.value(ctx.p), dtype=p.dtype)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return gradients[0] * torch.from_numpy(ctx.problem.gradient(ctx.p)).to(gradients[0].dtype), None

    return Cost


def _fit(
    task: Task,
    module: ModuleSource,
    width: int,
    get_input: "Callable[[str], torch.Tensor]",
    sample: "Callable[[torch.Tensor], torch.Tensor]",
    training: TrainingSettings,
    seed: int,
) -> NetworkModel:
    """Train from several starts and return the best network."""
    import torch

    penalty = penalty_of(task.layout)
    problems = {
        name: build_objective(
            tally, task.segments, loss=training.loss, strength=training.smoothness, kernel=penalty
        )
        for name, tally in task.tallies().items()
    }
    pairs = sum(float(each.tested.weight.sum()) / 2 for each in problems.values())

    def cost(network: torch.nn.Module) -> torch.Tensor:
        total = sum(
            compute_cost(problem, torch.softmax(_check_logits(sample(network(get_input(name))), task), 1))
            for name, problem in problems.items()
        )
        if torch.is_grad_enabled() and not total.requires_grad:
            raise InvalidInput("The network's logits do not depend on its weights: there is no gradient.")
        return total / pairs + training.decay * sum((each**2).sum() for each in network.parameters())

    results: list[tuple[float, torch.nn.Module]] = []
    with _RANDOM_STATE_LOCK, torch.random.fork_rng(devices=[]):
        for start in range(training.starts):
            torch.manual_seed(int(np.random.SeedSequence([seed, start]).generate_state(1)[0]))
            network = _build_module(module, width, task.segments, reset=start > 0)
            _train(network, cost, training)
            with torch.no_grad():
                results.append((float(cost(network)), network.eval()))
    finite = [each for each in results if np.isfinite(each[0])]
    if not finite:
        raise NotConverged(f"All {len(results)} starts ended in numbers that are not finite; lower the rate.")
    value, best = min(finite, key=lambda each: each[0])
    return NetworkModel(task, best, get_input, sample, value)


def _train(
    network: "torch.nn.Module", cost: "Callable[[torch.nn.Module], torch.Tensor]", training: TrainingSettings
) -> None:
    import torch

    weights = [each for each in network.parameters() if each.requires_grad]
    if not weights:
        return
    by_lbfgs = training.method == "lbfgs"
    optimiser: torch.optim.Optimizer = (
        torch.optim.LBFGS(weights, max_iter=training.steps, line_search_fn="strong_wolfe")
        if by_lbfgs
        else torch.optim.Adam(weights, lr=training.rate)
    )

    def closure() -> float:
        optimiser.zero_grad()
        value = cost(network)
        value.backward()  # type: ignore[no-untyped-call, unused-ignore]
        return float(value.detach())

    network.train()
    for _ in range(1 if by_lbfgs else training.steps):
        optimiser.step(closure)


def _build_module(module: ModuleSource, width: int, segments: int, reset: bool) -> "torch.nn.Module":
    import torch

    if isinstance(module, torch.nn.Module):
        network = copy.deepcopy(module)
        for part in network.modules() if reset else ():
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()
    else:
        network = module(width, segments)
        if not isinstance(network, torch.nn.Module):
            raise InvalidInput(
                f"Expected {_module_name(module)} to return a torch.nn.Module, got {type(network).__name__}."
            )
    return network.double()


def _check_logits(logits: "torch.Tensor", task: Task) -> "torch.Tensor":
    expected = (len(task.layout), task.segments)
    if tuple(logits.shape) != expected:
        raise InvalidInput(
            f"Expected logits of shape {expected}, a row for each location, got {tuple(logits.shape)}."
        )
    if not bool(logits.isfinite().all()):
        raise InvalidInput("The network's logits are not all finite numbers.")
    return logits


def _resize_image(image: NDArray[np.uint8], side: int) -> NDArray[np.float64]:
    """Return (3, h, w) values from -1 to 1, with this many pixels on the longer side."""
    from skimage.transform import resize

    height, width = image.shape[:2]
    ratio = side / max(height, width)
    shape = max(8, round(height * ratio)), max(8, round(width * ratio))
    small = resize(image.astype(np.float64) / 255, shape, anti_aliasing=ratio < 1)
    return np.ascontiguousarray(np.moveaxis(2 * small - 1, 2, 0))


def _module_name(module: ModuleSource) -> str:
    return str(getattr(module, "__name__", type(module).__name__))


def _import_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtra('Fitting a network needs PyTorch: pip install "vseg[torch]".') from error
    return torch
