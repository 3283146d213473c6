"""Appendix S3: can nine segments be recovered from one repetition of the smallest number of pairs?"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, simulation
from reproduction.paper.claims import Claim, describe_run, format_interval, interval, judge
from reproduction.paper.costs import PaperFit
from reproduction.paper.estimators import ESTIMATORS, FAST, LABELS, SLOW, stable_learning_rate
from vseg.data.maps import Maps
from vseg.evaluation import metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "many_segments"
TITLE = "Nine segments"
WHERE = "Appendix S3, first figure"
SETTINGS = {"segments": (9,), "fits": (FAST, SLOW)}
PARTS = {FAST: ("ours_plain",), SLOW: ("paper_plain", "paper", "ours")}
ACCURATE = 0.9
SIZE, AMPLITUDE, XI = 25, 12.0, 4.0
RUN = describe_run(
    size=SIZE, segments=9, pairs="(K-1)N²", blocks=1, amplitude=AMPLITUDE, xi=XI, strength="0 and 10",
    rate=f"{stable_learning_rate(0.0)} and {stable_learning_rate(10.0)}",
)  # fmt: skip


def truth(segments: int) -> Maps:
    """Return nearly certain maps on a 25x25 grid."""
    return simulation.truth(size=SIZE, segments=segments, amplitude=AMPLITUDE, xi=XI, min_area=0.05, seed=6)


def share(*, segments: int, fits: str) -> float:
    """Return the share of the resamples: slow fits take 0.1 to 2 s, and the paper shows a single one."""
    return 1.0 if fits == FAST else 0.03


def trial(*, segments: int, fits: str, seed: int) -> list[dict[str, Any]]:
    """Run one resample with (K-1)N² pairs and one trial each; return the accuracy and error of each estimator."""
    true = truth(segments)
    return [
        {"estimator": name, "accuracy": metrics.label_accuracy(maps, true), "mae": metrics.mae(maps, true)}
        for name, maps in _fit_all(segments, seed, PARTS[fits]).items()
    ]


def _fit_all(segments: int, seed: int, names: Iterable[str] = tuple(ESTIMATORS)) -> dict[str, Maps]:
    true = truth(segments)
    tally = simulation.simulate_tally(true, blocks=1, pairs=(segments - 1) * len(true.layout), seed=seed)
    return {name: ESTIMATORS[name](tally, segments, seed=seed) for name in names}


def paper_fits(*, segments: int, fits: str, seed: int) -> list[PaperFit]:
    """Return the fits of Algorithm 1 in one resample, to estimate their time in PyTorch."""
    if fits == FAST:
        return []
    true = truth(segments)
    tally = simulation.simulate_tally(true, blocks=1, pairs=(segments - 1) * len(true.layout), seed=seed)
    return [(tally, segments, 0.0), (tally, segments, 10.0)]


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """Return the true maps and the maps of each estimator in one resample."""
    true = truth(9)
    return {
        "truth": true.image,
        **{name: maps.align_to(true).image for name, maps in _fit_all(9, seed).items()},
    }


def claims(table: "Table") -> list[Claim]:
    """Judge the paper's claims about this figure."""
    right = {name: interval(table.column("accuracy", estimator=name)) for name in ESTIMATORS}
    return [
        judge(
            "Nine segments are recovered accurately from one repetition of (K-1)N² pairs, with regularisation.",
            paper=f"{format_interval(right['paper'])} of the labels right",
            ours=format_interval(right["ours"]),
            holds=right["paper"][0] > ACCURATE,
            reason=f"fewer than {ACCURATE:.0%} of the labels are right",
            settings=RUN,
        ),
        judge(
            "Without regularisation they are not.",
            paper=f"{format_interval(right['paper_plain'])} of the labels right",
            ours=f"{format_interval(right['ours_plain'])} at λ = 0 from a smooth start",
            holds=right["paper_plain"][0] < ACCURATE,
            reason=f"more than {ACCURATE:.0%} of the labels are right",
            settings=RUN,
            remark="From a smooth start more labels are right: random starts end in local minima."
            if right["ours_plain"][0] > right["paper_plain"][0] + 0.1
            else "",
        ),
    ]


def draw(table: "Table", example: dict[str, NDArray[np.float64]]) -> "Figure":
    """Draw the maps of one resample, and the share of correct labels over all resamples."""
    rows = {"truth": drawing.maps_from_image(example["truth"])}
    rows |= {LABELS[name]: drawing.maps_from_image(example[name]) for name in ESTIMATORS}
    figure, [axes] = drawing.create_figure({"one resample": rows}, chart_width=2.9, margin=1.0, key_lines=1)
    drawing.draw_spread(axes, table, "accuracy", "share of labels right", LABELS)
    axes.set_xlim(0, 1.03)
    return figure
