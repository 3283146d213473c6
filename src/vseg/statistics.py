"""Comparing groups of participants: Welch's test, Cohen's d, bootstrap intervals.

Differences are the second group minus the first, so a positive t or d means that the second is larger.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.errors import InvalidInput
from vseg.layout import as_floats


class Welch(NamedTuple):
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
class Comparison:
    """Two groups, their difference and how sure it is; `str` says it in a sentence."""

    quantity: str
    unit: str
    means: tuple[float, float]
    standard_errors: tuple[float, float]
    counts: tuple[int, int]
    welch: Welch
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
    given = _group(values, "a standard error")
    return float(given.std(ddof=1) / np.sqrt(len(given)))


def welch(a: ArrayLike, b: ArrayLike) -> Welch:
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
    from scipy.stats import ttest_ind

    first, second = _groups(a, b)
    found = ttest_ind(second, first, equal_var=False)
    return Welch(float(found.statistic), float(found.pvalue), float(found.df))


def cohens_d(a: ArrayLike, b: ArrayLike, confidence: float = 0.95) -> Estimate:
    """The difference of two means in pooled standard deviations, with its exact interval.

    d = (mean b - mean a) / s, and t = d √(n_a n_b / (n_a + n_b)) follows a noncentral t distribution; the
    interval holds the noncentralities under which t is not extreme (Smithson 2003, as R's effectsize).

    Parameters
    ----------
    a, b : array_like
    confidence : float

    Examples
    --------
    >>> print(cohens_d([1, 2, 3, 4], [3, 4, 5, 8]))
    1.40 [-0.23, 2.95]
    """
    first, second = _groups(a, b)
    freedom = len(first) + len(second) - 2
    scatter = (first.var() * len(first) + second.var() * len(second)) / freedom
    d = float((second.mean() - first.mean()) / np.sqrt(scatter))
    scale = np.sqrt(1 / len(first) + 1 / len(second))
    low, high = _noncentralities(d / scale, freedom, _checked_confidence(confidence))
    return Estimate(d, low * scale, high * scale)


def bootstrap(
    values: ArrayLike,
    statistic: Callable[..., Any] = np.mean,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int,
) -> Estimate:
    """A statistic of participants, blocks or repetitions, with its bootstrap interval (BCa).

    Parameters
    ----------
    values : array_like, shape (n,)
    statistic : function
        Of an array of values; one with an `axis` argument, such as np.median, is faster.
    confidence : float
    resamples : int
    seed : int

    Examples
    --------
    >>> print(bootstrap([0.31, 0.28, 0.44, 0.39, 0.35], seed=0))
    0.35 [0.31, 0.40]
    """
    from scipy import stats

    given = _group(values, "a bootstrap")
    if resamples < 1:
        raise InvalidInput(f"A bootstrap takes at least one resample, got resamples={resamples}.")
    level, value = _checked_confidence(confidence), float(statistic(given))
    if np.ptp(given) == 0:
        return Estimate(value, value, value)
    found = stats.bootstrap(
        (given,),
        statistic,
        confidence_level=level,
        n_resamples=resamples,
        method="BCa",
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    return Estimate(value, float(found.low), float(found.high))


def compare(
    a: ArrayLike, b: ArrayLike, *, quantity: str = "mean", unit: str = "", confidence: float = 0.95
) -> Comparison:
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
    first, second = _groups(a, b)
    return Comparison(
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
    from scipy.optimize import brentq
    from scipy.stats import nct

    def solved(tail: float) -> float:
        reach = 5.0
        while not nct.cdf(t, freedom, t - reach) > tail > nct.cdf(t, freedom, t + reach):
            reach *= 2
        return float(brentq(lambda delta: nct.cdf(t, freedom, delta) - tail, t - reach, t + reach))

    return solved((1 + confidence) / 2), solved((1 - confidence) / 2)


def _groups(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = _group(a, "a comparison"), _group(b, "a comparison")
    if np.ptp(first) == 0 and np.ptp(second) == 0:
        raise InvalidInput(
            f"All values of the first group are {first[0]:g} and all of the second {second[0]:g}; "
            "a comparison needs groups that vary."
        )
    return first, second


def _group(values: ArrayLike, what: str) -> NDArray[np.float64]:
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


def _checked_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise InvalidInput(f"A confidence lies between 0 and 1, such as 0.95, got {confidence}.")
    return confidence
