"""Torch networks as models: any module from features to logits (n, K), or from an image to logits (K, h, w).

One bridge: the maps' cost and its slope are those of `Objective`, handed to torch as a function with a known gradient.
So a network is fitted by the very cost of the free maps, with the same losses, weights and smoothness. Weights are
saved as plain tensors and only ever loaded as such.
"""

import copy
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput, MissingExtra, NotConverged, NotFound
from vseg.features import standardised
from vseg.models.families import sendable
from vseg.models.linear import name_of
from vseg.models.task import Task
from vseg.reconstruction.objective import Objective, objective
from vseg.reconstruction.smoothness import smoothness as penalty_of

if TYPE_CHECKING:
    import torch

STARTS, STEPS, RATE = 3, 200, 0.02
DECAY = 1e-3  # of the mean squared weight, beside the cost of an answer
METHODS = ("lbfgs", "adam")
CELL_PX = 8  # pixels of a cell, as an image's network sees it

# torch has one source of chance a process: fits take turns with it, so that results do not depend on threads.
_CHANCE = threading.Lock()


@dataclass(frozen=True)
class Training:
    """How a network is trained: the cost, and how often and how long it is lowered."""

    method: str
    loss: str
    smoothness: float
    starts: int
    steps: int
    rate: float
    decay: float

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InvalidInput(f"A network is fitted by {' or '.join(METHODS)}, got {self.method!r}.")
        if self.starts < 1 or self.steps < 1:
            raise InvalidInput(
                f"Expected one start and one step or more, got starts={self.starts} and steps={self.steps}."
            )


@dataclass(frozen=True, eq=False)
class Network:
    """A fitted network; `cost` is per answer, in the units of the loss."""

    task: Task
    module: "torch.nn.Module"
    inputs: "Callable[[str], torch.Tensor]"
    sampled: "Callable[[torch.Tensor], torch.Tensor]"
    cost: float

    @property
    def parameters(self) -> dict[str, Any]:
        """How many weights it has and its cost an answer."""
        return {"weights": sum(each.numel() for each in self.module.parameters()), "cost": self.cost}

    def maps(self, image: str) -> Maps:
        """What it predicts of an image."""
        import torch

        with torch.no_grad():
            logits = _checked(self.sampled(self.module(self.inputs(image))), self.task)
            return Maps(self.task.layout, torch.softmax(logits, 1).numpy())

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """P(same) of pairs on an image (Eq. 2)."""
        return self.maps(image).same_probability(pairs)

    def save(self, path: str | Path) -> None:
        """Write the weights."""
        import torch

        torch.save(self.module.state_dict(), path)


@sendable
def network(
    module: Any,
    features: Any = "lab",
    *,
    method: str = "lbfgs",
    loss: str = "cross_entropy",
    smoothness: float = 0.0,
    starts: int = STARTS,
    steps: int = STEPS,
    rate: float = RATE,
    decay: float = DECAY,
) -> Callable[..., Network]:
    """Fit any torch network from features (n, D), standardised, to logits (n, K), shared over all images of a task.

    Parameters
    ----------
    module : torch.nn.Module, or a function `(inputs, segments) -> torch.nn.Module`
        A module is copied; its own weights are the first start, and parts with `reset_parameters` are drawn anew for
        the others.
    features : as for every model
    method : "lbfgs" (the paper's) or "adam" (for large networks)
    loss, smoothness : of the cost, as in `reconstruct`
    starts, steps, rate : how often and how long it is trained, and Adam's rate
    decay : weight of the mean squared weight, a prior
    """
    _torch()
    training = Training(method, loss, smoothness, starts, steps, rate, decay)

    def fit(task: Task, *, seed: int) -> Network:
        import torch

        rows = np.concatenate([task.features(features, name) for name in task.responses.images])
        _, mean, scale = standardised(rows)

        def inputs(image: str) -> torch.Tensor:
            return torch.from_numpy((task.features(features, image) - mean) / scale)

        return _fitted(task, module, rows.shape[1], inputs, lambda logits: logits, training, seed)

    fit.__name__ = f"{_named(module)}[{name_of(features)}]"
    return fit


