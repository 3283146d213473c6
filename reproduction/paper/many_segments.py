"""Appendix S3: can nine segments be recovered from one repetition of the smallest number of pairs?"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, simulation
from reproduction.paper.claims import Claim, format_interval, interval, judge
from reproduction.paper.costs import PaperFit
from reproduction.paper.estimators import ESTIMATORS, LABELS
from vseg.data.maps import Maps
from vseg.evaluation import metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "many_segments"
TITLE = "Nine segments"
WHERE = "Appendix S3, first figure"
SETTINGS = {"segments": (9,)}
SHARE = 0.03  # of the resamples; a fit takes seconds, and the paper shows a single one
ACCURATE = 0.9


def truth(segments: int) -> Maps:
    """Return nearly certain maps on a 25x25 grid."""
    return simulation.truth(size=25, segments=segments, amplitude=12.0, xi=4.0, min_area=0.05, seed=6)


def trial(*, segments: int, seed: int) -> list[dict[str, Any]]:
    """Run one resample with (K-1)N² pairs and one trial each; return the accuracy and error of each estimator."""
    true = truth(segments)
    return [
        {"estimator": name, "accuracy": metrics.label_accuracy(maps, true), "mae": metrics.mae(maps, true)}
        for name, maps in _fit_all(segments, seed).items()
    ]


def _fit_all(segments: int, seed: int) -> dict[str, Maps]:
    true = truth(segments)
    tally = simulation.simulate_tally(true, blocks=1, pairs=(segments - 1) * len(true.layout), seed=seed)
    return {name: fit(tally, segments, seed=seed) for name, fit in ESTIMATORS.items()}


def paper_fits(*, segments: int, seed: int) -> list[PaperFit]:
    """Return the fits of Algorithm 1 in one resample, to estimate their time in PyTorch."""
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
        ),
        judge(
            "Without regularisation they are not.",
            paper=f"{format_interval(right['paper_plain'])} of the labels right",
            ours=f"{format_interval(right['ours_plain'])} at λ = 0 from a smooth start",
            holds=right["paper_plain"][0] < ACCURATE,
            reason=f"more than {ACCURATE:.0%} of the labels are right",
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
