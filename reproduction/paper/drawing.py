"""Draw the elements that figures share: charts with one curve per estimator, and rows of maps."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper.claims import interval
from reproduction.paper.estimators import COLOURS, LABELS, MARKERS
from vseg.data.layout import Grid
from vseg.data.maps import Maps
from vseg.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

SIDE = 0.62  # width and height of a map in inches
PANEL_GAP, COLUMN_GAP = 0.05, 0.16
ROW_LABEL_WIDTH = 1.1  # inches
Notes = Mapping[str, Mapping[str, str]]  # texts by column and row of maps


def draw_curves(
    axes: "Axes",
    table: "Table",
    value: str,
    over: str,
    *,
    position: Callable[[Any], float] = float,
) -> None:
    """Draw the mean of column `value` over the setting `over`, one line per estimator, with 95 % bands over resamples.

    `position` converts a value of the setting to its x coordinate.
    """
    means = table.mean_interval(value, by=[over, "estimator"], seed=0)
    for name, label in LABELS.items():
        rows = means.where(estimator=name)
        x = np.array([position(row[over]) for row in rows.rows])
        order = np.argsort(x)
        mean, low, high = (rows.column(column)[order] for column in ("mean", "low", "high"))
        axes.fill_between(x[order], low, high, color=COLOURS[name], alpha=0.25, linewidth=0)
        axes.plot(
            x[order], mean, color=COLOURS[name], marker=MARKERS[name], markersize=4, linewidth=1.5,
            linestyle="--" if name.endswith("plain") else "-", label=label,
        )  # fmt: skip


def draw_spread(
    axes: "Axes", table: "Table", value: str, xlabel: str, labels: Mapping[str, str], max_dots: int = 200
) -> None:
    """Draw a row per estimator: a dot per resample (at most `max_dots`), and the mean with its 95 % interval."""
    rng = np.random.default_rng(0)
    for at, name in enumerate(labels):
        values = table.column(value, estimator=name)
        dots = values[:max_dots]
        heights = at - 0.12 + rng.uniform(-0.2, 0.2, len(dots))
        axes.scatter(dots, heights, s=8, color=COLOURS[name], alpha=0.5, linewidth=0)
        mean, low, high = interval(values)
        axes.errorbar(
            mean,
            at + 0.25,
            xerr=[[mean - low], [high - mean]],
            fmt="D",
            color=style.INK,
            markersize=3.5,
            capsize=2,
        )
    axes.set_yticks(range(len(labels)), list(labels.values()))
    axes.set_ylim(len(labels) - 0.5, -0.5)
    style.label_axes(axes, xlabel, "")
    style.set_title(axes, "◆ mean and 95 % interval", style.SMALL)


def label_axes(
    axes: "Axes",
    xlabel: str,
    ylabel: str,
    *,
    key: bool | None = True,
    columns: int = 2,
    from_zero: bool = True,
) -> None:
    """Label the axes, start the y axis at 0 if `from_zero`, and draw a legend above the axes if `key`."""
    style.label_axes(axes, xlabel, ylabel)
    if from_zero:
        axes.set_ylim(bottom=0)
    if key:
        axes.legend(
            fontsize=style.SMALL, frameon=False, loc="lower left", bbox_to_anchor=(-0.02, 0.99), borderaxespad=0,
            ncols=columns, columnspacing=1.2, handlelength=2.6,
        )  # fmt: skip


def write_inside(axes: "Axes", text: str) -> None:
    """Write a text into the lower left corner of the axes."""
    axes.text(0.02, 0.03, text, transform=axes.transAxes, fontsize=style.SMALL, color=style.INK)


def set_log_ticks(axes: "Axes", values: Sequence[float]) -> None:
    """Make the x axis logarithmic with ticks at these values."""
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log")
    axes.set_xticks(list(values), [f"{value:g}" for value in values])
    axes.xaxis.set_minor_locator(NullLocator())


def draw_map_columns(
    figure: "Figure",
    left: float,
    top: float,
    columns: Mapping[str, Mapping[str, Maps]],
    side: float = SIDE,
    notes: Notes | None = None,
) -> float:
    """Draw maps in rows and columns from the top left corner (inches); return the position of their lower end.

    Each cell shows the probability maps and then the segmentation. Rows are labelled at the left. If there are notes,
    each is written above its cell.
    """
    at, step = left, _row_step(side, notes)
    for number, (heading, rows) in enumerate(columns.items()):
        panels = 1 + max(maps.segments for maps in rows.values())
        style.write_text(figure, at + panels * (side + PANEL_GAP) / 2, top, heading, size=style.MEDIUM)
        for row, (name, maps) in enumerate(rows.items()):
            down = top + (0.32 if row == 0 else 0.34) + row * step
            if note := (notes or {}).get(heading, {}).get(name):
                style.write_text(figure, at + panels * (side + PANEL_GAP) / 2, down - 0.07, note, size=6.5)
            _draw_map_row(figure, at, down, maps, side, panels, with_titles=row == 0)
            if number == 0:
                style.write_text(figure, left - 0.06, down + side / 2, name, ha="right")
        at += panels * (side + PANEL_GAP) + COLUMN_GAP
    return top + 0.34 + max(map(len, columns.values())) * step


def _row_step(side: float, notes: Notes | None) -> float:
    """Return the inches from one row of maps to the next."""
    return side + PANEL_GAP + (0.12 if notes else 0)


def map_columns_width(columns: Mapping[str, Mapping[str, Maps]], side: float = SIDE) -> float:
    """Return the width in inches of `draw_map_columns`."""
    panels = [1 + max(maps.segments for maps in rows.values()) for rows in columns.values()]
    return sum(panels) * (side + PANEL_GAP) + COLUMN_GAP * (len(panels) - 1)


def _draw_map_row(
    figure: "Figure", left: float, top: float, maps: Maps, side: float, panels: int, *, with_titles: bool
) -> None:
    for k in range(maps.segments + 1):
        last = k == maps.segments
        axes = style.add_axes(
            figure, left + (panels - 1 if last else k) * (side + PANEL_GAP), top, side, side
        )
        shown = (
            style.colour_labels(style.rasterise(maps.layout, maps.labels))
            if last
            else style.shade_probabilities(maps.image[..., k], k)
        )
        style.draw_image(axes, shown)
        if with_titles:
            style.set_title(axes, "map" if last else style.segment_letter(k), style.SMALL)


def draw_probability_scale(
    figure: "Figure", left: float, top: float, segments: int, width: float = 1.8
) -> None:
    """Draw the colour scale of probability maps: black at 0, the segment's colour at 1."""
    axes = style.add_axes(figure, left, top, width, 0.13)
    ramp = np.linspace(0, 1, 128)
    axes.imshow(
        np.stack([style.shade_probabilities(ramp, k) for k in range(segments)]), extent=(0, 1, 0, 1), aspect="auto",
        interpolation="nearest",
    )  # fmt: skip
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_yticks([])
    axes.tick_params(labelsize=style.SMALL, length=2, width=0.5, pad=2, colors=style.INK)
    axes.set_xlabel("probability", fontsize=style.SMALL, labelpad=1, color=style.INK)


