"""The methods compared: how each selects pairs and estimates P(same) from the answers.

A method is a function that takes a `Case` and yields `(trials, P(same) of every pair)`. To compare another method, add
it to METHODS. All methods that use random pairs get the same pairs and the same answers.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reproduction.annotators.observers import AnnotatorObserver, Scene
from vseg import designs
from vseg.adaptive import State, next_pairs
from vseg.bayes import priors
from vseg.bayes.model import CovarianceRoot
from vseg.bayes.priors import Prior
from vseg.data.responses import Responses
from vseg.errors import NotConverged, VsegWarning
from vseg.reconstruction.reconstruct import reconstruct

PAPER = "paper"
PAPER_SEGMENTS, PAPER_SMOOTHNESS = 5, 5.0
SEGMENTS = 8  # more than annotators see; unused segments stay empty
LAPSES = (0.025, 0.025)  # assumed known: the individual's true rates, so single wrong answers cost little
SCALES = (2.2, 3.3, 5.0, 7.5, 11.0)
MIN_BATCH = 16  # smallest number of adaptive pairs chosen at once
BATCH_GROWTH = 0.12  # a batch is this share of the answers so far, once that is more than MIN_BATCH
MAX_DIRECTIONS = 64  # of a prior; more take five times as long and gain nothing with a few hundred answers
OTHERS_ANSWERS = 4  # answers of the other annotators per location, for the group prior

Estimate = tuple[int, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Case:
    """One observer of one photograph; methods are evaluated at each number in `trials`."""

    scene: Scene
    observer: AnnotatorObserver
    trials: tuple[int, ...]
    seed: int

    @cached_property
    def random_answers(self) -> Responses:
        """Answers to random pairs; the first n/2 pairs cover every location."""
        pairs = designs.covering(self.scene.layout, trials=self._max_trials, seed=self._rng(0))
        return self.observer.answer(pairs, self._rng(1))

    @cached_property
    def image_prior(self) -> Prior:
        """The prior from the image."""
        return truncate_prior(
            priors.image(self.scene.layout, self.scene.picture, scales=SCALES), MAX_DIRECTIONS
        )

    @cached_property
    def group_prior(self) -> Prior:
        """The prior from the image and the other annotators' answers to random pairs."""
        layout, others = self.scene.layout, self.scene.others
        pairs = designs.covering(layout, trials=OTHERS_ANSWERS * len(layout), seed=self._rng(2))
        state = _make_state(self.image_prior, self.seed)
        _add_answers(state, others.answer(pairs, self._rng(3)))
        return truncate_prior(priors.group(layout, state.mode, base=self.image_prior), MAX_DIRECTIONS)

    def adaptive_rng(self) -> np.random.Generator:
        """Create the random generator of the answers to adaptive pairs."""
        return self._rng(4)

    def _rng(self, stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, stream])

    @property
    def _max_trials(self) -> int:
        return max(self.trials[-1], -(-len(self.scene.layout) // 2))


@dataclass(frozen=True)
class Method:
    """A method: its name in tables, its function, and the observers that it applies to."""

    title: str
    run: Callable[[Case], Iterator[Estimate]]
    observers: tuple[str, ...] = ("aggregate", "individual")


def run_method(method: Method, case: Case) -> list[Estimate]:
    """Return the estimates of a method; warnings about a single data set are suppressed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)
        return list(method.run(case))


def estimate_paper(case: Case) -> Iterator[Estimate]:
    """Minimise the paper's objective with five segments and λ = 5 on random pairs."""
    yield from _reconstruct(case, PAPER_SMOOTHNESS)


def estimate_paper_cross_validated(case: Case) -> Iterator[Estimate]:
    """Minimise the paper's objective on random pairs with λ chosen by cross-validation."""
    yield from _reconstruct(case, "auto")


def estimate_spatial(case: Case) -> Iterator[Estimate]:
    """Compute the posterior with a spatial prior on random pairs."""
    yield from _estimate_from_random_pairs(
        case, truncate_prior(priors.spatial(case.scene.layout), MAX_DIRECTIONS)
    )


def estimate_guided(case: Case) -> Iterator[Estimate]:
    """Compute the posterior with the image prior on random pairs."""
    yield from _estimate_from_random_pairs(case, case.image_prior)


def estimate_guided_adaptive(case: Case) -> Iterator[Estimate]:
    """Compute the posterior with the image prior on adaptive pairs."""
    yield from _estimate_from_adaptive_pairs(case, case.image_prior)


def estimate_grouped_adaptive(case: Case) -> Iterator[Estimate]:
    """Compute the posterior with the group prior on adaptive pairs; the others' answers do not count as trials."""
    yield from _estimate_from_adaptive_pairs(case, case.group_prior)


METHODS = {
    PAPER: Method("paper (K=5, λ=5)", estimate_paper),
    "paper_cv": Method("paper, λ cross-validated", estimate_paper_cross_validated),
    "spatial": Method("posterior, spatial", estimate_spatial),
    "image": Method("posterior, image-guided", estimate_guided),
    "image_adaptive": Method("image-guided, adaptive pairs", estimate_guided_adaptive),
    "group_adaptive": Method("group prior, adaptive pairs", estimate_grouped_adaptive, ("individual",)),
}


def truncate_prior(prior: Prior, count: int) -> Prior:
    """Return the prior with only the `count` directions of largest variance in each covariance."""
    families = tuple(
        tuple(
            component._replace(
                root=CovarianceRoot(
                    component.root.wide[:count], np.ascontiguousarray(component.root.tall[:, :count])
                )
            )
            for component in family
        )
        for family in prior.families
    )
    return replace(prior, families=families)


def _reconstruct(case: Case, smoothness: float | str) -> Iterator[Estimate]:
    for trials in case.trials:
        try:
            maps = reconstruct(
                _slice_answers(case.random_answers, 0, trials),
                segments=PAPER_SEGMENTS,
                smoothness=smoothness,
                seed=case.seed,
                threads=1,
            ).maps
        except NotConverged as stopped:  # use the maps anyway, so that no photograph is skipped
            maps = stopped.result.maps
        yield trials, maps.probabilities @ maps.probabilities.T


def _estimate_from_random_pairs(case: Case, prior: Prior) -> Iterator[Estimate]:
    state = _make_state(prior, case.seed)
    for goal in case.trials:
        _add_answers(state, _slice_answers(case.random_answers, state.trials, goal))
        yield goal, median_same(state.draws)


def _estimate_from_adaptive_pairs(case: Case, prior: Prior) -> Iterator[Estimate]:
    state, rng = _make_state(prior, case.seed), case.adaptive_rng()
    for goal in case.trials:
        while state.trials < goal:
            count = min(max(MIN_BATCH, round(BATCH_GROWTH * state.trials)), goal - state.trials)
            _add_answers(state, case.observer.answer(next_pairs(state, count, seed=case.seed), rng))
        yield goal, median_same(state.draws)


def median_same(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median of P(same) over draws (S, n, K) as an (n, n) array.

    The median minimises the expected |q̂ - q|.

    Examples
    --------
    >>> sure = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    >>> median_same(np.concatenate([sure, sure, 0.5 * np.ones((1, 2, 2))]))
    array([[1., 1.],
           [1., 1.]])
    """
    return np.stack(
        [np.median(np.einsum("snk,sk->sn", draws, location), axis=0) for location in draws.swapaxes(0, 1)]
    )


def _make_state(prior: Prior, seed: int) -> State:
    return State(prior.layout, segments=SEGMENTS, prior=prior, lapses=LAPSES, seed=seed)


def _add_answers(state: State, answers: Responses) -> None:
    state.add(answers.i, answers.j, answers.same)


def _slice_answers(answers: Responses, start: int, end: int) -> Responses:
    part = slice(start, end)
    return Responses(answers.layout, answers.i[part], answers.j[part], answers.same[part])
