"""Which column holds what: a small language, and guesses where nothing was said.

rt_ms=rt               the column rt
x1=dots[0].x           deeper down; a cell of text that holds JSON is opened
same=response:f,yes    for yes-or-no targets, the values that mean yes
rt_ms=rt:s             for times, the unit: s or ms
image=:cat             no column: the same value in every row
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Any

from vseg.data.importers.rows import Row
from vseg.errors import InvalidInput

STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,6})\]")
NOTHING = {"", "null", "undefined", "na", "nan", "none"}
YES = {"1", "true", "yes", "y", "same"}
NO = {"0", "false", "no", "n", "different"}


@dataclass(frozen=True)
class Target:
    """Something an import wants to know of each trial, and the places where it often is."""

    name: str
    kind: str  # name, truth, whole, number or time
    meaning: str
    guesses: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


def _coordinate(axis: str, number: int) -> tuple[str, ...]:
    at = "xy".index(axis)
    names = (f"{axis}{number}", f"{axis}_{number}", f"dot{number}_{axis}", f"dot_{number}_{axis}")
    single = (f"dot{number}.{axis}", f"dot{number}[{at}]")
    lists = (f"{name}[{number - 1}]" for name in ("dots", "points", "positions", "locations", "coordinates"))
    return (*names, *single, *(path for one in lists for path in (f"{one}.{axis}", f"{one}[{at}]")))


def _location(letter: str, number: int) -> tuple[str, ...]:
    at = number - 1
    return (
        letter,
        f"loc{number}",
        f"location{number}",
        f"location_{number}",
        f"pair[{at}]",
        f"locations[{at}]",
    )


TARGETS = (
    Target(
        "participant", "name", "who answered",
        ("participant", "participant_id", "participantID", "participantId", "subject", "subject_id", "subjectID",
         "subjectId", "sub", "PROLIFIC_PID", "prolific_pid", "prolific_id", "prolificID", "workerId", "worker_id",
         "jatos_workerId"),
        ("subject",),
    ),
    Target("session", "name", "the sitting, where people came several times", ("session", "session_id", "run_id")),
    Target("image", "name", "the image",
           ("image", "image_name", "image_id", "img", "picture", "image_file", "stimulus"), ("stimulus",)),
    Target("image_width", "number", "its width in pixels", ("image_width", "image_width_px", "img_width")),
    Target("image_height", "number", "its height in pixels", ("image_height", "image_height_px", "img_height")),
    Target("block", "whole", "block, a number", ("block", "block_index", "block_number", "blockNumber")),
    Target("trial", "whole", "trial, a number", ("trial", "trial_index", "trial_number", "trialNumber"),
           ("trial_index",)),
    Target("i", "whole", "location of the first dot", _location("i", 1)),
    Target("j", "whole", "location of the second dot", _location("j", 2)),
    *(Target(f"{axis}{number}", "number", f"{axis} of dot {number}", _coordinate(axis, number))
      for number in (1, 2) for axis in "xy"),
    Target("same", "truth", "the answer, and what counts as same", ("same", "answer_same", "response", "key_press")),
    Target("different", "truth", "the answer, and what counts as different"),
    Target("rt_ms", "time", "reaction time", ("rt_ms", "rt", "RT", "reaction_time"), ("rt",)),
    Target("practice", "truth", "whether it was practice", ("practice", "is_practice", "isPractice")),
    Target("catch", "truth", "whether it was a catch trial",
           ("catch", "is_catch", "isCatch", "catch_trial", "attention_check")),
    Target("correct", "truth", "whether the answer of a practice or catch trial is right", ("correct",)),
    Target("only", "truth", "which rows to take at all"),
)  # fmt: skip
BY_NAME = {word: target for target in TARGETS for word in (*target.also, target.name)}
DOTS = ("x1", "y1", "x2", "y2")
PAIR = ("i", "j")


@dataclass(frozen=True)
class ColumnMapping:
    """Where a target is found, and which values mean yes."""

    target: Target
    column: str
    values: tuple[str, ...] = ()
    guessed: bool = False

    @cached_property
    def steps(self) -> tuple[str | int, ...]:
        """dots[0].x as ("dots", 0, "x")."""
        root = re.match(r"[^.\[\]]*", self.column)
        assert root is not None
        found = STEP.findall(self.column[root.end() :])
        return (root[0], *(name or int(number) for name, number in found))

    def value(self, row: Row) -> Any:
        """What a row holds there; None if nothing."""
        if not self.column:
            return ",".join(self.values)
        value = row.cells.get(self.column)
        if value is None and self.is_deep:
            value = _inside(row.cells.get(self.root), self.steps[1:])
        return None if value is None or is_empty(value) else value

    @cached_property
    def root(self) -> str:
        """The column itself."""
        return str(self.steps[0])

    @cached_property
    def is_deep(self) -> bool:
        """Whether it goes on inside the column."""
        return len(self.steps) > 1

    def yes(self, row: Row) -> bool | None:
        """Whether a row says yes there; None if it says neither yes nor no."""
        return self.means_yes(self.value(row))

    def means_yes(self, value: Any) -> bool | None:
        """Whether this value means yes; None if it means neither yes nor no."""
        text = as_text(value)
        if self.values:
            return text is not None and text.casefold() in self._yes
        if text is None or text.lower() not in YES | NO:
            return None
        return text.lower() in YES

    @cached_property
    def _yes(self) -> set[str]:
        return {value.casefold() for value in self.values}

    def __str__(self) -> str:
        """As it is said aloud: same from response (f)."""
        if not self.column:
            return f"{self.target.name} is {', '.join(self.values)}"
        which = f" ({', '.join(self.values)})" if self.values else ""
        return f"{self.target.name} from {self.column}{which}"


def is_empty(value: Any) -> bool:
    """Whether a cell is empty: null, no text, not a number."""
    if isinstance(value, str):
        return (len(value) < 12 or value.isspace()) and value.strip().lower() in NOTHING
    return value is None or value != value


def _inside(value: Any, steps: Sequence[str | int]) -> Any:
    if value is None:
        return None
    if isinstance(value, str):
        value = _opened(value)
    for step in steps:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value


@lru_cache(maxsize=16)  # the same cell is asked for x1, y1, x2 and y2
def _opened(text: str) -> Any:
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def as_text(value: Any) -> str | None:
    """A value as text, the same whether it came from JSON or from CSV; None for what is no single value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str | int | float):
        return str(value).encode("utf-8", "replace").decode("utf-8").strip()
    return None


