"""Draws from the posterior by Hamiltonian Monte Carlo, compiled: several short chains around the mode.

The chains move in coordinates in which Laplace's approximation is a standard normal, u = mode + L⁻ᵀv with LLᵀ the
curvature at the mode. There a trajectory of length about π/2 gives a draw that has all but forgotten the one before,
in a handful of steps. Step sizes are tuned while warming up. Each chain has noise of its own, drawn beforehand, so
that the result does not depend on our threads. A chain amplifies last digits, so the factors it rests on are compiled
too (`factors`): a BLAS with other threads of its own changes nothing.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg.bayes.evidence import Cell
from vseg.bayes.linear_algebra import upper
from vseg.bayes.model import Answers, contrasts, cost, curvature, maps_of

CHAINS = 4  # at least
MOST_CHAINS, SHORTEST = 8, 8  # more chains carry more scales and lengths along, if each keeps enough draws
WARM = 24
THIN = 2  # trajectories a draw
TARGET = 0.8  # share of trajectories to accept
TRAVEL = 1.5  # length of a trajectory, about π/2
MOST_STEPS = 12
NEAR = 0.5  # chains start this far from the mode, in standard deviations: wide starts take long to come back


@dataclass(frozen=True, eq=False)
class Chains:
    """Maps drawn by several chains, (chains, draws, n, K), their costs, and the share of trajectories accepted."""

    maps: NDArray[np.float64]
    costs: NDArray[np.float64]
    accepted: float


def sample(
    answers: Answers,
    cells: Sequence[Cell],
    *,
    draws: int,
    seeds: np.random.SeedSequence,
    warm: int = WARM,
    threads: int = 1,
) -> Chains:
    """At least this many draws of the maps, a chain in each cell, with the lapses of that cell."""
    keep = -(-draws // len(cells))
    mixing = contrasts(cells[0].segments)

    def run(job: tuple[Cell, np.random.SeedSequence]) -> tuple[Any, ...]:
        cell, seed = job
        own = answers._replace(gamma0=cell.lapses[0], gamma1=cell.lapses[1])
        back, forth = whitening(own, cell)
        rng, size = np.random.default_rng(seed), cell.mode.u.size
        start = NEAR * rng.standard_normal(size)
        noise = rng.standard_normal((warm + THIN * keep, size))
        luck = rng.random((warm + THIN * keep, 2))
        weights, costs, accepted = chain(
            cell.mode.u, back, forth, cell.root, mixing, own, start, noise, luck, warm
        )
        return np.array([maps_of(u, cell.root, mixing) for u in weights]), costs, accepted

    with ThreadPoolExecutor(min(threads, len(cells))) as pool:
        found = list(pool.map(run, zip(cells, seeds.spawn(len(cells)), strict=True)))
    maps, costs, accepted = (np.array(part) for part in zip(*found, strict=True))
    return Chains(maps, costs, float(accepted.mean()))


def chains_for(draws: int) -> int:
    """How many chains share so many draws."""
    return min(max(draws // SHORTEST, CHAINS), MOST_CHAINS)


def whitening(answers: Answers, cell: Cell) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """L⁻¹ and L⁻ᵀ of the curvature LLᵀ at the mode."""
    factor = upper(curvature(cell.mode.u, cell.root, contrasts(cell.segments), answers))
    back = inverted(np.ascontiguousarray(factor.T))
    return back, np.ascontiguousarray(back.T)


@compiled
def chain(centre, back, forth, root, mixing, answers, start, noise, luck, warm):
    """One chain: (kept, K-1, m) weights, their costs, and the share accepted once warm."""
    rounds = noise.shape[0]
    shape = centre.shape
    v = start.copy()
    value, slope = cost(centre + stretched(v, back).reshape(shape), root, mixing, answers, True)
    pull = gathered(slope.ravel(), forth)
    keep = (rounds - warm) // THIN
    kept = np.empty((keep, shape[0], shape[1]))
    costs = np.empty(keep)
    accepted = 0.0
    log_step = np.log(0.5)
    anchor = np.log(1.0)
    settled = log_step
    miss = 0.0
    for r in range(rounds):
        step = np.exp(log_step) * (0.8 + 0.4 * luck[r, 0])
        steps = min(max(int(TRAVEL / step + 0.5), 1), MOST_STEPS)
        w = v.copy()
        speed = noise[r].copy()
        before = value + 0.5 * squared(speed)
        speed -= 0.5 * step * pull
        there = value
        there_pull = pull
        for s in range(steps):
            w += step * speed
            ends = s == steps - 1
            there, slope = cost(centre + stretched(w, back).reshape(shape), root, mixing, answers, ends)
            there_pull = gathered(slope.ravel(), forth)
            speed -= (0.5 * step if ends else step) * there_pull
        gain = before - there - 0.5 * squared(speed)
        chance = 0.0
        if np.isfinite(gain):
            chance = np.exp(min(gain, 0.0))
        if luck[r, 1] < chance:
            v = w
            value = there
            pull = there_pull
        if r < warm:  # dual averaging (Hoffman and Gelman, 2014)
            miss += (TARGET - chance - miss) / (r + 11.0)
            log_step = min(anchor - np.sqrt(r + 1.0) / 0.1 * miss, 0.4)
            share = (r + 1.0) ** -0.75
            settled = share * log_step + (1.0 - share) * settled
            if r == warm - 1:
                log_step = settled
        else:
            accepted += chance
            last = (r - warm) // THIN
            kept[last] = centre + stretched(v, back).reshape(shape)
            costs[last] = value
    return kept, costs, accepted / max(rounds - warm, 1)


@compiled
def inverted(factor):
    """L⁻¹ of a lower triangle, row by row."""
    d = factor.shape[0]
    back = np.zeros((d, d))
    for i in range(d):
        for k in range(i):
            weight = factor[i, k]
            for j in range(k + 1):
                back[i, j] -= weight * back[k, j]
        back[i, i] = 1.0
        for j in range(i + 1):
            back[i, j] /= factor[i, i]
    return back


@compiled
def stretched(v, back):
    """L⁻ᵀv, by the rows of L⁻¹."""
    u = np.zeros(v.shape[0])
    for b in range(v.shape[0]):
        weight = v[b]
        for a in range(b + 1):
            u[a] += weight * back[b, a]
    return u


@compiled
def gathered(slope, forth):
    """L⁻¹ times a slope in u, by the rows of L⁻ᵀ: the slope in v."""
    pull = np.zeros(slope.shape[0])
    for a in range(slope.shape[0]):
        weight = slope[a]
        for b in range(a, slope.shape[0]):
            pull[b] += weight * forth[a, b]
    return pull


@compiled
def squared(x):
    """Σ x²."""
    total = 0.0
    for r in range(x.shape[0]):
        total += x[r] * x[r]
    return total


def relabelled(draws: NDArray[np.float64], like: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each draw (S, n, K) under the labels that overlap most with the maps `like`, (n, K)."""
    from scipy.optimize import linear_sum_assignment

    overlap = np.einsum("snk,nl->skl", draws, like, optimize=True)
    found = draws.copy()
    straight = np.arange(draws.shape[2])
    for s in np.flatnonzero((overlap.argmax(axis=1) != straight).any(axis=1)):
        order = linear_sum_assignment(overlap[s].T, maximize=True)[1]
        found[s] = draws[s][:, order]
    return found
