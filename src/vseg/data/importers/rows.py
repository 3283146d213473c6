"""Files as rows: jsPsych's JSON in its several shapes, CSV, and what several documents in one file mean.

A row is what one trial or screen left behind, a dict from column to value. A run is the rows that belong together
because one document held them, which is one person at one sitting where an experiment stores each by itself.
"""

import csv
import io
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vseg.errors import InvalidInput, VsegWarning

INSIDE = ("trials", "data", "values", "rows", "results")
DECIMAL_COMMA = re.compile(r"\s*-?\d+,\d+\s*")
BETWEEN = re.compile(r"[\s,\x1e]*")  # between two JSON documents of one file
MOST_CELLS = 16_384  # of a row; what has more is no table of trials
LONGEST_CELL = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Row:
    """One trial or screen: its cells, and where it stood."""

    cells: dict[str, Any]
    file: str
    number: int
    run: int
    kind: str  # line of a CSV file, or trial of a JSON document

    @property
    def where(self) -> str:
        """For messages: data.csv, line 12."""
        return f"{self.file}, {self.kind} {self.number}"


@dataclass(frozen=True)
class TextFile:
    """The text of one file, with the run it belongs to, if that is known, and cells that each row gets."""

    name: str
    text: str
    run: str = ""
    known: tuple[tuple[str, Any], ...] = ()


class RunNumbers:
    """Numbers for runs: a name keeps its number, and whatever has no name gets a new one."""

    def __init__(self) -> None:
        self._named: dict[str, int] = {}
        self._count = 0

    def number(self, name: str = "") -> int:
        """The number of the run of that name, or of a run not seen before."""
        if name in self._named:
            return self._named[name]
        self._count += 1
        if name:
            self._named[name] = self._count
        return self._count


def read_rows(file: TextFile, runs: RunNumbers) -> Iterator[Row]:
    """The rows of one file, whose format shows in its first character."""
    start = file.text[:1000].lstrip("\ufeff \t\r\n")[:1]
    found = _json_rows(file, runs) if start in ("[", "{") else _csv_rows(file, runs)
    known = dict(file.known)
    for row in found:
        yield Row(known | row.cells, row.file, row.number, row.run, row.kind) if known else row


# ── JSON ──


def _json_rows(file: TextFile, runs: RunNumbers) -> Iterator[Row]:
    """A list is a run, a list of lists a run each; single objects are trials of one run together."""
    number, loose = 0, 0
    for document in _once(file):
        for trials in _runs(document):
            if trials is document and isinstance(document, dict):
                loose = loose or runs.number(file.run)
                run, inside = loose, [document]
            else:
                run, inside = runs.number(file.run), trials
            for cells in inside:
                number += 1
                if not isinstance(cells, dict):
                    raise InvalidInput(
                        f"{file.name}, trial {number}: expected an object such as "
                        f'{{"response": "f", "rt": 512}}, got {_short(cells)}.'
                    )
                yield Row(cells, file.name, number, run, "trial")


def _once(file: TextFile) -> Iterator[Any]:
    """The documents, without those that were stored twice, as happens where a page submits and then appends."""
    seen: list[Any] = []
    for document in _documents(file):
        if _is_clocked(document):
            if document in seen:
                warnings.warn(
                    f"{file.name} holds the same {len(document)} trials twice, down to the times; taken once.",
                    VsegWarning,
                    stacklevel=2,
                )
                continue
            seen.append(document)
        yield document


def _is_clocked(document: Any) -> bool:
    """Whether it is a list of trials with jsPsych's clock, so that no two people's can be the same."""
    return _is_table(document) and len(document) > 1 and all("time_elapsed" in trial for trial in document)


def _documents(file: TextFile) -> Iterator[Any]:
    """One JSON document after another: usually one, or one a line, or joined without anything between."""
    decoder, at = json.JSONDecoder(), 0
    text = file.text.lstrip("\ufeff")
    while (at := BETWEEN.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        try:
            document, at = decoder.raw_decode(text, at)
        except RecursionError as error:
            raise InvalidInput(f"{file.name} is nested too deeply; expected a list of trials.") from error
        except ValueError as error:
            line = text.count("\n", 0, getattr(error, "pos", at)) + 1
            why = getattr(error, "msg", "a number is too long")
            raise InvalidInput(
                f"{file.name}, line {line}: this is not valid JSON ({why}); expected jsPsych's data, "
                "whole, as jsPsych.data.get().json() gives them."
            ) from error
        yield document


def _runs(document: Any) -> Iterator[Any]:
    """The lists of trials in a document."""
    if isinstance(document, dict):
        inside = [key for key in INSIDE if _is_table(document.get(key))]
        if not inside:
            yield document
            return
        about = {key: value for key, value in document.items() if key != inside[0]}
        yield [{**about, **trial} for trial in document[inside[0]]]
    elif isinstance(document, list) and document and all(_has_trials(one) for one in document):
        for one in document:
            yield from _runs(one)
    elif isinstance(document, list):
        yield document
    else:
        yield [document]


def _has_trials(value: Any) -> bool:
    return isinstance(value, list) or (
        isinstance(value, dict) and any(_is_table(value.get(key)) for key in INSIDE)
    )


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


# ── CSV ──


def _csv_rows(file: TextFile, runs: RunNumbers) -> Iterator[Row]:
    text = file.text.removeprefix("\ufeff")
    header_line = text[:100_000].lstrip("\r\n").partition("\n")[0]
    delimiter = max(",;\t", key=header_line.count)
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    lines = _csv_lines(file, reader)
    header = [name.strip() for name in next(lines, [])]
    if not any(header):
        raise InvalidInput(
            f"{file.name} is empty; expected JSON, or CSV with the names of its columns first."
        )
    _check_header(file, header)
    run = runs.number(file.run)
    for cells in lines:
        if len(cells) > len(header) and any(cells[len(header) :]):
            raise InvalidInput(
                f"{file.name}, line {reader.line_num}: {len(cells)} cells, but the header has {len(header)} columns."
            )
        if delimiter == ";":
            cells = [cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells]
        held = {name: cell for name, cell in zip(header, cells, strict=False) if cell and name}
        if cells != header:  # files that were put together repeat it
            yield Row(held, file.name, reader.line_num, run, "line")


def _csv_lines(file: TextFile, reader: Any) -> Iterator[list[str]]:
    try:
        yield from filter(None, reader)
    except csv.Error as error:
        raise InvalidInput(
            f"{file.name}, line {reader.line_num}: this cannot be read as CSV ({error})."
        ) from error


def _check_header(file: TextFile, header: list[str]) -> None:
    if len(header) > MOST_CELLS:
        raise InvalidInput(f"{file.name} has {len(header)} columns; at most {MOST_CELLS} are read.")
    twice = [name for name, count in Counter(header).items() if name and count > 1]
    if twice:
        raise InvalidInput(f"{file.name} has the column {_short(twice[0])} twice; expected each once.")
