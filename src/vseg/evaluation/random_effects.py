"""Compare groups of participants whose measurements have an uncertainty of their own, as from a posterior.

The measurement of participant i is y_i = μ + u_i + e_i: participants differ by u_i ~ N(0, τ²), and the measurement has
an error of known size, e_i ~ N(0, s_i²). τ² is estimated by restricted maximum likelihood in each group. Participants
are weighted by 1/(τ² + s_i²), so that uncertain measurements count less, the more so the more alike participants are.
The standard error is that of Knapp and Hartung (2003), not below the model's own, with Student's t. With s_i = 0
this is Welch's test.

A posterior's own estimate is no such measurement: it is pulled by the prior, the more the fewer the answers, and this
pull does not average out over a group. Groups are therefore compared by each participant's estimate under a flat prior
(`Posterior.flat_entropy`).
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.confidence import check_confidence
from vseg.bayes.posterior import Posterior
from vseg.data.layout import as_floats
from vseg.errors import InvalidInput, VsegWarning
from vseg.evaluation.group_tests import Estimate, check_group, check_groups

GRID_POINTS = 200  # values of τ on which the likelihood is evaluated before it is maximised
MIN_PRINTED = 5e-4  # smallest standard deviation that does not print as 0.000
MIN_TAU = 1e-6  # smallest τ above 0 on the grid, relative to the range of the values


class Measurement(NamedTuple):
    """The measurement of one participant.

    Attributes
    ----------
    value, spread : float
        An estimate and its standard deviation.
    low, high : float
        The ends of its interval, NaN if there is none.
    flat, flat_spread : float
        The estimate and its standard deviation under a flat prior, by which groups are compared; NaN if there is no
        prior, as for numbers that do not come from a posterior.
    """

    value: float
    spread: float
    low: float = np.nan
    high: float = np.nan
    flat: float = np.nan
    flat_spread: float = np.nan

    @property
    def without_prior(self) -> tuple[float, float]:
        """The estimate by which groups are compared, and its standard deviation."""
        return (self.value, self.spread) if np.isnan(self.flat) else (self.flat, self.flat_spread)


Participants: TypeAlias = Mapping[str, Posterior | Measurement]


@dataclass(frozen=True)
class GroupEstimate:
    """A group's mean, its standard error, the standard deviation τ between participants, and their number."""

    mean: float
    standard_error: float
    between: float
    count: int


@dataclass(frozen=True)
class UncertainComparison:
    """The second group minus the first; `str` describes it in a sentence.

    Attributes
    ----------
    quantity, unit : str
        What was measured.
    groups : (GroupEstimate, GroupEstimate)
    difference : Estimate
        The difference of the means, with its interval.
    degrees_of_freedom : float
        Of the t distribution of the difference.
    p : float
        Two-sided p value for no difference.
    probability_larger : float
        Probability that the second group's mean is larger, by the t distribution of the difference (a flat prior).
    confidence : float
        Level of the interval.
    paired : bool
        Whether both groups are the same participants, each compared with themselves.
    """

    quantity: str
    unit: str
    groups: tuple[GroupEstimate, GroupEstimate]
    difference: Estimate
    degrees_of_freedom: float
    p: float
    probability_larger: float
    confidence: float
    paired: bool = False

    def __str__(self) -> str:
        first, second = self.groups
        unit = f" {self.unit}" if self.unit else ""
        d = self.difference
        p_value = f"p = {self.p:.2g}" if self.p >= 0.001 else "p < 0.001"
        counts = f"the same {first.count}" if self.paired else f"{first.count} and {second.count}"
        return (
            f"{self.quantity} {first.mean:.3f} vs {second.mean:.3f}{unit} ({counts} participants), difference "
            f"{d.value:.3f} [{d.low:.3f}, {d.high:.3f}] ({self.confidence:.0%}), {p_value}, the second larger with "
            f"probability {self.probability_larger:.3f}; {self._describe_spread()}"
        )

    def _describe_spread(self) -> str:
        """Describe how much participants differ, where it can be estimated."""
        values = [f"{group.between:.3f}" if group.between >= MIN_PRINTED else "" for group in self.groups]
        note = "(standard deviations without measurement error)"
        nothing = "no difference between participants could be distinguished from measurement error"
        if all(values):
            return f"participants differ by {' and '.join(values)} {note}"
        if not any(values):
            return nothing
        one, other = ("first", "second") if values[0] else ("second", "first")
        return (
            f"participants of the {one} group differ by {''.join(values)} {note}; in the {other}, {nothing}"
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
    paired: bool = False,
) -> UncertainComparison:
    """Compare two groups of estimates that each have an uncertainty of their own.

    Parameters
    ----------
    a, b : array_like
        One estimate per participant, such as the first of a posterior's `flat_entropy`.
    spread_a, spread_b : array_like
        The standard deviation of each estimate, such as the second of `flat_entropy`; 0 for an exact value.
    quantity, unit : str
        What was measured, for the sentence.
    confidence : float
        Level of the interval.
    paired : bool
        Whether a and b are the same participants in the same order, whose differences are then compared with 0.

    Examples
    --------
    >>> a, b = [0.3, 0.4, 0.2, 0.3, 0.1], [0.4, 0.6, 0.5, 0.5, 0.9]
    >>> comparison = compare_uncertain(a, b, 0.02 * np.ones(5), [0.02, 0.02, 0.02, 0.02, 0.4])
    >>> print(comparison.difference)  # an uncertain value counts less than in Welch's test
    0.24 [0.09, 0.40]
    >>> round(comparison.probability_larger, 3)
    0.997
    """
    from scipy.special import stdtr, stdtrit

    level = check_confidence(confidence)
    spreads = _check_spreads(spread_a, a, "first"), _check_spreads(spread_b, b, "second")
    if not (spreads[0].any() or spreads[1].any()):
        check_groups(a, b)
    first, second = estimate_group(a, spreads[0]), estimate_group(b, spreads[1])
    difference, error, freedom = (
        _compare_paired(a, b, *spreads) if paired else _compare_unpaired(first, second)
    )
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
        paired=paired,
    )


