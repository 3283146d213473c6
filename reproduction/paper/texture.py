"""The texture experiment and S5: is the entropy of people's maps larger where the picture is less certain?

A resample is a replication: 15 new people see the picture of low uncertainty, 15 others that of high uncertainty, and
each one's maps are reconstructed. Four pairs of pictures take turns, so that what one picture does is not taken for
what uncertainty does. The paper reports λ = 0 here; λ = 10 and vseg's default stand beside it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, people
from reproduction.paper.claims import Claim, interval, judged, spoken
from reproduction.paper.costs import Fit
from reproduction.paper.estimators import COLOURS, ESTIMATORS, LABELS, MARKERS, PAPERS_STRENGTH
from reproduction.paper.people import CONDITIONS, LAYOUT, PARTICIPANTS
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.evaluation import metrics
from vseg.evaluation.group_tests import welch
from vseg.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "texture"
TITLE = "Entropy of people's maps, where a picture is more or less certain"
WHERE = "Figure 7 and S5"
SETTINGS = {"picture": (0, 1, 2, 3)}
BELIEF = "belief"
LOWEST = (
    "the lowest loss is reached: from a random start the paper's algorithm stops early or in a local minimum"
)
CELL_PX = 3  # of the rendering in which contours are compared
CLOSE = 0.9  # F from which a contour counts as the true one; the paper went by eye


def share(*, picture: int) -> float:
    """A replication is thirty people, each with four fits."""
    return 0.075


def trial(*, picture: int, seed: int) -> list[dict[str, Any]]:
    """One replication: entropies, their difference and contours, for the beliefs and for each estimator."""
    groups = {condition: _people(condition, picture, seed) for condition in CONDITIONS}
    return [{"estimator": name, **_scores(groups, name, picture)} for name in (BELIEF, *ESTIMATORS)]


def papers_fits(*, picture: int, seed: int) -> list[Fit]:
    """The fits of Algorithm 1 in one replication, for what they would cost in PyTorch."""
    return [
        (tally, 2, strength)
        for condition in CONDITIONS
        for _, tally, _ in _sessions(condition, picture, seed)
        for strength in (0.0, PAPERS_STRENGTH)
    ]


def _sessions(condition: str, picture: int, seed: int) -> Iterator[tuple[Maps, Tally, int]]:
    """What each new person believes and answers, and a seed for the fits."""
    shown = people.seen(condition, picture)
    for own in np.random.SeedSequence([seed, CONDITIONS.index(condition)]).spawn(PARTICIPANTS):
        rng = np.random.default_rng(own)
        believed = people.belief(shown, rng)
        yield believed, people.answers(believed, rng), int(own.generate_state(1)[0])


def _people(condition: str, picture: int, seed: int) -> list[dict[str, Maps]]:
    """Each person's belief and what every estimator makes of their answers, labelled as in the picture."""
    truth = people.seen(condition, picture).truth
    return [
        {BELIEF: believed}
        | {name: fit(tally, 2, seed=start).align_to(truth) for name, fit in ESTIMATORS.items()}
        for believed, tally, start in _sessions(condition, picture, seed)
    ]


def _scores(groups: dict[str, list[dict[str, Maps]]], name: str, picture: int) -> dict[str, float]:
    maps = {condition: [person[name] for person in group] for condition, group in groups.items()}
    low, high = ([one.mean_entropy for one in maps[condition]] for condition in CONDITIONS)
    t, p, _ = welch(low, high)
    scores = {"t": t, "p": p, "d": t * np.sqrt(2 / len(low))}  # Cohen's d of groups of one size
    for condition, found in maps.items():
        own = _of_group(found, people.seen(condition, picture))
        scores |= {f"{score}_{condition}": value for score, value in own.items()}
    return scores


