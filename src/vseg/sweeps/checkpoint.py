"""Finished trials in a folder, so that a cut run goes on where it stopped.

sweep.json     what was swept: function, its source, vseg's version, settings, seed; written once
trials.jsonl   a line a finished trial, appended a task at a time and on the disk before it counts

A line that was cut short by a crash is left out and done again. Only one run at a time writes to a folder.
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
from typing import Any

import vseg
from vseg._support.atomic_files import write_text
from vseg.errors import Conflict, InvalidInput
from vseg.sweeps.table import Row
from vseg.sweeps.trials import PLAIN, Finished, Setting, Trial

SAID = {
    "function": "another function",
    "source": "an earlier state of this function",
    "version": "another version of vseg",
    "settings": "other settings",
    "seed": "another seed",
}


class Kept:
    """The folder of one sweep, open for appending; `found` are the trials that were there."""

    def __init__(self, folder: Path, function: Callable[..., Any], settings: list[Setting], seed: int):
        self.folder = folder
        if folder.exists() and not folder.is_dir():
            raise Conflict(f"{folder} is a file; expected a folder for finished trials, or none yet.")
        folder.mkdir(parents=True, exist_ok=True)
        self._file = open(folder / "trials.jsonl", "a+b")  # noqa: SIM115
        try:
            _lock(self._file.fileno(), folder)
            self._check(head(function, settings, seed))
            self.found = self._read()
        except BaseException:
            self._file.close()
            raise

    def add(self, finished: list[Finished]) -> None:
        """Append the trials of one task; when this returns they are on the disk."""
        if not finished:
            return
        lines = [json.dumps([*done.trial, done.rows, round(done.seconds, 6)]) + "\n" for done in finished]
        self._file.write("".join(lines).encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> "Kept":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _check(self, wanted: dict[str, Any]) -> None:
        path = self.folder / "sweep.json"
        if not path.exists():
            if os.path.getsize(self.folder / "trials.jsonl"):
                raise Conflict(
                    f"{self.folder} holds trials, but not what they are of; choose another folder."
                )
            write_text(path, json.dumps(wanted, indent=1) + "\n", durable=True)
            return
        try:
            there = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise Conflict(f"{path} cannot be read ({error}); choose another folder.") from error
        for name, what in SAID.items():
            if json.dumps(there.get(name)) != json.dumps(wanted[name]):  # NaN is not equal to itself
                raise Conflict(
                    f"{self.folder} holds trials of {what}{_versus(name, there, wanted)}; they are left as they are: "
                    "choose another folder, or delete this one to start over.",
                    reason=name,
                )

    def _read(self) -> dict[Trial, list[Row]]:
        """The finished trials; what follows the last whole line is cut off, so that the next line starts afresh."""
        self._file.seek(0)
        text = self._file.read()
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            self._file.truncate(whole)
        found: dict[Trial, list[Row]] = {}
        for number, line in enumerate(text[:whole].splitlines(), start=1):
            try:
                setting, repeat, rows, _ = json.loads(line)
            except ValueError as error:
                raise InvalidInput(
                    f"{self.folder / 'trials.jsonl'}, line {number} is damaged; delete that line, and its trial is "
                    "done again."
                ) from error
            found[Trial(setting, repeat)] = rows
        return found


def head(function: Callable[..., Any], settings: list[Setting], seed: int) -> dict[str, Any]:
    """What a folder is of, as JSON has it."""
    return json.loads(
        json.dumps(
            {
                "function": name_of(function),
                "source": _source(function),
                "version": vseg.__version__,
                "settings": settings,
                "seed": seed,
            }
        )
    )


def name_of(function: Callable[..., Any]) -> str:
    """Module and name, of a partial those of what it calls."""
    function = getattr(function, "func", function)
    module = getattr(function, "__module__", "?")
    return f"{module}.{getattr(function, '__qualname__', type(function).__qualname__)}"


def _source(function: Callable[..., Any]) -> str:
    """A short fingerprint of the function's source without its comments, and of what a partial fixes."""
    fixed = (getattr(function, "args", ()), getattr(function, "keywords", {}))
    try:
        settled = pickle.dumps(fixed)
    except Exception:  # what is not picklable says so in many ways
        settled = repr(fixed).encode()
    inner = inspect.unwrap(getattr(function, "func", function))
    try:
        source = ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(inner)))).encode()
    except (OSError, TypeError, SyntaxError):  # typed at a prompt, a lambda in the middle of a line, ...
        code = getattr(inner, "__code__", None)
        source = (
            code.co_code + repr([c for c in code.co_consts if isinstance(c, PLAIN)]).encode() if code else b""
        )
    return hashlib.sha256(source + settled).hexdigest()[:16]


def _versus(name: str, there: dict[str, Any], wanted: dict[str, Any]) -> str:
    if name in ("function", "version", "seed"):
        return f" ({there.get(name)}, not {wanted[name]})"
    return ""


def _lock(descriptor: int, folder: Path) -> None:
    """One run a folder; the system lets go of it even if the run is killed. Windows has no flock."""
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
