"""Rows as trials: each value read and checked, what is no trial of the task counted and left out."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field as attribute
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, NoReturn

from vseg.data.importers.mapping import DOTS, ColumnMapping, as_text, has_dots
from vseg.data.importers.rows import Row
from vseg.errors import InvalidInput

SOURCE = re.compile(r"<img\b[^>]*?\bsrc\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class ImportedTrial:
    """One answer: who, about which dots, and what they said."""

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
    """How many rows were no trials of the task, and why."""

    reasons: Counter[str] = attribute(default_factory=Counter)

    def __str__(self) -> str:
        total = sum(self.reasons.values())
        each = ", ".join(f"{count} {why}" for why, count in self.reasons.most_common())
        return f"{total} row{'' if total == 1 else 's'} left out: {each}."


def read_trials(
    rows: Sequence[Row], fields: dict[str, ColumnMapping], advance: Callable[[int], None] = lambda done: None
) -> tuple[list[ImportedTrial], SkippedRows]:
    """The trials of the task among the rows, in their order, and what else there was."""
    taken, left_out = [], SkippedRows()
    for number, row in enumerate(rows, 1):
        why = _no_trial(row, fields)
        if why:
            left_out.reasons[why] += 1
        else:
            taken.append(_trial(row, fields))
        if number % 1000 == 0:
            advance(1000)
    if not taken:
        found = f" {left_out}" if left_out.reasons else ""
        raise InvalidInput(
            f"None of {len(rows)} rows is a trial with two dots and an answer.{found} "
            "Name the columns with --map, as in --map x1=COLUMN --map same=COLUMN:VALUE."
        )
    return taken, left_out


def _no_trial(row: Row, fields: dict[str, ColumnMapping]) -> str:
    """Why a row is no trial of the task; nothing if it is one."""
    if "only" in fields and not fields["only"].yes(row):
        return f"where {fields['only'].column} is something else"
    if not has_dots(row, fields):
        return "without dots"
    answer = fields["same"].value(row)
    if answer is None:
        return "without an answer"
    if "different" in fields and not (fields["same"].yes(row) or fields["different"].yes(row)):
        return "with another answer"
    return ""


def _trial(row: Row, fields: dict[str, ColumnMapping]) -> ImportedTrial:
    values = {name: field.value(row) for name, field in fields.items()}

    def needed(name: str, read: Callable[[Row, ColumnMapping, Any], Any]) -> Any:
        return read(row, fields[name], values[name])

    def optional(name: str, read: Callable[[Row, ColumnMapping, Any], Any], otherwise: Any = None) -> Any:
        return otherwise if values.get(name) is None else read(row, fields[name], values[name])

    practice, catch = optional("practice", _truth, False), optional("catch", _truth, False)
    width, height = optional("image_width", _size), optional("image_height", _size)
    return ImportedTrial(
        row=row,
        participant=optional("participant", read_name),
        session=optional("session", read_name),
        image=optional("image", _image, "image"),
        block=optional("block", _whole, 0),
        trial=optional("trial", _whole),
        pair=(needed("i", _whole), needed("j", _whole)) if "i" in fields else None,
        dots=tuple(needed(name, _number) for name in DOTS) if "x1" in fields else None,
        size=None if width is None or height is None else (width, height),
        same=needed("same", _truth),
        key=(as_text(values["same"]) or "")[:LONGEST_NAME],
        rt_ms=optional("rt_ms", _time),
        practice=practice,
        catch=catch,
        correct=optional("correct", _truth) if practice or catch else None,
    )


@lru_cache(maxsize=1024)
def find_image_address(text: str) -> str:
    """The image behind a stimulus: the address in a piece of HTML, else the text itself.

    Examples
    --------
    >>> picture('<img src="img/cat.png" width=400>'), picture("cat")
    ('img/cat.png', 'cat')
    """
    found = SOURCE.search(text)
    return found[1] if found else text


def short_name(text: str) -> str:
    """The last part of a path or address, without its ending.

    Examples
    --------
    >>> short_name("https://lab.org/img/Cat_01.jpg?v=2"), short_name("cat 2")
    ('Cat_01', 'cat 2')
    """
    path = re.sub(r"[?#].*$", "", text).replace("\\", "/").rstrip("/")
    last = PurePosixPath(path)
    return last.stem if re.fullmatch(r"\.[A-Za-z]{2,5}\d?", last.suffix) else last.name


# ── one value ──


def _refuse(row: Row, field: ColumnMapping, value: Any, expected: str) -> NoReturn:
    shown = "nothing" if value is None else repr(value)
    lost = " (jsPsych 6 loses nested data in CSV: export JSON)" if "[object Object]" in shown else ""
    got = shown if len(shown) <= 60 else f"{shown[:60]}…"
    raise InvalidInput(
        f"{row.where}: {field.column or field.target.name} is {got}{lost}; "
        f"expected {field.target.name}, {expected}."
    )


def read_name(row: Row, field: ColumnMapping, value: Any) -> str:
    """What the cell says, if it is as short as names are; else `InvalidInput`."""
    text = as_text(value)
    if not text:
        _refuse(row, field, value, "a name")
    if len(text) > LONGEST_NAME:
        _refuse(row, field, value, f"a name of at most {LONGEST_NAME} characters")
    return text


def _image(row: Row, field: ColumnMapping, value: Any) -> str:
    """As a name; or the address in a piece of HTML, which may be long, since the folder has a short name for it."""
    text = as_text(value) or ""
    address = find_image_address(text)
    if address.startswith("data:"):
        _refuse(row, field, value, "a name, not the picture itself: map another column")
    return read_name(row, field, value) if address == text else address


def _truth(row: Row, field: ColumnMapping, value: Any) -> bool:
    yes = field.means_yes(value)
    if yes is None:
        advice = f"--map {field.target.name}={field.column}:VALUE"
        _refuse(row, field, value, f"yes or no; or say what means yes: {advice}")
    return yes


def _number(row: Row, field: ColumnMapping, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        _refuse(row, field, value, "a number")
    return number


def _size(row: Row, field: ColumnMapping, value: Any) -> float:
    number = _number(row, field, value)
    if not 1 <= number <= 1_000_000:
        _refuse(row, field, value, "a number of pixels from 1 up")
    return number


def _whole(row: Row, field: ColumnMapping, value: Any) -> int:
    number = _number(row, field, value)
    if not 0 <= number < 2**53 or number != int(number):
        _refuse(row, field, value, "a whole number from 0 up")
    return int(number)


def _time(row: Row, field: ColumnMapping, value: Any) -> float:
    number = _number(row, field, value) * (1000 if field.values == ("s",) else 1)
    if number < 0:
        _refuse(row, field, value, "a time from 0 up")
    return number
