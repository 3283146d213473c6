"""Whether a wider kernel makes up for the error that a finer grid brings."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, simulation
from reproduction.paper.claims import Claim, interval, judged, ratio_interval, spoken
from reproduction.paper.costs import Fit
from reproduction.paper.estimators import COLOURS, ours, paper
from reproduction.paper.resolution import truth
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.evaluation import metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "kernels"
TITLE = "Wider kernels"
WHERE = "Appendix S4, second figure"
NARROW, WIDER = "four", "gaussian:2"  # at 32 as wide, in the image, as one cell at 16
KERNELS = (NARROW, "eight", "gaussian:1", "gaussian:2")
SETTINGS = {"size": (16, 32)}
SHARES = {16: 0.1, 32: 0.02}
LEAST = 3  # resamples, however few are asked for
BLOCKS = 10
FIT = {"paper": paper, "ours": ours}
SAID = {"paper": "paper, λ = 10", "ours": "vseg, λ chosen"}
NAMES = {NARROW: "4 neighbours", "gaussian:1": "width 1", "gaussian:2": "width 2", "eight": "8 neighbours"}


def share(*, size: int) -> float:
    """Of the resamples that others get: wide kernels make slow fits, and the paper shows a single one."""
    return SHARES[size]


def trial(*, size: int, seed: int) -> list[dict[str, Any]]:
    """One resample: the error with each kernel, by the paper's algorithm and by ours with λ chosen."""
    tally = simulation.answered(truth(size), blocks=BLOCKS, seed=seed)
    return [
        {"kernel": kernel, "estimator": name, "mae": metrics.mae_per_entry(maps, truth(size))}
        for kernel in KERNELS
        for name, maps in _fitted(tally, kernel, seed).items()
    ]


def _fitted(tally: Tally, kernel: str, seed: int) -> dict[str, Maps]:
    return {name: fit(tally, 3, seed=seed, kernel=kernel) for name, fit in FIT.items()}


def papers_fits(*, size: int, seed: int) -> list[Fit]:
    """The fits of Algorithm 1 in one resample, for what they would cost in PyTorch at least: with four neighbours."""
    tally = simulation.answered(truth(size), blocks=BLOCKS, seed=seed)
    return [(tally, 3, 10.0)] * len(KERNELS)


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """One resample at 32 with each kernel."""
    true = truth(32)
    tally = simulation.answered(true, blocks=BLOCKS, seed=seed)
    found = {"truth": true.image}
    for kernel in KERNELS:
        for name, maps in _fitted(tally, kernel, seed).items():
            found[f"{name}_{kernel}"] = maps.align_to(true).image
    return found


def claims(table: "Table") -> list[Claim]:
    """What the paper says about this figure; it does not print the width of its kernel."""
    means = {name: {kernel: interval(_column(table, name, 32, kernel)) for kernel in KERNELS} for name in FIT}
    said = {
        name: ", ".join(f"{NAMES[kernel]} {spoken(mean)}" for kernel, mean in own.items())
        for name, own in means.items()
    }
    gain = {
        name: ratio_interval(_column(table, name, 32, NARROW), _column(table, name, 32, WIDER))
        for name in FIT
    }
    return [
        judged(
            "At high resolution a wider kernel lowers the error.",
            paper=f"at 32: {said['paper']}; {NAMES[WIDER]} is {spoken(gain['paper'], 2)} times better than four "
            "neighbours",
            ours=f"{said['ours']}; {spoken(gain['ours'], 2)} times",
            holds=gain["paper"][1] > 1,
            holds_if=gain["ours"][1] > 1,
            condition="λ is chosen anew for the kernel, by held-out pairs: λ = 10 with a wide kernel smooths too much",
            reason="no gain is beyond the spread of these resamples",
        )
    ]


def _column(table: "Table", name: str, size: int, kernel: str) -> NDArray[np.float64]:
    return table.column("mae", estimator=name, size=size, kernel=kernel)


def draw(table: "Table", example: dict[str, NDArray[np.float64]]) -> "Figure":
    """The error with each kernel, and the maps of one resample."""
    true = drawing.as_maps(example["truth"])
    shown = {
        SAID[name]: {
            "truth": true,
            **{NAMES[kernel]: drawing.as_maps(example[f"{name}_{kernel}"]) for kernel in KERNELS},
        }
        for name in FIT
    }
    figure, [axes] = drawing.chart_and_maps(shown, key_lines=4)
    for size, dashes in ((16, "--"), (32, "-")):
        means = table.where(size=size).mean_interval("mae", by=["kernel", "estimator"], seed=0)
        for name in FIT:
            own = means.where(estimator=name)
            x = np.arange(len(KERNELS)) + 0.04 * (name == "ours") + 0.02 * (size == 32)
            mean, low, high = (own.column(each) for each in ("mean", "low", "high"))
            axes.fill_between(x, low, high, color=COLOURS[name], alpha=0.2, linewidth=0)
            label = f"{SAID[name]}, N = {size}"
            axes.plot(x, mean, color=COLOURS[name], linestyle=dashes, marker="o", markersize=4, label=label)
    axes.set_xticks(range(len(KERNELS)), ["four", "eight", "1", "2"])
    drawing.finished(axes, "neighbours, or Gaussian of this width (cells)", "MAE / K", columns=1)
    return figure
