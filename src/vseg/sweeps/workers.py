"""The interface of workers: they take a task (repetitions) and return a Future of what `run_repetitions` returns."""

import pickle
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from typing import Any

import vseg
from vseg.errors import InvalidInput
from vseg.sweeps.repetitions import (
    PreparedFunction,
    Repetition,
    Setting,
    SweepFunction,
    TaskOutcome,
    run_repetitions,
    run_repetitions_remotely,
)


class Workers:
    """Workers that run repetitions, `count` of them at a time.

    Those that can lose a worker say so in `count_lost`, and replace it in `replace_lost`.
    """

    count = 1

    @property
    def capacity(self) -> int:
        """How many tasks may be submitted at a time: one in reserve for each worker, so that none is idle."""
        return 2 * self.count

    def prepare(self, function: SweepFunction) -> PreparedFunction:
        """Return the function as `submit` needs it: itself, or pickled for other processes."""
        return function

    def submit(
        self,
        function: PreparedFunction,
        settings: dict[int, Setting],
        repetitions: Sequence[Repetition],
        seed: int,
    ) -> "Future[TaskOutcome]":
        """Begin a task; `function` is what `prepare` returned."""
        raise NotImplementedError

    def count_lost(self, error: BaseException) -> int:
        """Return how many workers were lost by a task that ended with this error; 0 if it is another kind of error."""
        return 0

    def replace_lost(self) -> None:
        """Replace the workers that were lost."""

    def close(self, *, at_once: bool = False) -> None:
        """End the workers; with `at_once` even those that are working."""


class InThreadWorker(Workers):
    """Runs one repetition after the other in this thread."""

    @property
    def capacity(self) -> int:
        """One task, since it is finished when `submit` returns."""
        return 1

    def submit(
        self,
        function: PreparedFunction,
        settings: dict[int, Setting],
        repetitions: Sequence[Repetition],
        seed: int,
    ) -> "Future[TaskOutcome]":
        """Run the task before returning."""
        assert callable(function)
        future: Future[TaskOutcome] = Future()
        future.set_result(run_repetitions(function, settings, repetitions, seed))
        return future


def pickle_function(function: SweepFunction, *, by_value: bool = False) -> bytes:
    """Return the function as bytes that a worker can read; by value, the worker need not have its file."""
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


def submit_to_process(
    executor: Executor,
    function: PreparedFunction,
    settings: dict[int, Setting],
    repetitions: Sequence[Repetition],
    seed: int,
) -> "Future[TaskOutcome]":
    """Send a task to another process."""
    return executor.submit(
        run_repetitions_remotely,
        function,
        select_settings(settings, repetitions),
        repetitions,
        seed,
        vseg.__version__,
    )


def failed_future(error: Exception) -> "Future[Any]":
    """Return the future of a task that could not begin."""
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def select_settings(settings: dict[int, Setting], repetitions: Sequence[Repetition]) -> dict[int, Setting]:
    """Return the settings of these repetitions, so that no more than these are sent."""
    return {repetition.setting: settings[repetition.setting] for repetition in repetitions}
