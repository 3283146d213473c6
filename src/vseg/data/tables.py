"""Read responses from CSV or Parquet files, or from a dataset folder; errors name the line.

A file needs the columns `i`, `j` and `same`. The other columns of `Responses` are read if they are present; further
columns are ignored. If there is a column `used`, as `vseg export` writes it, only rows with 1 are read: practice and
catch trials and repeated trials are in the file, but do not count.
"""

import csv
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg._support.optional_imports import import_pyarrow
from vseg.data.file_reading import (
    check_unique_columns,
    distinct_cells,
    guess_delimiter,
    read_parquet,
    translate_csv_errors,
    translate_parquet_errors,
)
from vseg.data.layout import Layout, as_read_only
from vseg.data.responses import COLUMNS, MAX_NAME_LENGTH, Responses
from vseg.errors import InvalidInput, NotFound

REQUIRED = ("i", "j", "same")
CHUNK_ROWS = 2048  # read at a time
CHARACTER_BYTES = np.dtype("U1").itemsize
MAX_NAME_BYTES = 2**31  # bytes in a column of names, such as fifty characters in each of ten million rows
BOOLEANS = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}


def load(path: str | Path, layout: Layout | None = None) -> Responses:
    """Read responses from a CSV or Parquet file, or from a folder written by `vseg export` or `vseg import`.

    Names are read unchanged, including spaces; spaces around numbers are ignored.

    Parameters
    ----------
    path : str or Path
        A file with the columns i, j and same, or a dataset folder.
    layout : Layout, optional
        The locations to which i and j refer; required for a file, read from the study file of a folder.

    Returns
    -------
    Responses
        All responses of the file or folder.

    Examples
    --------
    >>> responses = load("responses.csv", Grid(16))  # doctest: +SKIP
    >>> responses = load("exported")  # doctest: +SKIP
    """
    path = Path(path)
    if path.is_dir():
        return _load_dataset(path, layout)
    if not path.is_file():
        raise missing_data_error(path)
    if not isinstance(layout, Layout):
        raise InvalidInput(
            f"Expected the layout of the locations in {path}, such as vseg.Grid(16), got {layout!r}."
        )
    return Responses(layout, **_read_used_rows(path, layout))


def _load_dataset(folder: Path, layout: Layout | None) -> Responses:
    """Read the responses of all sessions, from the Parquet file if possible, else from the CSV files."""
    from vseg.data.dataset import Dataset, check_layout

    dataset = Dataset(folder)
    layout = check_layout(dataset, layout)
    if dataset.parquet_file.is_file() and find_spec("pyarrow") is not None:
        parts = [_read_used_rows(dataset.parquet_file, layout, may_be_empty=True)]
    else:
        parts = [_read_used_rows(table, layout, may_be_empty=True) for table in dataset.response_tables]
        _check_same_columns(dataset.response_tables, parts)
    if not any(len(part["i"]) for part in parts):
        raise InvalidInput(f"{folder} holds no responses with used = 1; expected some in data/.")
    return Responses(layout, **{name: _concatenate(folder, name, parts) for name in parts[0]})


def _check_same_columns(tables: Sequence[Path], parts: Sequence[dict[str, NDArray[Any]]]) -> None:
    for table, part in zip(tables, parts, strict=True):
        if odd := sorted(part.keys() ^ parts[0].keys()):
            has, lacks = (table, tables[0]) if odd[0] in part else (tables[0], table)
            raise InvalidInput(
                f"{has} has the column {odd[0]!r}, but {lacks} does not; expected the same columns in both."
            )


def _concatenate(folder: Path, name: str, parts: Sequence[dict[str, NDArray[Any]]]) -> NDArray[Any]:
    """Return one column of all tables together."""
    columns = [part[name] for part in parts]
    if name not in PARSERS:
        width = max(column.itemsize for column in columns) // CHARACTER_BYTES
        _check_memory(folder, name, sum(map(len, columns)), width)
    return columns[0] if len(columns) == 1 else as_read_only(np.concatenate(columns))


def _read_used_rows(path: Path, layout: Layout, *, may_be_empty: bool = False) -> dict[str, NDArray[Any]]:
    """Return the columns of one file, of the rows with used = 1."""
    columns = _read_parquet_columns(path) if path.suffix == ".parquet" else _read_csv_columns(path)
    rows = np.arange(len(columns["i"]))
    if (used := columns.pop("used", None)) is not None:
        rows = np.flatnonzero(used)
        columns = {name: values[rows] for name, values in columns.items()}
    if not len(rows) and not may_be_empty:
        raise InvalidInput(
            f"{path} holds no responses{' with used = 1' * (used is not None)}; expected one row per trial."
        )
    if len(rows):
        _check_locations(path, layout, rows, columns["i"], columns["j"])
    return columns


def missing_data_error(path: Path) -> NotFound:
    """Return the error to raise if there is neither a table nor a folder."""
    return NotFound(
        f"No file or folder {path}; expected a CSV or Parquet file with the columns {', '.join(REQUIRED)}, "
        "or a folder written by vseg export."
    )


