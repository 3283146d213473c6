"""Figure 8: parametric maps, which predict segment probabilities from colours with the logistic model of Eq. 10.

The colours of a segment have a Gaussian distribution, and the label of a location is drawn from its probabilities; the
paper does not print its generator, so this one is ours. The best possible result is that of an ideal observer who knows
the distributions. For two Gaussians of equal width, the normal of the optimal separating plane is parallel to the line
between their means.
"""

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, parametric, simulation
from reproduction.paper.claims import Claim, format_interval, interval, judge
from reproduction.paper.estimators import COLOURS, FAST, MARKERS, SLOW
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
SETTINGS = {"amplitude": AMPLITUDES, "fits": (FAST, SLOW)}

SEGMENTS, SIZE, XI, BLOCKS, SPREAD = 3, 48, 10.0, 10, 0.1
STRENGTH = 1.0  # the paper's λ here
FITS = ("paper", "ours", "squared")
PARTS = {FAST: FITS[:1], SLOW: FITS[1:]}
RUN = (
    f"N = {SIZE}, K = {SEGMENTS}, KN² pairs, N_b = {BLOCKS}, σ_f = ∞, 20 and 6, ξ = {XI:g}, colours of s.d. {SPREAD}; "
    f"paper: squared error, λ = {STRENGTH:g}, L-BFGS (no learning rate) from one random start"
)
MEANS = PALETTE[:SEGMENTS]
MAX_EXCESS_ERROR = 0.02  # above the ideal observer's error
MIN_AGREEMENT = 0.95
SEGMENT_PAIRS = ((0, 1), (0, 2), (1, 2))


def truth(amplitude: float) -> Maps:
    """Return maps as in S2; an infinite amplitude gives one-hot maps."""
    return simulation.truth(size=SIZE, segments=SEGMENTS, amplitude=amplitude, xi=XI)


@cache
def make_image(amplitude: float) -> ColourImage:
    """Return the image, which has one colour per location."""
    return colour_image(truth(amplitude), spread=SPREAD, seed=1)


def ideal_observer(amplitude: float) -> Maps:
    """Return the maps of an observer who knows the colour distributions and the sizes of the segments."""
    image = make_image(amplitude)
    squared_distance = ((image.features[:, None] - MEANS) ** 2).sum(axis=2)
    share = truth(amplitude).probabilities.mean(axis=0)
    return Maps(image.layout, softmax(-squared_distance / (2 * SPREAD**2) + np.log(share)))


def share(*, amplitude: float, fits: str) -> float:
    """Return the share of the resamples: each of our two fits to 69,120 answers takes a tenth of a second."""
    return 1.0 if fits == FAST else 0.05


def trial(*, amplitude: float, fits: str, seed: int) -> list[dict[str, Any]]:
    """Run one resample; return the scores of the paper's fit, of vseg's, and of vseg's with the paper's loss."""
    tally = simulation.simulate_tally(truth(amplitude), blocks=BLOCKS, seed=seed)
    best = ideal_observer(amplitude)
    return [
        {
            "fit": fit,
            "mae": metrics.mae(planes.maps, truth(amplitude)),
            "ideal": metrics.mae(best, truth(amplitude)),
            "agreement": float(np.mean(planes.maps.labels == best.labels)),
            "angle": mean_plane_angle(planes.weights),
        }
        for fit, planes in _fit_all(amplitude, tally, seed, PARTS[fits]).items()
    ]


class PlaneFit(NamedTuple):
    """Maps of a fit, and the weights (K, 3) and offsets (K,) of its logits; segments are ordered as in the truth."""

    maps: Maps
    weights: NDArray[np.float64]
    offsets: NDArray[np.float64]


def _fit_all(amplitude: float, tally: Tally, seed: int, names: tuple[str, ...] = FITS) -> dict[str, PlaneFit]:
    true = truth(amplitude)
    aligned = {}
    for fit in names:
        maps, weights, offsets = _fit(fit, make_image(amplitude).features, tally, seed)
        order = maps.matching_order(true)
        aligned[fit] = PlaneFit(maps.permute(order), weights[order], offsets[order])
    return aligned


def _fit(fit: str, features: NDArray[np.float64], tally: Tally, seed: int) -> PlaneFit:
    if fit == "paper":
        paper = parametric.fit_logistic(features, tally, SEGMENTS, strength=STRENGTH, seed=seed)
        return PlaneFit(paper.maps, paper.weights, paper.offsets)
    task = Task(simulation.expand_tally(tally), segments=SEGMENTS)
    options: dict[str, Any] = {"loss": "squared_error"} if fit == "squared" else {}
    return _planes_from_model(logistic({"image": features}, **options)(task, seed=seed))


