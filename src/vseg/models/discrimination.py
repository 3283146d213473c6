"""P(same) from how different two locations look, without maps: q = γ₀ + (1 - γ₀ - γ₁)·exp(-(d/τ)^β).

d is the distance between the features of the two locations, with a weight for each block of features ("lab+contrast"
has two blocks); γ₀ and γ₁ are lapse rates. `distance_only` uses the distance on the image instead: what it explains
needs no segmentation. Fitted by maximum likelihood with weak priors, by L-BFGS from several starts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.data.pairs import Pairs
from vseg.features import FeatureSource, standardise
from vseg.features.extraction import describe_features
from vseg.models.model_interface import picklable
from vseg.models.task import Task
from vseg.reconstruction.losses import EPS

STARTS = 3
PRIOR_CENTRE = (0.0, -3.0, -3.0)  # of log β and the logits of the lapse rates: β = 1, lapse rates of 2.4 %
PRIOR_WIDTH, BLOCK_PRIOR_WIDTH = 1.0, 3.0
MAX_LAPSE_RATE = 0.5

Scale = list[tuple[NDArray[np.float64], NDArray[np.float64]]]  # mean and s.d. of each block


@dataclass(frozen=True, eq=False)
class DiscriminationModel:
    """A fitted discrimination model.

    Attributes
    ----------
    squared_distances : callable
        From an image's name and pairs to (m, B) squared distances, one column for each block of features.
    theta : NDArray, shape (B + 3,)
        The log weights of the blocks, log β and the logits of the lapse rates.
    cost : float
        Negative log-likelihood and log prior in nats.
    """

    squared_distances: Callable[[str, Pairs], NDArray[np.float64]]
    theta: NDArray[np.float64]
    cost: float

    @property
    def parameters(self) -> dict[str, Any]:
        """The weights of the squared distances (d/τ)² of each block, β, and the lapse rates γ₀ and γ₁."""
        blocks = len(self.theta) - 3
        lapses = MAX_LAPSE_RATE * _logistic(self.theta[-2:])
        return {
            "weights": np.exp(self.theta[:blocks]).tolist(), "beta": float(np.exp(self.theta[blocks])),
            "slips": lapses.tolist(),
        }  # fmt: skip

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """Return P(same) of pairs on an image."""
        return _predict(self.theta, self.squared_distances(image, pairs))[0]


@picklable
def discrimination(
    features: FeatureSource = "lab", *, starts: int = STARTS
) -> Callable[..., DiscriminationModel]:
    """Return a family in which P(same) falls with the distance of the two locations in these features.

    Parameters
    ----------
    features : str, callable or mapping
        The features; names joined by + are blocks with weights of their own.
    starts : int
        Number of starting points of the optimiser.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> FittedModel`.

    Examples
    --------
    >>> discrimination("lab+contrast").__name__
    'discrimination[lab+contrast]'
    """
    blocks: list[FeatureSource] = list(features.split("+")) if isinstance(features, str) else [features]

    def fit(task: Task, *, seed: int) -> DiscriminationModel:
        scales: Scale = []
        for block in blocks:
            rows = np.concatenate([task.features(block, name) for name in task.responses.images])
            scales.append(standardise(rows)[1:])

        def squared_distances(image: str, pairs: Pairs) -> NDArray[np.float64]:
            columns = []
            for block, (mean, scale) in zip(blocks, scales, strict=True):
                x = (task.features(block, image) - mean) / scale
                columns.append(np.mean((x[pairs.i] - x[pairs.j]) ** 2, axis=1))
            return np.stack(columns, axis=1)

        return _fit(task, squared_distances, starts, seed)

    fit.__name__ = f"discrimination[{describe_features(features)}]"
    return fit


@picklable
def distance_only(*, starts: int = STARTS) -> Callable[..., DiscriminationModel]:
    """Return a family in which P(same) falls with the distance of the two locations on the image.

    Parameters
    ----------
    starts : int
        Number of starting points of the optimiser.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> FittedModel`.
    """

    def squared_distances(image: str, pairs: Pairs) -> NDArray[np.float64]:
        return 16 * pairs.distances[:, None] ** 2  # in quarters of the image's side

    def fit(task: Task, *, seed: int) -> DiscriminationModel:
        return _fit(task, squared_distances, starts, seed)

    fit.__name__ = "distance_only"
    return fit


def _fit(
    task: Task, squared_distances: Callable[[str, Pairs], NDArray[np.float64]], starts: int, seed: int
) -> DiscriminationModel:
    from scipy.optimize import minimize

    tallies = task.tallies()
    apart = np.concatenate([squared_distances(name, tally.pairs) for name, tally in tallies.items()])
    same = np.concatenate([tally.k for tally in tallies.values()]).astype(np.float64)
    count = np.concatenate([tally.n for tally in tallies.values()]).astype(np.float64)
    centre = np.concatenate([np.zeros(apart.shape[1]), PRIOR_CENTRE])
    width = np.concatenate([np.full(apart.shape[1], BLOCK_PRIOR_WIDTH), np.full(3, PRIOR_WIDTH)])
    rng = np.random.default_rng(seed)
    results = [
        minimize(cost, start, (apart, same, count, centre, width), method="L-BFGS-B", jac=True)
        for start in [centre, *(centre + width * rng.standard_normal((starts - 1, len(centre))))]
    ]
    best = min(results, key=lambda each: each.fun)
    return DiscriminationModel(squared_distances, best.x, float(best.fun))


def cost(
    theta: NDArray[np.float64],
    apart: NDArray[np.float64],
    same: NDArray[np.float64],
    count: NDArray[np.float64],
    centre: NDArray[np.float64],
    width: NDArray[np.float64],
) -> tuple[float, NDArray[np.float64]]:
    """Return the negative log posterior of the answers given (m, B) squared distances, and its gradient."""
    q, jacobian = _predict(theta, apart)
    q = q.clip(EPS, 1 - EPS)
    off = (theta - centre) / width
    value = -np.sum(same * np.log(q) + (count - same) * np.log(1 - q)) + 0.5 * off @ off
    residual = (count * q - same) / (q * (1 - q))
    return float(value), jacobian.T @ residual + off / width


def _predict(
    theta: NDArray[np.float64], apart: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return q of each pair and its derivatives with respect to θ, shape (m, B + 3)."""
    blocks = apart.shape[1]
    parts = apart * np.exp(theta[:blocks].clip(-30, 30))
    total = parts.sum(axis=1) + 1e-12
    half = np.exp(theta[blocks].clip(-3, 3)) / 2
    far = np.exp(np.minimum(half * np.log(total), 6.0))  # (d/τ)^β; beyond e⁶, exp(-far) is 0
    alike = np.exp(-far)
    share = _logistic(theta[-2:])
    low, high = MAX_LAPSE_RATE * share
    q = low + (1 - low - high) * alike
    by_far = -(1 - low - high) * alike * far
    lapse_slopes = MAX_LAPSE_RATE * share * (1 - share)
    columns = [by_far * half * part / total for part in parts.T]
    columns += [by_far * half * np.log(total), lapse_slopes[0] * (1 - alike), -lapse_slopes[1] * alike]
    return q, np.stack(columns, axis=1)


def _logistic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-x.clip(-40, 40))))
