"""Errors in a TOML file as sentences that name the line.

`describe_validation_error` turns pydantic's errors into sentences with the help of the JSON schema:
"line 12: timing.cue_ms should be a whole number from 0 to 60000, got -5". `find_key_lines` finds the line of every
key, which tomllib does not report. `setting_error` is what the validators of the study file raise.
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
from pydantic_core import ErrorDetails, PydanticCustomError

KeyPath = tuple[str | int, ...]  # from the top of the file to a key, such as ("images", 0, "name")
JsonSchema = dict[str, Any]

MAX_DEPTH = 8  # tables, lists and keys within each other; a study needs four
MAX_VALUES = 30_000  # settings, tables and entries of lists; the largest valid study has about 23,000
LONGEST_KEY, LONGEST_REASON, LONGEST_VALUE = 80, 500, 60  # characters in a message
MAX_MESSAGES = 20  # settings that one message names
SHOULD_BE = "should_be"  # key of a field's json_schema_extra that describes its pattern in words


# Quantifiers are possessive, and an unclosed string reaches to the end of its line or of the file: time is linear in
# the length of any text, valid or not.
_SPACE = re.compile(r"(?:\s++|#[^\n]*+)*+")
_BLANK = re.compile(r"[ \t]*+")
_STRING = re.compile(
    r'"{3}(?:[^"\\]++|\\.|"(?!""))*+"{0,5}' r"|'{3}(?:[^']++|'(?!''))*+'{0,5}"
    r'|"(?:[^"\\\n]++|\\[^\n])*+"?' r"|'[^'\n]*+'?", re.DOTALL
)  # fmt: skip
_TOKEN = re.compile(rf"(?P<space>(?=[\s#]){_SPACE.pattern})|{_STRING.pattern}|[.,=\[\]{{}}]", re.DOTALL)


def setting_error(reason: str, *path: str | int) -> PydanticCustomError:
    """Return the error to raise in a validator.

    Parameters
    ----------
    reason : str
        What is wrong, in words.
    *path : str or int
        The key, relative to the validated table, whose line the message is to name; the table's own if left out.
    """
    return PydanticCustomError("wrong", "{reason}", {"reason": reason, "path": list(path)})


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """Parse TOML; raise a ValueError that names the source and the line if it is invalid, too deep or too large."""
    _check_limits(text, source)
    try:
        return tomllib.loads(text)
    except ValueError as error:
        match = re.fullmatch(
            r"(.*?)\s*\(at (?:line (\d+), column (\d+)|end of document)\)", str(error), re.DOTALL
        )
        if not match:
            raise ValueError(f"{source} is not valid TOML: {error}.") from error
        reason = match[1][:1].lower() + match[1][1:]
        line = match[2] or text.rstrip("\n").count("\n") + 1
        column = f" at column {match[3]}" if match[3] else " at the end of the file"
        raise ValueError(f"{source}, line {line}: this is not valid TOML, {reason}{column}.") from error


def _check_limits(text: str, source: str) -> None:
    """Raise a ValueError if the file is nested too deeply or has too many values.

    It runs before tomllib, whose time and memory grow with the square of the number of names in a key.
    """
    values, depth, table_depth = (
        0,
        1,
        0,
    )  # depths: names from the top of the file to the current key and table
    outer: list[int] = []  # depths around the brackets that are open
    statement, in_header = 0, False  # where the current statement begins; whether it is a [header]
    for match in _TOKEN.finditer(text):
        token = match[0]
        if match["space"]:
            if not outer and ("\n" in token or match.start() == statement):
                table_depth = depth if in_header else table_depth
                depth, statement, in_header = table_depth + 1, match.end(), False
        elif in_header:
            depth += token == "."
        elif token == "[" and match.start() == statement and not outer:
            in_header, depth = True, 1
            values += 1
        elif token in "[{":
            outer.append(depth)
            depth += 1
            values += 1
        elif token in "]}":
            depth = outer.pop() if outer else depth
        elif token in ".=,":
            depth = outer[-1] + 1 if token == "," and outer else depth + (token == ".")
            values += token != "."
        if depth > MAX_DEPTH:
            line = text.count("\n", 0, match.start()) + 1
            raise ValueError(
                f"{source}, line {line}: this is nested too deeply; expected at most {MAX_DEPTH} tables, lists and "
                "keys within each other."
            )
        if values > MAX_VALUES:
            raise ValueError(
                f"{source} has more than {MAX_VALUES} settings and entries of lists; leave out what no study needs."
            )


def describe_validation_error(error: ValidationError, text: str, schema: JsonSchema, source: str) -> str:
    """Describe the errors in the file, one on each line of the message, in the order of their lines in the file.

    Parameters
    ----------
    error : ValidationError
        What pydantic raised.
    text : str
        The TOML text that was validated.
    schema : dict
        The JSON schema of the model that validated it.
    source : str
        What the message calls the file.
    """
    lines = find_key_lines(text)
    first: dict[KeyPath, ErrorDetails] = {}
    for details in error.errors(include_url=False):
        path = (
            *_path_in_file(schema, details["loc"], details["type"]),
            *details.get("ctx", {}).get("path", ()),
        )
        first.setdefault(path, details)
    # Missing keys have no line and come last: a misspelt key, which has a line, may be the reason.
    ordered = sorted(first, key=lambda path: _line_of_key(lines, path) or math.inf)
    messages = []
    for path in ordered[:MAX_MESSAGES]:
        line = _line_of_key(lines, path)
        where = f"{source}, line {line}" if line else source
        messages.append(f"{where}: {_describe_error(first[path], path, schema)}")
    others = len(ordered) - MAX_MESSAGES
    if others > 0:
        messages.append(f"{others} more setting{' is' if others == 1 else 's are'} wrong.")
    return "\n".join(messages)


def _line_of_key(lines: dict[KeyPath, int], path: KeyPath) -> int | None:
    """Return the line of a key, or of the innermost table around it."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)


