"""How the texture experiment is drawn: mean maps, sizes of the effect, and every participant's entropy map."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing
from reproduction.paper.claims import interval
from reproduction.paper.estimators import COLOURS, LABELS, MARKERS
from reproduction.paper.people import CONDITIONS, PARTICIPANTS
from reproduction.paper.texture import BELIEF, contour_score, mean_maps
from vseg.data.maps import Maps
from vseg.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

SHOWN = ("paper_plain", "ours_plain")  # as in the paper, without regularisation
SIDE, TINY = 1.13, 0.52
LEFT, WIDTH = 0.35, 9.6
CHARTS_TOP, PEOPLE_TOP = 3.45, 6.3
RED = "#FF5A4F"
PRINTED_D = 1.003
NAMES = {BELIEF: "beliefs", **LABELS}
TONES = {BELIEF: "#555555", **COLOURS}
SIGNS = {BELIEF: "P", **MARKERS}
Example = dict[str, NDArray[np.float64]]


def drawn(table: "Table", example: Example) -> "Figure":
    """The whole sheet, from top to bottom."""
    figure = style.sheet(WIDTH, PEOPLE_TOP + 4 * (TINY + 0.2) + 0.75)
    for row, condition in enumerate(CONDITIONS):
        _mean_maps(figure, 0.5 + row * (SIDE + 0.22), condition, example, first=row == 0)
    for column, draw_chart in enumerate((_effects, _entropies, _scores)):
        draw_chart(style.axes_at(figure, 0.95 + column * 3.1, CHARTS_TOP, 2.3, 2.05), table)
    _everybody(figure, example)
    return figure


def _group(example: Example, name: str, condition: str) -> list[Maps]:
    first = example[f"{name}_{condition}"]
    return [drawing.as_maps(np.stack([one, 1 - one], axis=2)) for one in first]


def _mean_maps(figure: "Figure", top: float, condition: str, example: Example, *, first: bool) -> None:
    truth = drawing.as_maps(example[f"truth_{condition}"])
    style.write(figure, LEFT / 2, top + SIDE / 2, f"{condition} uncertainty", rotation=90)
    places = [
        LEFT + column * (SIDE + 0.08) + (0.12 if column else 0) + (0.12 if column > 3 else 0)
        for column in range(7)
    ]
    image = style.axes_at(figure, places[0], top, SIDE, SIDE)
    style.picture(image, example[f"image_{condition}"])
    panels: list[tuple[Axes, str]] = [(image, "picture")]
    for number, name in enumerate(SHOWN):
        group = _group(example, name, condition)
        mean, field = mean_maps(group), np.mean([one.entropy for one in group], axis=0)
        each = np.array([one.mean_entropy for one in group])
        at = places[1 + 3 * number : 4 + 3 * number]
        axes = [style.axes_at(figure, left, top, SIDE, SIDE) for left in at]
        style.picture(axes[0], style.painted(style.raster(mean.layout, mean.labels)))
        style.picture(axes[1], style.shaded(mean.image[..., 0], 0))
        style.picture(axes[2], style.raster(mean.layout, field), highest=float(np.log(2)))
        error = 3 * each.std(ddof=1) / np.sqrt(len(each))
        style.write(
            figure, at[2] + SIDE / 2, top + SIDE + 0.09, f"{each.mean():.2f} ± {error:.2f} nats", size=7
        )
        panels += list(zip(axes, ("segments", "P(first texture)", "entropy"), strict=True))
        if first:
            style.write(
                figure,
                at[1] + SIDE / 2,
                0.14,
                f"{LABELS[name]}: mean of {len(group)} people, ± 3 s.e.",
                size=style.MEDIUM,
            )
    for panel, text in panels:
        style.draw_boundaries(panel, truth, tone=RED, width=0.9)
        if first:
            style.title(panel, text, style.SMALL)


def _effects(axes: "Axes", table: "Table") -> None:
    """Cohen's d: where 95 % of the replications lie, and their mean."""
    for place, name in enumerate(NAMES):
        d = table.column("d", estimator=name)
        low, high = np.quantile(d, [0.025, 0.975])
        axes.plot([low, high], [place, place], color=TONES[name], linewidth=2, solid_capstyle="butt")
        axes.plot(d.mean(), place, marker=SIGNS[name], color=TONES[name], markersize=6)
    axes.axvline(PRINTED_D, color=style.INK, linewidth=1, linestyle="--")
    axes.annotate("  the paper's people", (PRINTED_D, -0.75), fontsize=7, va="center", color=style.INK)
    axes.axvline(0, color=style.INK, linewidth=0.6)
    axes.set_yticks(range(len(NAMES)), list(NAMES.values()))
    axes.set_ylim(len(NAMES) - 0.4, -1.05)
    style.plain(axes, "Cohen's d, high minus low uncertainty", "")
    style.title(axes, "Effect: mean and 95 % of replications", style.SMALL)


