"""Sample maps and hyper-parameters together by Hamiltonian Monte Carlo, until several chains agree.

prepare_starts   the joint model around a Laplace fit, and the likely modes where chains start
sample_joint     chains from different starts; draws until R-hat and effective sample size are good, or a budget ends

The mass matrix of a chain is the expected curvature at the mode from which it starts, along the directions about which
the answers say something, and 1 along all others. It is reduced after a pilot run where draws varied more than that.
`hmc.run_chain` has fixed hyper-parameters; it is kept apart because replays of adaptive studies need exactly its sums.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg.bayes.coarse_grid import (
    NO_INTERPOLATION,
    Interpolation,
    interpolate,
    make_interpolation,
    spline_coefficients,
)
from vseg.bayes.diagnostics import Convergence, assess_convergence
from vseg.bayes.draw_summaries import mean_entropies
from vseg.bayes.evidence import LaplaceFit, Mode, find_mode, project_fields
from vseg.bayes.joint_model import (
    HYPERPARAMETERS,
    LENGTH,
    SCALE,
    SHARE,
    HyperPrior,
    JointModel,
    answer_line,
    centring_cost,
    compute_weights_and_maps,
    expected_curvature,
    joint_cost,
    noise_rates,
    spectrum,
    update_hyperparameters,
)
from vseg.bayes.lapses import BETA, CatchCounts
from vseg.bayes.linear_algebra import dot4, sum_of_squares
from vseg.bayes.mass_matrix import Mass, mass_from_curvature, multiply_by_mass, reduce_mass
from vseg.bayes.model import AnswerCounts, CovarianceRoot, compute_maps, helmert_contrasts, scaled_jacobian
from vseg.bayes.priors import LENGTH_SPREAD, SHARE_SPREAD, USUAL_LENGTH, Prior
from vseg.bayes.segment_evidence import PLAUSIBLE_WITHIN
from vseg.bayes.spectra import LOG_LENGTHS
from vseg.data.layout import Layout, as_read_only

CHAINS = 4
WARM_UP = 25  # trajectories that approach the bulk of the posterior and tune the step size
PILOT = 25  # trajectories that show which directions are longer than expected
TUNING = 15  # trajectories that tune the step size again
ROUND = 50  # draws of each chain between two looks at the diagnostics
TRAVEL = 1.8  # mean length of a trajectory, in standard deviations
MAX_STEPS = 50
FIRST_STEP = 0.3
ACCEPTANCE = 0.8
RANDOM_STARTS = 6  # random fields from which other modes are looked for
ROUGH_TOLERANCE = 1e-4  # of modes in a first search
WORSE_BY = 15.0  # nats by which a mode then costs more than the best, and is given up
SAME_COST = 0.05
SHORTER = 1.3  # functions are kept that matter at lengths down to the fitted one over this
PAIRS_WATCHED = 20  # random pairs whose P(same) is watched for convergence
HYPER_STEPS = 16  # Metropolis steps of the hyper-parameters after each trajectory
NOISE_STEPS = 12  # Metropolis steps of lapses, bias and floor after each trajectory
BIAS_SPREAD = 1.0  # of the logit of the bias
USUAL_FLOOR, FLOOR_SPREAD = -7.0, 2.0  # of the logit of the floor
# Near-certain participants have scales of 20 to 100. The search by evidence, on which adaptive studies depend, expects
# smaller ones (`priors.USUAL_SCALE`).
SCALE_FACTOR, SCALE_SPREAD = 2.0, 1.7
LAPSES_AT_START = (0.01, 0.4)
BIAS_AT_START = (0.2, 0.8)

Floats = NDArray[np.float64]


class JointStart(NamedTuple):
    """Where a chain starts.

    Attributes
    ----------
    model : JointModel
    centre : (D,)
        The position of the mode that the chain starts from.
    mass : Mass
    interpolation : Interpolation
        That of the model, but to all locations, not only to those of the answers.
    """

    model: JointModel
    centre: Floats
    mass: Mass
    interpolation: Interpolation = NO_INTERPOLATION

    @property
    def shown(self) -> JointModel:
        """The model with maps at all locations."""
        return self.model._replace(interpolation=self.interpolation)


class JointChain(NamedTuple):
    """Result of `run_joint_chain`.

    Attributes
    ----------
    positions : (draws, D)
    costs : (draws,)
        -log posterior density of u and θ, up to a constant.
    accepted : float
        The mean acceptance probability of trajectories that did not tune the step size.
    step : float
        The step size at the end.
    gradients : int
        How often the gradient was computed.
    """

    positions: Floats
    costs: Floats
    accepted: float
    step: float
    gradients: int


@dataclass(frozen=True, eq=False)
class JointDraws:
    """Draws of several chains.

    Attributes
    ----------
    maps : (S, n, K)
        Maps, evenly spaced over the draws of all chains.
    entropies : (chains, draws)
        The mean entropy of every draw.
    costs : (chains, draws)
    scale, length, share, lapses, bias, floor : (chains, draws)
        Hyper-parameters; the length in image sides.
    convergence : Convergence
    gradients : int
        How often the gradient was computed.
    """

    maps: Floats
    entropies: Floats
    costs: Floats
    scale: Floats
    length: Floats
    share: Floats
    lapses: Floats
    bias: Floats
    floor: Floats
    convergence: Convergence
    gradients: int


def prepare_starts(
    answers: AnswerCounts,
    fit: LaplaceFit,
    prior: Prior,
    *,
    estimate_lapses: bool,
    catch: CatchCounts,
    rng: np.random.Generator | None = None,
    layout: Layout | None = None,
) -> list[JointStart]:
    """Return the joint model around a Laplace fit with each likely mode given the fit's hyper-parameters, best first.

    There are as many as chains at most.

    Parameters
    ----------
    answers : AnswerCounts
    fit : LaplaceFit
    prior : Prior
    estimate_lapses : bool
        Whether lapses and bias are sampled, or known.
    catch : CatchCounts
    rng : Generator, optional
        For random fields from which other modes are looked for; without it, the mode next to the fit is the only one.
    layout : Layout, optional
        The layout of the answers and maps, if the prior and the fit are on a coarse grid.
    """
    K = fit.segments
    theta, hyper_prior = _hyper_prior(answers, fit, prior, estimate_lapses, catch)
    log_length = float(theta[LENGTH] if hyper_prior.is_free[LENGTH] else hyper_prior.value[LENGTH])
    basis = prior.make_basis(float(np.exp(log_length))).truncate(
        log_length - np.log(SHORTER), 0.5 * hyper_prior.max_share
    )
    contrasts, zeros = helmert_contrasts(K), np.zeros(basis.functions)
    wide, tall, at_answers = basis.wide, basis.tall, basis.tall
    everywhere = there = NO_INTERPOLATION
    if layout is not None:
        wide = as_read_only(spline_coefficients(basis.wide))
        tall = as_read_only(wide.T)
        everywhere = make_interpolation(layout)
        asked, ends = np.unique(np.stack([answers.i, answers.j]), return_inverse=True)
        i, j = ends.reshape(2, -1).astype(np.uint32)
        answers, there = answers._replace(i=i, j=j), everywhere.take(asked)
        at_answers = interpolate(wide, there).T
    model = JointModel(
        wide, tall, basis.first, basis.second, float(LOG_LENGTHS[0]),
        float(LOG_LENGTHS[1] - LOG_LENGTHS[0]), contrasts, answers.i, answers.j, answers.same, answers.trials,
        zeros, zeros, hyper_prior, there,
    )  # fmt: skip
    log_sd, _ = spectrum(theta, model)
    root, own_root = (_scaled_root(each, log_sd) for each in (basis.tall, at_answers))
    lapses, bias, floor = noise_rates(theta, hyper_prior)
    low, span = answer_line(lapses, bias, floor, K)
    own = answers._replace(gamma0=low, gamma1=1 - low - span)
    fields = [fit.fields]
    if rng is not None:
        fields += list(fit.scale * rng.standard_normal((RANDOM_STARTS, *fit.fields.shape)))
    modes = _find_modes(own, own_root, [project_fields(each, root) for each in fields])
    model = model._replace(reference=log_sd)
    found = [_describe_mode(mode, own_root, own, contrasts) for mode in _distinct(modes)]
    best = max(each.evidence for each in found)
    likely = [each for each in found if best - each.evidence <= PLAUSIBLE_WITHIN]
    likely.sort(key=lambda each: -each.evidence)
    return [_start_at_mode(each, theta, own_root, model, everywhere) for each in likely[:CHAINS]]


def _scaled_root(tall: Floats, log_sd: Floats) -> CovarianceRoot:
    scaled = np.ascontiguousarray(tall * np.exp(log_sd))
    return CovarianceRoot(np.ascontiguousarray(scaled.T), scaled)


def _find_modes(answers: AnswerCounts, root: CovarianceRoot, weights: Sequence[Floats]) -> list[Mode]:
    """Return the modes reached from these weights (K-1, m) each, without those that are clearly worse than the best."""
    rough = [find_mode(answers, root, [each], tolerance=ROUGH_TOLERANCE) for each in weights]
    best = min(mode.cost for mode in rough)
    near = [mode for mode in rough if mode.cost - best <= WORSE_BY]
    return [find_mode(answers, root, [mode.weights]) for mode in near]


def _distinct(modes: Sequence[Mode]) -> list[Mode]:
    """Return modes of different costs; two of the same cost differ in their labels alone."""
    kept: list[Mode] = []
    for mode in sorted(modes, key=lambda mode: mode.cost):
        if not kept or mode.cost - kept[-1].cost > SAME_COST:
            kept.append(mode)
    return kept


class _DescribedMode(NamedTuple):
    """A mode, its Laplace evidence, and what a mass matrix is made of: J, I + JᵀJ and its lower Cholesky factor."""

    weights: Floats
    evidence: float
    jacobian: Floats
    curvature: Floats
    lower: Floats


def _describe_mode(
    mode: Mode, root: CovarianceRoot, answers: AnswerCounts, contrasts: Floats
) -> _DescribedMode:
    jacobian = scaled_jacobian(mode.weights, root, contrasts, answers)
    curvature = np.eye(mode.weights.size) + jacobian.T @ jacobian
    lower = np.linalg.cholesky(curvature)
    evidence = float(-mode.cost - np.log(np.diag(lower)).sum())
    return _DescribedMode(mode.weights, evidence, jacobian, curvature, lower)


def _start_at_mode(
    mode: _DescribedMode, theta: Floats, root: CovarianceRoot, model: JointModel, interpolation: Interpolation
) -> JointStart:
    """Return a start at a mode with the mass matrix there."""
    from scipy.linalg.lapack import dtrtri

    weights = mode.weights
    variances = np.sum(dtrtri(mode.lower, lower=1)[0] ** 2, axis=0)
    informed = 1 - variances.reshape(len(weights), -1).mean(axis=0)
    own = model._replace(centring=np.clip(informed, 0.0, 1.0))
    maps = compute_maps(weights, root, model.contrasts)
    curvature = expected_curvature(weights, theta, mode.jacobian, mode.curvature, maps, own)
    centre = np.concatenate([weights.ravel(), theta])
    return JointStart(own, centre, mass_from_curvature(curvature, HYPERPARAMETERS), interpolation)


def sample_joint(
    starts: Sequence[JointStart],
    *,
    draws: int,
    seeds: np.random.SeedSequence,
    threads: int = 1,
    budget: int,
) -> JointDraws:
    """Draw from the joint posterior with one chain for each start, until the chains agree or a budget ends.

    Parameters
    ----------
    starts : list of JointStart
        Where the chains start; a start may occur several times, with different random displacements.
    draws : int
        Maps to return.
    seeds : SeedSequence
        Spawns the seed of each chain.
    threads : int
        Chains at a time; the result does not depend on it.
    budget : int
        Draws of each chain at most.
    """
    rngs = [np.random.default_rng(seed) for seed in seeds.spawn(len(starts))]
    with ThreadPoolExecutor(min(threads, len(starts))) as pool:
        pilots = list(pool.map(_run_pilot, starts, rngs))
        chains = [
            _Chain(start, rng, pilot.positions[-1], pilot.step, pilot.gradients)
            for start, rng, pilot in zip(_adapt_starts(starts, pilots), rngs, pilots, strict=True)
        ]
        list(pool.map(lambda chain: chain.advance(0, TUNING), chains))
        pairs = _watched_pairs(starts[0].shown, seeds)
        for done in range(0, budget, ROUND):
            count = min(ROUND, budget - done)
            list(pool.map(lambda chain, count=count: chain.advance(count, 0, pairs), chains))
            if _agree(chains):
                break
        convergence = _assess(chains)
        kept = _evenly_spaced(chains, draws)
    prior = starts[0].model.prior
    theta = np.where(prior.is_free, np.stack([chain.theta for chain in chains]), prior.value)
    rates = [[noise_rates(point, chain.start.model.prior) for point in chain.theta] for chain in chains]
    lapses, bias, floor = np.moveaxis(np.array(rates), -1, 0)
    return JointDraws(
        maps=kept, entropies=np.stack([chain.entropies for chain in chains]),
        costs=np.stack([chain.costs for chain in chains]), scale=np.exp(theta[..., SCALE]),
        length=np.exp(theta[..., LENGTH]), share=prior.max_share / (1 + np.exp(-theta[..., SHARE])),
        lapses=lapses, bias=bias, floor=floor, convergence=convergence,
        gradients=sum(chain.gradients for chain in chains),
    )  # fmt: skip


class _Chain:
    """A chain that is continued round by round, with what is watched of its draws."""

    def __init__(
        self, start: JointStart, rng: np.random.Generator, position: Floats, step: float, gradients: int
    ):
        self.start, self.rng, self.step, self.gradients = start, rng, step, gradients
        self.position = position
        self.positions = np.empty((0, len(position)))
        self.costs = self.entropies = np.empty(0)
        self.watched = np.empty((0, PAIRS_WATCHED))
        self.accepted: list[float] = []

    @property
    def theta(self) -> Floats:
        """(draws, 6) hyper-parameters."""
        return self.positions[:, -HYPERPARAMETERS:]

    def advance(self, draws: int, tuning: int, pairs: NDArray[np.int64] | None = None) -> None:
        """Run some more trajectories; those that tune the step size are not kept."""
        rounds, size = draws + tuning, len(self.start.centre)
        chain = run_joint_chain(
            self.position, self.start, self.step, *_random_numbers(self.rng, rounds, size), tuning,
        )  # fmt: skip
        self.step, self.gradients = chain.step, self.gradients + chain.gradients
        self.position = chain.positions[-1]
        kept = chain.positions[tuning:]
        if not draws or pairs is None:
            return
        entropies, watched = summarise_draws(kept, self.start.shown, pairs)
        self.positions = np.concatenate([self.positions, kept])
        self.costs = np.concatenate([self.costs, chain.costs[tuning:]])
        self.entropies = np.concatenate([self.entropies, entropies])
        self.watched = np.concatenate([self.watched, watched])
        self.accepted.append(chain.accepted)


def _run_pilot(start: JointStart, rng: np.random.Generator) -> JointChain:
    size, rounds = len(start.centre), WARM_UP + PILOT
    first = start.centre + multiply_by_mass(rng.standard_normal(size), start.mass, start.mass.values**-0.5)
    chain = run_joint_chain(first, start, FIRST_STEP, *_random_numbers(rng, rounds, size), WARM_UP)
    return chain._replace(positions=chain.positions[WARM_UP:])


def _adapt_starts(starts: Sequence[JointStart], pilots: Sequence[JointChain]) -> list[JointStart]:
    """Return the start of each chain with less mass along directions that were long in the pilot runs.

    Chains with the same start share their pilot runs.
    """
    adapted: dict[int, JointStart] = {}
    for start in starts:
        if id(start) not in adapted:
            own = [pilot.positions for other, pilot in zip(starts, pilots, strict=True) if other is start]
            adapted[id(start)] = start._replace(mass=reduce_mass(start.mass, np.concatenate(own)))
    return [adapted[id(start)] for start in starts]


def _random_numbers(
    rng: np.random.Generator, rounds: int, size: int
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    """Return all random numbers of so many trajectories, as `run_joint_chain` takes them."""
    return (
        rng.standard_normal((rounds, size)),
        rng.random((rounds, 3)),
        rng.standard_normal((rounds, HYPER_STEPS)),
        rng.random((rounds, HYPER_STEPS, 3)),
        rng.standard_normal((rounds, NOISE_STEPS, 3)),
        rng.random((rounds, NOISE_STEPS, 3)),
    )


def _agree(chains: Sequence[_Chain]) -> bool:
    """Return whether the convergence is good; the first quantity for which it is not saves looking at the others."""
    return all(assess_convergence([values]).is_good for values in _watched_quantities(chains))


def _assess(chains: Sequence[_Chain]) -> Convergence:
    accepted = float(np.mean([chain.accepted for chain in chains]))
    return assess_convergence(_watched_quantities(chains), accepted)


def _watched_quantities(chains: Sequence[_Chain]) -> list[Floats]:
    """Return the mean entropy, the log posterior, and P(same) of some pairs, (chains, draws) each."""
    return [
        np.stack([chain.entropies for chain in chains]),
        np.stack([-chain.costs for chain in chains]),
        *np.moveaxis(np.stack([chain.watched for chain in chains]), -1, 0),
    ]


def _watched_pairs(model: JointModel, seeds: np.random.SeedSequence) -> NDArray[np.int64]:
    """Return random pairs of different locations, (2, 20)."""
    rng = np.random.default_rng(seeds.spawn(1)[0])
    n = model.locations
    i = rng.integers(0, n, PAIRS_WATCHED)
    return np.stack([i, (i + rng.integers(1, n, PAIRS_WATCHED)) % n])


def _evenly_spaced(chains: Sequence[_Chain], draws: int) -> Floats:
    """Return the maps (S, n, K) of `draws` draws, evenly spaced over all chains, chain by chain in turn."""
    length = len(chains[0].positions)
    each = -(-draws // len(chains))
    at = np.floor(np.linspace(0, length, each, endpoint=False)).astype(int)
    maps = [draw_maps(chain.positions[at], chain.start.shown) for chain in chains]
    stacked = np.stack(maps, axis=1)
    return stacked.reshape(-1, *stacked.shape[2:])[:draws]


def _hyper_prior(
    answers: AnswerCounts, fit: LaplaceFit, prior: Prior, estimate_lapses: bool, catch: CatchCounts
) -> tuple[Floats, HyperPrior]:
    """Return θ₀ from a Laplace fit, and the prior of the hyper-parameters."""
    lapses = answers.gamma0 + answers.gamma1
    bias = answers.gamma0 / lapses if lapses > 0 else 0.5
    length = np.log(fit.length / np.sqrt(len(prior.layout))) if prior.has_length else 0.0
    max_share = prior.max_share
    share = logit(min(max(prior.shares[fit.kind] / max_share, 1e-6), 1 - 1e-6)) if max_share else 0.0
    is_free = np.array([
        len(prior.scales) > 1,
        prior.has_length and len(prior.families[0]) > 1,
        len(prior.families) > 1,
        estimate_lapses,
        estimate_lapses,
        True,
    ])  # fmt: skip
    theta = np.array([
        np.log(fit.scale),
        length,
        share,
        logit(np.clip(lapses, *LAPSES_AT_START)),
        logit(np.clip(bias, *BIAS_AT_START)),
        USUAL_FLOOR,
    ])  # fmt: skip
    value = np.array([*theta[:3], lapses, bias, 0.0])
    return np.where(is_free, theta, 0.0), HyperPrior(
        centre=np.array([
            np.log(SCALE_FACTOR * prior.usual_scale), np.log(USUAL_LENGTH), prior.usual_share, 0.0, 0.0, USUAL_FLOOR,
        ]),
        spread=np.array([SCALE_SPREAD, LENGTH_SPREAD, SHARE_SPREAD, 1.0, BIAS_SPREAD, FLOOR_SPREAD]),
        is_free=is_free, value=value, max_share=max_share, lapse_beta=BETA, catch_right=float(catch.right),
        catch_wrong=float(catch.asked - catch.right),
    )  # fmt: skip


def logit(p: float) -> float:
    """Return log(p/(1 - p))."""
    return float(np.log(p / (1 - p)))


def draw_maps(positions: Floats, model: JointModel) -> Floats:
    """Return the maps (S, n, K) at these positions, (S, D)."""
    size, K = len(positions[0]) - HYPERPARAMETERS, len(model.contrasts)
    maps = np.empty((len(positions), model.locations, K))
    for s, x in enumerate(positions):
        floor = noise_rates(x[size:], model.prior)[2]
        maps[s] = (1 - floor) * compute_weights_and_maps(x, model, spectrum(x[size:], model)[0])[
            1
        ] + floor / K
    return maps


def summarise_draws(positions: Floats, model: JointModel, pairs: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the mean entropy (S,) of the maps at these positions, and P(same) of these pairs (S, 20)."""
    maps = draw_maps(positions, model)
    return mean_entropies(maps), np.sum(maps[:, pairs[0]] * maps[:, pairs[1]], axis=2)


