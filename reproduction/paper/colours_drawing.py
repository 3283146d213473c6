"""How the parametric colours are drawn: maps, the colours with the planes between segments, errors over certainty."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing
from reproduction.paper.claims import interval
from reproduction.paper.colours import AMPLITUDES, BETWEEN, FITS, MEANS, SEGMENTS, SPREAD
from reproduction.paper.estimators import COLOURS, MARKERS
from vseg.data.maps import Maps
from vseg.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

TRUTHS = {"certain": "certain maps", "uncertain": "uncertain maps"}
NAMES = {"paper": "paper (SE, λ = 1)", "ours": "vseg, default"}
ALL_NAMES = {**NAMES, "squared": "vseg, SE"}
TONES = {"paper": COLOURS["paper"], "ours": COLOURS["ours"], "squared": COLOURS["ours_plain"]}
SIGNS = {"paper": MARKERS["paper"], "ours": MARKERS["ours"], "squared": MARKERS["ours_plain"]}
ROWS = {"truth": "truth", "ideal": "ideal observer", "paper": "paper", "ours": "vseg"}
LINES: dict[str, Any] = {
    "ideal": ("#222222", ":"),
    "paper": (COLOURS["paper"], "--"),
    "ours": (COLOURS["ours"], "-"),
}
SIDE, WIDTH = 0.86, 10.2
CHARTS_TOP = 4.55
Example = dict[str, NDArray[np.float64]]


def drawn(table: "Table", example: Example) -> "Figure":
    """Maps above, colours and errors below."""
    figure = style.sheet(WIDTH, CHARTS_TOP + 2.75)
    for number, (name, title) in enumerate(TRUTHS.items()):
        left = 0.4 + number * 5.0
        style.write(figure, left + 2.35 * SIDE, 0.12, title, size=style.MEDIUM)
        axes = style.axes_at(figure, left + 4 * (SIDE + style.GAP) - 0.02, 0.42, SIDE, SIDE)
        style.picture(axes, example[f"picture_{name}"])
        style.title(axes, "colours", style.SMALL)
        for row, (fit, label) in enumerate(ROWS.items()):
            _maps(
                figure,
                left,
                0.42 + row * (SIDE + 0.1),
                drawing.as_maps(example[f"{fit}_{name}"]),
                label,
                first=not row,
            )
        colours = style.axes_at(figure, 0.6 + number * 2.4, CHARTS_TOP, 2.0, 2.0)
        _colours(colours, example, name, title)
    _planes_key(figure)
    _errors(style.axes_at(figure, 6.1, CHARTS_TOP, 1.65, 2.0), table)
    _angles(style.axes_at(figure, 8.4, CHARTS_TOP, 1.65, 2.0), table)
    return figure


def _maps(figure: "Figure", left: float, top: float, maps: Maps, label: str, *, first: bool) -> None:
    """A row: the probability of each segment, then the segmentation."""
    style.write(figure, left - 0.1, top + SIDE / 2, label, rotation=90)
    shown = [(style.shaded(maps.image[..., k], k), style.letter(k)) for k in range(maps.segments)]
    shown.append((style.painted(style.raster(maps.layout, maps.labels)), "segments"))
    for column, (pixels, title) in enumerate(shown):
        axes = style.axes_at(figure, left + column * (SIDE + style.GAP), top, SIDE, SIDE)
        style.picture(axes, pixels)
        if first:
            style.title(axes, title, style.SMALL)


def _flat() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The middle of the clouds, and two directions (2, 3) that span the plane through their means."""
    middle = MEANS.mean(axis=0)
    return middle, np.linalg.svd(MEANS - middle)[2][:2]


