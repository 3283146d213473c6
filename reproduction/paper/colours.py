"""Parametric maps: the probabilities of segments from the colour of each location, by the logistic model of Eq. 10.

The colours of a segment are a Gaussian cloud and a location's label is drawn from its probabilities; the paper does not
print its generator, so this one is ours. What can be reached at all is what an ideal observer of the colours, who knows
the clouds, says of each location. Between two clouds of one width, the plane that separates them best stands at right
angles to the line between their means.
"""

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, parametric, simulation
from reproduction.paper.claims import Claim, interval, judged, spoken
from reproduction.paper.estimators import COLOURS, MARKERS
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.evaluation import metrics
from vseg.figures import style
from vseg.models import LinearModel, Task, logistic
from vseg.stimuli import colour_image
from vseg.stimuli.colours import PALETTE, ColourImage
from vseg.stimuli.random_maps import softmax

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "colours"
TITLE = "Parametric maps of colours"
WHERE = "Figure 8"
AMPLITUDES = (float("inf"), 20.0, 6.0)
SETTINGS = {"amplitude": AMPLITUDES}

SEGMENTS, SIZE, XI, BLOCKS, SPREAD = 3, 48, 10.0, 10, 0.1
STRENGTH = 1.0  # the paper's λ here
FITS = ("paper", "ours", "squared")
MEANS = PALETTE[:SEGMENTS]
CLOSE = 0.02  # to the ideal observer's error
AGREED = 0.95
BETWEEN = ((0, 1), (0, 2), (1, 2))


def truth(amplitude: float) -> Maps:
    """Maps of S2; an infinite amplitude gives one-hot maps."""
    return simulation.truth(size=SIZE, segments=SEGMENTS, amplitude=amplitude, xi=XI)


@cache
def shown(amplitude: float) -> ColourImage:
    """The picture: one colour a location."""
    return colour_image(truth(amplitude), spread=SPREAD, seed=1)


def ideal(amplitude: float) -> Maps:
    """What an observer who knows the clouds and the segments' shares says of each colour."""
    picture = shown(amplitude)
    far = ((picture.features[:, None] - MEANS) ** 2).sum(axis=2)
    share = truth(amplitude).probabilities.mean(axis=0)
    return Maps(picture.layout, softmax(-far / (2 * SPREAD**2) + np.log(share)))


def share(*, amplitude: float) -> float:
    """Each of our two fits to 69,120 answers takes up to half a second."""
    return 0.05


def trial(*, amplitude: float, seed: int) -> list[dict[str, Any]]:
    """One resample: errors and planes of the paper's fit, of ours, and of ours with the paper's loss."""
    tally = simulation.answered(truth(amplitude), blocks=BLOCKS, seed=seed)
    found = _fitted(amplitude, tally, seed)
    best = ideal(amplitude)
    return [
        {
            "fit": fit,
            "mae": metrics.mae(one.maps, truth(amplitude)),
            "ideal": metrics.mae(best, truth(amplitude)),
            "agreement": float(np.mean(one.maps.labels == best.labels)),
            "angle": angle(one.weights),
        }
        for fit, one in found.items()
    ]


class Planes(NamedTuple):
    """A fit: its maps, and the weights (K, 3) and offsets (K,) of its logits, segments named as in the truth."""

    maps: Maps
    weights: NDArray[np.float64]
    offsets: NDArray[np.float64]


def _fitted(amplitude: float, tally: Tally, seed: int) -> dict[str, Planes]:
    features, wanted = shown(amplitude).features, truth(amplitude)
    paper = parametric.logistic(features, tally, SEGMENTS, strength=STRENGTH, seed=seed)
    task = Task(simulation.one_by_one(tally), segments=SEGMENTS)
    fits = {
        "paper": Planes(paper.maps, paper.weights, paper.offsets),
        "ours": _planes_of(logistic({"image": features})(task, seed=seed)),
        "squared": _planes_of(logistic({"image": features}, loss="squared_error")(task, seed=seed)),
    }
    found = {}
    for fit, (maps, weights, offsets) in fits.items():
        order = maps.matching_order(wanted)
        found[fit] = Planes(maps.permute(order), weights[order], offsets[order])
    return found


def _planes_of(fit: LinearModel) -> Planes:
    """A logit is linear in the colour: its offset is what black has, its weights what each channel adds."""
    logits = fit.design(np.concatenate([np.zeros((1, 3)), np.eye(3)])) @ fit.theta
    return Planes(fit.maps("image"), (logits[1:] - logits[0]).T, logits[0])


