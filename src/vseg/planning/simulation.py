"""Simulate one participant with every method and number of trials: one trial of a sweep."""

from typing import TypedDict

import numpy as np

from vseg.data.layout import Grid
from vseg.data.maps import Maps
from vseg.evaluation.metrics import mae_per_entry
from vseg.planning.assumptions import Assumptions, participant_entropy
from vseg.planning.methods import ParticipantEstimate, SimulatedParticipant, estimate_with_method
from vseg.stimuli import random_maps


class SweepSetting(TypedDict):
    """The arguments of `simulate_participant` apart from the seed."""

    grid: int
    segments: int
    conditions: tuple[str, ...]
    means: tuple[float, ...]
    spreads: tuple[float, ...]
    lapse: float
    design: str
    smoothness: str | float
    catch: int
    counts: tuple[int, ...]
    methods: tuple[str, ...]


class Accuracy(TypedDict):
    """How close an estimate came to the truth."""

    error: float
    true_entropy: float
    entropy: float
    compared_entropy: float
    entropy_spread: float | None
    entropy_error: float


class SimulatedRow(Accuracy):
    """One simulated participant in one condition, with one method and number of trials."""

    condition: str
    method: str
    trials: int


def sweep_setting(
    assumptions: Assumptions, trials: tuple[int, ...], methods: tuple[str, ...]
) -> SweepSetting:
    """Return the setting with which a sweep calls `simulate_participant`."""
    return {
        "grid": assumptions.grid,
        "segments": assumptions.segments,
        "conditions": tuple(assumptions.conditions),
        "means": tuple(assumptions.conditions.values()),
        "spreads": tuple(assumptions.spread_at(entropy) for entropy in assumptions.conditions.values()),
        "lapse": assumptions.lapse,
        "design": assumptions.design,
        "smoothness": assumptions.smoothness,
        "catch": assumptions.catch,
        "counts": trials,
        "methods": methods,
    }


def simulate_participant(
    grid: int,
    segments: int,
    conditions: tuple[str, ...],
    means: tuple[float, ...],
    spreads: tuple[float, ...],
    lapse: float,
    design: str,
    smoothness: str | float,
    catch: int,
    counts: tuple[int, ...],
    methods: tuple[str, ...],
    seed: int,
) -> list[SimulatedRow]:
    """Simulate a participant in each condition, with every method and number of trials; return a row each.

    The participant has the same areas, the same rank among participants and the same random numbers throughout, so
    that rows differ by method, trials and condition alone and fewer participants are needed to see the difference.
    """
    rank, areas, answers = np.random.SeedSequence(seed).generate_state(3, np.uint64)
    rows: list[SimulatedRow] = []
    for condition, mean, spread in zip(conditions, means, spreads, strict=True):
        entropy = participant_entropy(mean, spread, segments, (float(rank >> np.uint64(11)) + 0.5) / 2**53)
        truth = random_maps(Grid(grid), segments=segments, entropy=entropy, seed=int(areas))
        participant = SimulatedParticipant(truth, lapse, design, smoothness, catch)
        for trials in counts:
            for method in methods:
                found = estimate_with_method(method, participant, trials, int(answers >> np.uint64(1)))
                rows.append(
                    {
                        "condition": condition,
                        "method": method,
                        "trials": trials,
                        **_measure_accuracy(found, truth),
                    }
                )
    return rows


def _measure_accuracy(found: ParticipantEstimate, truth: Maps) -> Accuracy:
    return {
        "error": mae_per_entry(found.maps, truth),
        "true_entropy": truth.mean_entropy,
        "entropy": found.entropy,
        "compared_entropy": found.compared,
        "entropy_spread": found.spread,
        "entropy_error": abs(found.entropy - truth.mean_entropy),
    }
