"""How many trials reach an error: between the numbers that were run, on log axes, with an interval over photographs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
LEVEL = 0.95
ROUNDING = 1e-9  # sums in another order differ by less


class Needed(NamedTuple):
    """Trials that reach an error, with an interval; infinite where the most that were run are not enough."""

    trials: float
    low: float
    high: float


def trials_at(error: float, trials: NDArray[np.float64], errors: NDArray[np.float64]) -> float:
    """Where a falling curve of errors reaches one: interpolated in logarithms, the first number where even that does.

    Examples
    --------
    >>> round(trials_at(0.2, np.array([100.0, 400.0]), np.array([0.4, 0.1])))
    200
    >>> trials_at(0.05, np.array([100.0, 400.0]), np.array([0.4, 0.1]))
    inf
    """
    enough = np.flatnonzero(errors <= error * (1 + ROUNDING))
    if not len(enough):
        return float("inf")
    after = int(enough[0])
    if not after:
        return float(trials[0])
    ends = slice(after - 1, after + 1)
    return float(np.exp(np.interp(-np.log(error), -np.log(errors[ends]), np.log(trials[ends]))))


def needed(
    goal: NDArray[np.float64],
    trials: NDArray[np.float64],
    errors: NDArray[np.float64],
    *,
    seed: int,
    level: float = LEVEL,
) -> Needed:
    """Trials after which the mean of `errors`, (images, trials), is the mean of `goal`, (images,).

    The interval draws photographs again, with all that was measured on them: the same ones for the goal.
    """
    count = len(goal)
    drawn = np.random.default_rng(seed).integers(count, size=(RESAMPLES, count))
    goals, curves = goal[drawn].mean(axis=1), errors[drawn].mean(axis=1)
    found = [trials_at(float(one), trials, curve) for one, curve in zip(goals, curves, strict=True)]
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(found, tails, method="nearest")
    return Needed(trials_at(float(goal.mean()), trials, errors.mean(axis=0)), float(low), float(high))
