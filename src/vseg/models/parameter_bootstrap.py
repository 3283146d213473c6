"""Bootstrap intervals for the parameters of any family.

Linear models also give their uncertainty from the curvature of the likelihood (see linear.py), which is faster. The
bootstrap assumes less: it includes differences between participants, repeated answers, and the choice of the prior's
width.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.confidence import interval_quantiles
from vseg.data.responses import COLUMNS, Responses, concatenate
from vseg.errors import InvalidInput
from vseg.models.model_interface import Family, FittedModel, predict
from vseg.models.task import Task

UNITS = ("trials", "participants", "model")


@dataclass(frozen=True, eq=False)
class BootstrapDraws:
    """A parameter fitted to the answers, and fitted to each resample of them.

    Attributes
    ----------
    fitted : NDArray, of any shape
        The parameter fitted to the answers.
    values : NDArray, shape (count, ...)
        The parameter fitted to each resample.
    """

    fitted: NDArray[np.float64]
    values: NDArray[np.float64]

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """The standard deviation over the resamples."""
        return np.asarray(self.values.std(axis=0, ddof=1), np.float64)

    def interval(self, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower and upper percentile at this level."""
        low, high = np.quantile(self.values, interval_quantiles(level), axis=0)
        return low, high


def bootstrap(
    family: Family,
    task: Task,
    parameter: Callable[[Any], ArrayLike],
    *,
    over: str = "trials",
    count: int = 200,
    seed: int,
    executor: Executor | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> BootstrapDraws:
    """Fit a family to resampled answers.

    Parameters
    ----------
    family : callable
        `fit(task, *, seed) -> fitted`, such as `logistic("lab")`.
    task : Task
        The answers.
    parameter : callable
        Returns the parameter of a fitted model. The order of segments is arbitrary: use a parameter that does not
        depend on it, or bring each fit into one order first, as with `VarianceModel.align_to`.
    over : "trials", "participants" or "model"
        What is resampled: trials of each participant and image, whole participants, or the answers to the same pairs
        from the P(same) of the fitted model.
    count : int
        Number of resamples.
    seed : int
        Seed of the resamples and the fits.
    executor : concurrent.futures.Executor, optional
        Threads to run the fits in; the results do not depend on it.
    progress : callable, optional
        Called with 1 after each fit.

    Returns
    -------
    BootstrapDraws
        The parameter of the fit to all answers and of each resample; `interval()` returns confidence intervals.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(8), segments=2, seed=0)
    >>> pairs = vseg.designs.scattered(truth.layout, segments=2, seed=1)
    >>> task = Task(vseg.simulate(truth, pairs, blocks=3, seed=2), segments=2)
    >>> rate = vseg.models.base_rate()
    >>> draws = bootstrap(rate, task, lambda fitted: fitted.parameters["image"], count=50, seed=3)
    >>> low, high = draws.interval(0.9)
    >>> bool(low < draws.fitted < high)
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

    def fit_resample(own: np.random.SeedSequence) -> NDArray[np.float64]:
        rng = np.random.default_rng(own)
        resampled = Task(
            _resample(task.responses, over, fitted, rng), task.images, task.segments, task._cache
        )
        return np.asarray(parameter(family(resampled, seed=int(own.generate_state(1)[0]))), np.float64)

    values = []
    for value in map(fit_resample, seeds) if executor is None else executor.map(fit_resample, seeds):
        values.append(value)
        progress(1)
    return BootstrapDraws(np.asarray(parameter(fitted), np.float64), np.stack(values))


def _resample(responses: Responses, over: str, fitted: FittedModel, rng: np.random.Generator) -> Responses:
    if over == "model":
        return _replace_columns(responses, same=rng.random(len(responses)) < predict(fitted, responses))
    if over == "participants":
        names = rng.choice(responses.participants, len(responses.participants))
        return concatenate(
            # A participant drawn twice counts as two.
            _replace_columns(responses.select(participant=name), participant=f"{name} ({place})")
            for place, name in enumerate(names)
        )
    participant, image = (
        np.unique(each, return_inverse=True)[1] for each in (responses.participant, responses.image)
    )
    group = participant * (image.max() + 1) + image
    members = [np.flatnonzero(group == each) for each in np.unique(group)]
    return responses.take(np.concatenate([rng.choice(rows, len(rows)) for rows in members]))


def _replace_columns(responses: Responses, **columns: Any) -> Responses:
    return Responses(responses.layout, **({name: getattr(responses, name) for name in COLUMNS} | columns))
