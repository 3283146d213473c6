"""Figure 9: the differential variance of the texture experiment, compared with that of shuffled answers.

With two segments only ω₁ - ω₂ is identified, so the paper's σ₁² - σ₂² depends on where the fit starts. The paper prints
neither its start nor whether it optimises σ or log σ. All four combinations are run and compared with a null control:
the same fit to the same participant's answers in random order. A claim is reproduced if it passes in all four. A
resample is one new participant of one condition; curves and claims are about groups of fifteen.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import parametric, participants, simulation
from reproduction.paper.claims import BOOTSTRAP_DRAWS, Claim, format_interval, interval, judge
from reproduction.paper.participants import CONDITIONS, LAYOUT, PARTICIPANTS
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.features.energy import orientations_deg
from vseg.figures import style
from vseg.models import Task, differential_variance, variance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "variance"
TITLE = "Differential variance: which orientations participants use"
WHERE = "Figure 9"
ANSWERS = ("given", "shuffled")
SETTINGS = {"condition": CONDITIONS, "answers": ANSWERS}

WAYS = {
    "ones": ("ones", "σ"),
    "ones_log": ("ones", "log σ"),
    "energies": ("energies", "σ"),
    "energies_log": ("energies", "log σ"),
}
"""The ways in which the paper may have fitted: the start of σ², and the parameter that is optimised."""
WAY_LABELS = {
    "ones": "σ from 1",
    "ones_log": "log σ from 1",
    "energies": "σ from the energies",
    "energies_log": "log σ from the energies",
}
FITS = (*WAYS, "ours")
BANDS_DEG = orientations_deg()
NEAR_VERTICAL = np.abs(BANDS_DEG - 90) <= 20
BUMP_RANGE = np.abs(BANDS_DEG - 90) <= 40  # range in which the width of a bump is computed
FLAT_SHARE = float(NEAR_VERTICAL.mean())  # share of a flat curve near 90°
MIN_ENERGY = 0.02  # smallest start, as a share of the largest energy
STARTS = 2  # of vseg's fit; more starts gave the same result
RUN = (
    f"N = {LAYOUT.size}, K = 2, KN² pairs, N_b = {participants.BLOCKS}; paper: squared error, λ = 0, L-BFGS for at "
    f"most {differential_variance.STEPS} steps from one start; simulated participants (gain 0.7, log s.d. 0.18, noise "
    "0.5, lapses 3 %), one image per condition"
)
GROUPS = 200  # bootstrapped experiments of fifteen participants


def trial(*, condition: str, answers: str, seed: int) -> dict[str, Any]:
    """Run one participant; return each fit's curve over 36 orientations, and the share where vseg's differs from 0."""
    rng = np.random.default_rng(seed)
    image = participants.make_texture_image(condition)
    tally = participants.simulate_answers(participants.simulate_belief(image, rng), rng)
    tally = participants.shuffle_answers(tally, rng) if answers == "shuffled" else tally
    curves, nonzero = _fit_curves(image, tally, seed)
    row: dict[str, Any] = {"nonzero": nonzero}
    for fit, curve in curves.items():
        row |= {
            _column(fit, band): float(f"{value:.5g}") for band, value in zip(BANDS_DEG, curve, strict=True)
        }
    return row


def _column(fit: str, band_deg: float) -> str:
    return f"{fit}_{band_deg:03.0f}"


def _fit_curves(
    image: participants.TextureImage, tally: Tally, seed: int
) -> tuple[dict[str, NDArray[np.float64]], float]:
    """Return each fit's curve, with segments ordered as in the image, and the share of vseg's intervals without 0."""
    curves, starts = {}, _starts(image)
    for fit, (start, parameter) in WAYS.items():
        result = parametric.fit_variances(
            image.energies, tally, starts[start], parameter=parameter, seed=seed
        )
        curves[fit] = result.difference if _is_aligned(result.maps, image.truth) else -result.difference
    task = Task(simulation.expand_tally(tally), segments=2)
    ours = variance({"image": image.energies}, starts=STARTS)(task, seed=seed).align_to(
        {"image": image.truth}
    )
    low, high = ours.interval(0.95)
    return {**curves, "ours": ours.difference}, float(np.mean((low > 0) | (high < 0)))


def _starts(image: participants.TextureImage) -> dict[str, NDArray[np.float64]]:
    mean = image.energies.mean(axis=0)
    return {"ones": np.ones(len(mean)), "energies": np.maximum(mean, MIN_ENERGY * mean.max())}


def _is_aligned(maps: Maps, truth: Maps) -> bool:
    return bool(np.sum(maps.probabilities * truth.probabilities) >= len(LAYOUT) / 2)


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """Return the images, their energies, and the curves of one experiment with fifteen participants per condition."""
    arrays: Example = {}
    for condition in CONDITIONS:
        image = participants.make_texture_image(condition)
        arrays[f"image_{condition}"] = image.image / 255
        arrays[f"energies_{condition}"] = np.stack(image.by_texture)
        arrays[f"weights_{condition}"] = participants.GAIN * image.weights
        for answers in ANSWERS:
            seeds = np.random.SeedSequence([seed, CONDITIONS.index(condition)]).generate_state(PARTICIPANTS)
            rows = [trial(condition=condition, answers=answers, seed=int(own_seed)) for own_seed in seeds]
            for fit in FITS:
                curves = [[row[_column(fit, band)] for band in BANDS_DEG] for row in rows]
                arrays[f"{fit}_{condition}_{answers}"] = np.array(curves)
    return arrays


def claims(table: "Table") -> list[Claim]:
    """Judge the paper's claims about the differential variance against shuffled answers."""
    curves = {
        (fit, condition, answers): group_curves(table, fit, condition, answers)
        for fit in FITS
        for condition in CONDITIONS
        for answers in ANSWERS
    }
    return [
        _judge_weight_near_vertical(table, curves),
        _judge_width(curves),
        _judge_lobe_distance(curves),
        _judge_agreement_with_energies(curves),
    ]


