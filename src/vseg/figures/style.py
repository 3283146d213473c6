"""Shared parts of all figures: colours, sizes in inches and points, and how a layout becomes pixels."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from contourpy import LineType, contour_generator
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.typing import ColorType
from numpy.typing import ArrayLike, NDArray

from vseg._support.palette import SEGMENT_COLOURS
from vseg.bayes import Posterior
from vseg.data.layout import Grid, Layout, as_floats
from vseg.data.maps import Maps, average_entropy
from vseg.errors import InvalidInput

# Lines and dots on white, where yellow and pale blue would be lost.
LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#AA4499", "#333333", "#3A9BD9", "#B07900", "#882255")
LINE_STYLES = ("-", "--", ":", "-.")

DPI = 200
MARGIN, GAP, LINE = 0.1, 0.08, 0.2  # inches around the figure, between panels, for a line of text
SMALL, MEDIUM = 8, 9  # points
INK = "#222222"
RASTER_PX = 200  # the longer side of a scatter drawn as pixels
LEGEND_LINES = 14  # names below each other in a legend
CONTOUR_PX = 400  # the longer side of the picture in which boundaries are found
MANY_LETTERS = 20  # an interval with more is written smaller, so that it does not touch its neighbour
TOO_SMALL = 0.0001  # nats; smaller entropies are not written as numbers


@dataclass(frozen=True)
class MapsWithEntropy:
    """Maps with the entropy that a figure shows: their own, or that of the posterior that they are the median of.

    Attributes
    ----------
    maps : Maps
    entropy : (n,)
        The entropy at each location, in nats.
    mean : float
        The mean entropy.
    interval : (float, float) or None
        The 90 % interval of the mean entropy, of a posterior.
    """

    maps: Maps
    entropy: NDArray[np.float64]
    mean: float
    interval: tuple[float, float] | None = None

    @property
    def segments(self) -> int:
        """K."""
        return self.maps.segments

    def write_mean(self, figure: Figure, left: float, top: float, *, before: str = "", size: float) -> None:
        """Write the mean entropy, centred at a position in inches; `before` precedes a mean without interval."""
        if self.interval is None:
            write_text(figure, left, top, f"{before}{self.mean:.2f} nats", size=size)
            return
        text = format_interval(self.mean, *self.interval)
        is_long = len(text) > MANY_LETTERS  # the colour bar names the unit
        write_text(figure, left, top, text if is_long else f"{text} nats", size=size - is_long)


Drawable = Maps | Posterior | MapsWithEntropy
"""What figures of maps take."""


def create_figure(width_in: float, height_in: float, *, auto_layout: bool = False) -> Figure:
    """Create an empty white figure; `auto_layout` lets matplotlib place the axes."""
    return Figure(
        figsize=(width_in, height_in),
        dpi=DPI,
        facecolor="white",
        layout="constrained" if auto_layout else None,
    )


def add_axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Add axes at a position given in inches from the figure's top-left corner."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def write_text(
    figure: Figure,
    left: float,
    top: float,
    text: str,
    *,
    size: float = SMALL,
    rotation: int = 0,
    ha: str = "center",
    va: str = "center",
) -> None:
    """Write text at a position given in inches from the figure's top-left corner."""
    across, down = figure.get_size_inches()
    figure.text(
        left / across,
        1 - top / down,
        text,
        fontsize=size,
        rotation=rotation,
        ha=ha,
        va=va,
        color=INK,
        parse_math=False,
    )


def set_title(axes: Axes, text: str, size: float = MEDIUM) -> None:
    """Write a title above the axes."""
    axes.set_title(text, fontsize=size, pad=3, color=INK, parse_math=False)


def draw_image(axes: Axes, pixels: NDArray[np.float64], *, highest: float = 1.0) -> None:
    """Draw a picture without ticks that fills its axes; grey levels run from 0 to `highest`."""
    axes.imshow(
        pixels,
        cmap="gray",
        vmin=0,
        vmax=highest,
        extent=(0, 1, 1, 0),
        aspect="auto",
        interpolation="nearest",
        origin="upper",
    )
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(linewidth=0.4, color=INK)


def draw_entropy_scale(figure: Figure, axes: Axes, highest: float, *, upright: bool = False) -> None:
    """Draw the grey scale of entropy maps, from 0 to log K nats."""
    bar = figure.colorbar(
        ScalarMappable(Normalize(0, highest), "gray"),
        cax=axes,
        orientation="vertical" if upright else "horizontal",
        ticks=[0, highest],
    )
    bar.set_ticklabels(["0", f"{highest:.2f}"])
    bar.ax.tick_params(labelsize=SMALL, length=2, width=0.5, pad=2, colors=INK)
    bar.set_label("entropy (nats)", fontsize=SMALL, labelpad=2, color=INK)
    bar.outline.set_linewidth(0.4)


