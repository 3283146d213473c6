"""Send repetitions to workers in tasks, and again when a worker is lost.

Repetitions are sent repeat by repeat, so that every task has a bit of every setting and the time left can be estimated
early. A task has as many repetitions as take about a second, fewer at the beginning and towards the end.

A lost worker takes its task with it, and the task is sent again. Several tasks may be lost at once, and it is not known
which of them is at fault. Therefore each repetition of a task that was lost twice is run with no other at the same
time; if it loses its worker again, it is reported.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass

from vseg.errors import VsegError
from vseg.sweeps.repetitions import (
    FinishedRepetition,
    Repetition,
    Setting,
    SweepFunction,
    TaskOutcome,
    describe_repetition,
    repetition_error,
)
from vseg.sweeps.workers import Workers

SHORTEST_TASK_S, LONGEST_TASK_S = 0.05, 1.0
MAX_TASK_REPETITIONS = 5000
RUN_ALONE_AFTER, GIVE_UP_AFTER = 2, 3  # lost workers


@dataclass(frozen=True)
class SweepTask:
    """Repetitions that are sent together, and how many workers they have lost so far."""

    repetitions: tuple[Repetition, ...]
    lost_workers: int = 0


class TaskScheduler:
    """Send the repetitions of one sweep to workers; iterate over it for the results of each task."""

    def __init__(
        self,
        workers: Workers,
        function: SweepFunction,
        settings: list[Setting],
        repetitions: Iterable[Repetition],
        seed: int,
    ):
        self.workers, self.settings, self.seed = workers, settings, seed
        self._function = workers.prepare(function)
        self._settings_by_number = dict(enumerate(settings))
        self._waiting = deque(repetitions)
        self._lost: deque[SweepTask] = deque()
        self._running: dict[Future[TaskOutcome], SweepTask] = {}
        self._costs = RepetitionCosts()

    def __iter__(self) -> Iterator[list[FinishedRepetition]]:
        """Yield the results of each task; if a repetition failed, raise after the running tasks have ended."""
        while self._waiting or self._lost or self._running:
            self._submit_tasks()
            for future in wait(self._running, return_when=FIRST_COMPLETED).done:
                yield from self._collect(future)

    def _submit_tasks(self) -> None:
        """Keep every worker busy; a task that has lost two workers runs alone."""
        capacity = self.workers.capacity
        while len(self._running) < capacity and (self._lost or self._waiting):
            if self._lost and self._lost[0].lost_workers >= RUN_ALONE_AFTER:
                if self._running:
                    return
                capacity = 0
            task = self._lost.popleft() if self._lost else self._next_task()
            future = self.workers.submit(
                self._function, self._settings_by_number, task.repetitions, self.seed
            )
            self._running[future] = task

    def _next_task(self) -> SweepTask:
        seconds = self._costs.task_seconds(len(self._waiting), self.workers.count)
        repetitions: list[Repetition] = []
        while self._waiting and seconds > 0 and len(repetitions) < MAX_TASK_REPETITIONS:
            repetitions.append(self._waiting.popleft())
            seconds -= self._costs.estimate(repetitions[-1].setting)
        return SweepTask(tuple(repetitions))

    def _collect(self, future: "Future[TaskOutcome]") -> Iterator[list[FinishedRepetition]]:
        task = self._running.pop(future, None)
        if task is None:  # collected by `_recover`, when a worker was lost
            return
        try:
            finished, failed = future.result()
        except Exception as error:
            yield from self._recover(task, self._count_lost(error))
            return
        self._costs.learn(finished)
        yield finished
        if failed:
            yield from self._finish_running()
            raise repetition_error(failed, self.settings[failed.repetition.setting], self.seed)

    def _recover(self, task: SweepTask, lost_workers: int) -> Iterator[list[FinishedRepetition]]:
        """Wait for the other tasks, which may be lost too; then replace the workers, and queue the lost tasks."""
        ended = {future: self._running.pop(future) for future in wait(self._running).done}
        outcomes = [future.result() for future in ended if future.exception() is None]
        for finished, _ in outcomes:  # before anything is raised, so that no result is lost
            yield finished
        lost = [(task, lost_workers)]
        for future, other in ended.items():
            error = future.exception()
            if error is not None:
                lost.append((other, self._count_lost(error)))
        self.workers.replace_lost()
        for failed in (failed for _, failed in outcomes if failed):
            raise repetition_error(failed, self.settings[failed.repetition.setting], self.seed)
        for lost_task, more in lost:
            self._queue_again(lost_task, lost_task.lost_workers + more)

    def _count_lost(self, error: BaseException) -> int:
        """Return how many workers were lost; raise the error itself if none were."""
        lost_workers = self.workers.count_lost(error)
        if not lost_workers:
            raise error
        return lost_workers

    def _queue_again(self, task: SweepTask, lost_workers: int) -> None:
        if len(task.repetitions) == 1 and lost_workers >= GIVE_UP_AFTER:
            [repetition] = task.repetitions
            raise VsegError(
                f"The repetition {describe_repetition(self.settings[repetition.setting], repetition)} has lost its "
                f"worker {lost_workers} times, the last time with no other repetition running: it may crash, or need "
                "too much memory; finished repetitions are saved if a checkpoint folder was given."
            )
        if lost_workers >= RUN_ALONE_AFTER:
            self._lost.extend(SweepTask((repetition,), RUN_ALONE_AFTER) for repetition in task.repetitions)
        else:
            self._lost.appendleft(SweepTask(task.repetitions, lost_workers))

    def _finish_running(self) -> Iterator[list[FinishedRepetition]]:
        """Cancel the tasks that have not begun, and yield the results of the others."""
        for future in self._running:
            future.cancel()
        for future in wait(self._running).done:
            if not future.cancelled() and future.exception() is None:
                yield future.result()[0]


class RepetitionCosts:
    """How many seconds a repetition of each setting takes, learnt as results come in."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}

    def learn(self, finished: list[FinishedRepetition]) -> None:
        """Average each duration with all before it: the first repetition of a process also loads and compiles."""
        for result in finished:
            before = self._seconds.get(result.repetition.setting, result.seconds)
            self._seconds[result.repetition.setting] = (before + result.seconds) / 2

    def estimate(self, setting: int) -> float:
        """Return the seconds of a repetition; a setting without results may be as slow as the slowest."""
        seconds = self._seconds.get(setting)
        return seconds if seconds is not None else max(self._seconds.values(), default=float("inf"))

    def task_seconds(self, repetitions: int, workers: int) -> float:
        """Return how long the next task should take if this number of repetitions is left; less towards the end."""
        if not self._seconds:
            return SHORTEST_TASK_S
        left = repetitions * sum(self._seconds.values()) / len(self._seconds)
        return min(max(left / (4 * workers), SHORTEST_TASK_S), LONGEST_TASK_S)