Curves = dict[tuple[str, str, str], NDArray[np.float64]]
Scores = dict[tuple[str, str], NDArray[np.float64]]  # by fit and answers, one score per group


def _judge_weight_near_vertical(table: "Table", curves: Curves) -> Claim:
    near = {
        (fit, answers): _score_both_conditions(curves, fit, answers, share_near_vertical)
        for fit in WAYS
        for answers in ANSWERS
    }
    nonzero = [interval(table.column("nonzero", answers=answers)) for answers in ANSWERS]
    null = [group_interval(near[fit, "shuffled"]) for fit in WAYS]
    return _judge_against_shuffled(
        "Participants give more weight to the orientations around 90°.",
        near,
        least=FLAT_SHARE,
        unit=f"of the curve within 20° of 90° (a flat curve: {FLAT_SHARE:.2f})",
        ours=f"orientations whose 95 % interval of ω₁ - ω₂ excludes 0: {format_interval(nonzero[0], 2)}, shuffled "
        f"{format_interval(nonzero[1], 2)}",
        note=f"Shuffled answers also have a bump in {sum(low > FLAT_SHARE for _, low, _ in null)} of the four ways: "
        f"{min(null)[0]:.2f} to {max(null)[0]:.2f} of the curve.",
    )


def _judge_width(curves: Curves) -> Claim:
    wider: Scores = {
        (fit, answers): bump_width(curves[fit, "high", answers]) - bump_width(curves[fit, "low", answers])
        for fit in FITS
        for answers in ANSWERS
    }
    return _judge_against_shuffled(
        "The bump is wider at high uncertainty: participants use a broader range of orientations.",
        wider,
        least=0,
        unit="degrees wider",
        ours=f"{_format_with_shuffled(wider, 'ours', 1)} degrees",
        digits=1,
    )


def _judge_lobe_distance(curves: Curves) -> Claim:
    truth = {
        c: lobe_distance(np.subtract(*participants.make_texture_image(c).by_texture)[None])[0]
        for c in CONDITIONS
    }
    true_weights = [
        lobe_distance(participants.make_texture_image(c).weights[None])[0] - truth[c] for c in CONDITIONS
    ]
    away: Scores = {
        (fit, answers): np.mean(
            [lobe_distance(curves[fit, c, answers]) - truth[c] for c in CONDITIONS], axis=0
        )
        for fit in FITS
        for answers in ANSWERS
    }
    return _judge_against_shuffled(
        "The two lobes lie farther from 90° than those of the images.",
        away,
        least=0,
        unit="degrees farther",
        ours=f"{_format_with_shuffled(away, 'ours', 1)} degrees; the simulated participants' weights: "
        f"{np.mean(true_weights):.1f}",
        digits=1,
    )


def _judge_agreement_with_energies(curves: Curves) -> Claim:
    alike: Scores = {
        (fit, answers): np.concatenate(
            [_score_agreement(curves[fit, c, answers], fit, c) for c in CONDITIONS]
        )
        for fit in FITS
        for answers in ANSWERS
    }
    return _judge_against_shuffled(
        "The differential variance follows the difference of the two textures' energies.",
        alike,
        least=0.5,
        unit="correlation",
        ours=f"slope of ω₁ - ω₂ on the simulated participants' weights: {_format_with_shuffled(alike, 'ours')}",
    )


