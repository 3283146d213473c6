"""Reading tables of responses: CSV or Parquet, checked cell by cell, with a sentence that names the line.

A file needs the columns `i`, `j` and `same`; the other columns of `Responses` are read where they are there, and
any further ones are passed over. Where there is a column `used`, as in what `vseg export` writes, only its rows
with 1 are taken: practice, catch trials and answers that were asked for again are in the file, but do not count.
"""

import csv
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.data.file_reading import (
    check_unique_columns,
    distinct_cells,
    guess_delimiter,
    read_parquet,
    translate_csv_errors,
    translate_parquet_errors,
)
from vseg.data.layout import Layout, as_read_only
from vseg.data.responses import COLUMNS, LONGEST_NAME, Responses, import_pyarrow
from vseg.errors import InvalidInput, NotFound

REQUIRED = ("i", "j", "same")
CHUNK_ROWS = 2048
CHARACTER_BYTES = np.dtype("U1").itemsize
LARGEST_NAMES = 2**31  # bytes of a column of names: fifty characters in each of ten million rows
TRUTH = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}


def load(path: str | Path, layout: Layout | None = None) -> Responses:
    """Read responses: a CSV or Parquet file with its layout, or a folder written by `vseg export`, which knows it.

    Names are taken as they are, spaces included; around numbers, spaces do not matter.

    Examples
    --------
    >>> responses = load("responses.csv", Grid(16))  # doctest: +SKIP
    >>> responses = load("exported")  # doctest: +SKIP
    """
    path = Path(path)
    if path.is_dir():
        return _exported(path, layout)
    if not path.is_file():
        raise missing_data_error(path)
    if not isinstance(layout, Layout):
        raise InvalidInput(f"The locations of a file need a layout such as vseg.Grid(16), got {layout!r}.")
    return Responses(layout, **_counting(path, layout))


def _exported(folder: Path, layout: Layout | None) -> Responses:
    """The answers of all sessions: from the one Parquet file where it can be read, else from the tables."""
    from vseg.data.dataset import Dataset, check_layout

    dataset = Dataset(folder)
    layout = check_layout(dataset, layout)
    if dataset.parquet_file.is_file() and find_spec("pyarrow") is not None:
        parts = [_counting(dataset.parquet_file, layout, may_be_empty=True)]
    else:
        parts = [_counting(table, layout, may_be_empty=True) for table in dataset.response_tables]
        _check_alike(dataset.response_tables, parts)
    if not any(len(part["i"]) for part in parts):
        raise InvalidInput(
            f"{folder} holds no responses that count; expected some rows with used = 1 in data/."
        )
    return Responses(layout, **{name: _together(folder, name, parts) for name in parts[0]})


def _check_alike(tables: Sequence[Path], parts: Sequence[dict[str, NDArray[Any]]]) -> None:
    for table, part in zip(tables, parts, strict=True):
        if odd := sorted(part.keys() ^ parts[0].keys()):
            has, lacks = (table, tables[0]) if odd[0] in part else (tables[0], table)
            raise InvalidInput(
                f"{has} has the column {odd[0]!r}, but {lacks} has not; expected the same in both."
            )


def _together(folder: Path, name: str, parts: Sequence[dict[str, NDArray[Any]]]) -> NDArray[Any]:
    """One column of all tables; names are as wide as the longest of any."""
    columns = [part[name] for part in parts]
    if name not in READERS:
        width = max(column.itemsize for column in columns) // CHARACTER_BYTES
        _check_width(folder, name, sum(map(len, columns)), width)
    return columns[0] if len(columns) == 1 else as_read_only(np.concatenate(columns))


def _counting(path: Path, layout: Layout, *, may_be_empty: bool = False) -> dict[str, NDArray[Any]]:
    """The columns of one file, of those rows that count."""
    columns = _parquet_columns(path) if path.suffix == ".parquet" else _csv_columns(path)
    rows = np.arange(len(columns["i"]))
    if (used := columns.pop("used", None)) is not None:
        rows = np.flatnonzero(used)
        columns = {name: values[rows] for name, values in columns.items()}
    if not len(rows) and not may_be_empty:
        raise InvalidInput(
            f"{path} holds no responses{' with used = 1' * (used is not None)}; expected a row a trial."
        )
    if len(rows):
        _check_locations(path, layout, rows, columns["i"], columns["j"])
    return columns


def missing_data_error(path: Path) -> NotFound:
    """What to say where neither a table nor a folder is."""
    return NotFound(
        f"No file or folder {path}; expected a CSV or Parquet file with the columns {', '.join(REQUIRED)}, "
        "or a folder that vseg export wrote."
    )


