"""Run the study: from a copy of BSDS500 to the error of each method over the number of trials."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.annotators.methods import METHODS, Case, run_method
from reproduction.annotators.observers import OBSERVERS, load_scene
from reproduction.annotators.result import StudyResult
from vseg.errors import InvalidInput
from vseg.stimuli import Bsds
from vseg.sweeps import Table, sweep
from vseg.sweeps.workers import Workers

GRID, MIN_GRID, MAX_GRID = 16, 4, 32
MIN_TRIALS = 10  # cross-validation of λ needs some to hold out
TRIALS = (32, 64, 96, 128, 192, 256, 512, 1024)
COLUMNS = ("image", "observer", "repeat", "method", "trials", "error")


def run_study(
    folder: str | Path,
    *,
    images: int | None = None,
    grid: int = GRID,
    trials: Sequence[int] = TRIALS,
    observers: Sequence[str] = OBSERVERS,
    executor: str | Executor | Workers | None = None,
    checkpoint: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
    seed: int,
) -> StudyResult:
    """Measure how well each method predicts the answers of BSDS500's annotators, over the number of trials.

    Parameters
    ----------
    folder : path
        Your copy of BSDS500.
    images : int, optional
        Number of photographs, spread evenly over the folder; by default all.
    grid : int
        Locations along a side.
    trials : sequence of int
        Numbers of trials; the error of the paper's settings at the largest is the goal for the other methods.
    observers : sequence of str
        "aggregate" (a random annotator at each trial), "individual" (one annotator, with lapses), or both.
    executor, checkpoint, progress
        As in `vseg.sweep`; a step of the progress is one photograph and one observer.
    seed : int
        Random seed of pairs, answers and fits.

    Returns
    -------
    StudyResult

    Examples
    --------
    >>> result = run_study("BSDS500/data", images=20, executor="processes", seed=0)  # doctest: +SKIP
    >>> print(result)                                                               # doctest: +SKIP
    """
    dataset = Bsds(folder)
    names = _select_images(dataset.ids, images)
    counts = _check_trials(trials, grid)
    errors = sweep_photographs(
        evaluate_photograph, {"grid": grid, "counts": counts}, dataset, names, _check_observers(observers), COLUMNS,
        executor=executor, checkpoint=checkpoint, progress=progress, seed=seed,
    )  # fmt: skip
    return StudyResult(errors, grid, int(seed))


def sweep_photographs(
    evaluate: Callable[..., list[dict[str, Any]]],
    settings: Mapping[str, Any],
    dataset: Bsds,
    images: Sequence[str],
    observers: Sequence[str],
    columns: Sequence[str],
    *,
    executor: str | Executor | Workers | None,
    checkpoint: str | Path | None,
    progress: Callable[[int], None] | None,
    seed: int,
) -> Table:
    """Evaluate every observer of every photograph with the same settings; return these columns of all rows."""
    folder = str(dataset.folder.resolve())
    rows = sweep(
        evaluate,
        [
            {"folder": folder, "image": image, "observer": observer, **settings}
            for image in images
            for observer in observers
        ],
        repeats=1,
        seed=seed,
        executor=executor,
        checkpoint=checkpoint,
        progress=progress,
    ).rows
    return Table({name: row[name] for name in columns} for row in rows)


def evaluate_photograph(
    folder: str, image: str, observer: str, grid: int, counts: tuple[int, ...], seed: int
) -> list[dict[str, Any]]:
    """Run every method on one observer of one photograph; return a row per method and number of trials."""
    scene = load_scene(folder, image, grid)
    case = Case(scene, scene.observer(observer), counts, seed)
    return [
        {"method": name, "trials": trials, "error": case.observer.error(q)}
        for name, method in METHODS.items()
        if observer in method.observers
        for trials, q in run_method(method, case)
    ]


def count_steps(folder: str | Path, images: int | None, observers: Sequence[str]) -> int:
    """Return the number of progress steps of a study."""
    return len(_select_images(Bsds(folder).ids, images)) * len(_check_observers(observers))


def _select_images(names: list[str], images: int | None) -> list[str]:
    if images is None:
        return names
    if isinstance(images, bool) or not isinstance(images, (int, np.integer)) or not 1 <= images <= len(names):
        raise InvalidInput(
            f"The folder holds {len(names)} photographs with their annotators; expected a number from 1 to "
            f"{len(names)}, "
            f"got {images!r}."
        )
    return [names[index] for index in np.arange(images) * len(names) // images]


def _check_trials(trials: Sequence[int], grid: int) -> tuple[int, ...]:
    if not isinstance(grid, (int, np.integer)) or not MIN_GRID <= grid <= MAX_GRID:
        raise InvalidInput(
            f"Expected a grid of {MIN_GRID} to {MAX_GRID} locations along a side, got {grid!r}."
        )
    counts, fewest, most = tuple(sorted(set(trials))), max(grid, MIN_TRIALS), grid**2 * (grid**2 - 1) // 4
    for count in counts:
        if not isinstance(count, (int, np.integer)) or not fewest <= count <= most:
            raise InvalidInput(
                f"Expected {fewest} to {most} trials (half of all pairs) on a {grid}x{grid} grid, got {count!r}."
            )
    if len(counts) < 2:
        raise InvalidInput(f"Expected two or more numbers of trials, got {list(counts)}.")
    return tuple(int(count) for count in counts)


def _check_observers(observers: Sequence[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(observers))
    for name in names:
        if name not in OBSERVERS:
            raise InvalidInput(f"Unknown observer {name!r}; choose one of {', '.join(OBSERVERS)}, or both.")
    if not names:
        raise InvalidInput(f"Expected one or both of {', '.join(OBSERVERS)}, got none.")
    return names
