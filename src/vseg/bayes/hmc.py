"""Hamiltonian Monte Carlo given the hyper-parameters, compiled: draws of the maps for adaptive studies.

run_chain          trajectories, step size by dual averaging, thinning
whiten_low_rank    coordinates of a chain from the leading directions of the curvature at the mode

A chain moves in coordinates in which the posterior is close to a standard normal. There a trajectory of length about
π/2 ends almost independent of where it began, after a handful of steps. All random numbers of a chain are drawn
beforehand from its own seed, so results do not depend on the number of threads. A chain amplifies rounding errors, so
everything here is compiled with a fixed order of sums instead of calling a BLAS. `joint_sampling` samples the
hyper-parameters too and takes ten times as long; replays of adaptive studies need the sums of this module unchanged.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg.bayes.evidence import LaplaceFit
from vseg.bayes.linear_algebra import dot4, sum_of_squares
from vseg.bayes.model import (
    AnswerCounts,
    cost_and_gradient,
    helmert_contrasts,
    scaled_jacobian,
)

MIN_CHAINS = 4
FIRST_STEP = 0.5
TRAVEL = 1.5  # length of a trajectory, about π/2
START_SPREAD = (
    0.5  # distance of a chain's start from the mode, in standard deviations: wide starts take long to return
)
MAX_RANK = 64  # of a low-rank whitening
SUBSPACE_ITERATIONS = 3
NEGLIGIBLE_LENGTH = 1e-9  # a direction shorter than this is dropped
ALIGNMENTS = 3  # of draws to each other

Floats = NDArray[np.float64]


class Whitening(NamedTuple):
    """Coordinates of a chain: u = (I + PᵀV)v, with V the basis (orthonormal rows) and P `shrink`, both (rank, d)."""

    basis: Floats
    shrink: Floats


class Schedule(NamedTuple):
    """How a chain proceeds.

    Attributes
    ----------
    tuning : int
        Trajectories, at the beginning, that tune the step size.
    discarded : int
        Trajectories, at the beginning, from which no draws are kept.
    thin : int
        Trajectories per draw.
    acceptance : float
        The share of trajectories to accept, for tuning.
    max_steps : int
        Steps of a trajectory at most.
    """

    tuning: int
    discarded: int
    thin: int
    acceptance: float
    max_steps: int


class ChainRun(NamedTuple):
    """Result of `run_chain`.

    Attributes
    ----------
    weights : (draws, K-1, m)
        The weights u of the draws.
    costs : (draws,)
        Their costs.
    accepted : float
        The mean acceptance probability after the discarded trajectories.
    step : float
        The step size at the end.
    position : (d,)
        The position at the end.
    """

    weights: Floats
    costs: Floats
    accepted: float
    step: float
    position: Floats


def whiten_low_rank(answers: AnswerCounts, fit: LaplaceFit) -> Whitening:
    """Return low-rank coordinates from the leading directions of the curvature at the mode of a fit.

    Answers tell much about a few directions only, some forty of up to nine hundred, so only those are whitened.
    """
    jacobian = scaled_jacobian(fit.mode.weights, fit.root, helmert_contrasts(fit.segments), answers)
    rank = min(MAX_RANK, *jacobian.shape)
    start = np.random.default_rng(0).standard_normal((rank, jacobian.shape[0]))
    basis, shrink = leading_directions(jacobian, start, SUBSPACE_ITERATIONS)
    return Whitening(basis, shrink)


@compiled
def run_chain(start, whitening, root, contrasts, answers, step, noise, uniform, schedule):
    """Run one chain from `start`, a trajectory for each row of `noise`; return a `ChainRun`.

    `noise` (rounds, d) are the momenta, `uniform` (rounds, 2) decides about step lengths and acceptance.
    """
    rounds = noise.shape[0]
    shape = (contrasts.shape[1], root.wide.shape[0])
    position = start.copy()
    value, gradient = cost_and_gradient(position.reshape(shape), root, contrasts, answers, True)
    force = add_low_rank(gradient.ravel(), whitening.basis, whitening.shrink)
    count = (rounds - schedule.discarded) // schedule.thin
    weights = np.empty((count, shape[0], shape[1]))
    costs = np.empty(count)
    accepted = 0.0
    log_step = np.log(step)
    anchor = np.log(2.0 * step)
    averaged = log_step
    error = 0.0
    for r in range(rounds):
        size = np.exp(log_step) * (0.8 + 0.4 * uniform[r, 0])
        steps = min(max(int(TRAVEL / size + 0.5), 1), schedule.max_steps)
        proposal = position.copy()
        momentum = noise[r].copy()
        before = value + 0.5 * sum_of_squares(momentum)
        momentum -= 0.5 * size * force
        new_value = value
        new_force = force
        for s in range(steps):
            proposal += size * add_low_rank(momentum, whitening.shrink, whitening.basis)
            is_last = s == steps - 1
            new_value, gradient = cost_and_gradient(
                proposal.reshape(shape), root, contrasts, answers, is_last
            )
            new_force = add_low_rank(gradient.ravel(), whitening.basis, whitening.shrink)
            momentum -= (0.5 * size if is_last else size) * new_force
        gain = before - new_value - 0.5 * sum_of_squares(momentum)
        probability = 0.0
        if np.isfinite(gain):
            probability = np.exp(min(gain, 0.0))
        if uniform[r, 1] < probability:
            position = proposal
            value = new_value
            force = new_force
        if r < schedule.tuning:  # dual averaging (Hoffman and Gelman, 2014)
            error += (schedule.acceptance - probability - error) / (r + 11.0)
            log_step = min(anchor - np.sqrt(r + 1.0) / 0.1 * error, 0.4)
            share = (r + 1.0) ** -0.75
            averaged = share * log_step + (1.0 - share) * averaged
            if r == schedule.tuning - 1:
                log_step = averaged
        if r >= schedule.discarded:
            accepted += probability
            at = r - schedule.discarded
            if at % schedule.thin == schedule.thin - 1:
                weights[at // schedule.thin] = position.reshape(shape)
                costs[at // schedule.thin] = value
    share_accepted = accepted / max(rounds - schedule.discarded, 1)
    return ChainRun(weights, costs, share_accepted, np.exp(log_step), position)


@compiled
def add_low_rank(x, onto, along):
    """Return x + ontoᵀ(along x); both matrices are (rank, d)."""
    y = x.copy()
    for r in range(onto.shape[0]):
        weight = dot4(along[r], x)
        for a in range(x.shape[0]):
            y[a] += weight * onto[r, a]
    return y


@compiled
def leading_directions(jacobian, start, iterations):
    """Return V and P, each (rank, d), for the Jacobian J (T, d) of the answers.

    V is an orthonormal basis of about the leading directions of the curvature I + JᵀJ, by subspace iteration. With LLᵀ
    the curvature within V, P = (L⁻¹ - I)V: coordinates v with u = v + PᵀVv have unit curvature there.
    """
    rank = start.shape[0]
    T, d = jacobian.shape
    images = start
    basis = np.zeros((rank, d))
    for _ in range(iterations):
        basis = np.zeros((rank, d))
        for r in range(rank):
            for t in range(T):
                weight = images[r, t]
                for a in range(d):
                    basis[r, a] += weight * jacobian[t, a]
            for _ in range(2):
                for b in range(r):
                    weight = dot4(basis[b], basis[r])
                    for a in range(d):
                        basis[r, a] -= weight * basis[b, a]
            length = np.sqrt(sum_of_squares(basis[r]))
            for a in range(d):  # flat maps and repeated pairs have fewer directions
                basis[r, a] = basis[r, a] / length if length > NEGLIGIBLE_LENGTH else 0.0
        images = np.empty((rank, T))
        for r in range(rank):
            for t in range(T):
                images[r, t] = dot4(jacobian[t], basis[r])
    factor = np.zeros((rank, rank))
    for r in range(rank):
        for b in range(r + 1):
            total = dot4(images[r], images[b])
            if r == b:
                total += 1.0
            for k in range(b):
                total -= factor[r, k] * factor[b, k]
            factor[r, b] = np.sqrt(total) if r == b else total / factor[b, b]
    inverse = np.zeros((rank, rank))
    for r in range(rank):
        for k in range(r):
            for b in range(k + 1):
                inverse[r, b] -= factor[r, k] * inverse[k, b]
        for b in range(r):
            inverse[r, b] /= factor[r, r]
        inverse[r, r] = 1.0 / factor[r, r]
    shrink = np.zeros((rank, d))
    for r in range(rank):  # u = v + Σ_r shrink_r (V v)_r, with shrink = (L⁻¹ - I) V
        for b in range(r + 1):
            weight = inverse[r, b] - (1.0 if r == b else 0.0)
            for a in range(d):
                shrink[r, a] += weight * basis[b, a]
    return basis, shrink


def align_labels(draws: Floats, reference: Floats) -> Floats:
    """Return the draws (S, n, K), each with its segments in the order that overlaps most with `reference`, (n, K)."""
    overlap = np.einsum("snk,nl->skl", draws, reference, optimize=True)
    aligned = draws.copy()
    identity = np.arange(draws.shape[2])
    for s in np.flatnonzero((overlap.argmax(axis=1) != identity).any(axis=1)):
        aligned[s] = draws[s][:, _best_order(overlap[s])]
    return aligned


def align_draws(draws: Floats, reference: Floats) -> Floats:
    """Return the draws (S, n, K) with their segments in one order, as close as possible to that of a reference (n, K).

    The draws are aligned to one of them, then to the mean of the aligned ones, and at the end all in the same way to
    the reference. The reference alone would not do: where answers are noisy, all segments of a mode may be the same.
    """
    centre = draws[-1]
    for _ in range(ALIGNMENTS):
        draws = align_labels(draws, centre)
        centre = draws.mean(axis=0)
    return draws[:, :, _best_order(centre.T @ reference)]


def _best_order(overlap: Floats) -> NDArray[np.int64]:
    """Return the order of the segments in the rows of `overlap`, (K, K), that overlaps most with its columns."""
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(overlap.T, maximize=True)[1])