def _judge_against_shuffled(
    claim: str, scores: Scores, *, least: float, unit: str, ours: str, digits: int = 2, note: str = ""
) -> Claim:
    """Judge a claim about participants: simulated ones show it if their answers pass in every way of fitting."""
    failures = {fit: _explain_failure(scores, fit, least) for fit in WAYS}
    passed = [fit for fit in WAYS if not failures[fit]]
    failed = "; ".join(
        f"{', '.join(WAY_LABELS[fit] for fit in WAYS if failures[fit] == why)}: {why}"
        for why in dict.fromkeys(filter(None, failures.values()))
    )
    return judge(
        claim,
        paper=f"{unit}, mean and 95 % of all groups of {PARTICIPANTS}: "
        + "; ".join(f"{WAY_LABELS[fit]} {_format_with_shuffled(scores, fit, digits)}" for fit in WAYS),
        ours=ours,
        holds=len(passed) == len(WAYS),
        holds_if=bool(passed),
        condition=f"the fit optimises {' or '.join(WAY_LABELS[fit] for fit in passed)} ({failed}). {note}".strip(),
        reason=f"it is found in none of the four ways of fitting ({failed}). {note}".strip(),
        remark=note,
        settings=RUN,
        about_people=True,
    )


def _score_agreement(curves: NDArray[np.float64], fit: str, condition: str) -> NDArray[np.float64]:
    """Score agreement: for the paper's curves the correlation with the energies, for vseg's the slope on the weights.

    Vseg's curve is smooth and its segments are aligned with the image, so even random answers correlate with the
    weights, but with a slope of 0.
    """
    image = participants.make_texture_image(condition)
    if fit == "ours":
        theirs = participants.GAIN * (image.weights - image.weights.mean())
        return np.asarray(curves @ theirs / (theirs @ theirs))
    return correlation(curves, np.subtract(*image.by_texture))


def group_curves(table: "Table", fit: str, condition: str, answers: str) -> NDArray[np.float64]:
    """Return mean curves (GROUPS, 36) of fifteen participants drawn from a cell; all fits use the same draws."""
    cell = table.where(condition=condition, answers=answers)
    curves = np.stack([cell.column(_column(fit, band)) for band in BANDS_DEG], axis=1)
    members = np.random.default_rng(0).integers(len(curves), size=(GROUPS, PARTICIPANTS))
    return np.asarray(curves[members].mean(axis=1))