@sendable
def image_network(
    module: Any = None,
    *,
    method: str = "adam",
    loss: str = "cross_entropy",
    smoothness: float = 0.0,
    starts: int = 2,
    steps: int = 150,
    rate: float = RATE,
    decay: float = DECAY,
    side_px: int | None = None,
) -> Callable[..., Network]:
    """Fit a network from an image (1, 3, H, W), from -1 to 1, to logits (1, K, h, w), read off at the locations.

    Parameters
    ----------
    module : torch.nn.Module, or a function `(inputs, segments) -> torch.nn.Module`, optional
        By default a small convolutional one, `convolutional`.
    side_px : int, optional
        The longer side that the network sees; by default 8 pixels a cell. Others as for `network`.
    """
    _torch()
    training = Training(method, loss, smoothness, starts, steps, rate, decay)
    chosen = convolutional if module is None else module

    def fit(task: Task, *, seed: int) -> Network:
        import torch

        side = side_px or CELL_PX * round(np.sqrt(len(task.layout)))

        def inputs(image: str) -> torch.Tensor:
            small = task.once(("network", side, image), lambda: _resized(task.picture(image), side))
            return torch.from_numpy(small)[None]

        def sampled(logits: torch.Tensor) -> torch.Tensor:
            if logits.ndim != 4 or len(logits) != 1:
                raise InvalidInput(f"Expected logits (1, K, h, w) of an image, got {tuple(logits.shape)}.")
            return at_locations(logits, task.layout)

        return _fitted(task, chosen, 3, inputs, sampled, training, seed)

    fit.__name__ = _named(chosen)
    return fit


def multilayer(inputs: int, segments: int, hidden: int = 16) -> "torch.nn.Module":
    """One hidden layer: the least that is not linear."""
    nn = _torch().nn
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, segments))


def convolutional(inputs: int, segments: int, channels: int = 12) -> "torch.nn.Module":
    """Three small convolutions, each twice as coarse in reach; a quarter of the image's resolution."""
    nn = _torch().nn
    return nn.Sequential(
        nn.Conv2d(inputs, channels, 5, stride=2, padding=2), nn.SiLU(),
        nn.Conv2d(channels, channels, 3, stride=2, padding=1), nn.SiLU(),
        nn.Conv2d(channels, channels, 3, padding=2, dilation=2), nn.SiLU(),
        nn.Conv2d(channels, segments, 1),
    )  # fmt: skip


def load_weights(module: "torch.nn.Module", path: str | Path) -> "torch.nn.Module":
    """Put weights that `Network.save` wrote into a module of the same shape; a file with anything else is refused."""
    torch = _torch()
    if not Path(path).is_file():
        raise NotFound(f"There are no weights at {path}.")
    try:
        module.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:
        first = str(error).strip().splitlines()[0]
        raise InvalidInput(f"{path} holds no weights for this network: {first}") from error
    return module


def logits_and_gradients(
    module: Any, x: NDArray[np.float64], segments: int
) -> tuple[NDArray[np.float64], dict[str, float] | None]:
    """Logits of features, and the size of the slope at each of the weights; None if torch finds no slope."""
    torch = _torch()
    with _CHANCE, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = _made(module, x.shape[1], segments, anew=False).eval()
        logits = made(torch.from_numpy(x))
        found = np.asarray(logits.detach().numpy(), np.float64)
        weights = {name: each for name, each in made.named_parameters() if each.requires_grad}
        if not weights:
            return found, {}
        if not logits.requires_grad:
            return found, None
        # Squares, not a sum: softmax does not notice what all logits share.
        torch.sum(torch.log_softmax(logits, -1) ** 2).backward()
    return found, {
        name: 0.0 if each.grad is None else float(each.grad.norm()) for name, each in weights.items()
    }


def at_locations(values: "torch.Tensor", layout: Layout) -> "torch.Tensor":
    """(n, C) values (1, C, h, w) of an image at the locations, bilinear."""
    torch = _torch()
    where = torch.from_numpy(2 * layout.positions - 1).to(values.dtype)[None, None]
    read = torch.nn.functional.grid_sample(values, where, padding_mode="border", align_corners=False)
    return read[0, :, 0].T


def cost_of(problem: Objective, probabilities: "torch.Tensor") -> "torch.Tensor":
    """The objective of maps, as a tensor that torch can go back from."""
    found: torch.Tensor = _bridge().apply(probabilities, problem)
    return found


