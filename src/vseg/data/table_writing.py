"""Tables as CSV, safe to open in a spreadsheet, and as Parquet beside."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from vseg.data.columns import RESPONSES, Column
from vseg.data.responses import import_parquet, import_pyarrow
from vseg.errors import MissingExtra

TableColumns = Mapping[str, Sequence[Any]]
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
ROWS_PER_GROUP = 32_768  # in one row group, about


def escape_formula(text: str) -> str:
    """A spreadsheet takes such a cell for a formula; behind an apostrophe it is text.

    Examples
    --------
    >>> defused("=1+1"), defused("f")
    ("'=1+1", 'f')
    """
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def write_csv(path: Path, variables: Sequence[Column], columns: TableColumns) -> None:
    """A CSV file with these columns in this order; None is an empty cell, truth is 0 or 1.

    Whole columns become text first, which takes a third of the time of the csv module.
    """
    cells = [_cells(variable.kind, columns[variable.name]) for variable in variables]
    header = ",".join(variable.name for variable in variables)
    text = "\n".join([header, *map(",".join, zip(*cells, strict=True)), ""])
    path.write_text(text, encoding="utf-8", newline="")


def _cells(kind: str, values: Sequence[Any]) -> Iterable[str]:
    """What is written for each value; where values recur, each distinct one is looked at once."""
    if kind == "truth":
        return map({True: "1", False: "0", None: ""}.__getitem__, values)
    distinct = set(values)
    if kind == "text":
        return map({value: _quoted(escape_formula(value)) for value in distinct}.__getitem__, values)
    if len(distinct) > len(values) // 2:
        return (
            ["" if value is None else str(value) for value in values]
            if None in distinct
            else map(str, values)
        )
    return map({value: "" if value is None else str(value) for value in distinct}.__getitem__, values)


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if any(character in text for character in ',"\r\n') else text


class ParquetFile:
    """responses.parquet, written session by session; without pyarrow nothing is, and `missing` says why."""

    def __init__(self, path: Path, variables: Sequence[Column] = RESPONSES):
        self.missing = ""
        self._waiting: dict[str, list[Any]] = {variable.name: [] for variable in variables}
        try:
            self._arrow, schema = import_pyarrow(), _schema(variables)
            self._writer = import_parquet().ParquetWriter(path, schema, compression="zstd")
        except MissingExtra as error:
            self.missing = str(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if not self.missing:
            if kind is None:
                self._flush()
            self._writer.close()

    def add(self, columns: TableColumns) -> None:
        """The responses of one more session."""
        if self.missing:
            return
        for name, waiting in self._waiting.items():
            waiting.extend(columns[name])
        if len(self._waiting["seq"]) >= ROWS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        schema = self._writer.schema
        arrays = [self._arrow.array(self._waiting[field.name], field.type) for field in schema]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=schema))
        for waiting in self._waiting.values():
            waiting.clear()


def _schema(variables: Sequence[Column]) -> Any:
    pa = import_pyarrow()
    types = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}
    return pa.schema(
        [
            pa.field(variable.name, types[variable.kind], metadata={"description": variable.description})
            for variable in variables
        ]
    )
