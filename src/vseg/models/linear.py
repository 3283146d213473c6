"""Models whose logits are linear in features: the multinomial logistic of Eq. 10, and the K = 2 variance model.

Both have a Gaussian prior on their weights, whose width is chosen by the evidence unless it is given; both are fitted
by Fisher scoring (see scoring.py) from several starts, shared over all images and participants of a task.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import read_only
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput, NotFound
from vseg.features import standardised
from vseg.models.families import sendable
from vseg.models.fisher_scoring import Fit, probabilities, problem, scored
from vseg.models.task import Task
from vseg.reconstruction.losses import code_of
from vseg.reconstruction.smoothness import smoothness as penalty_of

WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # of the prior, in weights per s.d. of a feature
STARTS = 8
STEPS_OF_A_START = 25  # enough to tell which leads lowest; only that one is followed to its end
ENERGY_WIDTHS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0)
CIRCULAR_DEG = 15.0  # how far the weight of one orientation tells of another's

# Features (n, D) -> (n, K, P), prior of width 1.
Design = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Linear:
    """A fitted model: maps of every image whose features are known, and its weights with their uncertainty.

    Attributes
    ----------
    features : as the model was given them
    design : callable
        From features to the design whose parameters have a standard normal prior.
    theta, covariance : NDArray, shape (P,) and (P, P)
    prior_width : float
    evidence : float
        log p(answers | width), by Laplace's approximation.
    """

    task: Task
    features: Any
    design: Design
    theta: NDArray[np.float64]
    covariance: NDArray[np.float64]
    prior_width: float
    evidence: float
    converged: bool

    def maps(self, image: str) -> Maps:
        """What it predicts of an image."""
        x = self.task.features(self.features, image)
        return Maps(self.task.layout, probabilities(self.design(x), self.theta))

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """P(same) of pairs on an image (Eq. 2)."""
        return self.maps(image).same_probability(pairs)


@sendable
def logistic(
    features: Any = "lab",
    *,
    prior_width: float | None = None,
    loss: str = "cross_entropy",
    smoothness: float = 0.0,
    starts: int = STARTS,
) -> Callable[..., Linear]:
    """The multinomial logistic model of Eq. 10 on any features: f_k = ω_k·x + β_k.

    Examples
    --------
    >>> from vseg.models import Task
    >>> fitted = logistic("lab")(Task(responses, images, segments=3), seed=0)  # doctest: +SKIP
    """

    def fit(task: Task, *, seed: int) -> Linear:
        rows = np.concatenate([task.features(features, name) for name in task.responses.images])
        _, mean, scale = standardised(rows)

        def design(x: NDArray[np.float64]) -> NDArray[np.float64]:
            columns = np.concatenate([(x - mean) / scale, np.ones((len(x), 1))], axis=1)
            return np.einsum("nd,kl->nkdl", columns, np.eye(task.segments)).reshape(len(x), task.segments, -1)

        widths = WIDTHS if prior_width is None else (prior_width,)
        return _fitted(task, features, design, widths, loss, smoothness, starts, seed)

    fit.__name__ = f"logistic[{name_of(features)}]"
    return fit


@sendable
def variance(
    features: Any = "orientation", *, prior_width: float | None = None, starts: int = STARTS
) -> "Callable[..., Variance]":
    """The paper's texture model: two segments, β = 0, ω_k = -1/σ_k² on oriented energies.

    Only ω₁ - ω₂ is identified by the answers, so that is what is fitted and reported. Neighbouring orientations have
    similar weights (a circular Gaussian prior); the energies are divided by their mean.
    """

    def fit(task: Task, *, seed: int) -> Variance:
        rows = np.concatenate([task.features(features, name) for name in task.responses.images])
        if task.segments != 2:
            raise InvalidInput(f"The variance model has 2 segments, the task {task.segments}; use logistic.")
        unit, spread = rows.mean(), np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0).mean()
        root = _circular_root(rows.shape[1])

        def design(x: NDArray[np.float64]) -> NDArray[np.float64]:
            turned = (x / spread) @ root
            return np.stack([turned, np.zeros_like(turned)], axis=1)

        widths = ENERGY_WIDTHS if prior_width is None else (prior_width,)
        found = _fitted(task, features, design, widths, "cross_entropy", 0.0, starts, seed)
        width = found.prior_width * root / spread * unit
        return Variance(
            **vars(found), difference=width @ found.theta, spread=width @ found.covariance @ width.T
        )

    fit.__name__ = f"variance[{name_of(features)}]"
    return fit


@dataclass(frozen=True, eq=False)
class Variance(Linear):
    """The fitted variance model. `difference` is ω₁ - ω₂ per mean energy, `spread` its covariance."""

    difference: NDArray[np.float64]
    spread: NDArray[np.float64]

    def interval(self, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bounds of each weight, at this level."""
        from scipy.stats import norm

        reach = norm.ppf(0.5 + level / 2) * np.sqrt(np.diag(self.spread))
        return self.difference - reach, self.difference + reach

    def draws(self, count: int, *, seed: int) -> NDArray[np.float64]:
        """(count, D) differences that the answers leave possible; from coin-flip answers they point anywhere."""
        rng = np.random.default_rng(seed)
        return rng.multivariate_normal(self.difference, self.spread, count, method="eigh")

    def aligned_to(self, maps: Mapping[str, Maps]) -> "Variance":
        """The same model with its two segments named as in these maps: their order is arbitrary."""
        kept = sum(
            np.sum(self.maps(name).probabilities * other.probabilities) for name, other in maps.items()
        )
        turned = sum(
            np.sum(self.maps(name).probabilities[:, ::-1] * other.probabilities)
            for name, other in maps.items()
        )
        if kept >= turned:
            return self
        changed = {"theta": -self.theta, "difference": -self.difference}
        return Variance(**{**vars(self), **changed})


