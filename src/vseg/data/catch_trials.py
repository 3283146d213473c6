"""Catch trials, which have an obvious answer: how many each participant answered correctly, and what follows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.data.dataset import Dataset
from vseg.data.file_reading import read_rows

REQUIRED_COLUMNS = ("participant", "catch", "correct")
TRUE, FALSE = ("1", "true", "1.0"), ("0", "false", "0.0")

CatchTrials = Mapping[str, tuple[int, int]]
"""Catch trials answered correctly, and all, of each participant of a data set who had some."""


def choose_lapses(catch: CatchTrials) -> Literal["estimate"] | None:
    """Return how a posterior treats lapses unless it is told: it estimates them if the data set has catch trials.

    Every route from answers to a posterior asks this function, so that all give the same result.
    """
    return "estimate" if any(asked for _, asked in catch.values()) else None


def is_scored(is_flagged: ArrayLike) -> NDArray[np.bool_]:
    """Return which answers to trials with a known answer are scored: those to trials that were shown without flags.

    This is the rule for catch and practice trials everywhere: in fits, in the export and on the dashboard.
    """
    return np.logical_not(np.asarray(is_flagged, np.bool_))


def sum_catch_trials(catch: CatchTrials, participants: Iterable[str]) -> tuple[int, int] | None:
    """Add up the catch trials of some participants, correct and all; None if they had none.

    Examples
    --------
    >>> sum_catch_trials({"P1": (19, 20), "P2": (20, 20)}, ["P1", "P2", "P3"])
    (39, 40)
    """
    counts = [catch[name] for name in participants if name in catch]
    return (sum(correct for correct, _ in counts), sum(asked for _, asked in counts)) if counts else None


def count_catch_trials(path: str | Path) -> dict[str, tuple[int, int]]:
    """Count the catch trials of each participant, for the parameter `catch` of `vseg.posteriors`.

    Trials whose presentation failed do not count. A table without the columns `catch` and `correct` has none.

    Parameters
    ----------
    path : str or Path
        A folder written by `vseg export` or `vseg import`, or a CSV or Parquet file from such a folder.

    Returns
    -------
    dict of str to (int, int)
        The number of correct answers and of catch trials, for each participant with catch trials.

    Examples
    --------
    >>> count_catch_trials("exported")  # doctest: +SKIP
    {'P1': (19, 20), 'P2': (20, 20)}
    """
    path = Path(path)
    tables = Dataset(path).response_tables if path.is_dir() else [path]
    total: Counter[str] = Counter()
    correct: Counter[str] = Counter()
    for table in tables:
        rows = read_rows(table, (*REQUIRED_COLUMNS, "flags"), required=REQUIRED_COLUMNS)
        for participant, is_correct in _find_catch_trials(rows):
            total[participant] += 1
            correct[participant] += is_correct
    return {participant: (correct[participant], total[participant]) for participant in sorted(total)}


def _find_catch_trials(rows: Iterable[dict[str, str]]) -> Iterator[tuple[str, bool]]:
    """Yield the participant and whether the answer was correct, for each catch trial without flags."""
    for row in rows:
        catch, correct = (str(row[name]).strip().lower() for name in ("catch", "correct"))
        if catch in TRUE and correct in TRUE + FALSE and is_scored(bool(row.get("flags"))):
            yield str(row["participant"]), correct in TRUE