def _read_csv_columns(path: Path) -> dict[str, NDArray[Any]]:
    """Return each column as an array; the file is read in chunks, so that few cells are held as text."""
    with translate_csv_errors(path), open(path, newline="", encoding="utf-8-sig") as file:
        rows = filter(None, csv.reader(file, delimiter=_read_delimiter(path)))
        header = [name.strip() for name in next(rows, [])]
        if not header:
            raise InvalidInput(f"{path} is empty; expected a header with the columns {', '.join(REQUIRED)}.")
        index, done = {name: header.index(name) for name in _find_columns(path, header)}, 0
        parts: dict[str, list[NDArray[Any]]] = {name: [] for name in index}
        codes: dict[str, dict[str, int]] = {name: {} for name in index}
        while chunk := list(islice(rows, CHUNK_ROWS)):
            _check_row_lengths(path, done, chunk, len(header))
            cells = list(zip(*chunk, strict=False))
            for name, column in index.items():
                parts[name].append(
                    _parse_numbers(path, name, cells[column], done)
                    if name in MANY_VALUED
                    else _encode(cells[column], codes[name])
                )
            done += len(chunk)
    columns = {name: np.concatenate(parts[name] or [np.zeros(0, np.int64)]) for name in index}
    return {
        name: values if name in MANY_VALUED else _parse_distinct(path, name, list(codes[name]), values)
        for name, values in columns.items()
    }


def _read_delimiter(path: Path) -> str:
    with open(path, newline="", encoding="utf-8-sig") as file:
        return guess_delimiter(file.readline())


def _check_row_lengths(path: Path, done: int, rows: list[list[str]], width: int) -> None:
    """Raise `InvalidInput` if a row has too few or too many cells; spreadsheets may add empty cells at the end."""
    if set(map(len, rows)) == {width}:
        return
    for number, row in enumerate(rows):
        if len(row) < width or any(row[width:]):
            line = _line_number(path, done + number)
            raise InvalidInput(f"{path}, line {line}: {len(row)} cells, but the header has {width} columns.")


def _read_parquet_columns(path: Path) -> dict[str, NDArray[Any]]:
    """Return each column as an array."""
    with translate_parquet_errors(path):
        table = read_parquet(path, lambda names: _find_columns(path, names))
        return {name: _read_arrow_column(path, name, table[name]) for name in table.column_names}


def _read_arrow_column(path: Path, name: str, column: Any) -> NDArray[Any]:
    """Return a column as an array: numbers directly, anything else by parsing its distinct values."""
    types = import_pyarrow().types
    numeric = types.is_integer(column.type) or types.is_floating(column.type) or types.is_boolean(column.type)
    if numeric and name in TYPES and (name == "rt_ms" or not column.null_count):
        values = column.to_numpy()
        if _are_valid(name, values):
            return values.astype(TYPES[name])
    return _parse_distinct(path, name, *distinct_cells(column))


def _check_locations(
    path: Path, layout: Layout, rows: NDArray[np.int64], i: NDArray[np.int64], j: NDArray[np.int64]
) -> None:
    n, smallest, largest = len(layout), min(i.min(), j.min()), max(i.max(), j.max())
    if largest >= n:
        row = int(np.argmax((i >= n) | (j >= n)))
        advice = (
            f"the file's locations are 1..{n}, but locations count from 0: subtract 1 from each"
            if (smallest, largest) == (1, n)
            else "give the layout that was used (locations count from 0)"
        )
        raise InvalidInput(
            f"{path}, line {_line_number(path, int(rows[row]))}: location {max(i[row], j[row])} is outside {layout}, "
            f"whose locations are 0..{n - 1}; {advice}."
        )
    if (i == j).any():
        row = int(np.argmax(i == j))
        raise InvalidInput(
            f"{path}, line {_line_number(path, int(rows[row]))}: i and j are both location {i[row]}, but a pair joins "
            "two different locations; correct or remove the row."
        )


def _line_number(path: Path, row: int) -> int:
    """Return the line on which a row of a CSV file ends, by reading it again; the row's number in a Parquet file."""
    if path.suffix == ".parquet":
        return row + 1
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=_read_delimiter(path))
        next(islice(filter(None, reader), row + 1, None))
        return reader.line_num


def _find_columns(path: Path, names: list[str]) -> list[str]:
    """Return the columns to read; `InvalidInput` if a required one is missing or one occurs twice."""
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise InvalidInput(
            f"{path} has no column {', '.join(map(repr, missing))}; expected {', '.join(REQUIRED)}, "
            f"found {_shorten(', '.join(names), 400)}."
        )
    present = [name for name in (*COLUMNS, "used") if name in names]
    check_unique_columns(path, names, present)
    return present


def _shorten(text: str, longest: int = 80) -> str:
    """Cut a long text; a cell with an unclosed quotation mark may be the rest of the file."""
    return text if len(text) <= longest else f"{text[:longest]}…"


