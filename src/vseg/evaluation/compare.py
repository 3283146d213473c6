"""Comparing models on answers they have not seen: `compare(task, models, by="pairs", seed=0)`.

folds        what is held out together
held_out     every model fitted without a fold and asked about it, and fitted to all answers
jobs         one fit, in whichever process; finished ones are kept on disk
fenced       processes with limits of time and memory, for models that nobody has tried
people       what people saw, and how close a model's maps come to it
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

import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from vseg.data.maps import Maps
from vseg.errors import InvalidInput, VsegWarning
from vseg.evaluation import ceilings
from vseg.evaluation.comparison import Comparison
from vseg.evaluation.fit_jobs import Told
from vseg.evaluation.folds import By, Per, folds_of, groups_of
from vseg.evaluation.held_out import fitted_to_all, held_out
from vseg.evaluation.human_maps import Drawn, agreement, peoples_maps
from vseg.evaluation.sandbox import Fenced
from vseg.models.families import Family, Fitted
from vseg.models.task import Task

__all__ = ["Comparison", "Family", "Fenced", "Fitted", "compare", "peoples_maps"]


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
    people: Drawn | None = None,
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
        Where the fits run: threads, processes, or processes with limits (`Fenced`); the numbers do not depend on it.
        What processes run must be possible to pickle, as vseg's own families are.
    progress : callable, optional
        Called with 1 for each fit that is done: one a model, group and fold, and one more a model and group, and one
        a group for people's maps.
    kept : Path, optional
        Folder in which finished fits leave what they found, so that a run that was cut goes on.
    people : mapping from (group, image) to Maps, optional
        What people saw; by default the free maps of their answers.
    """
    if not models:
        raise InvalidInput("There are no models to compare; name at least one.")
    if taken := sorted(set(ceilings.NAMES) & set(models)):
        raise InvalidInput(f"{taken[0]} is the name of a reference; call the model otherwise.")
    groups = groups_of(task.responses, per, by)
    fold = folds_of(task.responses, by, folds, seed=_fold_seed(seed))
    manner: dict[str, Any] = {"seed": seed, "executor": executor, "progress": progress, "kept": kept}
    predictions, failures = held_out(task, models, groups, fold, **manner)
    told = fitted_to_all(task, {name: models[name] for name in predictions}, groups, **manner)
    maps = {name: _drawn(name, each) for name, each in told.items()}
    people = peoples_maps(task, groups, **manner) if people is None else dict(people)
    return Comparison(
        responses=task.responses,
        predictions=predictions,
        references=ceilings.references(task.responses, fold),
        failures=failures,
        maps={name: each for name, each in maps.items() if each},
        people=people,
        agreement={name: agreement(each, people) for name, each in maps.items()},
        by=by,
        per=per,
        folds=int(fold.max()) + 1,
        seed=seed,
        draws=resamples,
    )


def _fold_seed(seed: int) -> int:
    return int(np.random.SeedSequence(seed).spawn(2)[1].generate_state(1)[0])


def _drawn(name: str, told: Mapping[str, Told]) -> dict[tuple[str, str], Maps]:
    """Maps by group and image. What could not be fitted to all answers has been scored, and that stands."""
    failed = {group: each.failed for group, each in told.items() if each.failed}
    for group, why in list(failed.items())[:1]:
        warnings.warn(f"There are no maps by {name} of {group}: {why}", VsegWarning, stacklevel=3)
    return {(group, image): maps for group, each in told.items() for image, maps in each.maps.items()}
