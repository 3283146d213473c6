"""Groups of participants of whom each is known with an uncertainty of its own, as from a posterior.

What is measured of participant i is y_i = μ + u_i + e_i: people differ, u_i ~ N(0, τ²), and the measurement has an
error of known size, e_i ~ N(0, s_i²). τ² is found by restricted maximum likelihood, each group for itself; people then
count by 1/(τ² + s_i²), so that one about whom little is known counts less, the more so the more alike people are.
The standard error is Knapp and Hartung's (2003), not below the model's own, with Student's t. At s_i = 0 all of it is
Welch's test.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.bayes.posterior import Posterior
from vseg.data.layout import as_floats
from vseg.errors import InvalidInput, VsegWarning
from vseg.evaluation.group_tests import Estimate, checked_confidence, checked_group, checked_groups

TRIED = 200  # values of τ among which the likelihood's highest is sought first
LEAST_TOLD = 5e-4  # a difference between people that is not 0.000 in print
SMALLEST = 1e-6  # of τ above 0, as a share of what the values vary by


class Known(NamedTuple):
    """What is known of one participant: an estimate, its standard deviation, and its interval where there is one."""

    value: float
    spread: float
    low: float = np.nan
    high: float = np.nan


People = Mapping[str, Posterior | Known]


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
    paired : bool
        Whether both are the same people, each compared with themselves.
    """

    quantity: str
    unit: str
    groups: tuple[Group, Group]
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
        chance = f"p = {self.p:.2g}" if self.p >= 0.001 else "p < 0.001"
        who = f"the same {first.count}" if self.paired else f"{first.count} and {second.count}"
        return (
            f"{self.quantity} {first.mean:.3f} vs {second.mean:.3f}{unit} ({who} people), difference "
            f"{d.value:.3f} [{d.low:.3f}, {d.high:.3f}] ({self.confidence:.0%}), {chance}, the second larger with "
            f"probability {self.probability_larger:.3f}; {self._between}"
        )

    @property
    def _between(self) -> str:
        """How much people differ, where that can be told."""
        told = [f"{group.between:.3f}" if group.between >= LEAST_TOLD else "" for group in self.groups]
        beyond = "(standard deviations without the measurement's)"
        nothing = "no difference between people could be told apart from measurement error"
        if all(told):
            return f"people differ by {' and '.join(told)} {beyond}"
        if not any(told):
            return nothing
        where, other = ("first", "second") if told[0] else ("second", "first")
        return f"people of the {where} differ by {''.join(told)} {beyond}; of the {other} {nothing}"


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
    paired : bool
        Whether a and b are the same people in the same order, whose own differences are then looked at.

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
    difference, error, freedom = _paired(a, b, *spreads) if paired else _unpaired(first, second)
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


def compare_known(
    first: Mapping[str, Known], second: Mapping[str, Known], **settings: Any
) -> UncertainComparison:
    """Two groups by their participants' names; those who are in both are compared with themselves.

    Examples
    --------
    >>> before = {name: Known(value, 0.02) for name, value in zip("abc", [0.1, 0.2, 0.3])}
    >>> after = {name: Known(one.value + 0.1, 0.02) for name, one in before.items()}
    >>> found = compare_known(before, after)
    >>> found.paired, round(found.difference.value, 3)
    (True, 0.1)
    """
    both = [name for name in first if name in second]
    if len(both) == 1:
        raise InvalidInput(
            f"Only {both[0]} is in both groups; people compared with themselves need to be 2 or more, people "
            "who differ need names that do."
        )
    if both and (left := len(first) + len(second) - 2 * len(both)):
        warnings.warn(
            f"{len(both)} people are in both groups and are compared with themselves; the {left} who are in one "
            "alone are left out.",
            VsegWarning,
            stacklevel=3,
        )
    a, b = ([people[name] for name in (both or people)] for people in (first, second))
    return compare_uncertain(
        [one.value for one in a], [one.value for one in b], [one.spread for one in a], [one.spread for one in b],
        paired=bool(both), **settings,
    )  # fmt: skip


def _unpaired(first: Group, second: Group) -> tuple[float, float, float]:
    """The difference, its standard error and its degrees of freedom, by Welch and Satterthwaite."""
    variances = np.square([first.standard_error, second.standard_error])
    shares = variances / variances.sum()
    freedom = float(1 / np.sum(shares**2 / [first.count - 1, second.count - 1]))
    return second.mean - first.mean, float(np.sqrt(variances.sum())), freedom


def _paired(
    a: ArrayLike, b: ArrayLike, spread_a: NDArray[np.float64], spread_b: NDArray[np.float64]
) -> tuple[float, float, float]:
    """The same of everyone's own difference."""
    if np.shape(a) != np.shape(b):
        raise InvalidInput(
            f"Expected the same people in both groups, got {np.size(a)} and {np.size(b)} values."
        )
    found = group_of(np.subtract(b, a), np.hypot(spread_a, spread_b))
    if not found.standard_error:
        raise InvalidInput(f"Everyone differs by exactly {found.mean:g}; a comparison needs people who vary.")
    return found.mean, found.standard_error, float(found.count - 1)


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


def compare_entropies(first: People, second: People, *, confidence: float = 0.95) -> UncertainComparison:
    """Two groups' mean entropies, with the uncertainty of everyone's own carried through.

    Parameters
    ----------
    first, second : dict of Posterior, as `posteriors` gives them
        Different people; or the same in two conditions, who are then compared with themselves.
    confidence : float

    Examples
    --------
    >>> from vseg.evaluation.random_effects import Known
    >>> low = {name: Known(value, 0.03) for name, value in zip("abcd", [0.1, 0.15, 0.2, 0.12])}
    >>> high = {name: Known(value, 0.03) for name, value in zip("efgh", [0.3, 0.35, 0.25, 0.4])}
    >>> print(compare_entropies(low, high).difference)
    0.18 [0.08, 0.28]
    """
    both = [{name: known_entropy(one) for name, one in people.items()} for people in (first, second)]
    return compare_known(*both, quantity="mean entropy", unit="nats", confidence=confidence)


def known_entropy(one: Posterior | Known) -> Known:
    """A participant's mean entropy, its standard deviation and its 90 % interval."""
    if isinstance(one, Known):
        return one
    return Known(one.entropy, float(one.entropies.std(ddof=1)), *one.entropy_interval)
