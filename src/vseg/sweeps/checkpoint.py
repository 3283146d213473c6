"""Finished repetitions in a folder, from which an interrupted sweep continues.

sweep.json     the function's name and source, vseg's version, settings and seed; written once
trials.jsonl   a line for each finished repetition, appended task by task; it counts when its line is on the disk

A line that a crash cut short is dropped, and its repetition is run again. Only one sweep at a time writes to a folder.
"""

import ast
import hashlib
import inspect
import json
import os
import pickle
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import vseg
from vseg._support.atomic_files import write_text
from vseg.errors import Conflict, InvalidInput
from vseg.sweeps.repetitions import PLAIN, FinishedRepetition, Repetition, Setting
from vseg.sweeps.table import Row

DIFFERENCES = {
    "function": "another function",
    "source": "an earlier version of this function",
    "version": "another version of vseg",
    "settings": "other settings",
    "seed": "another seed",
}


class SweepDescription(TypedDict):
    """What the repetitions of a folder depend on: the content of sweep.json."""

    function: str
    source: str
    version: str
    settings: list[Setting]
    seed: int


class Checkpoint:
    """The folder of one sweep, open for appending; `finished` are the repetitions that it held when it was opened."""

    def __init__(self, folder: Path, function: Callable[..., Any], settings: list[Setting], seed: int):
        self.folder = folder
        if folder.exists() and not folder.is_dir():
            raise Conflict(f"{folder} is a file; expected a folder for finished repetitions, or none yet.")
        folder.mkdir(parents=True, exist_ok=True)
        self._file = open(folder / "trials.jsonl", "a+b")  # noqa: SIM115
        try:
            _lock(self._file.fileno(), folder)
            self._check_description(describe_sweep(function, settings, seed))
            self.finished = self._read_repetitions()
        except BaseException:
            self._file.close()
            raise

    def add(self, finished: list[FinishedRepetition]) -> None:
        """Append the repetitions of one task, and wait until they are on the disk."""
        if not finished:
            return
        lines = [
            json.dumps([*result.repetition, result.rows, round(result.seconds, 6)]) + "\n"
            for result in finished
        ]
        self._file.write("".join(lines).encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _check_description(self, expected: SweepDescription) -> None:
        """Write sweep.json into a new folder; raise `Conflict` if the folder belongs to another sweep."""
        path = self.folder / "sweep.json"
        if not path.exists():
            if os.path.getsize(self.folder / "trials.jsonl"):
                raise Conflict(
                    f"{self.folder} holds repetitions, but no sweep.json to say what they are of; choose another "
                    "folder."
                )
            write_text(path, json.dumps(expected, indent=1) + "\n", durable=True)
            return
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise Conflict(f"{path} cannot be read ({error}); choose another folder.") from error
        wanted = dict(expected)
        for name, difference in DIFFERENCES.items():
            if json.dumps(stored.get(name)) != json.dumps(
                wanted[name]
            ):  # as text: NaN is not equal to itself
                values = (
                    f" ({stored.get(name)}, not {wanted[name]})" if name not in ("source", "settings") else ""
                )
                raise Conflict(
                    f"{self.folder} holds repetitions of {difference}{values}; they are left as they are: "
                    "choose another folder, or delete this one to start over.",
                    reason=name,
                )

    def _read_repetitions(self) -> dict[Repetition, list[Row]]:
        """Return the finished repetitions; cut off an incomplete last line, so that the next starts on its own."""
        self._file.seek(0)
        text = self._file.read()
        complete = text.rfind(b"\n") + 1
        if complete < len(text):
            self._file.truncate(complete)
        finished: dict[Repetition, list[Row]] = {}
        for number, line in enumerate(text[:complete].splitlines(), start=1):
            try:
                setting, repeat, rows, _ = json.loads(line)
            except ValueError as error:
                raise InvalidInput(
                    f"{self.folder / 'trials.jsonl'}, line {number} is damaged; delete that line, and its repetition "
                    "is run again."
                ) from error
            finished[Repetition(setting, repeat)] = rows
        return finished


def describe_sweep(function: Callable[..., Any], settings: list[Setting], seed: int) -> SweepDescription:
    """Return what the repetitions of a sweep depend on, as JSON has it."""
    description: SweepDescription = json.loads(
        json.dumps(
            {
                "function": function_name(function),
                "source": _fingerprint_source(function),
                "version": vseg.__version__,
                "settings": settings,
                "seed": seed,
            }
        )
    )
    return description


def function_name(function: Callable[..., Any]) -> str:
    """Return module and name of a function; for a partial, those of the function that it calls."""
    function = getattr(function, "func", function)
    module = getattr(function, "__module__", "?")
    return f"{module}.{getattr(function, '__qualname__', type(function).__qualname__)}"


def _fingerprint_source(function: Callable[..., Any]) -> str:
    """Return a short digest of the function's source without comments, and of the arguments that a partial fixes."""
    arguments = (getattr(function, "args", ()), getattr(function, "keywords", {}))
    try:
        fixed = pickle.dumps(arguments)
    except Exception:  # what cannot be pickled raises many kinds of errors
        fixed = repr(arguments).encode()
    inner = inspect.unwrap(getattr(function, "func", function))
    try:
        source = ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(inner)))).encode()
    except (OSError, TypeError, SyntaxError):  # typed at a prompt, a lambda in the middle of a line, ...
        code = getattr(inner, "__code__", None)
        source = (
            code.co_code + repr([c for c in code.co_consts if isinstance(c, PLAIN)]).encode() if code else b""
        )
    return hashlib.sha256(source + fixed).hexdigest()[:16]


def _lock(descriptor: int, folder: Path) -> None:
    """Lock the folder for one sweep; the system unlocks it even if the process is killed. Windows has no flock."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise Conflict(
            f"Another run is writing to {folder}; wait for it, or choose another folder."
        ) from error
