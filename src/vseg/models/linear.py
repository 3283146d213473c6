"""Models whose logits are linear in features: the multinomial logistic of Eq. 10, and the K = 2 variance model.

Both have a Gaussian prior on their weights, whose width is chosen by the evidence unless it is given; both are fitted
by Fisher scoring (see fisher_scoring.py) from several starts, shared over all images and participants of a task.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import as_read_only
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput
from vseg.features import FeatureSource, standardise
from vseg.features.extraction import describe_features
from vseg.models.differential_variance import (
    STARTS as STARTS_OF_VARIANCES,
    DifferentialVariance,
    Start as StartOfVariances,
    fit_differential_variance,
)
from vseg.models.fisher_scoring import FisherScoringResult, build_problem, minimise_cost, probabilities
from vseg.models.model_interface import picklable
from vseg.models.task import Task
from vseg.reconstruction.kernels import build_smoothness as penalty_of
from vseg.reconstruction.losses import get_loss_code

WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # of the prior, in units of weight per s.d. of a feature
STARTS = 8
STEPS_PER_START = 25  # enough to find the best start, which alone is continued to convergence
ENERGY_WIDTHS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0)
CORRELATION_DEG = 15.0  # how far the weights of two orientations are correlated in the prior

# From features (n, D) to the design (n, K, P), whose parameters have a prior of width 1.
Design: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A fitted model: maps of every image with features, and its weights with their uncertainty.

    Attributes
    ----------
    task : Task
        The task it was fitted to.
    features : str, callable or mapping
        The features it uses.
    design : callable
        From features to the design whose parameters have a standard normal prior.
    theta, covariance : NDArray, shape (P,) and (P, P)
        The parameters and their posterior covariance.
    prior_width : float
        The width of the prior.
    evidence : float
        log p(answers | width), by Laplace's approximation.
    converged : bool
    """

    task: Task
    features: FeatureSource
    design: Design
    theta: NDArray[np.float64]
    covariance: NDArray[np.float64]
    prior_width: float
    evidence: float
    converged: bool

    def maps(self, image: str) -> Maps:
        """Return the maps of an image."""
        x = self.task.features(self.features, image)
        return Maps(self.task.layout, probabilities(self.design(x), self.theta))

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """Return P(same) of pairs on an image (Eq. 2)."""
        return self.maps(image).same_probability(pairs)


@picklable
def logistic(
    features: FeatureSource = "lab",
    *,
    prior_width: float | None = None,
    loss: str = "cross_entropy",
    smoothness: float = 0.0,
    starts: int = STARTS,
) -> Callable[..., LinearModel]:
    """Return the family of the multinomial logistic model of Eq. 10 on any features: f_k = ω_k·x + β_k.

    Parameters
    ----------
    features : str, callable or mapping
        The features x.
    prior_width : float, optional
        The width of the prior of the weights; by default the one with the largest evidence.
    loss : str
        The loss of an answer, as in `vseg.reconstruct`.
    smoothness : float
        λ.
    starts : int
        Number of random starting points.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> FittedModel`.

    Examples
    --------
    >>> from vseg.models import Task
    >>> fitted = logistic("lab")(Task(responses, images, segments=3), seed=0)  # doctest: +SKIP
    """

    def fit(task: Task, *, seed: int) -> LinearModel:
        rows = np.concatenate([task.features(features, name) for name in task.responses.images])
        _, mean, scale = standardise(rows)

        def design(x: NDArray[np.float64]) -> NDArray[np.float64]:
            columns = np.concatenate([(x - mean) / scale, np.ones((len(x), 1))], axis=1)
            return np.einsum("nd,kl->nkdl", columns, np.eye(task.segments)).reshape(len(x), task.segments, -1)

        widths = WIDTHS if prior_width is None else (prior_width,)
        return _fit(task, features, design, widths, loss, smoothness, starts, seed)

    fit.__name__ = f"logistic[{describe_features(features)}]"
    return fit


@picklable
def variance(
    features: FeatureSource = "orientation", *, prior_width: float | None = None, starts: int = STARTS
) -> "Callable[..., VarianceModel]":
    """Return the family of the paper's texture model: two segments, β = 0, ω_k = -1/σ_k² on oriented energies.

    The answers identify only ω₁ - ω₂, so this difference is fitted and reported. Neighbouring orientations have
    similar weights (a circular Gaussian prior); the energies are divided by their mean. `fit_as_in_paper` of the fitted
    model returns σ₁² - σ₂², which the paper shows, as the paper fits it.

    Parameters
    ----------
    features : str, callable or mapping
        Oriented energies.
    prior_width : float, optional
        The width of the prior of the weights; by default the one with the largest evidence.
    starts : int
        Number of random starting points.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> FittedModel`.
    """

    def fit(task: Task, *, seed: int) -> VarianceModel:
        rows = np.concatenate([task.features(features, name) for name in task.responses.images])
        if task.segments != 2:
            raise InvalidInput(f"The variance model has 2 segments, the task {task.segments}; use logistic.")
        unit, spread = rows.mean(), np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0).mean()
        root = _circular_root(rows.shape[1])

        def design(x: NDArray[np.float64]) -> NDArray[np.float64]:
            columns = (x / spread) @ root
            return np.stack([columns, np.zeros_like(columns)], axis=1)

        widths = ENERGY_WIDTHS if prior_width is None else (prior_width,)
        fitted = _fit(task, features, design, widths, "cross_entropy", 0.0, starts, seed)
        width = fitted.prior_width * root / spread * unit
        return VarianceModel(
            **vars(fitted), difference=width @ fitted.theta, spread=width @ fitted.covariance @ width.T
        )

    fit.__name__ = f"variance[{describe_features(features)}]"
    return fit


