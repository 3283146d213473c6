"""Figure 1: are maps without uncertainty recovered perfectly?"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, simulation
from reproduction.paper.claims import Claim, format_interval, interval, judge
from reproduction.paper.costs import PaperFit
from reproduction.paper.estimators import ESTIMATORS, LABELS, Estimator, fit_paper_continued
from vseg.data.maps import Maps
from vseg.evaluation import metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "deterministic"
TITLE = "Deterministic maps"
WHERE = "Figure 1, top"
SETTINGS = {"size": (16,)}
ESTIMATORS_COMPARED: dict[str, Estimator] = {
    "paper_plain": ESTIMATORS["paper_plain"],
    "paper": ESTIMATORS["paper"],
    "paper_continued": fit_paper_continued,
    "ours_plain": ESTIMATORS["ours_plain"],
    "ours": ESTIMATORS["ours"],
}
PERFECT = 0.99  # share of correct labels; the pairs may not determine one or two locations
NAMES = {**LABELS, "paper_continued": "paper, λ → 0"}


def truth(size: int) -> Maps:
    """Return one-hot maps of three segments; the paper does not print N."""
    return simulation.truth(size=size, amplitude=float("inf"), xi=size / 5, min_area=0.15, seed=1)


def trial(*, size: int, seed: int) -> list[dict[str, Any]]:
    """Run one resample with one block of KN² pairs; return the scores of each estimator."""
    true = truth(size)
    tally = simulation.simulate_tally(true, blocks=1, seed=seed)
    return [
        {"estimator": name, **_scores(fit(tally, 3, seed=seed), true)}
        for name, fit in ESTIMATORS_COMPARED.items()
    ]


def _scores(maps: Maps, true: Maps) -> dict[str, float]:
    accuracy = metrics.label_accuracy(maps, true)
    return {"accuracy": accuracy, "perfect": float(accuracy == 1), "mae": metrics.mae(maps, true)}


def paper_fits(*, size: int, seed: int) -> list[PaperFit]:
    """Return the fits of Algorithm 1 in one resample, to estimate their time in PyTorch."""
    tally = simulation.simulate_tally(truth(size), blocks=1, seed=seed)
    return [(tally, 3, 0.0), (tally, 3, 10.0)]


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """Return the true maps and the maps of each estimator in one resample."""
    true = truth(16)
    tally = simulation.simulate_tally(true, blocks=1, seed=seed)
    images = {
        name: fit(tally, 3, seed=seed).align_to(true).image for name, fit in ESTIMATORS_COMPARED.items()
    }
    return {"truth": true.image, **images}


def claims(table: "Table") -> list[Claim]:
    """Judge the paper's claims about this figure."""
    perfect = {name: interval(table.column("perfect", estimator=name)) for name in ESTIMATORS_COMPARED}
    accuracy = {name: interval(table.column("accuracy", estimator=name)) for name in ESTIMATORS_COMPARED}
    return [
        judge(
            "Without uncertainty, segmentation maps are reconstructed perfectly.",
            printed="perfect",
            paper=f"λ = 0: {perfect['paper_plain'][0]:.1%} of resamples perfect, "
            f"{format_interval(accuracy['paper_plain'])} of "
            f"the labels right; λ = 10: {format_interval(accuracy['paper'])}",
            ours=f"{perfect['ours'][0]:.1%} perfect by default, {perfect['ours_plain'][0]:.1%} at λ = 0; "
            f"{format_interval(accuracy['ours'])} of the labels right",
            holds=accuracy["paper_plain"][0] >= PERFECT,
            holds_if=accuracy["paper_continued"][0] >= PERFECT,
            condition=f"λ is lowered to 0 in steps (10, 1, 0.1, 0), each fit starting from the previous one: then "
            f"{format_interval(accuracy['paper_continued'])} of the labels are right (perfect: more than "
            f"{PERFECT:.0%}), and "
            f"{perfect['paper_continued'][0]:.1%} of resamples have no wrong label. A random start at λ = 0 ends in a "
            "local minimum.",
            reason="fits end in local minima",
        )
    ]


def draw(table: "Table", example: dict[str, NDArray[np.float64]]) -> "Figure":
    """Draw the share of correct labels in each resample, and the maps of one resample."""
    rows = {NAMES[name]: drawing.maps_from_image(example[name]) for name in ESTIMATORS_COMPARED}
    columns = {"one resample": {"truth": drawing.maps_from_image(example["truth"]), **rows}}
    figure, [axes] = drawing.create_figure(columns, margin=1.0, key_lines=1)
    drawing.draw_spread(
        axes, table, "accuracy", "share of labels right", {name: NAMES[name] for name in ESTIMATORS_COMPARED}
    )
    return figure
