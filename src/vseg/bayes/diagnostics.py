"""Whether chains of draws agree: R-hat and effective sample size of quantities that do not depend on labels.

Chains at different scales and lengths are expected to differ, so half chains are compared only within groups of chains
at the same scale and length: `groups` says which chains belong together.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg.bayes.draw_summaries import mean_entropies

HIGHEST_RHAT = 1.33  # halves of eight chains of 8 independent draws stay below 1.28 in 999 of 1000 cases
MIN_EFFECTIVE_SHARE = 0.1  # effective draws, as a share of all


class Convergence(NamedTuple):
    """The largest R-hat and the smallest effective sample size over several quantities.

    Attributes
    ----------
    rhat : float
        1 when all chains agree; NaN if there are too few draws to tell.
    ess : float
        Effective sample size: the number of independent draws that these are worth.
    draws : int
    accepted : float
        The share of trajectories accepted.
    """

    rhat: float
    ess: float
    draws: int
    accepted: float

    @property
    def is_good(self) -> bool:
        """Whether the draws can be trusted; draws too few to tell (R-hat is NaN) count as good."""
        return not self.rhat > HIGHEST_RHAT and self.ess >= MIN_EFFECTIVE_SHARE * self.draws

    @property
    def message(self) -> str:
        """One sentence on whether the chains agree."""
        if np.isnan(self.rhat):
            return f"{self.draws} draws are too few to tell whether the chains agree."
        numbers = f"R-hat {self.rhat:.2f}, {self.ess:.0f} independent draws of {self.draws}"
        if self.is_good:
            return f"The chains agree ({numbers})."
        return f"The chains do not agree ({numbers}): intervals may be too narrow; ask for more draws."


def assess_convergence(
    maps: NDArray[np.float64], costs: NDArray[np.float64], accepted: float, groups: Sequence[int]
) -> Convergence:
    """Return the convergence of chains.

    Parameters
    ----------
    maps : (chains, draws, n, K)
    costs : (chains, draws)
    accepted : float
        The share of trajectories accepted.
    groups : list of int
        Chains with the same number are expected to agree.
    """
    quantities = [
        costs,
        mean_entropies(maps),
        np.sum(np.sum(maps, axis=2) ** 2, axis=2),  # P(same) of two locations drawn at random
    ]
    return Convergence(
        max(rhat(x, groups) for x in quantities),
        min(effective_sample_size(x, groups) for x in quantities),
        costs.size,
        accepted,
    )


def rhat(x: NDArray[np.float64], groups: Sequence[int] | None = None) -> float:
    """Return √(variance of all / variance within) of the half chains of (chains, draws); 1 when they agree.

    Examples
    --------
    >>> round(rhat(np.array([[0.0, 1.0, 2.0, 3.0], [10.0, 11.0, 12.0, 13.0]])), 1)
    8.4
    """
    halves, within, between = _variances(x, groups)
    if not halves.size:
        return float("nan")
    if within <= 0:
        return 1.0 if between <= 0 else float("inf")
    length = halves.shape[1]
    return float(np.sqrt((length - 1) / length + between / within))


def effective_sample_size(x: NDArray[np.float64], groups: Sequence[int] | None = None) -> float:
    """Return how many independent draws (chains, draws) are worth, by Geyer's sum of paired autocorrelations.

    Examples
    --------
    >>> effective_sample_size(np.tile([[1.0, -1.0]], (4, 8)))
    64.0
    """
    halves, within, between = _variances(x, groups)
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
    x: NDArray[np.float64], groups: Sequence[int] | None
) -> tuple[NDArray[np.float64], float, float]:
    """Return the half chains, the variance within them, and that of their means around their group's mean."""
    chains, length = x.shape
    half = length // 2
    if half < 2:
        return np.empty((0, 0)), 0.0, 0.0
    halves = np.concatenate([x[:, :half], x[:, half : 2 * half]])
    number = np.tile(np.unique(groups if groups is not None else [0] * chains, return_inverse=True)[1], 2)
    means = halves.mean(axis=1)
    centre = np.bincount(number, means) / np.bincount(number)
    between = np.sum((means - centre[number]) ** 2) / (2 * chains - len(centre))
    tiny = 1e-18 * float(np.abs(x).max()) ** 2
    within = float(halves.var(axis=1, ddof=1).mean())
    return halves, within if within > tiny else 0.0, float(between) if between > tiny else 0.0