# ── from what was typed ──


def parse_mappings(texts: Iterable[str]) -> dict[str, ColumnMapping]:
    """The fields behind --map options, by target.

    Examples
    --------
    >>> parsed(["same=response:f,yes", "x1=dots[0].x"])["x1"].steps
    ('dots', 0, 'x')
    """
    fields: dict[str, ColumnMapping] = {}
    for text in texts:
        field = _parsed(text)
        if field.target.name in fields:
            raise InvalidInput(f"--map names {field.target.name} twice; expected each target once.")
        fields[field.target.name] = field
    return fields


def _parsed(text: str) -> ColumnMapping:
    word, equals, rest = text.partition("=")
    target = BY_NAME.get(word.strip())
    if not equals or not rest.strip():
        raise InvalidInput(f"--map is TARGET=COLUMN such as rt_ms=rt or same=response:f, got {text!r}.")
    if target is None:
        close = get_close_matches(word.strip(), BY_NAME, 1)
        hint = f"did you mean {close[0]}? There are" if close else "there are"
        raise InvalidInput(f"--map {text}: unknown target {word!r}; {hint} {', '.join(_names())}.")
    column, colon, listed = rest.partition(":")
    values = tuple(value.strip() for value in listed.split(",")) if colon else ()
    _check_values(text, target, column.strip(), values)
    return ColumnMapping(target, column.strip(), values)


def _check_values(text: str, target: Target, column: str, values: tuple[str, ...]) -> None:
    if values and not all(values):
        raise InvalidInput(f"--map {text}: a value is missing behind the colon.")
    if target.kind == "time" and values and (values not in (("s",), ("ms",)) or not column):
        raise InvalidInput(f"--map {text}: behind the colon is the unit of the time, s or ms.")
    if target.kind == "truth" and not column:
        raise InvalidInput(f"--map {text}: name the column before the colon, as in same=response:f.")
    if target.kind in ("name", "whole", "number") and column and values:
        raise InvalidInput(
            f"--map {text}: only yes-or-no targets and times take something behind the colon; "
            f"for one value in every row write {target.name}=:VALUE."
        )
    if target.name == "different" and not values:
        raise InvalidInput(f"--map {text}: say what counts as different, as in different=response:j.")


def _names() -> list[str]:
    return [target.name for target in TARGETS]


# ── against what is there ──


def complete_mappings(given: dict[str, ColumnMapping], rows: Sequence[Row]) -> dict[str, ColumnMapping]:
    """What was given, checked against the columns, and a guess for each other target that has one."""
    columns = list(dict.fromkeys(name for row in rows for name in row.cells))
    there = set(columns)
    for field in given.values():
        if field.column and field.column not in there and field.root not in there:
            raise InvalidInput(
                f"--map {field.target.name}={field.column}: there is no column {field.root!r}; "
                f"found {_listed(columns)}."
            )
    fields = dict(given)
    _guess(fields, [target for target in TARGETS if target.name in (*PAIR, *DOTS)], there, rows)
    _settle_dots(fields, given)
    shown = [
        row for row in rows if has_dots(row, fields) and ("only" not in fields or fields["only"].yes(row))
    ]
    _guess(fields, TARGETS[:1], there, rows)  # who it was may stand beside the trials
    _guess(fields, [target for target in TARGETS[1:] if target.name not in (*PAIR, *DOTS)], there, shown)
    for name in ("practice", "catch", "correct"):
        _drop_unclear(fields, name, shown)
    _check_needed(fields, columns)
    _check_same(fields, shown)
    return {target.name: fields[target.name] for target in TARGETS if target.name in fields}


