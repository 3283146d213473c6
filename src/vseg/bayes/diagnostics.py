"""Whether the chains tell the same story: R-hat and effective sample size of quantities without labels.

Chains at different scales and lengths rightly differ, so halves of chains are compared with others at the same place
alone: `places` says which chains belong together.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

HIGHEST_RHAT = 1.33  # halves of eight chains of 8 independent draws stay below 1.28 in 999 of 1000 cases
LEAST_SHARE = 0.1  # of the draws that must be worth an independent one


class Convergence(NamedTuple):
    """The worst R-hat and the smallest effective sample size over the quantities watched, and a plain sentence."""

    rhat: float
    ess: float
    draws: int
    accepted: float

    @property
    def good(self) -> bool:
        """Whether the draws can be trusted; too few to tell (R-hat is NaN) are taken as they are."""
        return not self.rhat > HIGHEST_RHAT and self.ess >= LEAST_SHARE * self.draws

    @property
    def message(self) -> str:
        """One sentence for a person."""
        if np.isnan(self.rhat):
            return f"{self.draws} draws are too few to tell whether the chains agree."
        numbers = f"R-hat {self.rhat:.2f}, {self.ess:.0f} independent draws of {self.draws}"
        if self.good:
            return f"The chains agree ({numbers})."
        return f"The chains do not agree ({numbers}): intervals may be too narrow; ask for more draws."


def convergence(
    maps: NDArray[np.float64], costs: NDArray[np.float64], accepted: float, places: Sequence[int]
) -> Convergence:
    """Of chains of maps (chains, draws, n, K), their costs (chains, draws), and the place of each chain."""
    watched = [
        costs,
        mean_entropies(maps),
        np.sum(np.sum(maps, axis=2) ** 2, axis=2),  # P(same) of two locations drawn at random
    ]
    return Convergence(
        max(rhat(each, places) for each in watched),
        min(effective(each, places) for each in watched),
        costs.size,
        accepted,
    )


def mean_entropies(maps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of maps (…, n, K): the entropy averaged over locations, in nats.

    Examples
    --------
    >>> mean_entropies(np.array([[[1.0, 0.0], [0.5, 0.5]]])).round(3)
    array([0.347])
    """
    return -np.sum(maps * np.log(np.maximum(maps, 1e-300)), axis=-1).mean(axis=-1)


def rhat(x: NDArray[np.float64], places: Sequence[int] | None = None) -> float:
    """√(variance of all / variance within), of the halves of (chains, draws); 1 when they agree.

    Examples
    --------
    >>> round(rhat(np.array([[0.0, 1.0, 2.0, 3.0], [10.0, 11.0, 12.0, 13.0]])), 1)
    8.4
    """
    halves, within, between = _variances(x, places)
    if not halves.size:
        return float("nan")
    if within <= 0:
        return 1.0 if between <= 0 else float("inf")
    length = halves.shape[1]
    return float(np.sqrt((length - 1) / length + between / within))


def effective(x: NDArray[np.float64], places: Sequence[int] | None = None) -> float:
    """How many independent draws these, (chains, draws), are worth: Geyer's sum of paired autocorrelations.

    Examples
    --------
    >>> effective(np.tile([[1.0, -1.0]], (4, 8)))
    64.0
    """
    halves, within, between = _variances(x, places)
    if not halves.size or within + between <= 0:
        return float(x.size)
    count, length = halves.shape
    centred = halves - halves.mean(axis=1, keepdims=True)
    lags = np.array([np.sum(centred[:, : length - lag] * centred[:, lag:]) for lag in range(length)])
    whole = within * (length - 1) / length + between
    rho = 1 - (within - lags / (count * length)) / whole
    rho[0] = 1.0
    total = -1.0
    for lag in range(0, length - 1, 2):
        pair = rho[lag] + rho[lag + 1]
        if pair < 0:
            break
        total += 2 * pair
    return float(min(x.size / max(total, 1e-6), x.size))


def _variances(
    x: NDArray[np.float64], places: Sequence[int] | None
) -> tuple[NDArray[np.float64], float, float]:
    """The halves of the chains, the variance within them, and that of their means around their place's mean."""
    chains, length = x.shape
    half = length // 2
    if half < 2:
        return np.empty((0, 0)), 0.0, 0.0
    halves = np.concatenate([x[:, :half], x[:, half : 2 * half]])
    group = np.tile(np.unique(places if places is not None else [0] * chains, return_inverse=True)[1], 2)
    means = halves.mean(axis=1)
    centre = np.bincount(group, means) / np.bincount(group)
    between = np.sum((means - centre[group]) ** 2) / (2 * chains - len(centre))
    tiny = 1e-18 * float(np.abs(x).max()) ** 2
    within = float(halves.var(axis=1, ddof=1).mean())
    return halves, within if within > tiny else 0.0, float(between) if between > tiny else 0.0