def compare_measurements(
    first: Mapping[str, Measurement], second: Mapping[str, Measurement], **settings: Any
) -> UncertainComparison:
    """Compare two groups by participant name; participants in both groups are compared with themselves.

    Parameters
    ----------
    first, second : mapping from names to Measurement
        If any participants are in both groups, those in one group only are left out with a warning.
    **settings
        quantity, unit and confidence, as in `compare_uncertain`.

    Examples
    --------
    >>> before = {name: Measurement(value, 0.02) for name, value in zip("abc", [0.1, 0.2, 0.3])}
    >>> after = {name: Measurement(one.value + 0.1, 0.02) for name, one in before.items()}
    >>> comparison = compare_measurements(before, after)
    >>> comparison.paired, round(comparison.difference.value, 3)
    (True, 0.1)
    """
    both = [name for name in first if name in second]
    if len(both) == 1:
        raise InvalidInput(
            f"Only {both[0]} is in both groups; a paired comparison needs at least 2 in both, and different "
            "participants need different names."
        )
    if both and (left := len(first) + len(second) - 2 * len(both)):
        warnings.warn(
            f"{len(both)} participants are in both groups and are compared with themselves; the {left} in one group "
            "only are left out.",
            VsegWarning,
            stacklevel=3,
        )
    (a, spread_a), (b, spread_b) = (
        zip(*(group[name].without_prior for name in (both or group)), strict=True)
        for group in (first, second)
    )
    return compare_uncertain(a, b, spread_a, spread_b, paired=bool(both), **settings)


def _compare_unpaired(first: GroupEstimate, second: GroupEstimate) -> tuple[float, float, float]:
    """Return the difference, its standard error and its degrees of freedom, by Welch and Satterthwaite."""
    variances = np.square([first.standard_error, second.standard_error])
    shares = variances / variances.sum()
    freedom = float(1 / np.sum(shares**2 / [first.count - 1, second.count - 1]))
    return second.mean - first.mean, float(np.sqrt(variances.sum())), freedom