def angle(weights: NDArray[np.float64]) -> float:
    """Mean angle in degrees between the separating planes' normals and the lines between the clouds' means.

    Examples
    --------
    >>> angle(MEANS) < 0.001
    True
    """
    found = []
    for a, b in BETWEEN:
        normal, line = weights[a] - weights[b], MEANS[a] - MEANS[b]
        cosine = normal @ line / np.linalg.norm(normal) / np.linalg.norm(line)
        found.append(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    return float(np.mean(found))


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """Truth, picture, ideal observer and fits at the first and the last amplitude; weights for the planes."""
    found: dict[str, NDArray[np.float64]] = {}
    for name, amplitude in (("certain", AMPLITUDES[0]), ("uncertain", AMPLITUDES[-1])):
        found[f"truth_{name}"] = truth(amplitude).image
        found[f"picture_{name}"] = shown(amplitude).image
        found[f"ideal_{name}"] = ideal(amplitude).image
        tally = simulation.answered(truth(amplitude), blocks=BLOCKS, seed=seed)
        for fit, one in _fitted(amplitude, tally, seed).items():
            found[f"{fit}_{name}"] = one.maps.image
            found[f"{fit}_weights_{name}"] = one.weights
            found[f"{fit}_offsets_{name}"] = one.offsets
    return found


def claims(table: "Table") -> list[Claim]:
    """What the paper says about its colour simulation."""
    return [_recovered(table), _planes(table)]


def _recovered(table: "Table") -> Claim:
    def said(fit: str) -> str:
        return "; ".join(f"{spoken(interval(_of(table, 'mae', fit, a)))} {_certainty(a)}" for a in AMPLITUDES)

    ideals = ", ".join(f"{_of(table, 'ideal', 'paper', a).mean():.3f}" for a in AMPLITUDES)
    near = [interval(_of(table, "mae", "paper", a) - _of(table, "ideal", "paper", a)) for a in AMPLITUDES]
    close = [high < CLOSE for _, _, high in near]
    return judged(
        "The parametric model recovers the maps up to the noise of the colours.",
        paper=f"MAE {said('paper')}; the ideal observer, who knows the colours' distributions: {ideals}",
        ours=f"{said('ours')} by the likelihood of the answers, which pays for confident mistakes with softer maps; "
        f"with the paper's squared error: {said('squared')}",
        holds=all(close),
        holds_if=any(close),
        condition=f"the maps are {_where(close)}: there the error is within {CLOSE} of the ideal observer's, elsewhere "
        f"up to {max(near)[0]:.2f} above it",
        reason=f"the error is more than {CLOSE} above the ideal observer's even where maps are certain",
    )


def _planes(table: "Table") -> Claim:
    def said(fit: str) -> str:
        return "; ".join(
            f"{spoken(interval(_of(table, 'agreement', fit, a)))} and "
            f"{spoken(interval(_of(table, 'angle', fit, a)), 1)}° {_certainty(a)}"
            for a in AMPLITUDES
        )

    found = [interval(_of(table, "agreement", "paper", a))[1] > AGREED for a in AMPLITUDES]
    return judged(
        "Segments are told apart by planes in the space of colours.",
        paper=f"locations labelled as by the ideal observer, and the planes' angle to the best ones: {said('paper')}",
        ours=said("ours"),
        holds=all(found),
        holds_if=any(found),
        condition=f"the maps are {_where(found)}",
        reason=f"fewer than {AGREED:.0%} of the locations have the label of the ideal observer",
    )


def _where(fine: list[bool]) -> str:
    return " or ".join(_certainty(a) for a, each in zip(AMPLITUDES, fine, strict=True) if each)


def _certainty(amplitude: float) -> str:
    return {AMPLITUDES[0]: "certain", AMPLITUDES[1]: "nearly certain"}.get(amplitude, "uncertain")


def _of(table: "Table", value: str, fit: str, amplitude: float) -> NDArray[np.float64]:
    return table.column(value, fit=fit, amplitude=amplitude)


TRUTHS = {"certain": "certain maps", "uncertain": "uncertain maps"}
NAMES = {"paper": "paper (SE, λ = 1)", "ours": "vseg, default"}
LEGEND = {**NAMES, "squared": "vseg, SE"}
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


def draw(table: "Table", example: Example) -> "Figure":
    """Maps of the truth and of both fits, colours with the planes between them, and errors over certainty."""
    figure = style.sheet(WIDTH, CHARTS_TOP + 2.75)
    for number, (name, title) in enumerate(TRUTHS.items()):
        left = 0.4 + number * 5.0
        style.write(figure, left + 2.35 * SIDE, 0.12, title, size=style.MEDIUM)
        axes = style.axes_at(figure, left + 4 * (SIDE + style.GAP) - 0.02, 0.42, SIDE, SIDE)
        style.picture(axes, example[f"picture_{name}"])
        style.title(axes, "colours", style.SMALL)
        for row, (fit, label) in enumerate(ROWS.items()):
            _draw_map_row(
                figure,
                left,
                0.42 + row * (SIDE + 0.1),
                drawing.as_maps(example[f"{fit}_{name}"]),
                label,
                first=not row,
            )
        colours = style.axes_at(figure, 0.6 + number * 2.4, CHARTS_TOP, 2.0, 2.0)
        _draw_colours(colours, example, name, title)
    _draw_key(figure)
    _draw_errors(style.axes_at(figure, 6.1, CHARTS_TOP, 1.65, 2.0), table)
    _draw_angles(style.axes_at(figure, 8.4, CHARTS_TOP, 1.65, 2.0), table)
    return figure


def _draw_map_row(figure: "Figure", left: float, top: float, maps: Maps, label: str, *, first: bool) -> None:
    """A row: the probability of each segment, then the segmentation."""
    style.write(figure, left - 0.1, top + SIDE / 2, label, rotation=90)
    shown = [(style.shade(maps.image[..., k], k), style.letter(k)) for k in range(maps.segments)]
    shown.append((style.paint(style.raster(maps.layout, maps.labels)), "segments"))
    for column, (pixels, title) in enumerate(shown):
        axes = style.axes_at(figure, left + column * (SIDE + style.GAP), top, SIDE, SIDE)
        style.picture(axes, pixels)
        if first:
            style.title(axes, title, style.SMALL)


def _colour_plane() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The middle of the clouds, and two directions (2, 3) that span the plane through their means."""
    middle = MEANS.mean(axis=0)
    return middle, np.linalg.svd(MEANS - middle)[2][:2]


def _draw_colours(axes: "Axes", example: Example, name: str, title: str) -> None:
    """Every location's colour in the plane through the three means, and where segments' planes cut it."""
    middle, axis = _colour_plane()
    pixels = example[f"picture_{name}"].reshape(-1, 3)
    x, y = ((pixels - middle) @ axis.T).T
    axes.scatter(x, y, c=pixels, s=3, linewidths=0)
    reach = 0.62
    for fit, (tone, dashes) in LINES.items():
        weights, offsets = _load_planes(example, fit, name)
        for a, b in BETWEEN:
            normal, offset = axis @ (weights[a] - weights[b]), offsets[a] - offsets[b]
            _draw_half_line(
                axes,
                normal,
                offset,
                axis @ (weights[_third_segment(a, b)] - weights[a]),
                offsets[_third_segment(a, b)] - offsets[a],
                reach,
                tone,
                dashes,
            )
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
    axes.set_xlabel("plane through the three mean colours", fontsize=style.SMALL, color=style.INK)
    style.title(axes, title, style.SMALL)


def _load_planes(example: Example, fit: str, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights (K, 3) and offsets (K,) of the logits around the middle of the clouds."""
    middle, _ = _colour_plane()
    if fit == "ideal":
        share = example[f"truth_{name}"].mean(axis=(0, 1))
        weights = MEANS / SPREAD**2
        offsets = -0.5 * np.sum(MEANS**2, axis=1) / SPREAD**2 + np.log(share)
    else:
        weights, offsets = example[f"{fit}_weights_{name}"], example[f"{fit}_offsets_{name}"]
    return weights, offsets + weights @ middle


def _third_segment(a: int, b: int) -> int:
    return SEGMENTS - a - b


def _draw_half_line(
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


def _draw_key(figure: "Figure") -> None:
    from matplotlib.lines import Line2D

    names = {"ideal": "ideal observer", **NAMES}
    handles = [Line2D([], [], color=LINES[fit][0], linestyle=LINES[fit][1], linewidth=1.5) for fit in names]
    across, down = figure.get_size_inches()
    place = (2.7 / across, 1 - (CHARTS_TOP + 2.45) / down)
    style.key(figure, handles, list(names.values()), loc="center", bbox_to_anchor=place, ncols=3)


def _draw_errors(axes: "Axes", table: "Table") -> None:
    ideal = [table.column("ideal", amplitude=a).mean() for a in AMPLITUDES]
    axes.plot(
        range(3), ideal, color="#222222", linestyle=":", marker="x", linewidth=1.2, label="ideal observer"
    )
    _draw_by_certainty(axes, table, "mae")
    drawing.finished(axes, "", "MAE (L1 a location)", key=None)
    axes.legend(fontsize=7, frameon=False, loc="upper left", handlelength=2.6)
    style.title(axes, "Error: mean, 95 % interval", style.SMALL)


def _draw_angles(axes: "Axes", table: "Table") -> None:
    _draw_by_certainty(axes, table, "angle")
    drawing.finished(axes, "", "degrees to the best planes", key=None)
    style.title(axes, "Angle: mean, 95 % interval", style.SMALL)


def _draw_by_certainty(axes: "Axes", table: "Table", value: str) -> None:
    for number, fit in enumerate(FITS):
        found = np.array([interval(table.column(value, fit=fit, amplitude=a)) for a in AMPLITUDES])
        mean, low, high = found.T
        axes.errorbar(
            np.arange(3) + 0.1 * (number - 1), mean, [mean - low, high - mean], color=TONES[fit],
            marker=SIGNS[fit], markersize=4.5, capsize=2, linewidth=1.3, linestyle="--" if fit == "paper" else "-",
            label=LEGEND[fit],
        )  # fmt: skip
    axes.set_xticks(range(3), ["certain", "nearly", "uncertain"])
    axes.set_xlim(-0.4, 2.4)
