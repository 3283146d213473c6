"""The kernel of the penalised estimator: chosen by held-out pairs together with λ, against λ alone.

The truths are those of posterior.py. Errors are L1 per location (MAE, 0 to 2). `python benchmarks/study.py --only
kernels` runs it, `--quick` with fewer seeds.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

import vseg
from posterior import LEVELS, SEGMENTS, gp, sharp
from tables import table
from vseg import Maps, designs, metrics, simulate
from vseg.data.responses import Tally
from vseg.reconstruction.smoothness_selection import MARGIN, KernelComparison, compare_kernels

FIRST_SEED = 2000  # the rule was fixed with other seeds
CELLS = ((11, 1), (11, 3), (11, 10), (20, 1), (20, 3), (32, 1 / 6))  # grid, blocks


class Found(NamedTuple):
    """The errors of "four", of the chosen kernel and of the best by likelihood, and the chosen kernel's name."""

    four: float
    chosen: float
    best: float
    kernel: str


def main(repeats: int) -> str:
    """Compare the errors of "four", of the chosen kernel and of the kernel with the highest held-out likelihood."""
    rows, ratios, blocks_of = [], [], []
    for size, blocks in CELLS:
        for kind in (gp, sharp):
            for level in LEVELS:
                found = [
                    _measure(kind(size, SEGMENTS, level, FIRST_SEED + seed), blocks, FIRST_SEED + seed)
                    for seed in range(repeats)
                ]
                four, chosen, best = (np.mean([one[column] for one in found]) for column in range(3))
                ratios.append(chosen / four)
                blocks_of.append(blocks)
                others = Counter(one.kernel for one in found if one.kernel != "four")
                rows.append([
                    f"{size}×{size}", kind.__name__, level, f"{blocks:.3g}", f"{four:.3f}", f"**{chosen / four:.2f}**",
                    f"{best / four:.2f}", ", ".join(f"{name} {count}" for name, count in others.most_common()),
                ])  # fmt: skip
                print(" ".join(rows[-1]), flush=True)
    few = [ratio for ratio, blocks in zip(ratios, blocks_of, strict=True) if blocks <= 1]
    columns = [
        "grid", "truth", "uncertainty", "blocks", 'error, "four"', '"auto" ÷ "four"', "best likelihood ÷ four",
        "other kernels chosen",
    ]  # fmt: skip
    note = (
        f"Three segments, {repeats} seeds per row, fresh pairs in every block, λ chosen by held-out pairs for each "
        "kernel. "
        f'"auto" takes another kernel than "four" only if its gain exceeds {MARGIN:g} standard errors over the folds; '
        '"best likelihood" takes the one that predicts best, without this margin. '
        f'"auto" ÷ "four": **{np.mean(few):.3f}** on average up to one block, {np.mean(ratios):.3f} over all rows, '
        f"{min(ratios):.2f} to {max(ratios):.2f} (target: no worse than 1 up to one block)."
    )
    return table('Choosing the kernel ("auto")', columns, rows, note)


def _measure(truth: Maps, blocks: float, seed: int) -> Found:
    tally = _answers(truth, blocks, seed)
    comparison = compare_kernels(tally, SEGMENTS, seed=seed, threads=1)
    best = max(comparison.paths, key=lambda name: comparison.paths[name].best)
    errors = {
        name: _error(tally, truth, comparison, name, seed) for name in {"four", comparison.chosen, best}
    }
    return Found(errors["four"], errors[comparison.chosen], errors[best], comparison.chosen)


def _answers(truth: Maps, blocks: float, seed: int) -> Tally:
    """Answers to fresh covering pairs in every block of KN² trials, or in a part of one block."""
    trials = round(min(blocks, 1) * truth.segments * len(truth.layout))
    drawn = [
        designs.covering(truth.layout, trials=trials, seed=int(number))
        for number in np.random.default_rng(seed).integers(2**31, size=max(round(blocks), 1))
    ]
    return simulate(truth, drawn, seed=seed).tally()


def _error(tally: Tally, truth: Maps, comparison: KernelComparison, kernel: str, seed: int) -> float:
    smoothness = comparison.paths[kernel].chosen
    result = vseg.reconstruct(tally, segments=SEGMENTS, kernel=kernel, smoothness=smoothness, seed=seed)
    return metrics.mae(result.maps, truth)
