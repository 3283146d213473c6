"""How natural images are drawn: a row a photograph with the paper's maps and ours, and the error over all pairs."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing
from reproduction.paper.claims import interval
from reproduction.paper.estimators import COLOURS, MARKERS
from reproduction.paper.natural import LAYOUT, SEGMENTS, TRIED
from vseg.data.maps import Maps
from vseg.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAMES = {"paper": "paper, K = 5, λ = 5", "five": "vseg, K = 5", "ours": "vseg, K and λ chosen"}
TONES = {"paper": COLOURS["paper"], "five": COLOURS["ours_plain"], "ours": COLOURS["ours"]}
SIGNS = {"paper": MARKERS["paper"], "five": MARKERS["ours_plain"], "ours": MARKERS["ours"]}
SHOWN = ("paper", "ours")
SIDE, STEP, WIDTH = 0.56, 0.59, 11.2
FIRST, TOP = 0.75, 0.5
ROOM = {"paper": SEGMENTS, "ours": max(TRIED)}
Example = dict[str, NDArray[np.float64]]


def drawn(table: "Table", example: Example) -> "Figure":
    """The maps of every photograph, then two charts."""
    images = list(dict.fromkeys(table.column("image").tolist()))
    charts = TOP + len(images) * STEP + 0.75
    figure = style.sheet(WIDTH, charts + 2.55)
    for row, image in enumerate(images):
        _row(figure, TOP + row * STEP, image, example)
    _keys(figure, TOP + len(images) * STEP + 0.04)
    _heads(figure)
    error = style.axes_at(figure, 0.75, charts, 5.6, 1.75)
    _error(error, table, images)
    _numbers(style.axes_at(figure, 7.1, charts, 3.7, 1.75), table, images)
    return figure


def _row(figure: "Figure", top: float, image: str, example: Example) -> None:
    style.write(figure, FIRST - 0.06, top + SIDE / 2, image, size=7, ha="right")
    for column in range(2):
        axes = style.axes_at(figure, FIRST + column * STEP, top, SIDE, SIDE)
        style.picture(axes, example[f"{image}/image"])
    for labels in example[f"{image}/observers"].astype(np.int64):
        style.draw_boundaries(axes, Maps.one_hot(LAYOUT, labels), tone="#FFD24D", width=0.35)
    paper = drawing.as_maps(example[f"{image}/paper"])
    paper = paper.permute(np.argsort(-paper.probabilities.sum(axis=0)))
    ours = drawing.as_maps(example[f"{image}/ours"]).align_to(paper)
    for fit, maps in zip(SHOWN, (paper, ours), strict=True):
        _fit(figure, _left(fit), top, maps, ROOM[fit])


def _left(fit: str) -> float:
    return FIRST + 2 * STEP + 0.1 + (0 if fit == "paper" else (ROOM["paper"] + 2) * STEP + 0.15)


def _fit(figure: "Figure", left: float, top: float, maps: Maps, room: int) -> None:
    """Probability maps (none for segments that a smaller K does without), the segmentation and the entropy."""
    pictures = {
        k: style.shaded(maps.image[..., k], k) for k in range(maps.segments) if maps.probabilities[:, k].any()
    }
    pictures[room] = style.painted(style.raster(maps.layout, maps.labels))
    for column, pixels in pictures.items():
        style.picture(style.axes_at(figure, left + column * STEP, top, SIDE, SIDE), pixels)
    axes = style.axes_at(figure, left + (room + 1) * STEP, top, SIDE, SIDE)
    style.picture(axes, style.raster(maps.layout, maps.entropy), highest=float(np.log(SEGMENTS)))


def _heads(figure: "Figure") -> None:
    """What the columns are."""
    heads = [(FIRST, "image"), (FIRST + STEP, "observers")]
    for fit in SHOWN:
        texts = [*(style.letter(k) for k in range(ROOM[fit])), "segments", "entropy"]
        heads += [(_left(fit) + column * STEP, text) for column, text in enumerate(texts)]
        middle = _left(fit) + (ROOM[fit] + 2) * STEP / 2
        style.write(figure, middle, 0.14, NAMES[fit], size=style.MEDIUM)
    for left, text in heads:
        style.write(figure, left + SIDE / 2, TOP - 0.09, text, size=7)


def _keys(figure: "Figure", top: float) -> None:
    drawing.probability_key(figure, FIRST + 3.2 * STEP, top, SEGMENTS)
    style.entropy_bar(
        figure, style.axes_at(figure, FIRST + 12 * STEP, top, 1.8, 0.13), float(np.log(SEGMENTS))
    )


def _error(axes: "Axes", table: "Table", images: list[str]) -> None:
    for number, (fit, label) in enumerate(NAMES.items()):
        _dots(axes, table, "error", fit, images, number, label)
    _named(axes, images)
    drawing.finished(axes, "", "mean error of P(same)", key=None)
    axes.legend(fontsize=7, frameon=False, ncols=3, loc="lower left", handlelength=1)
    style.title(axes, "Error over all pairs, same answers: mean and its 95 % interval", style.SMALL)


def _numbers(axes: "Axes", table: "Table", images: list[str]) -> None:
    used = [table.column("used", image=image).mean() for image in images]
    axes.plot(
        range(len(images)),
        used,
        linestyle="none",
        marker="_",
        markersize=12,
        color=style.INK,
        label="used by observers",
    )
    _dots(axes, table, "won", "paper", images, 0, "paper: maps not empty")
    _dots(axes, table, "segments", "ours", images, 2, "vseg: K chosen")
    _named(axes, images)
    drawing.finished(axes, "", "number of segments", key=None)
    axes.set_ylim(0, max(*used, 6) * 1.35)
    axes.legend(fontsize=7, frameon=False, loc="upper left", ncols=3, columnspacing=0.8, handletextpad=0.2)
    style.title(axes, "Number of segments: mean and its 95 % interval", style.SMALL)


def _dots(
    axes: "Axes", table: "Table", value: str, fit: str, images: list[str], number: int, label: str
) -> None:
    found = np.array([interval(table.column(value, fit=fit, image=image)) for image in images])
    mean, low, high = found.T
    axes.errorbar(
        np.arange(len(images)) + 0.18 * (number - 1), mean, [mean - low, high - mean], linestyle="none",
        color=TONES[fit], marker=SIGNS[fit], markersize=4.5, capsize=2, linewidth=1.3, label=label,
    )  # fmt: skip


def _named(axes: "Axes", images: list[str]) -> None:
    turned = 0 if len(images) <= 5 else 45
    axes.set_xticks(range(len(images)), images, rotation=turned, ha="center" if not turned else "right")
    axes.set_xlim(-0.6, len(images) - 0.4)
