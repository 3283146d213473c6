"""Figures of posteriors: maps with their uncertainty, entropies of participants, the evidence of each K."""

from collections.abc import Mapping
from math import ceil
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator
from numpy.typing import NDArray

from vseg.bayes import Posterior, SegmentsTable
from vseg.bayes.segment_evidence import CHOSEN_WITHIN, PLAUSIBLE_WITHIN
from vseg.data.maps import average_entropy
from vseg.errors import InvalidInput
from vseg.evaluation.random_effects import Measurement, estimate_group, measure_entropy
from vseg.figures import style
from vseg.figures.style import (
    GAP,
    LINE,
    MARGIN,
    MEDIUM,
    SMALL,
    add_axes,
    draw_image,
    segment_letter,
    set_title,
    write_text,
)

SIDE, MAX_ACROSS = 1.15, 6  # inches of a panel, and how many stand next to each other
LEFT, STEP = 0.4, SIDE + GAP + LINE
BINS = 16
EVIDENCE_TICKS = (0, -2, -4, -10, -30, -100, -300, -1000)
TITLE_LETTERS = 44  # in a line above the evidence
MAX_NAMED = 20  # participants whose names are written below them


def intervals(posterior: Posterior) -> Figure:
    """Draw the posterior median and its segmentation, the mean entropy at each location, and their uncertainty below.

    Under each probability map stands the width of its intervals, black where it is known and white where anything is
    possible; under the segmentation, the probability that another segment wins the location. The entropy map is the
    mean over the draws; under it stands the mean entropy of all draws, its median and its 90 % interval.

    Parameters
    ----------
    posterior : Posterior
        The result of `vseg.posterior`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

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
    across = min(K + 2, MAX_ACROSS)
    lines = ceil((K + 2) / across)
    figure = style.create_figure(LEFT + across * (SIDE + GAP) + MARGIN, MARGIN + lines * 2 * STEP + LINE)
    for row in range(2 * lines):
        name = "uncertainty" if row % 2 else "median"
        write_text(figure, LEFT / 2, MARGIN + LINE + row * STEP + SIDE / 2, name, size=MEDIUM, rotation=90)

    def place(column: int, row: int) -> tuple[float, float]:
        line, at = divmod(column, across)
        return LEFT + at * (SIDE + GAP), MARGIN + LINE + (2 * line + row) * STEP

    def panel(column: int, row: int, values: NDArray[np.float64], head: str, highest: float = 1.0) -> None:
        axes = add_axes(figure, *place(column, row), SIDE, SIDE)
        draw_image(axes, values, highest=highest)
        set_title(axes, head, SMALL)

    widths = posterior.upper - posterior.lower
    for segment in range(K):
        raster = style.rasterise(layout, maps.probabilities[:, segment])
        panel(segment, 0, style.shade_probabilities(raster, segment), segment_letter(segment))
        width = widths[:, segment].mean()
        head = f"{segment_letter(segment)}: {'< 0.01' if width < 0.005 else f'{width:.2f}'} wide"
        panel(segment, 1, style.rasterise(layout, widths[:, segment]), head)
    wrong = 1 - posterior.argmax_probability[np.arange(len(layout)), maps.labels]
    share = "< 1%" if wrong.mean() < 0.005 else f"{wrong.mean():.0%}"
    panel(K, 0, style.colour_labels(style.rasterise(layout, maps.labels)), "segmentation")
    panel(K, 1, style.rasterise(layout, wrong), f"mislabelled: {share}")
    entropy = style.rasterise(layout, average_entropy(posterior.draws))
    panel(K + 1, 0, entropy, "entropy", style.highest_entropy(K))
    _draw_entropies(figure, posterior, *place(K + 1, 1))
    note = "Wide: 90 % intervals. Mislabelled: probability of another segment. Black: known, white: open."
    write_text(figure, LEFT, MARGIN + lines * 2 * STEP + 0.12, note, size=SMALL - 1, ha="left")
    return figure


def entropies(groups: Mapping[str, Mapping[str, Posterior | Measurement]]) -> Figure:
    """Draw each participant's mean entropy with its 90 % interval, by group, and the groups' means.

    Participants are ordered by entropy; up to 20 are named. Open circles are the estimates under a flat prior, by which
    groups are compared. A group's mean, with its 95 % interval, is that of the open circles, of the filled ones where
    there are no others; it gives more weight to participants with a narrow interval (see
    `vseg.evaluation.random_effects`) and needs two participants.

    Parameters
    ----------
    groups : dict of dict of Posterior or Measurement
        The posteriors of each group's participants, by name; a group with the name "" is not named in the figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from vseg.evaluation.random_effects import Measurement
    >>> low = {"Ann": Measurement(0.1, 0.02, 0.07, 0.14), "Bob": Measurement(0.2, 0.03, 0.15, 0.26)}
    >>> entropies({"low": low, "high": low}).axes[0].get_ylabel()
    'mean entropy (nats)'
    """
    if not groups or not all(groups.values()):
        raise InvalidInput("Expected one or more groups with at least one participant each.")
    named = sum(map(len, groups.values())) <= MAX_NAMED
    widths = [len(members) + 3 for members in groups.values()]
    figure = style.create_figure(
        min(max(0.9 + 0.14 * sum(widths), 2.8), 14.0), 3.0 + 0.5 * named, auto_layout=True
    )
    axes, starts = figure.add_subplot(), np.cumsum([0, *widths])
    for number, (start, members) in enumerate(zip(starts, groups.values(), strict=False)):
        measured = sorted(measure_entropy(one) for one in members.values())
        _draw_group(axes, float(start), measured, style.LINE_COLOURS[number % len(style.LINE_COLOURS)])
    axes.set_xlim(-1, starts[-1] - 1)
    axes.set_ylim(bottom=0)
    several = any(len(members) > 1 for members in groups.values())
    everyone = [measure_entropy(one) for members in groups.values() for one in members.values()]
    has_intervals, has_flat = (
        not np.isnan([getattr(one, name) for one in everyone]).all() for name in ("low", "flat")
    )
    note = "● a participant" + ", 90 % interval" * has_intervals
    note += "\n○ the same under a flat prior" * has_flat
    note += f"\n◆ the group's mean{' of ○' * has_flat}, 95 % interval" * several
    style.label_axes(axes, note, "mean entropy (nats)")
    axes.xaxis.label.set_fontsize(SMALL)
    _write_names(axes, groups, starts, named=named)
    return figure


def _write_names(
    axes: Axes,
    groups: Mapping[str, Mapping[str, Posterior | Measurement]],
    starts: NDArray[np.int_],
    *,
    named: bool,
) -> None:
    """Write participants' names below the axis and groups' above; with many participants only the groups', below."""
    heads = [
        f"{style.wrap_name(str(name), 1.1)}\nn = {len(members)}".strip() for name, members in groups.items()
    ]
    middles = [
        start + (len(members) + 1) / 2 for start, members in zip(starts, groups.values(), strict=False)
    ]
    axes.tick_params(axis="x", length=0)
    if not named:
        axes.set_xticks(middles, heads, parse_math=False)
        return
    for middle, head in zip(middles, heads, strict=True):
        axes.annotate(
            head, (middle, 1.02), xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=SMALL,
            color=style.INK, parse_math=False,
        )  # fmt: skip
    places, names = [], []
    for start, members in zip(starts, groups.values(), strict=False):
        for at, name in enumerate(sorted(members, key=lambda one: measure_entropy(members[one]))):
            places.append(start + at)
            names.append(style.shorten_name(str(name), 0.8))
    axes.set_xticks(places, names, parse_math=False, rotation=90, fontsize=SMALL - 1)


