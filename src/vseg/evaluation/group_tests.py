"""Compare groups of participants: Welch's test and Cohen's d.

Differences are the second group minus the first, so a positive t or d means that the second is larger.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.confidence import check_confidence, interval_quantiles
from vseg.data.layout import as_floats
from vseg.errors import InvalidInput

MAX_EXACT_T = 50
"""Beyond this |t| the noncentral t distribution is hard to compute, and its limit is accurate enough."""


class WelchTest(NamedTuple):
    """Welch's t, its two-sided p value and its degrees of freedom."""

    t: float
    p: float
    degrees_of_freedom: float


class Estimate(NamedTuple):
    """A number and its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class GroupComparison:
    """Two groups, Welch's test and the effect size; `str` describes them in a sentence.

    Attributes
    ----------
    quantity, unit : str
        What was measured.
    means, standard_errors : (float, float)
        Of each group.
    counts : (int, int)
        Participants of each group.
    welch : WelchTest
    cohens_d : Estimate
        With its interval at the level `confidence`.
    confidence : float
    """

    quantity: str
    unit: str
    means: tuple[float, float]
    standard_errors: tuple[float, float]
    counts: tuple[int, int]
    welch: WelchTest
    cohens_d: Estimate
    confidence: float

    def __str__(self) -> str:
        first, second = self.means
        t, p, freedom = self.welch
        p_value = f"p = {p:.2g}" if p >= 0.001 else "p < 0.001"
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{self.quantity} {first:.2f} vs {second:.2f}{unit}, "
            f"Welch t({freedom:.1f}) = {t:.2f}, {p_value}, Cohen's d = {self.cohens_d}"
        )


def standard_error(values: ArrayLike) -> float:
    """Return the standard error of the mean, s/√n.

    Examples
    --------
    >>> standard_error([1, 2, 3, 4, 5, 6, 7])
    0.816496580927726
    """
    group = check_group(values, "a standard error")
    return float(group.std(ddof=1) / np.sqrt(len(group)))


def welch(a: ArrayLike, b: ArrayLike) -> WelchTest:
    """Test whether two means differ by Welch's test, which does not assume equal variances.

    Parameters
    ----------
    a, b : array_like
        One value per participant; t is positive if the mean of b is larger.

    Examples
    --------
    >>> round(welch([1, 2, 3, 4], [3, 4, 5, 8]).t, 3)
    1.987
    """
    from scipy.special import stdtr

    first, second = check_groups(a, b)
    parts = np.array([group.var(ddof=1) / len(group) for group in (second, first)])
    shares = parts / parts.sum()
    freedom = 1 / np.sum(shares**2 / [len(second) - 1, len(first) - 1])
    t = (second.mean() - first.mean()) / np.sqrt(parts.sum())
    return WelchTest(float(t), float(2 * stdtr(freedom, -abs(t))), float(freedom))


def cohens_d(a: ArrayLike, b: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Return the difference of two means in pooled standard deviations, with its exact interval.

    d = (mean b - mean a) / s, and t = d √(n_a n_b / (n_a + n_b)) follows a noncentral t distribution; the
    interval holds the noncentralities under which t is not extreme (Smithson 2003, as R's effectsize).
    Beyond |t| = 50 the interval is an approximation, good to a thousandth of its width.

    Parameters
    ----------
    a, b : array_like
        One value per participant.
    confidence : float
        Level of the interval.

    Examples
    --------
    >>> print(cohens_d([1, 2, 3, 4], [3, 4, 5, 8]))
    1.40 [-0.23, 2.95]
    """
    first, second = check_groups(a, b)
    freedom = len(first) + len(second) - 2
    scatter = (first.var() * len(first) + second.var() * len(second)) / freedom
    d = float((second.mean() - first.mean()) / np.sqrt(scatter))
    scale = float(np.sqrt(1 / len(first) + 1 / len(second)))
    low, high = _noncentralities(d / scale, freedom, check_confidence(confidence))
    return Estimate(d, low * scale, high * scale)


