"""Which column of an imported file holds what: column mappings as text, and guesses for the rest.

A mapping is written TARGET=COLUMN:

rt_ms=rt               the column rt
x1=dots[0].x           a value inside a column; a cell of text that holds JSON is parsed
same=response:f,yes    for yes-or-no targets, the values that mean yes
rt_ms=rt:s             for times, the unit: s or ms
image=:cat             no column: the same value in every row

`TARGETS` lists the targets; to import another variable, add it there and read it in vseg.data.importers.trials.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Any, Literal

from vseg.data.importers.rows import Row
from vseg.errors import InvalidInput

STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,6})\]")
EMPTY = {"", "null", "undefined", "na", "nan", "none"}
YES = {"1", "true", "yes", "y", "same"}
NO = {"0", "false", "no", "n", "different"}


@dataclass(frozen=True)
class Target:
    """A variable that an import reads, and the columns in which it is often found."""

    name: str
    kind: Literal["name", "boolean", "integer", "number", "time"]
    meaning: str
    guesses: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


def _guess_coordinate(axis: str, number: int) -> tuple[str, ...]:
    index = "xy".index(axis)
    names = (f"{axis}{number}", f"{axis}_{number}", f"dot{number}_{axis}", f"dot_{number}_{axis}")
    single = (f"dot{number}.{axis}", f"dot{number}[{index}]")
    lists = (f"{name}[{number - 1}]" for name in ("dots", "points", "positions", "locations", "coordinates"))
    return (*names, *single, *(path for dot in lists for path in (f"{dot}.{axis}", f"{dot}[{index}]")))


def _guess_location(letter: str, number: int) -> tuple[str, ...]:
    index = number - 1
    return (
        letter,
        f"loc{number}",
        f"location{number}",
        f"location_{number}",
        f"pair[{index}]",
        f"locations[{index}]",
    )


TARGETS = (
    Target(
        "participant", "name", "the participant",
        ("participant", "participant_id", "participantID", "participantId", "subject", "subject_id", "subjectID",
         "subjectId", "sub", "PROLIFIC_PID", "prolific_pid", "prolific_id", "prolificID", "workerId", "worker_id",
         "jatos_workerId"),
        ("subject",),
    ),
    Target("session", "name", "the session, if participants had several", ("session", "session_id", "run_id")),
    Target("image", "name", "the image",
           ("image", "image_name", "image_id", "img", "picture", "image_file", "stimulus"), ("stimulus",)),
    Target("image_width", "number", "its width in pixels", ("image_width", "image_width_px", "img_width")),
    Target("image_height", "number", "its height in pixels", ("image_height", "image_height_px", "img_height")),
    Target("block", "integer", "the number of the block", ("block", "block_index", "block_number", "blockNumber")),
    Target("trial", "integer", "the number of the trial", ("trial", "trial_index", "trial_number", "trialNumber"),
           ("trial_index",)),
    Target("i", "integer", "location of the first dot", _guess_location("i", 1)),
    Target("j", "integer", "location of the second dot", _guess_location("j", 2)),
    *(Target(f"{axis}{number}", "number", f"{axis} of dot {number}", _guess_coordinate(axis, number))
      for number in (1, 2) for axis in "xy"),
    Target("same", "boolean", "the answer, and the values that mean 'same'",
           ("same", "answer_same", "response", "key_press")),
    Target("different", "boolean", "the answer, and the values that mean 'different'"),
    Target("rt_ms", "time", "reaction time", ("rt_ms", "rt", "RT", "reaction_time"), ("rt",)),
    Target("practice", "boolean", "whether it was a practice trial", ("practice", "is_practice", "isPractice")),
    Target("catch", "boolean", "whether it was a catch trial",
           ("catch", "is_catch", "isCatch", "catch_trial", "attention_check")),
    Target("correct", "boolean", "whether the answer to a practice or catch trial was correct", ("correct",)),
    Target("only", "boolean", "whether to read the row at all"),
)  # fmt: skip
TARGETS_BY_NAME = {name: target for target in TARGETS for name in (*target.aliases, target.name)}
DOTS = ("x1", "y1", "x2", "y2")
PAIR = ("i", "j")


@dataclass(frozen=True)
class ColumnMapping:
    """The column that holds a target, and the values that mean yes."""

    target: Target
    column: str
    values: tuple[str, ...] = ()
    guessed: bool = False

    @cached_property
    def steps(self) -> tuple[str | int, ...]:
        """The way to the value: dots[0].x is ("dots", 0, "x")."""
        root = re.match(r"[^.\[\]]*", self.column)
        assert root is not None
        inner = STEP.findall(self.column[root.end() :])
        return (root[0], *(name or int(number) for name, number in inner))

    @cached_property
    def root(self) -> str:
        """The name of the column without the way inside it."""
        return str(self.steps[0])

    @cached_property
    def is_nested(self) -> bool:
        """Whether the value is inside the cell, such as dots[0].x."""
        return len(self.steps) > 1

    def value(self, row: Row) -> Any:
        """Return the value in a row; None if it is missing or empty."""
        if not self.column:
            return ",".join(self.values)
        value = row.cells.get(self.column)
        if value is None and self.is_nested:
            value = _look_inside(row.cells.get(self.root), self.steps[1:])
        return None if value is None or is_empty(value) else value

    def is_yes(self, row: Row) -> bool | None:
        """Return whether a row says yes; None if it says neither yes nor no."""
        return self.means_yes(self.value(row))

    def means_yes(self, value: Any) -> bool | None:
        """Return whether a value means yes; None if it means neither yes nor no."""
        text = as_text(value)
        if self.values:
            return text is not None and text.casefold() in self._yes_values
        if text is None or text.lower() not in YES | NO:
            return None
        return text.lower() in YES

    @cached_property
    def _yes_values(self) -> set[str]:
        return {value.casefold() for value in self.values}

    def __str__(self) -> str:
        """Describe the mapping for readers: same from response (f)."""
        if not self.column:
            return f"{self.target.name} is {', '.join(self.values)}"
        values = f" ({', '.join(self.values)})" if self.values else ""
        return f"{self.target.name} from {self.column}{values}"


def is_empty(value: Any) -> bool:
    """Return whether a cell is empty: null, blank text or NaN."""
    if isinstance(value, str):
        return (len(value) < 12 or value.isspace()) and value.strip().lower() in EMPTY
    return value is None or value != value


def _look_inside(value: Any, steps: Sequence[str | int]) -> Any:
    if value is None:
        return None
    if isinstance(value, str):
        value = _parse_json_cell(value)
    for step in steps:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value


@lru_cache(maxsize=16)  # the same cell is read for x1, y1, x2 and y2
def _parse_json_cell(text: str) -> Any:
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def as_text(value: Any) -> str | None:
    """Return a value as text, the same for JSON and CSV; None if it is not a single value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str | int | float):
        return str(value).encode("utf-8", "replace").decode("utf-8").strip()
    return None


