"""simulate_group(): random maps, and the responses of several participants who see them."""

from dataclasses import replace
from typing import Any

import numpy as np

from vseg import designs
from vseg._support.progress import Progress
from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.data.responses import Responses, concatenate
from vseg.designs.pair_graphs import count_pairs
from vseg.errors import InvalidInput
from vseg.observers import LapsingObserver, simulate


def count_steps(*, participants: int, blocks: int, fresh: bool) -> int:
    """Return how many steps `simulate_group` reports: the pairs it draws, and the participants."""
    return participants + (participants * blocks if fresh else 1)


def simulate_group(
    truth: Maps,
    *,
    participants: int,
    blocks: int,
    design: str = "covering",
    trials: int | None = None,
    fresh: bool = False,
    lapse: float = 0.0,
    seed: int,
    progress: Progress = lambda steps: None,
) -> Responses:
    """Simulate participants P1, P2, … who see the same maps.

    Each participant has a random state of their own, so that adding participants does not change the others' answers.

    Parameters
    ----------
    truth : Maps
        The maps they see.
    participants, blocks : int
        The number of participants, and of blocks of each.
    design : str
        The name of the design of a block's pairs; see `vseg.designs.DESIGNS`. "oracle" uses the labels of the true
        maps. "two_stage" asks the first half of the pairs by the scattered design in all blocks, fits a coarse map to
        each participant's answers and asks the other half by `vseg.adaptive.two_stage_pairs`, in as many blocks again.
    trials : int, optional
        The number of pairs in a block; by default the design's own.
    fresh : bool
        Whether pairs are drawn anew for each block and participant; otherwise all blocks have the same pairs.
    lapse : float
        The share of trials answered without looking.
    seed : int
    progress : function
        Called with the number of finished steps; see `count_steps`.

    Returns
    -------
    Responses

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)
    >>> responses = simulate_group(truth, participants=2, blocks=3, design="all", seed=0)
    >>> len(responses), sorted(set(responses.participant.tolist()))
    (720, ['P1', 'P2'])
    """
    settings: dict[str, Any] = {"segments": truth.segments, "trials": trials}
    second_trials = 0
    if design == "oracle":
        settings["labels"] = truth.labels
    if design == "two_stage":
        all_trials = trials or min(
            designs.paper_trials(truth.layout, truth.segments), count_pairs(len(truth.layout))
        )
        least = 2 * -(-len(truth.layout) // 2)
        if all_trials < least:
            raise InvalidInput(
                f"Expected at least {least} trials for two stages on {truth.layout}, so that the first half tests "
                f"every location, got trials={trials}."
            )
        second_trials = all_trials // 2
        settings["trials"] = all_trials - second_trials
    draw_pairs = designs.get_design("scattered" if second_trials else design)

    def draw_and_report(layout: Layout, **arguments: Any) -> Pairs:
        pairs = draw_pairs(layout, **arguments)
        progress(1)
        return pairs

    def draw_blocks(block_seed: int) -> list[Pairs]:
        return designs.draw_blocks(
            draw_and_report, truth.layout, blocks=blocks, fresh=fresh, seed=block_seed, **settings
        )

    shared_blocks = None if fresh else draw_blocks(seed)
    digits = len(str(participants))
    parts = []
    for number, participant_seed in enumerate(np.random.SeedSequence(seed).spawn(participants), start=1):
        pairs = shared_blocks or draw_blocks(int(participant_seed.generate_state(1)[0]))
        observer: dict[str, Any] = {
            "observer": LapsingObserver(lapse),
            "participant": f"P{number:0{digits}d}",
        }
        answers = simulate(truth, pairs, seed=participant_seed, **observer)
        parts.append(answers)
        if second_trials:
            pair_seed, answer_seed = participant_seed.spawn(2)
            second = _draw_second_stage(answers, truth.segments, second_trials, blocks, fresh, pair_seed)
            later = simulate(truth, second, seed=answer_seed, **observer)
            parts.append(replace(later, block=later.block + blocks))
        progress(1)
    return concatenate(parts)


def _draw_second_stage(
    answers: Responses, segments: int, trials: int, blocks: int, fresh: bool, seed: np.random.SeedSequence
) -> list[Pairs]:
    """Draw the pairs of each block of the second stage: the same in all, or `fresh` ones."""
    from vseg.adaptive import two_stage_pairs

    if not fresh:
        return [two_stage_pairs(answers, segments=segments, trials=trials, seed=seed)] * blocks
    pairs = two_stage_pairs(answers, segments=segments, trials=trials * blocks, seed=seed)
    return designs.split(pairs, blocks, seed=seed)
