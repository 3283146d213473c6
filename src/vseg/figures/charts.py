"""Figures of numbers: error curves, conditions compared, cross-validation and designs."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from vseg.data.layout import as_floats
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput
from vseg.figures import style
from vseg.figures.style import INK, LINE_COLOURS, LINE_STYLES, MEDIUM, SMALL

RESAMPLES = 1000
HELD_OUT = "held-out log-likelihood\n(nats per trial)"


def curves(
    x: ArrayLike, curves: Mapping[str, ArrayLike], xlabel: str, ylabel: str, *, seed: int, log: str = ""
) -> Figure:
    """Draw the mean of each curve over its runs, with a 95 % bootstrap interval over runs.

    Parameters
    ----------
    x : array_like, shape (m,)
        The values on the horizontal axis.
    curves : mapping from str to array_like, shape (runs, m) or (m,)
        A single run has no interval. The key lists the names in the order of the curves' right ends.
    xlabel, ylabel : str
        With their units.
    seed : int
        Of the bootstrap.
    log : {"", "x", "y", "xy"}
        Which axes are logarithmic.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> errors = {"λ = 0": [[0.3, 0.2], [0.4, 0.1]], "λ = 10": [[0.2, 0.1], [0.2, 0.1]]}
    >>> curves([1, 10], errors, "blocks", "MAE", seed=0, log="x").axes[0].get_xscale()
    'log'
    """
    across, runs = _check_curves(x, curves)
    if log not in ("", "x", "y", "xy"):
        raise InvalidInput(f"Expected log to be '', 'x', 'y' or 'xy', got {log!r}.")
    figure = style.create_figure(5.2, 3.2, auto_layout=True)
    axes = figure.add_subplot()
    rng = np.random.default_rng(seed)
    for number, values in enumerate(runs.values()):
        colour = LINE_COLOURS[number % len(LINE_COLOURS)]
        dashes = LINE_STYLES[number // len(LINE_COLOURS) % len(LINE_STYLES)]
        axes.plot(across, values.mean(axis=0), color=colour, linestyle=dashes, linewidth=1.6)
        if len(values) > 1:
            axes.fill_between(across, *_bootstrap_interval(values, rng), color=colour, alpha=0.2, linewidth=0)
    if "x" in log:
        axes.set_xscale("log")
        _plain_decades(axes.xaxis, across)
    if "y" in log:
        axes.set_yscale("log")
        _plain_decades(axes.yaxis, np.concatenate([values.mean(axis=0) for values in runs.values()]))
    style.label_axes(axes, xlabel, ylabel)
    _draw_legend(figure, axes, list(runs), [values[:, -1].mean() for values in runs.values()])
    return figure


def groups(groups: Mapping[str, ArrayLike], ylabel: str) -> Figure:
    """Draw conditions side by side: one dot per participant, the mean and its 95 % interval (Student's t).

    Parameters
    ----------
    groups : mapping from names to array_like
        One value per participant of each condition.
    ylabel : str
        Label of the vertical axis.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> axes = groups({"low": [0.1, 0.2], "high": [0.4, 0.6]}, "mean entropy (nats)").axes[0]
    >>> [label.get_text().splitlines() for label in axes.get_xticklabels()]
    [['low', 'n = 2'], ['high', 'n = 2']]
    """
    if not groups:
        raise InvalidInput("Expected at least one group of values, got none.")
    figure = style.create_figure(1.0 + 1.2 * max(len(groups), 2), 3.0, auto_layout=True)
    axes = figure.add_subplot()
    for at, (name, given) in enumerate(groups.items()):
        values = _check_finite(given, f"group {name!r}")
        if values.ndim != 1 or not len(values):
            raise InvalidInput(f"Group {name!r} is a list of one value or more, got shape {values.shape}.")
        colour = LINE_COLOURS[at % len(LINE_COLOURS)]
        axes.scatter(at - 0.12 + _spread(values), values, s=18, color=colour, alpha=0.6, linewidth=0)
        axes.errorbar(
            at + 0.2, values.mean(), yerr=_t_interval(values), fmt="D", color=INK, markersize=5, capsize=3,
            linewidth=1.2,
        )  # fmt: skip
    counts = [f"{style.wrap_name(str(name), 1.1)}\nn = {np.size(given)}" for name, given in groups.items()]
    axes.set_xticks(range(len(groups)), counts, parse_math=False)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    style.label_axes(axes, "◆ mean and 95 % interval", ylabel)
    axes.xaxis.label.set_fontsize(SMALL)
    return figure


def smoothness_curve(
    smoothnesses: ArrayLike,
    held_out: ArrayLike,
    chosen: float,
    *,
    kernel: str = "",
    others: Mapping[str, ArrayLike] = MappingProxyType({}),
    ylabel: str = HELD_OUT,
) -> Figure:
    """Draw the cross-validation curve over the smoothness λ; λ = 0 is separated at the left of the log axis.

    Parameters
    ----------
    smoothnesses : array_like, shape (m,)
        Increasing or not; 0 may be among them.
    held_out : array_like, shape (folds, m) or (m,)
        The score of each fold; the band is the mean ± 1 standard error over folds.
    chosen : float
        One of the smoothnesses.
    kernel : str
        The kernel that was chosen too, named in the title.
    others : mapping from str to array_like, shape (folds, m) or (m,)
        The scores of the kernels that were not chosen, drawn as thin lines.
    ylabel : str
        Label of the vertical axis.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> smoothness_curve([0, 1, 10], [[-0.6, -0.5, -0.55], [-0.7, -0.5, -0.6]], chosen=1).axes[0].get_title()
    'chosen λ = 1'
    """
    given, scores = _check_folds(smoothnesses, held_out, "smoothness")
    if given.min() < 0 or not (given > 0).any():
        raise InvalidInput(
            f"Smoothnesses are 0 or more and at least one is above 0, got {given.tolist()!r:.80}."
        )
    at_chosen = _position(given, chosen, "smoothness")
    order = np.argsort(given)
    given, scores, at_chosen = given[order], scores[:, order], int(np.argsort(order)[at_chosen])
    x, apart = _on_log_axis(given)
    figure = style.create_figure(4.6, 3.0, auto_layout=True)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    _band(axes, x[given > 0], scores[:, given > 0])
    if apart is not None:
        _band(axes, x[:1], scores[:, :1])
        _mark_zero(axes, apart, given[given > 0])
    else:
        _plain_decades(axes.xaxis, given)
    _mark(axes, x[at_chosen], scores[:, at_chosen].mean())
    lines = []
    for number, curve in enumerate((_check_curves(given, others)[1] if others else {}).values()):
        mean, colour = curve.mean(axis=0)[order], LINE_COLOURS[(number + 2) % len(LINE_COLOURS)]
        lines += axes.plot(x[given > 0], mean[given > 0], color=colour, linewidth=0.9)
        axes.plot(x[given == 0], mean[given == 0], marker="o", markersize=2.5, color=colour)
    if others:
        style.draw_legend(figure, [axes.lines[0], *lines], [kernel, *others], loc="outside right upper")
    style.set_title(axes, f"chosen λ = {given[at_chosen]:g}" + (f", kernel {kernel}" if kernel else ""))
    style.label_axes(axes, "smoothness λ", ylabel)
    return figure


def segments(
    segments: ArrayLike,
    held_out: ArrayLike,
    winning: ArrayLike,
    chosen: int | None = None,
    *,
    ylabel: str = HELD_OUT,
) -> Figure:
    """Draw the held-out score and the number of maps that win a location against K.

    Below the dashed line some maps are empty: the paper (S3) takes the largest K that leaves none empty.

    Parameters
    ----------
    segments : array_like of int, shape (m,)
        The K that were tried.
    held_out : array_like, shape (folds, m) or (m,)
        The score of each fold, or of all together.
    winning : array_like of int, shape (m,)
        The number of winning maps for each K.
    chosen : int, optional
        Marked in both panels.
    ylabel : str
        Label of the vertical axis of the scores.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> len(segments([2, 3, 4], [-0.6, -0.5, -0.52], [2, 3, 3], chosen=3).axes)
    2
    """
    K, scores = _check_folds(segments, held_out, "number of segments")
    won = _check_finite(winning, "winning")
    if won.shape != K.shape:
        raise InvalidInput(f"Expected {len(K)} numbers of winning maps, got shape {won.shape}.")
    order = np.argsort(K)
    at_chosen = None if chosen is None else _position(K, chosen, "number of segments")
    figure = style.create_figure(6.6, 2.8, auto_layout=True)
    left, right = figure.subplots(1, 2)
    _band(left, K[order], scores[:, order])
    right.plot([K.min(), K.max()], [K.min(), K.max()], linestyle="--", color="#888888", linewidth=1)
    right.plot(K[order], won[order], marker="o", markersize=4, color=LINE_COLOURS[0], linewidth=1.4)
    style.label_axes(left, "segments K", ylabel)
    style.label_axes(right, "segments K (dashed: all win)", "winning maps")
    right.yaxis.set_major_locator(MaxNLocator(integer=True))
    for axes, height in ((left, scores.mean(axis=0)), (right, won)):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if at_chosen is not None:
            _mark(axes, K[at_chosen], height[at_chosen])
    if at_chosen is not None:
        figure.suptitle(f"chosen K = {K[at_chosen]:g}", fontsize=MEDIUM, color=INK)
    return figure


def design(pairs: Pairs, image: ArrayLike | None = None) -> Figure:
    """Draw the tested pairs as lines between their locations, and the number of partners of each location.

    Parameters
    ----------
    pairs : Pairs
        The tested pairs.
    image : array_like, shape (H, W) or (H, W, 3), optional
        The image to draw on.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from vseg import Grid, Pairs
    >>> [axes.get_title() for axes in design(Pairs(Grid(3), [0, 1], [8, 7])).axes]
    ['2 pairs on a 3x3 grid', 'partners']
    """
    if not isinstance(pairs, Pairs):
        raise InvalidInput(f"Expected Pairs to draw, got {type(pairs).__name__}.")
    shown = None if image is None else style.normalise_image(image)
    figure = style.create_figure(6.4, 3.2, auto_layout=True)
    left, right = figure.subplots(1, 2)
    _draw_pairs(left, pairs, shown)
    most = int(pairs.partners.max(initial=0))
    step = max(1, most // 30)
    edges = np.arange(-0.5, most + 0.5 + step, step)
    right.hist(pairs.partners, bins=edges.tolist(), color=LINE_COLOURS[0], rwidth=0.9)
    style.set_title(right, "partners")
    right.set_xlim(-1, most + 1)
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.yaxis.set_major_locator(MaxNLocator(integer=True))
    style.label_axes(right, "partners of a location", "number of locations")
    return figure


def _draw_pairs(axes: Axes, pairs: Pairs, shown: NDArray[np.float64] | None) -> None:
    where = pairs.layout.positions
    if shown is not None:
        axes.imshow(shown, cmap="gray", vmin=0, vmax=1, extent=(0, 1, 1, 0), aspect="auto")
    ends = np.stack([where[pairs.i], where[pairs.j]], axis=1)
    # Fainter as they become many, so that where the lines gather still shows.
    strength = float(np.clip(60 / np.sqrt(len(pairs) + 1) / 10, 0.03, 0.6))
    lines = LineCollection(
        list(ends), colors=LINE_COLOURS[1], linewidths=0.5, alpha=strength, rasterized=True
    )
    axes.add_collection(lines, autolim=False)
    axes.scatter(where[:, 0], where[:, 1], s=min(2000 / len(where), 12), color=INK, linewidth=0, zorder=3)
    axes.set(
        xlim=(0, 1), ylim=(1, 0), box_aspect=style.image_shape(shown), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1]
    )
    style.set_title(axes, f"{len(pairs)} pairs on {pairs.layout}")
    style.label_axes(axes, "x (fraction of the image's width)", "y (fraction of its height)")


def _band(axes: Axes, x: NDArray[np.float64], scores: NDArray[np.float64]) -> None:
    """Draw the mean over folds with its points, and ± 1 standard error if there are several folds."""
    mean = scores.mean(axis=0)
    axes.plot(x, mean, marker="o", markersize=4, color=LINE_COLOURS[0], linewidth=1.4)
    if len(scores) < 2:
        return
    error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
    if len(x) > 1:
        axes.fill_between(x, mean - error, mean + error, color=LINE_COLOURS[0], alpha=0.2, linewidth=0)
    else:
        axes.errorbar(x, mean, yerr=error, color=LINE_COLOURS[0], capsize=3, linewidth=1.2)


def _mark(axes: Axes, x: float, y: float) -> None:
    """Mark the chosen value by a ring and a line down to the axis."""
    axes.axvline(x, color=LINE_COLOURS[1], linewidth=1, linestyle=":", zorder=0)
    axes.plot(
        [x],
        [y],
        marker="o",
        markersize=10,
        markerfacecolor="none",
        color=LINE_COLOURS[1],
        markeredgewidth=1.6,
    )


def _on_log_axis(smoothnesses: NDArray[np.float64]) -> tuple[NDArray[np.float64], float | None]:
    """Return sorted positions on a log axis; 0 is placed left of the smallest positive value, after a gap."""
    above = smoothnesses[smoothnesses > 0]
    if len(above) == len(smoothnesses):
        return smoothnesses, None
    decades = max(np.log10(above[-1] / above[0]), 1)
    apart = float(above[0] * 10 ** (-max(decades * 0.15, 0.3)))
    return np.concatenate([np.full(len(smoothnesses) - len(above), apart), above]), apart


def _mark_zero(axes: Axes, apart: float, above: NDArray[np.float64]) -> None:
    """Draw a tick '0', an axis break after it, and ticks at the decades, or at both ends if there are none."""
    axes.set_xlim(apart * 0.75, above[-1] * 1.3)
    low, high = axes.get_xlim()
    first = float(np.sqrt(apart * above[0]))
    decades = 10.0 ** np.arange(np.ceil(np.log10(above[0])), np.floor(np.log10(above[-1])) + 1)
    ticks = decades if len(decades) > 1 else np.unique(above[[0, -1]])
    axes.set_xticks([apart, *ticks], ["0", *(f"{tick:g}" for tick in ticks)])
    axes.xaxis.set_minor_locator(NullLocator())
    middle = np.log(first / low) / np.log(high / low)
    axes.text(
        middle, 0, "//", transform=axes.transAxes, ha="center", va="center", fontsize=MEDIUM, color=INK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5}, zorder=5,
    )  # fmt: skip


def _plain_decades(axis: Axis, values: NDArray[np.float64]) -> None:
    """Label 1, 2 and 5 of each decade, or only the decades if there are many."""
    if values.min() <= 0:
        raise InvalidInput(f"A logarithmic axis takes values above 0, got {values.min():g}.")
    decades = np.log10(values.max() / values.min())
    steps = (1.0, 2.0, 5.0) if decades < 3.5 else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps) if decades > 1 else MaxNLocator(6))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def _draw_legend(figure: Figure, axes: Axes, names: list[str], ends: list[float]) -> None:
    """Write the curves' names beside the axes, in the order of their right ends; a single name goes above."""
    if len(names) == 1:
        style.set_title(axes, names[0])
        return
    order = np.argsort(ends)[::-1]
    handles = [axes.lines[at] for at in order]
    style.draw_legend(figure, handles, [names[at] for at in order], loc="outside right upper")


def _bootstrap_interval(
    values: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the 2.5 % and 97.5 % quantiles of the mean over resampled runs."""
    # How often each run is drawn, so that no (resamples, runs, m) array is made.
    runs = len(values)
    drawn = rng.multinomial(runs, np.full(runs, 1 / runs), size=RESAMPLES) / runs
    low, high = np.quantile(drawn @ values, [0.025, 0.975], axis=0)
    return low, high


def _t_interval(values: NDArray[np.float64]) -> float:
    """Return half the width of the 95 % interval of the mean; 0 for a single value."""
    from scipy.stats import t

    if len(values) < 2:
        return 0.0
    return float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))


def _spread(values: NDArray[np.float64], width: float = 0.3) -> NDArray[np.float64]:
    """Return horizontal shifts that separate similar values: by rank, over five columns, without randomness."""
    rank = np.argsort(np.argsort(values, kind="stable"))
    return (np.array([0, 0.5, -0.5, 0.25, -0.25])[rank % 5]) * width


def _check_curves(
    x: ArrayLike, curves: Mapping[str, ArrayLike]
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    across = _check_finite(x, "x")
    if across.ndim != 1 or not len(across):
        raise InvalidInput(f"x is a list of one value or more, got shape {across.shape}.")
    if not isinstance(curves, Mapping) or not curves:
        raise InvalidInput(f"Expected curves as a mapping from name to runs, got {curves!r:.80}.")
    runs = {
        str(name): np.atleast_2d(_check_finite(given, f"curve {name!r}")) for name, given in curves.items()
    }
    for name, values in runs.items():
        if values.ndim != 2 or values.shape[1] != len(across) or not len(values):
            raise InvalidInput(
                f"Curve {name!r} has shape (runs, {len(across)}), one column for each x, got {values.shape}."
            )
    return across, runs


def _check_folds(
    x: ArrayLike, held_out: ArrayLike, what: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    tried, scores = _check_finite(x, what), np.atleast_2d(_check_finite(held_out, "held_out"))
    if tried.ndim != 1 or not len(tried):
        raise InvalidInput(f"Expected one {what} or more, got shape {tried.shape}.")
    if scores.ndim != 2 or scores.shape[1] != len(tried):
        raise InvalidInput(
            f"Expected held-out scores of shape (folds, {len(tried)}), one column for each {what}, "
            f"got {scores.shape}."
        )
    return tried, scores


def _position(tried: NDArray[np.float64], chosen: float, what: str) -> int:
    found = np.flatnonzero(np.isclose(tried, chosen))
    if not len(found):
        raise InvalidInput(f"The chosen {what} {chosen!r} is not among those tried: {tried.tolist()!r:.80}.")
    return int(found[0])


def _check_finite(values: ArrayLike, what: str) -> NDArray[np.float64]:
    given = as_floats(values, what)
    if not np.isfinite(given).all():
        raise InvalidInput(f"Expected finite numbers for {what}, some are NaN or infinite.")
    return given
