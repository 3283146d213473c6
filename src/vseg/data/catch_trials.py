"""Catch trials, which have an obvious answer: how many each participant answered correctly, and what follows."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from vseg.data.dataset import Dataset
from vseg.data.file_reading import (
    distinct_cells,
    guess_delimiter,
    read_parquet,
    translate_csv_errors,
    translate_parquet_errors,
)

REQUIRED_COLUMNS = ("participant", "catch", "correct")
TRUE, FALSE = ("1", "true", "1.0"), ("0", "false", "0.0")

CatchTrials = Mapping[str, tuple[int, int]]
"""Catch trials answered correctly, and all, of each participant of a data set who had some."""


def choose_lapses(catch: CatchTrials) -> Literal["estimate"] | None:
    """Return how a posterior treats lapses unless it is told: it estimates them if the data set has catch trials.

    Every route from answers to a posterior asks this function, so that all give the same result.
    """
    return "estimate" if any(asked for _, asked in catch.values()) else None


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
        rows = _read_parquet_rows(table) if table.suffix == ".parquet" else _read_csv_rows(table)
        for participant, is_correct in _find_catch_trials(rows):
            total[participant] += 1
            correct[participant] += is_correct
    return {participant: (correct[participant], total[participant]) for participant in sorted(total)}


def _find_catch_trials(rows: Iterable[dict[str, str]]) -> Iterator[tuple[str, bool]]:
    """Yield the participant and whether the answer was correct, for each catch trial without flags."""
    for row in rows:
        catch, correct = (str(row[name]).strip().lower() for name in ("catch", "correct"))
        if catch in TRUE and correct in TRUE + FALSE and not row.get("flags"):
            yield str(row["participant"]), correct in TRUE


def _read_csv_rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file; none if it lacks a required column."""
    with translate_csv_errors(path), open(path, newline="", encoding="utf-8-sig") as file:
        header = file.readline()
        delimiter = guess_delimiter(header)
        names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
        if set(REQUIRED_COLUMNS) <= set(names):
            yield from csv.DictReader(file, names, delimiter=delimiter)


def _read_parquet_rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a Parquet file; none if it lacks a required column."""
    with translate_parquet_errors(path):
        table = read_parquet(path, _choose_columns)
        columns = {name: distinct_cells(table[name]) for name in table.column_names}
    for row in zip(*(map(cells.__getitem__, code) for cells, code in columns.values()), strict=True):
        yield dict(zip(columns, row, strict=True))


def _choose_columns(names: list[str]) -> list[str]:
    return (
        [name for name in (*REQUIRED_COLUMNS, "flags") if name in names]
        if set(REQUIRED_COLUMNS) <= set(names)
        else []
    )
