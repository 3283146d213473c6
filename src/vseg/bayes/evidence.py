"""Laplace's approximation: the most probable maps, and the evidence of a scale s, a length ξ and lapses.

find_mode               the maps of lowest cost, by L-BFGS
fit_laplace             the mode and its log evidence at one scale and covariance of a prior
search                  climb over the prior's grid of scales and lengths to the highest evidence
add_likely_neighbours   add all scales and lengths that are nearly as probable
allocate_chains         spread chains of draws over these

log evidence = -cost at the mode - ½ log det(I + JᵀWJ). The K! modes that differ in their labels alone are not counted:
their log K! would reward superfluous segments. The fits of one round are independent of each other, so the result does
not depend on the number of threads.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg.bayes.linear_algebra import cholesky_upper, dot4, identity_plus_gram
from vseg.bayes.model import (
    AnswerCounts,
    CovarianceRoot,
    compute_maps,
    cost_and_gradient,
    curvature,
    helmert_contrasts,
    scaled_jacobian,
)
from vseg.bayes.priors import Prior, PriorIndex
from vseg.data.responses import Tally
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.solvers import coordinate_descent

TOLERANCE = 1e-6
SEARCH_TOLERANCE = 1e-5
MEMORY = 12  # steps that L-BFGS remembers
MAX_STEPS = 400
MAX_HALVINGS = 25
MAX_IDLE_STEPS = 2  # steps in a row that gain next to nothing
FIELD_NOISE = 0.3  # variance of the noise assumed in fields that start a search
START_STRENGTH = 3.0  # λ of the paper's estimator that gives the first start
RANDOM_STARTS = 2
MAX_ROUNDS = 8
FEW_ANSWERS = 1.5  # with this many times fewer answers than weights, determinants are taken among the answers
LIKELY_WITHIN = 2.0  # nats below the best: scales and lengths over which draws are spread

Floats = NDArray[np.float64]


class Mode(NamedTuple):
    """Weights (K-1, m) at a minimum of the cost, and that cost."""

    weights: Floats
    cost: float


@dataclass(frozen=True, eq=False)
class LaplaceFit:
    """The mode and its log evidence at one point of a prior's grid.

    Attributes
    ----------
    index : PriorIndex
        The point of the grid.
    kind, length, scale, root
        The kind and the length of the covariance there, the scale, and the root of the scaled covariance.
    mode : Mode
        The maps of lowest cost.
    evidence : float
        Log evidence in nats, including the log prior of the point.
    lapses : (γ₀, γ₁)
    """

    index: PriorIndex
    kind: str
    scale: float
    length: float
    root: CovarianceRoot
    mode: Mode
    evidence: float
    lapses: tuple[float, float] = (0.0, 0.0)

    @property
    def segments(self) -> int:
        """K."""
        return len(self.mode.weights) + 1

    @property
    def fields(self) -> Floats:
        """(K-1, n) contrasts of the log-odds at the mode."""
        return self.mode.weights @ self.root.wide

    @property
    def probabilities(self) -> Floats:
        """(n, K) maps at the mode."""
        return compute_maps(self.mode.weights, self.root, helmert_contrasts(self.segments))


def search(
    answers: AnswerCounts,
    prior: Prior,
    first: Sequence[Floats],
    *,
    start: LaplaceFit | None = None,
    threads: int = 1,
) -> list[LaplaceFit]:
    """Climb over the prior's grid to the highest evidence; return all fits on the way, the best first.

    Parameters
    ----------
    answers : AnswerCounts
    prior : Prior
    first : list of (K-1, n)
        Fields from which the first fit starts; every later one starts from the best fit so far.
    start : LaplaceFit, optional
        The result of an earlier search: climb from there, in small steps only.
    threads : int
        Fits at a time.
    """
    index = prior.start if start is None else start.index
    best = fit_laplace(answers, prior, index, first, tolerance=SEARCH_TOLERANCE)
    fits = {index: best}
    with ThreadPoolExecutor(threads) as pool:
        for stride in (2, 1) if start is None else (1,):
            for _ in range(MAX_ROUNDS):
                index = best.index
                best = _fit_neighbours(answers, prior, best, fits, prior.neighbours(index, stride), pool)
                if best.index == index:
                    break
    best = fit_laplace(answers, prior, best.index, [best.fields, first[0]])
    others = [fit for fit in fits.values() if fit.index != best.index]
    return [best, *sorted(others, key=lambda fit: -fit.evidence)]


def fit_laplace(
    answers: AnswerCounts,
    prior: Prior,
    index: PriorIndex,
    starts: Sequence[Floats],
    *,
    tolerance: float = TOLERANCE,
) -> LaplaceFit:
    """Find the lowest mode from these fields (K-1, n) at one point of the prior's grid, and its evidence."""
    kind, length, unit = prior.families[index.kind][index.length]
    scale = prior.scales[index.scale]
    root = unit.rescale(scale)
    mode = find_mode(answers, root, [project_fields(fields, root) for fields in starts], tolerance=tolerance)
    evidence = log_evidence(answers, root, mode) + prior.log_prior(index)
    return LaplaceFit(index, kind, scale, length, root, mode, evidence, (answers.gamma0, answers.gamma1))


