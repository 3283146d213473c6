"""Figure 4: error over the number of blocks, with and without regularisation."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, simulation
from reproduction.paper.claims import (
    ARITHMETIC,
    TOLERANCE_FACTOR,
    Claim,
    describe_run,
    format_interval,
    interval,
    is_near,
    judge,
    ratio_interval,
)
from reproduction.paper.costs import PaperFit
from reproduction.paper.estimators import ESTIMATORS, LABELS, stable_learning_rate
from vseg.data.maps import Maps
from vseg.evaluation import metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "blocks"
TITLE = "Error over the number of blocks"
WHERE = "Figure 4"
SETTINGS = {"blocks": (1, 2, 4, 10, 16, 32, 64, 128)}
FEW, MANY = 1, 128
LEVEL = 10  # blocks after which the error levels off according to the paper
TRIAL_S, BLOCK_MIN = 1.33, 5.0  # median duration of a trial, and duration of a block, as printed
SIZE, AMPLITUDE, XI = 12, 6.0, 2.0
RUN = describe_run(
    size=SIZE, segments=3, pairs="KN²", blocks="1 to 128", amplitude=AMPLITUDE, xi=XI, strength="0 and 10",
    rate=f"{stable_learning_rate(0.0)} and {stable_learning_rate(10.0)}",
)  # fmt: skip


def truth() -> Maps:
    """Return maps of moderate uncertainty; the paper prints K = 3, but neither N nor σ nor ξ."""
    return simulation.truth(size=SIZE, amplitude=AMPLITUDE, xi=XI)


def trial(*, blocks: int, seed: int) -> list[dict[str, Any]]:
    """Run one resample; return the error of each estimator."""
    tally = simulation.simulate_tally(truth(), blocks=blocks, seed=seed)
    return [{"estimator": name, **_scores(fit(tally, 3, seed=seed))} for name, fit in ESTIMATORS.items()]


def _scores(maps: Maps) -> dict[str, float]:
    return {"mae": metrics.mae(maps, truth()), "accuracy": metrics.label_accuracy(maps, truth())}


def paper_fits(*, blocks: int, seed: int) -> list[PaperFit]:
    """Return the fits of Algorithm 1 in one resample, to estimate their time in PyTorch."""
    tally = simulation.simulate_tally(truth(), blocks=blocks, seed=seed)
    return [(tally, 3, 0.0), (tally, 3, 10.0)]


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """Return the true maps and the maps of each estimator from 1 and from 128 blocks."""
    images = {"truth": truth().image}
    for blocks in (FEW, MANY):
        tally = simulation.simulate_tally(truth(), blocks=blocks, seed=seed)
        for name, fit in ESTIMATORS.items():
            images[f"{name}_{blocks}"] = fit(tally, 3, seed=seed).align_to(truth()).image
    return images


def claims(table: "Table") -> list[Claim]:
    """Judge the paper's claims about this figure."""
    return [
        _judge_improvement(table),
        _judge_rate(table),
        _judge_levelling(table),
        _judge_one_block(table),
        _judge_variability(table),
        _judge_block_duration(),
    ]


def _judge_improvement(table: "Table") -> Claim:
    ratios = {blocks: _ratio(table, blocks, "paper_plain", "paper") for blocks in SETTINGS["blocks"]}
    warm = [_ratio(table, blocks, "ours_plain", "paper") for blocks in SETTINGS["blocks"]]
    ends = [ratios[FEW], ratios[MANY]]
    return judge(
        "Regularised maps (λ = 10) are two to three times better, whatever the number of blocks.",
        printed="2 to 3 times",
        paper=f"{format_interval(ends[0], 1)} times at {FEW} block, {format_interval(ends[1], 1)} at {MANY}",
        ours=f"the same loss without λ, from a smooth start: {format_interval(warm[0], 1)} times at {FEW} block, "
        f"{format_interval(warm[-1], 1)} at {MANY}",
        holds=all(is_near(mean, 2, 3) for mean, _, _ in ratios.values()),
        reason="the gap differs from the printed one at some number of blocks",
        remark=f"Within a factor of {TOLERANCE_FACTOR:g} of the printed range. "
        f"{_describe_crossover(ratios, warm)}".strip(),
        settings=RUN,
    )


def _judge_rate(table: "Table") -> Claim:
    slopes = {name: _slope(table, name) for name in ESTIMATORS}
    before = {name: _slope(table, name, last=LEVEL) for name in ("paper", "paper_plain")}
    return judge(
        "The error falls with the number of blocks at approximately the same rate with and without regularisation.",
        paper=f"exponent of N_b: {slopes['paper']:.2f} with, {slopes['paper_plain']:.2f} without; up to {LEVEL} blocks "
        f"{before['paper']:.2f} and {before['paper_plain']:.2f}",
        ours=f"{slopes['ours']:.2f} by default, {slopes['ours_plain']:.2f} at λ = 0 from a smooth start",
        holds=is_near(slopes["paper"], slopes["paper_plain"], slopes["paper_plain"])
        if slopes["paper_plain"] > 0
        else False,
        holds_if=before["paper_plain"] > 0 and is_near(before["paper"], before["paper_plain"]),
        condition=f"only 1 to {LEVEL} blocks count",
        reason=f"the rates differ by more than a factor of {TOLERANCE_FACTOR:g}, over all blocks and up to {LEVEL}",
        settings=RUN,
    )


