"""Figure 1: are maps without uncertainty recovered perfectly? Below: the outline of a trial, and maps of a photograph.

The bottom row of the paper's figure shows one participant's maps of a natural image (K = 3, N = 19, one block). Here
the participant is simulated: one who sees three regions of a sample photograph and lapses in 2 % of the trials.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, simulation
from reproduction.paper.claims import Claim, describe_run, format_interval, interval, judge
from reproduction.paper.costs import PaperFit
from reproduction.paper.estimators import (
    ESTIMATORS,
    LABELS,
    Estimator,
    fit_paper_continued,
    stable_learning_rate,
)
from vseg import designs
from vseg.data.layout import Grid
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.evaluation import metrics
from vseg.figures import style
from vseg.image_observers import simulate_annotation
from vseg.observers import LapsingObserver
from vseg.stimuli import composite, load_sample

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "deterministic"
TITLE = "Deterministic maps"
WHERE = "Figure 1"
SIZE, XI = 16, 3.2
SETTINGS = {"size": (SIZE,)}
RUN = describe_run(
    size=SIZE, segments=3, pairs="KN²", blocks=1, amplitude="∞", xi=XI, strength="0, 10, and 10 to 0 in steps",
    rate=f"{stable_learning_rate(0.0)} (0.05 at λ = 10)",
)  # fmt: skip
PHOTOGRAPH, PHOTOGRAPH_GRID, PHOTOGRAPH_PX, LAPSE = "coffee", Grid(19), 380, 0.02
ESTIMATORS_COMPARED: dict[str, Estimator] = {
    "paper_plain": ESTIMATORS["paper_plain"],
    "paper": ESTIMATORS["paper"],
    "paper_continued": fit_paper_continued,
    "ours_plain": ESTIMATORS["ours_plain"],
    "ours": ESTIMATORS["ours"],
}
PERFECT = 0.99  # share of correct labels; the pairs may not determine one or two locations
NAMES = {**LABELS, "paper_continued": "paper, λ → 0"}


def truth(size: int) -> Maps:
    """Return one-hot maps of three segments; the paper does not print N."""
    return simulation.truth(size=size, amplitude=float("inf"), xi=XI, min_area=0.15, seed=1)


def trial(*, size: int, seed: int) -> list[dict[str, Any]]:
    """Run one resample with one block of KN² pairs; return the scores of each estimator."""
    true = truth(size)
    tally = simulation.simulate_tally(true, blocks=1, seed=seed)
    return [
        {"estimator": name, **_scores(fit(tally, 3, seed=seed), true)}
        for name, fit in ESTIMATORS_COMPARED.items()
    ]


def _scores(maps: Maps, true: Maps) -> dict[str, float]:
    accuracy = metrics.label_accuracy(maps, true)
    return {"accuracy": accuracy, "perfect": float(accuracy == 1), "mae": metrics.mae(maps, true)}


def paper_fits(*, size: int, seed: int) -> list[PaperFit]:
    """Return the fits of Algorithm 1 in one resample, to estimate their time in PyTorch."""
    tally = simulation.simulate_tally(truth(size), blocks=1, seed=seed)
    return [(tally, 3, 0.0), (tally, 3, 10.0)]


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """Return the true maps and the maps of each estimator in one resample, and a photograph with its maps."""
    true = truth(SIZE)
    tally = simulation.simulate_tally(true, blocks=1, seed=seed)
    images = {
        name: fit(tally, 3, seed=seed).align_to(true).image for name, fit in ESTIMATORS_COMPARED.items()
    }
    return {"truth": true.image, **images, **_segment_photograph(seed)}


def _segment_photograph(seed: int) -> dict[str, NDArray[np.float64]]:
    """Return a texture to show, one tested pair, and maps of a photograph: K = 3, N = 19, one block."""
    image = load_sample(PHOTOGRAPH, PHOTOGRAPH_PX)
    seen = simulate_annotation(image, PHOTOGRAPH_GRID, 3, 0.3, np.random.SeedSequence(seed))
    rng = np.random.default_rng(seed)
    pairs = designs.scattered(PHOTOGRAPH_GRID, segments=3, seed=rng)
    same = rng.random(len(pairs)) < LapsingObserver(LAPSE)(seen, pairs)
    tally = Tally(pairs, same, np.ones(len(pairs), np.int64))
    return {
        "stimulus": composite(size_px=PHOTOGRAPH_PX, seed=seed).image / 255,
        "pair": PHOTOGRAPH_GRID.pixels(PHOTOGRAPH_PX, PHOTOGRAPH_PX)[[pairs.i[0], pairs.j[0]]],
        "photograph_seen": seen.image,
        **{
            f"photograph_{name}": ESTIMATORS[name](tally, 3, seed=seed).align_to(seen).image
            for name in ("paper", "ours")
        },
    }


def claims(table: "Table") -> list[Claim]:
    """Judge the paper's claims about this figure."""
    perfect = {name: interval(table.column("perfect", estimator=name)) for name in ESTIMATORS_COMPARED}
    accuracy = {name: interval(table.column("accuracy", estimator=name)) for name in ESTIMATORS_COMPARED}
    return [
        judge(
            "Without uncertainty, segmentation maps are reconstructed perfectly.",
            printed="perfect",
            paper=f"λ = 0: {perfect['paper_plain'][0]:.1%} of resamples perfect, "
            f"{format_interval(accuracy['paper_plain'])} of "
            f"the labels right; λ = 10: {format_interval(accuracy['paper'])}",
            ours=f"{perfect['ours'][0]:.1%} perfect by default, {perfect['ours_plain'][0]:.1%} at λ = 0; "
            f"{format_interval(accuracy['ours'])} of the labels right",
            holds=accuracy["paper_plain"][0] >= PERFECT,
            holds_if=accuracy["paper_continued"][0] >= PERFECT,
            condition=f"λ is lowered to 0 in steps (10, 1, 0.1, 0), each fit starting from the previous one: then "
            f"{format_interval(accuracy['paper_continued'])} of the labels are right (perfect: more than "
            f"{PERFECT:.0%}), and "
            f"{perfect['paper_continued'][0]:.1%} of resamples have no wrong label. A random start at λ = 0 ends in a "
            "local minimum.",
            reason="fits end in local minima",
            settings=RUN,
        )
    ]


