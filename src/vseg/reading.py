"""Files that were written elsewhere: what is wrong with one is said in a sentence, whoever reads it."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vseg.errors import InvalidInput


@contextmanager
def as_csv(path: Path) -> Iterator[None]:
    """While a CSV file is read: `InvalidInput` where it is none."""
    try:
        yield
    except UnicodeDecodeError as error:
        zipped = path.read_bytes()[:2] == b"PK"
        what = "a zip archive, perhaps an Excel workbook" if zipped else "not UTF-8 text"
        raise InvalidInput(f"{path} is {what}; save it as CSV (UTF-8).") from error
    except csv.Error as error:
        raise InvalidInput(f"{path} cannot be read as a CSV file ({error}).") from error


@contextmanager
def as_parquet(path: Path) -> Iterator[None]:
    """While a Parquet file is read: `InvalidInput` where it is none."""
    from vseg.responses import arrow

    try:
        yield
    except (OSError, arrow().ArrowInvalid) as error:
        raise InvalidInput(f"{path} cannot be read as a Parquet file ({error}).") from error


def delimiter_of(header: str) -> str:
    """Comma, or what spreadsheets write where the comma stands for the decimal point: semicolon or tab."""
    return max(",;\t", key=header.count)