def _compare_paired(
    a: ArrayLike, b: ArrayLike, spread_a: NDArray[np.float64], spread_b: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Return the mean difference within participants, its standard error and its degrees of freedom."""
    if np.shape(a) != np.shape(b):
        raise InvalidInput(
            f"Expected the same participants in both groups, got {np.size(a)} and {np.size(b)} values."
        )
    group = estimate_group(np.subtract(b, a), np.hypot(spread_a, spread_b))
    if not group.standard_error:
        raise InvalidInput(
            f"Everyone differs by exactly {group.mean:g}; a comparison needs differences that vary."
        )
    return group.mean, group.standard_error, float(group.count - 1)


def estimate_group(values: ArrayLike, spreads: ArrayLike) -> GroupEstimate:
    """Estimate a group's mean, its standard error, and the standard deviation τ between participants.

    Examples
    --------
    >>> group = estimate_group([1, 2, 3, 4, 5, 6, 7], np.ones(7))
    >>> round(group.mean, 3), round(group.between**2, 3)  # their variance is 4.667, of which 1 is error
    (4.0, 3.667)
    """
    y = check_group(values, "a comparison")
    s = _check_spreads(spreads, values, "group's")
    variance = between_variance(y, s)
    total = variance + s**2
    if not total.any():
        return GroupEstimate(float(y.mean()), 0.0, 0.0, len(y))
    weights = 1 / total
    mean = float(weights @ y / weights.sum())
    scatter = float(weights @ (y - mean) ** 2 / (len(y) - 1))
    error = float(np.sqrt(max(scatter, 1.0) / weights.sum()))
    return GroupEstimate(mean, error, float(np.sqrt(variance)), len(y))


def between_variance(y: NDArray[np.float64], s: NDArray[np.float64]) -> float:
    """Estimate τ² by restricted maximum likelihood; the sample variance if all spreads are 0."""
    if not s.any():
        return float(y.var(ddof=1))
    from scipy.optimize import minimize_scalar

    scale = max(float(np.ptp(y)), float(s.max()))
    grid = np.concatenate([[0.0] if s.all() else [], scale * np.geomspace(MIN_TAU, 3, GRID_POINTS)])
    deviances = _deviance(grid, y, s)
    best = int(np.argmin(deviances))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    result = minimize_scalar(
        lambda tau: float(_deviance(tau, y, s)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-9 * scale},
    )
    return float(result.x if result.fun < deviances[best] else grid[best]) ** 2


def _deviance(tau: ArrayLike, y: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return minus twice the restricted log-likelihood of one τ or several."""
    weights = 1 / (np.square(tau)[..., None] + s**2)
    total = weights.sum(axis=-1)
    mean = weights @ y / total
    squares = np.sum(weights * (y - mean[..., None]) ** 2, axis=-1)
    return np.asarray(np.log(total) - np.log(weights).sum(axis=-1) + squares, dtype=np.float64)


def _check_spreads(spreads: ArrayLike, values: ArrayLike, which: str) -> NDArray[np.float64]:
    checked = as_floats(spreads, "spreads")
    if checked.shape != np.shape(values):
        raise InvalidInput(
            f"Expected a spread for each value of the {which} group, {np.shape(values)}, got shape {checked.shape}."
        )
    if not np.isfinite(checked).all() or (checked < 0).any():
        raise InvalidInput(
            f"Spreads are standard deviations, finite and 0 or more; those of the {which} group go from "
            f"{checked.min():g} to {checked.max():g}."
        )
    return checked


def compare_entropies(
    first: Participants, second: Participants, *, confidence: float = 0.95
) -> UncertainComparison:
    """Compare the mean entropies of two groups, taking the uncertainty of each participant into account.

    Parameters
    ----------
    first, second : mapping from names to Posterior or Measurement
        Different participants, or the same in two conditions, who are then compared with themselves.
    confidence : float
        Level of the interval.

    Examples
    --------
    >>> low = {name: Measurement(value, 0.03) for name, value in zip("abcd", [0.1, 0.15, 0.2, 0.12])}
    >>> high = {name: Measurement(value, 0.03) for name, value in zip("efgh", [0.3, 0.35, 0.25, 0.4])}
    >>> print(compare_entropies(low, high).difference)
    0.18 [0.08, 0.28]
    """
    groups = [{name: measure_entropy(one) for name, one in group.items()} for group in (first, second)]
    return compare_measurements(*groups, quantity="mean entropy", unit="nats", confidence=confidence)


def measure_entropy(participant: Posterior | Measurement) -> Measurement:
    """Return a participant's mean entropy by the posterior, with its 90 % interval, and under a flat prior."""
    if isinstance(participant, Measurement):
        return participant
    spread = float(participant.entropies.std(ddof=1))
    return Measurement(participant.entropy, spread, *participant.entropy_interval, *participant.flat_entropy)