def draw(table: "Table", example: dict[str, NDArray[np.float64]]) -> "Figure":
    """Draw the share of correct labels in each resample, and the maps of one resample."""
    rows = {NAMES[name]: drawing.maps_from_image(example[name]) for name in ESTIMATORS_COMPARED}
    columns = {"one resample": {"truth": drawing.maps_from_image(example["truth"]), **rows}}
    figure, [axes] = drawing.create_figure(columns, margin=1.0, key_lines=1, below=BELOW)
    drawing.draw_spread(
        axes, table, "accuracy", "share of labels right", {name: NAMES[name] for name in ESTIMATORS_COMPARED}
    )
    top = figure.get_size_inches()[1] - BELOW
    _draw_trial(figure, 0.25, top + 0.35, example)
    _draw_photograph_maps(figure, 4.6, top + 0.05, example)
    return figure


BELOW = 2.75  # inches of the bottom row
SCREEN, SCREEN_STEP, SCREEN_DROP = 1.1, 0.76, 0.28
GREY, RED = "#808080", "#E3170A"
DOT_RADIUS = 0.025  # of the screen's width


def _draw_trial(figure: "Figure", left: float, top: float, example: dict[str, NDArray[np.float64]]) -> None:
    """Draw the screens of a block's first trial, each below and to the right of the one before."""
    from matplotlib.patches import Circle

    points = example["pair"] / PHOTOGRAPH_PX
    screens = (
        ("image: 3 s", True, False),
        ("points: 300 ms", False, True),
        ("both: 300 ms", True, True),
        ("response: until a key", False, False),
    )
    for number, (text, with_image, with_points) in enumerate(screens):
        x, y = left + number * SCREEN_STEP, top + number * SCREEN_DROP
        axes = style.add_axes(figure, x, y, SCREEN, SCREEN)
        axes.set(xlim=(0, 1), ylim=(1, 0), xticks=[], yticks=[], facecolor=GREY)
        if with_image:
            axes.imshow(example["stimulus"], extent=(0, 1, 1, 0), aspect="auto", cmap="gray", vmin=0, vmax=1)
        if with_points:
            for point in points:
                axes.add_patch(Circle(tuple(point), DOT_RADIUS, color=RED))
        if number == len(screens) - 1:
            axes.text(
                0.5,
                0.5,
                "same\nor\ndifferent?",
                ha="center",
                va="center",
                fontsize=style.SMALL,
                color="white",
            )
        for spine in axes.spines.values():
            spine.set(visible=True, color="white", linewidth=1)
        style.write_text(figure, x + 0.02, y + SCREEN + 0.09, text, size=6.5, ha="left")
    style.write_text(
        figure, left + 1.9, top - 0.2, "outline of a trial (the first of a block)", size=style.MEDIUM
    )


def _draw_photograph_maps(
    figure: "Figure", left: float, top: float, example: dict[str, NDArray[np.float64]]
) -> None:
    """Draw the maps of the simulated participant who segments the photograph."""
    rows = {"seen": "seen", "paper": NAMES["paper"], "ours": NAMES["ours"]}
    columns = {
        "photograph: K = 3, N = 19, one block": {
            label: drawing.maps_from_image(example[f"photograph_{name}"]) for name, label in rows.items()
        }
    }
    drawing.draw_map_columns(figure, left, top, columns)
