"""A submission's maps scored as any model is: on answers held out, with floor and ceilings beside.

Labels without doubt would be charged without end for a single slip of a participant. So two rates of slips are fitted
to the answers of the other folds, q -> γ₀ + (1 - γ₀ - γ₁)·q: γ₀ is how often 'same' is said of what the model holds
different, γ₁ the other way round. Nothing else is fitted; a submission sees images alone, never answers.
"""

from collections.abc import Callable, Mapping

import numpy as np

from vseg import __version__
from vseg.data.maps import Maps
from vseg.errors import InvalidInput
from vseg.evaluation import compare as comparison
from vseg.evaluation.compare import compare
from vseg.evaluation.fit_jobs import plain
from vseg.evaluation.folds import By
from vseg.evaluation.leaderboard import Entry
from vseg.evaluation.submissions import Ran
from vseg.evaluation.tasks import digest
from vseg.models.black_box import BlackBox, slips
from vseg.models.families import sendable
from vseg.models.task import Task


@sendable
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


def score(
    task: Task,
    ran: Ran,
    people: Mapping[str, Maps] | None = None,
    *,
    by: By = "pairs",
    folds: int = 5,
    seed: int = 0,
    dataset: str = "",
) -> Entry:
    """The entry of a submission on a leaderboard.

    Parameters
    ----------
    people : mapping from images to Maps, optional
        What people saw, all of them together; by default found from their answers.
    """
    name, family = ran.name, given_maps(ran.maps)
    seen = None if people is None else {("all", image): maps for image, maps in people.items()}
    found = compare(task, {name: family}, by=by, per="all", folds=folds, seed=seed, people=seen)
    if name in found.failures:
        raise InvalidInput(found.failures[name])
    row = found.table()[0]
    row.pop("model")
    return Entry(
        name=name,
        file=ran.digest,
        dataset=digest(task),
        dataset_name=dataset,
        vseg=__version__,
        settings={"by": by, "folds": found.folds, "seed": seed, "segments": task.segments},
        scores=row,
        slips=list(family(task, seed=seed).slips),
        references=plain(found.ceilings()),
        answers=len(task.responses),
        resampled=found.resamples.what,
        repeatable=ran.repeatable,
        seconds=round(ran.seconds, 2),
    )


def peoples_maps(task: Task, *, seed: int) -> dict[str, Maps]:
    """What people saw in each image, all of them together."""
    found = comparison.peoples_maps(task, {"all": np.arange(len(task.responses))}, seed=seed)
    return {image: maps for (_, image), maps in found.items()}
