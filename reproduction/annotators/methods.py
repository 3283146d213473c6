"""The methods compared: which pairs are asked, and what is made of the answers.

A method is a function `(case) -> (trials, P(same) of every pair), …`; a line in METHODS, and it is compared too. All
that ask random pairs get the same ones, with the same answers.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reproduction.annotators.observers import Observer, Scene
from vseg import designs
from vseg.adaptive import State, next_pairs
from vseg.bayes import priors
from vseg.bayes.model import CovarianceRoot
from vseg.bayes.priors import Prior
from vseg.data.responses import Responses
from vseg.errors import NotConverged, VsegWarning
from vseg.reconstruction.reconstruct import reconstruct

PAPER = "paper"
PAPERS_SEGMENTS, PAPERS_SMOOTHNESS = 5, 5.0
SEGMENTS = 8  # more than people see: superfluous ones stay empty
SLIPS = (0.025, 0.025)  # taken for granted, an individual's true share: an odd answer is no catastrophe
SCALES = (2.2, 3.3, 5.0, 7.5, 11.0)
BATCH = 16  # adaptive pairs between two looks at the answers, at least
GROWING = 0.12  # later this share of the answers so far
DIRECTIONS = 64  # of a prior, at most: a few hundred answers tell no more, in a fifth of the time
OTHERS = 4  # answers of the others, a location

Found = tuple[int, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Case:
    """One observer of one photograph, to be asked so many trials at most, and judged at each of these numbers."""

    scene: Scene
    observer: Observer
    trials: tuple[int, ...]
    seed: int

    @cached_property
    def random(self) -> Responses:
        """Answers to random pairs; every location is among the first n/2."""
        pairs = designs.covering(self.scene.layout, trials=self._most, seed=self._chance(0))
        return self.observer.answer(pairs, self._chance(1))

    @cached_property
    def guided(self) -> Prior:
        """What the picture says."""
        return leading(priors.image(self.scene.layout, self.scene.picture, scales=SCALES), DIRECTIONS)

    @cached_property
    def grouped(self) -> Prior:
        """What the others' answers to random pairs say, on top of the picture."""
        layout, others = self.scene.layout, self.scene.others
        pairs = designs.covering(layout, trials=OTHERS * len(layout), seed=self._chance(2))
        state = _state(self.guided, self.seed)
        _take(state, others.answer(pairs, self._chance(3)))
        return leading(priors.group(layout, state.mode, base=self.guided), DIRECTIONS)

    def chance(self) -> np.random.Generator:
        """For answers to adaptive pairs."""
        return self._chance(4)

    def _chance(self, what: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, what])

    @property
    def _most(self) -> int:
        return max(self.trials[-1], -(-len(self.scene.layout) // 2))


@dataclass(frozen=True)
class Method:
    """A way to ask and to estimate, its name in a table, and the observers it is for."""

    title: str
    run: Callable[[Case], Iterator[Found]]
    observers: tuple[str, ...] = ("aggregate", "individual")


def estimated(method: Method, case: Case) -> list[Found]:
    """What a method finds; warnings that are meant for one data set are left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)
        return list(method.run(case))


def paper(case: Case) -> Iterator[Found]:
    """Random pairs, five segments, λ = 5: the minimum of the paper's objective."""
    yield from _reconstructed(case, PAPERS_SMOOTHNESS)


def paper_validated(case: Case) -> Iterator[Found]:
    """The same with λ by held-out pairs."""
    yield from _reconstructed(case, "auto")


def spatial(case: Case) -> Iterator[Found]:
    """Random pairs, the posterior that knows distances alone."""
    yield from _on_random_pairs(case, leading(priors.spatial(case.scene.layout), DIRECTIONS))


def guided(case: Case) -> Iterator[Found]:
    """Random pairs, the posterior that also knows the picture."""
    yield from _on_random_pairs(case, case.guided)


def guided_adaptive(case: Case) -> Iterator[Found]:
    """The same, with pairs chosen from the answers."""
    yield from _on_chosen_pairs(case, case.guided)


def grouped_adaptive(case: Case) -> Iterator[Found]:
    """Chosen pairs, the posterior that also knows the others' answers, which are not counted as trials."""
    yield from _on_chosen_pairs(case, case.grouped)


METHODS = {
    PAPER: Method("paper (K=5, λ=5)", paper),
    "paper_cv": Method("paper, λ cross-validated", paper_validated),
    "spatial": Method("posterior, spatial", spatial),
    "image": Method("posterior, image-guided", guided),
    "image_adaptive": Method("image-guided, adaptive pairs", guided_adaptive),
    "group_adaptive": Method("group prior, adaptive pairs", grouped_adaptive, ("individual",)),
}


def leading(prior: Prior, count: int) -> Prior:
    """The same prior with the `count` directions of most variance alone, in each of its covariances."""
    cut = tuple(
        tuple(
            each._replace(
                root=CovarianceRoot(each.root.wide[:count], np.ascontiguousarray(each.root.tall[:, :count]))
            )
            for each in family
        )
        for family in prior.families
    )
    return replace(prior, families=cut)


def _reconstructed(case: Case, smoothness: float | str) -> Iterator[Found]:
    for trials in case.trials:
        try:
            maps = reconstruct(
                _between(case.random, 0, trials),
                segments=PAPERS_SEGMENTS,
                smoothness=smoothness,
                seed=case.seed,
                threads=1,
            ).maps
        except NotConverged as stopped:  # no photograph is left out
            maps = stopped.result.maps
        yield trials, maps.probabilities @ maps.probabilities.T


def _on_random_pairs(case: Case, prior: Prior) -> Iterator[Found]:
    state = _state(prior, case.seed)
    for goal in case.trials:
        _take(state, _between(case.random, state.trials, goal))
        yield goal, median_same(state.draws)


def _on_chosen_pairs(case: Case, prior: Prior) -> Iterator[Found]:
    state, rng = _state(prior, case.seed), case.chance()
    for goal in case.trials:
        while state.trials < goal:
            count = min(max(BATCH, round(GROWING * state.trials)), goal - state.trials)
            _take(state, case.observer.answer(next_pairs(state, count, seed=case.seed), rng))
        yield goal, median_same(state.draws)


def median_same(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, n) the median over draws (S, n, K) of P(same): of all numbers, the one of the least expected |q̂ - q|.

    Examples
    --------
    >>> sure = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    >>> median_same(np.concatenate([sure, sure, 0.5 * np.ones((1, 2, 2))]))
    array([[1., 1.],
           [1., 1.]])
    """
    return np.stack([np.median(np.einsum("snk,sk->sn", draws, at), axis=0) for at in draws.swapaxes(0, 1)])


def _state(prior: Prior, seed: int) -> State:
    return State(prior.layout, segments=SEGMENTS, prior=prior, lapses=SLIPS, seed=seed)


def _take(state: State, answers: Responses) -> None:
    state.add(answers.i, answers.j, answers.same)


def _between(answers: Responses, start: int, end: int) -> Responses:
    own = slice(start, end)
    return Responses(answers.layout, answers.i[own], answers.j[own], answers.same[own])
