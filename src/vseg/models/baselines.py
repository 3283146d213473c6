"""References that look at no image: chance and the base rate of 'same'; free maps and the posterior, from above."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.bayes import Posterior
from vseg.bayes.inference import DRAWS, drawn, fitted
from vseg.bayes.priors import prior_of
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.data.responses import Tally
from vseg.errors import NotConverged, NotFound
from vseg.models.families import sendable
from vseg.models.task import Task
from vseg.reconstruction.cross_validation import FOLDS, cross_validate
from vseg.reconstruction.objective import objective
from vseg.reconstruction.smoothness import smoothness as penalty_of
from vseg.reconstruction.solvers import solver_of

FEW_PAIRS_SMOOTHNESS = 1.0  # λ where there are too few pairs to choose one
SHRUNK = 0.5  # added to the counts of both answers, as in the ceilings


@dataclass(frozen=True, eq=False)
class Constant:
    """One P(same) for all pairs of an image; `elsewhere` for images without answers."""

    by_image: Mapping[str, float]
    elsewhere: float

    @property
    def parameters(self) -> dict[str, Any]:
        """P(same) by image."""
        return dict(self.by_image)

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """The same number for every pair."""
        return np.full(len(pairs), self.by_image.get(image, self.elsewhere))


@dataclass(frozen=True, eq=False)
class Free:
    """Maps of each image that had answers, and the smoothness λ that each was given."""

    fitted: Mapping[str, Maps]
    parameters: Mapping[str, float]

    def maps(self, image: str) -> Maps:
        """The maps reconstructed from the answers."""
        if image not in self.fitted:
            raise _unseen("Free maps know", image, self.fitted)
        return self.fitted[image]

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """P(same) of pairs on an image (Eq. 2)."""
        return self.maps(image).same_probability(pairs)


@dataclass(frozen=True, eq=False)
class Believed:
    """The posterior of each image that had answers."""

    fitted: Mapping[str, Posterior]

    @property
    def parameters(self) -> dict[str, Any]:
        """Scale and length of the fields, and lapses, by image."""
        return {
            name: {"scale": each.scale, "length": each.length, "lapses": list(each.lapses)}
            for name, each in self.fitted.items()
        }

    def maps(self, image: str) -> Maps:
        """The posterior median."""
        return self._of(image).maps

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """P(same) averaged over the draws, lapses included."""
        believed = self._of(image)
        wrong_same, wrong_different = believed.lapses
        return wrong_same + (1 - wrong_same - wrong_different) * believed.same_probability(pairs)

    def _of(self, image: str) -> Posterior:
        if image not in self.fitted:
            raise _unseen("The posterior knows", image, self.fitted)
        return self.fitted[image]


@sendable
def chance() -> Callable[..., Constant]:
    """A coin: P(same) = 0.5."""

    def fit(task: Task, *, seed: int) -> Constant:
        return Constant({}, 0.5)

    fit.__name__ = "chance"
    return fit


@sendable
def base_rate() -> Callable[..., Constant]:
    """The share of 'same' among the answers about each image; of all answers for an image without any.

    Examples
    --------
    >>> from vseg import Grid, Responses
    >>> task = Task(Responses(Grid(3), [0, 0, 0], [1, 2, 3], [1, 1, 0]))
    >>> base_rate()(task, seed=0).same_probability("image", Pairs(Grid(3), [5], [6]))
    array([0.625])
    """

    def fit(task: Task, *, seed: int) -> Constant:
        return Constant(
            {name: _share(tally) for name, tally in task.tallies().items()}, _share(*task.tallies().values())
        )

    fit.__name__ = "base_rate"
    return fit


@sendable
def free_maps(smoothness: float | str = "auto", *, loss: str = "squared_error") -> Callable[..., Free]:
    """The maps of `vseg.reconstruct`, one set for each image: what answers alone tell, the upper reference."""

    def fit(task: Task, *, seed: int) -> Free:
        penalty = penalty_of(task.layout)
        found: dict[str, Maps] = {}
        strengths: dict[str, float] = {}
        for name, tally in task.tallies().items():
            # Not through reconstruct(): held-out pairs leave gaps, of which it would warn at every fold.
            terms: dict[str, Any] = {"loss": loss, "kernel": penalty}
            problem = objective(tally, task.segments, **terms)
            strengths[name] = _strength(smoothness, tally, task.segments, seed, terms)
            solution = solver_of("coordinate_descent")(problem.at(strengths[name]), None, seed=seed)
            if not solution.converged:
                raise NotConverged(f"Image {name}: {solution.status}", solution)
            found[name] = Maps(task.layout, solution.probabilities)
        return Free(found, strengths)

    fit.__name__ = "free_maps"
    return fit


@sendable
def posterior_maps(lapses: Any = None, *, draws: int = DRAWS) -> Callable[..., Believed]:
    """The posterior of `vseg.posterior`, one for each image: what answers alone tell, with what they leave open."""

    def fit(task: Task, *, seed: int) -> Believed:
        known = prior_of("spatial", task.layout)
        found: dict[str, Posterior] = {}
        for name, tally in task.tallies().items():
            # Not through posterior(): of chains that mix poorly it would warn at every fold.
            here, there = np.random.SeedSequence(seed).spawn(2)
            answers, cells = fitted(tally, known, task.segments, lapses, None, here, threads=1)
            found[name] = drawn(tally, answers, cells, known, draws, there, threads=1)
        return Believed(found)

    fit.__name__ = "posterior"
    return fit


def _strength(
    smoothness: float | str, tally: Tally, segments: int, seed: int, terms: Mapping[str, Any]
) -> float:
    if smoothness != "auto":
        return float(smoothness)
    if len(tally) < 2 * FOLDS:
        return FEW_PAIRS_SMOOTHNESS
    return cross_validate(tally, segments, seed=seed, threads=1, **terms).chosen


def _share(*tallies: Tally) -> float:
    same, trials = sum(int(each.k.sum()) for each in tallies), sum(each.trials for each in tallies)
    return (same + SHRUNK) / (trials + 2 * SHRUNK)


def _unseen(who_knows: str, image: str, fitted: Mapping[str, Any]) -> NotFound:
    return NotFound(
        f"{who_knows} nothing of image {image}, which had no answers; there are {', '.join(fitted)}. "
        "Hold out pairs or blocks instead of images."
    )
