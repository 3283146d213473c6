"""Figures of a few large panels: segmentation, entropy, boundaries, participants, contours."""

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import Normal, Stroke
from numpy.typing import ArrayLike

from vseg.data.contours import Contours
from vseg.data.maps import Maps
from vseg.errors import InvalidInput
from vseg.figures import style
from vseg.figures.style import (
    GAP,
    LINE,
    MARGIN,
    MEDIUM,
    SMALL,
    Drawable,
    add_axes,
    draw_image,
    segment_letter,
    set_title,
)

SIDE = 2.8  # inches of a single panel
SMALL_SIDE = 1.25  # inches of each panel where there are many
RED = "#FF5A4F"
PALE = 0.55  # share of white in the segments below drawn lines
ROW = 0.32  # inches of one distribution
LEAST_CHART = 2.9  # inches that a chart of distributions needs
LEAST_BAR = 1.0  # inches that the label of the entropy scale needs


def segmentation(maps: Drawable, image: ArrayLike | None = None) -> Figure:
    """Draw the segmentation map, the most probable segment of each location, with the share of each segment.

    With an image, the image stands before it, under the boundaries of the segmentation.

    Parameters
    ----------
    maps : Maps or Posterior
        The maps.
    image : array_like, shape (H, W) or (H, W, 3), optional
        The image, shown first.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from vseg import Grid, Maps
    >>> segmentation(Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])).axes[0].get_title()
    'segmentation'
    """
    drawn = style.add_entropies([maps])[0].maps
    shown = None if image is None else style.normalise_image(image)
    shape = style.image_shape(shown)
    left = MARGIN if shown is None else MARGIN + SIDE + GAP
    figure = style.create_figure(
        left + SIDE + MARGIN + 0.95 * style.count_legend_columns(drawn.segments),
        MARGIN + 2 * LINE + max(SIDE * shape, style.legend_height(drawn.segments)),
    )
    if shown is not None:
        axes = add_axes(figure, MARGIN, MARGIN + LINE, SIDE, SIDE * shape)
        draw_image(axes, shown)
        style.draw_boundaries(axes, drawn, shape)
        set_title(axes, "image")
    axes = add_axes(figure, left, MARGIN + LINE, SIDE, SIDE * shape)
    draw_image(axes, style.colour_labels(style.rasterise(drawn.layout, drawn.labels, shape)))
    set_title(axes, "segmentation")
    style.draw_legend_beside(axes, *_shares(drawn))
    return figure


def entropy(maps: Drawable) -> Figure:
    """Draw the entropy map in nats, from black (certain) to white (all K segments are equally likely).

    Parameters
    ----------
    maps : Maps or Posterior
        The maps. Of a posterior its own entropy is shown, see `maps`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from vseg import Grid, Maps
    >>> [axes.get_ylabel() for axes in entropy(Maps(Grid(3), [[0.5, 0.5]] * 9)).axes]
    ['', 'entropy (nats)']
    """
    [drawn] = style.add_entropies([maps])
    highest = style.highest_entropy(drawn.segments)
    figure = style.create_figure(MARGIN + SIDE + 0.75, 2 * MARGIN + SIDE + LINE)
    draw_image(
        add_axes(figure, MARGIN, MARGIN, SIDE, SIDE),
        style.rasterise(drawn.maps.layout, drawn.entropy),
        highest=highest,
    )
    bar = add_axes(figure, MARGIN * 2 + SIDE, MARGIN, 0.12, SIDE)
    style.draw_entropy_scale(figure, bar, highest, upright=True)
    drawn.write_mean(figure, MARGIN + SIDE / 2, MARGIN + SIDE + 0.13, before="mean ", size=MEDIUM)
    return figure