def add_likely_neighbours(
    answers: AnswerCounts, prior: Prior, fits: Sequence[LaplaceFit], *, threads: int = 1
) -> list[LaplaceFit]:
    """Return these fits and all that are likely among their neighbours and the neighbours of those, the best first."""
    known = {fit.index: fit for fit in fits}

    def fit_from(job: tuple[PriorIndex, LaplaceFit]) -> LaplaceFit:
        return fit_laplace(answers, prior, job[0], [job[1].fields], tolerance=SEARCH_TOLERANCE)

    with ThreadPoolExecutor(threads) as pool:
        for _ in range(MAX_ROUNDS):
            top = max(fit.evidence for fit in known.values())
            origins: dict[PriorIndex, LaplaceFit] = {}
            for fit in known.values():
                if top - fit.evidence <= LIKELY_WITHIN:
                    for index in prior.neighbours(fit.index):
                        if index not in known:
                            origins.setdefault(index, fit)
            if not origins:
                break
            known.update(zip(origins, pool.map(fit_from, origins.items()), strict=True))
    best, *others = sorted(known.values(), key=lambda fit: -fit.evidence)
    if best is not fits[0]:
        best = fit_laplace(answers, prior, best.index, [best.fields])
    return [best, *others]


def allocate_chains(fits: Sequence[LaplaceFit], count: int) -> list[LaplaceFit]:
    """Return `count` of the fits, evenly spread over their posterior, so that draws vary with scale and length."""
    ordered = sorted(fits, key=lambda fit: (fit.lapses, fit.index))
    evidence = np.array([fit.evidence for fit in ordered])
    share = np.exp(evidence - evidence.max())
    cumulative = np.cumsum(share / share.sum())
    at = np.searchsorted(cumulative, (np.arange(count) + 0.5) / count)
    return [ordered[min(index, len(ordered) - 1)] for index in at]


def log_evidence(answers: AnswerCounts, root: CovarianceRoot, mode: Mode) -> float:
    """Return Laplace's log probability of the answers under this prior, in nats."""
    contrasts = helmert_contrasts(len(mode.weights) + 1)
    if FEW_ANSWERS * len(answers.i) < mode.weights.size:
        # det(I + JᵀJ) = det(I + JJᵀ), which is smaller.
        factor = cholesky_upper(identity_plus_gram(scaled_jacobian(mode.weights, root, contrasts, answers)))
    else:
        factor = cholesky_upper(curvature(mode.weights, root, contrasts, answers))
    return float(-mode.cost - np.log(np.diag(factor)).sum())


def initial_fields(tally: Tally, segments: int, rng: np.random.Generator) -> list[Floats]:
    """Return fields (K-1, n) to start from: the paper's estimate, which rarely leads to a bad minimum, and noise."""
    problem = build_objective(tally, segments, strength=START_STRENGTH)
    p = coordinate_descent(problem, seed=int(rng.integers(2**31)), tolerance=1e-3).probabilities
    noise = rng.standard_normal((RANDOM_STARTS, segments - 1, len(p)))
    return [log_odds_contrasts(p), *noise]


