"""Estimate how many trials a method needs to reach an error, with an interval over photographs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
LEVEL = 0.95
ROUNDING = 1e-9  # relative; sums in a different order differ by less


class TrialsNeeded(NamedTuple):
    """Number of trials that reach an error, with an interval; infinite if the largest tested number is too small."""

    trials: float
    low: float
    high: float


def interpolate_trials(error: float, trials: NDArray[np.float64], errors: NDArray[np.float64]) -> float:
    """Return the number of trials at which a curve of errors first falls to `error`.

    Values between the tested numbers are interpolated on log-log axes. The result is the smallest tested number if
    its error is already low enough, and infinite if no tested number reaches the error.

    Examples
    --------
    >>> round(interpolate_trials(0.2, np.array([100.0, 400.0]), np.array([0.4, 0.1])))
    200
    >>> interpolate_trials(0.05, np.array([100.0, 400.0]), np.array([0.4, 0.1]))
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


def estimate_trials_needed(
    goal: NDArray[np.float64],
    trials: NDArray[np.float64],
    errors: NDArray[np.float64],
    *,
    seed: int,
    level: float = LEVEL,
) -> TrialsNeeded:
    """Return the number of trials at which the mean of `errors` (images, trials) reaches the mean of `goal` (images,).

    The interval is a bootstrap over photographs; each resample uses the same photographs for `goal` and `errors`.
    """
    count = len(goal)
    resampled = np.random.default_rng(seed).integers(count, size=(RESAMPLES, count))
    goals, curves = goal[resampled].mean(axis=1), errors[resampled].mean(axis=1)
    trials_per_resample = [
        interpolate_trials(float(error), trials, curve) for error, curve in zip(goals, curves, strict=True)
    ]
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(trials_per_resample, tails, method="nearest")
    return TrialsNeeded(
        interpolate_trials(float(goal.mean()), trials, errors.mean(axis=0)), float(low), float(high)
    )
