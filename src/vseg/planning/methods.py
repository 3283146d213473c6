"""The methods a study may use: which pairs it asks, and what it makes of the answers.

A method is a function `(person, trials, seed) -> Estimated`; a line in METHODS, and it is forecast too.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vseg import designs
from vseg.adaptive import State, next_pairs
from vseg.adaptive.chooser import BATCH, BATCH_SHARE, LAPSES
from vseg.bayes import Posterior, posterior
from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.data.responses import Responses, concatenated
from vseg.errors import NotConverged, VsegWarning
from vseg.observers import Lapsing, simulate
from vseg.reconstruction.reconstruct import reconstruct


@dataclass(frozen=True)
class Person:
    """Someone who sees these maps, lapses at times, and is asked by this design."""

    truth: Maps
    lapse: float
    design: str
    smoothness: Any

    @property
    def layout(self) -> Layout:
        """Where they are asked."""
        return self.truth.layout

    @property
    def segments(self) -> int:
        """K."""
        return self.truth.segments

    def answer(self, pairs: list[Pairs], seed: int) -> Responses:
        """What they say about these pairs."""
        return simulate(self.truth, pairs, observer=Lapsing(self.lapse), seed=seed)


class Estimated(NamedTuple):
    """The maps found, their mean entropy, and its standard deviation where the method knows one."""

    maps: Maps
    entropy: float
    spread: float | None


Method = Callable[[Person, int, int], Estimated]


def paper(person: Person, trials: int, seed: int) -> Estimated:
    """KN² random pairs, or as many as there are trials, repeated in every block; the penalised reconstruction."""
    block = min(trials, designs.recommended_trials(person.layout, person.segments), _all_pairs(person.layout))
    pairs = designs.named(person.design)(person.layout, trials=block, seed=seed)
    whole, rest = divmod(trials, block)
    rng = np.random.default_rng(seed)
    shown = [pairs] * whole + ([pairs.take(rng.permutation(block)[:rest])] if rest else [])
    try:
        maps = reconstruct(
            person.answer(shown, seed),
            segments=person.segments,
            smoothness=person.smoothness,
            seed=seed,
            threads=1,
        ).maps
    except NotConverged as stopped:  # nobody is left out of a forecast
        maps = stopped.result.maps
    return Estimated(maps, maps.mean_entropy, None)


def fresh(person: Person, trials: int, seed: int) -> Estimated:
    """New pairs at every trial, as long as there are some; the posterior."""
    most = _all_pairs(person.layout)
    shown = [designs.all_pairs(person.layout)] * (trials // most)
    if rest := trials % most:
        least = -(-len(person.layout) // 2)
        drawn = designs.named(person.design)(person.layout, trials=max(rest, least), seed=seed)
        shown.append(drawn.take(np.arange(rest)))
    return _believed(person, person.answer(shown, seed), seed)


def adaptive(person: Person, trials: int, seed: int) -> Estimated:
    """Pairs chosen from the answers so far, with the lapses and in the batches of the server; the posterior."""
    state = State(person.layout, segments=person.segments, lapses=LAPSES, seed=seed)
    parts: list[Responses] = []
    while state.trials < trials:
        count = max(BATCH, int(BATCH_SHARE * state.trials))
        pairs = next_pairs(state, min(count, trials - state.trials), seed=seed)
        answers = person.answer(
            [pairs], int(np.random.SeedSequence((seed, state.trials)).generate_state(1)[0])
        )
        state.add(answers.i, answers.j, answers.same)
        parts.append(answers)
    return _believed(person, concatenated(parts), seed)


METHODS: dict[str, Method] = {"paper": paper, "posterior": fresh, "adaptive": adaptive}
NAMES = {"paper": "the paper's method", "posterior": "the posterior", "adaptive": "adaptive choice of pairs"}


def _believed(person: Person, responses: Responses, seed: int) -> Estimated:
    found: Posterior = posterior(
        responses, segments=person.segments, lapses="estimate" if person.lapse else None, seed=seed, threads=1
    )
    return Estimated(found.maps, found.entropy, float(found.entropies.std()))


def _all_pairs(layout: Layout) -> int:
    return len(layout) * (len(layout) - 1) // 2


def estimated(name: str, person: Person, trials: int, seed: int) -> Estimated:
    """By the method of this name; warnings that are meant for one data set are left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)
        return METHODS[name](person, trials, seed)
