"""The differential variance of the texture experiment, beside what shuffled answers give.

With two segments only ω₁ - ω₂ is identified, so the paper's σ₁² - σ₂² keeps whatever its start had in it. The paper
says neither where its fit starts nor whether it moves σ or its logarithm: all four ways are run, and each is held
against a null control, the same fit to the same person's answers in random order. A claim counts as reproduced if it
passes in all four. A resample is one new person of one condition; curves and claims are about groups of fifteen.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import parametric, people, simulation
from reproduction.paper.claims import DRAWS, Claim, interval, judged, spoken
from reproduction.paper.people import CONDITIONS, LAYOUT, PARTICIPANTS
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.features.energy import orientations_deg
from vseg.figures import style
from vseg.models import Task, variance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "variance"
TITLE = "Which orientations people go by"
WHERE = "Figure 9"
ANSWERS = ("given", "shuffled")
SETTINGS = {"condition": CONDITIONS, "answers": ANSWERS}

WAYS = {
    "ones": ("ones", "σ"),
    "ones_log": ("ones", "log σ"),
    "energies": ("energies", "σ"),
    "energies_log": ("energies", "log σ"),
}
"""The ways in which the paper may have fitted: the start of σ², and what is moved."""
SAID = {
    "ones": "σ from 1",
    "ones_log": "log σ from 1",
    "energies": "σ from the energies",
    "energies_log": "log σ from the energies",
}
FITS = (*WAYS, "ours")
BANDS_DEG = orientations_deg()
NEAR = np.abs(BANDS_DEG - 90) <= 20
BUMP = np.abs(BANDS_DEG - 90) <= 40  # where a bump's width is taken
EVEN = float(NEAR.mean())  # the share of a flat curve near 90°
LEAST_ENERGY = 0.02  # of the largest, where a start at the energies has its floor
STARTS = 2  # of ours; more never led elsewhere
GROUPS = 200


def share(*, condition: str, answers: str) -> float:
    """Six hundred people a cell of a thousand resamples: forty groups of fifteen."""
    return 0.6


def trial(*, condition: str, answers: str, seed: int) -> dict[str, Any]:
    """One person: the curve of each fit over 36 orientations, and in what share of them ours differs from 0."""
    rng = np.random.default_rng(seed)
    shown = people.seen(condition)
    tally = people.answers(people.belief(shown, rng), rng)
    tally = people.shuffled(tally, rng) if answers == "shuffled" else tally
    curves, nonzero = _curves(shown, tally, seed)
    found: dict[str, Any] = {"nonzero": nonzero}
    for fit, curve in curves.items():
        found |= {
            _column(fit, band): float(f"{value:.5g}") for band, value in zip(BANDS_DEG, curve, strict=True)
        }
    return found


def _column(fit: str, band_deg: float) -> str:
    return f"{fit}_{band_deg:03.0f}"


def _curves(shown: people.Seen, tally: Tally, seed: int) -> tuple[dict[str, NDArray[np.float64]], float]:
    """Each fit's curve, segments named as in the picture, and the share of ours whose interval leaves out 0."""
    curves, starts = {}, _starts(shown)
    for fit, (start, over) in WAYS.items():
        found = parametric.variances(shown.energies, tally, starts[start], over=over, seed=seed)
        curves[fit] = found.difference if _named_alike(found.maps, shown.truth) else -found.difference
    task = Task(simulation.one_by_one(tally), segments=2)
    own = variance({"image": shown.energies}, starts=STARTS)(task, seed=seed).align_to({"image": shown.truth})
    low, high = own.interval(0.95)
    return {**curves, "ours": own.difference}, float(np.mean((low > 0) | (high < 0)))


def _starts(shown: people.Seen) -> dict[str, NDArray[np.float64]]:
    mean = shown.energies.mean(axis=0)
    return {"ones": np.ones(len(mean)), "energies": np.maximum(mean, LEAST_ENERGY * mean.max())}


def _named_alike(maps: Maps, truth: Maps) -> bool:
    return bool(np.sum(maps.probabilities * truth.probabilities) >= len(LAYOUT) / 2)


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """The pictures, their energies, and the curves of one experiment with fifteen people a condition."""
    found: dict[str, NDArray[np.float64]] = {}
    for condition in CONDITIONS:
        shown = people.seen(condition)
        found[f"image_{condition}"] = shown.image / 255
        found[f"energies_{condition}"] = np.stack(shown.by_texture)
        found[f"weights_{condition}"] = people.GAIN * shown.weights
        for answers in ANSWERS:
            seeds = np.random.SeedSequence([seed, CONDITIONS.index(condition)]).generate_state(PARTICIPANTS)
            rows = [trial(condition=condition, answers=answers, seed=int(each)) for each in seeds]
            for fit in FITS:
                curves = [[row[_column(fit, band)] for band in BANDS_DEG] for row in rows]
                found[f"{fit}_{condition}_{answers}"] = np.array(curves)
    return found