def boundaries(maps: Drawable | Mapping[str, Drawable], image: ArrayLike) -> Figure:
    """Draw the boundaries of one segmentation, or of several by name, over the image.

    Parameters
    ----------
    maps : Maps or Posterior, or mapping from names to these
        The segmentations; several are named in a legend.
    image : array_like, shape (H, W) or (H, W, 3)
        The image to draw on.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from vseg import Grid, Maps
    >>> halves = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> len(boundaries({"P1": halves, "P2": halves}, np.full((40, 60), 0.5)).axes[0].get_legend().get_texts())
    2
    """
    named = isinstance(maps, Mapping)
    several = maps if isinstance(maps, Mapping) else {"": maps}
    drawn = [each.maps for each in style.add_entropies(list(several.values()))]
    shown = style.normalise_image(image)
    shape = style.image_shape(shown)
    wide = 3.6 * min(1, 1 / shape)
    figure = style.create_figure(
        2 * MARGIN + wide + (1.5 * style.count_legend_columns(len(several)) if named else 0),
        2 * MARGIN + max(wide * shape, style.legend_height(len(several)) if named else 0),
    )
    axes = add_axes(figure, MARGIN, MARGIN, wide, wide * shape)
    draw_image(axes, shown)
    tones = ["white"] if len(several) == 1 else [style.segment_colour(k) for k in range(len(several))]
    for one, tone in zip(drawn, tones, strict=True):
        style.draw_boundaries(axes, one, shape, tone, width=1.1 if len(several) == 1 else 0.9)
    if named:
        names = [style.shorten_name(str(name), 1.0) for name in several]
        style.draw_legend_beside(axes, [_two_toned(tone) for tone in tones], names)
    return figure


