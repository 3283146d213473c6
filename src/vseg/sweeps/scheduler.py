"""Dealing trials out to workers: how many at a time, and what to do when a worker is lost.

Trials go out repeat by repeat, so that every task holds a bit of every setting and the time left can be told early.
A task is as many trials as take about a second, fewer at the beginning and towards the end.

A worker that is lost takes its task with it, and the task is given out again. Who was at fault is not known: of the
tasks that were lost twice, each trial is run with nothing beside it, and one that loses its worker even so is named.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass

from vseg.errors import VsegError
from vseg.sweeps.trials import Finished, Function, Outcome, Setting, Trial, described, failure
from vseg.sweeps.workers import Place

SHORTEST_S, LONGEST_S = 0.05, 1.0
MOST = 5000
ALONE, GIVEN_UP = 2, 3  # lost workers after which a trial is run alone, and after which it is given up


@dataclass(frozen=True)
class Task:
    """Some trials that are sent together, and how many workers they have cost so far."""

    trials: tuple[Trial, ...]
    strikes: int = 0


class Dealing:
    """One sweep's trials on their way to workers and back."""

    def __init__(
        self, place: Place, function: Function, settings: list[Setting], trials: Iterable[Trial], seed: int
    ):
        self.place, self.settings, self.seed = place, settings, seed
        self._function = place.prepare(function)
        self._by_number = dict(enumerate(settings))
        self._waiting = deque(trials)
        self._again: deque[Task] = deque()
        self._flying: dict[Future[Outcome], Task] = {}
        self._costs = Costs()

    def __iter__(self) -> Iterator[list[Finished]]:
        """What each task brings back, as it comes; raises at a trial that failed, when those under way have landed."""
        while self._waiting or self._again or self._flying:
            self._send()
            landed = wait(self._flying, return_when=FIRST_COMPLETED).done
            for future in landed:
                yield from self._land(future)

    def _send(self) -> None:
        """Keep every worker busy; a suspect flies alone."""
        room = self.place.room
        while len(self._flying) < room and (self._again or self._waiting):
            if self._again and self._again[0].strikes >= ALONE:
                if self._flying:
                    return
                room = 0
            task = self._again.popleft() if self._again else self._next()
            future = self.place.submit(self._function, self._by_number, task.trials, self.seed)
            self._flying[future] = task

    def _next(self) -> Task:
        wanted = self._costs.target(len(self._waiting), self.place.count)
        trials: list[Trial] = []
        while self._waiting and wanted > 0 and len(trials) < MOST:
            trials.append(self._waiting.popleft())
            wanted -= self._costs.of(trials[-1].setting)
        return Task(tuple(trials))

    def _land(self, future: "Future[Outcome]") -> Iterator[list[Finished]]:
        task = self._flying.pop(future, None)
        if task is None:  # it has landed with others, when a worker was lost
            return
        try:
            finished, failed = future.result()
        except Exception as error:
            strikes = self.place.lost(error)
            if not strikes:
                raise
            yield from self._lost(task, strikes)
            return
        self._costs.learn(finished)
        yield finished
        if failed:
            yield from self._rest()
            raise failure(failed, self.settings[failed.trial.setting], self.seed)

    def _lost(self, task: Task, strikes: int) -> Iterator[list[Finished]]:
        """Let the others land, which may be lost too; then replace the workers, and give out the lost tasks again."""
        landed = {future: self._flying.pop(future) for future in wait(self._flying).done}
        outcomes = [future.result() for future in landed if future.exception() is None]
        for finished, _ in outcomes:  # before anything is raised: what is finished is not lost
            yield finished
        lost = [(task, strikes)]
        for future, other in landed.items():
            error = future.exception()
            if error is not None:
                lost.append((other, self._strikes(error)))
        self.place.renew()
        for failed in (failed for _, failed in outcomes if failed):
            raise failure(failed, self.settings[failed.trial.setting], self.seed)
        for one, more in lost:
            self._give_again(one, one.strikes + more)

    def _strikes(self, error: BaseException) -> int:
        strikes = self.place.lost(error)
        if not strikes:
            raise error
        return strikes

    def _give_again(self, task: Task, strikes: int) -> None:
        if len(task.trials) == 1 and strikes >= GIVEN_UP:
            [trial] = task.trials
            raise VsegError(
                f"The trial {described(self.settings[trial.setting], trial)} has lost its worker {strikes} times, the "
                "last time with nothing beside it: it may crash, or take too much memory; finished trials are kept "
                "where a folder was given."
            )
        if strikes >= ALONE:
            self._again.extend(Task((trial,), ALONE) for trial in task.trials)
        else:
            self._again.appendleft(Task(task.trials, strikes))

    def _rest(self) -> Iterator[list[Finished]]:
        """After a failure: what is under way may be finished, what has not begun is not."""
        for future in self._flying:
            future.cancel()
        for future in wait(self._flying).done:
            if not future.cancelled() and future.exception() is None:
                yield future.result()[0]


class Costs:
    """Seconds a trial of each setting takes, learnt as results come in."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}

    def learn(self, finished: list[Finished]) -> None:
        """The first trial of a process loads and compiles, so what is newer counts as much as all before it."""
        for done in finished:
            before = self._seconds.get(done.trial.setting, done.seconds)
            self._seconds[done.trial.setting] = (before + done.seconds) / 2

    def of(self, setting: int) -> float:
        """A setting that has not been seen may be as slow as the slowest."""
        known = self._seconds.get(setting)
        return known if known is not None else max(self._seconds.values(), default=float("inf"))

    def target(self, trials: int, workers: int) -> float:
        """How long the next task should take, with this many trials left: towards the end, all end together."""
        if not self._seconds:
            return SHORTEST_S
        left = trials * sum(self._seconds.values()) / len(self._seconds)
        return min(max(left / (4 * workers), SHORTEST_S), LONGEST_S)
