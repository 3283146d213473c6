"""What people saw, found from their answers alone, and how close a model's maps come to it."""

from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path

import numpy as np

from vseg.data.maps import Maps
from vseg.evaluation import metrics
from vseg.evaluation.held_out import Groups, Progress, fitted_to_all
from vseg.models.baselines import free_maps
from vseg.models.task import Task

Drawn = Mapping[tuple[str, str], Maps]
MAP_SCORES = (
    "mae", "label_accuracy", "adjusted_rand_index", "variation_of_information", "covering", "boundary_f",
    "entropy_error",
)  # fmt: skip


def peoples_maps(
    task: Task,
    groups: Groups,
    *,
    seed: int,
    executor: Executor | None = None,
    progress: Progress = lambda done: None,
    kept: Path | None = None,
) -> dict[tuple[str, str], Maps]:
    """The free maps of each group of answers and each image; without groups whose answers give none.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.Maps.one_hot(vseg.Grid(4), [0, 0, 1, 1] * 4)
    >>> answers = vseg.simulate(truth, vseg.designs.all_pairs(truth.layout), seed=0)
    >>> seen = peoples_maps(Task(answers), {"all": np.arange(len(answers))}, seed=0)
    >>> seen["all", "image"].distance_to(truth) < 0.1
    True
    """
    people = {"people": free_maps()}
    found = fitted_to_all(task, people, groups, seed=seed, executor=executor, progress=progress, kept=kept)
    return {
        (group, image): maps for group, told in found["people"].items() for image, maps in told.maps.items()
    }


def agreement(maps: Drawn, people: Drawn) -> dict[str, float | None]:
    """Entropy correlation and the map metrics of a model, averaged over what both have maps of; None without any.

    Labels are matched first, in each group and image by itself.
    """
    shared = sorted(set(maps) & set(people))
    if not shared:
        return dict.fromkeys(("entropy_r", *MAP_SCORES))
    own, theirs = [maps[key] for key in shared], [people[key] for key in shared]
    each = list(map(metrics.evaluate, own, theirs))
    means: dict[str, float | None] = {
        name: float(np.mean([scores[name] for scores in each])) for name in MAP_SCORES
    }
    return {"entropy_r": entropy_correlation(own, theirs), **means}


def entropy_correlation(maps: list[Maps], people: list[Maps]) -> float | None:
    """Of the entropies at all locations; none where either never varies."""
    own, measured = (np.concatenate([one.entropy for one in each]) for each in (maps, people))
    if own.std() == 0 or measured.std() == 0:
        return None
    return float(np.corrcoef(own, measured)[0, 1])
