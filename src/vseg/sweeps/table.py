"""A tidy table of plain values: the settings, the repeat, then what the repetitions returned."""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg._support.confidence import check_confidence, interval_quantiles
from vseg._support.seeds import check_seed
from vseg.errors import InvalidInput, NotFound

Row = dict[str, Any]
REPEAT = "repeat"
RESAMPLES = 2000
MAX_DRAWS_IN_MEMORY = 2_000_000
INTEGER = re.compile(r"-?\d+")
NUMBER = re.compile(r"-?(\d+(\.\d*)?([eE][-+]?\d+)?|inf)|nan")
CONSTANTS = {"": None, "True": True, "False": False}


class Table:
    """Rows of plain values, as `sweep` returns them: setting columns, `repeat`, result columns.

    Parameters
    ----------
    rows : iterable of mappings
        The rows, each from column names to values.

    Attributes
    ----------
    rows : list of dict
        The rows.
    columns : tuple of str
        The names of the columns: settings, then `repeat`, then results.

    Examples
    --------
    >>> table = Table([{"blocks": b, "repeat": r, "error": b + r} for b in (1, 2) for r in range(3)])
    >>> table.column("error", blocks=2)
    array([2, 3, 4])
    >>> print(table.where(repeat=0).csv())
    blocks,repeat,error
    1,0,1
    2,0,2
    <BLANKLINE>
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]):
        self.rows: list[Row] = [dict(row) for row in rows]
        self.columns: tuple[str, ...] = _columns(self.rows)

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the setting columns: those before `repeat`."""
        return self.columns[: self.columns.index(REPEAT)] if REPEAT in self.columns else ()

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.columns == other.columns and self.csv() == other.csv()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    def where(self, **values: Any) -> "Table":
        """Return the rows that have these values; raise `NotFound` if there are none.

        Parameters
        ----------
        **values
            A value for each of some columns.

        Examples
        --------
        >>> len(Table([{"blocks": 1, "repeat": 0}, {"blocks": 2, "repeat": 0}]).where(blocks=2))
        1
        """
        for name in values:
            self._check_column(name)
        wanted = [(name, _to_tuples(value)) for name, value in values.items()]
        rows = [row for row in self.rows if all(row.get(name) == value for name, value in wanted)]
        if not rows:
            raise NotFound(self._describe_missing(values))
        return self._with_rows(rows)

    def column(self, name: str, **where: Any) -> NDArray[Any]:
        """Return one column as an array; a missing number is NaN.

        Parameters
        ----------
        name : str
            The column.
        **where
            Values that the rows must have, as for `where`.

        Examples
        --------
        >>> Table([{"repeat": 0, "error": 0.5}, {"repeat": 1, "error": None}]).column("error")
        array([0.5, nan])
        """
        self._check_column(name)
        rows = self.where(**where).rows if where else self.rows
        return _to_array([row.get(name) for row in rows])

    def groups(self, by: Sequence[str]) -> dict[tuple[Any, ...], "Table"]:
        """Return a table for each combination of values of these columns, in the order of their first rows."""
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for name in by:
            self._check_column(name)
        for row in self.rows:
            groups.setdefault(tuple(row.get(name) for name in by), []).append(row)
        return {key: self._with_rows(rows) for key, rows in groups.items()}

    def mean_interval(self, value: str, by: Sequence[str] = (), level: float = 0.95, *, seed: int) -> "Table":
        """Return the mean of a column in each group, with a percentile bootstrap interval over repetitions.

        Repetitions are resampled, not rows: one that returned several rows of a group counts with their mean.

        Parameters
        ----------
        value : str
            The column.
        by : sequence of str
            The columns whose combinations of values are the groups.
        level : float
            Confidence level of the interval.
        seed : int
            Seed of the bootstrap.

        Returns
        -------
        Table
            A row for each group: the columns `by`, then `mean`, `low`, `high` and `count` (of repetitions).

        Examples
        --------
        >>> table = Table([{"repeat": r, "error": float(r % 2)} for r in range(100)])
        >>> [row] = table.mean_interval("error", seed=0).rows
        >>> row["mean"], row["count"], 0.35 < row["low"] < 0.45 < row["high"] < 0.65
        (0.5, 100, True)
        """
        check_confidence(level)
        repetition_means = self._repetition_means(value, by)
        intervals = _bootstrap(list(repetition_means.values()), level, check_seed(seed))
        return Table(
            {
                **dict(zip(by, key, strict=True)),
                "mean": float(values.mean()),
                "low": low,
                "high": high,
                "count": len(values),
            }
            for (key, values), (low, high) in zip(repetition_means.items(), intervals, strict=True)
        )

    def _repetition_means(self, value: str, by: Sequence[str]) -> dict[tuple[Any, ...], NDArray[np.float64]]:
        for name in (value, *by):
            self._check_column(name)
        repetition_columns = (*self.settings, REPEAT)
        groups: dict[tuple[Any, ...], dict[tuple[Any, ...], list[float]]] = {}
        for row in self.rows:
            number = row.get(value)
            if isinstance(number, (str, tuple)):
                raise InvalidInput(f"Column {value} holds {number!r}, which has no mean.")
            repetitions = groups.setdefault(tuple(row.get(name) for name in by), {})
            values = repetitions.setdefault(tuple(row.get(name) for name in repetition_columns), [])
            values.append(math.nan if number is None else float(number))
        return {
            key: np.array([sum(values) / len(values) for values in repetitions.values()])
            for key, repetitions in groups.items()
        }

    def csv(self) -> str:
        """Return the table as CSV text; `load` reads every value back with its type."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_format_cell(row.get(name)) for name in self.columns] for row in self.rows)
        return text.getvalue()

    def save(self, path: str | Path) -> None:
        """Write the table as a CSV file."""
        Path(path).write_text(self.csv(), encoding="utf-8", newline="")

    @classmethod
    def load(cls, path: str | Path) -> "Table":
        """Read a table that `save` wrote."""
        path = Path(path)
        if not path.is_file():
            raise NotFound(f"No file {path}; expected a table that Table.save wrote.")
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            rows = list(filter(None, reader))
        if any(len(row) != len(header) for row in rows):
            raise InvalidInput(f"{path} has rows that are longer or shorter than its header.")
        return cls(dict(zip(header, map(_parse_cell, row), strict=True)) for row in rows)

    def _with_rows(self, rows: list[Row]) -> "Table":
        """Return a table of some of the rows, with the same columns."""
        table = Table(())
        table.rows, table.columns = rows, self.columns
        return table

    def _check_column(self, name: str) -> None:
        if name not in self.columns:
            raise NotFound(f"No column {name!r}; the table has {', '.join(self.columns) or 'no rows'}.")

    def _describe_missing(self, values: Mapping[str, Any]) -> str:
        wanted = ", ".join(f"{name}={value!r}" for name, value in values.items())
        present = (f"{name}: {_shorten(self._distinct(name))}" for name in values)
        return f"No row has {wanted}; the table has {'; '.join(present)}."

    def _distinct(self, name: str) -> list[str]:
        return list(dict.fromkeys(repr(row.get(name)) for row in self.rows))


def _columns(rows: list[Row]) -> tuple[str, ...]:
    """Return every name once: the settings of all rows, `repeat`, the results of all rows."""
    settings: dict[str, None] = {}
    results: dict[str, None] = {}
    for names in dict.fromkeys(map(tuple, rows)):
        position = names.index(REPEAT) if REPEAT in names else 0
        settings.update(dict.fromkeys(names[:position]))
        results.update(dict.fromkeys(names[position:]))
    return (*settings, *results)


def _to_tuples(value: Any) -> Any:
    return tuple(map(_to_tuples, value)) if isinstance(value, list) else value


def _shorten(values: list[str]) -> str:
    return ", ".join(values[:8]) + (f" and {len(values) - 8} more" if len(values) > 8 else "")


def _to_array(values: list[Any]) -> NDArray[Any]:
    types = {type(value) for value in values}
    if type(None) in types and types <= {type(None), int, float, bool}:
        return np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    if types <= {int, float, bool} or types == {str}:
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _bootstrap(groups: list[NDArray[np.float64]], level: float, seed: int) -> list[tuple[float, float]]:
    """Return the interval of each group's mean; groups of one size share their draws, as one matrix product."""
    intervals = [(math.nan, math.nan)] * len(groups)
    tails = interval_quantiles(level)
    for size in {len(values) for values in groups}:
        members = [number for number, values in enumerate(groups) if len(values) == size]
        values = np.stack([groups[number] for number in members], axis=1)
        batch = max(1, min(RESAMPLES, MAX_DRAWS_IN_MEMORY // size))
        means = np.concatenate(
            [
                _resampling_weights(size, min(batch, RESAMPLES - start), seed, start) @ values
                for start in range(0, RESAMPLES, batch)
            ]
        )
        for number, (low, high) in zip(members, np.quantile(means, tails, axis=0).T.tolist(), strict=True):
            intervals[number] = (low, high)
    return intervals


@lru_cache(maxsize=2)
def _resampling_weights(size: int, resamples: int, seed: int, start: int) -> NDArray[np.float64]:
    """Return how often each of `size` repetitions is drawn in each resample, as shares (resamples, size)."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(size, start)))
    draws = rng.integers(size, size=(resamples, size)) + size * np.arange(resamples)[:, None]
    return np.bincount(draws.ravel(), minlength=resamples * size).reshape(resamples, size) / size


def _format_cell(value: Any) -> str:
    """Return the text of a cell; strings that would be read as something else are written as JSON."""
    if isinstance(value, str):
        is_unambiguous = value.isprintable() and _parse_cell(value) == value
        return value if is_unambiguous else json.dumps(value)
    if isinstance(value, (tuple, list)):
        return json.dumps(value)
    return "" if value is None else repr(value)


def _parse_cell(cell: str) -> Any:
    if cell in CONSTANTS:
        return CONSTANTS[cell]
    if INTEGER.fullmatch(cell):
        return int(cell)
    if NUMBER.fullmatch(cell):
        return float(cell)
    if cell[0] in '["':
        try:
            return _to_tuples(json.loads(cell))
        except json.JSONDecodeError:
            return cell
    return cell