def draw_legend(owner: Axes | Figure, handles: Sequence[Artist], names: Sequence[str], **place: Any) -> None:
    """Draw a legend without a box; names are written literally, including a leading _ or a $."""
    texts = [str(number) for number in range(len(names))]
    legend = owner.legend(list(handles), texts, frameon=False, fontsize=SMALL, columnspacing=1, **place)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(text=name, parse_math=False, color=INK)


def draw_legend_beside(axes: Axes, handles: Sequence[Artist], names: Sequence[str]) -> None:
    """Draw the legend at the right of the axes, in `count_legend_columns` columns."""
    beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.03), "borderaxespad": 0.2}
    draw_legend(
        axes,
        handles,
        names,
        ncols=count_legend_columns(len(names)),
        handlelength=1.2,
        handleheight=1,
        **beside,
    )


def count_legend_columns(names: int) -> int:
    """Return the number of columns of a legend."""
    return -(-names // LEGEND_LINES)


def legend_height(names: int) -> float:
    """Return the height of a legend in inches."""
    return 0.19 * -(-names // count_legend_columns(names)) + 0.1


def label_axes(axes: Axes, xlabel: str, ylabel: str) -> None:
    """Set axis labels and remove the box around the data."""
    axes.set_xlabel(xlabel, fontsize=MEDIUM, color=INK)
    axes.set_ylabel(ylabel, fontsize=MEDIUM, color=INK)
    axes.tick_params(which="both", labelsize=SMALL, colors=INK)
    axes.spines[["top", "right"]].set_visible(False)


def segment_colour(segment: int) -> str:
    """Return the colour of a segment."""
    return SEGMENT_COLOURS[segment % len(SEGMENT_COLOURS)]


def segment_letter(segment: int) -> str:
    """Return the name of a segment: A, B, … Z, AA, AB, …."""
    before, last = divmod(segment, 26)
    return (segment_letter(before - 1) if before else "") + chr(ord("A") + last)


def shade_probabilities(probabilities: NDArray[np.float64], segment: int) -> NDArray[np.float64]:
    """Return (…, 3) colours of one segment's probabilities, from black at 0 to its colour at 1."""
    return probabilities[..., None] * np.array(to_rgb(segment_colour(segment)))


def colour_labels(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return (…, 3) colours: each label in its segment's colour."""
    return np.array([to_rgb(segment_colour(k)) for k in range(int(labels.max()) + 1)])[labels]


def rasterise(layout: Layout, values: NDArray, shape: float = 1.0) -> NDArray:
    """Return values per location as a picture of height/width `shape`: N×N on a grid, else the nearest location."""
    if isinstance(layout, Grid):
        return values.reshape(layout.size, layout.size)
    return values[layout.cells(*_size_px(shape, RASTER_PX))]


def image_shape(shown: NDArray | None) -> float:
    """Return height / width of the image, or 1 without an image."""
    return 1.0 if shown is None else shown.shape[0] / shown.shape[1]


def highest_entropy(segments: int) -> float:
    """Return log K, the top of the entropy scale; a single map uses the scale of two."""
    return float(np.log(max(segments, 2)))


def normalise_image(image: ArrayLike) -> NDArray[np.float64]:
    """Convert an image to (height, width) or (height, width, 3) levels from 0 to 1."""
    given = np.asarray(image)
    if given.ndim not in (2, 3) or (given.ndim == 3 and given.shape[2] not in (3, 4)) or not given.size:
        raise InvalidInput(
            f"An image is an array of shape (height, width) or (height, width, 3), got shape {given.shape}."
        )
    top = np.iinfo(given.dtype).max if given.dtype.kind in "iu" else 1
    levels = as_floats(given, "the image") / top
    if not np.isfinite(levels).all() or levels.min() < 0 or levels.max() > 1:
        raise InvalidInput(
            "An image holds numbers from 0 to 1, or whole numbers such as uint8; got values "
            f"from {given.min():g} to {given.max():g} of type {given.dtype}."
        )
    return levels[..., :3] if given.ndim == 3 else levels


def draw_boundaries(
    axes: Axes, maps: Maps, shape: float = 1.0, tone: ColorType = "white", width: float = 1.1
) -> None:
    """Draw boundaries of the segmentation as lines with black edges, visible on dark and light images."""
    draw_lines(axes, boundary_lines(maps, shape), tone, width)


def draw_lines(axes: Axes, lines: Sequence[NDArray[np.float64]], tone: ColorType, width: float) -> None:
    """Draw lines of x, y in fractions of the image, with black edges."""
    # All edges lie below all lines, so that one participant's edge does not hide another's line.
    for colour_of_line, thickness, level in (("black", 2.2 * width, 2), (tone, width, 3)):
        drawn = LineCollection(lines, colors=colour_of_line, linewidths=thickness, zorder=level)
        axes.add_collection(drawn, autolim=False)


def draw_distributions(axes: Axes, charts: Mapping[str, NDArray[np.float64]]) -> None:
    """Draw values from 0 to 1 as a row of dots each, with a bar between the quartiles and a line at the median."""
    for row, values in enumerate(charts.values()):
        lower, median, upper = np.quantile(values, [0.25, 0.5, 0.75])
        # A fixed scatter across the row keeps equal values apart.
        offsets = 0.28 * np.sin(np.arange(len(values)) * 2.4)
        axes.plot(values, row + offsets, ".", color=LINE_COLOURS[0], markersize=2.5, alpha=0.5)
        axes.plot([lower, upper], [row, row], color=INK, linewidth=3, solid_capstyle="butt", alpha=0.55)
        axes.plot([median, median], [row - 0.3, row + 0.3], color=INK, linewidth=1.6)
    axes.set_yticks(range(len(charts)), [f"{name} ({len(values)})" for name, values in charts.items()])
    axes.set(ylim=(len(charts) - 0.5, -0.5), xlim=(-0.02, 1.02))


def boundary_lines(maps: Maps, shape: float = 1.0) -> list[NDArray[np.float64]]:
    """Return the boundaries of the segmentation as lines of x, y in fractions of the image."""
    width, height = _size_px(shape, CONTOUR_PX)
    labels = maps.render(width, height).argmax(axis=2)
    x, y = (np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height
    lines: list[NDArray[np.float64]] = []
    # A boundary has two sides, so the last segment adds nothing to those before it.
    for segment in np.unique(labels)[:-1]:
        found = contour_generator(x, y, (labels == segment).astype(float), line_type=LineType.Separate)
        lines += found.lines(0.5)  # type: ignore[arg-type]
    return lines


def wrap_name(name: str, width_in: float, size: float = SMALL) -> str:
    """Wrap a name over several lines to stay within a width."""
    return textwrap.fill(name, max(int(width_in * 72 / (0.58 * size)), 4))


def shorten_name(name: str, width_in: float, size: float = SMALL) -> str:
    """Shorten a name to a width by omitting its middle, because names often differ at the end."""
    most = max(int(width_in * 72 / (0.58 * size)), 5)
    if len(name) <= most:
        return name
    end = (most - 1) // 2
    return f"{name[: most - 1 - end]}…{name[-end:]}"


def format_interval(value: float, low: float, high: float) -> str:
    """Format a value and its interval with two to four digits, enough to tell the value from both ends."""
    if high < TOO_SMALL:
        return f"< {TOO_SMALL}"
    for digits in (2, 3, 4):
        texts = [f"{each:.{digits}f}" for each in (value, low, high)]
        if len(set(texts)) == 3 and 10**-digits <= (high - low) / 5:
            break
    return f"{texts[0]} [{texts[1]}, {texts[2]}]"


def add_entropies(drawn: Sequence[Drawable]) -> list[MapsWithEntropy]:
    """Return maps with the entropies to show: a posterior's own, not those of its median map."""
    if not drawn:
        raise InvalidInput("Expected at least one Maps to draw, got none.")
    return [_add_entropy(one) for one in drawn]


def _add_entropy(one: Drawable) -> MapsWithEntropy:
    if isinstance(one, Maps):
        return MapsWithEntropy(one, one.entropy, one.mean_entropy)
    if isinstance(one, Posterior):
        return MapsWithEntropy(one.maps, average_entropy(one.draws), one.entropy, one.entropy_interval)
    if isinstance(one, MapsWithEntropy):
        return one
    raise InvalidInput(
        f"Expected Maps or a Posterior to draw, got {type(one).__name__}; of a reconstruction, draw its `.maps`."
    )


def align_to_first(drawn: Sequence[MapsWithEntropy]) -> list[MapsWithEntropy]:
    """Order segments as in the first maps where the layouts agree, because labels are arbitrary (Eq. 4)."""
    first = drawn[0].maps
    return [
        replace(one, maps=one.maps.align_to(first)) if number and one.maps.layout == first.layout else one
        for number, one in enumerate(drawn)
    ]


def check_names(names: Sequence[str] | None, count: int, default: Sequence[str]) -> list[str]:
    """Check that there are `count` names; without names return the default."""
    if names is None:
        return list(default)
    if isinstance(names, str) or len(names) != count:
        raise InvalidInput(f"Expected {count} names, one for each of the maps, got {names!r:.80}.")
    return [str(name) for name in names]


def _size_px(shape: float, longest: int) -> tuple[int, int]:
    """Return width and height in pixels of a picture of height/width `shape`."""
    return max(round(longest * min(1, 1 / shape)), 1), max(round(longest * min(1, shape)), 1)
