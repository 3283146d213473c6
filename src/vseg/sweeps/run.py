"""sweep(): a function, its settings, repeats and a seed; the place of work is an argument."""

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from vseg._support.seeds import check_seed
from vseg.errors import InvalidInput
from vseg.sweeps.checkpoint import Kept
from vseg.sweeps.executors import workers
from vseg.sweeps.scheduler import Dealing
from vseg.sweeps.table import REPEAT, Row, Table
from vseg.sweeps.trials import Function, Setting, Settings, Trial, grid
from vseg.sweeps.workers import Place


def sweep(
    function: Function,
    settings: Settings,
    *,
    repeats: int,
    seed: int,
    executor: str | Executor | Place | None = None,
    kept: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Table:
    """Run a function `repeats` times at each setting, each time with a seed of its own.

    The numbers depend on the function, the settings and the seed alone, not on where the work is done, by how many, or
    in how many runs; more repeats or settings added at the end leave those of the others as they were.

    Parameters
    ----------
    function : callable
        `function(**setting, seed=int)` returns a dict of numbers and words, or a list of such dicts. For processes and
        Dask, defined with `def` at the top level of a file.
    settings : mapping or sequence of mappings
        A list of values by name, of which every combination is taken; or the settings one by one.
    executor
        None: here, one after the other. "threads", "processes", either with ":N" (otherwise as many as there are
        cores), "dask://HOST:PORT", any `concurrent.futures.Executor`, or what `workers` opened, to be used again.
    kept : path, optional
        A folder for finished trials: a run that was cut short goes on from there, and more repeats add to it.
    progress : callable, optional
        Called with the number of trials finished since the last call; first with those found in `kept`.

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
    one_by_one = grid(settings)
    _check(function, repeats, seed)
    finished: dict[Trial, list[Row]] = {}
    with ExitStack() as open_things:
        store = None
        if kept is not None:
            store = open_things.enter_context(Kept(Path(kept), function, one_by_one, int(seed)))
            finished = {trial: rows for trial, rows in store.found.items() if trial.repeat < repeats}
        if finished and progress:
            progress(len(finished))
        order = (Trial(number, repeat) for repeat in range(repeats) for number in range(len(one_by_one)))
        left = [trial for trial in order if trial not in finished]
        if left:
            place = open_things.enter_context(workers(executor))
            for landed in Dealing(place, function, one_by_one, left, int(seed)):
                if store:
                    store.add(landed)
                finished.update((done.trial, done.rows) for done in landed)
                if landed and progress:
                    progress(len(landed))
    return _table(one_by_one, repeats, finished)


def _check(function: Function, repeats: int, seed: int) -> None:
    if not isinstance(repeats, (int, np.integer)) or isinstance(repeats, bool) or repeats < 1:
        raise InvalidInput(f"The number of repeats is a whole number from 1 up, got {repeats!r}.")
    if not callable(function):
        raise InvalidInput(f"A sweep needs a function, got {function!r:.80}.")
    if not isinstance(check_seed(seed), int):
        raise InvalidInput(f"The seed of a sweep is a whole number from 0 up, got {seed!r:.80}.")


def _table(settings: list[Setting], repeats: int, finished: dict[Trial, list[Row]]) -> Table:
    """In the order of the settings, whatever the order in which trials were finished."""
    return Table(
        {**setting, REPEAT: repeat, **row}
        for number, setting in enumerate(settings)
        for repeat in range(repeats)
        for row in finished[Trial(number, repeat)]
    )
