"""Catch trials, whose answer is obvious: how many of them everyone answered right."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from vseg.data.dataset import Dataset
from vseg.data.file_reading import (
    distinct_cells,
    guess_delimiter,
    read_parquet,
    translate_csv_errors,
    translate_parquet_errors,
)

NEEDED = ("participant", "catch", "correct")
TRUE, FALSE = ("1", "true", "1.0"), ("0", "false", "0.0")


def count_catch_trials(path: str | Path) -> dict[str, tuple[int, int]]:
    """(right, asked) of each participant who had catch trials: what `vseg.posteriors` takes as `catch`.

    Trials that were not shown right do not count. A table without the columns `catch` and `correct` has none.

    Parameters
    ----------
    path : a folder written by `vseg export` or `vseg import`, or a CSV or Parquet file of one

    Examples
    --------
    >>> catch_trials("exported")  # doctest: +SKIP
    {'P1': (19, 20), 'P2': (20, 20)}
    """
    path = Path(path)
    tables = Dataset(path).response_tables if path.is_dir() else [path]
    asked: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for table in tables:
        for who, correct in _caught(_parquet(table) if table.suffix == ".parquet" else _csv(table)):
            asked[who] += 1
            right[who] += correct
    return {who: (right[who], asked[who]) for who in sorted(asked)}


def _caught(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[str, bool]]:
    """Who, and whether they were right, at each catch trial that was shown as it should be."""
    for row in rows:
        catch, correct = (str(row[name]).strip().lower() for name in ("catch", "correct"))
        if catch in TRUE and correct in TRUE + FALSE and not row.get("flags"):
            yield str(row["participant"]), correct in TRUE


def _csv(path: Path) -> Iterator[dict[str, Any]]:
    """Its rows, if it has the columns; with the comma, or what spreadsheets write for it."""
    with translate_csv_errors(path), open(path, newline="", encoding="utf-8-sig") as file:
        header = file.readline()
        delimiter = guess_delimiter(header)
        names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
        if set(NEEDED) <= set(names):
            yield from csv.DictReader(file, names, delimiter=delimiter)


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    """Likewise; rows share the text of a cell."""
    with translate_parquet_errors(path):
        table = read_parquet(path, _wanted)
        columns = {name: distinct_cells(table[name]) for name in table.column_names}
    for row in zip(*(map(cells.__getitem__, code) for cells, code in columns.values()), strict=True):
        yield dict(zip(columns, row, strict=True))


def _wanted(names: list[str]) -> list[str]:
    return [name for name in (*NEEDED, "flags") if name in names] if set(NEEDED) <= set(names) else []
