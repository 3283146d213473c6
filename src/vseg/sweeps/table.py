"""A tidy table of plain values: the settings, the repeat, then what the trial returned."""

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

from vseg._support.seeds import check_seed
from vseg.errors import InvalidInput, NotFound

Row = dict[str, Any]
REPEAT = "repeat"
RESAMPLES = 2000
AT_ONCE = 2_000_000  # draws, of which a matrix is held in memory
WHOLE = re.compile(r"-?\d+")
NUMBER = re.compile(r"-?(\d+(\.\d*)?([eE][-+]?\d+)?|inf)|nan")
WORDS = {"": None, "True": True, "False": False}


class Table:
    """Rows of plain values, as `sweep` returns them: setting columns, `repeat`, result columns.

    Attributes
    ----------
    rows : list of dict
    columns : the names, in order; settings come before `repeat`, results after it

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
        """The names of the setting columns: those before `repeat`."""
        return self.columns[: self.columns.index(REPEAT)] if REPEAT in self.columns else ()

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.columns == other.columns and self.csv() == other.csv()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    def where(self, **values: Any) -> "Table":
        """The rows that have these values; there must be some.

        Examples
        --------
        >>> len(Table([{"blocks": 1, "repeat": 0}, {"blocks": 2, "repeat": 0}]).where(blocks=2))
        1
        """
        for name in values:
            self._check(name)
        wanted = [(name, _plain(value)) for name, value in values.items()]
        rows = [row for row in self.rows if all(row.get(name) == value for name, value in wanted)]
        if not rows:
            raise NotFound(self._nothing(values))
        return self._of(rows)

    def column(self, name: str, **where: Any) -> NDArray[Any]:
        """One column as an array, of the rows that have these values; a missing number is NaN.

        Examples
        --------
        >>> Table([{"repeat": 0, "error": 0.5}, {"repeat": 1, "error": None}]).column("error")
        array([0.5, nan])
        """
        self._check(name)
        rows = self.where(**where).rows if where else self.rows
        return _array([row.get(name) for row in rows])

    def groups(self, by: Sequence[str]) -> dict[tuple[Any, ...], "Table"]:
        """A table for each combination of values of these columns, in the order of their first rows."""
        parts: dict[tuple[Any, ...], list[Row]] = {}
        for name in by:
            self._check(name)
        for row in self.rows:
            parts.setdefault(tuple(row.get(name) for name in by), []).append(row)
        return {key: self._of(rows) for key, rows in parts.items()}

    def mean_interval(self, value: str, by: Sequence[str] = (), level: float = 0.95, *, seed: int) -> "Table":
        """Mean of a column in each group, with the percentile bootstrap's interval over trials.

        Trials are drawn anew, not rows: a trial that returned several rows of one group counts with their mean.

        Returns
        -------
        Table
            A row a group: the columns `by`, then `mean`, `low`, `high` and `count` (of trials).

        Examples
        --------
        >>> table = Table([{"repeat": r, "error": float(r % 2)} for r in range(100)])
        >>> [row] = table.mean_interval("error", seed=0).rows
        >>> row["mean"], row["count"], 0.35 < row["low"] < 0.45 < row["high"] < 0.65
        (0.5, 100, True)
        """
        if not 0 < level < 1:
            raise InvalidInput(f"The level of an interval lies between 0 and 1, got {level!r}.")
        found = self._trial_means(value, by)
        intervals = _bootstrap(list(found.values()), level, check_seed(seed))
        return Table(
            {
                **dict(zip(by, key, strict=True)),
                "mean": float(values.mean()),
                "low": low,
                "high": high,
                "count": len(values),
            }
            for (key, values), (low, high) in zip(found.items(), intervals, strict=True)
        )

    def _trial_means(self, value: str, by: Sequence[str]) -> dict[tuple[Any, ...], NDArray[np.float64]]:
        for name in (value, *by):
            self._check(name)
        trial = (*self.settings, REPEAT)
        groups: dict[tuple[Any, ...], dict[tuple[Any, ...], list[float]]] = {}
        for row in self.rows:
            number = row.get(value)
            if isinstance(number, (str, tuple)):
                raise InvalidInput(f"Column {value} holds {number!r}, which has no mean.")
            values = groups.setdefault(tuple(row.get(name) for name in by), {})
            one = values.setdefault(tuple(row.get(name) for name in trial), [])
            one.append(math.nan if number is None else float(number))
        return {
            key: np.array([sum(one) / len(one) for one in values.values()]) for key, values in groups.items()
        }

    def csv(self) -> str:
        """The table as CSV text; `load` reads every value back as it was."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_written(row.get(name)) for name in self.columns] for row in self.rows)
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
        return cls(dict(zip(header, map(_read, row), strict=True)) for row in rows)

    def _of(self, rows: list[Row]) -> "Table":
        """Some of our rows, under the same columns."""
        table = Table(())
        table.rows, table.columns = rows, self.columns
        return table

    def _check(self, name: str) -> None:
        if name not in self.columns:
            raise NotFound(f"No column {name!r}; the table has {', '.join(self.columns) or 'no rows'}.")

    def _nothing(self, values: Mapping[str, Any]) -> str:
        wanted = ", ".join(f"{name}={value!r}" for name, value in values.items())
        known = (f"{name}: {_some(self._distinct(name))}" for name in values)
        return f"No row has {wanted}; the table has {'; '.join(known)}."

    def _distinct(self, name: str) -> list[str]:
        return list(dict.fromkeys(repr(row.get(name)) for row in self.rows))


