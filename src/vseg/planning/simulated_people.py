"""One simulated person: the trial of a sweep."""

from typing import Any

import numpy as np

from vseg.data.layout import Grid
from vseg.data.maps import Maps
from vseg.evaluation.metrics import mae_per_entry
from vseg.planning.assumptions import Guess, own_entropy
from vseg.planning.methods import Estimated, Person, estimated
from vseg.stimuli import random_maps


def setting(guess: Guess, trials: tuple[int, ...], methods: tuple[str, ...]) -> dict[str, Any]:
    """What `person` is called with."""
    return {
        "grid": guess.grid,
        "segments": guess.segments,
        "conditions": tuple(guess.conditions),
        "means": tuple(guess.conditions.values()),
        "spreads": tuple(guess.spread_at(entropy) for entropy in guess.conditions.values()),
        "lapse": guess.lapse,
        "design": guess.design,
        "smoothness": guess.smoothness,
        "counts": trials,
        "methods": methods,
    }


def person(
    grid: int,
    segments: int,
    conditions: tuple[str, ...],
    means: tuple[float, ...],
    spreads: tuple[float, ...],
    lapse: float,
    design: str,
    smoothness: Any,
    counts: tuple[int, ...],
    methods: tuple[str, ...],
    seed: int,
) -> list[dict[str, Any]]:
    """Someone in each condition, asked by every method at every number of trials; a row each.

    They have the same areas, the same rank among people and the same luck in all of these: what is left between
    methods, numbers of trials and conditions is theirs, and fewer people have to be simulated to see it.
    """
    rank, areas, answers = np.random.SeedSequence(seed).generate_state(3, np.uint64)
    rows = []
    for condition, mean, spread in zip(conditions, means, spreads, strict=True):
        entropy = own_entropy(mean, spread, segments, (float(rank >> np.uint64(11)) + 0.5) / 2**53)
        truth = random_maps(Grid(grid), segments=segments, entropy=entropy, seed=int(areas))
        who = Person(truth, lapse, design, smoothness)
        for trials in counts:
            for method in methods:
                found = estimated(method, who, trials, int(answers >> np.uint64(1)))
                rows.append(
                    {"condition": condition, "method": method, "trials": trials, **_numbers(found, truth)}
                )
    return rows


def _numbers(found: Estimated, truth: Maps) -> dict[str, Any]:
    return {
        "error": mae_per_entry(found.maps, truth),
        "true_entropy": truth.mean_entropy,
        "entropy": found.entropy,
        "entropy_spread": found.spread,
        "entropy_error": abs(found.entropy - truth.mean_entropy),
    }
