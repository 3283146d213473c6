"""A submission's maps scored as any model is: on answers held out, with floor and ceilings beside.

Labels without doubt would be charged without end for a single slip of a participant. So two rates of slips are fitted
to the answers of the other folds, q -> γ₀ + (1 - γ₀ - γ₁)·q: γ₀ is how often 'same' is said of what the model holds
different, γ₁ the other way round. Nothing else is fitted; a submission sees images alone, never answers.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from vseg import __version__
from vseg.benchmark.leaderboard import Entry
from vseg.benchmark.submissions import Ran
from vseg.benchmark.tasks import digest
from vseg.comparison import Comparison, compare
from vseg.comparison.folds import By
from vseg.errors import InvalidInput, NotConverged, VsegWarning
from vseg.maps import Maps
from vseg.models.black_box import BlackBox, slips
from vseg.models.task import Task
from vseg.reconstruction import reconstruct
from vseg.responses import Responses


def given_maps(shown: Mapping[str, Maps]) -> Callable[..., BlackBox]:
    """The model that says what these maps say, but for slips."""

    def fit(task: Task, *, seed: int) -> BlackBox:
        tallies = task.tallies()
        if missing := sorted(set(tallies) - set(shown)):
            raise InvalidInput(
                f"There are no maps of image {missing[0]}; expected some of every image answered about."
            )
        q = np.concatenate([shown[name].same_probability(tally.pairs) for name, tally in tallies.items()])
        k, n = (
            np.concatenate([getattr(tally, each) for tally in tallies.values()]).astype(np.float64)
            for each in ("k", "n")
        )
        return BlackBox(shown.__getitem__, {}, *slips(q, k, n))

    fit.__name__ = "given_maps"
    return fit


def peoples_maps(task: Task, *, seed: int) -> dict[str, Maps]:
    """What people saw in each image, all of them together; without images that have too few answers for maps."""
    found = {
        image: seen_in(task.responses.of(image=image), task.segments, seed=seed)
        for image in task.responses.images
    }
    return {image: maps for image, maps in found.items() if maps is not None}


def seen_in(answers: Responses, segments: int, *, seed: int) -> Maps | None:
    """The maps found from answers alone, to look at beside a model's; none where the answers are too few."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VsegWarning)
            return reconstruct(answers, segments=segments, seed=seed).maps
    except NotConverged as error:
        return None if error.result is None else cast(Maps, error.result.maps)
    except InvalidInput:
        return None


def score(
    task: Task,
    ran: Ran,
    people: Mapping[str, Maps],
    *,
    by: By = "pairs",
    folds: int = 5,
    seed: int = 0,
    dataset: str = "",
) -> Entry:
    """The entry of a submission on a leaderboard."""
    name = ran.name
    found = compare(task, {name: given_maps(ran.maps)}, by=by, per="all", folds=folds, seed=seed)
    if name in found.failures:
        raise InvalidInput(found.failures[name])
    row = found.table()[0]
    fitted = given_maps(ran.maps)(task, seed=seed)
    scores = {
        **{each: row[each] for each in ("bits", "low", "high", "normalised", "brier")},
        "entropy_r": entropy_correlation(ran.maps, people),
    }
    return Entry(
        name=name,
        file=ran.digest,
        dataset=digest(task),
        dataset_name=dataset,
        vseg=__version__,
        settings={"by": by, "folds": found.folds, "seed": seed, "segments": task.segments},
        scores=scores,
        slips=list(fitted.slips),
        references=_references(found),
        answers=len(task.responses),
        resampled=found.resamples.what,
        repeatable=ran.repeatable,
        seconds=round(ran.seconds, 2),
    )


def entropy_correlation(maps: Mapping[str, Maps], people: Mapping[str, Maps]) -> float | None:
    """Of the entropy maps, over all locations of all images; none where either never varies."""
    shared = sorted(set(maps) & set(people))
    if not shared:
        return None
    own, measured = (np.concatenate([each[name].entropy for name in shared]) for each in (maps, people))
    if own.std() == 0 or measured.std() == 0:
        return None
    return float(np.corrcoef(own, measured)[0, 1])


def _references(found: Comparison) -> list[dict[str, Any]]:
    return [
        {**each, "bits": each["bits"] if np.isfinite(each["bits"]) else None} for each in found.ceilings()
    ]