def share_near_vertical(curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of a curve's absolute area within 20° of 90°.

    Examples
    --------
    >>> float(share_near_vertical(np.ones((1, 36)))[0])
    0.25
    """
    size = np.abs(curves)
    return np.asarray(size[:, NEAR_VERTICAL].sum(axis=1) / size.sum(axis=1))


def bump_width(curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviation in degrees around 90° of a curve's absolute values, within 40° of it."""
    size = np.abs(curves[:, BUMP_RANGE])
    return np.asarray(np.sqrt(size @ (BANDS_DEG[BUMP_RANGE] - 90) ** 2 / size.sum(axis=1)))


def lobe_distance(curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return half the distance in degrees between the centres of the positive and negative parts, within 40° of 90°."""
    parts = [np.maximum(sign * curves[:, BUMP_RANGE], 1e-12) for sign in (1, -1)]
    centres = [part @ BANDS_DEG[BUMP_RANGE] / part.sum(axis=1) for part in parts]
    return np.asarray(np.abs(centres[0] - centres[1]) / 2)


def correlation(curves: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the correlation of each curve with another one."""
    mine, theirs = curves - curves.mean(axis=1, keepdims=True), other - other.mean()
    return np.asarray(mine @ theirs / np.linalg.norm(mine, axis=1) / np.linalg.norm(theirs))


def _score_both_conditions(curves: Curves, fit: str, answers: str, score: Any) -> NDArray[np.float64]:
    return np.concatenate([score(curves[fit, condition, answers]) for condition in CONDITIONS])


def group_interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the mean over experiments of fifteen participants, and the central 95 % of them."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(values.mean()), float(low), float(high)


def _format_with_shuffled(scores: Scores, fit: str, digits: int = 2) -> str:
    given, null = (format_interval(group_interval(scores[fit, answers]), digits) for answers in ANSWERS)
    return f"{given}, shuffled {null}"


def _explain_failure(scores: Scores, fit: str, least: float) -> str:
    """Return why a way of fitting does not pass; empty if it does.

    It passes if the mean of the given answers is above the central 95 % of the experiments with shuffled answers and
    vice versa, and if 97.5 % of the experiments with given answers are above `least`.
    """
    given, null = (group_interval(scores[fit, answers]) for answers in ANSWERS)
    if not (given[1] > null[0] and given[0] > null[2]):
        return "not distinguishable from shuffled answers"
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
    """Draw the curves of given and of shuffled answers, and charts of the bump in both."""
    figure = style.create_figure(LEFT + len(FITS) * STEP, CHARTS_TOP + 2.5)
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
        style.add_axes(figure, left, CHARTS_TOP, wide, 1.75)
        for left, wide in ((0.8, 3.2), (5.0, 3.5), (9.6, 0.8))
    ]
    near = {
        (fit, answers): group_interval(
            np.concatenate([share_near_vertical(curves[fit, c, answers]) for c in CONDITIONS])
        )
        for fit in WAYS
        for answers in ANSWERS
    }
    _draw_means(places[0], near, list(WAYS))
    places[0].axhline(FLAT_SHARE, color=style.INK, linewidth=0.8, linestyle=":")
    places[0].set_ylim(0, 1.05)
    style.label_axes(places[0], "", "share within 20° of 90°")
    style.set_title(places[0], "Weight around 90°: 95 % of groups of 15 (dotted: flat)", style.SMALL)
    wider = {
        (fit, answers): group_interval(
            bump_width(curves[fit, "high", answers]) - bump_width(curves[fit, "low", answers])
        )
        for fit in FITS
        for answers in ANSWERS
    }
    _draw_means(places[1], wider, list(FITS))
    places[1].axhline(0, color=style.INK, linewidth=0.8, linestyle=":")
    style.label_axes(places[1], "", "high minus low (degrees)")
    style.set_title(places[1], "Width of the bump: 95 % of groups of 15", style.SMALL)
    _draw_means(
        places[2], {("ours", a): interval(table.column("nonzero", answers=a)) for a in ANSWERS}, ["ours"]
    )
    places[2].set_ylim(bottom=0)
    style.label_axes(places[2], "", "share of orientations")
    style.set_title(places[2], "95 % interval\nexcludes 0", style.SMALL)
    return figure


def _draw_row(figure: "Figure", top: float, condition: str, example: Example, *, first: bool) -> None:
    panel = style.add_axes(figure, 0.3, top, PANEL_WIDTH, PANEL_WIDTH)
    style.draw_image(panel, example[f"image_{condition}"])
    style.write_text(figure, 0.15, top + PANEL_WIDTH / 2, f"{condition} uncertainty", rotation=90)
    if first:
        style.set_title(panel, "image", style.SMALL)
    for column, fit in enumerate(FITS):
        axes = style.add_axes(
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
        style.label_axes(axes, "" if first else "orientation (deg)", "")
        if first:
            style.set_title(axes, TITLES[fit], style.SMALL)
    style.write_text(figure, LEFT - 0.55, top + PANEL_HEIGHT / 2, "σ₁² - σ₂²", rotation=90, size=style.MEDIUM)


def _draw_curves(
    axes: "Axes", curves: Mapping[str, NDArray[np.float64]], truth: NDArray[np.float64], scaled: bool
) -> None:
    """Draw means over participants with 95 % bands, and the truth, scaled to the curve of given answers if `scaled`."""
    rng = np.random.default_rng(0)
    axes.axhline(0, color=style.INK, linewidth=0.5)
    for answers, own in curves.items():
        means = own[rng.integers(len(own), size=(BOOTSTRAP_DRAWS, len(own)))].mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975], axis=0)
        axes.fill_between(BANDS_DEG, low, high, color=TONES[answers], alpha=0.25, linewidth=0)
        axes.plot(
            BANDS_DEG, own.mean(axis=0), color=TONES[answers], linestyle=LINE_STYLES[answers], linewidth=1.4
        )
    peak = np.abs(curves["given"].mean(axis=0)).max() / np.abs(truth).max() if scaled else 1.0
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
    style.draw_legend(figure, handles, names, loc="center", bbox_to_anchor=(0.5, 1 - 4.14 / down), ncols=3)


def _draw_means(
    axes: "Axes", intervals: Mapping[tuple[str, str], tuple[float, float, float]], fits: list[str]
) -> None:
    for number, answers in enumerate(ANSWERS):
        mean, low, high = np.array([intervals[fit, answers] for fit in fits]).T
        axes.errorbar(
            np.arange(len(fits)) + 0.16 * (number - 0.5), mean, [mean - low, high - mean], linestyle="none",
            color=TONES[answers], marker="os"[number], markersize=5, capsize=2.5, linewidth=1.4,
        )  # fmt: skip
    axes.set_xticks(range(len(fits)), [TICKS[fit] for fit in fits])
    axes.set_xlim(-0.6, len(fits) - 0.4)
