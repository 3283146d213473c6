"""Lapses and bias: the shares γ₀ of 'same' where all is different and γ₁ of 'different' where all is the same.

A person who slips at one trial in ten looks uncertain everywhere. The answers tell slips from uncertainty, since slips
also hit pairs whose neighbours are all of one opinion: γ = γ₀ + γ₁ is the one of highest evidence, with a Beta(1, 20)
prior and with the catch trials, whose answers are obvious. From three blocks on, the bias γ₀/γ is estimated too. What
stays open about both is carried along: `estimate` also returns cells at other shares, over which draws are spread.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg.bayes.evidence import LIKELY, ROUGHLY, Cell, cell_at, grown, search
from vseg.bayes.model import Answers
from vseg.bayes.priors import Prior
from vseg.errors import InvalidInput

LAPSES = (0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4)
BIASES = (0.0, 0.15, 0.3, 0.5, 0.7, 0.85, 1.0)
BETA = 20.0  # of the Beta(1, β) prior: 5 % on average
BIASED_FROM = 3.0  # blocks of K·n trials
ROUNDS = 4
ASIDE = 1.7  # standard deviations: three shares, weighed by their evidence, spread as wide as the posterior
PLACES = 3  # scales and lengths at which other shares are tried


class Catch(NamedTuple):
    """Catch trials: how many had the obvious answer, of how many asked."""

    right: int
    asked: int


def given(lapses: Any) -> tuple[float, float]:
    """γ₀ and γ₁ as numbers; None is none."""
    try:
        gamma0, gamma1 = (0.0, 0.0) if lapses is None else (float(each) for each in lapses)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"Lapses are None, 'estimate' or two shares (gamma0, gamma1), got {lapses!r:.60}."
        ) from None
    if not (gamma0 >= 0 and gamma1 >= 0 and gamma0 + gamma1 < 1):
        raise InvalidInput(
            f"gamma0 and gamma1 are shares that add up to less than 1, got {gamma0}, {gamma1}."
        )
    return gamma0, gamma1


def catch_of(catch: Any) -> Catch:
    """Catch trials as (right, asked); None is none."""
    try:
        right, asked = (0, 0) if catch is None else (int(each) for each in catch)
    except (TypeError, ValueError):
        raise InvalidInput(f"Catch trials are given as (right, asked), got {catch!r:.60}.") from None
    if not 0 <= right <= asked:
        raise InvalidInput(f"Of the catch trials asked, 0 to all are right; got {right} of {asked}.")
    return Catch(right, asked)


def check(lapses: Any, catch: Any) -> None:
    """Lapses and catch trials that go together."""
    if not (isinstance(lapses, str) and lapses == "estimate"):
        given(lapses)
        if catch is not None:
            raise InvalidInput(
                f"Catch trials help to estimate lapses, and lapses are {lapses!r}; "
                "expected lapses='estimate', or no catch trials."
            )
    catch_of(catch)


def estimate(
    answers: Answers,
    prior: Prior,
    first: Sequence[NDArray[np.float64]],
    *,
    catch: Catch,
    threads: int = 1,
) -> tuple[Answers, list[Cell]]:
    """The answers with their most probable γ₀ and γ₁, and likely cells of the prior's grid, the best first."""
    lapse, bias, open_lapse, open_bias = 0.02, 0.5, 0.0, 0.0
    cells = search(_with(answers, lapse, bias), prior, first, threads=threads)
    cell = cells[0]
    blocks = answers.trials.sum() / (cell.segments * cell.root.wide.shape[1])
    for _ in range(ROUNDS):
        place, before = cell.place, (lapse, bias)

        def score(lapse: float, bias: float, cell: Cell = cell) -> float:
            found = cell_at(_with(answers, lapse, bias), prior, cell.place, [cell.fields], tolerance=ROUGHLY)
            return found.evidence + belief(lapse, catch)

        lapse, open_lapse = _climbed(LAPSES, lapse, lambda value, b=bias: score(value, b))  # type: ignore[misc]
        if blocks >= BIASED_FROM and lapse > 0:
            bias, open_bias = _climbed(BIASES, bias, lambda value, g=lapse: score(g, value))  # type: ignore[misc]
        cells = search(
            _with(answers, lapse, bias), prior, [cell.fields, first[0]], known=cell, threads=threads
        )
        cell = cells[0]
        if cell.place == place and (lapse, bias) == before:
            break
    best = _with(answers, lapse, bias)
    cells = grown(best, prior, cells, threads=threads)
    shares = _aside(lapse, open_lapse, LAPSES[-1]), _aside(bias, open_bias, BIASES[-1])
    return best, cells + [
        each
        for one, other in product(*shares)
        if (one, other) != (lapse, bias)
        for each in _moved(
            _with(answers, one, other), prior, cells, belief(one, catch) - belief(lapse, catch)
        )
    ]


def _aside(share: float, spread: float, most: float) -> list[float]:
    """A share, and what else it may be."""
    return sorted({min(max(share + step * spread, 0.0), max(share, most)) for step in (-ASIDE, 0, ASIDE)})


def _moved(answers: Answers, prior: Prior, cells: Sequence[Cell], more: float) -> list[Cell]:
    """The best cells with other lapses, each standing for its share of all that are likely."""
    likely = [cell.evidence for cell in cells if cells[0].evidence - cell.evidence <= LIKELY]
    more += float(np.logaddexp.reduce(likely) - np.logaddexp.reduce(likely[:PLACES]))
    found = [
        cell_at(answers, prior, cell.place, [cell.fields], tolerance=ROUGHLY)
        for cell in cells[: len(likely[:PLACES])]
    ]
    return [replace(cell, evidence=cell.evidence + more) for cell in found]


def belief(lapse: float, catch: Catch) -> float:
    """Log of the prior and of the catch trials' probability, at which half of the lapses are errors."""
    wrong = max(lapse / 2, 1e-4)
    return float(
        (BETA - 1) * np.log1p(-lapse)
        + catch.right * np.log1p(-wrong)
        + (catch.asked - catch.right) * np.log(wrong)
    )


def _with(answers: Answers, lapse: float, bias: float) -> Answers:
    return answers._replace(gamma0=lapse * bias, gamma1=lapse * (1 - bias))


def _climbed(grid: Sequence[float], value: float, score: Callable[[float], float]) -> tuple[float, float]:
    """The value of highest score, and the standard deviation around it.

    Up the grid from the closest value, then the top of a parabola through three.
    """
    known: dict[int, float] = {}

    def at(index: int) -> float:
        if index not in known:
            known[index] = score(grid[index])
        return known[index]

    best = int(np.argmin(np.abs(np.array(grid) - value)))
    while True:
        near = [index for index in (best - 1, best, best + 1) if 0 <= index < len(grid)]
        top = max(near, key=at)
        if top == best:
            break
        best = top
    if not 0 < best < len(grid) - 1:
        inner = 1 if best == 0 else best - 1
        # Towards a bound scores fall in a straight line: exp(-fall) in a step.
        fall = max(at(best) - at(inner), 0.1)
        return grid[best], abs(grid[inner] - grid[best]) / fall
    x = np.array(grid[best - 1 : best + 2])
    bend, tilt, _ = np.polyfit(x - x[1], [at(best - 1), at(best), at(best + 1)], 2)
    if bend >= 0:
        return grid[best], float(x[2] - x[0]) / 2
    return float(np.clip(x[1] - tilt / (2 * bend), x[0], x[2])), float(1 / np.sqrt(-2 * bend))