def _fitted(
    task: Task,
    features: Any,
    design: Design,
    widths: Sequence[float],
    loss: str,
    strength: float,
    starts: int,
    seed: int,
) -> Linear:
    """The best of several starts, at the width of the prior with the largest evidence."""
    tallies = task.tallies()
    given = problem(
        [design(task.features(features, name)) for name in tallies],
        list(tallies.values()),
        code=code_of(loss),
        strength=strength,
        smoothness=penalty_of(task.layout) if strength else None,
    )
    middle = widths[len(widths) // 2]
    rng = np.random.default_rng(seed)
    from_where = rng.standard_normal((starts, given.design.shape[2]))
    at_middle = given.scaled(middle)
    tried = [scored(at_middle, start, most_steps=STEPS_OF_A_START) for start in from_where]
    best = scored(at_middle, min(tried, key=lambda fit: fit.value).theta)
    found = {middle: best} | {
        width: scored(given.scaled(width), best.theta * middle / width) for width in widths if width != middle
    }
    width = max(found, key=lambda each: found[each].evidence)
    return _linear(task, features, design, width, found[width])


def _linear(task: Task, features: Any, design: Design, width: float, fit: Fit) -> Linear:
    def at_width(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return width * design(x)

    return Linear(task, features, at_width, fit.theta, fit.covariance, width, fit.evidence, fit.converged)


@cache
def _circular_root(bands: int) -> NDArray[np.float64]:
    """B with BBᵀ the covariance of weights around the circle of orientations."""
    apart = np.deg2rad(360 / bands) * np.subtract.outer(np.arange(bands), np.arange(bands))
    reach = np.deg2rad(2 * CIRCULAR_DEG)
    covariance = np.exp((np.cos(apart) - 1) / reach**2)
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-6 * values.max()
    return read_only(vectors[:, kept] * np.sqrt(values[kept]))


def name_of(features: Any) -> str:
    """What features are called in a model's name."""
    if isinstance(features, str):
        return features
    if isinstance(features, Mapping):
        return "given"
    name = getattr(features, "__name__", None)
    if name is None and not callable(features):
        raise NotFound(f"Expected features by name, by function or by image, got {type(features).__name__}.")
    return name or "function"
