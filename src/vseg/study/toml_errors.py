"""What is wrong with a TOML file, in a sentence that names the line.

`refused(error, text, schema)` words pydantic's errors from the JSON schema: "line 12: timing.cue_ms should be a
whole number from 0 to 60000, got -5". `lines(text)` finds the line of every key, which tomllib does not tell.
"""

import json
import math
import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

Path = tuple[str | int, ...]
LONGEST_KEY, LONGEST_REASON = 80, 500
LONGEST_VALUE = 60
SHOULD_BE = "should_be"  # in a field's json_schema_extra: the words for its pattern


def wrong(sentence: str, *steps: str | int) -> PydanticCustomError:
    """For a validator: what is wrong, and the key below its table that the line is to be of."""
    return PydanticCustomError("wrong", "{sentence}", {"sentence": sentence, "steps": list(steps)})


def parsed(text: str, where: str) -> dict[str, Any]:
    """The file as tomllib reads it; a ValueError that is a sentence if it is not TOML."""
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError(
            f"{where} is nested too deeply; a file has tables in tables, hardly more."
        ) from error
    except ValueError as error:
        found = re.fullmatch(
            r"(.*?)\s*\(at (?:line (\d+), column (\d+)|end of document)\)", str(error), re.DOTALL
        )
        if not found:
            raise ValueError(f"{where} is not valid TOML: {error}.") from error
        reason = found[1][:1].lower() + found[1][1:]
        line = found[2] or text.rstrip("\n").count("\n") + 1
        column = f" at column {found[3]}" if found[3] else " at the end of the file"
        raise ValueError(f"{where}, line {line}: this is not valid TOML, {reason}{column}.") from error


def refused(error: ValidationError, text: str, schema: dict[str, Any], where: str) -> str:
    """The first refused key of the file, with its line and the reason, and how many more there are."""
    at = lines(text)
    found: dict[Path, tuple[float, str]] = {}
    for one in error.errors():
        steps = (*_known_steps(schema, one["loc"], one["type"]), *one.get("ctx", {}).get("steps", ()))
        line = _line(at, steps)
        sentence = f"{where}{f', line {line}' if line else ''}: {_reason(one, steps, schema)}"
        # What is missing has no line; a misspelt key, which has one, may be the reason.
        found.setdefault(steps, (line or math.inf, sentence))
    first = min(found.values(), key=lambda line_sentence: line_sentence[0])[1]
    return first if len(found) == 1 else f"{first} {_more(len(found) - 1)}"


def _more(count: int) -> str:
    return "One more setting is refused." if count == 1 else f"{count} more settings are refused."


def _line(at: dict[Path, int], steps: Path) -> int | None:
    """The line of a key, or of the innermost table around it."""
    return next((at[steps[:end]] for end in range(len(steps), 0, -1) if steps[:end] in at), None)


def _reason(error: Any, steps: Path, schema: dict[str, Any]) -> str:
    key = _cut(
        "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip("."),
        LONGEST_KEY,
    )
    node = _at(schema, steps)
    match error["type"]:
        case "wrong":
            return _ended(_cut(error["ctx"]["sentence"], LONGEST_REASON))
        case "value_error":
            return _ended(_cut(str(error["ctx"]["error"]), LONGEST_REASON))
        case "missing":
            return f"{key} is missing; it should be {_expected(schema, node)}."
        case "extra_forbidden":
            return f"there is no setting {key}; {_hint(schema, steps)}"
        case _:
            return f"{key} should be {_expected(schema, node)}, got {_shown(error['input'])}."


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."


def _hint(schema: dict[str, Any], steps: Path) -> str:
    """The setting that was meant, or all that there are in this table."""
    there = list((_at(schema, steps[:-1]) or {}).get("properties", {}))
    if near := get_close_matches(str(steps[-1]), there, n=1):
        return f"did you mean {near[0]}?"
    elsewhere = [f"{table}.{steps[-1]}" for table, keys in _tables(schema) if steps[-1] in keys]
    if elsewhere:
        return f"did you mean {elsewhere[0]}?"
    return f"there are {', '.join(there)}." if there else "remove it."


def _tables(schema: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for name, node in schema["properties"].items():
        yield name, list(_resolved(schema, node).get("properties", {}))


def _shown(value: Any) -> str:
    """A value as a TOML file writes it, cut short."""
    try:
        shown = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:  # such as 0xfff… of so many digits that Python does not write it out in tens
        return "a number of thousands of digits"
    shown = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}.get(shown, shown)
    return _cut(shown, LONGEST_VALUE)


def _cut(text: str, longest: int) -> str:
    """A file may have keys and values of any length; a sentence may not."""
    return text if len(text) <= longest else f"{text[:longest]}…"


# ── the schema: what would have been right ──


def _known_steps(schema: dict[str, Any], location: Path, kind: str) -> Path:
    """The steps that are keys of the file: pydantic also puts in the members of a union it has tried."""
    steps: list[str | int] = []
    for step in location:
        if _at(schema, (*steps, step)) is None and not (kind == "extra_forbidden" and step == location[-1]):
            break
        steps.append(step)
    return tuple(steps)


def _at(schema: dict[str, Any], steps: Path) -> dict[str, Any] | None:
    """The part of the schema that describes a key."""
    node: dict[str, Any] | None = schema
    for step in steps:
        node = _resolved(schema, node or {})
        if isinstance(step, int):
            items = node.get("prefixItems", [])
            node = items[step] if step < len(items) else node.get("items") or None
        else:
            more = node.get("additionalProperties")
            node = node.get("properties", {}).get(step) or (more if isinstance(more, dict) else None)
        if node is None:
            return None
    return _resolved(schema, node or {})


