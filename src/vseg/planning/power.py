"""How often Welch's test would tell two conditions apart, from simulated people drawn again and again."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ALPHA = 0.05
STUDIES = 4000  # drawn for the power itself
AGAIN = 400  # sets of people, for its interval
LEVEL = 0.95

Values = NDArray[np.float64]


class Condition(NamedTuple):
    """What was estimated of simulated people, how they were, and the mean and spread they were drawn from."""

    estimates: Values
    truths: Values
    entropy: float
    spread: float


class Power(NamedTuple):
    """The share of studies that find the difference, and its interval over the people who were simulated."""

    value: float
    low: float
    high: float


def power(first: Condition, second: Condition, people: int, *, seed: int) -> Power:
    """The power of a study with so many people in each condition.

    The person at place r is the same in both, in areas and luck; a study draws different people for each condition.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truths = rng.normal(size=(2, 200))
    >>> exact = [Condition(each + mean, each + mean, mean, 1) for mean, each in enumerate(truths)]
    >>> found = power(*exact, 17, seed=0)  # d = 1 in tables of Student's test: 0.81
    >>> bool(0.78 < found.value < 0.84 and found.low <= found.value <= found.high)
    True
    """
    rng = np.random.default_rng(np.random.SeedSequence((seed, people)))
    guessed = as_guessed(first), as_guessed(second)
    value = _share(*guessed, people, rng)
    # The people were drawn by chance too: with others, the power would have come out differently.
    count = len(first.estimates)
    again = rng.integers(count, size=(AGAIN, count))
    others = _expected(as_guessed(_taken(first, again)), as_guessed(_taken(second, again)), people)
    off = np.quantile(others, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) - _expected(*guessed, people)
    low, high = np.clip(value + off, 0, 1)
    return Power(value, float(min(low, value)), float(max(high, value)))


def needed(first: Condition, second: Condition, wanted: float, most: int, *, seed: int) -> int | None:
    """The fewest people in each condition, 2 to `most`, with this power; None if these do not reach it."""
    guessed = as_guessed(first), as_guessed(second)

    def reached(people: int) -> bool:
        rng = np.random.default_rng(np.random.SeedSequence((seed, people)))
        return _share(*guessed, people, rng) >= wanted

    if not reached(most):
        return None
    low, high = 1, most  # the power grows with the people: between one too few and enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def as_guessed(condition: Condition) -> Values:
    """(…, R) what would have been estimated of people who are on average, and differ, exactly as guessed.

    R people drawn by chance are a little more or less sure than guessed. Estimates follow the truth along a line;
    people are moved along it until mean and spread fit, and what is left is widened by the two numbers of the line.
    """
    estimates, truths, entropy, spread = condition
    count = estimates.shape[-1]
    mean, centre = (each.mean(axis=-1, keepdims=True) for each in (estimates, truths))
    off, apart = truths - centre, truths.std(axis=-1, keepdims=True)
    known = apart > 1e-9
    apart = np.where(known, apart, 1)
    slope = np.where(known, np.mean(off * estimates, axis=-1, keepdims=True) / apart**2, 0)
    left = (estimates - mean - slope * off) * np.sqrt(count / max(count - 2, 1))
    moved: Values = mean + slope * (entropy - centre + spread * off / apart) + left
    return moved


def _taken(condition: Condition, at: NDArray[np.int64]) -> Condition:
    return condition._replace(estimates=condition.estimates[at], truths=condition.truths[at])


def _share(first: Values, second: Values, people: int, rng: np.random.Generator) -> float:
    """Of studies with people drawn from these, with replacement, those that find the difference."""
    drawn = (each[rng.integers(len(each), size=(STUDIES, people))] for each in (first, second))
    return float(_found(*drawn).mean())


def _found(first: Values, second: Values) -> NDArray[np.bool_]:
    """Whether Welch's test is significant, over the last axis."""
    from scipy.special import stdtr

    variances = np.stack([first.var(axis=-1, ddof=1), second.var(axis=-1, ddof=1)])
    t, freedom = _welch(second.mean(axis=-1) - first.mean(axis=-1), variances, first.shape[-1])
    found: NDArray[np.bool_] = 2 * stdtr(freedom, -t) < ALPHA
    return found


def _expected(first: Values, second: Values, people: int) -> Values:
    """The power over the last axis if estimates were normally distributed: smooth, so good for differences of it."""
    from scipy.special import ndtr, stdtrit

    variances = np.stack([first.var(axis=-1), second.var(axis=-1)])
    t, freedom = _welch(second.mean(axis=-1) - first.mean(axis=-1), variances, people)
    limit = stdtrit(freedom, 1 - ALPHA / 2)
    # Johnson and Welch's approximation of the noncentral t distribution, whose own function fails far out.
    at, width = limit * (1 - 1 / (4 * freedom)), np.sqrt(1 + limit**2 / (2 * freedom))
    return np.asarray(ndtr((t - at) / width) + ndtr((-t - at) / width), dtype=np.float64)


def _welch(differences: Values, variances: Values, people: int) -> tuple[Values, Values]:
    """|t| and its degrees of freedom for equally many people in both conditions; variances (2, …) may be 0."""
    total = np.maximum(variances.sum(axis=0), 1e-300)
    shares = np.sum((variances / total) ** 2, axis=0)
    freedom = (people - 1) / np.maximum(shares, 0.5)
    return np.abs(differences) / np.sqrt(total / people), freedom
