"""How the differential variance is drawn: curves over orientations beside those of shuffled answers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper.claims import DRAWS, interval
from reproduction.paper.people import CONDITIONS
from reproduction.paper.variance import (
    ANSWERS,
    BANDS_DEG,
    EVEN,
    FITS,
    WAYS,
    group_curves,
    over_groups,
    share_near,
    width,
)
from vseg.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

TONES = {"given": "#0072B2", "shuffled": "#D55E00", "truth": "#333333"}
LINES: dict[str, Any] = {"given": "-", "shuffled": "--"}
SAID = {"given": "answers as given", "shuffled": "the same answers, shuffled"}
TITLES = {
    "ones": "paper, σ\nfrom 1",
    "ones_log": "paper, log σ\nfrom 1",
    "energies": "paper, σ\nfrom the energies",
    "energies_log": "paper, log σ\nfrom the energies",
    "ours": "vseg\nω₁ - ω₂",
}
TICKS = {
    "ones": "σ\nfrom 1",
    "ones_log": "log σ\nfrom 1",
    "energies": "σ from\nenergies",
    "energies_log": "log σ from\nenergies",
    "ours": "vseg\nω₁ - ω₂",
}
SIDE, HIGH, STEP = 1.25, 1.25, 1.66
LEFT, CHARTS_TOP = 2.3, 4.75
Example = dict[str, NDArray[np.float64]]


def drawn(table: "Table", example: Example) -> "Figure":
    """Two rows of curves, the key, and three charts of all resamples."""
    figure = style.sheet(LEFT + len(FITS) * STEP, CHARTS_TOP + 2.5)
    for row, condition in enumerate(CONDITIONS):
        _row(figure, 0.6 + row * (HIGH + 0.3), condition, example, first=row == 0)
    _key(figure)
    curves = {
        (fit, condition, answers): group_curves(table, fit, condition, answers)
        for fit in FITS
        for condition in CONDITIONS
        for answers in ANSWERS
    }
    places = [
        style.axes_at(figure, left, CHARTS_TOP, wide, 1.75)
        for left, wide in ((0.8, 3.2), (5.0, 3.5), (9.6, 0.8))
    ]
    near = {
        (fit, answers): over_groups(np.concatenate([share_near(curves[fit, c, answers]) for c in CONDITIONS]))
        for fit in WAYS
        for answers in ANSWERS
    }
    _dots(places[0], near, list(WAYS))
    places[0].axhline(EVEN, color=style.INK, linewidth=0.8, linestyle=":")
    places[0].set_ylim(0, 1.05)
    style.plain(places[0], "", "share within 20° of 90°")
    style.title(places[0], "Weight around 90°: 95 % of groups of 15 (dotted: flat)", style.SMALL)
    wider = {
        (fit, answers): over_groups(width(curves[fit, "high", answers]) - width(curves[fit, "low", answers]))
        for fit in FITS
        for answers in ANSWERS
    }
    _dots(places[1], wider, list(FITS))
    places[1].axhline(0, color=style.INK, linewidth=0.8, linestyle=":")
    style.plain(places[1], "", "high minus low (degrees)")
    style.title(places[1], "Width of the bump: 95 % of groups of 15", style.SMALL)
    _dots(places[2], {("ours", a): interval(table.column("nonzero", answers=a)) for a in ANSWERS}, ["ours"])
    places[2].set_ylim(bottom=0)
    style.plain(places[2], "", "share of orientations")
    style.title(places[2], "95 % interval\nleaves out 0", style.SMALL)
    return figure


def _row(figure: "Figure", top: float, condition: str, example: Example, *, first: bool) -> None:
    picture = style.axes_at(figure, 0.3, top, SIDE, SIDE)
    style.picture(picture, example[f"image_{condition}"])
    style.write(figure, 0.15, top + SIDE / 2, f"{condition} uncertainty", rotation=90)
    if first:
        style.title(picture, "picture", style.SMALL)
    for column, fit in enumerate(FITS):
        axes = style.axes_at(figure, LEFT + column * STEP + (0.12 if fit == "ours" else 0), top, SIDE, HIGH)
        truth = (
            example[f"weights_{condition}"]
            if fit == "ours"
            else np.subtract(*example[f"energies_{condition}"])
        )
        _curve(
            axes,
            {answers: example[f"{fit}_{condition}_{answers}"] for answers in ANSWERS},
            truth,
            fit != "ours",
        )
        axes.set_xticks([0, 90, 180])
        style.plain(axes, "" if first else "orientation (deg)", "")
        if first:
            style.title(axes, TITLES[fit], style.SMALL)
    style.write(figure, LEFT - 0.55, top + HIGH / 2, "σ₁² - σ₂²", rotation=90, size=style.MEDIUM)


def _curve(
    axes: "Axes", people: Mapping[str, NDArray[np.float64]], truth: NDArray[np.float64], scaled: bool
) -> None:
    """Means over people with their 95 % bands; what is true, at the height of the given curve if `scaled`."""
    rng = np.random.default_rng(0)
    axes.axhline(0, color=style.INK, linewidth=0.5)
    for answers, each in people.items():
        drawn_means = each[rng.integers(len(each), size=(DRAWS, len(each)))].mean(axis=1)
        low, high = np.quantile(drawn_means, [0.025, 0.975], axis=0)
        axes.fill_between(BANDS_DEG, low, high, color=TONES[answers], alpha=0.25, linewidth=0)
        axes.plot(BANDS_DEG, each.mean(axis=0), color=TONES[answers], linestyle=LINES[answers], linewidth=1.4)
    peak = np.abs(people["given"].mean(axis=0)).max() / np.abs(truth).max() if scaled else 1.0
    axes.plot(BANDS_DEG, truth * peak, color=TONES["truth"], linestyle=":", linewidth=1.2)
    axes.tick_params(labelsize=7)


def _key(figure: "Figure") -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=TONES[a], linestyle=LINES[a], linewidth=1.6) for a in ANSWERS]
    handles.append(Line2D([], [], color=TONES["truth"], linestyle=":", linewidth=1.4))
    names = [*SAID.values(), "truth: energies of the textures (scaled); for vseg, the observers' weights"]
    down = figure.get_size_inches()[1]
    style.key(figure, handles, names, loc="center", bbox_to_anchor=(0.5, 1 - 4.14 / down), ncols=3)


def _dots(axes: "Axes", found: Mapping[tuple[str, str], tuple[float, float, float]], fits: list[str]) -> None:
    for number, answers in enumerate(ANSWERS):
        mean, low, high = np.array([found[fit, answers] for fit in fits]).T
        axes.errorbar(
            np.arange(len(fits)) + 0.16 * (number - 0.5), mean, [mean - low, high - mean], linestyle="none",
            color=TONES[answers], marker="os"[number], markersize=5, capsize=2.5, linewidth=1.4,
        )  # fmt: skip
    axes.set_xticks(range(len(fits)), [TICKS[fit] for fit in fits])
    axes.set_xlim(-0.6, len(fits) - 0.4)
