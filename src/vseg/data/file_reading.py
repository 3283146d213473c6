"""Read CSV and Parquet files that other software wrote; errors name the file and the problem."""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg._support.optional_imports import import_parquet, import_pyarrow
from vseg.errors import InvalidInput

# A few kilobytes of Parquet can unpack to any number of rows; ten million answers are within these limits.
MAX_ROWS = 2**24
MAX_BYTES = 2**32  # of the columns that are read, uncompressed
MAX_REASON_LENGTH = 200  # characters
TEXT_TYPES = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
NUMBER_TYPES = ("integer", "floating", "boolean", "decimal", "null")


@contextmanager
def translate_csv_errors(path: Path) -> Iterator[None]:
    """Raise `InvalidInput` for any error that means the file is not a readable CSV file."""
    try:
        yield
    except UnicodeDecodeError as error:
        is_zip = path.read_bytes()[:2] == b"PK"
        kind = "a zip archive, perhaps an Excel workbook" if is_zip else "not UTF-8 text"
        raise InvalidInput(f"{path} is {kind}; save it as CSV (UTF-8).") from error
    except (csv.Error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidInput(f"{path} cannot be read as a CSV file ({reason}).") from error


@contextmanager
def translate_parquet_errors(path: Path) -> Iterator[None]:
    """Raise `InvalidInput` for any error that means the file is not a readable Parquet file."""
    unreadable = (OSError, UnicodeDecodeError, import_pyarrow().ArrowException)
    try:
        yield
    except unreadable as error:
        reason = " ".join(str(error).split())[:MAX_REASON_LENGTH]
        raise InvalidInput(f"{path} cannot be read as a Parquet file ({reason}).") from error


def read_parquet(path: Path, choose_columns: Callable[[list[str]], Sequence[str]]) -> Any:
    """Read some columns of a Parquet file as a pyarrow Table, with text columns dictionary-encoded.

    The size is checked before reading: dictionary-encoded text takes no more memory than the file declares, however
    many rows repeat it.

    Parameters
    ----------
    path : Path
    choose_columns : callable
        Takes the names of all columns; returns those to read.
    """
    parquet = import_parquet()
    with translate_parquet_errors(path):
        with parquet.ParquetFile(path) as file:
            names = list(choose_columns(file.schema_arrow.names))
            check_unique_columns(path, file.schema_arrow.names, names)
            texts = [name for name in names if _is_text(path, file.schema_arrow.field(name))]
            _check_size(path, file.metadata, names)
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            return file.read(columns=names)


def read_rows(
    path: Path, columns: Sequence[str], *, required: Sequence[str] | None = None
) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV or Parquet file as text; none if a required column is missing.

    Parameters
    ----------
    path : Path
        Parquet if its name ends in .parquet, else CSV.
    columns : sequence of str
        The columns to read; those that the file does not have are left out.
    required : sequence of str, optional
        By default all of `columns`.
    """
    required = columns if required is None else required
    if path.suffix == ".parquet":
        with translate_parquet_errors(path):
            table = read_parquet(
                path,
                lambda names: (
                    [name for name in columns if name in names] if set(required) <= set(names) else []
                ),
            )
            cells = {name: distinct_cells(table[name]) for name in table.column_names}
        for row in zip(*(map(values.__getitem__, code) for values, code in cells.values()), strict=True):
            yield dict(zip(cells, row, strict=True))
        return
    with translate_csv_errors(path), open(path, newline="", encoding="utf-8-sig") as file:
        header = file.readline()
        delimiter = guess_delimiter(header)
        names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
        if not set(required) <= set(names):
            return
        places = {name: names.index(name) for name in columns if name in names}
        for values in csv.reader(file, delimiter=delimiter):
            if values:
                yield {name: values[place] if place < len(values) else "" for name, place in places.items()}


def check_unique_columns(path: Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise `InvalidInput` if a wanted column occurs twice."""
    repeated = [name for name in wanted if names.count(name) > 1]
    if repeated:
        raise InvalidInput(f"{path} has the column {repeated[0]!r} twice; expected each once.")


def distinct_cells(column: Any) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct cells of a pyarrow column as text, and the index of each row's cell; null is empty text."""
    if not import_pyarrow().types.is_dictionary(column.type):
        column = column.dictionary_encode()
    encoded = column.unify_dictionaries().combine_chunks()
    null_code = len(encoded.dictionary)
    code = encoded.indices.cast("int64").fill_null(null_code).to_numpy(zero_copy_only=False)
    is_used = np.zeros(null_code + 1, np.bool_)  # a dictionary may hold values that no row has
    is_used[code] = True
    values = encoded.dictionary.take(import_pyarrow().array(np.flatnonzero(is_used[:null_code]))).to_pylist()
    cells = ["" if value is None else str(value) for value in values] + [""] * int(is_used[null_code])
    return cells, (np.cumsum(is_used) - 1)[code]


def _is_text(path: Path, field: Any) -> bool:
    """Return whether a column is text; `InvalidInput` if it is neither text nor numbers."""
    types = import_pyarrow().types
    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    if any(getattr(types, f"is_{name}")(kind) for name in TEXT_TYPES):
        return True
    if any(getattr(types, f"is_{name}")(kind) for name in NUMBER_TYPES):
        return False
    raise InvalidInput(
        f"{path}: column {field.name} holds {str(kind)[:80]}; expected numbers, text, or true and false."
    )


def _check_size(path: Path, metadata: Any, names: Sequence[str]) -> None:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    rows = max(metadata.num_rows, sum(group.num_rows for group in groups))
    if rows > MAX_ROWS:
        raise InvalidInput(f"{path} declares {rows} rows; expected at most {MAX_ROWS}: split the file.")
    indices = [n for n in range(metadata.num_columns) if metadata.schema.column(n).path in names]
    size = sum(group.column(n).total_uncompressed_size for group in groups for n in indices)
    if size > MAX_BYTES:
        raise InvalidInput(
            f"{path} declares {size} bytes uncompressed; expected at most {MAX_BYTES}: split the file."
        )


def guess_delimiter(header: str) -> str:
    """Return the delimiter of a CSV file from its header: comma, semicolon or tab."""
    return max(",;\t", key=header.count)
