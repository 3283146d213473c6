"""Read the trials of the task from the rows of a file: check each value, skip and count other rows."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field as attribute
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, NoReturn, TypeVar

from vseg._support.text import format_count
from vseg.data.importers.mapping import DOTS, ColumnMapping, as_text, has_dots
from vseg.data.importers.rows import Row
from vseg.errors import InvalidInput

IMG_SRC = re.compile(r"<img\b[^<>]*?\bsrc\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
LONGEST_NAME = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ImportedTrial:
    """One trial: the participant, the two dots, and the answer."""

    row: Row
    participant: str | None
    session: str | None
    image: str
    block: int
    trial: int | None
    pair: tuple[int, int] | None
    dots: tuple[float, ...] | None
    size: tuple[float, float] | None
    same: bool
    key: str
    rt_ms: float | None
    practice: bool
    catch: bool
    correct: bool | None


@dataclass
class SkippedRows:
    """The number of rows that are not trials of the task, by reason."""

    reasons: Counter[str] = attribute(default_factory=Counter)

    def __str__(self) -> str:
        total = sum(self.reasons.values())
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.reasons.most_common())
        return f"{format_count(total, 'row')} skipped: {reasons}."


def read_trials(
    rows: Sequence[Row],
    mappings: Mapping[str, ColumnMapping],
    advance: Callable[[int], None] = lambda done: None,
) -> tuple[list[ImportedTrial], SkippedRows]:
    """Return the trials of the task among the rows, in order, and a count of the other rows.

    Parameters
    ----------
    rows : sequence of Row
    mappings : mapping of str to ColumnMapping
        The columns to read, by target.
    advance : callable
        Called with the number of rows done since the last call.
    """
    trials, skipped = [], SkippedRows()
    for number, row in enumerate(rows, 1):
        reason = _reason_to_skip(row, mappings)
        if reason:
            skipped.reasons[reason] += 1
        else:
            trials.append(_read_trial(row, mappings))
        if number % 1000 == 0:
            advance(1000)
    if not trials:
        summary = f" {skipped}" if skipped.reasons else ""
        raise InvalidInput(
            f"None of {len(rows)} rows is a trial with two dots and an answer.{summary} "
            "Map the columns, as in x1=COLUMN and same=COLUMN:VALUE."
        )
    return trials, skipped


def _reason_to_skip(row: Row, mappings: Mapping[str, ColumnMapping]) -> str:
    """Return why a row is not a trial of the task; an empty text if it is one."""
    if "only" in mappings and not mappings["only"].is_yes(row):
        return f"with another value of {mappings['only'].column}"
    if not has_dots(row, mappings):
        return "without dots"
    answer = mappings["same"].value(row)
    if answer is None:
        return "without an answer"
    if "different" in mappings and not (mappings["same"].is_yes(row) or mappings["different"].is_yes(row)):
        return "with another answer"
    return ""


def _read_trial(row: Row, mappings: Mapping[str, ColumnMapping]) -> ImportedTrial:
    values = {name: mapping.value(row) for name, mapping in mappings.items()}

    def read_required(name: str, read: Callable[[Row, ColumnMapping, Any], T]) -> T:
        return read(row, mappings[name], values[name])

    def read_optional(name: str, read: Callable[[Row, ColumnMapping, Any], T]) -> T | None:
        return None if values.get(name) is None else read(row, mappings[name], values[name])

    practice, catch = (
        bool(read_optional("practice", _read_boolean)),
        bool(read_optional("catch", _read_boolean)),
    )
    width, height = read_optional("image_width", _read_size), read_optional("image_height", _read_size)
    return ImportedTrial(
        row=row,
        participant=read_optional("participant", read_name),
        session=read_optional("session", read_name),
        image=read_optional("image", _read_image) or "image",
        block=read_optional("block", _read_integer) or 0,
        trial=read_optional("trial", _read_integer),
        pair=(read_required("i", _read_integer), read_required("j", _read_integer))
        if "i" in mappings
        else None,
        dots=tuple(read_required(name, _read_number) for name in DOTS) if "x1" in mappings else None,
        size=None if width is None or height is None else (width, height),
        same=read_required("same", _read_boolean),
        key=(as_text(values["same"]) or "")[:LONGEST_NAME],
        rt_ms=read_optional("rt_ms", _read_time),
        practice=practice,
        catch=catch,
        correct=read_optional("correct", _read_boolean) if practice or catch else None,
    )


@lru_cache(maxsize=1024)
def find_image_address(text: str) -> str:
    """Return the address of the image in a piece of HTML, or the text itself if it is not HTML.

    Examples
    --------
    >>> find_image_address('<img src="img/cat.png" width=400>'), find_image_address("cat")
    ('img/cat.png', 'cat')
    """
    match = IMG_SRC.search(text)
    return match[1] if match else text


def short_name(text: str) -> str:
    """Return the last part of a path or address, without its suffix.

    Examples
    --------
    >>> short_name("https://lab.org/img/Cat_01.jpg?v=2"), short_name("cat 2")
    ('Cat_01', 'cat 2')
    """
    path = re.sub(r"[?#].*$", "", text).replace("\\", "/").rstrip("/")
    last = PurePosixPath(path)
    return last.stem if re.fullmatch(r"\.[A-Za-z]{2,5}\d?", last.suffix) else last.name


# ── reading one value ──


def _raise_unexpected(row: Row, mapping: ColumnMapping, value: Any, expected: str) -> NoReturn:
    text = "empty" if value is None else repr(value)
    hint = " (jsPsych 6 loses nested data in CSV: export JSON)" if "[object Object]" in text else ""
    got = text if len(text) <= 60 else f"{text[:60]}…"
    raise InvalidInput(
        f"{row.source}: {mapping.column or mapping.target.name} is {got}{hint}; "
        f"expected {mapping.target.name}, {expected}."
    )


def read_name(row: Row, mapping: ColumnMapping, value: Any) -> str:
    """Return the name in a cell; `InvalidInput` if there is none or it is too long."""
    text = as_text(value)
    if not text:
        _raise_unexpected(row, mapping, value, "a name")
    if len(text) > LONGEST_NAME:
        _raise_unexpected(row, mapping, value, f"a name of at most {LONGEST_NAME} characters")
    return text


def _read_image(row: Row, mapping: ColumnMapping, value: Any) -> str:
    """Return the name of the image, or its address in a piece of HTML, which may be longer than a name."""
    text = as_text(value) or ""
    address = find_image_address(text)
    if address.startswith("data:"):
        _raise_unexpected(row, mapping, value, "a name, not the image itself: map another column")
    return read_name(row, mapping, value) if address == text else address


def _read_boolean(row: Row, mapping: ColumnMapping, value: Any) -> bool:
    yes = mapping.means_yes(value)
    if yes is None:
        advice = f"{mapping.target.name}={mapping.column}:VALUE"
        _raise_unexpected(row, mapping, value, f"yes or no; if another value means yes, map it as {advice}")
    return yes


def _read_number(row: Row, mapping: ColumnMapping, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        _raise_unexpected(row, mapping, value, "a number")
    return number


def _read_size(row: Row, mapping: ColumnMapping, value: Any) -> float:
    number = _read_number(row, mapping, value)
    if not 1 <= number <= 1_000_000:
        _raise_unexpected(row, mapping, value, "a number of pixels from 1 up")
    return number


def _read_integer(row: Row, mapping: ColumnMapping, value: Any) -> int:
    number = _read_number(row, mapping, value)
    if not 0 <= number < 2**53 or number != int(number):
        _raise_unexpected(row, mapping, value, "a whole number from 0 up")
    return int(number)


def _read_time(row: Row, mapping: ColumnMapping, value: Any) -> float:
    number = _read_number(row, mapping, value) * (1000 if mapping.values == ("s",) else 1)
    if number < 0:
        _raise_unexpected(row, mapping, value, "a time from 0 up")
    return number
