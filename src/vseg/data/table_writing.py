"""Write tables as CSV that is safe to open in a spreadsheet, and as Parquet."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from vseg._support.optional_imports import import_parquet, import_pyarrow
from vseg.data.columns import RESPONSES, Column, ColumnType
from vseg.errors import MissingExtra

Cell = str | float | bool | None
TableColumns = Mapping[str, Sequence[Any]]
"""The cells of each column, by its name."""
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
ROWS_PER_GROUP = 32_768
"""About how many rows a row group of a Parquet file has."""


def escape_formula(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would run as a formula.

    Examples
    --------
    >>> escape_formula("=1+1"), escape_formula("f")
    ("'=1+1", 'f')
    """
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def write_csv(path: Path, columns: Sequence[Column], cells: TableColumns) -> None:
    """Write a CSV file with these columns in this order; None becomes an empty cell, a boolean 0 or 1.

    Columns are formatted one at a time, which takes a third of the time of the csv module.
    """
    formatted = [_format_cells(column.type, cells[column.name]) for column in columns]
    header = ",".join(column.name for column in columns)
    text = "\n".join([header, *map(",".join, zip(*formatted, strict=True)), ""])
    path.write_text(text, encoding="utf-8", newline="")


def _format_cells(column_type: ColumnType, values: Sequence[Any]) -> Iterable[str]:
    """Return the text of each cell; if values recur, each distinct value is formatted once."""
    if column_type == "boolean":
        return map({True: "1", False: "0", None: ""}.__getitem__, values)
    distinct = set(values)
    if column_type == "text":
        return map({value: _quote(escape_formula(value)) for value in distinct}.__getitem__, values)
    if len(distinct) > len(values) // 2:
        return map(_format_number, values) if None in distinct else map(str, values)
    return map({value: _format_number(value) for value in distinct}.__getitem__, values)


def _format_number(value: Cell) -> str:
    return "" if value is None else str(value)


def _quote(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if any(character in text for character in ',"\r\n') else text


class ParquetFile:
    """A Parquet file that is written session by session.

    Without pyarrow nothing is written, and `unavailable_reason` is a message that says so; otherwise it is empty.
    """

    def __init__(self, path: Path, columns: Sequence[Column] = RESPONSES):
        self.unavailable_reason = ""
        self._pending: dict[str, list[Cell]] = {column.name: [] for column in columns}
        try:
            self._arrow, schema = import_pyarrow(), _build_schema(columns)
            self._writer = import_parquet().ParquetWriter(path, schema, compression="zstd")
        except MissingExtra as error:
            self.unavailable_reason = str(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exception_type: type[BaseException] | None, *_: BaseException | TracebackType | None
    ) -> None:
        if not self.unavailable_reason:
            if exception_type is None:
                self._flush()
            self._writer.close()

    def add(self, cells: TableColumns) -> None:
        """Append the rows of one session."""
        if self.unavailable_reason:
            return
        for name, pending in self._pending.items():
            pending.extend(cells[name])
        if len(self._pending["seq"]) >= ROWS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        schema = self._writer.schema
        arrays = [self._arrow.array(self._pending[field.name], field.type) for field in schema]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=schema))
        for pending in self._pending.values():
            pending.clear()


def _build_schema(columns: Sequence[Column]) -> Any:
    """Return the pyarrow schema of a table."""
    pa = import_pyarrow()
    types = {"text": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
    return pa.schema(
        [
            pa.field(column.name, types[column.type], metadata={"description": column.description})
            for column in columns
        ]
    )