def _slope(table: "Table", name: str, last: int = MANY) -> float:
    """Return the rate of the fall: minus the slope of the log error over the log number of blocks."""
    blocks = [number for number in SETTINGS["blocks"] if number <= last]
    errors = [_column(table, "mae", number, name).mean() for number in blocks]
    return -float(np.polyfit(np.log(blocks), np.log(errors), 1)[0])


def _describe_crossover(blocks: Iterable[int], ratios: Iterable[tuple[float, float, float]]) -> str:
    """Say from how many blocks on λ = 0, from a smooth start, is better than λ = 10; empty if it never is."""
    for number, (_, _, high) in zip(blocks, ratios, strict=True):
        if high < 1:
            return (
                "Most of the gap is due to local minima of random starts: from a smooth start, λ = 0 beats λ = 10 from "
                f"{number} blocks on."
            )
    return ""


def _judge_levelling(table: "Table") -> Claim:
    share, own = _gain_share(table, "paper"), _gain_share(table, "ours")
    further = ratio_interval(_column(table, "mae", LEVEL, "ours"), _column(table, "mae", MANY, "ours"))
    return judge(
        f"With regularisation the gain levels off after {LEVEL} blocks.",
        paper=f"{share:.0%} of the fall from {FEW} to {MANY} blocks is reached at {LEVEL}; then the error stays at "
        f"{format_interval(interval(_column(table, 'mae', MANY, 'paper')))}",
        ours=f"{own:.0%}; at {MANY} the error is {format_interval(interval(_column(table, 'mae', MANY, 'ours')))}",
        holds=share > 2 / 3,
        reason="less than two thirds of the gain is reached at that point",
        remark=""
        if further[1] <= 1
        else "The levelling is due to λ = 10, not to the answers: with λ chosen by cross-validation, the error "
        f"at {LEVEL} blocks is {format_interval(further, 1)} times that at {MANY}.",
        settings=RUN,
    )


def _judge_one_block(table: "Table") -> Claim:
    right, own = (interval(_column(table, "accuracy", FEW, name)) for name in ("paper", "ours"))
    return judge(
        "With regularisation one block is enough for a nearly perfect segmentation (by eye).",
        paper=f"{format_interval(right)} of the labels right",
        ours=format_interval(own),
        holds=right[0] > 0.9,
        reason="fewer than 90 % of the labels are right",
        settings=RUN,
    )


def _judge_variability(table: "Table") -> Claim:
    spread = {name: _mean_sd(table, name) for name in ESTIMATORS}
    return judge(
        "Regularised maps vary more from resample to resample than unregularised ones.",
        paper=f"standard deviation of the error {spread['paper']:.3f} with, {spread['paper_plain']:.3f} without",
        ours=f"{spread['ours']:.3f} by default, {spread['ours_plain']:.3f} without",
        holds=spread["paper"] > spread["paper_plain"],
        reason="unregularised fits end in a different local minimum at each start, which adds to their spread",
        settings=RUN,
    )


def _judge_block_duration() -> Claim:
    """Judge a statement that follows from two numbers printed in the paper."""
    size, segments = 10, 4
    trials = {"KN²": segments * size**2, "(K-1)N²": (segments - 1) * size**2}
    minutes = {name: count * TRIAL_S / 60 for name, count in trials.items()}
    return judge(
        f"With N = {size} and K = {segments} a block lasts approximately {BLOCK_MIN:g} minutes.",
        printed=f"{BLOCK_MIN:g} minutes a block; {TRIAL_S} s a trial",
        paper="; ".join(f"{trials[name]} trials ({name}): {minutes[name]:.1f} minutes" for name in trials),
        ours="the same arithmetic: `vseg plan` and the study file's cost give the duration from the trials",
        holds=is_near(minutes["KN²"], BLOCK_MIN),
        holds_if=is_near(minutes["(K-1)N²"], BLOCK_MIN),
        condition=f"a block has the smallest number of pairs, (K-1)N²; with the advised KN² pairs it lasts "
        f"{minutes['KN²'] / BLOCK_MIN:.1f} times as long",
        reason=f"a block lasts more than {TOLERANCE_FACTOR:g} times as long",
        settings=ARITHMETIC,
    )


def _gain_share(table: "Table", name: str) -> float:
    first, then, last = (_column(table, "mae", blocks, name).mean() for blocks in (FEW, LEVEL, MANY))
    return float((first - then) / (first - last))


def _mean_sd(table: "Table", name: str) -> float:
    return float(np.mean([_column(table, "mae", blocks, name).std() for blocks in SETTINGS["blocks"]]))


def _ratio(table: "Table", blocks: int, above: str, below: str) -> tuple[float, float, float]:
    return ratio_interval(_column(table, "mae", blocks, above), _column(table, "mae", blocks, below))


def _column(table: "Table", value: str, blocks: int, estimator: str) -> NDArray[np.float64]:
    return table.column(value, blocks=blocks, estimator=estimator)


def draw(table: "Table", example: dict[str, NDArray[np.float64]]) -> "Figure":
    """Draw the error over blocks, and maps from the smallest and the largest number of blocks."""
    columns = {
        f"{blocks} {'block' if blocks == 1 else 'blocks'}": {
            "truth": drawing.maps_from_image(example["truth"]),
            **{LABELS[name]: drawing.maps_from_image(example[f"{name}_{blocks}"]) for name in ESTIMATORS},
        }
        for blocks in (FEW, MANY)
    }
    figure, [axes] = drawing.create_figure(columns)
    drawing.draw_curves(axes, table, "mae", "blocks")
    drawing.set_log_ticks(axes, SETTINGS["blocks"])
    drawing.label_axes(axes, "number of blocks", "MAE (L1 per location)")
    return figure
