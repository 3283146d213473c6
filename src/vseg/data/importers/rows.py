"""Read the rows of a text file: jsPsych's JSON in its several forms, or CSV.

A row is the record of one trial or screen, a dict from column to value. A run is a set of rows that were stored
together in one JSON document or one CSV file: usually one participant in one session.
"""

import csv
import hashlib
import io
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from vseg.data.file_reading import guess_delimiter
from vseg.errors import InvalidInput, VsegWarning

if TYPE_CHECKING:
    import _csv

CONTAINER_KEYS = ("trials", "data", "values", "rows", "results")
DECIMAL_COMMA = re.compile(r"\s*-?\d+,\d+\s*")
SEPARATOR = re.compile(r"[\s,\x1e]*")  # between two JSON documents in one file
MOST_COLUMNS = 16_384  # a file with more is not a table of trials
LONGEST_CELL = 16 * 2**20  # characters


@dataclass(frozen=True, slots=True)
class Row:
    """The record of one trial or screen, and where it was read from."""

    cells: dict[str, Any]
    file: str
    number: int
    run: int
    kind: Literal["line", "trial"]  # what `number` counts: lines of a CSV file or trials of a JSON file

    @property
    def source(self) -> str:
        """The file and the position in it, for messages: data.csv, line 12."""
        return f"{self.file}, {self.kind} {self.number}"


@dataclass(frozen=True)
class TextFile:
    """The text of one file, the run it belongs to if that is known, and cells to add to each of its rows."""

    name: str
    text: str
    run: str = ""
    extra_cells: tuple[tuple[str, Any], ...] = ()


class RunNumbers:
    """Assigns numbers to runs: a run with a name keeps its number, one without a name gets a new number."""

    def __init__(self) -> None:
        self._named: dict[str, int] = {}
        self._count = 0

    def number(self, name: str = "") -> int:
        """Return the number of the run with this name; a new number for a new or an empty name."""
        if name in self._named:
            return self._named[name]
        self._count += 1
        if name:
            self._named[name] = self._count
        return self._count


def read_rows(file: TextFile, runs: RunNumbers) -> Iterator[Row]:
    """Yield the rows of one file; its first character shows whether it is JSON or CSV."""
    start = file.text[:1000].lstrip("\ufeff \t\r\n")[:1]
    file_rows = _json_rows(file, runs) if start in ("[", "{") else _csv_rows(file, runs)
    extra = dict(file.extra_cells)
    for row in file_rows:
        yield Row(extra | row.cells, row.file, row.number, row.run, row.kind) if extra else row


# ── JSON ──


def _json_rows(file: TextFile, runs: RunNumbers) -> Iterator[Row]:
    """Yield the rows of a JSON file: each list of trials is a run, and all single objects together are one run."""
    number, run_of_objects = 0, 0
    for document in _drop_duplicates(file):
        for trials in _find_runs(document):
            if trials is document and isinstance(document, dict):
                run_of_objects = run_of_objects or runs.number(file.run)
                run, records = run_of_objects, [document]
            else:
                run, records = runs.number(file.run), trials
            for cells in records:
                number += 1
                if not isinstance(cells, dict):
                    raise InvalidInput(
                        f"{file.name}, trial {number}: expected an object such as "
                        f'{{"response": "f", "rt": 512}}, got {_shorten(cells)}.'
                    )
                yield Row(cells, file.name, number, run, "trial")


def _drop_duplicates(file: TextFile) -> Iterator[Any]:
    """Yield the documents of a file; one that was stored twice, as when a page submits and appends, only once."""
    seen: set[bytes] = set()
    for document in _parse_documents(file):
        if _has_times(document):
            # Comparing the documents with each other would take time that grows with the square of their number.
            digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).digest()
            if digest in seen:
                warnings.warn(
                    f"{file.name} holds the same {len(document)} trials twice, with the same times; read once.",
                    VsegWarning,
                    stacklevel=2,
                )
                continue
            seen.add(digest)
        yield document


def _has_times(document: Any) -> bool:
    """Return whether a document is a list of trials with jsPsych's times, which differ between participants."""
    return _is_table(document) and len(document) > 1 and all("time_elapsed" in trial for trial in document)


def _parse_documents(file: TextFile) -> Iterator[Any]:
    """Yield the JSON documents of a file: usually one, or one per line, or several without a separator."""
    decoder, position = json.JSONDecoder(), 0
    text = file.text.lstrip("\ufeff")
    while (position := SEPARATOR.match(text, position).end()) < len(text):  # type: ignore[union-attr]
        try:
            document, position = decoder.raw_decode(text, position)
        except RecursionError as error:
            raise InvalidInput(f"{file.name} is nested too deeply; expected a list of trials.") from error
        except ValueError as error:
            line = text.count("\n", 0, getattr(error, "pos", position)) + 1
            reason = getattr(error, "msg", "a number is too long")
            raise InvalidInput(
                f"{file.name}, line {line}: this is not valid JSON ({reason}); expected complete "
                "jsPsych data, as jsPsych.data.get().json() returns them."
            ) from error
        yield document


def _find_runs(document: Any) -> Iterator[Any]:
    """Yield the lists of trials in a document, or the document itself if it is a single trial."""
    if isinstance(document, dict):
        containers = [key for key in CONTAINER_KEYS if _is_table(document.get(key))]
        if not containers:
            yield document
            return
        shared = {key: value for key, value in document.items() if key != containers[0]}
        yield [{**shared, **trial} for trial in document[containers[0]]]
    elif isinstance(document, list) and document and all(_has_trials(entry) for entry in document):
        for entry in document:
            yield from _find_runs(entry)
    elif isinstance(document, list):
        yield document
    else:
        yield [document]


def _has_trials(value: Any) -> bool:
    return isinstance(value, list) or (
        isinstance(value, dict) and any(_is_table(value.get(key)) for key in CONTAINER_KEYS)
    )


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


# ── CSV ──


def _csv_rows(file: TextFile, runs: RunNumbers) -> Iterator[Row]:
    text = file.text.removeprefix("\ufeff")
    header_line = text[:100_000].lstrip("\r\n").partition("\n")[0]
    delimiter = guess_delimiter(header_line)
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    lines = _read_csv_lines(file, reader)
    header = [name.strip() for name in next(lines, [])]
    if not any(header):
        raise InvalidInput(f"{file.name} is empty; expected JSON, or CSV with a header.")
    _check_header(file, header)
    run = runs.number(file.run)
    for cells in lines:
        if len(cells) > len(header) and any(cells[len(header) :]):
            raise InvalidInput(
                f"{file.name}, line {reader.line_num}: {len(cells)} cells, but the header has {len(header)} columns."
            )
        if delimiter == ";":
            cells = [cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells]
        named = {name: cell for name, cell in zip(header, cells, strict=False) if cell and name}
        if cells != header:  # concatenated files repeat the header
            yield Row(named, file.name, reader.line_num, run, "line")


def _read_csv_lines(file: TextFile, reader: "_csv.Reader") -> Iterator[list[str]]:
    try:
        yield from filter(None, reader)
    except csv.Error as error:
        raise InvalidInput(
            f"{file.name}, line {reader.line_num}: this cannot be read as CSV ({error})."
        ) from error


def _check_header(file: TextFile, header: list[str]) -> None:
    if len(header) > MOST_COLUMNS:
        raise InvalidInput(f"{file.name} has {len(header)} columns; at most {MOST_COLUMNS} are read.")
    repeated = [name for name, count in Counter(header).items() if name and count > 1]
    if repeated:
        raise InvalidInput(f"{file.name} has the column {_shorten(repeated[0])} twice; expected each once.")