def _colours(axes: "Axes", example: Example, name: str, title: str) -> None:
    """Every location's colour in the plane through the three means, and where segments' planes cut it."""
    middle, axis = _flat()
    pixels = example[f"picture_{name}"].reshape(-1, 3)
    x, y = ((pixels - middle) @ axis.T).T
    axes.scatter(x, y, c=pixels, s=3, linewidths=0)
    reach = 0.62
    for fit, (tone, dashes) in LINES.items():
        weights, offsets = _planes(example, fit, name)
        for a, b in BETWEEN:
            normal, offset = axis @ (weights[a] - weights[b]), offsets[a] - offsets[b]
            _half_line(
                axes,
                normal,
                offset,
                axis @ (weights[_other(a, b)] - weights[a]),
                offsets[_other(a, b)] - offsets[a],
                reach,
                tone,
                dashes,
            )
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
    axes.set_xlabel("plane through the three mean colours", fontsize=style.SMALL, color=style.INK)
    style.title(axes, title, style.SMALL)


def _planes(example: Example, fit: str, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights (K, 3) and offsets (K,) of the logits around the middle of the clouds."""
    middle, _ = _flat()
    if fit == "ideal":
        share = example[f"truth_{name}"].mean(axis=(0, 1))
        weights = MEANS / SPREAD**2
        offsets = -0.5 * np.sum(MEANS**2, axis=1) / SPREAD**2 + np.log(share)
    else:
        weights, offsets = example[f"{fit}_weights_{name}"], example[f"{fit}_offsets_{name}"]
    return weights, offsets + weights @ middle


def _other(a: int, b: int) -> int:
    return SEGMENTS - a - b


def _half_line(
    axes: "Axes",
    normal: NDArray[np.float64],
    offset: float,
    rival: NDArray[np.float64],
    rival_offset: float,
    reach: float,
    tone: str,
    dashes: str,
) -> None:
    """Where two segments are as likely, as long as the third is less so."""
    foot = -offset * normal / (normal @ normal)
    along = np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
    points = foot + np.linspace(-3 * reach, 3 * reach, 1200)[:, None] * along
    shown = points[points @ rival + rival_offset < 0]
    axes.plot(*shown.T, color=tone, linestyle=dashes, linewidth=1.3)


def _planes_key(figure: "Figure") -> None:
    from matplotlib.lines import Line2D

    names = {"ideal": "ideal observer", **NAMES}
    handles = [Line2D([], [], color=LINES[fit][0], linestyle=LINES[fit][1], linewidth=1.5) for fit in names]
    across, down = figure.get_size_inches()
    place = (2.7 / across, 1 - (CHARTS_TOP + 2.45) / down)
    style.key(figure, handles, list(names.values()), loc="center", bbox_to_anchor=place, ncols=3)


def _errors(axes: "Axes", table: "Table") -> None:
    ideal = [table.column("ideal", amplitude=a).mean() for a in AMPLITUDES]
    axes.plot(
        range(3), ideal, color="#222222", linestyle=":", marker="x", linewidth=1.2, label="ideal observer"
    )
    _by_certainty(axes, table, "mae")
    drawing.finished(axes, "", "MAE (L1 a location)", key=None)
    axes.legend(fontsize=7, frameon=False, loc="upper left", handlelength=2.6)
    style.title(axes, "Error: mean, 95 % interval", style.SMALL)


def _angles(axes: "Axes", table: "Table") -> None:
    _by_certainty(axes, table, "angle")
    drawing.finished(axes, "", "degrees to the best planes", key=None)
    style.title(axes, "Angle: mean, 95 % interval", style.SMALL)


def _by_certainty(axes: "Axes", table: "Table", value: str) -> None:
    for number, fit in enumerate(FITS):
        found = np.array([interval(table.column(value, fit=fit, amplitude=a)) for a in AMPLITUDES])
        mean, low, high = found.T
        axes.errorbar(
            np.arange(3) + 0.1 * (number - 1), mean, [mean - low, high - mean], color=TONES[fit],
            marker=SIGNS[fit], markersize=4.5, capsize=2, linewidth=1.3, linestyle="--" if fit == "paper" else "-",
            label=ALL_NAMES[fit],
        )  # fmt: skip
    axes.set_xticks(range(3), ["certain", "nearly", "uncertain"])
    axes.set_xlim(-0.4, 2.4)
