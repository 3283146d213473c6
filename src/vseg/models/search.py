"""Search without gradients for the settings of a black box with the lowest cost.

Half of the trials are spread evenly over the ranges (Halton points, the same in every run, so that the output of a
black box for an image is computed once for all folds); the others lie ever closer around the best so far. Two to four
settings need no more than this, and unlike with Optuna, scores do not depend on what is installed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.errors import InvalidInput

Ranges = Mapping[str, tuple[float, float] | Sequence[Any]]
TRIALS = 24
LOG_SCALE_RATIO = 10  # ranges of positive numbers with at least this ratio are searched on a log scale


def minimise(
    cost: Callable[[dict[str, Any]], float], ranges: Ranges, *, trials: int = TRIALS, seed: int
) -> tuple[dict[str, Any], float]:
    """Return the settings with the lowest cost, and that cost.

    Parameters
    ----------
    cost : callable
        The function of the settings to minimise.
    ranges : mapping
        By name: two numbers, the lowest and highest (whole numbers if both are), or a list of choices.
    trials : int
        Number of settings to try.
    seed : int
        Seed of the second half of the trials.

    Examples
    --------
    >>> best, _ = minimise(lambda at: (at["x"] - 3) ** 2, {"x": (0.0, 10.0)}, seed=0)
    >>> abs(best["x"] - 3) < 0.2
    True
    """
    for name, values in ranges.items():
        _check_range(name, values)
    if trials < 1:
        raise InvalidInput(f"A search needs at least one trial, got {trials}.")
    if not ranges:
        return {}, cost({})
    rng = np.random.default_rng(seed)
    results: list[tuple[float, NDArray[np.float64]]] = []
    for point in _halton_points(ranges, trials):
        results.append((cost(settings_at(point, ranges)), point))
    for remaining in range(trials // 2, 0, -1):
        best = min(results, key=lambda each: each[0])[1]
        point = best + 0.3 * remaining / (trials // 2) * rng.standard_normal(len(best))
        point = 1 - np.abs(1 - np.abs(point) % 2)  # reflect at the ends of the range
        results.append((cost(settings_at(point, ranges)), point))
    value, point = min(results, key=lambda each: each[0])
    return settings_at(point, ranges), float(value)


def initial_settings(ranges: Ranges, trials: int = TRIALS) -> list[dict[str, Any]]:
    """Return the settings that every search tries, whatever its seed."""
    return [settings_at(point, ranges) for point in _halton_points(ranges, trials)] if ranges else [{}]


def settings_at(point: NDArray[np.float64], ranges: Ranges) -> dict[str, Any]:
    """Return the settings at a point of the unit cube."""
    return {
        name: _scale_to_range(float(u), values)
        for u, (name, values) in zip(point, ranges.items(), strict=True)
    }


def _scale_to_range(u: float, values: tuple[float, float] | Sequence[Any]) -> Any:
    if not isinstance(values, tuple):
        return values[min(int(u * len(values)), len(values) - 1)]
    low, high = values
    log_scale = low > 0 and high / low >= LOG_SCALE_RATIO
    value = low * (high / low) ** u if log_scale else low + (high - low) * u
    if isinstance(low, int) and isinstance(high, int):
        return round(value)
    return float(f"{value:.4g}")


def _halton_points(ranges: Ranges, trials: int) -> NDArray[np.float64]:
    """Return the first Halton points, without the corner."""
    from scipy.stats import qmc

    return np.asarray(qmc.Halton(len(ranges), scramble=False).random(trials - trials // 2 + 1)[1:])


def _check_range(name: str, values: Any) -> None:
    numbers = (
        isinstance(values, tuple) and len(values) == 2 and all(isinstance(e, int | float) for e in values)
    )
    if not (numbers and values[0] < values[1]) and not (isinstance(values, list) and values):
        raise InvalidInput(
            f"The range of {name} is (lowest, highest), two numbers, or a list of choices, got {values!r:.60}."
        )