def _of_group(maps: list[Maps], shown: people.Seen) -> dict[str, float]:
    """Scores of the maps of one condition; 'edge' is the entropy at the edge over that elsewhere."""
    each = np.array([one.mean_entropy for one in maps])
    field = np.mean([one.entropy for one in maps], axis=0)
    scores = [contour_score(one, shown.truth) for one in maps]
    return {
        "entropy": each.mean(),
        "sd": each.std(ddof=1),
        "edge": field[shown.edge].mean() / field[~shown.edge].mean(),
        "accuracy": float(np.mean([metrics.label_accuracy(one, shown.truth) for one in maps])),
        "accuracy_of_mean": metrics.label_accuracy(mean_maps(maps), shown.truth),
        "f": float(np.mean(scores)),
        "differ": float(np.mean(np.array(scores) < CLOSE)),
    }


def contour_score(maps: Maps, truth: Maps) -> float:
    """F of the segmentation's contour; one location off is forgiven."""
    cells = LAYOUT.cells(CELL_PX * LAYOUT.size, CELL_PX * LAYOUT.size)
    return metrics.boundary_scores(maps.labels[cells], truth.labels[cells], tolerance=1 / LAYOUT.size).f


def mean_maps(maps: list[Maps]) -> Maps:
    """The average over people, as the paper shows it."""
    return Maps(LAYOUT, np.mean([one.probabilities for one in maps], axis=0))


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """One replication on the first pictures: everybody's maps, (15, 11, 11) probabilities of the first texture."""
    found: dict[str, NDArray[np.float64]] = {}
    for condition in CONDITIONS:
        shown = people.seen(condition, 0)
        found[f"image_{condition}"] = shown.image / 255
        found[f"truth_{condition}"] = shown.truth.image
        group = _people(condition, 0, seed)
        for name in (BELIEF, *ESTIMATORS):
            found[f"{name}_{condition}"] = np.array([person[name].image[..., 0] for person in group])
    return found


def claims(table: "Table") -> list[Claim]:
    """What the paper says about its texture experiment."""
    return [_effect(table), _alike(table), _at_the_edge(table), _contours(table), _unbiased(table)]


def _effect(table: "Table") -> Claim:
    sizes = {name: table.column("d", estimator=name) for name in (BELIEF, *ESTIMATORS)}
    found = {name: float(np.mean(table.column("p", estimator=name) < 0.05)) for name in sizes}
    by_chance, apart = _between_pictures(table, "paper_plain")
    within = np.quantile(sizes["paper_plain"], [0.025, 0.975])

    def said(name: str) -> str:
        return f"d = {spoken(interval(sizes[name]), 2)}, p < 0.05 in {found[name]:.0%} of the replications"

    return judged(
        "The maps' entropy is larger for the picture of high uncertainty.",
        printed="d = 1.003, t = 2.746, p = 0.0109",
        paper=f"λ = 0: {said('paper_plain')}; a single replication gives {within[0]:.1f} to {within[1]:.1f}",
        ours=f"λ = 0: {said('ours_plain')}; default: {said('ours')}; the people's beliefs: {said(BELIEF)}",
        holds=interval(sizes["paper_plain"])[1] > 0 and found["paper_plain"] > 0.5,
        holds_if=interval(sizes["ours_plain"])[1] > 0 and found["ours_plain"] > 0.5,
        condition=LOWEST,
        reason="fewer than half of the replications find it",
        remark="The people are simulated and their gain is ours. One picture a condition does not tell uncertainty "
        f"from picture: two pictures of the same low uncertainty differ by |d| = {apart:.2f} on average, and by "
        f"p < 0.05 in {by_chance:.0%} of the comparisons.",
    )


def _between_pictures(table: "Table", name: str) -> tuple[float, float]:
    """Two groups who see different pictures of low uncertainty: share of p < 0.05, mean |d|."""
    from scipy.stats import ttest_ind_from_stats

    own = table.where(estimator=name)
    groups = [
        (own.column("entropy_low", picture=picture), own.column("sd_low", picture=picture))
        for picture in dict.fromkeys(own.column("picture").tolist())
    ]
    p, d = [], []
    for number, (mean, sd) in enumerate(groups):
        for other_mean, other_sd in groups[:number]:
            t, chance = ttest_ind_from_stats(
                mean, sd, PARTICIPANTS, other_mean, other_sd, PARTICIPANTS, equal_var=False
            )
            p.append(chance)
            d.append(np.abs(t) * np.sqrt(2 / PARTICIPANTS))
    return float(np.mean(np.concatenate(p) < 0.05)), float(np.mean(np.concatenate(d)))


