"""Comparing models on answers they have not seen: `compare(task, models, by="pairs", seed=0)`.

folds        what is held out together
held_out     every model fitted without a fold and asked about it; finished work kept on disk
scores       bits, Brier score, calibration
ceilings     the floor and what anything could reach at best
resampling   intervals over participants and images
result       the result: table, paired differences, Markdown, CSV, JSON

Examples
--------
>>> from vseg.models import Task, logistic
>>> result = compare(task, {"colour": logistic("lab"), "free": free_maps()}, seed=0)  # doctest: +SKIP
>>> print(result.markdown())  # doctest: +SKIP
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path

import numpy as np

from vseg.comparison import ceilings
from vseg.comparison.folds import By, Per, folds_of, groups_of
from vseg.comparison.held_out import Family, Fitted, described, held_out
from vseg.comparison.result import Comparison
from vseg.errors import InvalidInput
from vseg.models.task import Task

__all__ = ["Comparison", "Family", "Fitted", "compare"]


def compare(
    task: Task,
    models: Mapping[str, Family],
    *,
    by: By = "pairs",
    per: Per = "participant",
    folds: int = 5,
    seed: int,
    resamples: int = 2000,
    executor: Executor | None = None,
    progress: Callable[[int], None] = lambda done: None,
    kept: Path | None = None,
) -> Comparison:
    """Fit every model without each fold in turn, and score what it says of the answers held out.

    Parameters
    ----------
    task : Task
    models : mapping from names to families, functions `(task, *, seed) -> Fitted`
    by : "pairs", "blocks", "participants" or "images"
        What is held out together.
    per : "participant", "image" or "all"
        What one fit sees: everyone's own, or shared parameters.
    folds : int
    resamples : int
        For intervals.
    executor : concurrent.futures.Executor, optional
        Where the fits run; the numbers do not depend on it.
    progress : callable, optional
        Called with 1 for each fit that is done.
    kept : Path, optional
        Folder in which finished fits leave their predictions, so that a run that was cut goes on.
    """
    if not models:
        raise InvalidInput("There are no models to compare; name at least one.")
    groups = groups_of(task.responses, per, by)
    own, shared = np.random.SeedSequence(seed).spawn(2)
    fold = folds_of(task.responses, by, folds, seed=int(shared.generate_state(1)[0]))
    predictions, failures = held_out(task, models, groups, fold, own, executor, progress, kept)
    references = [
        ceilings.floor(task.responses, fold),
        ceilings.within(task.responses),
        ceilings.between(task.responses),
        ceilings.entropy(task.responses),
    ]
    maps = described(task, {name: models[name] for name in predictions}, groups, own, executor, kept)
    return Comparison(
        task.responses, predictions, references, failures, maps, by, per, int(fold.max()) + 1, seed, resamples
    )