@dataclass(frozen=True, eq=False)
class VarianceModel(LinearModel):
    """A fitted variance model; `difference` is ω₁ - ω₂ per mean energy, `spread` its covariance."""

    difference: NDArray[np.float64]
    spread: NDArray[np.float64]

    @property
    def parameters(self) -> dict[str, Any]:
        """All numbers of the fit; `paper_variances` has σ₁² - σ₂² as the paper fits it, from each start."""
        low, high = self.interval()
        paper = {start: self.fit_as_in_paper(start) for start in STARTS_OF_VARIANCES}
        return {
            "difference": self.difference,
            "difference_low": low,
            "difference_high": high,
            "paper_variances": {
                start: {"variance_difference": fit.difference, "difference": fit.identified}
                for start, fit in paper.items()
            },
            "spread": self.spread,
            "theta": self.theta,
            "covariance": self.covariance,
            "prior_width": self.prior_width,
            "evidence": self.evidence,
            "converged": self.converged,
        }

    def fit_as_in_paper(self, start: StartOfVariances = "energies", *, seed: int = 0) -> DifferentialVariance:
        """Return σ₁² - σ₂² as the paper fits it to the same answers, with the segments in the order of this model.

        Parameters
        ----------
        start : "energies" or "ones"
            Where σ² starts; the result depends on it, see `vseg.models.differential_variance`.
        seed : int
            Seed of the jitter of the start.
        """
        fit = fit_differential_variance(self.task, self.features, start=start, seed=seed)
        return fit.align_to({name: self.maps(name) for name in fit.maps})

    def interval(self, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return lower and upper bounds of each weight at this level."""
        from scipy.stats import norm

        reach = norm.ppf(0.5 + level / 2) * np.sqrt(np.diag(self.spread))
        return self.difference - reach, self.difference + reach

    def draws(self, count: int, *, seed: int) -> NDArray[np.float64]:
        """Return (count, D) draws of the difference from its posterior."""
        rng = np.random.default_rng(seed)
        return rng.multivariate_normal(self.difference, self.spread, count, method="eigh")

    def align_to(self, maps: Mapping[str, Maps]) -> "VarianceModel":
        """Return the model with its two segments in the order of these maps, since their own order is arbitrary."""
        direct = sum(
            np.sum(self.maps(name).probabilities * other.probabilities) for name, other in maps.items()
        )
        swapped = sum(
            np.sum(self.maps(name).probabilities[:, ::-1] * other.probabilities)
            for name, other in maps.items()
        )
        if direct >= swapped:
            return self
        changed = {"theta": -self.theta, "difference": -self.difference}
        return VarianceModel(**{**vars(self), **changed})


def _fit(
    task: Task,
    features: FeatureSource,
    design: Design,
    widths: Sequence[float],
    loss: str,
    strength: float,
    starts: int,
    seed: int,
) -> LinearModel:
    """Fit from several starts, at the width of the prior with the largest evidence."""
    tallies = task.tallies()
    problem = build_problem(
        [design(task.features(features, name)) for name in tallies],
        list(tallies.values()),
        code=get_loss_code(loss),
        strength=strength,
        smoothness=penalty_of(task.layout) if strength else None,
    )
    middle = widths[len(widths) // 2]
    rng = np.random.default_rng(seed)
    start_points = rng.standard_normal((starts, problem.design.shape[2]))
    at_middle = problem.scaled(middle)
    results = [minimise_cost(at_middle, start, max_steps=STEPS_PER_START) for start in start_points]
    best = minimise_cost(at_middle, min(results, key=lambda fit: fit.value).theta)
    fits = {middle: best} | {
        width: minimise_cost(problem.scaled(width), best.theta * middle / width)
        for width in widths
        if width != middle
    }
    width = max(fits, key=lambda each: fits[each].evidence)
    return _build_model(task, features, design, width, fits[width])


def _build_model(
    task: Task, features: FeatureSource, design: Design, width: float, fit: FisherScoringResult
) -> LinearModel:
    def scaled_design(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return width * design(x)

    return LinearModel(
        task, features, scaled_design, fit.theta, fit.covariance, width, fit.evidence, fit.converged
    )


@cache
def _circular_root(bands: int) -> NDArray[np.float64]:
    """Return B with BBᵀ the prior covariance of the weights around the circle of orientations."""
    apart = np.deg2rad(360 / bands) * np.subtract.outer(np.arange(bands), np.arange(bands))
    reach = np.deg2rad(2 * CORRELATION_DEG)
    covariance = np.exp((np.cos(apart) - 1) / reach**2)
    values, vectors = np.linalg.eigh(covariance)
    large = values > 1e-6 * values.max()
    return as_read_only(vectors[:, large] * np.sqrt(values[large]))