def _alike(table: "Table") -> Claim:
    def right(name: str, of: str = "accuracy_of_mean") -> list[tuple[float, float, float]]:
        return [interval(table.column(f"{of}_{condition}", estimator=name)) for condition in CONDITIONS]

    mean, own = right("paper_plain"), right("ours_plain")
    alone, own_alone = right("paper_plain", "accuracy"), right("ours_plain", "accuracy")
    return judged(
        "The segmentations of both conditions are much alike, with a few noisy locations more at high uncertainty.",
        paper=f"labels right in the mean map: {spoken(mean[0])} low, {spoken(mean[1])} high; in one person's: "
        f"{spoken(alone[0])} and {spoken(alone[1])}",
        ours=f"{spoken(own[0])} and {spoken(own[1])}; in one person's: {spoken(own_alone[0])} and "
        f"{spoken(own_alone[1])}",
        holds=_few_more(mean),
        holds_if=_few_more(own),
        condition=LOWEST,
        reason="the segmentations differ in more than a few locations, or not in that direction",
        remark="In the mean over people; in one person's map fewer are right, unless the lowest loss is reached.",
    )


def _few_more(right: list[tuple[float, float, float]]) -> bool:
    """Both nearly right, and high uncertainty no better than low."""
    (low, _, _), (high, _, _) = right
    return min(low, high) > 0.95 and low >= high


def _at_the_edge(table: "Table") -> Claim:
    def edges(name: str) -> list[NDArray[np.float64]]:
        return [table.column(f"edge_{condition}", estimator=name) for condition in CONDITIONS]

    paper, own, believed = (edges(name) for name in ("paper_plain", "ours_plain", BELIEF))
    return judged(
        "At low uncertainty the entropy lies at the edge between the textures, at high uncertainty it is spread more "
        "evenly.",
        paper=f"entropy at the edge over elsewhere: {spoken(interval(paper[0]), 2)} low, "
        f"{spoken(interval(paper[1]), 2)} high",
        ours=f"{spoken(interval(own[0]), 2)} and {spoken(interval(own[1]), 2)}; the people's beliefs: "
        f"{spoken(interval(believed[0]), 2)} and {spoken(interval(believed[1]), 2)}",
        holds=interval(paper[0])[1] > 1.1 and interval(paper[0] - paper[1])[1] > 0,
        holds_if=interval(own[0])[1] > 1.1 and interval(own[0] - own[1])[1] > 0,
        condition=LOWEST,
        reason="the edge stands out as much at high uncertainty as at low",
    )


def _contours(table: "Table") -> Claim:
    def scores(name: str) -> list[NDArray[np.float64]]:
        return [table.column(f"f_{condition}", estimator=name) for condition in CONDITIONS]

    def said(name: str) -> str:
        low, high = (PARTICIPANTS * table.column(f"differ_{c}", estimator=name).mean() for c in CONDITIONS)
        first, second = (spoken(interval(values), 2) for values in scores(name))
        return f"F = {first} low, {second} high; below {CLOSE} in {low:.1f} and {high:.1f} of 15"

    low, high = scores("paper_plain")
    own_low, own_high = scores("ours_plain")
    return judged(
        "Contours agree less with the true one at high uncertainty.",
        printed="3 of 15 differ at low, 9 of 15 at high uncertainty",
        paper=said("paper_plain"),
        ours=f"{said('ours_plain')}; default: {said('ours')}",
        holds=interval(low - high)[1] > 0,
        holds_if=interval(own_low - own_high)[1] > 0,
        condition=LOWEST,
        reason="the scores of both conditions are the same within their intervals",
        remark="The paper's people drew their contours; simulated people draw none, so these are the edges of their "
        "segmentations, one location off being forgiven.",
    )


