"""The two experiments: simulated participants answer, and maps are reconstructed from their answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vseg import designs
from vseg.data.layout import Grid
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.data.responses import Responses, concatenate
from vseg.image_observers import simulate_annotation, simulate_beliefs
from vseg.observers import LapsingObserver, simulate
from vseg.reconstruction.reconstruct import Reconstruction, reconstruct
from vseg.reconstruction.segment_selection import SegmentsChoice, choose_segments
from vseg.stimuli import PRESETS, TextureImage, composite, load_sample

PARTICIPANTS, BLOCKS, TEXTURE_GRID = 15, 5, Grid(11)
PHOTOGRAPH, PHOTOGRAPH_GRID, PAIRS, ANNOTATORS = "coffee", Grid(16), 1024, 8
SEGMENTS = range(2, 8)
LAPSE = 0.02

Advance = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class TextureExperiment:
    """One condition: the texture, each participant's beliefs and answers, and the reconstructed maps."""

    name: str
    stimulus: TextureImage
    truth: Maps
    beliefs: dict[str, Maps]
    responses: Responses
    each: dict[str, Reconstruction]
    together: Reconstruction

    @property
    def entropies(self) -> list[float]:
        """The mean entropy of each participant's maps, in nats."""
        return [result.maps.mean_entropy for result in self.each.values()]


@dataclass(frozen=True, eq=False)
class PhotographExperiment:
    """The photograph, its annotators' segmentations, their answers, and the choice of K."""

    image: NDArray[np.uint8]
    annotators: dict[str, Maps]
    pairs: Pairs
    sessions: list[Pairs]
    responses: Responses
    choice: SegmentsChoice


def texture_experiment(
    name: str,
    pairs: Pairs,
    participants: int,
    seed: int,
    people: np.random.SeedSequence,
    advance: Advance,
) -> TextureExperiment:
    """Simulate participants who judge the same pairs of one texture in several blocks; reconstruct their maps."""
    stimulus = composite(preset=PRESETS[name], seed=seed)
    beliefs, answers = {}, {}
    for number, person in enumerate(people.spawn(participants)):
        who = f"{name}-{number + 1:02d}"
        belief_seed, answer_seed = person.spawn(2)
        beliefs[who] = simulate_beliefs(stimulus, pairs.layout, seed=belief_seed)
        answers[who] = simulate(
            beliefs[who], pairs, blocks=BLOCKS, observer=LapsingObserver(LAPSE), participant=who,
            image=f"texture-{name}", seed=answer_seed,
        )  # fmt: skip
    everyone = concatenate(answers.values())
    truth = stimulus.truth_maps(pairs.layout)
    together = reconstruct(everyone, segments=2, seed=seed, progress=advance)
    each = {who: reconstruct(own, segments=2, seed=seed, progress=advance) for who, own in answers.items()}
    return TextureExperiment(name, stimulus, truth, beliefs, everyone, each, together)


def photograph_experiment(
    segments: Sequence[int], seed: np.random.SeedSequence, advance: Advance
) -> PhotographExperiment:
    """Simulate annotators who disagree, one session each; choose K from all answers."""
    image = load_sample(PHOTOGRAPH)
    first, *people = seed.spawn(1 + ANNOTATORS)
    number = int(first.generate_state(1)[0])
    pairs = designs.scattered(PHOTOGRAPH_GRID, trials=PAIRS, seed=number)
    sessions = designs.split(pairs, ANNOTATORS, seed=number)
    annotators, answers = {}, []
    for at, (person, session) in enumerate(zip(people, sessions, strict=True)):
        who, (drawing, answering) = f"annotator-{at + 1}", person.spawn(2)
        count, place = 3 + at % 3, (0.3, 0.5, 0.7, 0.9)[at % 4]
        annotators[who] = simulate_annotation(image, PHOTOGRAPH_GRID, count, place, drawing)
        own = simulate(
            annotators[who], session, observer=LapsingObserver(LAPSE), participant=who, image=PHOTOGRAPH,
            seed=answering,
        )  # fmt: skip
        answers.append(own)
    responses = concatenate(answers)
    choice = choose_segments(responses, segments=segments, seed=number, progress=advance)
    return PhotographExperiment(image, annotators, pairs, sessions, responses, choice)
