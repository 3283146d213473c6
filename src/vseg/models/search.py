"""Search without slopes: the settings of a black box with the lowest cost.

Half of the trials are spread evenly over the ranges (Halton's points: the same in every run, so that what a black box
says of an image is computed once for all folds), the others lie ever closer around the best so far. Our own twenty
lines rather than Optuna's: two to four settings need no more, and scores do not depend on what is installed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.errors import InvalidInput

Ranges = Mapping[str, tuple[float, float] | Sequence[Any]]
TRIALS = 24
DECADE = 10  # ranges of positive numbers that span so much are searched by ratio


def lowest(
    cost: Callable[[dict[str, Any]], float], ranges: Ranges, *, trials: int = TRIALS, seed: int
) -> tuple[dict[str, Any], float]:
    """The settings with the lowest cost and that cost.

    Parameters
    ----------
    ranges : mapping
        By name: two numbers, the lowest and highest (whole numbers if both are), or a list of choices.

    Examples
    --------
    >>> found, _ = lowest(lambda at: (at["x"] - 3) ** 2, {"x": (0.0, 10.0)}, seed=0)
    >>> abs(found["x"] - 3) < 0.2
    True
    """
    for name, given in ranges.items():
        _check(name, given)
    if trials < 1:
        raise InvalidInput(f"A search has one trial or more, got {trials}.")
    if not ranges:
        return {}, cost({})
    rng = np.random.default_rng(seed)
    tried: list[tuple[float, NDArray[np.float64]]] = []
    for point in _points(ranges, trials):
        tried.append((cost(settings_at(point, ranges)), point))
    for left in range(trials // 2, 0, -1):
        best = min(tried, key=lambda each: each[0])[1]
        point = best + 0.3 * left / (trials // 2) * rng.standard_normal(len(best))
        point = 1 - np.abs(1 - np.abs(point) % 2)  # mirrored at the ends
        tried.append((cost(settings_at(point, ranges)), point))
    value, point = min(tried, key=lambda each: each[0])
    return settings_at(point, ranges), float(value)


def spread(ranges: Ranges, trials: int = TRIALS) -> list[dict[str, Any]]:
    """The settings that every search tries, whatever its seed."""
    return [settings_at(point, ranges) for point in _points(ranges, trials)] if ranges else [{}]


def settings_at(point: NDArray[np.float64], ranges: Ranges) -> dict[str, Any]:
    """The settings at a point of the unit cube."""
    return {name: _value(float(u), given) for u, (name, given) in zip(point, ranges.items(), strict=True)}


def _value(u: float, given: Any) -> Any:
    if not isinstance(given, tuple):
        return given[min(int(u * len(given)), len(given) - 1)]
    low, high = given
    by_ratio = low > 0 and high / low >= DECADE
    found = low * (high / low) ** u if by_ratio else low + (high - low) * u
    if isinstance(low, int) and isinstance(high, int):
        return round(found)
    return float(f"{found:.4g}")


def _points(ranges: Ranges, trials: int) -> NDArray[np.float64]:
    """Halton's first points but for the corner."""
    from scipy.stats import qmc

    return np.asarray(qmc.Halton(len(ranges), scramble=False).random(trials - trials // 2 + 1)[1:])


def _check(name: str, given: Any) -> None:
    numbers = isinstance(given, tuple) and len(given) == 2 and all(isinstance(e, int | float) for e in given)
    if not (numbers and given[0] < given[1]) and not (isinstance(given, list) and given):
        raise InvalidInput(
            f"The range of {name} is (lowest, highest), two numbers, or a list of choices, got {given!r:.60}."
        )