def claims(table: "Table") -> list[Claim]:
    """What the paper says about the differential variance; each is held against shuffled answers."""
    curves = {
        (fit, condition, answers): group_curves(table, fit, condition, answers)
        for fit in FITS
        for condition in CONDITIONS
        for answers in ANSWERS
    }
    return [_around_vertical(table, curves), _wider(curves), _away(curves), _follows(curves)]


Curves = dict[tuple[str, str, str], NDArray[np.float64]]
Scores = dict[tuple[str, str], NDArray[np.float64]]  # by fit and answers, one a group


def _around_vertical(table: "Table", curves: Curves) -> Claim:
    near = {(fit, answers): _both(curves, fit, answers, share_near) for fit in WAYS for answers in ANSWERS}
    nonzero = [interval(table.column("nonzero", answers=answers)) for answers in ANSWERS]
    null = [over_groups(near[fit, "shuffled"]) for fit in WAYS]
    return _against_null(
        "People give more weight to the orientations around 90°.",
        near,
        least=EVEN,
        unit=f"of the curve within 20° of 90° (a flat curve: {EVEN:.2f})",
        ours=f"orientations whose 95 % interval of ω₁ - ω₂ leaves out 0: {spoken(nonzero[0], 2)}, shuffled "
        f"{spoken(nonzero[1], 2)}",
        note=f"Shuffled answers have a bump of their own in {sum(low > EVEN for _, low, _ in null)} of the four ways: "
        f"{min(null)[0]:.2f} to {max(null)[0]:.2f} of the curve.",
    )


def _wider(curves: Curves) -> Claim:
    wider: Scores = {
        (fit, answers): width(curves[fit, "high", answers]) - width(curves[fit, "low", answers])
        for fit in FITS
        for answers in ANSWERS
    }
    return _against_null(
        "The bump is wider at high uncertainty: people go by a broader range of orientations.",
        wider,
        least=0,
        unit="degrees wider",
        ours=f"{_beside(wider, 'ours', 1)} degrees",
        digits=1,
    )


def _away(curves: Curves) -> Claim:
    truth = {c: lobes(np.subtract(*people.seen(c).by_texture)[None])[0] for c in CONDITIONS}
    away: Scores = {
        (fit, answers): np.mean([lobes(curves[fit, c, answers]) - truth[c] for c in CONDITIONS], axis=0)
        for fit in FITS
        for answers in ANSWERS
    }
    return _against_null(
        "The two lobes lie farther from 90° than those of the pictures.",
        away,
        least=0,
        unit="degrees farther",
        ours=f"{_beside(away, 'ours', 1)} degrees; the weights that people were given: "
        f"{np.mean([lobes(people.seen(c).weights[None])[0] - truth[c] for c in CONDITIONS]):.1f}",
        digits=1,
    )


def _follows(curves: Curves) -> Claim:
    alike: Scores = {
        (fit, answers): np.concatenate([_aligned(curves[fit, c, answers], fit, c) for c in CONDITIONS])
        for fit in FITS
        for answers in ANSWERS
    }
    return _against_null(
        "The differential variance follows the difference of the two textures' energies.",
        alike,
        least=0.5,
        unit="correlation",
        ours=f"slope of ω₁ - ω₂ on the weights that people were given: {_beside(alike, 'ours')}",
    )


def _against_null(
    claim: str, scores: Scores, *, least: float, unit: str, ours: str, digits: int = 2, note: str = ""
) -> Claim:
    """Reproduced if every way of fitting passes, given answers against shuffled ones."""
    missing = {fit: _missing(scores, fit, least) for fit in WAYS}
    passed = [fit for fit in WAYS if not missing[fit]]
    failed = "; ".join(
        f"{', '.join(SAID[fit] for fit in WAYS if missing[fit] == why)}: {why}"
        for why in dict.fromkeys(filter(None, missing.values()))
    )
    return judged(
        claim,
        paper=f"{unit}, mean and 95 % of all groups of {PARTICIPANTS}: "
        + "; ".join(f"{SAID[fit]} {_beside(scores, fit, digits)}" for fit in WAYS),
        ours=ours,
        holds=len(passed) == len(WAYS),
        holds_if=bool(passed),
        condition=f"the fit moves {' or '.join(SAID[fit] for fit in passed)} ({failed}). {note}".strip(),
        reason=f"It is found in none of the four ways to fit ({failed}). {note}".strip(),
        remark=note,
    )


