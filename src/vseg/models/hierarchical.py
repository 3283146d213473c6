"""Linear models of many participants, whose weights lie around shared weights.

θ_j = shared + width·δ_j, where the shared weights and every participant's δ_j have the family's prior. At each of
several widths, the shared weights are found by Newton steps on the evidence, with δ_j integrated out (Laplace's
approximation); the width with the largest evidence is used. A participant with few answers thus borrows strength from
the others. If participants differ much and gave many answers, there is little to gain over separate fits.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput
from vseg.models.fisher_scoring import FisherScoringProblem, FisherScoringResult, build_problem, minimise_cost
from vseg.models.linear import LinearModel
from vseg.models.model_interface import picklable
from vseg.models.task import Task

WIDTHS = (
    0.025,
    0.05,
    0.1,
    0.2,
    0.4,
    0.8,
    1.6,
)  # of the deviations, relative to the prior of the shared weights
MAX_ROUNDS, TOLERANCE = 50, 1e-3
STARTS = 4  # for each participant at each width


@dataclass(frozen=True, eq=False)
class HierarchicalModel:
    """A model for each participant; its own predictions are those for a new participant.

    Attributes
    ----------
    shared : LinearModel
        The model with the shared weights.
    participants : mapping from names to LinearModel
    width : float
        The width of the deviations, relative to the prior of the shared weights.
    converged : bool
    """

    shared: LinearModel
    participants: Mapping[str, LinearModel]
    width: float
    converged: bool

    def for_participant(self, participant: str) -> LinearModel:
        """Return a participant's own model, or the shared one for a participant without answers."""
        return self.participants.get(participant, self.shared)

    def maps(self, image: str) -> Maps:
        """Return the maps of an image with the shared weights."""
        return self.shared.maps(image)

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """Return P(same) of pairs on an image with the shared weights."""
        return self.shared.same_probability(image, pairs)


@picklable
def hierarchical(family: Callable[..., LinearModel]) -> Callable[..., HierarchicalModel]:
    """Return a family with shared and individual weights of a linear family, such as `logistic("lab")`.

    Parameters
    ----------
    family : callable
        A linear family; it is fitted by cross-entropy.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> FittedModel`.

    Examples
    --------
    >>> import vseg
    >>> from vseg.models import Task, logistic
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(8), segments=2, entropy=0.1, seed=0)
    >>> colours = vseg.stimuli.colour_image(truth, seed=1).features
    >>> pairs = vseg.designs.scattered(truth.layout, segments=2, seed=2)
    >>> parts = [vseg.simulate(truth, pairs, blocks=1, participant=name, seed=3) for name in ("Ann", "Bo")]
    >>> task = Task(vseg.data.responses.concatenate(parts), segments=2)
    >>> fitted = hierarchical(logistic({"image": colours}))(task, seed=0)
    >>> fitted.for_participant("Ann").maps("image")
    <Maps: 2 segments on an 8x8 grid, mean entropy 0.261 nats>
    """

    def fit(task: Task, *, seed: int) -> HierarchicalModel:
        pooled = family(task, seed=seed)
        if not isinstance(pooled, LinearModel):
            raise InvalidInput(f"Expected a linear family, such as logistic, got {type(pooled).__name__}.")
        tasks = {name: task.take(task.responses.participant == name) for name in task.responses.participants}
        designs = {
            image: pooled.design(task.features(pooled.features, image)) for image in task.responses.images
        }
        problems = [_build_participant_problem(designs, each) for each in tasks.values()]
        offsets = np.random.default_rng(seed).standard_normal((STARTS - 1, len(pooled.theta)))
        results = [_fit_at_width(problems, pooled.theta, offsets, width) for width in WIDTHS]
        best = max(results, key=lambda each: each.evidence)
        participants = {
            name: _build_model(
                pooled,
                own,
                best.width * each.theta,
                best.participant_covariance(each),
                each.evidence,
                each.converged,
            )
            for (name, own), each in zip(tasks.items(), best.fits, strict=True)
        }
        shared = _build_model(pooled, task, best.shared, best.covariance, best.evidence, best.converged)
        return HierarchicalModel(shared, participants, best.width, best.converged)

    fit.__name__ = f"hierarchical[{getattr(family, '__name__', 'family')}]"
    return fit


class _WidthResult(NamedTuple):
    """The fit at one width of the deviations."""

    shared: NDArray[np.float64]
    covariance: NDArray[np.float64]
    width: float
    fits: list[FisherScoringResult]  # in units of the width
    converged: bool

    @property
    def evidence(self) -> float:
        """log p(all answers | width), with shared and individual weights integrated out."""
        shared_term = 0.5 * float(np.linalg.slogdet(self.covariance)[1] - self.shared @ self.shared)
        return sum(each.evidence for each in self.fits) + shared_term

    def participant_covariance(self, fit: FisherScoringResult) -> NDArray[np.float64]:
        """Return the covariance of a participant's weights, including the uncertainty of the shared weights."""
        jacobian = fit.covariance  # ∂θ_j / ∂shared
        return np.asarray(self.width**2 * fit.covariance + jacobian @ self.covariance @ jacobian.T)


def _fit_at_width(
    problems: list[FisherScoringProblem],
    shared: NDArray[np.float64],
    offsets: NDArray[np.float64],
    width: float,
) -> _WidthResult:
    """Fit from the weights of all participants pooled, so that everyone's segments have the same order."""
    scaled, one = [each.scaled(width) for each in problems], np.eye(len(shared))
    starts = [[shared, *(shared + width * offsets)]] * len(problems)
    for remaining in reversed(range(MAX_ROUNDS)):
        centre = shared / width
        fits = [
            min((minimise_cost(each._replace(centre=centre), start / width) for start in own), key=_value)
            for each, own in zip(scaled, starts, strict=True)
        ]
        information = np.sum([one - each.covariance for each in fits], axis=0)  # share from the answers
        covariance = np.linalg.inv(information / width**2 + one)
        move = covariance @ (np.sum([each.theta - centre for each in fits], axis=0) / width - shared)
        converged = bool(np.abs(move).max() < TOLERANCE)
        if converged or not remaining:
            break
        starts, shared = [[width * each.theta + move] for each in fits], shared + move
    return _WidthResult(shared, covariance, width, fits, converged)


def _value(fit: FisherScoringResult) -> float:
    return fit.value


def _build_participant_problem(
    designs: Mapping[str, NDArray[np.float64]], task: Task
) -> FisherScoringProblem:
    tallies = task.tallies()
    return build_problem([designs[image] for image in tallies], list(tallies.values()))


def _build_model(
    pooled: LinearModel,
    task: Task,
    theta: NDArray[np.float64],
    covariance: NDArray[np.float64],
    evidence: float,
    converged: bool,
) -> LinearModel:
    return LinearModel(
        task, pooled.features, pooled.design, theta, covariance, pooled.prior_width, evidence, converged
    )
