"""sweep(): run a function at each setting several times, on any workers."""

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from vseg._support.seeds import check_seed
from vseg.errors import InvalidInput
from vseg.sweeps.checkpoint import Checkpoint
from vseg.sweeps.executors import open_workers
from vseg.sweeps.repetitions import Repetition, Setting, Settings, SweepFunction, expand_settings
from vseg.sweeps.scheduler import TaskScheduler
from vseg.sweeps.table import REPEAT, Row, Table
from vseg.sweeps.workers import Workers


def sweep(
    function: SweepFunction,
    settings: Settings,
    *,
    repeats: int,
    seed: int,
    executor: str | Executor | Workers | None = None,
    checkpoint: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Table:
    """Run a function `repeats` times at each setting, each time with a seed of its own.

    The results depend only on the function, the settings and the seed, not on the executor, the number of workers or
    interruptions. More repeats, or settings added at the end, leave the other results unchanged.

    Parameters
    ----------
    function : callable
        `function(**setting, seed=int)` returns a dict of numbers and words, or a list of such dicts. For processes and
        Dask, define it with `def` at the top level of a file.
    settings : mapping or sequence of mappings
        A list of values by name, of which every combination is used; or the settings one by one.
    repeats : int
        Number of repetitions at each setting.
    seed : int
        Seed from which the seed of each repetition is derived.
    executor
        None: in this thread, one repetition after the other. "threads" or "processes", either with ":N" (by default as
        many as there are cores); "dask://HOST:PORT"; any `concurrent.futures.Executor`; or what `open_workers` opened,
        to share workers between sweeps.
    checkpoint : path, optional
        A folder for finished repetitions: an interrupted sweep continues from there, and more repeats add to it.
    progress : callable, optional
        Called with the number of repetitions finished since the last call; first with those found in `checkpoint`.

    Returns
    -------
    Table
        A row for each dict that the function returned: the settings, `repeat`, and the dict's own columns.

    Examples
    --------
    >>> def error(blocks, seed):
    ...     return {"error": abs(np.random.default_rng(seed).normal()) / blocks}
    >>> table = sweep(error, {"blocks": [1, 4]}, repeats=100, seed=0)
    >>> table
    Table(200 rows: blocks, repeat, error)
    >>> bool(table.column("error", blocks=4).mean() < table.column("error", blocks=1).mean())
    True
    """
    all_settings = expand_settings(settings)
    _check_arguments(function, repeats, seed)
    finished: dict[Repetition, list[Row]] = {}
    with ExitStack() as stack:
        saved = None
        if checkpoint is not None:
            saved = stack.enter_context(Checkpoint(Path(checkpoint), function, all_settings, int(seed)))
            finished = {
                repetition: rows for repetition, rows in saved.finished.items() if repetition.repeat < repeats
            }
        if finished and progress:
            progress(len(finished))
        repetitions = (
            Repetition(number, repeat) for repeat in range(repeats) for number in range(len(all_settings))
        )
        remaining = [repetition for repetition in repetitions if repetition not in finished]
        if remaining:
            workers = stack.enter_context(open_workers(executor))
            for results in TaskScheduler(workers, function, all_settings, remaining, int(seed)):
                if saved:
                    saved.add(results)
                finished.update((result.repetition, result.rows) for result in results)
                if results and progress:
                    progress(len(results))
    return _build_table(all_settings, repeats, finished)


def _check_arguments(function: SweepFunction, repeats: int, seed: int) -> None:
    if not isinstance(repeats, (int, np.integer)) or isinstance(repeats, bool) or repeats < 1:
        raise InvalidInput(f"The number of repeats is a whole number from 1 up, got {repeats!r}.")
    if not callable(function):
        raise InvalidInput(f"A sweep needs a function, got {function!r:.80}.")
    if not isinstance(check_seed(seed), int):
        raise InvalidInput(f"The seed of a sweep is a whole number from 0 up, got {seed!r:.80}.")


def _build_table(settings: list[Setting], repeats: int, finished: dict[Repetition, list[Row]]) -> Table:
    """Return the results in the order of the settings, whatever the order in which repetitions were finished."""
    return Table(
        {**setting, REPEAT: repeat, **row}
        for number, setting in enumerate(settings)
        for repeat in range(repeats)
        for row in finished[Repetition(number, repeat)]
    )