def _draw_group(axes: Axes, start: float, measured: list[Measurement], colour: str) -> None:
    at = start + np.arange(len(measured))
    values, low, high = (
        np.array([getattr(one, name) for one in measured]) for name in ("value", "low", "high")
    )
    axes.vlines(at, low, high, color=colour, linewidth=1.2, alpha=0.6)
    axes.scatter(at, values, s=14, color=colour, linewidth=0, zorder=2)
    flat = np.array([one.flat for one in measured])
    if not np.isnan(flat).all():
        axes.scatter(at, flat, s=16, facecolor="none", edgecolor=colour, linewidth=0.9, zorder=3)
    if len(measured) > 1:
        from scipy.special import stdtrit

        group = estimate_group(*zip(*(one.without_prior for one in measured), strict=True))
        reach = group.standard_error * float(stdtrit(group.count - 1, 0.975))
        axes.errorbar(
            at[-1] + 1.3, group.mean, yerr=reach, fmt="D", color=style.INK, markersize=5, capsize=3, linewidth=1.2,
        )  # fmt: skip


def evidence(table: SegmentsTable) -> Figure:
    """Draw the log evidence of each K relative to the best; the chosen K is filled.

    The chosen K is the smallest within 2 nats of the best; within 4, in the grey band, K is plausible. Below the band
    the axis is logarithmic, as its label says.

    Parameters
    ----------
    table : SegmentsTable
        The evidence of each number of segments, as in the table of a posterior.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    each = table.rows()
    counts = np.array([row["segments"] for row in each])
    below = np.array([-row["below_best"] for row in each])
    figure = style.create_figure(3.6, 2.8, auto_layout=True)
    axes = figure.add_subplot()
    axes.axhspan(-PLAUSIBLE_WITHIN, 0, color="#E4E4E4", linewidth=0)
    axes.axhline(-CHOSEN_WITHIN, color=style.INK, linewidth=0.5, linestyle=":")
    axes.plot(counts, below, color=style.LINE_COLOURS[0], linewidth=1.2, marker="o", markerfacecolor="white")
    chosen = counts == table.chosen
    axes.plot(counts[chosen], below[chosen], "o", color=style.LINE_COLOURS[0], markersize=8)
    axes.set_yscale("symlog", linthresh=PLAUSIBLE_WITHIN)
    axes.set_ylim(min(below.min() * 1.3, -2 * PLAUSIBLE_WITHIN), 1)
    axes.set_yticks([at for at in EVIDENCE_TICKS if at >= min(below.min() * 1.3, -10)])
    axes.yaxis.set_major_formatter(lambda value, _: _format_signed(value))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    scale = f"nats; logarithmic below {_format_signed(-PLAUSIBLE_WITHIN)}"
    style.label_axes(axes, "segments K", f"log evidence below the best\n({scale})")
    title = f"chosen: {table.chosen}, plausible (grey): {table.plausible_text}"
    set_title(axes, fill(title, TITLE_LETTERS), SMALL)
    return figure


def _format_signed(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _draw_entropies(figure: Figure, posterior: Posterior, left: float, top: float) -> None:
    axes = add_axes(figure, left + 0.06, top + 0.05, SIDE - 0.12, SIDE - 0.35)
    axes.hist(posterior.entropies, BINS, color="#9A9A9A")
    low, high = posterior.entropy_interval
    for at, line in ((posterior.entropy, "-"), (low, ":"), (high, ":")):
        axes.axvline(at, color=style.INK, linewidth=1, linestyle=line)
    axes.set_yticks([])
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.tick_params(labelsize=SMALL - 1, length=2, width=0.5, pad=2, colors=style.INK)
    axes.set_xlabel("mean entropy (nats)", fontsize=SMALL - 1, labelpad=2, color=style.INK)
    entropy = style.format_interval(posterior.entropy, low, high)
    set_title(axes, entropy, SMALL - (len(entropy) > style.MANY_LETTERS))