def maps_from_image(image: NDArray[np.float64]) -> Maps:
    """Return Maps from a stored (N, N, K) array."""
    return Maps(Grid(image.shape[0]), image)


def create_figure(
    columns: Mapping[str, Mapping[str, Maps]],
    *,
    charts: int = 1,
    chart_width: float = 3.5,
    margin: float = 0.6,
    key_lines: int = 2,
    side: float = SIDE,
    chart_columns: int = 1,
    below: float = 0.0,
    notes: Notes | None = None,
) -> "tuple[Figure, list[Axes]]":
    """Create a figure with empty charts stacked at the left, and maps with their colour scale at the right.

    Charts are returned from top to bottom, one column after the other.

    Parameters
    ----------
    columns : mapping
        For each column of maps, its heading and its rows.
    charts : int
        Number of charts in a column.
    chart_width : float
        Width of the charts in inches, including the margin.
    margin : float
        Inches at the left of the charts, for their labels.
    key_lines : int
        Lines of the legend above the first chart.
    side : float
        Width and height of a map in inches.
    chart_columns : int
        Number of columns of charts.
    below : float
        Inches that are left empty at the bottom.
    notes : mapping, optional
        Texts above cells of maps, by column and row.
    """
    left = chart_columns * chart_width + ROW_LABEL_WIDTH
    rows = max(map(len, columns.values()))
    high = max(0.34 + rows * _row_step(side, notes) + 0.75, 2.3 * charts + 0.3)
    figure = style.create_figure(left + map_columns_width(columns, side) + 0.1, high + below)
    head = 0.15 + 0.17 * key_lines
    step = (high - head) / charts
    axes = [
        style.add_axes(
            figure, column * chart_width + margin, head + row * step, chart_width - margin - 0.05, step - 0.5
        )
        for column in range(chart_columns)
        for row in range(charts)
    ]
    end = draw_map_columns(figure, left, 0.15, columns, side, notes)
    segments = max(maps.segments for rows in columns.values() for maps in rows.values())
    draw_probability_scale(figure, left, end + 0.06, segments)
    return figure, axes
