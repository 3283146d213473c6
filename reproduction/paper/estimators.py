"""The estimators that the figures compare: functions from a tally of answers to maps.

`paper` and `paper_plain` are Algorithm 1 as printed: unweighted pairs, one random start, a fixed learning rate within
its stable range, and the paper's stopping rule. `ours` is `vseg.reconstruct` with its defaults; `ours_plain` is our
solver with λ = 0, started from the smooth solution.
"""

from collections.abc import Callable
from typing import NamedTuple

from reproduction.paper.algorithm import descend, random_start
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.errors import NotConverged
from vseg.reconstruction.kernels import Kernel
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.reconstruct import reconstruct

PAPER_STRENGTH = 10.0
UNREGULARISED_RATE = 0.3
CONTINUATION = (10.0, 1.0, 0.1, 0.0)
LIFT = 0.01  # moves starts off the faces of the simplex, where a multiplicative step is almost zero
MAX_STRENGTH_TIMES_RATE = 0.5  # larger products diverge with the four-neighbour kernel

FAST, SLOW = "fast", "slow"
"""Parts of a figure: fits that take less than 50 ms get all resamples, slower ones a share of them."""

Estimator = Callable[..., Maps]  # (tally, segments, *, seed) -> Maps


def fit_paper(
    tally: Tally,
    segments: int,
    *,
    seed: int,
    strength: float = PAPER_STRENGTH,
    kernel: Kernel = "four",
) -> Maps:
    """Run Algorithm 1, by default with the paper's λ = 10."""
    problem = build_objective(tally, segments, strength=strength, kernel=kernel, weights="pairs")
    p, _ = descend(problem, random_start(problem, seed), stable_learning_rate(strength))
    return Maps(tally.layout, p)


def fit_paper_plain(tally: Tally, segments: int, *, seed: int) -> Maps:
    """Run Algorithm 1 without regularisation."""
    return fit_paper(tally, segments, seed=seed, strength=0.0)


def fit_paper_continued(tally: Tally, segments: int, *, seed: int) -> Maps:
    """Run Algorithm 1 with λ lowered from 10 to 0 in steps, each fit starting from the previous one."""
    problem = build_objective(tally, segments, weights="pairs")
    p = random_start(problem, seed)
    for strength in CONTINUATION:
        p, _ = descend(
            problem.with_strength(strength), LIFT / segments + (1 - LIFT) * p, stable_learning_rate(strength)
        )
    return Maps(tally.layout, p)


def fit_vseg(tally: Tally, segments: int, *, seed: int, kernel: Kernel = "four") -> Maps:
    """Run `vseg.reconstruct` with its defaults: λ is chosen by cross-validation."""
    return _reconstruct(tally, segments, seed=seed, kernel=kernel, smoothness="auto")


def fit_vseg_plain(tally: Tally, segments: int, *, seed: int) -> Maps:
    """Run `vseg.reconstruct` at λ = 0, which lowers λ step by step from a smooth solution."""
    return _reconstruct(tally, segments, seed=seed, kernel="four", smoothness=0.0)


class PlottedEstimator(NamedTuple):
    """An estimator with its label, colour and marker in figures."""

    fit: Estimator
    label: str
    colour: str
    marker: str


PLOTTED = {
    "paper_plain": PlottedEstimator(fit_paper_plain, "paper, λ = 0", "#E69F00", "s"),
    "paper": PlottedEstimator(fit_paper, "paper, λ = 10", "#D55E00", "o"),
    "ours_plain": PlottedEstimator(fit_vseg_plain, "vseg, λ = 0", "#56B4E9", "v"),
    "ours": PlottedEstimator(fit_vseg, "vseg, default", "#0072B2", "D"),
}
"""The estimators in figures that compare all of them; an estimator added here is compared too."""

ESTIMATORS = {name: estimator.fit for name, estimator in PLOTTED.items()}
LABELS = {name: estimator.label for name, estimator in PLOTTED.items()}
COLOURS = {name: estimator.colour for name, estimator in PLOTTED.items()} | {"paper_continued": "#882255"}
MARKERS = {name: estimator.marker for name, estimator in PLOTTED.items()}


def stable_learning_rate(strength: float) -> float:
    """Return a learning rate well within the range in which Algorithm 1 converges."""
    return min(UNREGULARISED_RATE, MAX_STRENGTH_TIMES_RATE / strength) if strength else UNREGULARISED_RATE


def _reconstruct(tally: Tally, segments: int, *, seed: int, kernel: Kernel, smoothness: float | str) -> Maps:
    try:
        return reconstruct(
            tally, segments=segments, kernel=kernel, smoothness=smoothness, seed=seed, threads=1
        ).maps
    except NotConverged as stopped:  # use the maps anyway, so that no resample is dropped
        maps: Maps = stopped.result.maps
        return maps
