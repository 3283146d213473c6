"""Figure of a planned study: expected errors over trials, and power over participants."""

from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from vseg.data.layout import Grid
from vseg.figures import style
from vseg.figures.style import INK, LINE_COLOURS, SMALL
from vseg.planning import Forecast
from vseg.planning.forecast_table import TARGET_POWER
from vseg.planning.methods import METHOD_NAMES

COLOURS = {"paper": LINE_COLOURS[1], "posterior": LINE_COLOURS[0], "adaptive": LINE_COLOURS[2]}
BAND = 0.18
LETTERS = 18.0  # of small text in an inch


def forecast(found: Forecast) -> Figure:
    """Draw errors of maps and mean entropies over trials, and power over participants for each number of trials.

    Bands are 95 % intervals over simulated participants. Without a second condition, the lower panels show the error
    of a condition's mean entropy instead.

    Parameters
    ----------
    found : Forecast
        The forecast, such as `vseg.plan_study(...).forecast`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from vseg.planning import Assumptions, forecast as simulate_study
    >>> assumptions = Assumptions(grid=4, segments=2, entropy=0.1, against=0.4)
    >>> len(forecast(simulate_study(assumptions, trials=[32], participants=[5, 20], repeats=10, seed=0)).axes)
    3
    """
    panels = len(found.trials)
    figure = style.create_figure(max(7.2, 2.3 * panels + 0.6), 6.3, auto_layout=True)
    places = figure.add_gridspec(2, 2 * panels)
    _over_trials(figure.add_subplot(places[0, :panels]), found, "error", "error of a map's probability")
    _over_trials(
        figure.add_subplot(places[0, panels:]),
        found,
        "entropy_error",
        "error of a participant's mean\nentropy (nats)",
    )
    first: Axes | None = None
    for number, trials in enumerate(found.trials):
        axes = figure.add_subplot(places[1, 2 * number : 2 * number + 2], sharey=first)
        _over_participants(axes, found, trials)
        first = first or axes
        axes.set_ylabel("" if number else _describe_quantity(found), fontsize=SMALL + 1, color=INK)
        axes.tick_params(labelleft=not number)
    lines = [Line2D([], [], color=COLOURS[method], linewidth=1.8) for method in found.methods]
    names = [METHOD_NAMES[name] for name in found.methods]
    names[-1] += f"   (bands: 95 % intervals over {found.repeats} simulated participants)"
    style.draw_legend(figure, lines, names, loc="outside upper left", ncols=len(lines))
    wide = int(LETTERS * figure.get_size_inches()[0])
    note = "\n".join(fill(part, wide) for part in (_describe_assumptions(found), found.advice))
    figure.supxlabel(note, x=0.01, ha="left", fontsize=SMALL, color=INK, parse_math=False)
    return figure


def _describe_assumptions(found: Forecast) -> str:
    """Describe what was simulated."""
    assumptions = found.assumptions
    against = "" if assumptions.against is None else f" against {assumptions.against:g}"
    return (
        f"Simulated: {assumptions.segments} segments on {Grid(assumptions.grid)}, "
        f"mean entropy {assumptions.entropy:g}{against} nats, "
        f"{assumptions.lapse:.0%} of the trials answered without looking."
    )


def _over_trials(axes: Axes, found: Forecast, column: str, label: str) -> None:
    for method in found.methods:
        rows = _first_of_each(found, method)
        at = [row["trials"] for row in rows]
        _line(axes, at, rows, column, COLOURS[method])
    axes.set_ylim(bottom=0)
    axes.set_xscale("log")
    ticks = [f"{trials}\n{found.minutes[trials]:.0f} min" for trials in found.trials]
    axes.set_xticks(found.trials, ticks)
    axes.xaxis.set_minor_locator(NullLocator())
    style.label_axes(axes, "trials of each participant", label)


def _over_participants(axes: Axes, found: Forecast, trials: int) -> None:
    column = "mean_error" if found.assumptions.against is None else "power"
    for method in found.methods:
        rows = found.table.where(method=method, trials=trials).rows
        _line(axes, [row["participants"] for row in rows], rows, column, COLOURS[method])
    axes.set_xticks(found.participants)
    style.set_title(axes, f"{trials} trials each ({found.minutes[trials]:.0f} min)", SMALL)
    if column == "power":
        axes.axhline(TARGET_POWER, color=INK, linewidth=0.6, zorder=0)
        axes.text(
            0.02, TARGET_POWER + 0.01, f"{TARGET_POWER:.0%}", transform=axes.get_yaxis_transform(), va="bottom",
            fontsize=SMALL, color=INK,
        )  # fmt: skip
        axes.set_ylim(0, 1.02)
    else:
        axes.set_ylim(bottom=0)
    style.label_axes(axes, "participants" if column == "mean_error" else "participants a condition", "")


def _describe_quantity(found: Forecast) -> str:
    if found.assumptions.against is None:
        return "error of the condition's\nmean entropy (nats)"
    return f"power to tell {found.assumptions.entropy:g}\nfrom {found.assumptions.against:g} nats"


def _first_of_each(found: Forecast, method: str) -> list[dict[str, Any]]:
    """Return one row per number of trials; the drawn values do not depend on the number of participants."""
    return found.table.where(method=method, participants=found.participants[0]).rows


def _line(axes: Axes, at: list[int], rows: list[dict[str, Any]], column: str, colour: str) -> None:
    axes.plot(at, [row[column] for row in rows], color=colour, linewidth=1.6, marker="o", markersize=3)
    if f"{column}_low" in rows[0]:
        low, high = ([row[f"{column}_{end}"] for row in rows] for end in ("low", "high"))
        axes.fill_between(at, low, high, color=colour, alpha=BAND, linewidth=0)
    axes.tick_params(labelsize=SMALL)