@compiled
def run_joint_chain(
    first,
    start,
    step,
    noise,
    uniform,
    hyper_noise,
    hyper_uniform,
    rates_noise,
    rates_uniform,
    tuning,
):
    """Run one chain from x = `first`, a trajectory for each row of `noise`; return a `JointChain`.

    The first `tuning` trajectories tune the step size by dual averaging (Hoffman and Gelman, 2014). `uniform`
    (rounds, 3) decides about the step size and the length of a trajectory, and about acceptance.
    """
    rounds = noise.shape[0]
    model = start.model
    root = np.sqrt(start.mass.values)
    inverse = 1.0 / start.mass.values
    x = first.copy()
    value, gradient = joint_cost(x, model)
    positions = np.empty((rounds, x.shape[0]))
    costs = np.empty(rounds)
    accepted = 0.0
    gradients = 0
    log_step = np.log(step)
    anchor = np.log(2.0 * step)
    averaged = log_step
    error = 0.0
    for r in range(rounds):
        size = np.exp(log_step) * (0.8 + 0.4 * uniform[r, 0])
        steps = min(max(int(TRAVEL * (0.5 + uniform[r, 1]) / size + 0.5), 1), MAX_STEPS)
        before = value + 0.5 * sum_of_squares(noise[r])
        momentum = multiply_by_mass(noise[r], start.mass, root) - 0.5 * size * gradient
        proposal = x.copy()
        for s in range(steps):
            is_last = s == steps - 1
            proposal += size * multiply_by_mass(momentum, start.mass, inverse)
            value, gradient = joint_cost(proposal, model, is_last)
            gradients += 1
            if not np.isfinite(value):
                break
            momentum -= (0.5 * size if is_last else size) * gradient
        gain = before - value - 0.5 * dot4(momentum, multiply_by_mass(momentum, start.mass, inverse))
        probability = 0.0
        if np.isfinite(gain):
            probability = np.exp(min(gain, 0.0))
        if uniform[r, 2] < probability:
            x = proposal
        x = update_hyperparameters(
            x, model, hyper_noise[r], hyper_uniform[r], rates_noise[r], rates_uniform[r]
        )
        value, gradient = joint_cost(x, model)
        gradients += 1
        if r < tuning:
            error += (ACCEPTANCE - probability - error) / (r + 11.0)
            log_step = min(anchor - np.sqrt(r + 1.0) / 0.1 * error, 0.4)
            part = (r + 1.0) ** -0.75
            averaged = part * log_step + (1.0 - part) * averaged
            if r == tuning - 1:
                log_step = averaged
        else:
            accepted += probability
        positions[r] = x
        costs[r] = value - centring_cost(x, model)
    return JointChain(positions, costs, accepted / max(rounds - tuning, 1), np.exp(log_step), gradients)