def _encode(cells: Sequence[str], codes: dict[str, int]) -> NDArray[np.int32]:
    """Return the code of each cell; new cells are added to `codes`."""
    try:
        return np.fromiter(map(codes.__getitem__, cells), np.int32, len(cells))
    except KeyError:
        for cell in dict.fromkeys(cells):
            codes.setdefault(cell, len(codes))
        return np.fromiter(map(codes.__getitem__, cells), np.int32, len(cells))


def _parse_numbers(path: Path, name: str, cells: Sequence[str], done: int) -> NDArray[Any]:
    """Parse cells at once if all are plain numbers, else each distinct cell separately."""
    try:
        plain = cells if all(cells) else [cell or "nan" for cell in cells]
        values = np.fromiter(map(float, plain), np.float64, len(plain))
    except ValueError:
        values = np.array([-1.0])
    if _are_valid(name, values):
        return values.astype(TYPES[name])
    codes: dict[str, int] = {}
    code = _encode(cells, codes)
    return _parse_distinct(path, name, list(codes), code, done)


def _parse_distinct(
    path: Path, name: str, distinct: list[str], code: NDArray[Any], done: int = 0
) -> NDArray[Any]:
    """Parse each distinct cell once; `InvalidInput` names the line of the first invalid one."""
    if name not in PARSERS:
        _check_names(path, name, distinct, code)
        return as_read_only(np.array(distinct, dtype=np.str_)[code])
    parsed, errors = [], {}
    for number, cell in enumerate(distinct):
        try:
            parsed.append(PARSERS[name](cell.strip()))
        except ValueError as error:
            parsed.append(0)
            errors[number] = str(error)
    if errors:
        row = int(np.argmax(np.isin(code, list(errors))))
        cell, expected = distinct[code[row]].strip(), errors[int(code[row])]
        raise InvalidInput(
            f"{path}, line {_line_number(path, done + row)}: column {name} is {_shorten(repr(cell))}; "
            f"expected {expected}."
        )
    return np.array(parsed, dtype=TYPES[name])[code]


def _check_names(path: Path, name: str, distinct: list[str], code: NDArray[Any]) -> None:
    """Check the length of the names before making an array, in which every row is as wide as the longest name."""
    too_long = [number for number, cell in enumerate(distinct) if len(cell) > MAX_NAME_LENGTH]
    if too_long:
        row = int(np.argmax(np.isin(code, too_long)))
        cell = distinct[code[row]]
        raise InvalidInput(
            f"{path}, line {_line_number(path, row)}: column {name} is {_shorten(repr(cell))}, a name of {len(cell)} "
            f"characters; expected at most {MAX_NAME_LENGTH}: shorten it."
        )
    _check_memory(path, name, len(code), max(map(len, distinct), default=0))


def _check_memory(path: Path, name: str, rows: int, longest: int) -> None:
    if rows * longest * CHARACTER_BYTES > MAX_NAME_BYTES:
        raise InvalidInput(
            f"{path}: column {name} has {rows} rows and a name of {longest} characters; for so many rows, expected "
            f"at most {MAX_NAME_BYTES // CHARACTER_BYTES // rows}: shorten the longest names, or split the file."
        )


def _are_valid(name: str, values: NDArray[Any]) -> bool:
    """Return whether all numbers are valid values of the column."""
    if name in ("same", "used"):
        return bool(((values == 0) | (values == 1)).all())
    if values.dtype.kind == "b":
        return False
    if name == "rt_ms":
        return bool(((values >= 0) & (values < np.inf) | np.isnan(values)).all())
    return bool(((values >= 0) & (values < 2**53) & (values == np.rint(values))).all())


def _parse_integer(cell: str) -> int:
    number = float(cell) if _is_number(cell) else np.nan
    if not 0 <= number < 2**53 or number != np.rint(number):
        raise ValueError("a whole number from 0 up")
    return int(number)


def _parse_boolean(cell: str) -> bool:
    if cell.lower() not in BOOLEANS:
        raise ValueError("0 or 1 (false or true)")
    return BOOLEANS[cell.lower()]


def _parse_time(cell: str) -> float:
    if cell.lower() in ("", "nan", "na", "null"):
        return np.nan
    if not _is_number(cell) or float(cell) < 0:
        raise ValueError("a time in milliseconds from 0 up, or an empty cell")
    return float(cell)


def _is_number(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False


MANY_VALUED = ("trial", "rt_ms")  # columns in which most cells differ
PARSERS: dict[str, Callable[[str], Any]] = {
    "block": _parse_integer, "trial": _parse_integer, "i": _parse_integer, "j": _parse_integer,
    "same": _parse_boolean, "rt_ms": _parse_time, "used": _parse_boolean,
}  # fmt: skip
TYPES: dict[str, type[np.generic]] = {
    "block": np.int64, "trial": np.int64, "i": np.int64, "j": np.int64, "same": np.bool_, "rt_ms": np.float64,
    "used": np.bool_,
}  # fmt: skip
