"""The differential variance of the texture experiment, beside what shuffled answers give.

With two segments only ω₁ - ω₂ is identified, so the paper's σ₁² - σ₂² keeps whatever its start had in it. The paper
says neither where its fit starts nor whether it moves σ or its logarithm: all four ways are run, and each is held
against a null control, the same fit to the same person's answers in random order. A claim counts as reproduced if it
passes in all four. A resample is one new person of one condition; curves and claims are about groups of fifteen.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import parametric, people, simulation
from reproduction.paper.claims import Claim, interval, judged, spoken
from reproduction.paper.people import CONDITIONS, LAYOUT, PARTICIPANTS
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.features.energy import orientations_deg
from vseg.models import Task, variance

if TYPE_CHECKING:
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
    own = variance({"image": shown.energies}, starts=STARTS)(task, seed=seed).align_to(
        {"image": shown.truth}
    )
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


def draw(table: "Table", example: dict[str, NDArray[np.float64]]) -> "Figure":
    """Curves of people and of shuffled answers, and what of a bump shuffled answers have too."""
    from reproduction.paper.variance_drawing import drawn

    return drawn(table, example)
