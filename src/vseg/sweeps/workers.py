"""What a place of work is: it takes a task (some trials) and gives a Future of what `trials.run` returns.

A place that can lose its workers says so, and is made anew.
"""

import pickle
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from typing import Any

import vseg
from vseg.errors import InvalidInput
from vseg.sweeps.trials import Function, Outcome, Setting, Trial, run, run_carried


class Place:
    """Somewhere that trials can be run; `count` of them at a time, `room` tasks under way or in reserve."""

    count = 1

    @property
    def room(self) -> int:
        """With a task in reserve for each, no worker waits for us."""
        return 2 * self.count

    def prepare(self, function: Function) -> Any:
        """The function as this place wants it: itself, or pickled where it has to travel."""
        return function

    def submit(
        self, function: Any, settings: dict[int, Setting], trials: Sequence[Trial], seed: int
    ) -> "Future[Outcome]":
        """Begin a task; `function` is what `prepare` gave."""
        raise NotImplementedError

    def lost(self, error: BaseException) -> int:
        """How many workers a task has cost that ended with this error; 0 if it is another kind of error."""
        return 0

    def renew(self) -> None:
        """Replace workers that are gone."""

    def close(self, *, at_once: bool = False) -> None:
        """Let the workers go; at once, even if they are at work."""


class Here(Place):
    """One trial after the other, in this thread."""

    @property
    def room(self) -> int:
        """A task is done when it is submitted."""
        return 1

    def submit(
        self, function: Any, settings: dict[int, Setting], trials: Sequence[Trial], seed: int
    ) -> "Future[Outcome]":
        """Run the task before returning."""
        future: Future[Outcome] = Future()
        future.set_result(run(function, settings, trials, seed))
        return future


def pickled(function: Function, *, by_value: bool = False) -> bytes:
    """The function as bytes that a worker can read."""
    try:
        if by_value:
            import cloudpickle  # comes with Dask

            return bytes(cloudpickle.dumps(function))
        return pickle.dumps(function)
    except Exception as error:
        raise InvalidInput(
            f"{getattr(function, '__qualname__', function)!r} cannot be sent to other processes ({error}); define it "
            "with def at the top level of a file, or use executor='threads'."
        ) from error


def carried(
    executor: Executor, function: Any, settings: dict[int, Setting], trials: Sequence[Trial], seed: int
) -> "Future[Outcome]":
    """Send a task to another process."""
    return executor.submit(run_carried, function, needed(settings, trials), trials, seed, vseg.__version__)


def failed(error: Exception) -> "Future[Outcome]":
    """A task that could not begin."""
    future: Future[Outcome] = Future()
    future.set_exception(error)
    return future


def needed(settings: dict[int, Setting], trials: Sequence[Trial]) -> dict[int, Setting]:
    """The settings of these trials: no more is sent."""
    return {trial.setting: settings[trial.setting] for trial in trials}