def _resolved(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """Past references, and past 'or nothing'."""
    if "$ref" in node:
        return _resolved(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    some = [one for one in node.get("anyOf", []) if one.get("type") != "null"]
    return _resolved(schema, some[0]) if len(some) == 1 else node


def _expected(schema: dict[str, Any], node: dict[str, Any] | None) -> str:
    """'a whole number from 2 to 12 or "free"'."""
    node = _resolved(schema, node or {})
    if "anyOf" in node:
        return " or ".join(_expected(schema, one) for one in node["anyOf"])
    choices = node.get("enum") or ([node["const"]] if "const" in node else [])
    if choices:
        quoted = [json.dumps(choice, ensure_ascii=False) for choice in choices]
        return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
    match node.get("type"):
        case "integer":
            return f"a whole number{_range(node)}"
        case "number":
            return f"a number{_range(node)}"
        case "boolean":
            return "true or false"
        case "string":
            return node.get(SHOULD_BE) or f"a text{_length(node, 'minLength', 'maxLength', 'characters')}"
        case "array":
            return _expected_list(schema, node)
        case _:
            return f"a table{_keys_of(node)}"


def _expected_list(schema: dict[str, Any], node: dict[str, Any]) -> str:
    if "prefixItems" in node:
        items = [_expected(schema, item) for item in node["prefixItems"]]
        return f"a list of {len(items)} values, each {items[0]}"
    inner = _resolved(schema, node.get("items", {}))
    what = (
        "tables" if inner.get("type") == "object" else "lists" if inner.get("type") == "array" else "values"
    )
    return f"a list of {what}{_length(node, 'minItems', 'maxItems', 'entries')}"


def _keys_of(node: dict[str, Any]) -> str:
    keys = list(node.get("properties", {}))
    return f" with settings such as {keys[0]}" if keys else ""


def _range(node: dict[str, Any]) -> str:
    low, above = node.get("minimum"), node.get("exclusiveMinimum")
    high, below = node.get("maximum"), node.get("exclusiveMaximum")
    start = f" above {above:g}" if above is not None else f" from {low:g}" if low is not None else ""
    if high is None and below is None:
        return f"{start} up" if low is not None else start
    end = f"below {below}" if high is None else f"{high:.12g}"
    return f"{start} to {end}" if low is not None else f"{start}{' and' if start else ''} up to {end}"


def _length(node: dict[str, Any], least: str, most: str, what: str) -> str:
    low, high = node.get(least), node.get(most)
    if low and high:
        return f" of {low} to {high} {what}"
    return f" of at most {high} {what}" if high else ""


# ── lines: a walk through text that tomllib has accepted ──

_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'", re.DOTALL
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]+")


def lines(text: str) -> dict[Path, int]:
    """The line of every key and table of a TOML text, by its path; lists count from 0.

    Examples
    --------
    >>> lines("a = 1\\n[b]\\nc = [5, {d = 6}]")[("b", "c", 1, "d")]
    3
    """
    return _Walk(text).found


class _Walk:
    """One pass over the text, which notes the line of each key where it begins."""

    def __init__(self, text: str):
        self.text, self.at = text, 0
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.found: dict[Path, int] = {}
        self.last: dict[Path, int] = {}  # of each array of tables, the number of its last one
        table: Path = ()
        self._skip()
        while self.at < len(text):
            if text[self.at] == "[":
                table = self._header()
            else:
                self._entry(table)
            self._skip()

    def _skip(self, spaces: re.Pattern[str] = _SPACE) -> None:
        found = spaces.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _note(self, path: Path) -> None:
        for end in range(1, len(path) + 1):
            self.found.setdefault(path[:end], bisect_right(self.starts, self.at))

    def _key(self) -> Path:
        parts: list[str] = []
        while True:
            self._skip(_BLANK)
            found = _STRING.match(self.text, self.at) or _BARE.match(self.text, self.at)
            assert found is not None
            parts.append(tomllib.loads(f"k = {found[0]}")["k"] if found[0][0] in "\"'" else found[0])
            self.at = found.end()
            self._skip(_BLANK)
            if self.text[self.at] != ".":
                return tuple(parts)
            self.at += 1

    def _header(self) -> Path:
        start, many = self.at, self.text.startswith("[[", self.at)
        self.at += 1 + many
        key = self._key()
        end, self.at = self.at + 1 + many, start
        path: Path = ()
        for number, part in enumerate(key, start=1):
            path = (*path, part)
            if many and number == len(key):
                self.last[path] = self.last.get(path, -1) + 1
            if path in self.last:
                path = (*path, self.last[path])
        self._note(path)
        self.at = end
        return path

    def _entry(self, table: Path) -> None:
        start = self.at
        path = (*table, *self._key())
        end, self.at = self.at + 1, start
        self._note(path)
        self.at = end
        self._skip()
        self._value(path)

    def _value(self, path: Path) -> None:
        opened = self.text[self.at]
        if opened in "[{":
            self.at += 1
            self._skip()
            count = 0
            while self.text[self.at] != ("]" if opened == "[" else "}"):
                if opened == "[":
                    self._note((*path, count))
                    self._value((*path, count))
                else:
                    self._entry(path)
                count += 1
                self._skip()
                if self.text[self.at] == ",":
                    self.at += 1
                    self._skip()
            self.at += 1
        else:
            found = _STRING.match(self.text, self.at) or _SCALAR.match(self.text, self.at)
            assert found is not None
            self.at = found.end()