def log_odds_contrasts(p: Floats, floor: float = 0.01) -> Floats:
    """Return the contrasts (K-1, n) of log p, for maps p (n, K); probabilities below `floor` are raised to it."""
    return helmert_contrasts(p.shape[1]).T @ np.log(np.maximum(p, floor)).T


def find_mode(
    answers: AnswerCounts, root: CovarianceRoot, starts: list[Floats], *, tolerance: float = TOLERANCE
) -> Mode:
    """Return the lowest minimum of the cost that is reached from these weights, each (K-1, m)."""
    contrasts = helmert_contrasts(len(starts[0]) + 1)
    modes = [Mode(*minimise(np.array(u), root, contrasts, answers, tolerance, MAX_STEPS)) for u in starts]
    return min(modes, key=lambda mode: mode.cost)


def project_fields(fields: Floats, root: CovarianceRoot) -> Floats:
    """Return weights (K-1, m) whose fields come close to these, (K-1, n).

    The root's rows are orthogonal, so the weights are projections. They are shrunk a little, as if the fields were
    observed in noise, so that directions of little prior variance stay small.
    """
    return fields @ root.tall / (np.sum(root.tall**2, axis=0) + FIELD_NOISE)


@compiled
def minimise(u, root, contrasts, answers, tolerance, max_steps):
    """Minimise the cost from u by L-BFGS with step halving; return the last weights and their cost."""
    shape = u.shape
    d = u.size
    value, g = cost_and_gradient(u, root, contrasts, answers, True)
    steps = np.zeros((MEMORY, d))
    changes = np.zeros((MEMORY, d))
    rho = np.zeros(MEMORY)
    alpha = np.zeros(MEMORY)
    stored = 0
    idle_steps = 0
    for _ in range(max_steps):
        gradient = g.ravel()
        direction = -gradient
        for back in range(min(stored, MEMORY)):
            r = (stored - 1 - back) % MEMORY
            alpha[r] = rho[r] * dot4(steps[r], direction)
            direction -= alpha[r] * changes[r]
        if stored > 0:
            r = (stored - 1) % MEMORY
            direction /= rho[r] * dot4(changes[r], changes[r])
        else:
            direction /= max(1.0, np.sqrt(dot4(direction, direction)))
        for back in range(min(stored, MEMORY) - 1, -1, -1):
            r = (stored - 1 - back) % MEMORY
            direction += (alpha[r] - rho[r] * dot4(changes[r], direction)) * steps[r]
        descent = dot4(gradient, direction)
        if not descent < 0.0:
            if stored == 0:
                break
            stored = 0
            continue
        step = 1.0
        new_value = value
        for _ in range(MAX_HALVINGS):
            new_u = u + step * direction.reshape(shape)
            new_value, new_g = cost_and_gradient(new_u, root, contrasts, answers, True)
            if new_value <= value + 1e-4 * step * descent:
                break
            step *= 0.5
        if not new_value < value:
            if stored == 0:
                break
            stored = 0
            continue
        change = new_g.ravel() - gradient
        curvature_along = step * dot4(direction, change)
        if curvature_along > 1e-10:
            r = stored % MEMORY
            steps[r] = step * direction
            changes[r] = change
            rho[r] = 1.0 / curvature_along
            stored += 1
        gain = value - new_value
        u = new_u
        g = new_g
        value = new_value
        idle_steps = idle_steps + 1 if gain < tolerance * (1.0 + abs(value)) else 0
        if idle_steps > MAX_IDLE_STEPS:
            break
    return u, value


def _fit_neighbours(
    answers: AnswerCounts,
    prior: Prior,
    best: LaplaceFit,
    fits: dict[PriorIndex, LaplaceFit],
    indices: Iterable[PriorIndex],
    pool: ThreadPoolExecutor,
) -> LaplaceFit:
    """Add fits at these indices to `fits`, each started from the best one's fields; return the best of all."""
    fields = best.fields
    new = [index for index in indices if index not in fits]
    found = pool.map(lambda at: fit_laplace(answers, prior, at, [fields], tolerance=SEARCH_TOLERANCE), new)
    fits.update(zip(new, found, strict=True))
    return max(fits.values(), key=lambda fit: fit.evidence)
