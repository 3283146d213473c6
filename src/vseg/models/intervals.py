"""How far a fitted model's parameters would move if the experiment were run again: the bootstrap of any family.

Linear models also tell their uncertainty by the likelihood's curvature (see linear.py), which is faster. The bootstrap
asks less: it sees that people differ, that answers repeat, and what a prior's width chosen anew does to the weights.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.data.responses import COLUMNS, Responses, concatenated
from vseg.errors import InvalidInput
from vseg.models.families import predicted
from vseg.models.task import Task

UNITS = ("trials", "participants", "model")


@dataclass(frozen=True, eq=False)
class Draws:
    """A parameter as fitted to the answers, and as fitted to each resample of them.

    Attributes
    ----------
    fitted : NDArray, of any shape
    values : NDArray, shape (count, ...)
    """

    fitted: NDArray[np.float64]
    values: NDArray[np.float64]

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """Standard deviation over the resamples."""
        return np.asarray(self.values.std(axis=0, ddof=1), np.float64)

    def interval(self, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper percentiles."""
        if not 0 < level < 1:
            raise InvalidInput(f"A level lies between 0 and 1, got {level!r}.")
        low, high = np.quantile(self.values, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return low, high


def bootstrap(
    family: Callable[..., Any],
    task: Task,
    what: Callable[[Any], ArrayLike],
    *,
    over: str = "trials",
    count: int = 200,
    seed: int,
    executor: Executor | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Draws:
    """Fit a family to resampled answers.

    Parameters
    ----------
    family : callable
        `fit(task, *, seed) -> fitted`, such as `logistic("lab")`.
    what : callable
        From a fitted model to the parameter. The order of segments is arbitrary: ask for something that does not depend
        on it, or put each fit in one order first, as with `Variance.aligned_to`.
    over : "trials", "participants" or "model"
        What is drawn anew: trials of each participant and image, whole participants, or the answers to the same pairs
        from the P(same) of the fitted model.
    executor : threads to run the fits in, optional
        The draws do not depend on it.
    progress : callable, optional
        Is told of each finished fit.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(8), segments=2, seed=0)
    >>> pairs = vseg.designs.scattered(truth.layout, segments=2, seed=1)
    >>> task = Task(vseg.simulate(truth, pairs, blocks=3, seed=2), segments=2)
    >>> rate = vseg.models.base_rate()
    >>> drawn = bootstrap(rate, task, lambda fitted: fitted.parameters["image"], count=50, seed=3)
    >>> low, high = drawn.interval(0.9)
    >>> bool(low < drawn.fitted < high)
    True
    """
    if over not in UNITS:
        raise InvalidInput(f"Cannot resample over {over!r}; choose one of {', '.join(UNITS)}.")
    if not isinstance(count, (int, np.integer)) or count < 2:
        raise InvalidInput(f"The number of resamples is a whole number from 2 up, got {count!r}.")
    if over == "participants" and len(task.responses.participants) < 2:
        raise InvalidInput("Resampling over participants needs at least 2 of them, got 1; choose trials.")
    first, *seeds = np.random.SeedSequence(seed).spawn(count + 1)
    fitted = family(task, seed=int(first.generate_state(1)[0]))

    def drawn(own: np.random.SeedSequence) -> NDArray[np.float64]:
        rng = np.random.default_rng(own)
        again = Task(_resampled(task.responses, over, fitted, rng), task.images, task.segments, task._seen)
        return np.asarray(what(family(again, seed=int(own.generate_state(1)[0]))), np.float64)

    values = []
    for value in map(drawn, seeds) if executor is None else executor.map(drawn, seeds):
        values.append(value)
        progress(1)
    return Draws(np.asarray(what(fitted), np.float64), np.stack(values))


def _resampled(responses: Responses, over: str, fitted: Any, rng: np.random.Generator) -> Responses:
    if over == "model":
        return _changed(responses, same=rng.random(len(responses)) < predicted(fitted, responses))
    if over == "participants":
        names = rng.choice(responses.participants, len(responses.participants))
        return concatenated(
            # Drawn twice: two people.
            _changed(responses.of(participant=name), participant=f"{name} ({place})")
            for place, name in enumerate(names)
        )
    who, what = (np.unique(each, return_inverse=True)[1] for each in (responses.participant, responses.image))
    group = who * (what.max() + 1) + what
    members = [np.flatnonzero(group == each) for each in np.unique(group)]
    return responses.where(np.concatenate([rng.choice(rows, len(rows)) for rows in members]))


def _changed(responses: Responses, **columns: Any) -> Responses:
    return Responses(responses.layout, **({name: getattr(responses, name) for name in COLUMNS} | columns))