def _unbiased(table: "Table") -> Claim:
    def off(name: str) -> tuple[float, float, float]:
        return interval(
            np.concatenate(
                [
                    table.column(f"entropy_{c}", estimator=name)
                    - table.column(f"entropy_{c}", estimator=BELIEF)
                    for c in CONDITIONS
                ]
            )
        )

    plain, smooth, own, default = (off(name) for name in ("paper_plain", "paper", "ours_plain", "ours"))
    return judged(
        "Regularisation would bias the entropy, so λ = 0 is used here.",
        paper=f"entropy minus the beliefs': {spoken(plain)} nats at λ = 0, {spoken(smooth)} at λ = 10",
        ours=f"{spoken(own)} at λ = 0, {spoken(default)} by default",
        holds=smooth[1] > max(abs(plain[1]), abs(plain[2])),
        reason="λ = 10 is no farther off than λ = 0",
        remark=f"λ = 0 is not free of bias either: {plain[0]:+.3f} nats from a random start, {own[0]:+.3f} at the "
        "lowest loss that we find.",
    )


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


def draw(table: "Table", example: Example) -> "Figure":
    """Mean maps of both groups, the size of the effect over replications, and every participant (S5)."""
    figure = style.sheet(WIDTH, PEOPLE_TOP + 4 * (TINY + 0.2) + 0.75)
    for row, condition in enumerate(CONDITIONS):
        _draw_mean_maps(figure, 0.5 + row * (SIDE + 0.22), condition, example, first=row == 0)
    for column, draw_chart in enumerate((_draw_effects, _draw_entropies, _draw_contour_scores)):
        draw_chart(style.axes_at(figure, 0.95 + column * 3.1, CHARTS_TOP, 2.3, 2.05), table)
    _draw_participants(figure, example)
    return figure


def _load_group(example: Example, name: str, condition: str) -> list[Maps]:
    first = example[f"{name}_{condition}"]
    return [drawing.as_maps(np.stack([one, 1 - one], axis=2)) for one in first]


def _draw_mean_maps(figure: "Figure", top: float, condition: str, example: Example, *, first: bool) -> None:
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
        group = _load_group(example, name, condition)
        mean, field = mean_maps(group), np.mean([one.entropy for one in group], axis=0)
        each = np.array([one.mean_entropy for one in group])
        at = places[1 + 3 * number : 4 + 3 * number]
        axes = [style.axes_at(figure, left, top, SIDE, SIDE) for left in at]
        style.picture(axes[0], style.paint(style.raster(mean.layout, mean.labels)))
        style.picture(axes[1], style.shade(mean.image[..., 0], 0))
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


def _draw_effects(axes: "Axes", table: "Table") -> None:
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


def _draw_entropies(axes: "Axes", table: "Table") -> None:
    _draw_by_condition(axes, table, "entropy", NAMES)
    style.plain(axes, "", "mean entropy (nats)")
    axes.set_ylim(bottom=0)
    style.title(axes, "Entropy: mean and its 95 % interval", style.SMALL)


def _draw_contour_scores(axes: "Axes", table: "Table") -> None:
    _draw_by_condition(axes, table, "f", NAMES)
    style.plain(axes, "", "F of contours")
    axes.set_ylim(0, 1.02)
    style.title(axes, "Contours against the true one (S5)", style.SMALL)
    axes.legend(fontsize=7, frameon=False, loc="lower left", handlelength=1.6, labelspacing=0.3)


def _draw_by_condition(axes: "Axes", table: "Table", value: str, names: dict[str, str]) -> None:
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


def _draw_participants(figure: "Figure", example: Example) -> None:
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
        for number, one in enumerate(_load_group(example, name, condition)):
            left = 0.9 + number * step
            axes = style.axes_at(figure, left, at, TINY, TINY)
            style.picture(axes, style.raster(one.layout, one.entropy), highest=float(np.log(2)))
            style.draw_boundaries(axes, one, tone=RED, width=0.6)
            style.write(figure, left + TINY / 2, at + TINY + 0.07, f"{contour_score(one, truth):.2f}", size=6)
    bar = style.axes_at(figure, WIDTH / 2 - 1, top + 4 * (TINY + 0.2) + 0.14, 2, 0.12)
    style.entropy_bar(figure, bar, float(np.log(2)))