def _aligned(curves: NDArray[np.float64], fit: str, condition: str) -> NDArray[np.float64]:
    """Of the paper's curves, the correlation with the energies; of ours, the slope on people's weights.

    Ours is smooth and its segments are named as in the picture: even coin flips then correlate, but with a slope of 0.
    """
    shown = people.seen(condition)
    if fit == "ours":
        theirs = people.GAIN * (shown.weights - shown.weights.mean())
        return np.asarray(curves @ theirs / (theirs @ theirs))
    return correlation(curves, np.subtract(*shown.by_texture))


def group_curves(table: "Table", fit: str, condition: str, answers: str) -> NDArray[np.float64]:
    """(GROUPS, 36) mean curves of fifteen people drawn from all of a cell; the same draws for every fit."""
    cell = table.where(condition=condition, answers=answers)
    each = np.stack([cell.column(_column(fit, band)) for band in BANDS_DEG], axis=1)
    drawn = np.random.default_rng(0).integers(len(each), size=(GROUPS, PARTICIPANTS))
    return np.asarray(each[drawn].mean(axis=1))


def share_near(curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much of a curve's absolute area lies within 20° of 90°.

    Examples
    --------
    >>> float(share_near(np.ones((1, 36)))[0])
    0.25
    """
    size = np.abs(curves)
    return np.asarray(size[:, NEAR].sum(axis=1) / size.sum(axis=1))


def width(curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviation in degrees of a curve's absolute values around 90°, within 40° of it."""
    size = np.abs(curves[:, BUMP])
    return np.asarray(np.sqrt(size @ (BANDS_DEG[BUMP] - 90) ** 2 / size.sum(axis=1)))


def lobes(curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half the distance in degrees between the centres of the positive and the negative part, within 40° of 90°."""
    parts = [np.maximum(sign * curves[:, BUMP], 1e-12) for sign in (1, -1)]
    centres = [part @ BANDS_DEG[BUMP] / part.sum(axis=1) for part in parts]
    return np.asarray(np.abs(centres[0] - centres[1]) / 2)


def correlation(curves: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each curve with another one."""
    mine, theirs = curves - curves.mean(axis=1, keepdims=True), other - other.mean()
    return np.asarray(mine @ theirs / np.linalg.norm(mine, axis=1) / np.linalg.norm(theirs))


def _both(curves: Curves, fit: str, answers: str, score: Any) -> NDArray[np.float64]:
    return np.concatenate([score(curves[fit, condition, answers]) for condition in CONDITIONS])


def over_groups(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean over experiments of fifteen people, and where 95 % of them lie."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(values.mean()), float(low), float(high)


def _beside(scores: Scores, fit: str, digits: int = 2) -> str:
    given, null = (spoken(over_groups(scores[fit, answers]), digits) for answers in ANSWERS)
    return f"{given}, shuffled {null}"


def _missing(scores: Scores, fit: str, least: float) -> str:
    """Why a way of fitting does not pass; empty if it does.

    It passes if given answers and shuffled ones are apart, the mean of either beyond where 95 % of the other's
    experiments lie, and if 97.5 % of the experiments with given answers are above `least`.
    """
    given, null = (over_groups(scores[fit, answers]) for answers in ANSWERS)
    if not (given[1] > null[0] and given[0] > null[2]):
        return "cannot be told from shuffled answers"
    return "" if given[1] > least else f"not above {least:g} in 97.5 % of experiments"


TONES = {"given": "#0072B2", "shuffled": "#D55E00", "truth": "#333333"}
LINE_STYLES: dict[str, Any] = {"given": "-", "shuffled": "--"}
ANSWER_LABELS = {"given": "answers as given", "shuffled": "the same answers, shuffled"}
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
PANEL_WIDTH, PANEL_HEIGHT, STEP = 1.25, 1.25, 1.66
LEFT, CHARTS_TOP = 2.3, 4.75
Example = dict[str, NDArray[np.float64]]


def draw(table: "Table", example: Example) -> "Figure":
    """Curves of people and of shuffled answers, and what of a bump shuffled answers have too."""
    figure = style.sheet(LEFT + len(FITS) * STEP, CHARTS_TOP + 2.5)
    for row, condition in enumerate(CONDITIONS):
        _draw_row(figure, 0.6 + row * (PANEL_HEIGHT + 0.3), condition, example, first=row == 0)
    _draw_key(figure)
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
    _draw_means(places[0], near, list(WAYS))
    places[0].axhline(EVEN, color=style.INK, linewidth=0.8, linestyle=":")
    places[0].set_ylim(0, 1.05)
    style.plain(places[0], "", "share within 20° of 90°")
    style.title(places[0], "Weight around 90°: 95 % of groups of 15 (dotted: flat)", style.SMALL)
    wider = {
        (fit, answers): over_groups(width(curves[fit, "high", answers]) - width(curves[fit, "low", answers]))
        for fit in FITS
        for answers in ANSWERS
    }
    _draw_means(places[1], wider, list(FITS))
    places[1].axhline(0, color=style.INK, linewidth=0.8, linestyle=":")
    style.plain(places[1], "", "high minus low (degrees)")
    style.title(places[1], "Width of the bump: 95 % of groups of 15", style.SMALL)
    _draw_means(
        places[2], {("ours", a): interval(table.column("nonzero", answers=a)) for a in ANSWERS}, ["ours"]
    )
    places[2].set_ylim(bottom=0)
    style.plain(places[2], "", "share of orientations")
    style.title(places[2], "95 % interval\nleaves out 0", style.SMALL)
    return figure


def _draw_row(figure: "Figure", top: float, condition: str, example: Example, *, first: bool) -> None:
    picture = style.axes_at(figure, 0.3, top, PANEL_WIDTH, PANEL_WIDTH)
    style.picture(picture, example[f"image_{condition}"])
    style.write(figure, 0.15, top + PANEL_WIDTH / 2, f"{condition} uncertainty", rotation=90)
    if first:
        style.title(picture, "picture", style.SMALL)
    for column, fit in enumerate(FITS):
        axes = style.axes_at(
            figure, LEFT + column * STEP + (0.12 if fit == "ours" else 0), top, PANEL_WIDTH, PANEL_HEIGHT
        )
        truth = (
            example[f"weights_{condition}"]
            if fit == "ours"
            else np.subtract(*example[f"energies_{condition}"])
        )
        _draw_curves(
            axes,
            {answers: example[f"{fit}_{condition}_{answers}"] for answers in ANSWERS},
            truth,
            fit != "ours",
        )
        axes.set_xticks([0, 90, 180])
        style.plain(axes, "" if first else "orientation (deg)", "")
        if first:
            style.title(axes, TITLES[fit], style.SMALL)
    style.write(figure, LEFT - 0.55, top + PANEL_HEIGHT / 2, "σ₁² - σ₂²", rotation=90, size=style.MEDIUM)


def _draw_curves(
    axes: "Axes", people: Mapping[str, NDArray[np.float64]], truth: NDArray[np.float64], scaled: bool
) -> None:
    """Means over people with their 95 % bands; what is true, at the height of the given curve if `scaled`."""
    rng = np.random.default_rng(0)
    axes.axhline(0, color=style.INK, linewidth=0.5)
    for answers, each in people.items():
        drawn_means = each[rng.integers(len(each), size=(DRAWS, len(each)))].mean(axis=1)
        low, high = np.quantile(drawn_means, [0.025, 0.975], axis=0)
        axes.fill_between(BANDS_DEG, low, high, color=TONES[answers], alpha=0.25, linewidth=0)
        axes.plot(
            BANDS_DEG, each.mean(axis=0), color=TONES[answers], linestyle=LINE_STYLES[answers], linewidth=1.4
        )
    peak = np.abs(people["given"].mean(axis=0)).max() / np.abs(truth).max() if scaled else 1.0
    axes.plot(BANDS_DEG, truth * peak, color=TONES["truth"], linestyle=":", linewidth=1.2)
    axes.tick_params(labelsize=7)


def _draw_key(figure: "Figure") -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=TONES[a], linestyle=LINE_STYLES[a], linewidth=1.6) for a in ANSWERS]
    handles.append(Line2D([], [], color=TONES["truth"], linestyle=":", linewidth=1.4))
    names = [
        *ANSWER_LABELS.values(),
        "truth: energies of the textures (scaled); for vseg, the observers' weights",
    ]
    down = figure.get_size_inches()[1]
    style.key(figure, handles, names, loc="center", bbox_to_anchor=(0.5, 1 - 4.14 / down), ncols=3)


def _draw_means(
    axes: "Axes", found: Mapping[tuple[str, str], tuple[float, float, float]], fits: list[str]
) -> None:
    for number, answers in enumerate(ANSWERS):
        mean, low, high = np.array([found[fit, answers] for fit in fits]).T
        axes.errorbar(
            np.arange(len(fits)) + 0.16 * (number - 0.5), mean, [mean - low, high - mean], linestyle="none",
            color=TONES[answers], marker="os"[number], markersize=5, capsize=2.5, linewidth=1.4,
        )  # fmt: skip
    axes.set_xticks(range(len(fits)), [TICKS[fit] for fit in fits])
    axes.set_xlim(-0.6, len(fits) - 0.4)