def _planes_from_model(fit: LinearModel) -> PlaneFit:
    """Return the planes of a model whose logits are linear in the colour.

    The offset is the logit of black; a weight is the increase along a colour channel.
    """
    logits = fit.design(np.concatenate([np.zeros((1, 3)), np.eye(3)])) @ fit.theta
    return PlaneFit(fit.maps("image"), (logits[1:] - logits[0]).T, logits[0])


def mean_plane_angle(weights: NDArray[np.float64]) -> float:
    """Return the mean angle in degrees between the normals of the planes and the lines between the mean colours.

    Examples
    --------
    >>> mean_plane_angle(MEANS) < 0.001
    True
    """
    angles = []
    for a, b in SEGMENT_PAIRS:
        normal, line = weights[a] - weights[b], MEANS[a] - MEANS[b]
        cosine = normal @ line / np.linalg.norm(normal) / np.linalg.norm(line)
        angles.append(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    return float(np.mean(angles))


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """Return the truth, image, ideal observer, maps and planes at the first and the last amplitude."""
    arrays: Example = {}
    for name, amplitude in (("certain", AMPLITUDES[0]), ("uncertain", AMPLITUDES[-1])):
        arrays[f"truth_{name}"] = truth(amplitude).image
        arrays[f"picture_{name}"] = make_image(amplitude).image
        arrays[f"ideal_{name}"] = ideal_observer(amplitude).image
        tally = simulation.simulate_tally(truth(amplitude), blocks=BLOCKS, seed=seed)
        for fit, planes in _fit_all(amplitude, tally, seed).items():
            arrays[f"{fit}_{name}"] = planes.maps.image
            arrays[f"{fit}_weights_{name}"] = planes.weights
            arrays[f"{fit}_offsets_{name}"] = planes.offsets
    return arrays


def claims(table: "Table") -> list[Claim]:
    """Judge the paper's claims about its colour simulation."""
    return [_judge_recovery(table), _judge_planes(table)]


def _judge_recovery(table: "Table") -> Claim:
    def describe(fit: str) -> str:
        return "; ".join(
            f"{format_interval(interval(_select_values(table, 'mae', fit, a)))} {_certainty(a)}"
            for a in AMPLITUDES
        )

    ideals = ", ".join(f"{_select_values(table, 'ideal', 'paper', a).mean():.3f}" for a in AMPLITUDES)
    excess = [
        interval(_select_values(table, "mae", "paper", a) - _select_values(table, "ideal", "paper", a))
        for a in AMPLITUDES
    ]
    close = [high < MAX_EXCESS_ERROR for _, _, high in excess]
    return judge(
        "The parametric model recovers the maps up to the noise of the colours.",
        paper=f"MAE {describe('paper')}; the ideal observer, who knows the colours' distributions: {ideals}",
        ours=f"{describe('ours')} by the likelihood of the answers, which penalises confident mistakes and so "
        "gives softer maps; "
        f"with the paper's squared error: {describe('squared')}",
        holds=all(close),
        holds_if=any(close),
        condition=f"the maps are {_list_certainties(close)}: there the error is within {MAX_EXCESS_ERROR} of "
        "the ideal observer's, elsewhere "
        f"up to {max(excess)[0]:.2f} above it",
        reason=f"the error is more than {MAX_EXCESS_ERROR} above the ideal observer's even where maps are certain",
        settings=RUN,
    )


def _judge_planes(table: "Table") -> Claim:
    def describe(fit: str) -> str:
        return "; ".join(
            f"{format_interval(interval(_select_values(table, 'agreement', fit, a)))} and "
            f"{format_interval(interval(_select_values(table, 'angle', fit, a)), 1)}° {_certainty(a)}"
            for a in AMPLITUDES
        )

    agreed = [interval(_select_values(table, "agreement", "paper", a))[1] > MIN_AGREEMENT for a in AMPLITUDES]
    return judge(
        "Planes in colour space separate the segments.",
        paper=f"locations labelled as by the ideal observer, and the planes' angle to the optimal ones: "
        f"{describe('paper')}",
        ours=describe("ours"),
        holds=all(agreed),
        holds_if=any(agreed),
        condition=f"the maps are {_list_certainties(agreed)}",
        reason=f"fewer than {MIN_AGREEMENT:.0%} of the locations have the label of the ideal observer",
        settings=RUN,
    )


def _list_certainties(holds: list[bool]) -> str:
    return " or ".join(_certainty(a) for a, true in zip(AMPLITUDES, holds, strict=True) if true)


def _certainty(amplitude: float) -> str:
    return {AMPLITUDES[0]: "certain", AMPLITUDES[1]: "nearly certain"}.get(amplitude, "uncertain")


def _select_values(table: "Table", value: str, fit: str, amplitude: float) -> NDArray[np.float64]:
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
CUBES_TOP, CUBE = 4.4, 2.45
CHARTS_TOP = CUBES_TOP + CUBE + 0.55
CUBE_FITS = ("paper", "ours")
PLANE_TONES = ("#555555", "#AA4499", "#117733")  # of the plane between each pair of segments
Example = dict[str, NDArray[np.float64]]


def draw(table: "Table", example: Example) -> "Figure":
    """Draw maps, the colours in the RGB cube with the planes between segments, and errors over certainty."""
    figure = style.create_figure(WIDTH, CHARTS_TOP + 2.75)
    for number, (name, title) in enumerate(TRUTHS.items()):
        left = 0.4 + number * 5.0
        style.write_text(figure, left + 2.35 * SIDE, 0.12, title, size=style.MEDIUM)
        axes = style.add_axes(figure, left + 4 * (SIDE + style.GAP) - 0.02, 0.42, SIDE, SIDE)
        style.draw_image(axes, example[f"picture_{name}"])
        style.set_title(axes, "colours", style.SMALL)
        for row, (fit, label) in enumerate(ROWS.items()):
            _draw_map_row(
                figure,
                left,
                0.42 + row * (SIDE + 0.1),
                drawing.maps_from_image(example[f"{fit}_{name}"]),
                label,
                first=not row,
            )
        colours = style.add_axes(figure, 0.6 + number * 2.4, CHARTS_TOP, 2.0, 2.0)
        _draw_colours(colours, example, name, title)
        for column, fit in enumerate(CUBE_FITS):
            _draw_cube(figure, 0.1 + (2 * number + column) * (CUBE + 0.06), example, fit, name)
    _draw_key(figure)
    _draw_errors(style.add_axes(figure, 6.1, CHARTS_TOP, 1.65, 2.0), table)
    _draw_angles(style.add_axes(figure, 8.4, CHARTS_TOP, 1.65, 2.0), table)
    return figure


def _draw_map_row(figure: "Figure", left: float, top: float, maps: Maps, label: str, *, first: bool) -> None:
    """Draw a row: the probability of each segment, then the segmentation."""
    style.write_text(figure, left - 0.1, top + SIDE / 2, label, rotation=90)
    panels = [
        (style.shade_probabilities(maps.image[..., k], k), style.segment_letter(k))
        for k in range(maps.segments)
    ]
    panels.append((style.colour_labels(style.rasterise(maps.layout, maps.labels)), "segments"))
    for column, (pixels, title) in enumerate(panels):
        axes = style.add_axes(figure, left + column * (SIDE + style.GAP), top, SIDE, SIDE)
        style.draw_image(axes, pixels)
        if first:
            style.set_title(axes, title, style.SMALL)


def _colour_plane() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the centre of the mean colours and two directions (2, 3) that span the plane through them."""
    centre = MEANS.mean(axis=0)
    return centre, np.linalg.svd(MEANS - centre)[2][:2]


def _draw_colours(axes: "Axes", example: Example, name: str, title: str) -> None:
    """Draw the colour of every location in the plane through the mean colours, and the lines between segments."""
    centre, axis = _colour_plane()
    pixels = example[f"picture_{name}"].reshape(-1, 3)
    x, y = ((pixels - centre) @ axis.T).T
    axes.scatter(x, y, c=pixels, s=3, linewidths=0)
    reach = 0.62
    for fit, (tone, dashes) in LINES.items():
        weights, offsets = _load_planes(example, fit, name)
        for a, b in SEGMENT_PAIRS:
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
    style.set_title(axes, title, style.SMALL)


def _draw_cube(figure: "Figure", left: float, example: Example, fit: str, name: str) -> None:
    """Draw the colours as points in the RGB cube, with the plane between each pair of segments."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    across, down = figure.get_size_inches()
    axes: Any = figure.add_axes(
        (left / across, 1 - (CUBES_TOP + CUBE) / down, CUBE / across, CUBE / down), projection="3d"
    )
    pixels = example[f"picture_{name}"].reshape(-1, 3)[::3]
    axes.scatter(*pixels.T, c=pixels, s=2, linewidths=0, depthshade=False)
    centre, _ = _colour_plane()
    weights, offsets = _load_planes(example, fit, name)
    for (a, b), tone in zip(SEGMENT_PAIRS, PLANE_TONES, strict=True):
        corners = clip_plane_to_cube(weights[a] - weights[b], offsets[a] - offsets[b], centre)
        if len(corners) >= 3:
            axes.add_collection3d(
                Poly3DCollection([corners], facecolor=tone, edgecolor=tone, alpha=0.22, linewidth=0.8)
            )
    axes.set(xlim=(0, 1), ylim=(0, 1), zlim=(0, 1), xticks=[0, 1], yticks=[0, 1], zticks=[0, 1])
    axes.set_box_aspect((1, 1, 1), zoom=0.86)
    axes.view_init(elev=20, azim=-58)
    axes.tick_params(labelsize=6, pad=-3)
    for set_label, text in ((axes.set_xlabel, "red"), (axes.set_ylabel, "green"), (axes.set_zlabel, "blue")):
        set_label(text, fontsize=7, labelpad=-10)
    style.write_text(
        figure, left + CUBE / 2, CUBES_TOP + 0.1, f"{NAMES[fit]}, {TRUTHS[name]}", size=style.SMALL
    )


def clip_plane_to_cube(
    normal: NDArray[np.float64], offset: float, centre: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the corners (m, 3), in order, of the plane normal · (x - centre) + offset = 0 within the unit cube.

    Examples
    --------
    >>> len(clip_plane_to_cube(np.array([1.0, 0, 0]), 0.0, np.full(3, 0.5)))
    4
    """
    from itertools import combinations, product

    vertices = np.array(list(product((0.0, 1.0), repeat=3)))
    heights = (vertices - centre) @ normal + offset
    corners = [
        vertices[a] + heights[a] / (heights[a] - heights[b]) * (vertices[b] - vertices[a])
        for a, b in combinations(range(8), 2)
        if np.abs(vertices[a] - vertices[b]).sum() == 1 and heights[a] * heights[b] < 0
    ]
    if len(corners) < 3:
        return np.empty((0, 3))
    points = np.array(corners)
    around = points - points.mean(axis=0)
    axis = np.linalg.svd(around)[2][:2]
    return points[np.argsort(np.arctan2(*(around @ axis.T).T))]


def _load_planes(example: Example, fit: str, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weights (K, 3) and offsets (K,) of the logits, relative to the centre of the mean colours."""
    centre, _ = _colour_plane()
    if fit == "ideal":
        share = example[f"truth_{name}"].mean(axis=(0, 1))
        weights = MEANS / SPREAD**2
        offsets = -0.5 * np.sum(MEANS**2, axis=1) / SPREAD**2 + np.log(share)
    else:
        weights, offsets = example[f"{fit}_weights_{name}"], example[f"{fit}_offsets_{name}"]
    return weights, offsets + weights @ centre


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
    """Draw the line on which two segments are equally likely, where the third segment is less likely."""
    foot = -offset * normal / (normal @ normal)
    along = np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
    points = foot + np.linspace(-3 * reach, 3 * reach, 1200)[:, None] * along
    visible = points[points @ rival + rival_offset < 0]
    axes.plot(*visible.T, color=tone, linestyle=dashes, linewidth=1.3)


def _draw_key(figure: "Figure") -> None:
    from matplotlib.lines import Line2D

    names = {"ideal": "ideal observer", **NAMES}
    handles = [Line2D([], [], color=LINES[fit][0], linestyle=LINES[fit][1], linewidth=1.5) for fit in names]
    across, down = figure.get_size_inches()
    place = (2.7 / across, 1 - (CHARTS_TOP + 2.45) / down)
    style.draw_legend(figure, handles, list(names.values()), loc="center", bbox_to_anchor=place, ncols=3)


def _draw_errors(axes: "Axes", table: "Table") -> None:
    ideal = [table.column("ideal", amplitude=a).mean() for a in AMPLITUDES]
    axes.plot(
        range(3), ideal, color="#222222", linestyle=":", marker="x", linewidth=1.2, label="ideal observer"
    )
    _draw_by_certainty(axes, table, "mae")
    drawing.label_axes(axes, "", "MAE (L1 per location)", key=None)
    axes.legend(fontsize=7, frameon=False, loc="upper left", handlelength=2.6)
    style.set_title(axes, "Error: mean, 95 % interval", style.SMALL)


def _draw_angles(axes: "Axes", table: "Table") -> None:
    _draw_by_certainty(axes, table, "angle")
    drawing.label_axes(axes, "", "degrees to the optimal planes", key=None)
    style.set_title(axes, "Angle: mean, 95 % interval", style.SMALL)


def _draw_by_certainty(axes: "Axes", table: "Table", value: str) -> None:
    for number, fit in enumerate(FITS):
        intervals = np.array([interval(table.column(value, fit=fit, amplitude=a)) for a in AMPLITUDES])
        mean, low, high = intervals.T
        axes.errorbar(
            np.arange(3) + 0.1 * (number - 1), mean, [mean - low, high - mean], color=TONES[fit],
            marker=SIGNS[fit], markersize=4.5, capsize=2, linewidth=1.3, linestyle="--" if fit == "paper" else "-",
            label=LEGEND[fit],
        )  # fmt: skip
    axes.set_xticks(range(3), ["certain", "nearly", "uncertain"])
    axes.set_xlim(-0.4, 2.4)
