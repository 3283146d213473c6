"""One repetition of a sweep: a setting, a repeat, its own seed, and a result of plain values.

This is all that a worker needs; it does not depend on where it runs.
"""

import itertools
import pickle
import platform
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import vseg
from vseg.errors import InvalidInput, VsegError
from vseg.sweeps.table import REPEAT, Row

Setting = dict[str, Any]
Settings = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]
SweepFunction = Callable[..., Any]
PreparedFunction = SweepFunction | bytes
"""A function as workers take it: itself, or pickled."""
PLAIN = (bool, int, float, str, type(None))


class Repetition(NamedTuple):
    """The number of a setting, from 0, and the number of the repeat."""

    setting: int
    repeat: int


class FinishedRepetition(NamedTuple):
    """A repetition's rows, without setting and repeat, and how long it took."""

    repetition: Repetition
    rows: list[Row]
    seconds: float


@dataclass(frozen=True)
class FailedRepetition:
    """The repetition that raised, the message and the traceback; the error itself if it comes from this process."""

    repetition: Repetition
    message: str
    trace: str
    error: BaseException | None = None


TaskOutcome = tuple[list[FinishedRepetition], FailedRepetition | None]


def expand_settings(settings: Settings) -> list[Setting]:
    """Return the settings one by one: for a mapping every combination of its values, the last name fastest.

    Examples
    --------
    >>> expand_settings({"blocks": [1, 2], "noise": ["low"]})
    [{'blocks': 1, 'noise': 'low'}, {'blocks': 2, 'noise': 'low'}]
    """
    if isinstance(settings, Mapping):
        for name, values in settings.items():
            if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
                raise InvalidInput(f"Setting {name!r} needs a list of values, got {values!r}.")
        combinations = itertools.product(*settings.values())
        expanded = [dict(zip(settings, values, strict=True)) for values in combinations]
    else:
        listed: list[Any] = list(settings) if isinstance(settings, Iterable) else [settings]
        if not all(isinstance(setting, Mapping) for setting in listed):
            raise InvalidInput(
                f"Settings are lists of values by name, or a list of dicts, got {settings!r:.80}."
            )
        expanded = [dict(setting) for setting in listed]
    if not expanded:
        raise InvalidInput("A sweep needs at least one setting, got none.")
    checked = [{name: _check_setting(name, value) for name, value in each.items()} for each in expanded]
    if len({repr(sorted(setting.items(), key=str)) for setting in checked}) < len(checked):
        raise InvalidInput("A setting occurs twice; for more repetitions at each setting, increase repeats.")
    return checked


def _check_setting(name: str, value: Any) -> Any:
    if name in ("seed", REPEAT):
        raise InvalidInput(f"A setting cannot be called {name!r}: sweep gives each repetition its own.")
    if isinstance(value, (tuple, list)):
        return tuple(_check_setting(name, part) for part in value)
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, PLAIN):
        raise InvalidInput(
            f"Setting {name!r} is {value!r:.80}; expected numbers, words, or tuples of them: "
            "give a name or a seed, and make the rest of it in the function."
        )
    return plain


def derive_repetition_seed(seed: int, repetition: Repetition) -> int:
    """Return a repetition's own seed, derived from the sweep's seed, the setting's number and the repeat alone."""
    state = np.random.SeedSequence(seed, spawn_key=repetition).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))  # 63 bits, so that it fits a signed integer


def run_repetitions(
    function: SweepFunction, settings: Mapping[int, Setting], repetitions: Sequence[Repetition], seed: int
) -> TaskOutcome:
    """Run these repetitions in order, up to the first that raises; return the finished ones and the failure."""
    finished: list[FinishedRepetition] = []
    for repetition in repetitions:
        setting, started = settings[repetition.setting], time.perf_counter()
        try:
            rows = to_plain_rows(function(**setting, seed=derive_repetition_seed(seed, repetition)), setting)
        except (Exception, SystemExit) as error:
            message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return finished, FailedRepetition(repetition, message, traceback.format_exc(), error)
        finished.append(FinishedRepetition(repetition, rows, time.perf_counter() - started))
    return finished, None


def run_repetitions_remotely(
    function: PreparedFunction,
    settings: Mapping[int, Setting],
    repetitions: Sequence[Repetition],
    seed: int,
    version: str,
) -> TaskOutcome:
    """Run these repetitions in another process, perhaps on another machine; errors are returned as text."""
    if version != vseg.__version__:
        raise VsegError(
            f"The worker on {platform.node()} has vseg {vseg.__version__}, but the sweep is of vseg {version}; install "
            "the same version there."
        )
    loaded = _unpickle_function(function) if isinstance(function, bytes) else function
    finished, failed = run_repetitions(loaded, settings, repetitions, seed)
    return finished, failed and replace(failed, error=None)  # not every error can be pickled


@lru_cache(maxsize=1)
def _unpickle_function(function: bytes) -> SweepFunction:
    try:
        loaded: SweepFunction = pickle.loads(function)
    except Exception as error:
        raise InvalidInput(
            f"A worker cannot load the function ({type(error).__name__}: {error}); define it at the top level of a "
            "file that the workers can import."
        ) from error
    return loaded


def repetition_error(failed: FailedRepetition, setting: Setting, seed: int) -> VsegError:
    """Return the error to raise for a repetition that raised; its traceback is added as a note."""
    error = VsegError(
        f"The repetition {describe_repetition(setting, failed.repetition)} raised {failed.message}; finished "
        "repetitions are saved if a checkpoint folder was given. To reproduce it, call the function with this setting "
        f"and seed={derive_repetition_seed(seed, failed.repetition)}."
    )
    error.add_note(failed.trace)
    error.__cause__ = failed.error
    return error


def to_plain_rows(result: Any, setting: Setting) -> list[Row]:
    """Return what a repetition returned as a list of rows of Python's own numbers and words."""
    rows = [result] if isinstance(result, Mapping) else result
    if not isinstance(rows, (list, tuple)) or not all(isinstance(row, Mapping) for row in rows):
        raise InvalidInput(
            f"A repetition returns a dict of numbers and words, or a list of such dicts, got {result!r:.80}."
        )
    return [{name: _check_result(name, value, setting) for name, value in row.items()} for row in rows]


def _check_result(name: str, value: Any, setting: Setting) -> Any:
    if name == REPEAT or name in setting:
        raise InvalidInput(f"A repetition returned {name!r}, which is a column already; choose another name.")
    plain = value.item() if isinstance(value, (np.generic, np.ndarray)) and np.size(value) == 1 else value
    if not isinstance(plain, PLAIN):
        raise InvalidInput(f"A repetition returned {name} = {value!r:.80}; expected a number or a word.")
    return plain


def describe_repetition(setting: Setting, repetition: Repetition) -> str:
    """Describe a repetition by its setting and repeat, such as "blocks=3, repeat 0"."""
    return ", ".join(
        [*(f"{name}={value!r}" for name, value in setting.items()), f"{REPEAT} {repetition.repeat}"]
    )
