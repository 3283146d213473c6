"""Lapses and bias: the shares γ₀ of 'same' where all is different and γ₁ of 'different' where all is the same.

A participant who lapses in one trial of ten looks uncertain everywhere. The answers tell lapses from uncertainty, since
lapses also affect pairs about which all neighbouring pairs agree: γ = γ₀ + γ₁ is the value of highest evidence, with a
Beta(1, 20) prior and with the catch trials, whose answers are obvious. From three blocks on, the bias γ₀/γ is estimated
too. What remains uncertain about both is passed on: `estimate_lapses` also returns fits at other values, over which
draws are spread.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vseg.bayes.evidence import (
    LIKELY_WITHIN,
    SEARCH_TOLERANCE,
    LaplaceFit,
    add_likely_neighbours,
    fit_laplace,
    search,
)
from vseg.bayes.model import AnswerCounts
from vseg.bayes.priors import Prior
from vseg.errors import InvalidInput

LAPSES = (0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4)
BIASES = (0.0, 0.15, 0.3, 0.5, 0.7, 0.85, 1.0)
BETA = 20.0  # of the Beta(1, β) prior: 5 % on average
MIN_BLOCKS_FOR_BIAS = 3.0  # blocks of K·n trials
MAX_ROUNDS = 4
NEIGHBOUR_DISTANCE = (
    1.7  # standard deviations: three values, weighted by evidence, spread as wide as the posterior
)
MAX_FITS = 3  # scales and lengths at which other lapses are tried

LapseOption: TypeAlias = Literal["auto", "estimate"] | Sequence[float] | None
"""What users give as lapses: "auto", None, "estimate", or (γ₀, γ₁)."""
CatchOption: TypeAlias = Sequence[int] | None
"""What users give as catch trials: None, or (right, asked)."""


class CatchCounts(NamedTuple):
    """Catch trials: how many had the obvious answer, of how many asked."""

    right: int
    asked: int


def check_lapses(lapses: LapseOption) -> tuple[float, float]:
    """Return γ₀ and γ₁ as numbers, both 0 for None; raise `InvalidInput` if they are no shares."""
    try:
        gamma0, gamma1 = (0.0, 0.0) if lapses is None else (float(share) for share in lapses)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"Lapses are 'auto', None, 'estimate' or two shares (gamma0, gamma1), got {lapses!r:.60}."
        ) from None
    if not (gamma0 >= 0 and gamma1 >= 0 and gamma0 + gamma1 < 1):
        raise InvalidInput(
            f"gamma0 and gamma1 are shares that add up to less than 1, got {gamma0}, {gamma1}."
        )
    return gamma0, gamma1


def check_catch_counts(catch: CatchOption) -> CatchCounts:
    """Return catch trials given as (right, asked), none for None; raise `InvalidInput` if they are no counts."""
    try:
        right, asked = (0, 0) if catch is None else (int(count) for count in catch)
    except (TypeError, ValueError):
        raise InvalidInput(f"Catch trials are given as (right, asked), got {catch!r:.60}.") from None
    if not 0 <= right <= asked:
        raise InvalidInput(f"Of the catch trials asked, 0 to all are right; got {right} of {asked}.")
    return CatchCounts(right, asked)


def check_lapse_options(lapses: LapseOption, catch: CatchOption) -> LapseOption:
    """Return how lapses are treated, with "auto" resolved: estimated if there are catch trials, else None.

    Raise `InvalidInput` unless lapses and catch trials are valid and go together.
    """
    asked = check_catch_counts(catch).asked
    if isinstance(lapses, str):
        if lapses == "auto":
            return "estimate" if asked else None
        if lapses == "estimate":
            return lapses
    check_lapses(lapses)
    if catch is not None:
        raise InvalidInput(
            f"Catch trials help to estimate lapses, and lapses are {lapses!r}; "
            "expected lapses='estimate', or no catch trials."
        )
    return lapses


def estimate_lapses(
    answers: AnswerCounts,
    prior: Prior,
    first: Sequence[NDArray[np.float64]],
    *,
    catch: CatchCounts,
    threads: int = 1,
) -> tuple[AnswerCounts, list[LaplaceFit]]:
    """Return the answers with their most probable γ₀ and γ₁, and likely fits over the prior's grid, the best first.

    Parameters
    ----------
    answers : AnswerCounts
    prior : Prior
    first : list of (K-1, n)
        Fields from which the first fit starts.
    catch : CatchCounts
        Catch trials of the same participants.
    threads : int
        Fits at a time.
    """
    lapse, bias, lapse_spread, bias_spread = 0.02, 0.5, 0.0, 0.0
    fits = search(_set_lapses(answers, lapse, bias), prior, first, threads=threads)
    best = fits[0]
    blocks = answers.trials.sum() / (best.segments * best.root.wide.shape[1])
    for _ in range(MAX_ROUNDS):
        before = best.index, lapse, bias

        def score(lapse: float, bias: float, best: LaplaceFit = best) -> float:
            counts = _set_lapses(answers, lapse, bias)
            fit = fit_laplace(counts, prior, best.index, [best.fields], tolerance=SEARCH_TOLERANCE)
            return fit.evidence + log_prior(lapse, catch)

        lapse, lapse_spread = _maximise(LAPSES, lapse, lambda value, b=bias: score(value, b))  # type: ignore[misc]
        if blocks >= MIN_BLOCKS_FOR_BIAS and lapse > 0:
            bias, bias_spread = _maximise(BIASES, bias, lambda value, g=lapse: score(g, value))  # type: ignore[misc]
        counts = _set_lapses(answers, lapse, bias)
        fits = search(counts, prior, [best.fields, first[0]], start=best, threads=threads)
        best = fits[0]
        if (best.index, lapse, bias) == before:
            break
    counts = _set_lapses(answers, lapse, bias)
    fits = add_likely_neighbours(counts, prior, fits, threads=threads)
    others = product(
        _values_around(lapse, lapse_spread, LAPSES[-1]), _values_around(bias, bias_spread, BIASES[-1])
    )
    return counts, fits + [
        fit
        for other_lapse, other_bias in others
        if (other_lapse, other_bias) != (lapse, bias)
        for fit in _refit(
            _set_lapses(answers, other_lapse, other_bias),
            prior,
            fits,
            log_prior(other_lapse, catch) - log_prior(lapse, catch),
        )
    ]


def log_prior(lapse: float, catch: CatchCounts) -> float:
    """Return the log prior of γ plus the log probability of the catch trials, where half of the lapses are errors."""
    wrong = max(lapse / 2, 1e-4)
    return float(
        (BETA - 1) * np.log1p(-lapse)
        + catch.right * np.log1p(-wrong)
        + (catch.asked - catch.right) * np.log(wrong)
    )


def _values_around(value: float, spread: float, highest: float) -> list[float]:
    """Return the value and those a fixed number of standard deviations below and above, within 0 and `highest`."""
    steps = (-NEIGHBOUR_DISTANCE, 0, NEIGHBOUR_DISTANCE)
    return sorted({min(max(value + step * spread, 0.0), max(value, highest)) for step in steps})


def _refit(answers: AnswerCounts, prior: Prior, fits: Sequence[LaplaceFit], extra: float) -> list[LaplaceFit]:
    """Return the best fits again with other lapses.

    Their evidence is raised by `extra` and by what the likely fits contribute that are not refitted.
    """
    likely = [fit.evidence for fit in fits if fits[0].evidence - fit.evidence <= LIKELY_WITHIN]
    extra += float(np.logaddexp.reduce(likely) - np.logaddexp.reduce(likely[:MAX_FITS]))
    refitted = [
        fit_laplace(answers, prior, fit.index, [fit.fields], tolerance=SEARCH_TOLERANCE)
        for fit in fits[: len(likely[:MAX_FITS])]
    ]
    return [replace(fit, evidence=fit.evidence + extra) for fit in refitted]


def _set_lapses(answers: AnswerCounts, lapse: float, bias: float) -> AnswerCounts:
    return answers._replace(gamma0=lapse * bias, gamma1=lapse * (1 - bias))


def _maximise(grid: Sequence[float], start: float, score: Callable[[float], float]) -> tuple[float, float]:
    """Return the value of highest score and the standard deviation around it.

    Climb over the grid from the value closest to `start`, then take the top of a parabola through three values.
    """
    scores: dict[int, float] = {}

    def at(index: int) -> float:
        if index not in scores:
            scores[index] = score(grid[index])
        return scores[index]

    best = int(np.argmin(np.abs(np.array(grid) - start)))
    while True:
        near = [index for index in (best - 1, best, best + 1) if 0 <= index < len(grid)]
        top = max(near, key=at)
        if top == best:
            break
        best = top
    if not 0 < best < len(grid) - 1:
        inner = 1 if best == 0 else best - 1
        # Near a bound the log score falls linearly, so the posterior is exponential: its spread is a step / fall.
        fall = max(at(best) - at(inner), 0.1)
        return grid[best], abs(grid[inner] - grid[best]) / fall
    x = np.array(grid[best - 1 : best + 2])
    bend, tilt, _ = np.polyfit(x - x[1], [at(best - 1), at(best), at(best + 1)], 2)
    if bend >= 0:
        return grid[best], float(x[2] - x[0]) / 2
    return float(np.clip(x[1] - tilt / (2 * bend), x[0], x[2])), float(1 / np.sqrt(-2 * bend))
