"""A posterior: its maps, and below them what is not known about them."""

from math import ceil

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from vseg.bayesian import Posterior
from vseg.figures import style
from vseg.figures.style import GAP, LINE, MARGIN, MEDIUM, SMALL, axes_at, letter, picture, title, write

SIDE, MOST_ACROSS = 1.15, 6  # inches of a panel, and how many stand next to each other
LEFT, STEP = 0.4, SIDE + GAP + LINE
BINS = 16


def intervals(posterior: Posterior) -> Figure:
    """Above, the posterior median, its segmentation and its entropy; below, how sure each of them is.

    Under each probability map stands the width of its intervals, black where it is known and white where anything is
    possible; under the segmentation, the probability that its segment is the right one; under the entropy map, the mean
    entropy of all draws.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(6), segments=2, entropy=0.2, seed=0)
    >>> pairs = vseg.designs.covering(truth.layout, segments=2, seed=1)
    >>> result = vseg.posterior(vseg.simulate(truth, pairs, blocks=3, seed=2), segments=2, seed=3)
    >>> [axes.get_title() for axes in intervals(result).axes[::2]]
    ['A', 'B', 'segmentation', 'entropy']
    """
    maps, layout, K = posterior.maps, posterior.maps.layout, posterior.segments
    across = min(K + 2, MOST_ACROSS)
    lines = ceil((K + 2) / across)
    figure = style.sheet(LEFT + across * (SIDE + GAP) + MARGIN, MARGIN + lines * 2 * STEP + LINE)
    for row in range(2 * lines):
        name = "uncertainty" if row % 2 else "median"
        write(figure, LEFT / 2, MARGIN + LINE + row * STEP + SIDE / 2, name, size=MEDIUM, rotation=90)

    def place(column: int, row: int) -> tuple[float, float]:
        line, at = divmod(column, across)
        return LEFT + at * (SIDE + GAP), MARGIN + LINE + (2 * line + row) * STEP

    def panel(column: int, row: int, values: NDArray[np.float64], head: str, highest: float = 1.0) -> None:
        axes = axes_at(figure, *place(column, row), SIDE, SIDE)
        picture(axes, values, highest=highest)
        title(axes, head, SMALL)

    widths = posterior.upper - posterior.lower
    for segment in range(K):
        raster = style.raster(layout, maps.probabilities[:, segment])
        panel(segment, 0, style.shaded(raster, segment), letter(segment))
        head = f"{letter(segment)}: {widths[:, segment].mean():.2f} wide"
        panel(segment, 1, style.raster(layout, widths[:, segment]), head)
    wrong = 1 - posterior.argmax_probability[np.arange(len(layout)), maps.labels]
    panel(K, 0, style.painted(style.raster(layout, maps.labels)), "segmentation")
    panel(K, 1, style.raster(layout, wrong), f"wrong: {wrong.mean():.0%}")
    panel(K + 1, 0, style.raster(layout, maps.entropy), "entropy", style.highest_entropy(K))
    _draw_entropies(figure, posterior, *place(K + 1, 1))
    said = "wide: 90 % intervals, on average. Black: known, white: anything is possible."
    write(figure, LEFT + 1.5 * (SIDE + GAP), MARGIN + lines * 2 * STEP + 0.12, said, size=SMALL - 1)
    return figure


def _draw_entropies(figure: Figure, posterior: Posterior, left: float, top: float) -> None:
    axes = axes_at(figure, left + 0.06, top + 0.05, SIDE - 0.12, SIDE - 0.35)
    axes.hist(posterior.entropies, BINS, color="#9A9A9A")
    low, high = posterior.entropy_interval
    for at, line in ((posterior.entropy, "-"), (low, ":"), (high, ":")):
        axes.axvline(at, color=style.INK, linewidth=1, linestyle=line)
    axes.set_yticks([])
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.tick_params(labelsize=SMALL - 1, length=2, width=0.5, pad=2, colors=style.INK)
    axes.set_xlabel("mean entropy (nats)", fontsize=SMALL - 1, labelpad=2, color=style.INK)
    title(axes, f"{low:.2f} to {high:.2f}", SMALL)