def _csv_columns(path: Path) -> dict[str, NDArray[Any]]:
    """Each column as an array, read some rows at a time so that few cells are held as text."""
    with translate_csv_errors(path), open(path, newline="", encoding="utf-8-sig") as file:
        rows = filter(None, csv.reader(file, delimiter=_delimiter(path)))
        header = [name.strip() for name in next(rows, [])]
        if not header:
            raise InvalidInput(f"{path} is empty; expected a header with the columns {', '.join(REQUIRED)}.")
        index, done = {name: header.index(name) for name in _present(path, header)}, 0
        parts: dict[str, list[NDArray[Any]]] = {name: [] for name in index}
        code_of: dict[str, dict[str, int]] = {name: {} for name in index}
        while chunk := list(islice(rows, CHUNK_ROWS)):
            _check_widths(path, done, chunk, len(header))
            cells = list(zip(*chunk, strict=False))
            for name, at in index.items():
                parts[name].append(
                    _numbers(path, name, cells[at], done)
                    if name in MANY_VALUED
                    else _codes(cells[at], code_of[name])
                )
            done += len(chunk)
    whole = {name: np.concatenate(parts[name] or [np.zeros(0, np.int64)]) for name in index}
    return {
        name: values if name in MANY_VALUED else _read(path, name, list(code_of[name]), values)
        for name, values in whole.items()
    }


def _delimiter(path: Path) -> str:
    with open(path, newline="", encoding="utf-8-sig") as file:
        return guess_delimiter(file.readline())


def _check_widths(path: Path, done: int, rows: list[list[str]], width: int) -> None:
    """A row may end in empty cells beyond the header, as spreadsheets write them."""
    if set(map(len, rows)) == {width}:
        return
    for number, row in enumerate(rows):
        if len(row) < width or any(row[width:]):
            line = _line(path, done + number)
            raise InvalidInput(f"{path}, line {line}: {len(row)} cells, but the header has {width} columns.")


def _parquet_columns(path: Path) -> dict[str, NDArray[Any]]:
    """Each column as an array; numbers as Arrow holds them, anything else through its distinct values."""
    with translate_parquet_errors(path):
        table = read_parquet(path, lambda names: _present(path, names))
        return {name: _arrow_values(path, name, table[name]) for name in table.column_names}


def _arrow_values(path: Path, name: str, column: Any) -> NDArray[Any]:
    types = import_pyarrow().types
    numeric = types.is_integer(column.type) or types.is_floating(column.type) or types.is_boolean(column.type)
    if numeric and name in TYPES and (name == "rt_ms" or not column.null_count):
        values = column.to_numpy()
        if _fits(name, values):
            return values.astype(TYPES[name])
    return _read(path, name, *distinct_cells(column))


def _check_locations(
    path: Path, layout: Layout, rows: NDArray[np.int64], i: NDArray[np.int64], j: NDArray[np.int64]
) -> None:
    n, smallest, largest = len(layout), min(i.min(), j.min()), max(i.max(), j.max())
    if largest >= n:
        row = int(np.argmax((i >= n) | (j >= n)))
        advice = (
            f"the file's locations are 1..{n}, but they count from 0: take 1 off each"
            if (smallest, largest) == (1, n)
            else "give the --grid that was used (locations count from 0)"
        )
        raise InvalidInput(
            f"{path}, line {_line(path, int(rows[row]))}: location {max(i[row], j[row])} is outside {layout}, "
            f"whose locations are 0..{n - 1}; {advice}."
        )
    if (i == j).any():
        row = int(np.argmax(i == j))
        raise InvalidInput(
            f"{path}, line {_line(path, int(rows[row]))}: i and j are both location {i[row]}, but a pair joins two "
            "different locations; correct the row or leave it out."
        )


def _line(path: Path, row: int) -> int:
    """Where a row of a CSV file ends, from a second look at the file; of a Parquet file, its number from 1."""
    if path.suffix == ".parquet":
        return row + 1
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=_delimiter(path))
        next(islice(filter(None, reader), row + 1, None))
        return reader.line_num


def _present(path: Path, names: list[str]) -> list[str]:
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise InvalidInput(
            f"{path} has no column {', '.join(map(repr, missing))}; expected {', '.join(REQUIRED)}, "
            f"found {_short(', '.join(names), 400)}."
        )
    present = [name for name in (*COLUMNS, "used") if name in names]
    check_unique_columns(path, names, present)
    return present


def _short(text: str, most: int = 80) -> str:
    """A cell whose quotation mark never ends is the rest of the file."""
    return text if len(text) <= most else f"{text[:most]}…"


