"""Chains that follow the answers: warmed up once in a while, and only moved on in between.

Hamiltonian Monte Carlo as in `vseg.bayes.hmc`, for a session whose next pairs are waited for. Answers tell much
about a few directions only, some forty of up to nine hundred, so only those are whitened: u = v + PᵀVv, with V an
orthonormal basis of them. Basis, step and a place to start belong to a chain that was warmed up on the first so many
answers; with up to half as many more it starts there and is ready after a few trajectories. No BLAS: the same answers
give the same draws whatever number of threads a BLAS would use.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg.bayes.evidence import Cell
from vseg.bayes.hmc import squared
from vseg.bayes.mode import inner
from vseg.bayes.model import Answers, contrasts, cost, maps_of, slopes_of

MOST_DIRECTIONS = 64
PASSES = 3  # of the subspace iteration that finds them
WARM = 16  # trajectories that tune the step
SETTLE = 4  # trajectories after new answers, before the first draw
TARGET = 0.65  # share of trajectories to accept
TRAVEL = 1.5  # length of a trajectory, about π/2
MOST_STEPS = 8
NOTHING = 1e-9  # a direction shorter than this is none
NEAR = 0.5  # a chain starts this far from the mode, in standard deviations
MANY_SEGMENTS = 5  # from here on a draw takes one trajectory, else two: with many fields each knows less


@dataclass(frozen=True, eq=False)
class Chain:
    """A chain in one cell after warming up: its whitening, its step, and where it is, as weights (d,)."""

    cell: Cell
    basis: NDArray[np.float64]
    shrink: NDArray[np.float64]
    step: float
    place: NDArray[np.float64]


def warmed(
    answers: Answers, cells: Sequence[Cell], seeds: np.random.SeedSequence, threads: int = 1
) -> list[Chain]:
    """A chain in each cell, its step tuned; each with the lapses of its cell, as all its draws are."""
    whitened = {cell: whitening(_of(cell, answers), cell) for cell in dict.fromkeys(cells)}

    def run(job: tuple[Cell, np.random.SeedSequence]) -> Chain:
        cell, rng = job[0], np.random.default_rng(job[1])
        (basis, shrink), mixing, d = whitened[cell], contrasts(cell.segments), cell.mode.u.size
        start = cell.mode.u.ravel() + moved(NEAR * rng.standard_normal(d), shrink, basis)
        noise, luck = rng.standard_normal((WARM, d)), rng.random((WARM, 2))
        own = _of(cell, answers)
        _, step, place = walk(start, basis, shrink, cell.root, mixing, own, 0.5, noise, luck, WARM, 1)
        return Chain(cell, basis, shrink, step, place)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, zip(cells, seeds.spawn(len(cells)), strict=True)))


def drawn(
    answers: Answers, chains: Sequence[Chain], count: int, seeds: np.random.SeedSequence, threads: int = 1
) -> NDArray[np.float64]:
    """So many maps (S, n, K), the chains taking turns."""
    segments = chains[0].cell.segments
    mixing, thin = contrasts(segments), 1 if segments >= MANY_SEGMENTS else 2
    rounds = SETTLE - (-count // len(chains)) * thin

    def run(job: tuple[Chain, np.random.SeedSequence]) -> list[NDArray[np.float64]]:
        one, rng = job[0], np.random.default_rng(job[1])
        root, own, d = one.cell.root, _of(one.cell, answers), len(one.place)
        noise, luck = rng.standard_normal((rounds, d)), rng.random((rounds, 2))
        kept, _, _ = walk(
            one.place, one.basis, one.shrink, root, mixing, own, one.step, noise, luck, SETTLE, thin
        )
        return [maps_of(u.reshape(segments - 1, -1), root, mixing) for u in kept]

    with ThreadPoolExecutor(threads) as pool:
        maps = np.array(list(pool.map(run, zip(chains, seeds.spawn(len(chains)), strict=True))))
    return maps.swapaxes(0, 1).reshape(-1, *maps.shape[2:])[:count]


def whitening(answers: Answers, cell: Cell) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """V and P, each (r, d): with LLᵀ the curvature within V, P = (L⁻¹ - I)V, so that u = v + PᵀVv."""
    slopes = slopes_of(cell.mode.u, cell.root, contrasts(cell.segments), answers)
    rank = min(MOST_DIRECTIONS, *slopes.shape)
    start = np.random.default_rng(0).standard_normal((rank, slopes.shape[0]))
    return leading(slopes, start, PASSES)


def _of(cell: Cell, answers: Answers) -> Answers:
    return answers._replace(gamma0=cell.lapses[0], gamma1=cell.lapses[1])


@compiled
def walk(start, basis, shrink, root, mixing, answers, step, noise, luck, warm, thin):
    """Draws kept after `warm` trajectories (kept, d), the step, tuned if there are no others, and the last place.

    Positions are weights u = W v; the prior is part of the cost, so that the slope in v is Wᵀ times that in u.
    """
    rounds = noise.shape[0]
    shape = (mixing.shape[1], root.wide.shape[0])
    u = start.copy()
    value, slope = cost(u.reshape(shape), root, mixing, answers, True)
    pull = moved(slope.ravel(), basis, shrink)
    kept = np.empty(((rounds - warm) // thin, u.shape[0]))
    tunes = rounds == warm
    log_step = np.log(step)
    anchor = np.log(2.0 * step)
    settled = log_step
    miss = 0.0
    for r in range(rounds):
        size = np.exp(log_step) * (0.8 + 0.4 * luck[r, 0])
        steps = min(max(int(TRAVEL / size + 0.5), 1), MOST_STEPS)
        w = u.copy()
        speed = noise[r].copy()
        before = value + 0.5 * squared(speed)
        speed -= 0.5 * size * pull
        there = value
        there_pull = pull
        for s in range(steps):
            w += size * moved(speed, shrink, basis)
            ends = s == steps - 1
            there, slope = cost(w.reshape(shape), root, mixing, answers, ends)
            there_pull = moved(slope.ravel(), basis, shrink)
            speed -= (0.5 * size if ends else size) * there_pull
        gain = before - there - 0.5 * squared(speed)
        chance = 0.0
        if np.isfinite(gain):
            chance = np.exp(min(gain, 0.0))
        if luck[r, 1] < chance:
            u = w
            value = there
            pull = there_pull
        if tunes:  # dual averaging (Hoffman and Gelman, 2014)
            miss += (TARGET - chance - miss) / (r + 11.0)
            log_step = min(anchor - np.sqrt(r + 1.0) / 0.1 * miss, 0.4)
            share = (r + 1.0) ** -0.75
            settled = share * log_step + (1.0 - share) * settled
        elif r >= warm:
            kept[(r - warm) // thin] = u
    return kept, np.exp(settled), u


@compiled
def moved(x, onto, along):
    """x + ontoᵀ(along x), both (r, d)."""
    y = x.copy()
    for r in range(onto.shape[0]):
        weight = inner(along[r], x)
        for a in range(x.shape[0]):
            y[a] += weight * onto[r, a]
    return y


@compiled
def leading(slopes, start, passes):
    """An orthonormal basis of about the leading directions of I + JᵀJ, and what shrinks them to unit curvature."""
    rank = start.shape[0]
    T, d = slopes.shape
    seen = start
    basis = np.zeros((rank, d))
    for _ in range(passes):
        basis = np.zeros((rank, d))
        for r in range(rank):
            for t in range(T):
                weight = seen[r, t]
                for a in range(d):
                    basis[r, a] += weight * slopes[t, a]
            for _ in range(2):
                for b in range(r):
                    weight = inner(basis[b], basis[r])
                    for a in range(d):
                        basis[r, a] -= weight * basis[b, a]
            size = np.sqrt(squared(basis[r]))
            for a in range(d):  # flat maps and repeated pairs have fewer directions
                basis[r, a] = basis[r, a] / size if size > NOTHING else 0.0
        seen = np.empty((rank, T))
        for r in range(rank):
            for t in range(T):
                seen[r, t] = inner(slopes[t], basis[r])
    factor = np.zeros((rank, rank))
    for r in range(rank):
        for b in range(r + 1):
            total = inner(seen[r], seen[b])
            if r == b:
                total += 1.0
            for k in range(b):
                total -= factor[r, k] * factor[b, k]
            factor[r, b] = np.sqrt(total) if r == b else total / factor[b, b]
    back = np.zeros((rank, rank))
    for r in range(rank):
        for k in range(r):
            for b in range(k + 1):
                back[r, b] -= factor[r, k] * back[k, b]
        for b in range(r):
            back[r, b] /= factor[r, r]
        back[r, r] = 1.0 / factor[r, r]
    shrink = np.zeros((rank, d))
    for r in range(rank):  # u = v + Σ_r shrink_r (V v)_r, with shrink = (L⁻¹ - I) V
        for b in range(r + 1):
            weight = back[r, b] - (1.0 if r == b else 0.0)
            for a in range(d):
                shrink[r, a] += weight * basis[b, a]
    return basis, shrink