@cache
def _bridge() -> Any:
    """The one bridge: a function whose slope torch is told."""
    torch = _torch()

    class Cost(torch.autograd.Function):  # type: ignore[misc, name-defined, unused-ignore]
        @staticmethod
        def forward(ctx: Any, p: Any, problem: Objective) -> Any:
            ctx.p, ctx.problem = np.ascontiguousarray(p.detach().numpy(), np.float64), problem
            return torch.tensor(problem.value(ctx.p), dtype=p.dtype)

        @staticmethod
        def backward(ctx: Any, *slopes: Any) -> Any:
            return slopes[0] * torch.from_numpy(ctx.problem.gradient(ctx.p)).to(slopes[0].dtype), None

    return Cost


def _fitted(
    task: Task,
    module: Any,
    width: int,
    inputs: "Callable[[str], torch.Tensor]",
    sampled: "Callable[[torch.Tensor], torch.Tensor]",
    training: Training,
    seed: int,
) -> Network:
    """The best of several starts."""
    import torch

    penalty = penalty_of(task.layout)
    problems = {
        name: objective(
            tally, task.segments, loss=training.loss, strength=training.smoothness, kernel=penalty
        )
        for name, tally in task.tallies().items()
    }
    pairs = sum(float(each.tested.weight.sum()) / 2 for each in problems.values())

    def cost(made: torch.nn.Module) -> torch.Tensor:
        total = sum(
            cost_of(problem, torch.softmax(_checked(sampled(made(inputs(name))), task), 1))
            for name, problem in problems.items()
        )
        if torch.is_grad_enabled() and not total.requires_grad:
            raise InvalidInput("The network's logits do not depend on its weights: torch finds no gradient.")
        return total / pairs + training.decay * sum((each**2).sum() for each in made.parameters())

    found: list[tuple[float, torch.nn.Module]] = []
    with _CHANCE, torch.random.fork_rng(devices=[]):
        for start in range(training.starts):
            torch.manual_seed(int(np.random.SeedSequence([seed, start]).generate_state(1)[0]))
            made = _made(module, width, task.segments, anew=start > 0)
            _train(made, cost, training)
            with torch.no_grad():
                found.append((float(cost(made)), made.eval()))
    finite = [each for each in found if np.isfinite(each[0])]
    if not finite:
        raise NotConverged(f"All {len(found)} starts ended in numbers that are not finite; lower the rate.")
    value, best = min(finite, key=lambda each: each[0])
    return Network(task, best, inputs, sampled, value)


def _train(
    made: "torch.nn.Module", cost: "Callable[[torch.nn.Module], torch.Tensor]", training: Training
) -> None:
    import torch

    weights = [each for each in made.parameters() if each.requires_grad]
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
        value = cost(made)
        value.backward()  # type: ignore[no-untyped-call, unused-ignore]
        return float(value.detach())

    made.train()
    for _ in range(1 if by_lbfgs else training.steps):
        optimiser.step(closure)


def _made(module: Any, width: int, segments: int, anew: bool) -> "torch.nn.Module":
    import torch

    if isinstance(module, torch.nn.Module):
        made = copy.deepcopy(module)
        for part in made.modules() if anew else ():
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()
    else:
        made = module(width, segments)
        if not isinstance(made, torch.nn.Module):
            raise InvalidInput(
                f"Expected {_named(module)} to make a torch.nn.Module, got {type(made).__name__}."
            )
    return made.double()


def _checked(logits: "torch.Tensor", task: Task) -> "torch.Tensor":
    wanted = (len(task.layout), task.segments)
    if tuple(logits.shape) != wanted:
        raise InvalidInput(f"Expected logits of shape {wanted}, a row a location, got {tuple(logits.shape)}.")
    if not bool(logits.isfinite().all()):
        raise InvalidInput("The network's logits are not all finite numbers.")
    return logits


def _resized(picture: NDArray[np.uint8], side: int) -> NDArray[np.float64]:
    """(3, h, w) from -1 to 1, the longer side of that many pixels."""
    from skimage.transform import resize

    height, width = picture.shape[:2]
    ratio = side / max(height, width)
    shape = max(8, round(height * ratio)), max(8, round(width * ratio))
    small = resize(picture.astype(np.float64) / 255, shape, anti_aliasing=ratio < 1)
    return np.ascontiguousarray(np.moveaxis(2 * small - 1, 2, 0))


def _named(module: Any) -> str:
    return str(getattr(module, "__name__", type(module).__name__))


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtra('Fitting a network needs PyTorch: pip install "vseg[torch]".') from error
    return torch