def _entropies(axes: "Axes", table: "Table") -> None:
    _by_condition(axes, table, "entropy", NAMES)
    style.plain(axes, "", "mean entropy (nats)")
    axes.set_ylim(bottom=0)
    style.title(axes, "Entropy: mean and its 95 % interval", style.SMALL)


def _scores(axes: "Axes", table: "Table") -> None:
    _by_condition(axes, table, "f", NAMES)
    style.plain(axes, "", "F of contours")
    axes.set_ylim(0, 1.02)
    style.title(axes, "Contours against the true one (S5)", style.SMALL)
    axes.legend(fontsize=7, frameon=False, loc="lower left", handlelength=1.6, labelspacing=0.3)


def _by_condition(axes: "Axes", table: "Table", value: str, names: dict[str, str]) -> None:
    for number, name in enumerate(names):
        found = [interval(table.column(f"{value}_{c}", estimator=name)) for c in CONDITIONS]
        mean, low, high = np.array(found).T
        x = np.arange(2) + 0.05 * (number - 2)
        style_of_line: dict[str, Any] = {
            "linestyle": "--" if name.endswith("plain") else "-",
            "linewidth": 1.2,
        }
        axes.errorbar(
            x, mean, [mean - low, high - mean], color=TONES[name], marker=SIGNS[name], markersize=4.5, capsize=2,
            label=names[name], **style_of_line,
        )  # fmt: skip
    axes.set_xticks(range(2), [f"{c} uncertainty" for c in CONDITIONS])
    axes.set_xlim(-0.4, 1.4)


def _everybody(figure: "Figure", example: Example) -> None:
    """S5: a row a condition and estimator, a panel a participant, under their own contour; F below it."""
    top = PEOPLE_TOP + 0.1
    step = (WIDTH - 1.15) / PARTICIPANTS
    style.write(
        figure,
        WIDTH / 2,
        PEOPLE_TOP - 0.12,
        "Entropy map and contour of each participant; F of the contour below",
        size=style.MEDIUM,
    )
    for row, (condition, name) in enumerate((c, n) for c in CONDITIONS for n in SHOWN):
        at = top + row * (TINY + 0.2) + (0.08 if row > 1 else 0)
        style.write(figure, 0.42, at + TINY / 2, f"{condition}\n{LABELS[name]}", size=7)
        truth = drawing.as_maps(example[f"truth_{condition}"])
        for number, one in enumerate(_group(example, name, condition)):
            left = 0.9 + number * step
            axes = style.axes_at(figure, left, at, TINY, TINY)
            style.picture(axes, style.raster(one.layout, one.entropy), highest=float(np.log(2)))
            style.draw_boundaries(axes, one, tone=RED, width=0.6)
            style.write(figure, left + TINY / 2, at + TINY + 0.07, f"{contour_score(one, truth):.2f}", size=6)
    bar = style.axes_at(figure, WIDTH / 2 - 1, top + 4 * (TINY + 0.2) + 0.14, 2, 0.12)
    style.entropy_bar(figure, bar, float(np.log(2)))
