"""Comparing groups of participants: Welch's test, Cohen's d, bootstrap intervals.

Differences are the second group minus the first, so a positive t or d means that the second is larger.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.seeds import Seed, check_seed
from vseg.data.layout import as_floats
from vseg.errors import InvalidInput

EXACT_UP_TO = 50
"""Beyond this |t| the noncentral t distribution is hard to compute, and a limit of it is as good."""


class WelchTest(NamedTuple):
    """Welch's t, its two-sided p and its degrees of freedom."""

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
    """Two groups, their difference and how sure it is; `str` says it in a sentence."""

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
        chance = f"p = {p:.2g}" if p >= 0.001 else "p < 0.001"
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{self.quantity} {first:.2f} vs {second:.2f}{unit}, "
            f"Welch t({freedom:.1f}) = {t:.2f}, {chance}, Cohen's d = {self.cohens_d}"
        )


def standard_error(values: ArrayLike) -> float:
    """The standard error of the mean, s/√n.

    Examples
    --------
    >>> standard_error([1, 2, 3, 4, 5, 6, 7])
    0.816496580927726
    """
    given = check_group(values, "a standard error")
    return float(given.std(ddof=1) / np.sqrt(len(given)))


def welch(a: ArrayLike, b: ArrayLike) -> WelchTest:
    """Welch's test of two means, which need not have equal variances.

    Parameters
    ----------
    a, b : array_like
        One value a participant; t is positive if the mean of b is larger.

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
    """The difference of two means in pooled standard deviations, with its exact interval.

    d = (mean b - mean a) / s, and t = d √(n_a n_b / (n_a + n_b)) follows a noncentral t distribution; the
    interval holds the noncentralities under which t is not extreme (Smithson 2003, as R's effectsize).
    Beyond |t| = 50 the interval is an approximation, good to a thousandth of its width.

    Parameters
    ----------
    a, b : array_like
    confidence : float

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


def bootstrap_interval(
    values: ArrayLike,
    statistic: Callable[..., Any] = np.mean,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: Seed,
) -> Estimate:
    """A statistic of participants, blocks or repetitions, with its bootstrap interval (BCa).

    Where that does not exist (a median that hardly any resample changes), it is the percentile interval.

    Parameters
    ----------
    values : array_like, shape (n,)
    statistic : function
        Of an array of values; one with an `axis` argument, such as np.median, is faster.
    confidence : float
    resamples : int
    seed : int, SeedSequence or Generator

    Examples
    --------
    >>> print(bootstrap([0.31, 0.28, 0.44, 0.39, 0.35], seed=0))
    0.35 [0.31, 0.40]
    """
    from scipy import stats

    given, rng = check_group(values, "a bootstrap"), np.random.default_rng(check_seed(seed))
    if resamples < 1:
        raise InvalidInput(f"A bootstrap takes at least one resample, got resamples={resamples}.")
    level, value = check_confidence(confidence), float(statistic(given))
    if not np.isfinite(value):
        raise InvalidInput(
            f"A bootstrap needs a statistic that is a finite number, got {value} of the values."
        )
    if np.ptp(given) == 0:
        return Estimate(value, value, value)
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        found = stats.bootstrap(
            (given,), statistic, confidence_level=level, n_resamples=resamples, method="BCa", random_state=rng
        )
    low, high = found.confidence_interval
    if not (np.isfinite(low) and np.isfinite(high)):
        drawn = found.bootstrap_distribution[np.isfinite(found.bootstrap_distribution)]
        low, high = np.quantile(drawn, _tails(level)) if len(drawn) else (value, value)
    return Estimate(value, float(low), float(high))


def compare_values(
    a: ArrayLike, b: ArrayLike, *, quantity: str = "mean", unit: str = "", confidence: float = 0.95
) -> GroupComparison:
    """Two groups side by side: means, Welch's test and Cohen's d with its interval.

    Parameters
    ----------
    a, b : array_like
        One value a participant.
    quantity, unit : str
        What was measured, for the sentence.
    confidence : float

    Examples
    --------
    >>> print(compare([0.3, 0.4, 0.2, 0.3], [0.4, 0.6, 0.5, 0.5], quantity="mean entropy", unit="nats"))
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
    """Those that leave t just inside the upper and the lower tail."""
    if t < 0:
        low, high = _noncentralities(-t, freedom, confidence)
        return -high, -low
    exact = None if t > EXACT_UP_TO else _exact_noncentralities(t, freedom, confidence)
    return exact or _large_noncentralities(t, freedom, confidence)


def _exact_noncentralities(t: float, freedom: int, confidence: float) -> tuple[float, float] | None:
    """By search; None where the distribution function fails."""
    from scipy.optimize import brentq
    from scipy.stats import nct

    def solved(tail: float) -> float:
        for reach in 5.0 * 2.0 ** np.arange(10):
            if nct.cdf(t, freedom, t - reach) > tail > nct.cdf(t, freedom, t + reach):
                return float(brentq(lambda delta: nct.cdf(t, freedom, delta) - tail, t - reach, t + reach))
        raise ValueError("no noncentrality within reach")

    try:
        return solved((1 + confidence) / 2), solved((1 - confidence) / 2)
    except ValueError:
        return None


def _large_noncentralities(t: float, freedom: int, confidence: float) -> tuple[float, float]:
    """For large t = (Z + δ) √ν / χ: the interval of δ from χ alone, its halves widened by that of Z."""
    from scipy.stats import chi2, norm

    z = norm.ppf((1 + confidence) / 2)
    low, high = (t * np.sqrt(chi2.ppf(tail, freedom) / freedom) for tail in _tails(confidence))
    return float(t - np.hypot(t - low, z)), float(t + np.hypot(high - t, z))


def _tails(confidence: float) -> tuple[float, float]:
    return (1 - confidence) / 2, (1 + confidence) / 2


def check_groups(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two groups that vary, or a sentence."""
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


def check_group(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """At least two finite values, or a sentence."""
    given = as_floats(values, "values")
    if given.ndim != 1 or len(given) < 2:
        raise InvalidInput(
            f"Expected a list of at least 2 values for {what}, got an array of shape {given.shape}."
        )
    if not np.isfinite(given).all():
        missing = int((~np.isfinite(given)).sum())
        raise InvalidInput(
            f"Values must be finite numbers; {missing} of {len(given)} are NaN or infinite: leave them out."
        )
    return given


def check_confidence(confidence: float) -> float:
    """A share between 0 and 1, or a sentence."""
    if not 0 < confidence < 1:
        raise InvalidInput(f"A confidence lies between 0 and 1, such as 0.95, got {confidence}.")
    return confidence
