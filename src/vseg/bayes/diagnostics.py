"""Whether chains of draws agree: rank-normalised split R-hat, and bulk and tail effective sample size.

These are the definitions of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), as ArviZ computes them. They are
written out here because importing ArviZ takes a second; tests compare the two.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_RHAT = 1.05
MIN_ESS = 100.0
TAIL = 0.05  # quantiles of the tail effective sample size

Floats = NDArray[np.float64]


class Convergence(NamedTuple):
    """The largest R-hat and the smallest effective sample sizes over several quantities.

    Attributes
    ----------
    rhat : float
        1 when all chains agree; NaN if there are too few draws to tell.
    ess, tail_ess : float
        Effective sample sizes: the number of independent draws that these are worth, for means, and for the 5 % and
        95 % quantiles.
    draws : int
        Draws of all chains together.
    accepted : float
        The share of trajectories accepted.
    """

    rhat: float
    ess: float
    tail_ess: float
    draws: int
    accepted: float

    @property
    def is_good(self) -> bool:
        """Whether the draws can be trusted: R-hat is at most 1.05, and both effective sample sizes at least 100."""
        return self.rhat <= MAX_RHAT and min(self.ess, self.tail_ess) >= MIN_ESS

    @property
    def message(self) -> str:
        """One sentence on whether the chains agree."""
        if np.isnan(self.rhat):
            return f"{self.draws} draws are too few to tell whether the chains agree."
        numbers = (
            f"R-hat {self.rhat:.2f}, {self.ess:.0f} effective draws and {self.tail_ess:.0f} in the tails, "
            f"of {self.draws}"
        )
        if self.is_good:
            return f"The chains agree ({numbers})."
        return (
            f"The chains do not agree ({numbers}; expected R-hat up to {MAX_RHAT:g} and {MIN_ESS:.0f} effective "
            "draws): do not publish the intervals."
        )


def assess_convergence(quantities: Sequence[Floats], accepted: float = float("nan")) -> Convergence:
    """Return the convergence of chains.

    Parameters
    ----------
    quantities : list of (chains, draws)
        Numbers computed from each draw that do not depend on labels.
    accepted : float
        The share of trajectories accepted.
    """
    return Convergence(
        max(rhat(x) for x in quantities),
        min(bulk_ess(x) for x in quantities),
        min(tail_ess(x) for x in quantities),
        quantities[0].size,
        accepted,
    )


def rhat(x: Floats) -> float:
    """Return the rank-normalised split R-hat of (chains, draws): the larger of that of x and of |x - median|.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> same = rng.standard_normal((4, 100))
    >>> bool(rhat(same) < 1.02), bool(rhat(same + np.arange(4)[:, None]) > 1.3)
    (True, True)
    """
    halves = _split(x)
    if not halves.size:
        return float("nan")
    folded = np.abs(halves - np.median(halves))
    return max(_plain_rhat(_normal_scores(halves)), _plain_rhat(_normal_scores(folded)))


def bulk_ess(x: Floats) -> float:
    """Return the effective sample size of (chains, draws) for means.

    Examples
    --------
    >>> bool(bulk_ess(np.random.default_rng(0).standard_normal((4, 250))) > 700)
    True
    """
    halves = _split(x)
    return _plain_ess(_normal_scores(halves)) if halves.size else float("nan")


def tail_ess(x: Floats) -> float:
    """Return the effective sample size of (chains, draws) for the 5 % and 95 % quantiles, the smaller of the two."""
    halves = _split(x)
    if not halves.size:
        return float("nan")
    return min(_plain_ess((halves <= np.quantile(x, level)).astype(np.float64)) for level in (TAIL, 1 - TAIL))


def _split(x: Floats) -> Floats:
    """Return the halves of each chain, (2·chains, draws/2); of odd lengths the middle draw is left out."""
    half = x.shape[1] // 2
    if half < 2:
        return np.empty((0, 0))
    return np.concatenate([x[:, :half], x[:, -half:]])


def _normal_scores(x: Floats) -> Floats:
    """Return the normal quantiles of the ranks among all draws; equal draws get their mean rank."""
    from scipy.special import ndtri

    _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[place.reshape(x.shape)]
    return np.asarray(ndtri((ranks - 3 / 8) / (x.size + 1 / 4)))


def _plain_rhat(x: Floats) -> float:
    length = x.shape[1]
    within = float(x.var(axis=1, ddof=1).mean())
    between = float(x.mean(axis=1).var(ddof=1))
    if within <= 0:
        return 1.0 if between <= 0 else float("inf")
    return float(np.sqrt((length - 1) / length + between / within))


def _plain_ess(x: Floats) -> float:
    """Return the effective sample size by Geyer's initial monotone sequence of paired autocorrelations."""
    chains, length = x.shape
    within = float(x.var(axis=1, ddof=1).mean())
    if within <= 0:
        return float(x.size)
    size = 1 << (2 * length - 1).bit_length()
    centred = x - x.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, size, axis=1)
    covariance = np.fft.irfft(spectrum * spectrum.conj(), size, axis=1)[:, :length].mean(axis=0) / length
    whole = within * (length - 1) / length + float(x.mean(axis=1).var(ddof=1)) * (chains > 1)
    rho = 1 - (within - covariance) / whole
    rho[0] = 1.0
    last = max((length - 3) // 2, 0)  # the last pair is looked at, but not counted
    pairs = rho[: 2 * last + 2].reshape(-1, 2).sum(axis=1)
    ended = np.flatnonzero(pairs <= 0)
    end = int(ended[0]) if ended.size else last
    tau = -1 + 2 * float(np.minimum.accumulate(pairs)[:end].sum()) + max(float(rho[2 * end]), 0.0)
    return float(x.size / max(tau, 1 / np.log10(x.size)))
