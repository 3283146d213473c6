"""Claim: what the paper says, what came out here, and whether it was reproduced. Verdicts are computed."""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

REPRODUCED = "reproduced"
ONLY_IF = "reproduced only if"
NOT = "not reproduced"
DRAWS = 2000
NEAR = 1.5
"""A printed number counts as reproduced when ours is within this factor of it: the paper prints neither its maps
nor all of its settings."""


@dataclass(frozen=True)
class Claim:
    """One row of the table of claims.

    Attributes
    ----------
    claim : the paper's statement, in words
    printed : the paper's number, or "–"
    paper : ours with the paper's algorithm, "mean (low to high)"
    ours : ours with vseg's defaults
    verdict : "reproduced", "reproduced only if" or "not reproduced"
    why : the condition, the reason, or a remark; may be empty
    """

    claim: str
    printed: str
    paper: str
    ours: str
    verdict: str
    why: str = ""

    def as_dict(self) -> dict[str, str]:
        """For claims.json."""
        return asdict(self)


def judged(
    claim: str,
    *,
    paper: str,
    ours: str,
    holds: bool,
    holds_if: bool = False,
    printed: str = "–",
    condition: str = "",
    reason: str = "",
    remark: str = "",
) -> Claim:
    """A claim with its verdict: does it hold; if not, does it under the condition; if not, why.

    Examples
    --------
    >>> judged("Maps are perfect.", paper="0.87", ours="1.00", holds=False, holds_if=True,
    ...        condition="λ is lowered step by step").verdict
    'reproduced only if'
    """
    verdict = REPRODUCED if holds else ONLY_IF if holds_if else NOT
    why = {REPRODUCED: remark, ONLY_IF: condition, NOT: reason}[verdict]
    return Claim(claim, printed, paper, ours, verdict, why)


def near(value: float, lowest: float, highest: float | None = None) -> bool:
    """Whether a number agrees with a printed number, or with a printed range, up to the factor `NEAR`.

    Examples
    --------
    >>> near(2.9, 2.0), near(3.1, 2.0), near(3.8, 2.0, 3.0)
    (True, False, True)
    """
    return lowest / NEAR <= value <= (lowest if highest is None else highest) * NEAR


def interval(values: ArrayLike, level: float = 0.95) -> tuple[float, float, float]:
    """The mean of the resamples and its percentile bootstrap interval (always with the same draws).

    Examples
    --------
    >>> interval([1.0, 1.0, 1.0])
    (1.0, 1.0, 1.0)
    """
    x = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(0).integers(len(x), size=(DRAWS, len(x)), dtype=np.int32)
    low, high = np.quantile(x[drawn].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(x.mean()), float(low), float(high)


def ratio_interval(above: ArrayLike, below: ArrayLike, level: float = 0.95) -> tuple[float, float, float]:
    """The ratio of two means over the same resamples, with its bootstrap interval."""
    a, b = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    drawn = np.random.default_rng(0).integers(len(a), size=(DRAWS, len(a)), dtype=np.int32)
    low, high = np.quantile(a[drawn].mean(axis=1) / b[drawn].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(a.mean() / b.mean()), float(low), float(high)


def spoken(numbers: tuple[float, float, float], digits: int = 3) -> str:
    """'mean (low to high)'.

    Examples
    --------
    >>> spoken((0.21634, 0.2101, 0.2212))
    '0.216 (0.210 to 0.221)'
    """
    mean, low, high = (f"{number:.{digits}f}" for number in numbers)
    return f"{mean} ({low} to {high})"
