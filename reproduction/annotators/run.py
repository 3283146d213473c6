"""study(): a copy of BSDS500 in, the trials that each method needs out."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.annotators.methods import METHODS, Case, estimated
from reproduction.annotators.observers import OBSERVERS, scene
from reproduction.annotators.result import Comparison
from vseg.errors import InvalidInput
from vseg.stimuli import Bsds
from vseg.sweeps import Table, sweep
from vseg.sweeps.workers import Workers

GRID, SMALLEST_GRID, LARGEST_GRID = 16, 4, 32
FEWEST_TRIALS = 10  # to hold some out for the choice of λ
TRIALS = (32, 64, 96, 128, 192, 256, 512, 1024)
KEPT_COLUMNS = ("image", "observer", "repeat", "method", "trials", "error")


def study(
    folder: str | Path,
    *,
    images: int | None = None,
    grid: int = GRID,
    trials: Sequence[int] = TRIALS,
    observers: Sequence[str] = OBSERVERS,
    executor: str | Executor | Workers | None = None,
    kept: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
    seed: int,
) -> Comparison:
    """How well each method knows what BSDS500's annotators would say, against trials.

    Parameters
    ----------
    folder : path
        Your copy of BSDS500.
    images : int, optional
        Photographs to take, spread evenly over the folder; by default all.
    grid : int
        Locations along a side.
    trials : sequence of int
        Numbers of trials; the paper's settings are taken at the most.
    observers : "aggregate" (a random annotator at each trial), "individual" (one of them, with lapses), or both
    executor, kept, progress
        As in `vseg.sweep`; a step of the progress is a photograph and an observer.

    Examples
    --------
    >>> found = study("BSDS500/data", images=20, executor="processes", seed=0)  # doctest: +SKIP
    >>> print(found)                                                            # doctest: +SKIP
    """
    held = Bsds(folder)
    names = _chosen(held.ids, images)
    counts = _checked_trials(trials, grid)
    settings = [
        {"folder": str(held.folder.resolve()), "image": name, "observer": who, "grid": grid, "counts": counts}
        for name in names
        for who in _checked_observers(observers)
    ]
    rows = sweep(
        photograph, settings, repeats=1, seed=seed, executor=executor, checkpoint=kept, progress=progress
    ).rows
    return Comparison(Table({name: row[name] for name in KEPT_COLUMNS} for row in rows), grid, int(seed))


def photograph(
    folder: str, image: str, observer: str, grid: int, counts: tuple[int, ...], seed: int
) -> list[dict[str, Any]]:
    """One observer of one photograph, asked by every method; a row a method and number of trials."""
    seen = scene(folder, image, grid)
    case = Case(seen, seen.observer(observer), counts, seed)
    return [
        {"method": name, "trials": trials, "error": case.observer.error(q)}
        for name, method in METHODS.items()
        if observer in method.observers
        for trials, q in estimated(method, case)
    ]


def steps(folder: str | Path, images: int | None, observers: Sequence[str]) -> int:
    """How many steps of progress a study takes."""
    return len(_chosen(Bsds(folder).ids, images)) * len(_checked_observers(observers))


def _chosen(names: list[str], images: int | None) -> list[str]:
    if images is None:
        return names
    if isinstance(images, bool) or not isinstance(images, (int, np.integer)) or not 1 <= images <= len(names):
        raise InvalidInput(
            f"The folder holds {len(names)} photographs with their annotators; expected 1 to {len(names)} of them, "
            f"got {images!r}."
        )
    return [names[at] for at in np.arange(images) * len(names) // images]


def _checked_trials(trials: Sequence[int], grid: int) -> tuple[int, ...]:
    if not isinstance(grid, (int, np.integer)) or not SMALLEST_GRID <= grid <= LARGEST_GRID:
        raise InvalidInput(
            f"The grid has {SMALLEST_GRID} to {LARGEST_GRID} locations along a side, got {grid!r}."
        )
    given, fewest, most = tuple(sorted(set(trials))), max(grid, FEWEST_TRIALS), grid**2 * (grid**2 - 1) // 4
    for count in given:
        if not isinstance(count, (int, np.integer)) or not fewest <= count <= most:
            raise InvalidInput(
                f"On a {grid}x{grid} grid a number of trials lies from {fewest} to {most} (half of all pairs), "
                f"got {count!r}."
            )
    if len(given) < 2:
        raise InvalidInput(f"Expected two numbers of trials or more to draw a curve, got {list(given)}.")
    return tuple(int(count) for count in given)


def _checked_observers(observers: Sequence[str]) -> tuple[str, ...]:
    given = tuple(dict.fromkeys(observers))
    for name in given:
        if name not in OBSERVERS:
            raise InvalidInput(f"Unknown observer {name!r}; choose one of {', '.join(OBSERVERS)}, or both.")
    if not given:
        raise InvalidInput(f"Expected one or both of {', '.join(OBSERVERS)}, got none.")
    return given
