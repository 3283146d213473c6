"""The estimators that every figure sets side by side: a tally of answers in, maps out.

`paper` and `paper_plain` are Algorithm 1 as printed: unweighted pairs, one random start, a fixed learning
rate within its stable range, stopped by the paper's rule. `ours` is `vseg.reconstruct` as it comes;
`ours_plain` is our solver without any smoothness, started from the smooth solution.
"""

from collections.abc import Callable
from typing import NamedTuple

from reproduction.paper.algorithm import descended, random_start
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.errors import NotConverged
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.reconstruct import reconstruct
from vseg.reconstruction.smoothness import Kernel

PAPERS_STRENGTH = 10.0
PLAIN_RATE = 0.3
CONTINUATION = (10.0, 1.0, 0.1, 0.0)
LIFT = 0.01  # off the faces of the simplex, where a multiplicative step is next to nothing
STEEPEST = 0.5  # λ·rate above this diverges with the four-neighbour kernel

Estimator = Callable[..., Maps]  # (tally, segments, *, seed) -> Maps


def paper(
    tally: Tally,
    segments: int,
    *,
    seed: int,
    strength: float = PAPERS_STRENGTH,
    kernel: Kernel = "four",
) -> Maps:
    """Algorithm 1 with the paper's λ = 10."""
    problem = build_objective(tally, segments, strength=strength, kernel=kernel, weights="pairs")
    p, _ = descended(problem, random_start(problem, seed), stable_rate(strength))
    return Maps(tally.layout, p)


def paper_plain(tally: Tally, segments: int, *, seed: int) -> Maps:
    """Algorithm 1 without regularisation."""
    return paper(tally, segments, seed=seed, strength=0.0)


def paper_continued(tally: Tally, segments: int, *, seed: int) -> Maps:
    """Algorithm 1 with λ lowered from 10 to 0 in steps, each fit starting from the one before."""
    problem = build_objective(tally, segments, weights="pairs")
    p = random_start(problem, seed)
    for strength in CONTINUATION:
        p, _ = descended(
            problem.with_strength(strength), LIFT / segments + (1 - LIFT) * p, stable_rate(strength)
        )
    return Maps(tally.layout, p)


def ours(tally: Tally, segments: int, *, seed: int, kernel: Kernel = "four") -> Maps:
    """What `vseg.reconstruct` gives without being told more: λ chosen by held-out pairs."""
    return _fitted(tally, segments, seed=seed, kernel=kernel, smoothness="auto")


def ours_plain(tally: Tally, segments: int, *, seed: int) -> Maps:
    """Our solver at λ = 0, reached from the smooth solution step by step."""
    return _fitted(tally, segments, seed=seed, kernel="four", smoothness=0.0)


class Shown(NamedTuple):
    """An estimator, and how figures show it."""

    fit: Estimator
    label: str
    colour: str
    marker: str


COMPARED = {
    "paper_plain": Shown(paper_plain, "paper, λ = 0", "#E69F00", "s"),
    "paper": Shown(paper, "paper, λ = 10", "#D55E00", "o"),
    "ours_plain": Shown(ours_plain, "vseg, λ = 0", "#56B4E9", "v"),
    "ours": Shown(ours, "vseg, default", "#0072B2", "D"),
}
"""What every figure that compares all estimators shows; a line more, and it shows one more."""

ESTIMATORS = {name: one.fit for name, one in COMPARED.items()}
LABELS = {name: one.label for name, one in COMPARED.items()}
COLOURS = {name: one.colour for name, one in COMPARED.items()} | {"paper_continued": "#882255"}
MARKERS = {name: one.marker for name, one in COMPARED.items()}


def stable_rate(strength: float) -> float:
    """A learning rate well within the range in which Algorithm 1 converges."""
    return min(PLAIN_RATE, STEEPEST / strength) if strength else PLAIN_RATE


def _fitted(tally: Tally, segments: int, *, seed: int, kernel: Kernel, smoothness: float | str) -> Maps:
    try:
        return reconstruct(
            tally, segments=segments, kernel=kernel, smoothness=smoothness, seed=seed, threads=1
        ).maps
    except NotConverged as stopped:  # a resample is never dropped
        maps: Maps = stopped.result.maps
        return maps
