"""Claims of the paper: the printed statement, the numbers obtained here, and a computed verdict."""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

REPRODUCED = "reproduced"
ONLY_IF = "reproduced only if"
NOT_REPRODUCED = "not reproduced"
NOT_TESTABLE = "not testable without the data"
ARITHMETIC = "arithmetic with printed numbers; nothing is simulated"
"""The settings of a claim that needs no resamples."""
BOOTSTRAP_DRAWS = 2000
TOLERANCE_FACTOR = 1.5
"""A printed number counts as reproduced if ours is within this factor of it: the paper prints neither its maps
nor all of its settings."""


@dataclass(frozen=True)
class Claim:
    """One row of the table of claims.

    Attributes
    ----------
    claim : str
        The paper's statement.
    printed : str
        The number printed in the paper, or "–".
    paper : str
        The number obtained here with the paper's algorithm, "mean (low to high)".
    ours : str
        The number obtained with vseg's defaults.
    verdict : str
        "reproduced", "reproduced only if", "not reproduced" or "not testable without the data".
    why : str
        The condition, the reason or a remark; may be empty.
    settings : str
        The settings that the numbers were obtained with, except for the number of resamples; see `describe_run`.
    """

    claim: str
    printed: str
    paper: str
    ours: str
    verdict: str
    why: str = ""
    settings: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return the claim as stored in claims.json."""
        return asdict(self)


def judge(
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
    about_people: bool = False,
    settings: str = "",
) -> Claim:
    """Return the claim with its verdict.

    A statement about the paper's participants cannot be judged by simulated ones, whose behaviour we chose: its verdict
    is always "not testable without the data", and the explanation says what simulated participants show.

    Parameters
    ----------
    claim, paper, ours, printed : str
        As in `Claim`.
    holds : bool
        Whether the claim is reproduced.
    holds_if : bool
        Whether it is reproduced under the condition; used if it does not hold.
    condition, reason, remark : str
        The explanation for "reproduced only if", "not reproduced" and "reproduced".
    about_people : bool
        Whether the claim is about the paper's participants rather than its method.
    settings : str
        As in `Claim`.

    Examples
    --------
    >>> judge("Maps are perfect.", paper="0.87", ours="1.00", holds=False, holds_if=True,
    ...       condition="λ is lowered step by step").verdict
    'reproduced only if'
    """
    verdict = REPRODUCED if holds else ONLY_IF if holds_if else NOT_REPRODUCED
    why = {REPRODUCED: remark, ONLY_IF: condition, NOT_REPRODUCED: reason}[verdict]
    if about_people:
        shown = {REPRODUCED: "show it.", ONLY_IF: "show it only if", NOT_REPRODUCED: "do not show it:"}[
            verdict
        ]
        verdict, why = NOT_TESTABLE, f"Simulated participants {shown} {why}".strip()
    return Claim(claim, printed, paper, ours, verdict, why, settings)


def describe_run(
    *,
    size: object,
    segments: object,
    pairs: str,
    blocks: object,
    strength: object,
    rate: object,
    amplitude: object = None,
    xi: object = None,
    starts: str = "one random start",
) -> str:
    """Describe the settings of a simulation and of the paper's algorithm for a row of the table of claims.

    Parameters
    ----------
    size, segments, pairs, blocks : object
        N, K, the number of pairs and the number of blocks.
    strength, rate, starts : object
        λ, the learning rate λ_r and the starts of Algorithm 1.
    amplitude, xi : object, optional
        σ_f, the standard deviation of the log-odds fields, and ξ, their length in locations; None for other truths.

    Examples
    --------
    >>> describe_run(size=12, segments=3, pairs="KN²", blocks=10, amplitude=6, xi=2, strength=10, rate=0.05)
    'N = 12, K = 3, KN² pairs, N_b = 10, σ_f = 6, ξ = 2; Algorithm 1: λ = 10, learning rate 0.05, one random start'
    """
    fields = "" if amplitude is None else f", σ_f = {amplitude}, ξ = {xi}"
    return (
        f"N = {size}, K = {segments}, {pairs} pairs, N_b = {blocks}{fields}; "
        f"Algorithm 1: λ = {strength}, learning rate {rate}, {starts}"
    )


def is_near(value: float, lowest: float, highest: float | None = None) -> bool:
    """Return whether a number agrees with a printed number or range up to `TOLERANCE_FACTOR`.

    Examples
    --------
    >>> is_near(2.9, 2.0), is_near(3.1, 2.0), is_near(3.8, 2.0, 3.0)
    (True, False, True)
    """
    return lowest / TOLERANCE_FACTOR <= value <= (lowest if highest is None else highest) * TOLERANCE_FACTOR


def interval(values: ArrayLike, level: float = 0.95) -> tuple[float, float, float]:
    """Return the mean of the resamples and its percentile bootstrap interval (with a fixed seed).

    Examples
    --------
    >>> interval([1.0, 1.0, 1.0])
    (1.0, 1.0, 1.0)
    """
    x = np.asarray(values, dtype=np.float64)
    indices = np.random.default_rng(0).integers(len(x), size=(BOOTSTRAP_DRAWS, len(x)), dtype=np.int32)
    low, high = np.quantile(x[indices].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(x.mean()), float(low), float(high)


def ratio_interval(above: ArrayLike, below: ArrayLike, level: float = 0.95) -> tuple[float, float, float]:
    """Return the ratio of two means and its bootstrap interval.

    Equally many values come from the same resamples and are drawn in pairs; otherwise they are drawn independently.
    """
    a, b = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    rng = np.random.default_rng(0)
    indices = rng.integers(len(a), size=(BOOTSTRAP_DRAWS, len(a)), dtype=np.int32)
    others = (
        indices if len(a) == len(b) else rng.integers(len(b), size=(BOOTSTRAP_DRAWS, len(b)), dtype=np.int32)
    )
    low, high = np.quantile(
        a[indices].mean(axis=1) / b[others].mean(axis=1), [(1 - level) / 2, (1 + level) / 2]
    )
    return float(a.mean() / b.mean()), float(low), float(high)


def format_interval(numbers: tuple[float, float, float], digits: int = 3) -> str:
    """Format an interval as 'mean (low to high)'.

    Examples
    --------
    >>> format_interval((0.21634, 0.2101, 0.2212))
    '0.216 (0.210 to 0.221)'
    """
    mean, low, high = (f"{number:.{digits}f}" for number in numbers)
    return f"{mean} ({low} to {high})"
