"""Adaptive pairs against a designer who knows the map: how much of the possible gain over random pairs is reached.

The oracle knows the true maps and linearises the model around them. It chooses pairs one by one, each the one that
most reduces the expected squared error of the maps, from random candidates. Its expected error and that of random pairs
follow from the same linearised model, so their ratio says how much any order of pairs can gain; adaptive sessions learn
the maps on the way. `python benchmarks/study.py --only oracle` runs it.
"""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterior import LEVELS, SEGMENTS, SIZE, adaptive_errors, fixed_errors, format_ratio, gp, random_pairs
from tables import table
from vseg import Maps, Pairs
from vseg._support.blas import single_blas_thread
from vseg.bayes.covariance_roots import spatial_root
from vseg.bayes.model import AnswerCounts, CovarianceRoot, compute_maps, helmert_contrasts, scaled_jacobian
from vseg.sweeps import sweep

TRIALS = SEGMENTS * SIZE**2
LENGTH = 1 / 4.4  # of the fields of the truths, in image sides
CANDIDATES = 1500
RIDGE = 0.02  # keeps the weights that describe the true log-odds finite
MIN_PROBABILITY = 1e-12
AT_HIGH, OF_ORACLE = 0.9, 1.2  # targets

Floats = NDArray[np.float64]


def main(repeats: int) -> str:
    """Compare adaptive sessions, random pairs and the oracle at one block."""
    found = sweep(_compare, {"level": list(LEVELS)}, repeats=repeats, executor="threads", seed=0)
    rows = []
    for level in LEVELS:
        part = found.where(level=level).rows
        adaptive, random, best, linear = (
            np.array([row[name] for row in part])
            for name in ("adaptive", "random", "oracle", "linear_random")
        )
        gain, possible = adaptive.mean() / random.mean(), best.mean() / linear.mean()
        rows.append([
            level, f"{adaptive.mean():.4f}", f"{random.mean():.4f}", format_ratio(adaptive, random),
            format_ratio(best, linear), f"**{gain / possible:.2f}**",
        ])  # fmt: skip
    columns = [
        "uncertainty", "error, adaptive", "error, random", "adaptive ÷ random", "oracle ÷ random, linearised",
        "adaptive ÷ oracle",
    ]  # fmt: skip
    note = (
        f"{SIZE}×{SIZE} locations, {SEGMENTS} segments, {TRIALS} trials, maps as in the paper's S2, {repeats} seeds; "
        "ratios of mean errors with their standard errors over seeds. The oracle knows the maps and chooses each pair "
        f"from {CANDIDATES} candidates by the linearised model. Targets: adaptive ÷ random {AT_HIGH} at high "
        f"uncertainty, adaptive ÷ oracle {OF_ORACLE} elsewhere."
    )
    return table("Adaptive pairs: how close to an oracle", columns, rows, note)


def _compare(level: str, *, seed: int) -> dict[str, Any]:
    """Return the errors of one adaptive and one random session about the same maps, and the linearised ones."""
    truth = gp(SIZE, SEGMENTS, level, seed)
    (adaptive,) = adaptive_errors(truth, [TRIALS], seed)
    (random,) = fixed_errors(truth, random_pairs(truth.layout, TRIALS, seed), [TRIALS], seed)
    with single_blas_thread:
        best, linear = _linearised_errors(truth, LEVELS[level], seed)
    return {"adaptive": adaptive, "random": random, "oracle": best, "linear_random": linear}


def _linearised_errors(truth: Maps, scale: float, seed: int) -> tuple[float, float]:
    """Return the expected error of an entry with the oracle's pairs and with random ones."""
    candidates = random_pairs(truth.layout, CANDIDATES, seed)
    root = spatial_root(truth.layout, "rbf", LENGTH)
    tall = np.ascontiguousarray(scale * root.tall)
    scaled = CovarianceRoot(np.ascontiguousarray(tall.T), tall)
    contrasts = helmert_contrasts(truth.segments)
    log_odds = contrasts.T @ np.log(np.maximum(truth.probabilities, MIN_PROBABILITY)).T
    weights = np.linalg.solve(tall.T @ tall + RIDGE * np.eye(tall.shape[1]), tall.T @ log_odds.T).T
    by_pair = scaled_jacobian(np.ascontiguousarray(weights), scaled, contrasts, _one_answer_each(candidates))
    maps = compute_maps(np.ascontiguousarray(weights), scaled, contrasts)
    # How the entries of the maps depend on the weights: ∂p_ik/∂h_c = p_ik (C_kc - Σ_l p_il C_lc).
    by_field = maps[:, :, None] * (contrasts[None] - (maps @ contrasts)[:, None])
    by_weight = np.einsum("ikc,im->ikcm", by_field, tall).reshape(maps.size, -1)
    chosen = _choose_greedily(by_pair, by_weight.T @ by_weight)
    # Candidates are in random order, so the first ones are random pairs.
    return _expected_error(by_pair[chosen], by_weight), _expected_error(by_pair[:TRIALS], by_weight)


def _one_answer_each(pairs: Pairs) -> AnswerCounts:
    return AnswerCounts(
        pairs.i.astype(np.uint32), pairs.j.astype(np.uint32), np.zeros(len(pairs)), np.ones(len(pairs)), 0.0, 0.0
    )  # fmt: skip


def _choose_greedily(by_pair: Floats, wanted: Floats) -> list[int]:
    """Return the candidates, in order, that each reduce the sum of squared errors most, given those before."""
    chosen: list[int] = []
    spread = by_pair.copy()  # JΣ, with Σ the covariance of the weights after the answers so far
    for _ in range(TRIALS):
        reduction = np.sum((spread @ wanted) * spread, axis=1) / (1 + np.sum(spread * by_pair, axis=1))
        reduction[chosen] = -1.0
        best = int(np.argmax(reduction))
        chosen.append(best)
        direction = spread[best] / np.sqrt(1 + spread[best] @ by_pair[best])
        spread -= np.outer(by_pair @ direction, direction)
    return chosen


def _expected_error(by_pair: Floats, by_weight: Floats) -> float:
    """Return the mean absolute error of an entry, for normal errors, after answers to these pairs."""
    covariance = np.linalg.inv(np.eye(by_pair.shape[1]) + by_pair.T @ by_pair)
    variances = np.sum((by_weight @ covariance) * by_weight, axis=1)
    return float(np.mean(np.sqrt(2 / np.pi * np.maximum(variances, 0))))


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["4"])[0]))