def _guess(
    fields: dict[str, ColumnMapping], targets: Iterable[Target], there: set[str], rows: Sequence[Row]
) -> None:
    for target in targets:
        if target.name not in fields and not _ruled_out(target.name, fields):
            guess = next((path for path in target.guesses if _holds(target, path, there, rows)), None)
            if guess is not None:
                fields[target.name] = ColumnMapping(target, guess, guessed=True)


def _ruled_out(name: str, fields: dict[str, ColumnMapping]) -> bool:
    """Who names locations does not want coordinates guessed, nor the other way round."""
    given = {each for each, field in fields.items() if not field.guessed}
    by_pair, by_dots = any(each in given for each in PAIR), any(each in given for each in DOTS)
    return (name in DOTS and by_pair and not by_dots) or (name in PAIR and by_dots and not by_pair)


def _holds(target: Target, path: str, there: set[str], rows: Sequence[Row]) -> bool:
    field = ColumnMapping(target, path)
    if path not in there and (field.root not in there or not field.is_deep):
        return False
    held = next((value for row in rows if (value := field.value(row)) is not None), None)
    text = as_text(held)
    return bool(text) and not (target.name == "image" and "<" in str(text) and "src=" not in str(text))


def _drop_unclear(fields: dict[str, ColumnMapping], name: str, rows: Sequence[Row]) -> None:
    """A guess that is not plainly yes or no is none."""
    field = fields.get(name)
    if field is not None and field.guessed:
        found = {str(as_text(value)).lower() for row in rows if (value := field.value(row)) is not None}
        if not found <= YES | NO:
            del fields[name]


def _settle_dots(fields: dict[str, ColumnMapping], given: dict[str, ColumnMapping]) -> None:
    """Locations where they are whole, else coordinates; never half of each."""
    if all(name in fields for name in PAIR) and not any(name in given for name in DOTS):
        for name in DOTS:
            fields.pop(name, None)
    elif all(name in fields for name in DOTS):
        for name in PAIR:
            fields.pop(name, None)


def _check_needed(fields: dict[str, ColumnMapping], columns: list[str]) -> None:
    missing = []
    if not (all(name in fields for name in PAIR) or all(name in fields for name in DOTS)):
        partly = [name for name in DOTS if name in fields]
        lacking = [name for name in DOTS if name not in fields] if partly else ["x1", "y1", "x2", "y2"]
        either = "" if partly else " (in pixels or fractions), or the locations i, j"
        missing.append(
            f"the two dots: {', '.join(lacking)}{either}, as in --map {lacking[0]}=COLUMN "
            f"or --map {lacking[0]}=dots[0].{lacking[0][0]}"
        )
    if "same" not in fields:
        missing.append("the answer, as in --map same=COLUMN:VALUE")
    if missing:
        raise InvalidInput(f"No column gives {' nor '.join(missing)}. Found the columns {_listed(columns)}.")


def _check_same(fields: dict[str, ColumnMapping], rows: Sequence[Row]) -> None:
    """Without values, the answers have to be plainly yes or no; else the message lists them."""
    field = fields["same"]
    if field.values:
        return
    counts: dict[str, int] = {}
    for row in rows:
        if (value := field.value(row)) is not None:
            text = str(as_text(value))[:40]
            counts[text] = counts.get(text, 0) + 1
    unclear = [text for text in counts if text.lower() not in YES | NO]
    if unclear:
        top = sorted(counts, key=lambda text: -counts[text])[:6]
        listed = ", ".join(f"{text} ({counts[text]})" for text in top)
        raise InvalidInput(
            f"Which answer means 'same'? The column {field.column} holds {listed}: "
            f"write --map same={field.column}:VALUE with the one that means 'same'."
        )


def has_dots(row: Row, fields: dict[str, ColumnMapping]) -> bool:
    """Whether a row says anything about the two dots."""
    return any(fields[name].value(row) is not None for name in (*PAIR, *DOTS) if name in fields)


def _listed(columns: list[str]) -> str:
    some = ", ".join(name if len(name) <= 40 else f"{name[:40]}…" for name in columns[:40])
    return (some or "none") + (f" and {len(columns) - 40} more" if len(columns) > 40 else "")
