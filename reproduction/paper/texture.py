"""Figure 7 and S5: the texture experiment. Is the entropy of participants' maps larger if the image is more uncertain?

A resample is one replication: 15 new participants see the image of low uncertainty, 15 others that of high uncertainty,
and the maps of each are reconstructed. Four pairs of images are used, to separate the effect of a single image from
that of uncertainty. The paper reports λ = 0 here; λ = 10 and vseg's default are added.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, participants
from reproduction.paper.claims import (
    ARITHMETIC,
    TOLERANCE_FACTOR,
    Claim,
    describe_run,
    format_interval,
    interval,
    is_near,
    judge,
)
from reproduction.paper.costs import PaperFit
from reproduction.paper.estimators import (
    COLOURS,
    ESTIMATORS,
    LABELS,
    MARKERS,
    PAPER_STRENGTH,
    stable_learning_rate,
)
from reproduction.paper.participants import BLOCKS, CONDITIONS, LAYOUT, PARTICIPANTS
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.evaluation import metrics
from vseg.evaluation.contours import compare_contours, score_contours_on_maps
from vseg.evaluation.group_tests import welch
from vseg.figures import style
from vseg.observers import draw_contours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "texture"
TITLE = "Entropy of participants' maps at low and high uncertainty"
WHERE = "Figure 7 and S5"
SETTINGS = {"picture": (0, 1, 2, 3)}
BELIEF, DRAWING = "belief", "drawing"
LOWEST_LOSS_CONDITION = (
    "the lowest loss is reached; from a random start the paper's algorithm stops early or in a local minimum"
)
CELL_PX = 3  # pixels per location when contours are compared
ONE_LOCATION = "1 location"
DRAWING_TOLERANCES = {
    "0.75 %": metrics.BSDS_TOLERANCE,
    ONE_LOCATION: 1 / np.hypot(LAYOUT.size, LAYOUT.size),
}
"""Fractions of the diagonal: the benchmark's, and the spacing of the locations at which beliefs are simulated."""
TRIAL_S, ENGAGED_MIN = 1.33, 27.0  # median duration of a trial, and engaged time, as printed
RUN = describe_run(
    size=LAYOUT.size, segments=2, pairs="KN²", blocks=BLOCKS, strength="0 (10 where stated)",
    rate=f"{stable_learning_rate(0.0)} ({stable_learning_rate(PAPER_STRENGTH)})",
) + "; 15 + 15 simulated participants (gain 0.7, log s.d. 0.18, noise 0.5, lapses 3 %), 4 pairs of images"  # fmt: skip
MATCHING_F = 0.9  # F from which a contour counts as the true one; the paper judges by eye


def share(*, picture: int) -> float:
    """Return the share of the resamples: a replication has thirty participants with four fits each, 0.4 s in all."""
    return 0.1


def trial(*, picture: int, seed: int) -> list[dict[str, Any]]:
    """Run one replication; return the scores of the beliefs, of each estimator and of the contours that people draw."""
    groups = {condition: _fit_participants(condition, picture, seed) for condition in CONDITIONS}
    return [
        {"estimator": name, **_score_replication(groups, name, picture)} for name in (BELIEF, *ESTIMATORS)
    ] + [{"estimator": DRAWING, **_summarise_drawings(picture, seed)}]


def paper_fits(*, picture: int, seed: int) -> list[PaperFit]:
    """Return the fits of Algorithm 1 in one replication, to estimate their time in PyTorch."""
    return [
        (tally, 2, strength)
        for condition in CONDITIONS
        for _, tally, _ in _simulate_sessions(condition, picture, seed)
        for strength in (0.0, PAPER_STRENGTH)
    ]


def _simulate_sessions(condition: str, picture: int, seed: int) -> Iterator[tuple[Maps, Tally, int]]:
    """Yield the belief and the answers of each new participant, and a seed for the fits."""
    image = participants.make_texture_image(condition, picture)
    for seeds in np.random.SeedSequence([seed, CONDITIONS.index(condition)]).spawn(PARTICIPANTS):
        rng = np.random.default_rng(seeds)
        belief = participants.simulate_belief(image, rng)
        yield belief, participants.simulate_answers(belief, rng), int(seeds.generate_state(1)[0])