# ── parsing mappings ──


def parse_mappings(texts: Iterable[str]) -> dict[str, ColumnMapping]:
    """Parse mappings such as "same=response:f"; return them by target.

    Examples
    --------
    >>> parse_mappings(["same=response:f,yes", "x1=dots[0].x"])["x1"].steps
    ('dots', 0, 'x')
    """
    mappings: dict[str, ColumnMapping] = {}
    for text in texts:
        mapping = _parse_mapping(text)
        if mapping.target.name in mappings:
            raise InvalidInput(
                f"The target {mapping.target.name} is mapped twice; expected one column for it."
            )
        mappings[mapping.target.name] = mapping
    return mappings


def _parse_mapping(text: str) -> ColumnMapping:
    name, equals, rest = text.partition("=")
    target = TARGETS_BY_NAME.get(name.strip())
    if not equals or not rest.strip():
        raise InvalidInput(
            f"Expected a column mapping TARGET=COLUMN such as rt_ms=rt or same=response:f, got {text!r}."
        )
    if target is None:
        close = get_close_matches(name.strip(), TARGETS_BY_NAME, 1)
        hint = f"did you mean {close[0]}? There are" if close else "there are"
        names = ", ".join(target.name for target in TARGETS)
        raise InvalidInput(f"Column mapping {text}: unknown target {name!r}; {hint} {names}.")
    column, colon, listed = rest.partition(":")
    values = tuple(value.strip() for value in listed.split(",")) if colon else ()
    _check_values(text, target, column.strip(), values)
    return ColumnMapping(target, column.strip(), values)


def _check_values(text: str, target: Target, column: str, values: tuple[str, ...]) -> None:
    start = f"Column mapping {text}:"
    if values and not all(values):
        raise InvalidInput(f"{start} a value is missing after the colon.")
    if target.kind == "time" and values and (values not in (("s",), ("ms",)) or not column):
        raise InvalidInput(f"{start} expected the unit of the time after the colon, s or ms.")
    if target.kind == "boolean" and not column:
        raise InvalidInput(f"{start} expected a column before the colon, as in same=response:f.")
    if target.kind in ("name", "integer", "number") and column and values:
        raise InvalidInput(
            f"{start} only yes-or-no targets and times have values after the colon; "
            f"for one value in every row write {target.name}=:VALUE."
        )
    if target.name == "different" and not values:
        raise InvalidInput(f"{start} expected the values that mean 'different', as in different=response:j.")


# ── completing them with guesses ──


def complete_mappings(given: Mapping[str, ColumnMapping], rows: Sequence[Row]) -> dict[str, ColumnMapping]:
    """Check the given mappings against the columns of the rows, and guess a column for each other target."""
    columns = list(dict.fromkeys(name for row in rows for name in row.cells))
    present = set(columns)
    for mapping in given.values():
        if mapping.column and mapping.column not in present and mapping.root not in present:
            raise InvalidInput(
                f"Column mapping {mapping.target.name}={mapping.column}: there is no column {mapping.root!r}; "
                f"found {_list_columns(columns)}."
            )
    mappings = dict(given)
    _guess(mappings, [target for target in TARGETS if target.name in (*PAIR, *DOTS)], present, rows)
    _drop_half_of_dots(mappings, given)
    trials = [
        row
        for row in rows
        if has_dots(row, mappings) and ("only" not in mappings or mappings["only"].is_yes(row))
    ]
    _guess(mappings, TARGETS[:1], present, rows)  # the participant may be named outside the trials
    _guess(mappings, [target for target in TARGETS[1:] if target.name not in (*PAIR, *DOTS)], present, trials)
    for name in ("practice", "catch", "correct"):
        _drop_unclear(mappings, name, trials)
    _check_required(mappings, columns)
    _check_same(mappings["same"], trials)
    return {target.name: mappings[target.name] for target in TARGETS if target.name in mappings}


