"""Appendix S4: error over the resolution of the grid, from 8 to 64 locations along a side."""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, simulation
from reproduction.paper.claims import Claim, format_interval, interval, is_near, judge
from reproduction.paper.costs import PaperFit
from reproduction.paper.estimators import ESTIMATORS, LABELS
from vseg.data.layout import Grid
from vseg.data.maps import Maps
from vseg.evaluation import metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "resolution"
TITLE = "Resolution"
WHERE = "Appendix S4, first figure"
SETTINGS = {"size": (8, 16, 32, 64)}
LARGEST = 64
SHOWN = (8, 16, 64)  # in the figure
SHARES = {8: 1.0, 16: 1.0, 32: 0.1, 64: 0.02}
BLOCKS = 10
GOOD, NOISE = 0.1, 0.25  # errors printed in the paper


def share(*, size: int) -> float:
    """Return the share of the resamples: a fit at 64 takes a hundred times as long as one at 8."""
    return SHARES[size]


@cache
def truth(size: int) -> Maps:
    """Return highly uncertain maps of a 64x64 grid, sampled at the centres of coarser cells."""
    fine = simulation.truth(size=LARGEST, amplitude=1.0, xi=16.0, min_area=0.15, seed=7)
    step = LARGEST // size
    return Maps(Grid(size), fine.image[step // 2 :: step, step // 2 :: step])


def trial(*, size: int, seed: int) -> list[dict[str, Any]]:
    """Run one resample; return the error of each estimator."""
    return [
        {
            "estimator": name,
            "mae": metrics.mae_per_entry(maps, truth(size)),
            "won": maps.segments_won,
        }
        for name, maps in _fit_all(size, seed).items()
    ]


def _fit_all(size: int, seed: int) -> dict[str, Maps]:
    tally = simulation.simulate_tally(truth(size), blocks=BLOCKS, seed=seed)
    return {name: fit(tally, 3, seed=seed) for name, fit in ESTIMATORS.items()}


def paper_fits(*, size: int, seed: int) -> list[PaperFit]:
    """Return the fits of Algorithm 1 in one resample, to estimate their time in PyTorch."""
    tally = simulation.simulate_tally(truth(size), blocks=BLOCKS, seed=seed)
    return [(tally, 3, 0.0), (tally, 3, 10.0)]


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """Return the true maps and the maps of each estimator in one resample, at each resolution."""
    images = {}
    for size in SHOWN:
        images[f"truth_{size}"] = truth(size).image
        for name, maps in _fit_all(size, seed).items():
            images[f"{name}_{size}"] = maps.align_to(truth(size)).image
    return images


def claims(table: "Table") -> list[Claim]:
    """Judge the paper's claims about this figure, in which an error of 10 % is MAE / K = 0.1."""
    sizes = sorted(set(table.column("size").tolist()))
    means = {
        name: {size: interval(table.column("mae", size=size, estimator=name)) for size in sizes}
        for name in ESTIMATORS
    }
    course = {
        name: " → ".join(f"{by_size[size][0]:.3f}" for size in by_size) for name, by_size in means.items()
    }
    rise = {name: by_size[sizes[-1]][0] - by_size[sizes[0]][0] for name, by_size in means.items()}
    return [
        judge(
            "With regularisation the maps are accurate at every resolution.",
            printed="< 10 %",
            paper=course["paper"] + f"; at most {format_interval(max(means['paper'].values()))}",
            ours=course["ours"] + f"; at most {format_interval(max(means['ours'].values()))}",
            holds=max(mean for mean, _, _ in means["paper"].values()) < GOOD,
            holds_if=max(mean for mean, _, _ in means["ours"].values()) < GOOD,
            condition="λ is chosen by cross-validation; with λ = 10 the error is above 10 % at some resolution",
            reason="the error is above 10 % at some resolution",
        ),
        judge(
            "Without regularisation only noise is recovered.",
            printed="about 25 %",
            paper=course["paper_plain"],
            ours=course["ours_plain"] + " at λ = 0 from a smooth start",
            holds=all(is_near(mean, NOISE) for mean, _, _ in means["paper_plain"].values()),
            reason="the error differs from the printed one",
        ),
        judge(
            "The error grows with resolution, more slowly with regularisation than without.",
            paper=f"from {sizes[0]} to {sizes[-1]}: {rise['paper']:+.3f} with, {rise['paper_plain']:+.3f} without",
            ours=f"{rise['ours']:+.3f} by default, {rise['ours_plain']:+.3f} at λ = 0",
            holds=0 < rise["paper"] < rise["paper_plain"],
            reason="once the fits have converged, the error with regularisation does not grow with resolution"
            if rise["paper"] <= 0
            else "with regularisation the error grows as fast as without, or faster",
        ),
    ]


def draw(table: "Table", example: dict[str, NDArray[np.float64]]) -> "Figure":
    """Draw the error over resolution, and maps at each resolution."""
    columns = {
        f"{size} x {size}": {
            "truth": drawing.maps_from_image(example[f"truth_{size}"]),
            **{LABELS[name]: drawing.maps_from_image(example[f"{name}_{size}"]) for name in ESTIMATORS},
        }
        for size in SHOWN
    }
    figure, [axes] = drawing.create_figure(columns, chart_width=3.1, side=0.52)
    drawing.draw_curves(axes, table, "mae", "size")
    drawing.set_log_ticks(axes, SETTINGS["size"])
    drawing.label_axes(axes, "locations along a side", "MAE / K")
    return figure
