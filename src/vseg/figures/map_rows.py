"""The paper's figure: one row of probability maps, segmentation and entropy for each Maps."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from vseg.figures import style
from vseg.figures.style import (
    GAP,
    LINE,
    MARGIN,
    MEDIUM,
    SMALL,
    Drawable,
    MapsWithEntropy,
    add_axes,
    draw_image,
    segment_letter,
    write_text,
)

MAX_WIDTH_IN = 7.6  # inches for all panels of a row, so that text stays legible in a README
MAX_PER_LINE = 6  # probability maps next to each other


def maps(*maps: Drawable, image: ArrayLike | None = None, names: Sequence[str] | None = None) -> Figure:
    """Draw one row for each Maps: its K probability maps, its segmentation map and its entropy map.

    Probability maps run from black at 0 to the segment's colour at 1. Rows after the first are aligned to it
    (their labels are arbitrary) where their layouts agree, so that a colour means the same in all rows. The row of a
    Posterior has the maps of its median, but the entropy of the posterior: at each location the mean over the draws,
    and below the mean entropy with its 90 % interval. The entropy of the median map is another number.

    Parameters
    ----------
    *maps : Maps or Posterior
        One or more, a row each.
    image : array_like, shape (height, width) or (height, width, 3), optional
        Shown first in each row, under the boundaries of that row's segmentation.
    names : sequence of str, optional
        One for each row; two rows are called truth and reconstruction unless told otherwise.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from vseg import Grid, Maps
    >>> truth = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 2, 2, 2])
    >>> len(maps(truth, truth.permute([2, 0, 1])).axes)
    12
    """
    rows = style.align_to_first(style.add_entropies(maps))
    default = ["truth", "reconstruction"] if len(rows) == 2 else [""] * len(rows)
    titles = style.check_names(names, len(rows), default)
    shown = None if image is None else style.normalise_image(image)
    plan = _Plan.for_maps(max(row.segments for row in rows), shown, titles)
    figure = style.create_figure(plan.width, plan.height)
    for number, (row, title) in enumerate(zip(rows, titles, strict=True)):
        _draw_row(figure, plan, number, row, title, shown)
    _draw_scales(figure, plan)
    return figure


@dataclass(frozen=True)
class _Plan:
    """The position of each panel of `maps`, in inches: K small panels on one or more lines, then large ones."""

    segments: int
    across: int  # probability maps next to each other
    lines: int  # lines of probability maps in a row
    small: float  # width of a probability map
    large: float  # width of the segmentation and entropy maps
    shape: float  # height / width
    with_image: bool
    left: float  # room for the row titles
    rows: int

    @classmethod
    def for_maps(cls, segments: int, shown: NDArray | None, titles: list[str]) -> "_Plan":
        shape = style.image_shape(shown)
        lines = ceil(segments / MAX_PER_LINE)
        across = ceil(segments / lines)
        others = 2 if shown is None else 3
        # A large panel is as high as the lines of small ones with the letters between them.
        extra = (lines - 1) * LINE / shape
        room = MAX_WIDTH_IN - others * extra - (across + others) * GAP
        small = min(room / (across + others * lines), 1.35)
        large = lines * small + extra
        text_lines = max(style.wrap_name(title, large * shape, MEDIUM).count("\n") + 1 for title in titles)
        left = MARGIN + (0.16 * text_lines + 0.04 if any(titles) else 0)
        return cls(segments, across, lines, small, large, shape, shown is not None, left, len(titles))

    @property
    def width(self) -> float:
        return self.entropy_left + self.large + MARGIN + 0.1

    @property
    def row_height(self) -> float:
        return self.large * self.shape + LINE + GAP

    @property
    def height(self) -> float:
        return self.bottom + 0.6

    @property
    def bottom(self) -> float:
        return MARGIN + LINE + self.rows * self.row_height

    def top(self, row: int) -> float:
        return MARGIN + LINE + row * self.row_height

    @property
    def first(self) -> float:
        return self.left + (self.large + GAP if self.with_image else 0)

    @property
    def segmentation_left(self) -> float:
        return self.first + self.across * (self.small + GAP)

    @property
    def entropy_left(self) -> float:
        return self.segmentation_left + self.large + GAP

    def place(self, row: int, segment: int) -> tuple[float, float]:
        line, column = divmod(segment, self.across)
        down = line * (self.small * self.shape + LINE)
        return self.first + column * (self.small + GAP), self.top(row) + down


def _draw_row(
    figure: Figure,
    plan: _Plan,
    row: int,
    drawn: MapsWithEntropy,
    title: str,
    shown: NDArray[np.float64] | None,
) -> None:
    maps = drawn.maps
    top, large, high = plan.top(row), plan.large, plan.large * plan.shape
    write_text(
        figure,
        plan.left / 2 + 0.02,
        top + high / 2,
        style.wrap_name(title, high, MEDIUM),
        size=MEDIUM,
        rotation=90,
    )
    if shown is not None:
        axes = add_axes(figure, plan.left, top, large, high)
        draw_image(axes, shown)
        style.draw_boundaries(axes, maps, plan.shape)
        _head(axes, "image", row)
    for segment in range(maps.segments):
        axes = add_axes(figure, *plan.place(row, segment), plan.small, plan.small * plan.shape)
        p = style.rasterise(maps.layout, maps.probabilities[:, segment], plan.shape)
        draw_image(axes, style.shade_probabilities(p, segment))
        _head(axes, segment_letter(segment), row if plan.lines == 1 else 0)
    axes = add_axes(figure, plan.segmentation_left, top, large, high)
    draw_image(axes, style.colour_labels(style.rasterise(maps.layout, maps.labels, plan.shape)))
    _head(axes, "segmentation" if large > 0.9 else "segments", row)
    axes = add_axes(figure, plan.entropy_left, top, large, high)
    highest = style.highest_entropy(plan.segments)
    draw_image(axes, style.rasterise(maps.layout, drawn.entropy, plan.shape), highest=highest)
    _head(axes, "entropy", row)
    drawn.write_mean(figure, plan.entropy_left + large / 2, top + high + 0.1, before="mean ", size=SMALL - 1)


def _head(axes: Axes, text: str, row: int) -> None:
    """Label the columns above the first row; if letters take several lines, label every row."""
    if row == 0:
        style.set_title(axes, text, SMALL)


def _draw_scales(figure: Figure, plan: _Plan) -> None:
    """Draw the colour scales below the rows."""
    top = plan.bottom + 0.02
    span = plan.across * (plan.small + GAP) - GAP
    width = min(span, 2.0)
    axes = add_axes(figure, plan.first + (span - width) / 2, top, width, 0.15)
    ramp = np.broadcast_to(np.linspace(0, 1, 256), (plan.segments, 256))
    stripes = np.stack([style.shade_probabilities(row, k) for k, row in enumerate(ramp)])
    axes.imshow(stripes, extent=(0, 1, 0, 1), aspect="auto", interpolation="nearest")
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_yticks([])
    axes.tick_params(labelsize=SMALL, length=2, width=0.5, pad=2, colors=style.INK)
    axes.set_xlabel("probability", fontsize=SMALL, labelpad=2, color=style.INK)
    bar = add_axes(figure, plan.entropy_left, top, plan.large, 0.15)
    style.draw_entropy_scale(figure, bar, style.highest_entropy(plan.segments))
