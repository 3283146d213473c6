"""Draw the error of every method over the number of trials, and the error that the paper's settings reach."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from reproduction.annotators import METHODS, StudyResult
from reproduction.annotators.methods import PAPER
from reproduction.annotators.result import OBSERVER_LABELS
from vseg.figures import style
from vseg.figures.style import INK, LINE_COLOURS, SMALL

COLOURS = dict(zip(METHODS, (LINE_COLOURS[index] for index in (1, 6, 5, 0, 2, 3)), strict=True))
BAND = 0.15
TICKS = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)


def draw_errors(result: StudyResult) -> Figure:
    """Draw one panel per observer with logarithmic axes; bands are 95 % intervals over photographs.

    The thin line is the error of the paper's settings at the largest number of trials; dots mark where a method
    reaches it.
    """
    figure = style.create_figure(4.1 * len(result.observers) + 0.4, 4.2, auto_layout=True)
    first: Axes | None = None
    for number, observer in enumerate(result.observers, 1):
        axes = figure.add_subplot(1, len(result.observers), number, sharey=first)
        _draw_panel(axes, result, observer)
        axes.tick_params(labelleft=first is None)
        first = first or axes
        style.set_title(axes, f"{observer}: {OBSERVER_LABELS[observer]}")
        style.label_axes(axes, "trials", "mean |estimate - P(same)| over all pairs" if number == 1 else "")
    names = [name for name in METHODS if any(name in result.methods(who) for who in result.observers)]
    lines = [Line2D([], [], color=COLOURS[name], linewidth=1.8) for name in names]
    style.draw_legend(
        figure, lines, [METHODS[name].title for name in names], loc="outside lower center", ncols=3
    )
    return figure


def _draw_panel(axes: Axes, result: StudyResult, observer: str) -> None:
    goal = result.goal(observer)
    axes.axhline(goal, color=INK, linewidth=0.6, zorder=0)
    for name in result.methods(observer):
        rows = result.table.where(observer=observer, method=name).rows
        counts = [row["trials"] for row in rows]
        axes.plot(counts, [row["error"] for row in rows], color=COLOURS[name], linewidth=1.6)
        axes.fill_between(
            counts, [row["low"] for row in rows], [row["high"] for row in rows],
            color=COLOURS[name], alpha=BAND, linewidth=0,
        )  # fmt: skip
        reached = result.trials_needed(observer, name).trials
        if name != PAPER and counts[0] < reached < float("inf"):
            axes.plot([reached], [goal], "o", color=COLOURS[name], markersize=5)
            axes.annotate(
                f"{reached:.0f}", (reached, goal), (3, 3), textcoords="offset points",
                ha="left", fontsize=SMALL, color=COLOURS[name],
            )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(result.trials, [str(count) for count in result.trials])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    low, high = axes.get_ylim()
    axes.set_yticks([tick for tick in TICKS if low < tick < high])
    axes.set_yticklabels([f"{tick:g}" for tick in TICKS if low < tick < high])
    axes.tick_params(labelsize=SMALL)