def _describe_error(error: ErrorDetails, path: KeyPath, schema: JsonSchema) -> str:
    dotted = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    key = _shorten(dotted, LONGEST_KEY)
    node = _schema_at(schema, path)
    match error["type"]:
        case "wrong":
            return _end_sentence(_shorten(error["ctx"]["reason"], LONGEST_REASON))
        case "value_error":
            return _end_sentence(_shorten(str(error["ctx"]["error"]), LONGEST_REASON))
        case "missing":
            return f"{key} is missing; it should be {_describe_expected(schema, node)}."
        case "extra_forbidden":
            return f"there is no setting {key}; {_suggest_setting(schema, path)}"
        case _:
            return f"{key} should be {_describe_expected(schema, node)}, got {_format_value(error['input'])}."


def _end_sentence(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."


def _suggest_setting(schema: JsonSchema, path: KeyPath) -> str:
    """Suggest the most similar setting, the same key in another table, or list the table's settings."""
    table = _schema_at(schema, path[:-1]) or {}
    options = [_resolve(schema, option) for option in table.get("oneOf", [table])]
    settings = [name for option in options for name in option.get("properties", {})]
    if close := get_close_matches(str(path[-1]), settings, n=1):
        return f"did you mean {close[0]}?"
    elsewhere = [f"{table}.{path[-1]}" for table, keys in _list_tables(schema) if path[-1] in keys]
    if elsewhere:
        return f"did you mean {elsewhere[0]}?"
    return f"there are {', '.join(settings)}." if settings else "remove it."


def _list_tables(schema: JsonSchema) -> Iterator[tuple[str, list[str]]]:
    for name, node in schema["properties"].items():
        yield name, list(_resolve(schema, node).get("properties", {}))


def _format_value(value: object) -> str:
    """Return a value as TOML writes it, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:  # Python refuses to write integers of more than 4300 digits
        return "a number of thousands of digits"
    text = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}.get(text, text)
    return _shorten(text, LONGEST_VALUE)


def _shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


# ── what the schema expects ──


def _path_in_file(schema: JsonSchema, location: KeyPath, error_type: str) -> KeyPath:
    """Return the steps of pydantic's location that are in the file, without the members of unions that it adds."""
    path: list[str | int] = []
    for number, step in enumerate(location, start=1):
        unknown_key = error_type == "extra_forbidden" and number == len(location)
        if unknown_key or _schema_at(schema, (*path, step)) is not None:
            path.append(step)
    return tuple(path)


def _schema_at(schema: JsonSchema, path: KeyPath) -> JsonSchema | None:
    """Return the part of the schema that describes a key, or None if there is no such key."""
    node: JsonSchema | None = schema
    for step in path:
        node = _resolve(schema, node or {})
        if isinstance(step, int):
            items = node.get("prefixItems", [])
            node = items[step] if step < len(items) else node.get("items") or None
        else:
            tables = [_resolve(schema, option) for option in node.get("oneOf", [node])]
            node = next((found for table in tables if (found := _find_entry(table, step))), None)
        if node is None:
            return None
    return _resolve(schema, node or {})


def _find_entry(table: JsonSchema, key: str) -> JsonSchema | None:
    more = table.get("additionalProperties")
    return table.get("properties", {}).get(key) or (more if isinstance(more, dict) else None)


def _resolve(schema: JsonSchema, node: JsonSchema) -> JsonSchema:
    """Follow references, and drop the null of an optional value."""
    if "$ref" in node:
        return _resolve(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    options = [option for option in node.get("anyOf", []) if option.get("type") != "null"]
    return _resolve(schema, options[0]) if len(options) == 1 else node


def _describe_expected(schema: JsonSchema, node: JsonSchema | None) -> str:
    """Describe the values a setting can have, such as 'a whole number from 2 to 12 or "free"'."""
    node = _resolve(schema, node or {})
    if options := node.get("anyOf") or node.get("oneOf"):
        return " or ".join(_describe_expected(schema, option) for option in options)
    choices = node.get("enum") or ([node["const"]] if "const" in node else [])
    if choices:
        quoted = [json.dumps(choice, ensure_ascii=False) for choice in choices]
        return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
    match node.get("type"):
        case "integer":
            return f"a whole number{_describe_range(node)}"
        case "number":
            return f"a number{_describe_range(node)}"
        case "boolean":
            return "true or false"
        case "string":
            length = _describe_length(node, "minLength", "maxLength", "characters")
            return node.get(SHOULD_BE) or f"a text{length}"
        case "array":
            return _describe_list(schema, node)
        case _:
            keys = list(node.get("properties", {}))
            return f"a table with settings such as {keys[0]}" if keys else "a table"


def _describe_list(schema: JsonSchema, node: JsonSchema) -> str:
    if "prefixItems" in node:
        items = [_describe_expected(schema, item) for item in node["prefixItems"]]
        return f"a list of {len(items)} values, each {items[0]}"
    item_type = _resolve(schema, node.get("items", {})).get("type")
    items_noun = {"object": "tables", "array": "lists"}.get(item_type or "", "values")
    return f"a list of {items_noun}{_describe_length(node, 'minItems', 'maxItems', 'entries')}"


def _describe_range(node: JsonSchema) -> str:
    low, above = node.get("minimum"), node.get("exclusiveMinimum")
    high, below = node.get("maximum"), node.get("exclusiveMaximum")
    start = f" above {above:g}" if above is not None else f" from {low:g}" if low is not None else ""
    if high is None and below is None:
        return f"{start} up" if low is not None else start
    if low is not None:
        return f"{start} to {f'below {below}' if high is None else f'{high:.12g}'}"
    end = f"below {below:g}" if high is None else f"up to {high:.12g}"
    return f"{start} and {end}" if start else f" {end}"


def _describe_length(node: JsonSchema, min_key: str, max_key: str, unit: str) -> str:
    low, high = node.get(min_key), node.get(max_key)
    if low and high:
        return f" of {low} to {high} {unit}"
    return f" of at most {high} {unit}" if high else ""


# ── the lines of the keys ──

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]+")


def find_key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line of every key and table of a valid TOML text, by path; entries of lists count from 0.

    Examples
    --------
    >>> find_key_lines("a = 1\\n[b]\\nc = [5, {d = 6}]")[("b", "c", 1, "d")]
    3
    """
    return _KeyScanner(text).lines


class _KeyScanner:
    """One pass over a TOML text that tomllib has accepted; notes the line on which each key begins."""

    def __init__(self, text: str):
        self.text, self.position = text, 0
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.lines: dict[KeyPath, int] = {}
        self.last_entry: dict[KeyPath, int] = {}  # number of the last entry of each array of tables
        table: KeyPath = ()
        self._skip()
        while self.position < len(text):
            if text[self.position] == "[":
                table = self._read_header()
            else:
                self._read_entry(table)
            self._skip()

    def _skip(self, pattern: re.Pattern[str] = _SPACE) -> None:
        match = pattern.match(self.text, self.position)
        self.position = match.end() if match else self.position

    def _note(self, path: KeyPath, position: int) -> None:
        """Note the line of a key, and of the tables around it that have none yet."""
        line = bisect_right(self.line_starts, position)
        for end in range(len(path), 0, -1):
            if path[:end] in self.lines:  # and so are the tables around it
                return
            self.lines[path[:end]] = line

    def _read_key(self) -> KeyPath:
        parts: list[str] = []
        while True:
            self._skip(_BLANK)
            match = _STRING.match(self.text, self.position) or _BARE.match(self.text, self.position)
            assert match is not None
            parts.append(tomllib.loads(f"k = {match[0]}")["k"] if match[0][0] in "\"'" else match[0])
            self.position = match.end()
            self._skip(_BLANK)
            if self.text[self.position] != ".":
                return tuple(parts)
            self.position += 1

    def _read_header(self) -> KeyPath:
        start, is_array = self.position, self.text.startswith("[[", self.position)
        self.position += 1 + is_array
        key = self._read_key()
        self.position += 1 + is_array
        path: KeyPath = ()
        for number, part in enumerate(key, start=1):
            path = (*path, part)
            if is_array and number == len(key):
                self.last_entry[path] = self.last_entry.get(path, -1) + 1
            if path in self.last_entry:
                path = (*path, self.last_entry[path])
        self._note(path, start)
        return path

    def _read_entry(self, table: KeyPath) -> None:
        start = self.position
        path = (*table, *self._read_key())
        self._note(path, start)
        self.position += 1  # the equals sign
        self._skip()
        self._read_value(path)

    def _read_value(self, path: KeyPath) -> None:
        opening = self.text[self.position]
        if opening in "[{":
            self.position += 1
            self._skip()
            count = 0
            while self.text[self.position] != ("]" if opening == "[" else "}"):
                if opening == "[":
                    self._note((*path, count), self.position)
                    self._read_value((*path, count))
                else:
                    self._read_entry(path)
                count += 1
                self._skip()
                if self.text[self.position] == ",":
                    self.position += 1
                    self._skip()
            self.position += 1
        else:
            match = _STRING.match(self.text, self.position) or _SCALAR.match(self.text, self.position)
            assert match is not None
            self.position = match.end()