def compare_values(
    a: ArrayLike, b: ArrayLike, *, quantity: str = "mean", unit: str = "", confidence: float = 0.95
) -> GroupComparison:
    """Compare two groups of values: means, Welch's test and Cohen's d with its interval.

    Parameters
    ----------
    a, b : array_like
        One value per participant.
    quantity, unit : str
        What was measured, for the sentence.
    confidence : float
        Level of the interval of Cohen's d.

    Examples
    --------
    >>> print(compare_values([0.3, 0.4, 0.2, 0.3], [0.4, 0.6, 0.5, 0.5], quantity="mean entropy", unit="nats"))
    mean entropy 0.30 vs 0.50 nats, Welch t(6.0) = 3.46, p = 0.013, Cohen's d = 2.45 [0.46, 4.34]
    """
    first, second = check_groups(a, b)
    return GroupComparison(
        quantity=quantity,
        unit=unit,
        means=(float(first.mean()), float(second.mean())),
        standard_errors=(standard_error(first), standard_error(second)),
        counts=(len(first), len(second)),
        welch=welch(first, second),
        cohens_d=cohens_d(first, second, confidence),
        confidence=confidence,
    )


def _noncentralities(t: float, freedom: int, confidence: float) -> tuple[float, float]:
    """Return the noncentralities under which t is at the edge of the upper and of the lower tail."""
    if t < 0:
        low, high = _noncentralities(-t, freedom, confidence)
        return -high, -low
    exact = None if t > MAX_EXACT_T else _exact_noncentralities(t, freedom, confidence)
    return exact or _large_noncentralities(t, freedom, confidence)


def _exact_noncentralities(t: float, freedom: int, confidence: float) -> tuple[float, float] | None:
    """Search for the noncentralities; None if the distribution function fails."""
    from scipy.optimize import brentq
    from scipy.stats import nct

    def solve(tail: float) -> float:
        for reach in 5.0 * 2.0 ** np.arange(10):
            if nct.cdf(t, freedom, t - reach) > tail > nct.cdf(t, freedom, t + reach):
                return float(brentq(lambda delta: nct.cdf(t, freedom, delta) - tail, t - reach, t + reach))
        raise ValueError("no noncentrality within reach")

    try:
        return solve((1 + confidence) / 2), solve((1 - confidence) / 2)
    except ValueError:
        return None


def _large_noncentralities(t: float, freedom: int, confidence: float) -> tuple[float, float]:
    """Approximate for large t = (Z + δ) √ν / χ: the interval of δ from χ alone, its halves widened by that of Z."""
    from scipy.stats import chi2, norm

    z = norm.ppf((1 + confidence) / 2)
    low, high = (t * np.sqrt(chi2.ppf(tail, freedom) / freedom) for tail in interval_quantiles(confidence))
    return float(t - np.hypot(t - low, z)), float(t + np.hypot(high - t, z))


def check_groups(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both groups if they vary."""
    first, second = check_group(a, "a comparison"), check_group(b, "a comparison")
    if np.ptp(first) == 0 and np.ptp(second) == 0:
        raise InvalidInput(
            f"All values of the first group are {first[0]:g} and all of the second {second[0]:g}; "
            "a comparison needs groups that vary."
        )
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scatter = first.var() + second.var()
        apart = abs(second.mean() - first.mean()) / np.sqrt(scatter) if scatter else np.inf
    if not (np.isfinite(scatter) and np.isfinite(apart)):
        raise InvalidInput(
            f"Groups from {min(first.min(), second.min()):g} to {max(first.max(), second.max()):g} that "
            f"vary by {max(np.ptp(first), np.ptp(second)):g} cannot be compared in double precision; "
            "give the values in another unit."
        )
    return first, second


def check_group(values: ArrayLike, purpose: str) -> NDArray[np.float64]:
    """Return the values if there are at least two and all are finite; `purpose` is named in the message."""
    group = as_floats(values, "values")
    if group.ndim != 1 or len(group) < 2:
        raise InvalidInput(
            f"Expected a list of at least 2 values for {purpose}, got an array of shape {group.shape}."
        )
    if not np.isfinite(group).all():
        missing = int((~np.isfinite(group)).sum())
        raise InvalidInput(
            f"Values must be finite numbers; {missing} of {len(group)} are NaN or infinite: leave them out."
        )
    return group
