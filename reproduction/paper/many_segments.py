"""Whether nine segments can be told apart from one repetition of the fewest pairs."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, simulation
from reproduction.paper.claims import Claim, interval, judged, spoken
from reproduction.paper.costs import Fit
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
SHARE = 0.03  # of the resamples: a fit takes seconds here, and the paper shows a single one
ACCURATE = 0.9


def truth(segments: int) -> Maps:
    """Nearly certain maps on a 25x25 grid."""
    return simulation.truth(size=25, segments=segments, amplitude=12.0, xi=4.0, min_area=0.05, seed=6)


def trial(*, segments: int, seed: int) -> list[dict[str, Any]]:
    """One resample: (K-1)N² pairs, each asked once."""
    true = truth(segments)
    found = _fitted(segments, seed)
    return [
        {"estimator": name, "accuracy": metrics.label_accuracy(maps, true), "mae": metrics.mae(maps, true)}
        for name, maps in found.items()
    ]


def _fitted(segments: int, seed: int) -> dict[str, Maps]:
    true = truth(segments)
    tally = simulation.answered(true, blocks=1, pairs=(segments - 1) * len(true.layout), seed=seed)
    return {name: fit(tally, segments, seed=seed) for name, fit in ESTIMATORS.items()}


def papers_fits(*, segments: int, seed: int) -> list[Fit]:
    """The fits of Algorithm 1 in one resample, for what they would cost in PyTorch."""
    true = truth(segments)
    tally = simulation.answered(true, blocks=1, pairs=(segments - 1) * len(true.layout), seed=seed)
    return [(tally, segments, 0.0), (tally, segments, 10.0)]


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """The truth and what each estimator makes of one resample."""
    true = truth(9)
    return {
        "truth": true.image,
        **{name: maps.align_to(true).image for name, maps in _fitted(9, seed).items()},
    }


def claims(table: "Table") -> list[Claim]:
    """What the paper says about this figure."""
    right = {name: interval(table.column("accuracy", estimator=name)) for name in ESTIMATORS}
    return [
        judged(
            "Nine segments are recovered accurately from one repetition of (K-1)N² pairs, with regularisation.",
            paper=f"{spoken(right['paper'])} of the labels right",
            ours=spoken(right["ours"]),
            holds=right["paper"][0] > ACCURATE,
            reason=f"fewer than {ACCURATE:.0%} of the labels are right",
        ),
        judged(
            "Without regularisation they are not.",
            paper=f"{spoken(right['paper_plain'])} of the labels right",
            ours=f"{spoken(right['ours_plain'])} at λ = 0 from a smooth start",
            holds=right["paper_plain"][0] < ACCURATE,
            reason=f"more than {ACCURATE:.0%} of the labels are right",
            remark="The answers hold more than random starts find."
            if right["ours_plain"][0] > right["paper_plain"][0] + 0.1
            else "",
        ),
    ]


def draw(table: "Table", example: dict[str, NDArray[np.float64]]) -> "Figure":
    """The maps of one resample, and the share of labels that are right over all."""
    rows = {"truth": drawing.as_maps(example["truth"])}
    rows |= {LABELS[name]: drawing.as_maps(example[name]) for name in ESTIMATORS}
    figure, [axes] = drawing.chart_and_maps({"one resample": rows}, chart_width=2.9, margin=1.0, key_lines=1)
    drawing.spread(axes, table, "accuracy", "share of labels right", LABELS)
    axes.set_xlim(0, 1.03)
    return figure
