"""Groups of participants of whom each is known with an uncertainty of its own, as from a posterior.

What is measured of participant i is y_i = μ + u_i + e_i: people differ, u_i ~ N(0, τ²), and the measurement has an
error of known size, e_i ~ N(0, s_i²). τ² is found by restricted maximum likelihood, each group for itself; people then
count by 1/(τ² + s_i²), so that one about whom little is known counts less, the more so the more alike people are.
The standard error is Knapp and Hartung's (2003), not below the model's own, with Student's t. At s_i = 0 all of it is
Welch's test.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.errors import InvalidInput
from vseg.layout import as_floats
from vseg.statistics.groups import Estimate, checked_confidence, checked_group, checked_groups

TRIED = 200  # values of τ among which the likelihood's highest is sought first
SMALLEST = 1e-6  # of τ above 0, as a share of what the values vary by


@dataclass(frozen=True)
class Group:
    """A group's mean, how well it is known, and how much its people differ beyond the errors of measurement."""

    mean: float
    standard_error: float
    between: float
    count: int


@dataclass(frozen=True)
class UncertainComparison:
    """Two groups, the second minus the first; `str` says it in a sentence.

    Attributes
    ----------
    groups : (Group, Group)
    difference : Estimate
        Of the means, with its interval.
    p : float
        Two-sided, against no difference.
    probability_larger : float
        That the second group's mean is larger, by the t distribution of the difference (no prior belief).
    """

    quantity: str
    unit: str
    groups: tuple[Group, Group]
    difference: Estimate
    degrees_of_freedom: float
    p: float
    probability_larger: float
    confidence: float

    def __str__(self) -> str:
        first, second = self.groups
        unit = f" {self.unit}" if self.unit else ""
        d = self.difference
        return (
            f"{self.quantity} {first.mean:.3f} vs {second.mean:.3f}{unit}, difference {d.value:.3f} [{d.low:.3f}, "
            f"{d.high:.3f}], the second larger with probability {self.probability_larger:.3f}; people differ by "
            f"{first.between:.3f} and {second.between:.3f} (standard deviations without the measurement's)"
        )


def compare_uncertain(
    a: ArrayLike,
    b: ArrayLike,
    spread_a: ArrayLike,
    spread_b: ArrayLike,
    *,
    quantity: str = "mean",
    unit: str = "",
    confidence: float = 0.95,
) -> UncertainComparison:
    """Two groups whose participants are each known with an uncertainty of their own.

    Parameters
    ----------
    a, b : array_like
        One estimate a participant, such as a posterior's `entropy`.
    spread_a, spread_b : array_like
        The standard deviation of each estimate, such as that of a posterior's `entropies`; 0 for one that is exact.
    quantity, unit : str
        What was measured, for the sentence.
    confidence : float

    Examples
    --------
    >>> a, b = [0.3, 0.4, 0.2, 0.3, 0.1], [0.4, 0.6, 0.5, 0.5, 0.9]
    >>> known = compare_uncertain(a, b, 0.02 * np.ones(5), [0.02, 0.02, 0.02, 0.02, 0.4])
    >>> print(known.difference)  # who is hardly known counts less than in Welch's test
    0.24 [0.09, 0.40]
    >>> round(known.probability_larger, 3)
    0.997
    """
    from scipy.special import stdtr, stdtrit

    level = checked_confidence(confidence)
    spreads = _spreads(spread_a, a, "first"), _spreads(spread_b, b, "second")
    if not (spreads[0].any() or spreads[1].any()):
        checked_groups(a, b)
    first, second = group_of(a, spreads[0]), group_of(b, spreads[1])
    variances = np.square([first.standard_error, second.standard_error])
    error = float(np.sqrt(variances.sum()))
    shares = variances / variances.sum()
    freedom = float(1 / np.sum(shares**2 / [first.count - 1, second.count - 1]))
    difference = second.mean - first.mean
    reach = error * float(stdtrit(freedom, (1 + level) / 2))
    larger = float(stdtr(freedom, difference / error))
    return UncertainComparison(
        quantity=quantity,
        unit=unit,
        groups=(first, second),
        difference=Estimate(difference, difference - reach, difference + reach),
        degrees_of_freedom=freedom,
        p=2 * min(larger, float(stdtr(freedom, -difference / error))),
        probability_larger=larger,
        confidence=level,
    )


def group_of(values: ArrayLike, spreads: ArrayLike) -> Group:
    """One group: its mean, the mean's standard error, and the standard deviation τ between its people.

    Examples
    --------
    >>> group = group_of([1, 2, 3, 4, 5, 6, 7], np.ones(7))
    >>> round(group.mean, 3), round(group.between**2, 3)  # their variance is 4.667, of which 1 is error
    (4.0, 3.667)
    """
    y = checked_group(values, "a comparison")
    s = _spreads(spreads, values, "group's")
    variance = between_variance(y, s)
    total = variance + s**2
    if not total.any():
        return Group(float(y.mean()), 0.0, 0.0, len(y))
    weights = 1 / total
    mean = float(weights @ y / weights.sum())
    scatter = float(weights @ (y - mean) ** 2 / (len(y) - 1))
    error = float(np.sqrt(max(scatter, 1.0) / weights.sum()))
    return Group(mean, error, float(np.sqrt(variance)), len(y))


def between_variance(y: NDArray[np.float64], s: NDArray[np.float64]) -> float:
    """τ² by restricted maximum likelihood; the sample variance where all spreads are 0."""
    if not s.any():
        return float(y.var(ddof=1))
    from scipy.optimize import minimize_scalar

    scale = max(float(np.ptp(y)), float(s.max()))
    tried = np.concatenate([[0.0] if s.all() else [], scale * np.geomspace(SMALLEST, 3, TRIED)])
    lacks = _lack(tried, y, s)
    best = int(np.argmin(lacks))
    low, high = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]
    found = minimize_scalar(
        lambda tau: float(_lack(tau, y, s)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-9 * scale},
    )
    return float(found.x if found.fun < lacks[best] else tried[best]) ** 2


def _lack(tau: ArrayLike, y: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Minus twice the restricted log-likelihood, of one τ or several."""
    weights = 1 / (np.square(tau)[..., None] + s**2)
    total = weights.sum(axis=-1)
    mean = weights @ y / total
    squares = np.sum(weights * (y - mean[..., None]) ** 2, axis=-1)
    return np.asarray(np.log(total) - np.log(weights).sum(axis=-1) + squares, dtype=np.float64)


def _spreads(spreads: ArrayLike, values: ArrayLike, which: str) -> NDArray[np.float64]:
    given = as_floats(spreads, "spreads")
    if given.shape != np.shape(values):
        raise InvalidInput(
            f"Expected a spread for each value of the {which} group, {np.shape(values)}, got shape {given.shape}."
        )
    if not np.isfinite(given).all() or (given < 0).any():
        raise InvalidInput(
            f"Spreads are standard deviations, finite and 0 or more; those of the {which} group go from "
            f"{given.min():g} to {given.max():g}."
        )
    return given