def _columns(rows: list[Row]) -> tuple[str, ...]:
    """Every name once: settings of any row, the repeat, results of any row."""
    before: dict[str, None] = {}
    after: dict[str, None] = {}
    for names in dict.fromkeys(map(tuple, rows)):
        at = names.index(REPEAT) if REPEAT in names else 0
        before.update(dict.fromkeys(names[:at]))
        after.update(dict.fromkeys(names[at:]))
    return (*before, *after)


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def _some(values: list[str]) -> str:
    return ", ".join(values[:8]) + (f" and {len(values) - 8} more" if len(values) > 8 else "")


def _array(values: list[Any]) -> NDArray[Any]:
    kinds = {type(value) for value in values}
    if type(None) in kinds and kinds <= {type(None), int, float, bool}:
        return np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    if kinds <= {int, float, bool} or kinds == {str}:
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _bootstrap(groups: list[NDArray[np.float64]], level: float, seed: int) -> list[tuple[float, float]]:
    """The interval of each group's mean; groups of one size share their draws, so it is one product of matrices."""
    intervals = [(math.nan, math.nan)] * len(groups)
    tails = [(1 - level) / 2, (1 + level) / 2]
    for size in {len(values) for values in groups}:
        members = [number for number, values in enumerate(groups) if len(values) == size]
        values = np.stack([groups[number] for number in members], axis=1)
        several = max(1, min(RESAMPLES, AT_ONCE // size))
        means = np.concatenate(
            [
                _times(size, min(several, RESAMPLES - at), seed, at) @ values
                for at in range(0, RESAMPLES, several)
            ]
        )
        for number, (low, high) in zip(members, np.quantile(means, tails, axis=0).T.tolist(), strict=True):
            intervals[number] = (low, high)
    return intervals


@lru_cache(maxsize=2)
def _times(size: int, resamples: int, seed: int, at: int) -> NDArray[np.float64]:
    """(resamples, size) how often each of `size` trials is drawn, as shares."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(size, at)))
    drawn = rng.integers(size, size=(resamples, size)) + size * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=resamples * size).reshape(resamples, size) / size


def _written(value: Any) -> str:
    """A cell; words that would be read as something else, or hold more than a line, are written as JSON."""
    if isinstance(value, str):
        as_it_is = value.isprintable() and _read(value) == value
        return value if as_it_is else json.dumps(value)
    if isinstance(value, (tuple, list)):
        return json.dumps(value)
    return "" if value is None else repr(value)


def _read(cell: str) -> Any:
    if cell in WORDS:
        return WORDS[cell]
    if WHOLE.fullmatch(cell):
        return int(cell)
    if NUMBER.fullmatch(cell):
        return float(cell)
    if cell[0] in '["':
        try:
            return _plain(json.loads(cell))
        except json.JSONDecodeError:
            return cell
    return cell
