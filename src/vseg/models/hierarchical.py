"""Many people's linear models with shared and individual parameters: everyone's weights lie around those of all.

θ_j = shared + width·δ_j, where both the shared weights and everyone's δ_j have the family's prior. At each of several
widths, the shared weights are found by Newton steps on the evidence, with δ_j integrated out (Laplace's approximation);
the width is the one with the largest. So few answers of one person are read in the light of all others'. Where people
differ much and answered much, there is little to gain over separate fits.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput
from vseg.models.families import sendable
from vseg.models.fisher_scoring import Fit, Problem, problem, scored
from vseg.models.linear import Linear
from vseg.models.task import Task

WIDTHS = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # of deviations, relative to the prior of the shared weights
MOST_ROUNDS, SETTLED = 50, 1e-3
STARTS = 4  # of each person at each width


@dataclass(frozen=True, eq=False)
class Hierarchical:
    """A model for each person; as a model itself, what it predicts of someone who was not there.

    Attributes
    ----------
    shared : Linear
        With the weights that people lie around.
    people : mapping from participants to Linear
    width : float
        Of the deviations, relative to the prior of the shared weights.
    """

    shared: Linear
    people: Mapping[str, Linear]
    width: float
    converged: bool

    def of(self, participant: str) -> Linear:
        """Someone's own model; that of the shared weights for whoever was not there."""
        return self.people.get(participant, self.shared)

    def maps(self, image: str) -> Maps:
        """By the shared weights."""
        return self.shared.maps(image)

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """By the shared weights."""
        return self.shared.same_probability(image, pairs)


@sendable
def hierarchical(family: Callable[..., Linear]) -> Callable[..., Hierarchical]:
    """Shared and individual weights of a linear family, such as `logistic("lab")`, by cross-entropy.

    Examples
    --------
    >>> import vseg
    >>> from vseg.models import Task, logistic
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(8), segments=2, entropy=0.1, seed=0)
    >>> colours = vseg.stimuli.colour_image(truth, seed=1).features
    >>> pairs = vseg.designs.scattered(truth.layout, segments=2, seed=2)
    >>> people = [vseg.simulate(truth, pairs, blocks=1, participant=name, seed=3) for name in ("Ann", "Bo")]
    >>> task = Task(vseg.data.responses.concatenated(people), segments=2)
    >>> fitted = hierarchical(logistic({"image": colours}))(task, seed=0)
    >>> fitted.of("Ann").maps("image")
    <Maps: 2 segments on an 8x8 grid, mean entropy 0.261 nats>
    """

    def fit(task: Task, *, seed: int) -> Hierarchical:
        pooled = family(task, seed=seed)
        if not isinstance(pooled, Linear):
            raise InvalidInput(f"Expected a linear family, such as logistic, got {type(pooled).__name__}.")
        tasks = {name: task.where(task.responses.participant == name) for name in task.responses.participants}
        designs = {
            image: pooled.design(task.features(pooled.features, image)) for image in task.responses.images
        }
        problems = [_own(designs, each) for each in tasks.values()]
        away = np.random.default_rng(seed).standard_normal((STARTS - 1, len(pooled.theta)))
        tried = [_settled(problems, pooled.theta, away, width) for width in WIDTHS]
        found = max(tried, key=lambda each: each.evidence)
        people = {
            name: _linear(
                pooled,
                own,
                found.width * each.theta,
                found.covariance_of(each),
                each.evidence,
                each.converged,
            )
            for (name, own), each in zip(tasks.items(), found.fits, strict=True)
        }
        shared = _linear(pooled, task, found.shared, found.covariance, found.evidence, found.converged)
        return Hierarchical(shared, people, found.width, found.converged)

    fit.__name__ = f"hierarchical[{getattr(family, '__name__', 'family')}]"
    return fit


class _Found(NamedTuple):
    shared: NDArray[np.float64]
    covariance: NDArray[np.float64]
    width: float
    fits: list[Fit]  # in units of the width
    converged: bool

    @property
    def evidence(self) -> float:
        """log p(all answers | width), shared and individual weights integrated out."""
        among = 0.5 * float(np.linalg.slogdet(self.covariance)[1] - self.shared @ self.shared)
        return sum(each.evidence for each in self.fits) + among

    def covariance_of(self, fit: Fit) -> NDArray[np.float64]:
        """Of someone's weights: around the shared ones, and with them, which are not known exactly either."""
        follows = fit.covariance  # ∂θ_j / ∂shared
        return np.asarray(self.width**2 * fit.covariance + follows @ self.covariance @ follows.T)


def _settled(
    problems: list[Problem], shared: NDArray[np.float64], away: NDArray[np.float64], width: float
) -> _Found:
    """From weights that fit all people pooled, so that everyone's segments have the same order."""
    scaled, one = [each.scaled(width) for each in problems], np.eye(len(shared))
    at = [[shared, *(shared + width * away)]] * len(problems)
    for left in reversed(range(MOST_ROUNDS)):
        centre = shared / width
        fits = [
            min((scored(each._replace(centre=centre), start / width) for start in own), key=_value)
            for each, own in zip(scaled, at, strict=True)
        ]
        told = np.sum([one - each.covariance for each in fits], axis=0)  # by the answers, of each direction
        covariance = np.linalg.inv(told / width**2 + one)
        move = covariance @ (np.sum([each.theta - centre for each in fits], axis=0) / width - shared)
        settled = bool(np.abs(move).max() < SETTLED)
        if settled or not left:
            break
        at, shared = [[width * each.theta + move] for each in fits], shared + move
    return _Found(shared, covariance, width, fits, settled)


def _value(fit: Fit) -> float:
    return fit.value


def _own(designs: Mapping[str, NDArray[np.float64]], task: Task) -> Problem:
    tallies = task.tallies()
    return problem([designs[image] for image in tallies], list(tallies.values()))


def _linear(
    pooled: Linear,
    task: Task,
    theta: NDArray[np.float64],
    covariance: NDArray[np.float64],
    evidence: float,
    converged: bool,
) -> Linear:
    return Linear(
        task, pooled.features, pooled.design, theta, covariance, pooled.prior_width, evidence, converged
    )
