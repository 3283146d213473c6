"""Figures that compare models: a forest plot of scores, calibration, and maps side by side."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from vseg.data.maps import Maps
from vseg.errors import InvalidInput
from vseg.figures import style
from vseg.figures.style import GAP, INK, LINE, LINE_COLOURS, LINE_STYLES, MARGIN, SMALL, add_axes, write_text

ROW_IN = 0.27  # inches of a model in a forest
NAME_IN = 1.5  # at most, for a model's name
PANEL_IN = 1.5  # inches of a calibration panel
MAP_IN, NARROW_IN = 1.1, 0.72  # inches of a map side by side, and where there are many columns
MAX_WIDTH_IN = 9.0
SOFT = "#888888"
NOTE = "colour: most probable segment; paler: less certain; below: mean entropy"
NOTE_IN = 3.7


class Curve(Protocol):
    """A calibration curve: predictions, observed shares and numbers of answers per bin."""

    @property
    def predicted(self) -> Sequence[float]:
        """The mean prediction of each bin."""
        ...

    @property
    def observed(self) -> Sequence[float]:
        """The share of 'same' answers in each bin."""
        ...

    @property
    def count(self) -> Sequence[int]:
        """The number of answers in each bin."""
        ...


def forest(
    table: Iterable[Mapping[str, Any]],
    references: Iterable[Mapping[str, Any]] = (),
    *,
    xlabel: str = "bits per answer held out (95 % interval)",
) -> Figure:
    """Draw one row per model: its score and interval, with the floor and the ceilings as lines.

    Parameters
    ----------
    table : rows with model, bits, low, high
        Drawn from top to bottom.
    references : rows with name and bits
        Those without a number are left out.
    xlabel : str
        Label of the horizontal axis.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> rows = [{"model": "logistic", "bits": -0.6, "low": -0.65, "high": -0.55}]
    >>> [label.get_text() for label in forest(rows).axes[0].get_yticklabels()]
    ['logistic']
    """
    rows = list(table)
    if not rows:
        raise InvalidInput("Expected at least one scored model to draw, got none.")
    available = [each for each in references if each["bits"] is not None and np.isfinite(each["bits"])]
    figure = style.create_figure(6.2, 1.0 + ROW_IN * len(rows) + 0.17 * len(available), auto_layout=True)
    axes = figure.add_subplot()
    lines = []
    for number, each in enumerate(available):
        dashes = LINE_STYLES[(number + 1) % len(LINE_STYLES)]
        colour = LINE_COLOURS[(number + 1) % len(LINE_COLOURS)]
        lines.append(axes.axvline(each["bits"], color=colour, linestyle=dashes, linewidth=1.2, zorder=1))
    for place, row in enumerate(rows):
        axes.plot([row["low"], row["high"]], [place, place], color=LINE_COLOURS[0], linewidth=1.8, zorder=2)
        axes.plot([row["bits"]], [place], marker="D", markersize=5, color=LINE_COLOURS[0], zorder=3)
        axes.annotate(
            _format_bits(row["bits"]), (max(row["high"], row["bits"]), place), xytext=(5, 0),
            textcoords="offset points", va="center", fontsize=SMALL, color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    names = [style.shorten_name(str(row["model"]), NAME_IN) for row in rows]
    axes.set_yticks(range(len(rows)), names, parse_math=False)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.margins(x=0.12)
    style.label_axes(axes, xlabel, "")
    if lines:
        labels = [f"{each['name']} {_format_bits(each['bits'])}" for each in available]
        style.draw_legend(
            figure, lines, labels, loc="outside lower center", ncols=min(len(labels), 4), handlelength=2.4
        )
    return figure


def calibration(curves: Mapping[str, Curve]) -> Figure:
    """Draw one panel per model: the share of 'same' answers against the prediction; calibrated is the diagonal.

    Parameters
    ----------
    curves : mapping from names to CalibrationCurve
        The calibration curve of each model.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> curve = SimpleNamespace(predicted=[0.1, 0.9], observed=[0.2, 0.8], count=[50, 50])
    >>> [axes.get_title() for axes in calibration({"logistic": curve}).axes]
    ['logistic']
    """
    if not curves:
        raise InvalidInput("Expected at least one calibration curve to draw, got none.")
    columns = min(len(curves), 4)
    lines = ceil(len(curves) / columns)
    figure = style.create_figure(
        0.8 + (PANEL_IN + 0.15) * columns, 0.6 + (PANEL_IN + 0.35) * lines, auto_layout=True
    )
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes, (name, curve) in zip(panels, curves.items(), strict=False):
        _draw_calibration(axes, curve)
        style.set_title(axes, style.shorten_name(str(name), PANEL_IN), SMALL)
    for axes in panels[len(curves) :]:
        axes.remove()
    for place, axes in enumerate(panels[: len(curves)]):
        if place + columns >= len(curves):
            axes.tick_params(labelbottom=True)
    figure.supxlabel("predicted P(same)", fontsize=style.MEDIUM, color=INK)
    figure.supylabel("share of 'same' (95 %)", fontsize=style.MEDIUM, color=INK)
    return figure


def side_by_side(
    rows: Mapping[str, Mapping[str, style.Drawable]], images: Mapping[str, ArrayLike] | None = None
) -> Figure:
    """Draw the maps of people and models: one column each, one row per image or participant.

    Of each there is the segmentation in colours, paler where it is uncertain, under the boundaries. The columns after
    the first are under its labels, so that a colour means the same in a row.

    Parameters
    ----------
    rows : mapping from a row's name to Maps or Posterior by column name
        A name may have several lines. A column that a row lacks stays empty there.
    images : mapping from a row's name to its image, optional
        Shown first.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from vseg import Grid, Maps
    >>> halves = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> len(side_by_side({"coffee": {"people": halves, "slic": halves}}).axes)
    2
    """
    if not rows or not any(rows.values()):
        raise InvalidInput("Expected maps to draw side by side, got none.")
    drawn = {name: style.add_entropies(list(each.values())) for name, each in rows.items() if each}
    shown = {name: style.normalise_image(image) for name, image in (images or {}).items()}
    columns = list(dict.fromkeys(name for each in rows.values() for name in each))
    across = len(columns) + bool(shown)
    side = MAP_IN if across * (MAP_IN + GAP) <= MAX_WIDTH_IN else NARROW_IN
    highs = [side * style.image_shape(shown.get(name)) for name in rows]
    left = MARGIN + 0.12 + 0.15 * max(name.count("\n") + 1 for name in rows)
    top = MARGIN + LINE
    figure = style.create_figure(
        max(left + across * (side + GAP) + MARGIN, NOTE_IN + left),
        top + sum(highs) + len(rows) * (GAP + 0.16) + 0.24,
    )
    for column, head in enumerate((["image"] if shown else []) + columns):
        write_text(figure, left + column * (side + GAP) + side / 2, top - 0.1, style.shorten_name(head, side))
    for (name, each), high in zip(rows.items(), highs, strict=True):
        named = "\n".join(style.shorten_name(line, high) for line in name.split("\n"))
        write_text(figure, left / 2, top + high / 2, named, rotation=90)
        if name in shown:
            style.draw_image(add_axes(figure, left, top, side, high), shown[name])
        for head, one in zip(each, style.align_to_first(drawn[name]) if each else [], strict=True):
            place = left + (columns.index(head) + bool(shown)) * (side + GAP)
            _draw_maps(add_axes(figure, place, top, side, high), one, high / side)
            one.write_mean(figure, place + side / 2, top + high + 0.08, size=SMALL - 2)
        top += high + GAP + 0.16
    write_text(figure, left, top + 0.08, NOTE, size=SMALL - 1, ha="left")
    return figure


def _format_bits(bits: float) -> str:
    """Format bits with the minus sign of the axis."""
    return f"{bits:.3f}".replace("-", "−")


def _draw_maps(axes: Axes, drawn: style.MapsWithEntropy, shape: float) -> None:
    """Draw each location in the colour of its most probable segment, lighter for higher entropy."""
    maps = drawn.maps
    colours = style.colour_labels(maps.labels)
    sure = 1 - drawn.entropy / style.highest_entropy(maps.segments)
    pale = 1 - (1 - colours) * (0.15 + 0.85 * sure[:, None])
    style.draw_image(axes, _raster_rgb(maps, pale, shape))
    style.draw_boundaries(axes, maps, shape, width=0.6)


def _raster_rgb(maps: Maps, colours: np.ndarray, shape: float) -> np.ndarray:
    return np.stack(
        [style.rasterise(maps.layout, colours[:, channel], shape) for channel in range(3)], axis=-1
    )


def _draw_calibration(axes: Axes, curve: Curve) -> None:
    predicted, observed = np.asarray(curve.predicted), np.asarray(curve.observed)
    count = np.maximum(np.asarray(curve.count), 1)
    low, high = _wilson(observed, count)
    axes.plot([0, 1], [0, 1], color=SOFT, linestyle="--", linewidth=1, zorder=1)
    axes.vlines(predicted, low, high, color=LINE_COLOURS[0], linewidth=1.2, alpha=0.7, zorder=2)
    axes.plot(predicted, observed, marker="o", markersize=3.5, color=LINE_COLOURS[0], linewidth=1.2, zorder=3)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), box_aspect=1)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks([0, 0.5, 1], ["0", "0.5", "1"])
    style.label_axes(axes, "", "")


def _wilson(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's 95 % interval of a share."""
    z = 1.96
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    reach = z * np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    return middle - reach, middle + reach
