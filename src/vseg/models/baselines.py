"""Models that use answers but no image: chance, the base rate, the reconstructed maps and the posterior.

The first two are lower references for other models, the last two upper references.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.bayes import Posterior
from vseg.bayes.lapses import LapseOption
from vseg.bayes.posterior import DRAWS, SHORT_BUDGET, draw_posterior, search_segments
from vseg.bayes.priors import make_prior
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.data.responses import Tally
from vseg.errors import NotConverged, NotFound
from vseg.models.model_interface import picklable
from vseg.models.task import Task
from vseg.reconstruction.kernels import build_smoothness as penalty_of
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.smoothness_selection import FOLDS, cross_validate
from vseg.reconstruction.solvers import get_solver

FEW_PAIRS_SMOOTHNESS = 1.0  # λ if there are too few pairs for cross-validation
PSEUDO_COUNT = 0.5  # added to the counts of both answers, as for the ceilings


@dataclass(frozen=True, eq=False)
class ConstantModel:
    """A model with one P(same) for all pairs of an image, and `default` for images without answers."""

    by_image: Mapping[str, float]
    default: float

    @property
    def parameters(self) -> dict[str, float]:
        """P(same) by image."""
        return dict(self.by_image)

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """Return the same probability for every pair."""
        return np.full(len(pairs), self.by_image.get(image, self.default))


@dataclass(frozen=True, eq=False)
class FreeMaps:
    """The maps of each image that had answers, with the smoothness λ of each in `parameters`."""

    maps_by_image: Mapping[str, Maps]
    parameters: Mapping[str, float]

    def maps(self, image: str) -> Maps:
        """Return the maps reconstructed from the answers about an image."""
        if image not in self.maps_by_image:
            raise _no_answers_error("Free maps know", image, self.maps_by_image)
        return self.maps_by_image[image]

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """Return P(same) of pairs on an image (Eq. 2)."""
        return self.maps(image).same_probability(pairs)


@dataclass(frozen=True, eq=False)
class PosteriorModel:
    """The posterior of each image that had answers."""

    posteriors: Mapping[str, Posterior]

    @property
    def parameters(self) -> dict[str, Any]:
        """The prior's scale and length and the lapse rates, by image."""
        return {
            name: {"scale": each.scale, "length": each.length, "lapses": list(each.lapses)}
            for name, each in self.posteriors.items()
        }

    def maps(self, image: str) -> Maps:
        """Return the posterior median."""
        return self._get_posterior(image).maps

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """Return P(same) averaged over the posterior draws, including lapses."""
        posterior = self._get_posterior(image)
        wrong_same, wrong_different = posterior.lapses
        return wrong_same + (1 - wrong_same - wrong_different) * posterior.same_probability(pairs)

    def _get_posterior(self, image: str) -> Posterior:
        if image not in self.posteriors:
            raise _no_answers_error("The posterior knows", image, self.posteriors)
        return self.posteriors[image]


@picklable
def chance() -> Callable[..., ConstantModel]:
    """Return a model that predicts P(same) = 0.5 for every pair.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> FittedModel`.
    """

    def fit(task: Task, *, seed: int) -> ConstantModel:
        return ConstantModel({}, 0.5)

    fit.__name__ = "chance"
    return fit


@picklable
def base_rate() -> Callable[..., ConstantModel]:
    """Return a model that predicts the share of 'same' among an image's answers; without any, that of all answers.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> FittedModel`.

    Examples
    --------
    >>> from vseg import Grid, Responses
    >>> task = Task(Responses(Grid(3), [0, 0, 0], [1, 2, 3], [1, 1, 0]))
    >>> base_rate()(task, seed=0).same_probability("image", Pairs(Grid(3), [5], [6]))
    array([0.625])
    """

    def fit(task: Task, *, seed: int) -> ConstantModel:
        tallies = task.tallies()
        rates = {name: _share_of_same(tally) for name, tally in tallies.items()}
        return ConstantModel(rates, _share_of_same(*tallies.values()))

    fit.__name__ = "base_rate"
    return fit


@picklable
def free_maps(smoothness: float | str = "auto", *, loss: str = "squared_error") -> Callable[..., FreeMaps]:
    """Return a model with the maps of `vseg.reconstruct` for each image: an upper reference without image features.

    Parameters
    ----------
    smoothness : float or "auto"
        λ; by default chosen by cross-validation for each image.
    loss : str
        The loss of an answer, as in `vseg.reconstruct`.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> FittedModel`.
    """

    def fit(task: Task, *, seed: int) -> FreeMaps:
        penalty = penalty_of(task.layout)
        maps: dict[str, Maps] = {}
        strengths: dict[str, float] = {}
        for name, tally in task.tallies().items():
            # Not by reconstruct(): it would warn in every fold that held-out pairs leave locations untested.
            terms: dict[str, Any] = {"loss": loss, "kernel": penalty}
            problem = build_objective(tally, task.segments, **terms)
            strengths[name] = _choose_smoothness(smoothness, tally, task.segments, seed, terms)
            solution = get_solver("coordinate_descent")(
                problem.with_strength(strengths[name]), None, seed=seed
            )
            if not solution.converged:
                raise NotConverged(f"Image {name}: {solution.status}", solution)
            maps[name] = Maps(task.layout, solution.probabilities)
        return FreeMaps(maps, strengths)

    fit.__name__ = "free_maps"
    return fit


@picklable
def posterior_maps(
    lapses: LapseOption = None, *, draws: int = DRAWS, budget: int = SHORT_BUDGET
) -> Callable[..., PosteriorModel]:
    """Return a model with the posterior of `vseg.posterior` for each image: the other upper reference.

    Parameters
    ----------
    lapses : optional
        Lapse rates, as in `vseg.posterior`.
    draws : int
        Maps drawn from the posterior.
    budget : int
        Draws of each chain at most: predictions need fewer than intervals do.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> FittedModel`.
    """

    def fit(task: Task, *, seed: int) -> PosteriorModel:
        prior = make_prior("spatial", task.layout, coarse=True)
        posteriors: dict[str, Posterior] = {}
        for name, tally in task.tallies().items():
            # Not by posterior(): it would warn in every fold about chains that mix poorly.
            fit_seed, draw_seed = np.random.SeedSequence(seed).spawn(2)
            _, answers, best = search_segments(tally, prior, [task.segments], lapses, seeds=fit_seed)
            posteriors[name] = draw_posterior(
                tally, answers, best, prior, draws=draws, budget=budget, lapses=lapses, seeds=draw_seed
            )
        return PosteriorModel(posteriors)

    fit.__name__ = "posterior"
    return fit


def _choose_smoothness(
    smoothness: float | str, tally: Tally, segments: int, seed: int, terms: Mapping[str, Any]
) -> float:
    if smoothness != "auto":
        return float(smoothness)
    if len(tally) < 2 * FOLDS:
        return FEW_PAIRS_SMOOTHNESS
    return cross_validate(tally, segments, seed=seed, threads=1, **terms).chosen


def _share_of_same(*tallies: Tally) -> float:
    same, trials = sum(int(each.k.sum()) for each in tallies), sum(each.trials for each in tallies)
    return (same + PSEUDO_COUNT) / (trials + 2 * PSEUDO_COUNT)


def _no_answers_error(subject: str, image: str, fitted: Mapping[str, object]) -> NotFound:
    return NotFound(
        f"{subject} nothing about image {image}, which had no answers; there are {', '.join(fitted)}. "
        "Hold out pairs or blocks instead of images."
    )