def _guess(
    mappings: dict[str, ColumnMapping],
    targets: Iterable[Target],
    present: Collection[str],
    rows: Sequence[Row],
) -> None:
    for target in targets:
        if target.name not in mappings and not _is_ruled_out(target.name, mappings):
            guess = next((path for path in target.guesses if _holds(target, path, present, rows)), None)
            if guess is not None:
                mappings[target.name] = ColumnMapping(target, guess, guessed=True)


def _is_ruled_out(name: str, mappings: Mapping[str, ColumnMapping]) -> bool:
    """Return whether not to guess a target: coordinates if locations were mapped, and the reverse."""
    given = {target for target, mapping in mappings.items() if not mapping.guessed}
    by_pair, by_dots = any(target in given for target in PAIR), any(target in given for target in DOTS)
    return (name in DOTS and by_pair and not by_dots) or (name in PAIR and by_dots and not by_pair)


def _holds(target: Target, path: str, present: Collection[str], rows: Sequence[Row]) -> bool:
    """Return whether a column is present and its first value can be the target's."""
    mapping = ColumnMapping(target, path)
    if path not in present and (mapping.root not in present or not mapping.is_nested):
        return False
    first = next((value for row in rows if (value := mapping.value(row)) is not None), None)
    text = as_text(first)
    return bool(text) and not (target.name == "image" and "<" in str(text) and "src=" not in str(text))


def _drop_unclear(mappings: dict[str, ColumnMapping], name: str, rows: Sequence[Row]) -> None:
    """Drop a guess whose values are not all yes or no."""
    mapping = mappings.get(name)
    if mapping is not None and mapping.guessed:
        values = {str(as_text(value)).lower() for row in rows if (value := mapping.value(row)) is not None}
        if not values <= YES | NO:
            del mappings[name]


def _drop_half_of_dots(mappings: dict[str, ColumnMapping], given: Mapping[str, ColumnMapping]) -> None:
    """Keep either the locations or the coordinates; the locations if both are complete."""
    if all(name in mappings for name in PAIR) and not any(name in given for name in DOTS):
        for name in DOTS:
            mappings.pop(name, None)
    elif all(name in mappings for name in DOTS):
        for name in PAIR:
            mappings.pop(name, None)


def _check_required(mappings: Mapping[str, ColumnMapping], columns: list[str]) -> None:
    missing = []
    if not (all(name in mappings for name in PAIR) or all(name in mappings for name in DOTS)):
        some_found = any(name in mappings for name in DOTS)
        lacking = [name for name in DOTS if name not in mappings] if some_found else list(DOTS)
        either = "" if some_found else " (in pixels or fractions), or the locations i, j"
        missing.append(
            f"the two dots: {', '.join(lacking)}{either}, mapped as in {lacking[0]}=COLUMN "
            f"or {lacking[0]}=dots[0].{lacking[0][0]}"
        )
    if "same" not in mappings:
        missing.append("the answer, mapped as in same=COLUMN:VALUE")
    if missing:
        raise InvalidInput(
            f"No column gives {' nor '.join(missing)}. Found the columns {_list_columns(columns)}."
        )


def _check_same(mapping: ColumnMapping, rows: Sequence[Row]) -> None:
    """Raise an error that lists the answers, if no values were given and the answers are not plainly yes or no."""
    if mapping.values:
        return
    counts: dict[str, int] = {}
    for row in rows:
        if (value := mapping.value(row)) is not None:
            text = str(as_text(value))[:40]
            counts[text] = counts.get(text, 0) + 1
    unclear = [text for text in counts if text.lower() not in YES | NO]
    if unclear:
        most_common = sorted(counts, key=lambda text: -counts[text])[:6]
        listed = ", ".join(f"{text} ({counts[text]})" for text in most_common)
        raise InvalidInput(
            f"Which answer means 'same'? The column {mapping.column} holds {listed}: "
            f"map it as same={mapping.column}:VALUE with the value that means 'same'."
        )


def has_dots(row: Row, mappings: Mapping[str, ColumnMapping]) -> bool:
    """Return whether a row has a value for either dot."""
    return any(mappings[name].value(row) is not None for name in (*PAIR, *DOTS) if name in mappings)


def _list_columns(columns: list[str]) -> str:
    some = ", ".join(name if len(name) <= 40 else f"{name[:40]}…" for name in columns[:40])
    return (some or "none") + (f" and {len(columns) - 40} more" if len(columns) > 40 else "")
