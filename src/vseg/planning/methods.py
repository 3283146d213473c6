"""The methods a study may use: which pairs it asks, and how maps are estimated from the answers.

A method is a function `(participant, trials, seed) -> ParticipantEstimate`; a method in METHODS can be forecast.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from vseg import designs
from vseg.adaptive import State, next_pairs
from vseg.adaptive.chooser import BATCH, BATCH_SHARE, LAPSES
from vseg.bayes.posterior import SHORT_BUDGET, posterior
from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.data.responses import Responses, concatenate
from vseg.designs.pair_graphs import count_pairs
from vseg.errors import NotConverged, VsegWarning
from vseg.observers import LapsingObserver, simulate
from vseg.reconstruction.reconstruct import Reconstruction, reconstruct


@dataclass(frozen=True)
class SimulatedParticipant:
    """A participant who sees these maps and lapses at times, and how the study asks and estimates.

    Attributes
    ----------
    truth : Maps
    lapse : float
        Share of trials answered without looking.
    design : str
        Name of the design that chooses pairs.
    smoothness : "auto" or float
        λ of the paper's method.
    catch : int
        Number of catch trials.
    """

    truth: Maps
    lapse: float
    design: str
    smoothness: str | float
    catch: int = 0

    @property
    def layout(self) -> Layout:
        """The locations of the study."""
        return self.truth.layout

    @property
    def segments(self) -> int:
        """The number of segments K."""
        return self.truth.segments

    def answer(self, pairs: list[Pairs], seed: int) -> Responses:
        """Simulate the responses to these blocks of pairs."""
        return simulate(self.truth, pairs, observer=LapsingObserver(self.lapse), seed=seed)

    def answer_catch_trials(self, seed: int) -> tuple[int, int] | None:
        """Simulate how many catch trials are answered correctly, and of how many; half of the lapses are errors."""
        if not self.catch:
            return None
        rng = np.random.default_rng(np.random.SeedSequence((seed, self.catch)))
        return self.catch - int(rng.binomial(self.catch, self.lapse / 2)), self.catch


class ParticipantEstimate(NamedTuple):
    """What a method finds of one participant.

    Attributes
    ----------
    maps : Maps
    entropy : float
        The estimated mean entropy, in nats.
    compared : float
        The estimate by which groups are compared: that under a flat prior, where the method has a prior.
    spread : float or None
        The standard deviation of the estimate, where the method has one.
    """

    maps: Maps
    entropy: float
    compared: float
    spread: float | None


Method = Callable[[SimulatedParticipant, int, int], ParticipantEstimate]


def run_paper_method(participant: SimulatedParticipant, trials: int, seed: int) -> ParticipantEstimate:
    """Ask KN² random pairs, or fewer if there are fewer trials, in every block; reconstruct with the penalty."""
    layout, segments = participant.layout, participant.segments
    block = min(trials, designs.paper_trials(layout, segments), count_pairs(len(layout)))
    pairs = designs.get_design(participant.design)(layout, trials=block, seed=seed)
    whole, rest = divmod(trials, block)
    rng = np.random.default_rng(seed)
    blocks = [pairs] * whole + ([pairs.take(rng.permutation(block)[:rest])] if rest else [])
    try:
        maps = reconstruct(
            participant.answer(blocks, seed),
            segments=segments,
            smoothness=participant.smoothness,
            seed=seed,
            threads=1,
        ).maps
    except NotConverged as error:  # a forecast leaves out no participant
        maps = cast(Reconstruction, error.result).maps
    return ParticipantEstimate(maps, maps.mean_entropy, maps.mean_entropy, None)


def run_posterior_method(participant: SimulatedParticipant, trials: int, seed: int) -> ParticipantEstimate:
    """Ask a new pair in every trial, until all were asked; take the posterior."""
    layout, most = participant.layout, count_pairs(len(participant.layout))
    blocks = [designs.all_pairs(layout)] * (trials // most)
    if rest := trials % most:
        least = -(-len(layout) // 2)
        pairs = designs.get_design(participant.design)(layout, trials=max(rest, least), seed=seed)
        blocks.append(pairs.take(np.arange(rest)))
    return _fit_posterior(participant, participant.answer(blocks, seed), seed)


def run_adaptive_method(participant: SimulatedParticipant, trials: int, seed: int) -> ParticipantEstimate:
    """Choose pairs from the answers so far, with the lapses and batches of the server; take the posterior."""
    state = State(participant.layout, segments=participant.segments, lapses=LAPSES, seed=seed)
    parts: list[Responses] = []
    while state.trials < trials:
        count = max(BATCH, int(BATCH_SHARE * state.trials))
        pairs = next_pairs(state, min(count, trials - state.trials), seed=seed)
        answer_seed = int(np.random.SeedSequence((seed, state.trials)).generate_state(1)[0])
        answers = participant.answer([pairs], answer_seed)
        state.add(answers.i, answers.j, answers.same)
        parts.append(answers)
    return _fit_posterior(participant, concatenate(parts), seed)


METHODS: dict[str, Method] = {
    "paper": run_paper_method,
    "posterior": run_posterior_method,
    "adaptive": run_adaptive_method,
}
METHOD_NAMES = {
    "paper": "the paper's method",
    "posterior": "the posterior",
    "adaptive": "adaptive choice of pairs",
}


def estimate_with_method(
    method: str, participant: SimulatedParticipant, trials: int, seed: int
) -> ParticipantEstimate:
    """Run the method of this name; warnings about single data sets are suppressed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)
        return METHODS[method](participant, trials, seed)


def _fit_posterior(participant: SimulatedParticipant, responses: Responses, seed: int) -> ParticipantEstimate:
    result = posterior(
        responses,
        segments=participant.segments,
        lapses="estimate" if participant.lapse or participant.catch else None,
        catch=participant.answer_catch_trials(seed),
        budget=SHORT_BUDGET,
        seed=seed,
        threads=1,
        warn=False,
    )
    return ParticipantEstimate(
        result.maps, result.entropy, result.flat_entropy[0], float(result.entropies.std())
    )
