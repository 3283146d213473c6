"""Whether maps without uncertainty are recovered perfectly."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, simulation
from reproduction.paper.claims import Claim, interval, judged, spoken
from reproduction.paper.costs import Fit
from reproduction.paper.estimators import ESTIMATORS, LABELS, Estimator, paper_continued
from vseg.data.maps import Maps
from vseg.evaluation import metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "deterministic"
TITLE = "Deterministic maps"
WHERE = "Figure 1, top"
SETTINGS = {"size": (16,)}
COMPARED: dict[str, Estimator] = {
    "paper_plain": ESTIMATORS["paper_plain"],
    "paper": ESTIMATORS["paper"],
    "paper_continued": paper_continued,
    "ours_plain": ESTIMATORS["ours_plain"],
    "ours": ESTIMATORS["ours"],
}
PERFECT = 0.99  # share of labels that are right: the pairs may leave a location or two open
NAMES = {**LABELS, "paper_continued": "paper, λ → 0"}


def truth(size: int) -> Maps:
    """One-hot maps of three segments; the paper does not print N."""
    return simulation.truth(size=size, amplitude=float("inf"), xi=size / 5, min_area=0.15, seed=1)


def trial(*, size: int, seed: int) -> list[dict[str, Any]]:
    """One resample: one block of KN² pairs."""
    true = truth(size)
    tally = simulation.answered(true, blocks=1, seed=seed)
    return [{"estimator": name, **_scores(fit(tally, 3, seed=seed), true)} for name, fit in COMPARED.items()]


def _scores(maps: Maps, true: Maps) -> dict[str, float]:
    accuracy = metrics.label_accuracy(maps, true)
    return {"accuracy": accuracy, "perfect": float(accuracy == 1), "mae": metrics.mae(maps, true)}


def papers_fits(*, size: int, seed: int) -> list[Fit]:
    """The fits of Algorithm 1 in one resample, for what they would cost in PyTorch."""
    tally = simulation.answered(truth(size), blocks=1, seed=seed)
    return [(tally, 3, 0.0), (tally, 3, 10.0)]


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """The truth and what each estimator makes of one resample."""
    true = truth(16)
    tally = simulation.answered(true, blocks=1, seed=seed)
    found = {name: fit(tally, 3, seed=seed).align_to(true).image for name, fit in COMPARED.items()}
    return {"truth": true.image, **found}


def claims(table: "Table") -> list[Claim]:
    """What the paper says about this figure."""
    perfect = {name: interval(table.column("perfect", estimator=name)) for name in COMPARED}
    accuracy = {name: interval(table.column("accuracy", estimator=name)) for name in COMPARED}
    return [
        judged(
            "Without uncertainty, segmentation maps are reconstructed perfectly.",
            printed="perfect",
            paper=f"λ = 0: {perfect['paper_plain'][0]:.1%} of resamples perfect, {spoken(accuracy['paper_plain'])} of "
            f"the labels right; λ = 10: {spoken(accuracy['paper'])}",
            ours=f"{perfect['ours'][0]:.1%} perfect by default, {perfect['ours_plain'][0]:.1%} at λ = 0; "
            f"{spoken(accuracy['ours'])} of the labels right",
            holds=accuracy["paper_plain"][0] >= PERFECT,
            holds_if=accuracy["paper_continued"][0] >= PERFECT,
            condition=f"λ is lowered to 0 in steps (10, 1, 0.1, 0), each fit starting from the one before: then "
            f"{spoken(accuracy['paper_continued'])} of the labels are right (perfect: more than {PERFECT:.0%}), and "
            f"{perfect['paper_continued'][0]:.1%} of resamples have not one wrong. A random start at λ = 0 ends in a "
            "local minimum.",
            reason="fits end in local minima",
        )
    ]


def draw(table: "Table", example: dict[str, NDArray[np.float64]]) -> "Figure":
    """The share of labels that are right, resample by resample, and the maps of one resample."""
    rows = {NAMES[name]: drawing.as_maps(example[name]) for name in COMPARED}
    shown = {"one resample": {"truth": drawing.as_maps(example["truth"]), **rows}}
    figure, [axes] = drawing.chart_and_maps(shown, margin=1.0, key_lines=1)
    drawing.spread(axes, table, "accuracy", "share of labels right", {name: NAMES[name] for name in COMPARED})
    return figure