def _codes(cells: Sequence[str], code_of: dict[str, int]) -> NDArray[np.int32]:
    """Which of the distinct cells each row holds; new ones are added to them."""
    try:
        return np.fromiter(map(code_of.__getitem__, cells), np.int32, len(cells))
    except KeyError:
        for cell in dict.fromkeys(cells):
            code_of.setdefault(cell, len(code_of))
        return np.fromiter(map(code_of.__getitem__, cells), np.int32, len(cells))


def _numbers(path: Path, name: str, cells: Sequence[str], done: int) -> NDArray[Any]:
    """All at once where the cells are plain numbers, else each distinct one by itself."""
    try:
        plain = cells if all(cells) else [cell or "nan" for cell in cells]
        values = np.fromiter(map(float, plain), np.float64, len(plain))
    except ValueError:
        values = np.array([-1.0])
    if _fits(name, values):
        return values.astype(TYPES[name])
    code_of: dict[str, int] = {}
    code = _codes(cells, code_of)
    return _read(path, name, list(code_of), code, done)


def _read(path: Path, name: str, distinct: list[str], code: NDArray[Any], done: int = 0) -> NDArray[Any]:
    """Each distinct cell is read once; of those that cannot be, the first is named with its line."""
    if name not in READERS:
        _check_names(path, name, distinct, code)
        return as_read_only(np.array(distinct, dtype=np.str_)[code])
    read, refused = [], {}
    for number, cell in enumerate(distinct):
        try:
            read.append(READERS[name](cell.strip()))
        except ValueError as error:
            read.append(0)
            refused[number] = str(error)
    if refused:
        row = int(np.argmax(np.isin(code, list(refused))))
        cell, expected = distinct[code[row]].strip(), refused[int(code[row])]
        raise InvalidInput(
            f"{path}, line {_line(path, done + row)}: column {name} is {_short(repr(cell))}; expected {expected}."
        )
    return np.array(read, dtype=TYPES[name])[code]


def _check_names(path: Path, name: str, distinct: list[str], code: NDArray[Any]) -> None:
    """Before there is an array, which is as wide as the longest name in every row."""
    too_long = [number for number, cell in enumerate(distinct) if len(cell) > LONGEST_NAME]
    if too_long:
        row = int(np.argmax(np.isin(code, too_long)))
        cell = distinct[code[row]]
        raise InvalidInput(
            f"{path}, line {_line(path, row)}: column {name} is {_short(repr(cell))}, a name of {len(cell)} "
            f"characters; expected at most {LONGEST_NAME}: shorten it."
        )
    _check_width(path, name, len(code), max(map(len, distinct), default=0))


def _check_width(path: Path, name: str, rows: int, longest: int) -> None:
    if rows * longest * CHARACTER_BYTES > LARGEST_NAMES:
        raise InvalidInput(
            f"{path}: column {name} has {rows} rows and a name of {longest} characters; in so many rows, expected at "
            f"most {LARGEST_NAMES // CHARACTER_BYTES // rows}: shorten the longest, or divide the rows."
        )


def _fits(name: str, values: NDArray[Any]) -> bool:
    """Whether these numbers are what the column holds, so that no cell needs a closer look."""
    if name in ("same", "used"):
        return bool(((values == 0) | (values == 1)).all())
    if values.dtype.kind == "b":
        return False
    if name == "rt_ms":
        return bool(((values >= 0) & (values < np.inf) | np.isnan(values)).all())
    return bool(((values >= 0) & (values < 2**53) & (values == np.rint(values))).all())


def _whole(cell: str) -> int:
    number = float(cell) if _is_number(cell) else np.nan
    if not 0 <= number < 2**53 or number != np.rint(number):
        raise ValueError("a whole number from 0 up")
    return int(number)


def _truth(cell: str) -> bool:
    if cell.lower() not in TRUTH:
        raise ValueError("0 or 1 (false or true)")
    return TRUTH[cell.lower()]


def _time(cell: str) -> float:
    if cell.lower() in ("", "nan", "na", "null"):
        return np.nan
    if not _is_number(cell) or float(cell) < 0:
        raise ValueError("a time in milliseconds from 0 up, or nothing")
    return float(cell)


def _is_number(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False


MANY_VALUED = ("trial", "rt_ms")
READERS: dict[str, Callable[[str], Any]] = {
    "block": _whole, "trial": _whole, "i": _whole, "j": _whole, "same": _truth, "rt_ms": _time,
    "used": _truth,
}  # fmt: skip
TYPES: dict[str, type[np.generic]] = {
    "block": np.int64, "trial": np.int64, "i": np.int64, "j": np.int64, "same": np.bool_, "rt_ms": np.float64,
    "used": np.bool_,
}  # fmt: skip
