"""Files that were written elsewhere: what is wrong with one is said in a sentence, whoever reads it."""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.data.responses import import_parquet, import_pyarrow
from vseg.errors import InvalidInput

# A few kilobytes of Parquet can stand for any number of rows; a study of ten million answers is within these limits.
MOST_ROWS = 2**24
LARGEST_BYTES = 2**32  # of the columns that are read, once unpacked
LONGEST_REASON = 200


@contextmanager
def translate_csv_errors(path: Path) -> Iterator[None]:
    """While a CSV file is read: `InvalidInput` where it is none."""
    try:
        yield
    except UnicodeDecodeError as error:
        zipped = path.read_bytes()[:2] == b"PK"
        what = "a zip archive, perhaps an Excel workbook" if zipped else "not UTF-8 text"
        raise InvalidInput(f"{path} is {what}; save it as CSV (UTF-8).") from error
    except (csv.Error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidInput(f"{path} cannot be read as a CSV file ({reason}).") from error


@contextmanager
def translate_parquet_errors(path: Path) -> Iterator[None]:
    """While a Parquet file is read, and what Arrow read is taken apart: `InvalidInput` where it is none."""
    broken = (OSError, UnicodeDecodeError, import_pyarrow().ArrowException)
    try:
        yield
    except broken as error:
        reason = " ".join(str(error).split())[:LONGEST_REASON]
        raise InvalidInput(f"{path} cannot be read as a Parquet file ({reason}).") from error


def read_parquet(path: Path, chosen: Callable[[list[str]], Sequence[str]]) -> Any:
    """An Arrow table of those columns that are `chosen` from the names, each distinct text in it once.

    How large it is to become is known before it is read: text that comes as a dictionary takes no more memory than
    the file says, however many rows repeat it.
    """
    reader = import_parquet()
    with translate_parquet_errors(path):
        with reader.ParquetFile(path) as file:
            names = list(chosen(file.schema_arrow.names))
            check_unique_columns(path, file.schema_arrow.names, names)
            texts = [name for name in names if _is_text(path, file.schema_arrow.field(name))]
            _check_size(path, file.metadata, names)
        with reader.ParquetFile(path, read_dictionary=texts) as file:
            return file.read(columns=names)


def check_unique_columns(path: Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Of two columns of one name, nobody knows which is meant."""
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise InvalidInput(f"{path} has the column {twice[0]!r} twice; expected each once.")


def distinct_cells(column: Any) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct cells of an Arrow column as text, and which of them each row holds; a missing one is empty."""
    if not import_pyarrow().types.is_dictionary(column.type):
        column = column.dictionary_encode()
    encoded = column.unify_dictionaries().combine_chunks()
    none = len(encoded.dictionary)
    code = encoded.indices.cast("int64").fill_null(none).to_numpy(zero_copy_only=False)
    held = np.zeros(none + 1, np.bool_)  # a dictionary may hold what no row does
    held[code] = True
    values = encoded.dictionary.take(import_pyarrow().array(np.flatnonzero(held[:none]))).to_pylist()
    cells = ["" if value is None else str(value) for value in values] + [""] * int(held[none])
    return cells, (np.cumsum(held) - 1)[code]


def _is_text(path: Path, field: Any) -> bool:
    """Whether a column is text, not numbers; a cell of any other kind may be as large as it likes."""
    types = import_pyarrow().types
    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    if any(getattr(types, f"is_{name}")(kind) for name in TEXTS):
        return True
    if any(getattr(types, f"is_{name}")(kind) for name in NUMBERS):
        return False
    raise InvalidInput(
        f"{path}: column {field.name} holds {str(kind)[:80]}; expected numbers, text, or true and false."
    )


def _check_size(path: Path, metadata: Any, names: Sequence[str]) -> None:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    rows = max(metadata.num_rows, sum(group.num_rows for group in groups))
    if rows > MOST_ROWS:
        raise InvalidInput(f"{path} says it has {rows} rows; expected at most {MOST_ROWS}: divide it.")
    read = [at for at in range(metadata.num_columns) if metadata.schema.column(at).path in names]
    size = sum(group.column(at).total_uncompressed_size for group in groups for at in read)
    if size > LARGEST_BYTES:
        raise InvalidInput(
            f"{path} says it unpacks to {size} bytes; expected at most {LARGEST_BYTES}: divide it."
        )


def guess_delimiter(header: str) -> str:
    """Comma, or what spreadsheets write where the comma stands for the decimal point: semicolon or tab."""
    return max(",;\t", key=header.count)


TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
NUMBERS = ("integer", "floating", "boolean", "decimal", "null")
