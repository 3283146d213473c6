"""What a trial is: one setting, one repeat, its own seed, and a result of plain values.

This is all that a worker needs; it knows nothing of where it runs.
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
Function = Callable[..., Any]
PLAIN = (bool, int, float, str, type(None))


class Trial(NamedTuple):
    """Which setting, counted from 0, and which repeat of it."""

    setting: int
    repeat: int


class Finished(NamedTuple):
    """A trial's rows, without setting and repeat, and how long it took."""

    trial: Trial
    rows: list[Row]
    seconds: float


@dataclass(frozen=True)
class Failed:
    """The trial that raised, what it raised in words, and where."""

    trial: Trial
    what: str
    trace: str
    error: BaseException | None = None


Outcome = tuple[list[Finished], Failed | None]


def grid(settings: Settings) -> list[Setting]:
    """The settings one by one: of a mapping, every combination of its values, the last name fastest.

    Examples
    --------
    >>> grid({"blocks": [1, 2], "noise": ["low"]})
    [{'blocks': 1, 'noise': 'low'}, {'blocks': 2, 'noise': 'low'}]
    """
    if isinstance(settings, Mapping):
        for name, values in settings.items():
            if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
                raise InvalidInput(f"Setting {name!r} needs a list of values, got {values!r}.")
        found = [dict(zip(settings, values, strict=True)) for values in itertools.product(*settings.values())]
    else:
        listed: list[Any] = list(settings) if isinstance(settings, Iterable) else [settings]
        if not all(isinstance(setting, Mapping) for setting in listed):
            raise InvalidInput(
                f"Settings are lists of values by name, or a list of dicts, got {settings!r:.80}."
            )
        found = [dict(setting) for setting in listed]
    if not found:
        raise InvalidInput("A sweep needs at least one setting, got none.")
    checked = [{name: _setting_value(name, value) for name, value in one.items()} for one in found]
    if len({repr(sorted(one.items(), key=str)) for one in checked}) < len(checked):
        raise InvalidInput("A setting is there twice; for more trials of each, ask for more repeats.")
    return checked


def _setting_value(name: str, value: Any) -> Any:
    if name in ("seed", REPEAT):
        raise InvalidInput(f"A setting cannot be called {name!r}: sweep gives each trial its own.")
    if isinstance(value, (tuple, list)):
        return tuple(_setting_value(name, part) for part in value)
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, PLAIN):
        raise InvalidInput(
            f"Setting {name!r} is {value!r:.80}; expected numbers, words, or tuples of them: "
            "give a name or a seed, and make the rest of it in the function."
        )
    return plain


def seed_of(seed: int, trial: Trial) -> int:
    """A trial's own seed: it depends on nothing but the sweep's seed, the setting's number and the repeat."""
    state = np.random.SeedSequence(seed, spawn_key=trial).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))  # 63 bits, so that it fits a signed integer


def run(function: Function, settings: Mapping[int, Setting], trials: Sequence[Trial], seed: int) -> Outcome:
    """Run these trials one after the other; the first that raises ends it, what was finished is not lost."""
    finished: list[Finished] = []
    for trial in trials:
        setting, began = settings[trial.setting], time.perf_counter()
        try:
            rows = plain_rows(function(**setting, seed=seed_of(seed, trial)), setting)
        except (Exception, SystemExit) as error:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return finished, Failed(trial, what, traceback.format_exc(), error)
        finished.append(Finished(trial, rows, time.perf_counter() - began))
    return finished, None


def run_carried(
    function: bytes | Function,
    settings: Mapping[int, Setting],
    trials: Sequence[Trial],
    seed: int,
    version: str,
) -> Outcome:
    """The same in another process, perhaps on another machine; errors come back as words, which always travel."""
    if version != vseg.__version__:
        raise VsegError(
            f"The worker on {platform.node()} has vseg {vseg.__version__}, but the sweep is of vseg {version}; install "
            "the same version there."
        )
    finished, failed = run(
        _unpacked(function) if isinstance(function, bytes) else function, settings, trials, seed
    )
    return finished, failed and replace(failed, error=None)


@lru_cache(maxsize=1)
def _unpacked(function: bytes) -> Function:
    try:
        found: Function = pickle.loads(function)
    except Exception as error:
        raise InvalidInput(
            f"A worker cannot load the function ({type(error).__name__}: {error}); define it at the top level of a "
            "file that the workers can import."
        ) from error
    return found


def failure(failed: Failed, setting: Setting, seed: int) -> VsegError:
    """What to raise for a trial that raised; where it happened is added as a note."""
    error = VsegError(
        f"The trial {described(setting, failed.trial)} raised {failed.what}; finished trials are kept where a folder "
        f"was given. To see it again, call the function with this setting and seed={seed_of(seed, failed.trial)}."
    )
    error.add_note(failed.trace)
    error.__cause__ = failed.error
    return error


def plain_rows(result: Any, setting: Setting) -> list[Row]:
    """What a trial returned as a list of rows of Python's own numbers and words."""
    rows = [result] if isinstance(result, Mapping) else result
    if not isinstance(rows, (list, tuple)) or not all(isinstance(row, Mapping) for row in rows):
        raise InvalidInput(
            f"A trial returns a dict of numbers and words, or a list of such dicts, got {result!r:.80}."
        )
    return [{name: _result_value(name, value, setting) for name, value in row.items()} for row in rows]


def _result_value(name: str, value: Any, setting: Setting) -> Any:
    if name == REPEAT or name in setting:
        raise InvalidInput(f"A trial returned {name!r}, which is a column already; choose another name.")
    plain = value.item() if isinstance(value, (np.generic, np.ndarray)) and np.size(value) == 1 else value
    if not isinstance(plain, PLAIN):
        raise InvalidInput(f"A trial returned {name} = {value!r:.80}; expected a number or a word.")
    return plain


def described(setting: Setting, trial: Trial) -> str:
    """A trial in words."""
    return ", ".join([*(f"{name}={value!r}" for name, value in setting.items()), f"{REPEAT} {trial.repeat}"])
