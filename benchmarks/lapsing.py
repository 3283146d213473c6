"""The posterior of participants who lapse: the error of ignoring lapses, and the calibration when estimating them."""

import warnings

import numpy as np

import vseg
from posterior import SEGMENTS, SIZE, gp
from tables import table
from vseg import designs, simulate
from vseg.observers import LapsingObserver

LAPSE, CAUGHT = 0.08, 40  # half of the lapses are wrong; number of catch trials
WAYS = {"ignored": None, "estimated": "estimate", "known": (LAPSE / 2, LAPSE / 2)}


def main(quick: bool = False) -> str:
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vseg.errors.VsegWarning)
        for level in ("low", "moderate"):
            for blocks in (1, 5):
                for way in WAYS:
                    found = np.array([_one(level, blocks, way, seed) for seed in range(2 if quick else 24)])
                    entropy, covered, entries, lapses = found.mean(axis=0)
                    rows.append([
                        level, str(blocks), way, f"{entropy:.2f}", f"{100 * covered:.0f} %", f"{100 * entries:.0f} %",
                        f"{100 * lapses:.1f} %",
                    ])  # fmt: skip
    columns = [
        "uncertainty", "blocks", "lapses", "entropy ÷ true", "entropy's interval covers it", "coverage of entries",
        "lapses estimated",
    ]  # fmt: skip
    note = (
        f"Maps as in S2, {100 * LAPSE:.0f} % of the answers are guesses, {CAUGHT} catch trials, 90 % intervals, "
        "mean over "
        f"{2 if quick else 24} seeds. With few answers, lapses and uncertainty are hard to distinguish."
    )
    return table("The posterior of participants who lapse", columns, rows, note)


def _one(level: str, blocks: int, way: str, seed: int) -> tuple[float, ...]:
    truth = gp(SIZE, SEGMENTS, level, 300 + seed)
    pairs = [
        designs.covering(truth.layout, segments=SEGMENTS, seed=100 * seed + block) for block in range(blocks)
    ]
    answers = simulate(truth, pairs, observer=LapsingObserver(LAPSE), seed=seed)
    right = CAUGHT - int(np.random.default_rng(seed).binomial(CAUGHT, LAPSE / 2))
    catch = (right, CAUGHT) if way == "estimated" else None
    result = vseg.posterior(answers, segments=SEGMENTS, lapses=WAYS[way], catch=catch, seed=seed, threads=1)
    low, high = result.entropy_interval
    seen = truth.align_to(result.maps).probabilities
    inside = (result.lower <= seen) & (seen <= result.upper)
    return (
        result.entropy / truth.mean_entropy, low <= truth.mean_entropy <= high, float(inside.mean()),
        sum(result.lapses),
    )  # fmt: skip


if __name__ == "__main__":
    main()