def _fit_participants(condition: str, picture: int, seed: int) -> list[dict[str, Maps]]:
    """Return each participant's belief and maps by every estimator, with segments ordered as in the image."""
    truth = participants.make_texture_image(condition, picture).truth
    return [
        {BELIEF: belief}
        | {name: fit(tally, 2, seed=start).align_to(truth) for name, fit in ESTIMATORS.items()}
        for belief, tally, start in _simulate_sessions(condition, picture, seed)
    ]


def _score_replication(groups: dict[str, list[dict[str, Maps]]], name: str, picture: int) -> dict[str, float]:
    maps = {condition: [participant[name] for participant in group] for condition, group in groups.items()}
    low, high = ([fit.mean_entropy for fit in maps[condition]] for condition in CONDITIONS)
    t, p, _ = welch(low, high)
    scores = {"t": t, "p": p, "d": t * np.sqrt(2 / len(low))}  # Cohen's d of groups of equal size
    for condition, group_maps in maps.items():
        group_scores = _score_group(group_maps, participants.make_texture_image(condition, picture))
        scores |= {f"{score}_{condition}": value for score, value in group_scores.items()}
    return scores


def _score_group(maps: list[Maps], image: participants.TextureImage) -> dict[str, float]:
    """Score the maps of one condition; 'edge' is the ratio of the entropy at the edge to that elsewhere."""
    entropies = np.array([fit.mean_entropy for fit in maps])
    field = np.mean([fit.entropy for fit in maps], axis=0)
    scores = [contour_score(fit, image.truth) for fit in maps]
    between = [contour_score(fit, other) for fit, other in zip(maps, [*maps[1:], maps[0]], strict=True)]
    return {
        "entropy": entropies.mean(),
        "sd": entropies.std(ddof=1),
        "edge": field[image.edge].mean() / field[~image.edge].mean(),
        "accuracy": float(np.mean([metrics.label_accuracy(fit, image.truth) for fit in maps])),
        "accuracy_of_mean": metrics.label_accuracy(mean_maps(maps), image.truth),
        "f": float(np.mean(scores)),
        "differ": float(np.mean(np.array(scores) < MATCHING_F)),
        "between": float(np.mean(between)),  # of each participant and the next one
    }


def contour_score(maps: Maps, truth: Maps) -> float:
    """Return the F score of the segmentation's contour with a tolerance of one location."""
    cells = LAYOUT.cells(CELL_PX * LAYOUT.size, CELL_PX * LAYOUT.size)
    return metrics.boundary_scores(maps.labels[cells], truth.labels[cells], tolerance=1 / LAYOUT.size).f