def participants(maps: Mapping[str, Drawable], image: ArrayLike | None = None) -> Figure:
    """Draw each participant's entropy map with the boundaries of their segmentation, on one scale (S5).

    Parameters
    ----------
    maps : mapping from names to Maps or Posterior
        The maps of each participant. Of a posterior its own entropy is shown, with its 90 % interval, see `maps`. If
        the number of segments K differs, it is written beside the names.
    image : array_like, shape (H, W) or (H, W, 3), optional
        The image, shown first.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from vseg import Grid, Maps
    >>> halves = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> [axes.get_title() for axes in participants({"P1": halves, "P2": halves}).axes[:2]]
    ['P1', 'P2']
    """
    if not isinstance(maps, Mapping):
        raise InvalidInput(f"Expected a mapping from participant to Maps, got {type(maps).__name__}.")
    drawn = style.add_entropies(list(maps.values()))
    shown = None if image is None else style.normalise_image(image)
    shape = style.image_shape(shown)
    counts = {one.segments for one in drawn}
    highest = style.highest_entropy(max(counts))
    count = len(maps) + (shown is not None)
    columns = min(count, 3 if count <= 6 else 5)
    high = SMALL_SIDE * shape
    step = high + 2 * LINE
    figure = style.create_figure(
        2 * MARGIN + columns * (SMALL_SIDE + GAP) + 0.65,
        MARGIN + max(ceil(count / columns) * step, LEAST_BAR + 2 * LINE),
    )
    panels = [
        (MARGIN + (at % columns) * (SMALL_SIDE + GAP), MARGIN + LINE + (at // columns) * step)
        for at in range(count)
    ]
    if shown is not None:
        axes = add_axes(figure, *panels.pop(0), SMALL_SIDE, high)
        draw_image(axes, shown)
        set_title(axes, "image", SMALL)
    for name, one, (left, top) in zip(maps, drawn, panels, strict=True):
        axes = add_axes(figure, left, top, SMALL_SIDE, high)
        draw_image(axes, style.rasterise(one.maps.layout, one.entropy, shape), highest=highest)
        style.draw_boundaries(axes, one.maps, shape, RED, width=0.8)
        K = f" (K = {one.segments})" if len(counts) > 1 else ""
        set_title(axes, style.shorten_name(str(name), SMALL_SIDE - 0.06 * len(K)) + K, SMALL)
        one.write_mean(figure, left + SMALL_SIDE / 2, top + high + 0.1, size=SMALL - 1)
    left = MARGIN + columns * (SMALL_SIDE + GAP) + GAP
    bar = add_axes(figure, left, MARGIN + LINE, 0.1, max(high, LEAST_BAR))
    style.draw_entropy_scale(figure, bar, highest, upright=True)
    return figure


def contours(
    drawings: Sequence[Contours],
    maps: Sequence[Maps | None] | None = None,
    image: ArrayLike | None = None,
    *,
    captions: Sequence[str] | None = None,
    distributions: Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """Draw the contours that each participant drew, in red over the participant's segmentation (S5).

    Parameters
    ----------
    drawings : sequence of Contours
        What was drawn on one image.
    maps : sequence of Maps or None, optional
        The maps of each participant; where there are none, the lines are drawn over the image.
    image : array_like, shape (H, W) or (H, W, 3), optional
        The image, shown first.
    captions : sequence of str, optional
        A line below each drawing, such as its F.
    distributions : mapping from names to values from 0 to 1, optional
        Shown in a chart below, such as the F of all drawings, with median and quartiles.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from vseg.data.contours import Contours
    >>> drawing = Contours([[[0, 4], [8, 4]]], width_px=8, height_px=8, participant="P1")
    >>> [axes.get_title() for axes in contours([drawing]).axes]
    ['P1']
    """
    if not len(drawings):
        raise InvalidInput("Expected at least one drawing, got none.")
    below = [None] * len(drawings) if maps is None else list(maps)
    texts = [""] * len(drawings) if captions is None else list(captions)
    if not len(drawings) == len(below) == len(texts):
        raise InvalidInput(
            f"Expected one entry per drawing, got {len(drawings)} drawings, {len(below)} maps and {len(texts)} "
            "captions."
        )
    shown = None if image is None else style.normalise_image(image)
    shape = drawings[0].height_px / drawings[0].width_px
    count = len(drawings) + (shown is not None)
    columns = min(count, 3 if count <= 6 else 5)
    high = SMALL_SIDE * shape
    top_of_chart = MARGIN + ceil(count / columns) * (high + 2 * LINE) + GAP
    charts = {
        name: np.asarray(values, float) for name, values in (distributions or {}).items() if len(values)
    }
    wide = columns * (SMALL_SIDE + GAP) - GAP
    figure = style.create_figure(
        2 * MARGIN + max(wide, LEAST_CHART if charts else 0),
        top_of_chart + (LINE + ROW * len(charts) + 2.5 * LINE if charts else 0),
    )
    panels = [
        (MARGIN + (at % columns) * (SMALL_SIDE + GAP), MARGIN + LINE + (at // columns) * (high + 2 * LINE))
        for at in range(count)
    ]
    if shown is not None:
        axes = add_axes(figure, *panels.pop(0), SMALL_SIDE, high)
        draw_image(axes, shown)
        set_title(axes, "image", SMALL)
    for drawing, one, text, (left, top) in zip(drawings, below, texts, panels, strict=True):
        axes = add_axes(figure, left, top, SMALL_SIDE, high)
        if one is not None:
            colours = style.colour_labels(style.rasterise(one.layout, one.labels, shape))
            draw_image(axes, PALE + (1 - PALE) * colours)
        else:
            draw_image(axes, np.ones((1, 1)) if shown is None else shown)
        lines = [line / (drawing.width_px, drawing.height_px) for line in drawing.lines]
        style.draw_lines(axes, lines, RED, width=0.9)
        set_title(axes, style.shorten_name(drawing.participant, SMALL_SIDE), SMALL)
        style.write_text(figure, left + SMALL_SIDE / 2, top + high + 0.1, text, size=SMALL - 1)
    if charts:
        across = max(wide, LEAST_CHART) - 1.1
        axes = add_axes(figure, MARGIN + 0.9, top_of_chart + LINE, across, ROW * len(charts))
        style.draw_distributions(axes, charts)
        style.label_axes(axes, "F: all, quartiles and median", "")
    return figure


def _shares(maps: Maps) -> tuple[list[Patch], list[str]]:
    """Return one legend patch per segment, and its letter with its share of the locations."""
    shares = np.bincount(maps.labels, minlength=maps.segments) / len(maps.layout)
    patches = [
        Patch(facecolor=style.segment_colour(k), edgecolor=style.INK, linewidth=0.4)
        for k in range(maps.segments)
    ]
    return patches, [f"{segment_letter(k)}  {share:.0%}" for k, share in enumerate(shares)]


def _two_toned(tone: str) -> Line2D:
    """Return a boundary line for the legend."""
    return Line2D(
        [], [], color=tone, linewidth=1.4, path_effects=[Stroke(linewidth=2.8, foreground="black"), Normal()]
    )
