"""Measure whether the expected error by which adaptive studies stop is the true one, with BSDS500's annotators.

Pairs are chosen and answers taken as by the server: its prior, its lapses, its batches. The truth is the maps of K
segments that are closest to the annotators' P(same) of all pairs. `DISAGREEMENT` in `vseg.adaptive.state` was chosen on
the photographs of the part "tuning"; those of the part "held" show how well it fits others.
"""

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.annotators.observers import OBSERVERS, AnnotatorObserver, load_scene
from reproduction.annotators.run import sweep_photographs
from vseg import Maps, Pairs, metrics
from vseg.adaptive import State, next_pairs
from vseg.adaptive.chooser import BATCH, BATCH_SHARE, LAPSES
from vseg.bayes.posterior import SHORT_BUDGET, posterior
from vseg.data.responses import Tally, concatenate
from vseg.errors import InvalidInput, NotConverged, VsegWarning
from vseg.reconstruction.reconstruct import reconstruct
from vseg.stimuli import Bsds
from vseg.sweeps import Table
from vseg.sweeps.workers import Workers

PARTS = ("tuning", "held", "all")
COLUMNS = ("image", "observer", "trials", "estimate", "expected", "true")
TRUTH_STARTS = 4  # random starts of the fit to all pairs


@dataclass(frozen=True)
class ExpectedErrors:
    """The result of `compare_expected_errors`.

    Attributes
    ----------
    errors : Table
        A row per photograph, observer, number of trials and estimate, with its `expected` and its `true` error.
    """

    errors: Table

    def ratio(self, **where: Any) -> float:
        """Return mean true error ÷ mean expected error over photographs."""
        true, expected = (self.errors.column(name, **where) for name in ("true", "expected"))
        return float(true.mean() / expected.mean())

    def __str__(self) -> str:
        """Format true ÷ expected error: a row per estimate and observer, a column per number of trials."""
        counts, images = (sorted(set(self.errors.column(name).tolist())) for name in ("trials", "image"))
        lines = [
            f"true ÷ expected error by trials, {len(images)} photographs",
            f"{'':<24}{''.join(f'{count:>6}' for count in counts)}{'mean':>7}",
        ]
        for estimate, observer in self.errors.groups(["estimate", "observer"]):
            ratios = [self.ratio(estimate=estimate, observer=observer, trials=count) for count in counts]
            cells = "".join(f"{ratio:>6.2f}" for ratio in ratios)
            lines.append(f"{f'{estimate}, {observer}':<24}{cells}{np.mean(ratios):>7.2f}")
        return "\n".join(lines)


def compare_expected_errors(
    folder: str | Path,
    *,
    part: str = "held",
    grid: int,
    segments: int,
    trials: Sequence[int],
    with_posterior: bool = False,
    executor: str | Executor | Workers | None = None,
    checkpoint: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
    seed: int,
) -> ExpectedErrors:
    """Compare the expected error of adaptive sessions with their true one, for every second photograph of a folder.

    Parameters
    ----------
    folder : path
        Your copy of BSDS500.
    part : "tuning", "held" or "all"
        Every second photograph, beginning with the first or with the second; or all.
    grid : int
        Locations along a side.
    segments : int
        K.
    trials : sequence of int
        Numbers of trials at which errors are compared.
    with_posterior : bool
        Also compare the expected error of `vseg.posterior`, which takes seconds each.
    executor, checkpoint, progress
        As in `vseg.sweep`; a step of the progress is one photograph and one observer.
    seed : int
        Random seed of pairs, answers and fits.

    Returns
    -------
    ExpectedErrors

    Examples
    --------
    >>> print(compare_expected_errors("BSDS500", grid=12, segments=5, trials=[128], seed=0))  # doctest: +SKIP
    """
    dataset = Bsds(folder)
    settings = {
        "grid": grid, "segments": segments, "counts": tuple(sorted(set(trials))), "with_posterior": with_posterior,
    }  # fmt: skip
    errors = sweep_photographs(
        follow_session, settings, dataset, select_part(dataset.ids, part), OBSERVERS, COLUMNS,
        executor=executor, checkpoint=checkpoint, progress=progress, seed=seed,
    )  # fmt: skip
    return ExpectedErrors(errors)


def select_part(images: list[str], part: str) -> list[str]:
    """Return the photographs of a part.

    Examples
    --------
    >>> select_part(["a", "b", "c"], "held")
    ['b']
    """
    if part not in PARTS:
        raise InvalidInput(f"Unknown part {part!r}; choose one of {', '.join(PARTS)}.")
    chosen = images if part == "all" else images[PARTS.index(part) :: 2]
    if not chosen:
        raise InvalidInput(f"The folder holds {len(images)} photograph; the part {part!r} needs two or more.")
    return chosen


def follow_session(
    folder: str, image: str, observer: str, grid: int, segments: int, counts: tuple[int, ...],
    with_posterior: bool, seed: int,
) -> list[dict[str, Any]]:  # fmt: skip
    """Run one adaptive session; return a row per number of trials and estimate."""
    who = load_scene(folder, image, grid).observer(observer)
    truth = closest_maps(who, segments, seed)
    state = State(who.layout, segments=segments, lapses=LAPSES, shared=observer == "aggregate", seed=seed)
    rng, taken, rows = np.random.default_rng([seed, 1]), [], []
    for goal in counts:
        while state.trials < goal:
            count = min(max(BATCH, int(BATCH_SHARE * state.trials)), goal - state.trials)
            answers = who.answer(next_pairs(state, count, seed=seed), rng)
            state.add(answers.i, answers.j, answers.same)
            taken.append(answers)
        found = {"chooser": (state.maps, state.expected_error)}
        if with_posterior:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", VsegWarning)  # few draws suffice for the expected error
                fit = posterior(
                    concatenate(taken),
                    segments=segments,
                    lapses=LAPSES,
                    budget=SHORT_BUDGET,
                    seed=seed,
                    threads=1,
                )
            found["posterior"] = fit.maps, fit.expected_error
        rows += [
            {
                "trials": goal, "estimate": estimate, "expected": expected,
                "true": metrics.mae_per_entry(maps, truth),
            }
            for estimate, (maps, expected) in found.items()
        ]  # fmt: skip
    return rows


def closest_maps(observer: AnnotatorObserver, segments: int, seed: int) -> Maps:
    """Return the maps of K segments that are closest to an observer's P(same) of all pairs."""
    i, j = np.triu_indices(len(observer.layout), 1)
    annotators = len(observer.labels)
    same = np.rint(annotators * observer.same[i, j]).astype(np.int64)
    tally = Tally(Pairs(observer.layout, i, j), same, np.full(len(i), annotators))
    try:
        return reconstruct(
            tally,
            segments=segments,
            smoothness=0.0,
            loss="cross_entropy",
            starts=TRUTH_STARTS,
            seed=seed,
            threads=1,
        ).maps
    except NotConverged as stopped:
        return stopped.result.maps
