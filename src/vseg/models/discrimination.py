"""P(same) from how different two locations look, without maps: q = γ₀ + (1 - γ₀ - γ₁)·exp(-(d/τ)^β).

d is the distance of the features of the two locations, with a weight for each block of features ("lab+contrast" has
two); γ₀ and γ₁ are the shares of slips. `distance_only` takes the distance on the image instead: whatever it explains
needs no segmentation. Fitted by maximum likelihood with weak priors, by L-BFGS from several starts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.data.pairs import Pairs
from vseg.features import standardised
from vseg.models.families import sendable
from vseg.models.linear import name_of
from vseg.models.task import Task
from vseg.reconstruction.losses import EPS

STARTS = 3
CENTRE = (0.0, -3.0, -3.0)  # of the priors of log β and of the slips' logits: β = 1, 2.4 % slips each way
WIDTH, BLOCK_WIDTH = 1.0, 3.0
MOST_SLIPS = 0.5

Scale = list[tuple[NDArray[np.float64], NDArray[np.float64]]]  # mean and s.d. of each block


@dataclass(frozen=True, eq=False)
class Discrimination:
    """A fitted rule. `theta` holds the log weights of the blocks, log β and the logits of the slips."""

    squared: Callable[[str, Pairs], NDArray[np.float64]]
    theta: NDArray[np.float64]
    cost: float

    @property
    def parameters(self) -> dict[str, Any]:
        """Weights of the squared distances (d/τ)² of each block, β, γ₀ and γ₁."""
        blocks = len(self.theta) - 3
        slips = MOST_SLIPS * _logistic(self.theta[-2:])
        return {
            "weights": np.exp(self.theta[:blocks]).tolist(), "beta": float(np.exp(self.theta[blocks])),
            "slips": slips.tolist(),
        }  # fmt: skip

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """P(same) of pairs on an image."""
        return _predicted(self.theta, self.squared(image, pairs))[0]


@sendable
def discrimination(features: Any = "lab", *, starts: int = STARTS) -> Callable[..., Discrimination]:
    """'Same' as long as the two locations look alike in these features.

    Examples
    --------
    >>> discrimination("lab+contrast").__name__
    'discrimination[lab+contrast]'
    """
    blocks = features.split("+") if isinstance(features, str) else [features]

    def fit(task: Task, *, seed: int) -> Discrimination:
        scales: Scale = []
        for block in blocks:
            rows = np.concatenate([task.features(block, name) for name in task.responses.images])
            scales.append(standardised(rows)[1:])

        def squared(image: str, pairs: Pairs) -> NDArray[np.float64]:
            columns = []
            for block, (mean, scale) in zip(blocks, scales, strict=True):
                x = (task.features(block, image) - mean) / scale
                columns.append(np.mean((x[pairs.i] - x[pairs.j]) ** 2, axis=1))
            return np.stack(columns, axis=1)

        return _fitted(task, squared, starts, seed)

    fit.__name__ = f"discrimination[{name_of(features)}]"
    return fit


@sendable
def distance_only(*, starts: int = STARTS) -> Callable[..., Discrimination]:
    """'Same' as long as the two locations lie close together, whatever the image shows."""

    def squared(image: str, pairs: Pairs) -> NDArray[np.float64]:
        return 16 * pairs.distances[:, None] ** 2  # in quarters of the image's side

    def fit(task: Task, *, seed: int) -> Discrimination:
        return _fitted(task, squared, starts, seed)

    fit.__name__ = "distance_only"
    return fit


def _fitted(
    task: Task, squared: Callable[[str, Pairs], NDArray[np.float64]], starts: int, seed: int
) -> Discrimination:
    from scipy.optimize import minimize

    tallies = task.tallies()
    apart = np.concatenate([squared(name, tally.pairs) for name, tally in tallies.items()])
    same = np.concatenate([tally.k for tally in tallies.values()]).astype(np.float64)
    count = np.concatenate([tally.n for tally in tallies.values()]).astype(np.float64)
    centre = np.concatenate([np.zeros(apart.shape[1]), CENTRE])
    width = np.concatenate([np.full(apart.shape[1], BLOCK_WIDTH), np.full(3, WIDTH)])
    rng = np.random.default_rng(seed)
    found = [
        minimize(cost, start, (apart, same, count, centre, width), method="L-BFGS-B", jac=True)
        for start in [centre, *(centre + width * rng.standard_normal((starts - 1, len(centre))))]
    ]
    best = min(found, key=lambda each: each.fun)
    return Discrimination(squared, best.x, float(best.fun))


def cost(
    theta: NDArray[np.float64],
    apart: NDArray[np.float64],
    same: NDArray[np.float64],
    count: NDArray[np.float64],
    centre: NDArray[np.float64],
    width: NDArray[np.float64],
) -> tuple[float, NDArray[np.float64]]:
    """Negative log-likelihood and log prior of (m, B) squared distances' answers, with its slope."""
    q, jacobian = _predicted(theta, apart)
    q = q.clip(EPS, 1 - EPS)
    off = (theta - centre) / width
    value = -np.sum(same * np.log(q) + (count - same) * np.log(1 - q)) + 0.5 * off @ off
    bend = (count * q - same) / (q * (1 - q))
    return float(value), jacobian.T @ bend + off / width


def _predicted(
    theta: NDArray[np.float64], apart: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """q of each pair and its slope in θ, shape (m, B + 3)."""
    blocks = apart.shape[1]
    parts = apart * np.exp(theta[:blocks].clip(-30, 30))
    total = parts.sum(axis=1) + 1e-12
    half = np.exp(theta[blocks].clip(-3, 3)) / 2
    far = np.exp(np.minimum(half * np.log(total), 6.0))  # (d/τ)^β; e⁶ is as far as exp(-far) can tell
    alike = np.exp(-far)
    share = _logistic(theta[-2:])
    low, high = MOST_SLIPS * share
    q = low + (1 - low - high) * alike
    by_far = -(1 - low - high) * alike * far
    slips = MOST_SLIPS * share * (1 - share)
    columns = [by_far * half * part / total for part in parts.T]
    columns += [by_far * half * np.log(total), slips[0] * (1 - alike), -slips[1] * alike]
    return q, np.stack(columns, axis=1)


def _logistic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-x.clip(-40, 40))))