def score_drawings(
    condition: str, *, tolerance: float = metrics.BSDS_TOLERANCE, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Let new participants draw the contours they believe in; return their F against the truth, and between people.

    15 participants draw on each of the four images, with noise of the hand; F is that of the BSDS benchmark.
    """
    scores = [
        _score_drawings_on_image(condition, picture, tolerance, seed) for picture in SETTINGS["picture"]
    ]
    truth_f, between_f = (np.concatenate(column) for column in zip(*scores, strict=True))
    return truth_f, between_f


def _score_drawings_on_image(
    condition: str, picture: int, tolerance: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the F of the drawings of 15 participants against the truth, and of each two of them."""
    drawings = [
        draw_contours(
            belief, width_px=participants.SIZE_PX, height_px=participants.SIZE_PX, participant=str(number),
            seed=start,
        )
        for number, (belief, _, start) in enumerate(_simulate_sessions(condition, picture, seed))
    ]  # fmt: skip
    truth = participants.make_fine_truth(picture)
    return (
        np.array([score_contours_on_maps(each, truth, tolerance=tolerance).f for each in drawings]),
        np.array([pair.f for pair in compare_contours(drawings, tolerance=tolerance, seed=seed)]),
    )


def _summarise_drawings(picture: int, seed: int) -> dict[str, float]:
    """Return the scores of drawn contours under the names that `_score_group` gives to those of map edges."""
    scores: dict[str, float] = {}
    for condition in CONDITIONS:
        truth_f, between_f = _score_drawings_on_image(
            condition, picture, DRAWING_TOLERANCES[ONE_LOCATION], seed
        )
        scores[f"f_{condition}"] = float(truth_f.mean())
        scores[f"differ_{condition}"] = float((truth_f < MATCHING_F).mean())
        scores[f"between_{condition}"] = float(between_f.mean())
    return scores


def mean_maps(maps: list[Maps]) -> Maps:
    """Return the mean maps over participants, as the paper shows them."""
    return Maps(LAYOUT, np.mean([fit.probabilities for fit in maps], axis=0))


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """Return one replication on the first images: the images and each participant's P(first texture), (15, 11, 11).

    Also the F of contours that participants draw on all images, for each of `DRAWING_TOLERANCES`.
    """
    arrays: Example = {}
    for condition in CONDITIONS:
        image = participants.make_texture_image(condition, 0)
        arrays[f"image_{condition}"] = image.image / 255
        arrays[f"truth_{condition}"] = image.truth.image
        drawn = [score_drawings(condition, tolerance=one, seed=seed) for one in DRAWING_TOLERANCES.values()]
        for name, scores in zip(("drawn", "between"), zip(*drawn, strict=True), strict=True):
            arrays[f"{name}_{condition}"] = np.array(scores)
        group = _fit_participants(condition, 0, seed)
        for name in (BELIEF, *ESTIMATORS):
            arrays[f"{name}_{condition}"] = np.array(
                [participant[name].image[..., 0] for participant in group]
            )
    return arrays


def claims(table: "Table") -> list[Claim]:
    """Judge the paper's claims about its texture experiment."""
    return [
        _judge_effect(table),
        _judge_segmentations(table),
        _judge_edge_entropy(table),
        _judge_contours(table),
        _judge_agreement(table),
        _judge_entropy_bias(table),
        _judge_engaged_time(),
    ]


def _judge_effect(table: "Table") -> Claim:
    sizes = {name: table.column("d", estimator=name) for name in (BELIEF, *ESTIMATORS)}
    significant = {name: float(np.mean(table.column("p", estimator=name) < 0.05)) for name in sizes}
    by_chance, apart = _compare_low_images(table, "paper_plain")
    within = np.quantile(sizes["paper_plain"], [0.025, 0.975])

    def describe(name: str) -> str:
        effect = format_interval(interval(sizes[name]), 2)
        return f"d = {effect}, p < 0.05 in {significant[name]:.0%} of the replications"

    return judge(
        "The maps' entropy is larger for the image of high uncertainty.",
        printed="d = 1.003, t = 2.746, p = 0.0109",
        paper=f"λ = 0: {describe('paper_plain')}; a single replication gives {within[0]:.1f} to {within[1]:.1f}",
        ours=f"λ = 0: {describe('ours_plain')}; default: {describe('ours')}; the participants' beliefs: "
        f"{describe(BELIEF)}",
        holds=interval(sizes["paper_plain"])[1] > 0 and significant["paper_plain"] > 0.5,
        holds_if=interval(sizes["ours_plain"])[1] > 0 and significant["ours_plain"] > 0.5,
        condition=LOWEST_LOSS_CONDITION,
        reason="fewer than half of the replications find it",
        remark="The participants are simulated, with a gain that we chose. One image per condition does not separate "
        f"uncertainty from image: two images of the same low uncertainty differ by |d| = {apart:.2f} on "
        "average, and by "
        f"p < 0.05 in {by_chance:.0%} of the comparisons.",
        settings=RUN,
        about_people=True,
    )


def _compare_low_images(table: "Table", name: str) -> tuple[float, float]:
    """Compare groups who see different images of low uncertainty; return the share of p < 0.05 and the mean |d|."""
    from scipy.stats import ttest_ind_from_stats

    rows = table.where(estimator=name)
    groups = [
        (rows.column("entropy_low", picture=picture), rows.column("sd_low", picture=picture))
        for picture in dict.fromkeys(rows.column("picture").tolist())
    ]
    p_values, d = [], []
    for number, (mean, sd) in enumerate(groups):
        for other_mean, other_sd in groups[:number]:
            t, p = ttest_ind_from_stats(
                mean, sd, PARTICIPANTS, other_mean, other_sd, PARTICIPANTS, equal_var=False
            )
            p_values.append(p)
            d.append(np.abs(t) * np.sqrt(2 / PARTICIPANTS))
    return float(np.mean(np.concatenate(p_values) < 0.05)), float(np.mean(np.concatenate(d)))


def _judge_segmentations(table: "Table") -> Claim:
    def accuracy(name: str, score: str = "accuracy_of_mean") -> list[tuple[float, float, float]]:
        return [interval(values) for values in _column_by_condition(table, score, name)]

    mean, own = accuracy("paper_plain"), accuracy("ours_plain")
    alone, own_alone = accuracy("paper_plain", "accuracy"), accuracy("ours_plain", "accuracy")
    return judge(
        "The segmentations of both conditions are very similar, with a few more noisy locations at high uncertainty.",
        paper=f"labels right in the mean map: {format_interval(mean[0])} low, {format_interval(mean[1])} high; "
        "in one participant's: "
        f"{format_interval(alone[0])} and {format_interval(alone[1])}",
        ours=f"{format_interval(own[0])} and {format_interval(own[1])}; in one participant's: "
        f"{format_interval(own_alone[0])} and "
        f"{format_interval(own_alone[1])}",
        holds=_is_slightly_worse(mean),
        holds_if=_is_slightly_worse(own),
        condition=LOWEST_LOSS_CONDITION,
        reason="the segmentations differ in more than a few locations, or not in that direction",
        remark="In the mean over participants; in one participant's map fewer are right, unless the lowest loss "
        "is reached.",
        settings=RUN,
        about_people=True,
    )


def _is_slightly_worse(accuracies: list[tuple[float, float, float]]) -> bool:
    """Return whether both accuracies are above 0.95 and that at high uncertainty is not larger than that at low."""
    (low, _, _), (high, _, _) = accuracies
    return min(low, high) > 0.95 and low >= high


def _judge_edge_entropy(table: "Table") -> Claim:
    def edges(name: str) -> list[NDArray[np.float64]]:
        return _column_by_condition(table, "edge", name)

    paper, own, beliefs = (edges(name) for name in ("paper_plain", "ours_plain", BELIEF))
    return judge(
        "At low uncertainty the entropy lies at the edge between the textures, at high uncertainty it is spread more "
        "evenly.",
        paper=f"entropy at the edge over elsewhere: {format_interval(interval(paper[0]), 2)} low, "
        f"{format_interval(interval(paper[1]), 2)} high",
        ours=f"{format_interval(interval(own[0]), 2)} and {format_interval(interval(own[1]), 2)}; the "
        "participants' beliefs: "
        f"{format_interval(interval(beliefs[0]), 2)} and {format_interval(interval(beliefs[1]), 2)}",
        holds=interval(paper[0])[1] > 1.1 and interval(paper[0] - paper[1])[1] > 0,
        holds_if=interval(own[0])[1] > 1.1 and interval(own[0] - own[1])[1] > 0,
        condition=LOWEST_LOSS_CONDITION,
        reason="the edge is as pronounced at high uncertainty as at low",
        settings=RUN,
        about_people=True,
    )


def _column_by_condition(table: "Table", column: str, estimator: str) -> list[NDArray[np.float64]]:
    """Return a column of an estimator at low and at high uncertainty."""
    return [table.column(f"{column}_{condition}", estimator=estimator) for condition in CONDITIONS]


def _judge_contours(table: "Table") -> Claim:
    def describe(name: str) -> str:
        low, high = (PARTICIPANTS * values.mean() for values in _column_by_condition(table, "differ", name))
        return f"{_describe_f(table, 'f', name)}; below {MATCHING_F} in {low:.1f} and {high:.1f} of 15"

    return _judge_drawings(
        table,
        "f",
        "Contours agree less with the true one at high uncertainty.",
        describe,
        printed="3 of 15 differ at low, 9 of 15 at high uncertainty",
    )


def _judge_agreement(table: "Table") -> Claim:
    return _judge_drawings(
        table,
        "between",
        "Contours of different participants agree less with each other at high uncertainty.",
        lambda name: _describe_f(table, "between", name),
        printed="not shown",
    )


def _describe_f(table: "Table", column: str, name: str) -> str:
    low, high = (format_interval(interval(values), 2) for values in _column_by_condition(table, column, name))
    return f"F = {low} low, {high} high"


def _judge_drawings(
    table: "Table", column: str, claim: str, describe: Callable[[str], str], *, printed: str
) -> Claim:
    """Judge a statement about contours by those that simulated participants draw; report edges of maps beside them."""
    low, high = _column_by_condition(table, column, DRAWING)
    return judge(
        claim,
        printed=printed,
        paper=f"edges of maps at λ = 0: {describe('paper_plain')}",
        ours=f"drawn contours: {describe(DRAWING)}; edges of maps at λ = 0: {describe('ours_plain')}; "
        f"default: {describe('ours')}",
        holds=interval(low - high)[1] > 0,
        reason="the scores of both conditions are the same within their intervals",
        remark="They draw the border of their belief, with noise of the hand; F has a tolerance of one location.",
        settings=RUN,
        about_people=True,
    )


def _judge_engaged_time() -> Claim:
    """Judge a statement that follows from other numbers printed in the paper."""
    trials = BLOCKS * 2 * LAYOUT.size**2
    minutes = trials * TRIAL_S / 60
    return judge(
        f"Participants are engaged with the task for {ENGAGED_MIN:g} of the 40 minutes.",
        printed=f"{ENGAGED_MIN:g} minutes; {TRIAL_S} s a trial",
        paper=f"{trials:,} trials: {minutes:.1f} minutes",
        ours="engaged time is measured per participant",
        holds=is_near(minutes, ENGAGED_MIN),
        reason=f"the trials take more than {TOLERANCE_FACTOR:g} times as long, or less",
        remark="The printed numbers agree with each other.",
        settings=ARITHMETIC,
    )


def _judge_entropy_bias(table: "Table") -> Claim:
    def bias(name: str) -> tuple[float, float, float]:
        return interval(
            np.concatenate(
                [
                    table.column(f"entropy_{c}", estimator=name)
                    - table.column(f"entropy_{c}", estimator=BELIEF)
                    for c in CONDITIONS
                ]
            )
        )

    plain, smooth, own, default = (bias(name) for name in ("paper_plain", "paper", "ours_plain", "ours"))
    return judge(
        "Regularisation would bias the entropy, so λ = 0 is used here.",
        paper=f"entropy minus the beliefs': {format_interval(plain)} nats at λ = 0, {format_interval(smooth)} "
        "at λ = 10",
        ours=f"{format_interval(own)} at λ = 0, {format_interval(default)} by default",
        holds=smooth[1] > max(abs(plain[1]), abs(plain[2])),
        reason="the bias at λ = 10 is no larger than at λ = 0",
        remark=f"λ = 0 also has a bias: {plain[0]:+.3f} nats from a random start, {own[0]:+.3f} at the "
        "lowest loss that we found.",
        settings=RUN,
    )


SHOWN = ("paper_plain", "ours_plain")  # as in the paper, without regularisation
SIDE, TINY = 1.13, 0.52
LEFT, WIDTH = 0.35, 9.6
CHARTS_TOP, PARTICIPANTS_TOP = 3.45, 6.3
DRAWINGS_TOP = PARTICIPANTS_TOP + 4 * (TINY + 0.2) + 1.05
RED = "#FF5A4F"
PRINTED_D = 1.003
NAMES = {BELIEF: "beliefs", **LABELS}
TONES = {BELIEF: "#555555", **COLOURS}
SIGNS = {BELIEF: "P", **MARKERS}
Example = dict[str, NDArray[np.float64]]


def draw(table: "Table", example: Example) -> "Figure":
    """Draw mean maps, effect sizes over replications, the maps of every participant and the F of drawings (S5)."""
    figure = style.create_figure(WIDTH, DRAWINGS_TOP + 2.45)
    for row, condition in enumerate(CONDITIONS):
        _draw_mean_maps(figure, 0.5 + row * (SIDE + 0.22), condition, example, first=row == 0)
    for column, draw_chart in enumerate((_draw_effects, _draw_entropies, _draw_contour_scores)):
        draw_chart(style.add_axes(figure, 0.95 + column * 3.1, CHARTS_TOP, 2.3, 2.05), table)
    _draw_participants(figure, example)
    _draw_drawings(style.add_axes(figure, 2.6, DRAWINGS_TOP, WIDTH - 3.2, 1.9), example)
    return figure


def _load_group(example: Example, name: str, condition: str) -> list[Maps]:
    first = example[f"{name}_{condition}"]
    return [drawing.maps_from_image(np.stack([p, 1 - p], axis=2)) for p in first]


def _draw_mean_maps(figure: "Figure", top: float, condition: str, example: Example, *, first: bool) -> None:
    truth = drawing.maps_from_image(example[f"truth_{condition}"])
    style.write_text(figure, LEFT / 2, top + SIDE / 2, f"{condition} uncertainty", rotation=90)
    places = [
        LEFT + column * (SIDE + 0.08) + (0.12 if column else 0) + (0.12 if column > 3 else 0)
        for column in range(7)
    ]
    image = style.add_axes(figure, places[0], top, SIDE, SIDE)
    style.draw_image(image, example[f"image_{condition}"])
    panels: list[tuple[Axes, str]] = [(image, "image")]
    for number, name in enumerate(SHOWN):
        group = _load_group(example, name, condition)
        mean, field = mean_maps(group), np.mean([maps.entropy for maps in group], axis=0)
        entropies = np.array([maps.mean_entropy for maps in group])
        at = places[1 + 3 * number : 4 + 3 * number]
        axes = [style.add_axes(figure, left, top, SIDE, SIDE) for left in at]
        style.draw_image(axes[0], style.colour_labels(style.rasterise(mean.layout, mean.labels)))
        style.draw_image(axes[1], style.shade_probabilities(mean.image[..., 0], 0))
        style.draw_image(axes[2], style.rasterise(mean.layout, field), highest=float(np.log(2)))
        error = 3 * entropies.std(ddof=1) / np.sqrt(len(entropies))
        style.write_text(
            figure, at[2] + SIDE / 2, top + SIDE + 0.09, f"{entropies.mean():.2f} ± {error:.2f} nats", size=7
        )
        panels += list(zip(axes, ("segments", "P(first texture)", "entropy"), strict=True))
        if first:
            style.write_text(
                figure,
                at[1] + SIDE / 2,
                0.14,
                f"{LABELS[name]}: mean of {len(group)} participants, ± 3 s.e.",
                size=style.MEDIUM,
            )
    for panel, text in panels:
        style.draw_boundaries(panel, truth, tone=RED, width=0.9)
        if first:
            style.set_title(panel, text, style.SMALL)


def _draw_effects(axes: "Axes", table: "Table") -> None:
    """Draw Cohen's d: the mean and the central 95 % of the replications."""
    for place, name in enumerate(NAMES):
        d = table.column("d", estimator=name)
        low, high = np.quantile(d, [0.025, 0.975])
        axes.plot([low, high], [place, place], color=TONES[name], linewidth=2, solid_capstyle="butt")
        axes.plot(d.mean(), place, marker=SIGNS[name], color=TONES[name], markersize=6)
    axes.axvline(PRINTED_D, color=style.INK, linewidth=1, linestyle="--")
    axes.annotate("  paper's participants", (PRINTED_D, -0.75), fontsize=7, va="center", color=style.INK)
    axes.axvline(0, color=style.INK, linewidth=0.6)
    axes.set_yticks(range(len(NAMES)), list(NAMES.values()))
    axes.set_ylim(len(NAMES) - 0.4, -1.05)
    style.label_axes(axes, "Cohen's d, high minus low uncertainty", "")
    style.set_title(axes, "Effect: mean and 95 % of replications", style.SMALL)


def _draw_entropies(axes: "Axes", table: "Table") -> None:
    _draw_by_condition(axes, table, "entropy", NAMES)
    style.label_axes(axes, "", "mean entropy (nats)")
    axes.set_ylim(bottom=0)
    style.set_title(axes, "Entropy: mean and its 95 % interval", style.SMALL)


def _draw_contour_scores(axes: "Axes", table: "Table") -> None:
    _draw_by_condition(axes, table, "f", NAMES)
    style.label_axes(axes, "", "F of contours")
    axes.set_ylim(0, 1.02)
    style.set_title(axes, "Contours against the true one (S5)", style.SMALL)
    axes.legend(fontsize=7, frameon=False, loc="lower left", handlelength=1.6, labelspacing=0.3)


def _draw_by_condition(axes: "Axes", table: "Table", value: str, names: dict[str, str]) -> None:
    for number, name in enumerate(names):
        intervals = [interval(table.column(f"{value}_{c}", estimator=name)) for c in CONDITIONS]
        mean, low, high = np.array(intervals).T
        x = np.arange(2) + 0.05 * (number - 2)
        line_style: dict[str, Any] = {
            "linestyle": "--" if name.endswith("plain") else "-",
            "linewidth": 1.2,
        }
        axes.errorbar(
            x, mean, [mean - low, high - mean], color=TONES[name], marker=SIGNS[name], markersize=4.5, capsize=2,
            label=names[name], **line_style,
        )  # fmt: skip
    axes.set_xticks(range(2), [f"{c} uncertainty" for c in CONDITIONS])
    axes.set_xlim(-0.4, 1.4)


def _draw_participants(figure: "Figure", example: Example) -> None:
    """Draw S5: a row per condition and estimator, and for each participant the entropy map, the contour and its F."""
    top = PARTICIPANTS_TOP + 0.1
    step = (WIDTH - 1.15) / PARTICIPANTS
    style.write_text(
        figure,
        WIDTH / 2,
        PARTICIPANTS_TOP - 0.12,
        "Entropy map and contour of each participant; F of the contour below",
        size=style.MEDIUM,
    )
    for row, (condition, name) in enumerate((c, n) for c in CONDITIONS for n in SHOWN):
        at = top + row * (TINY + 0.2) + (0.08 if row > 1 else 0)
        style.write_text(figure, 0.42, at + TINY / 2, f"{condition}\n{LABELS[name]}", size=7)
        truth = drawing.maps_from_image(example[f"truth_{condition}"])
        for number, maps in enumerate(_load_group(example, name, condition)):
            left = 0.9 + number * step
            axes = style.add_axes(figure, left, at, TINY, TINY)
            style.draw_image(axes, style.rasterise(maps.layout, maps.entropy), highest=float(np.log(2)))
            style.draw_boundaries(axes, maps, tone=RED, width=0.6)
            style.write_text(
                figure, left + TINY / 2, at + TINY + 0.07, f"{contour_score(maps, truth):.2f}", size=6
            )
    bar = style.add_axes(figure, WIDTH / 2 - 1, top + 4 * (TINY + 0.2) + 0.14, 2, 0.12)
    style.draw_entropy_scale(figure, bar, float(np.log(2)))


def _draw_drawings(axes: "Axes", example: Example) -> None:
    """Draw the distributions of the F of drawn contours (S5, bottom right), with median and quartiles."""
    rows = {
        f"{where}, {condition} uncertainty, {name}": example[f"{kind}_{condition}"][number]
        for number, name in enumerate(DRAWING_TOLERANCES)
        for kind, where in (("drawn", "truth"), ("between", "people"))
        for condition in CONDITIONS
    }
    style.draw_distributions(axes, rows)
    style.label_axes(axes, "F of contours that simulated participants draw", "")
    style.set_title(
        axes, "Drawn contours against the truth and between people (S5): quartiles and median", style.SMALL
    )
