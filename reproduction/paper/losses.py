"""Figure 2: do squared error and cross-entropy lead to the same maps, with and without regularisation?"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, simulation
from reproduction.paper.algorithm import descend, random_start
from reproduction.paper.claims import (
    TOLERANCE_FACTOR,
    Claim,
    describe_run,
    format_interval,
    interval,
    judge,
    ratio_interval,
)
from reproduction.paper.costs import PaperFit
from reproduction.paper.estimators import COLOURS, LABELS, fit_vseg
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.evaluation import metrics
from vseg.reconstruction.losses import LOSS_CODES
from vseg.reconstruction.objective import PairRows, build_objective, data_term

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "losses"
TITLE = "Equivalence of the losses, and regularisation"
WHERE = "Figure 2"
AMPLITUDES = UNCERTAIN, MODERATE, CERTAIN = 1.0, 3.0, 6.0
SETTINGS = {"amplitude": AMPLITUDES}
LEVELS = {UNCERTAIN: "high uncertainty", MODERATE: "moderate uncertainty", CERTAIN: "low uncertainty"}
DRAWN = (UNCERTAIN, MODERATE)
BLOCKS = 10
STOPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Iterations after which losses and error are recorded."""
LAST = STOPS[-1]
STRENGTHS = (0.0, 10.0)
FITS = [(loss, strength) for loss in sorted(LOSS_CODES) for strength in STRENGTHS]
RATES = {0.0: 0.15, 10.0: 0.05}  # the same for both losses, and stable for both
NEARLY_UNIFORM = 50.0
MAX_DIFFERENCE, MAX_DIFFERENCE_REGULARISED = (
    0.05,
    0.1,
)  # relative difference up to which results are equal, and approximately equal
IDENTICAL_MAE, IDENTICAL_LABELS = 0.05, 0.98  # up to which, and from which, two maps look identical
SHORT = {"squared_error": "SE", "cross_entropy": "BCE"}
BOTH = "SE and BCE"
SIZE, SEGMENTS, XI = 16, 3, 3.2
RUN = describe_run(
    size=SIZE, segments=SEGMENTS, pairs="KN²", blocks=BLOCKS, amplitude="1, 3 and 6", xi=XI, strength="0 and 10",
    rate=f"{RATES[0.0]} and {RATES[10.0]} for both losses", starts=f"{LAST} iterations from one nearly uniform start",
)  # fmt: skip


def truth(amplitude: float) -> Maps:
    """Return maps of three segments on a 16x16 grid; the paper prints N_b = 10 and λ = 10."""
    return simulation.truth(size=SIZE, amplitude=amplitude, xi=XI, min_area=0.15, seed=2)


def trial(*, amplitude: float, seed: int) -> list[dict[str, Any]]:
    """Run one resample; return both losses and the error along each of the four optimisations, and those of vseg.

    For each λ a further row says how far the final maps of the two losses are apart.
    """
    true = truth(amplitude)
    tally = simulation.simulate_tally(true, blocks=BLOCKS, seed=seed)
    tested = build_objective(tally, SEGMENTS, weights="pairs").tested
    rows: list[dict[str, Any]] = []
    ends = {}
    for loss, strength in FITS:
        labels = {"optimised": SHORT[loss], "strength": strength}
        maps = _optimise(tally, loss, strength, seed)
        ends[SHORT[loss], strength] = Maps(true.layout, maps[LAST])
        rows += [{**labels, "iteration": stop, **_scores(p, tested, true)} for stop, p in maps.items()]
    for strength in STRENGTHS:
        se, bce = ends["SE", strength], ends["BCE", strength]
        rows.append(
            {
                "optimised": BOTH, "strength": strength, "iteration": LAST, "mae": metrics.mae(bce, se),
                "agreement": metrics.label_accuracy(bce, se),
            }
        )  # fmt: skip
    ours = fit_vseg(tally, SEGMENTS, seed=seed).probabilities
    return [*rows, {"optimised": "vseg", "strength": None, "iteration": LAST, **_scores(ours, tested, true)}]


def _optimise(tally: Tally, loss: str, strength: float, seed: int) -> dict[int, NDArray[np.float64]]:
    """Optimise from a nearly uniform start; return the maps after each of the iterations in STOPS."""
    problem = build_objective(tally, SEGMENTS, strength=strength, loss=loss, weights="pairs")
    p, done, maps = random_start(problem, seed, NEARLY_UNIFORM), 0, {}
    for stop in STOPS:
        p, _ = descend(problem, p, RATES[strength], epsilon=0.0, max_iterations=stop - done)
        done, maps[stop] = stop, p
    return maps


def _scores(p: NDArray[np.float64], tested: PairRows, true: Maps) -> dict[str, float]:
    """Return both losses per pair, whichever was optimised, and the error."""
    pairs = len(tested.partner) // 2
    losses = {SHORT[loss].lower(): data_term(p, tested, code) / pairs for loss, code in LOSS_CODES.items()}
    return {**losses, "mae": Maps(true.layout, p).distance_to(true)}


def paper_fits(*, amplitude: float, seed: int) -> list[PaperFit]:
    """Return the fits of Algorithm 1 in one resample, to estimate their time in PyTorch."""
    tally = simulation.simulate_tally(truth(amplitude), blocks=BLOCKS, seed=seed)
    return [(tally, SEGMENTS, strength) for strength in STRENGTHS] * 2


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """Return the true maps and the final maps of each optimisation, at high and at moderate uncertainty."""
    images = {}
    for amplitude in DRAWN:
        true = truth(amplitude)
        tally = simulation.simulate_tally(true, blocks=BLOCKS, seed=seed)
        images[f"truth_{amplitude:g}"] = true.image
        for loss, strength in FITS:
            p = _optimise(tally, loss, strength, seed)[LAST]
            images[f"{SHORT[loss]}_{strength:g}_{amplitude:g}"] = Maps(true.layout, p).align_to(true).image
        images[f"ours_{amplitude:g}"] = fit_vseg(tally, SEGMENTS, seed=seed).align_to(true).image
    return images


def claims(table: "Table") -> list[Claim]:
    """Judge the paper's claims about this figure."""
    ends = {amplitude: table.where(amplitude=amplitude, iteration=LAST) for amplitude in AMPLITUDES}
    own = " → ".join(f"{part.column('mae', optimised='vseg').mean():.3f}" for part in ends.values())
    return [
        _judge_equivalence(
            ends,
            0.0,
            MAX_DIFFERENCE,
            own,
            "Squared error (SE) and cross-entropy (BCE) lead to comparable losses and errors.",
        ),
        _judge_equivalence(
            ends,
            10.0,
            MAX_DIFFERENCE_REGULARISED,
            own,
            "With λ = 10 the equivalence of the two losses still holds, at least approximately.",
        ),
        _judge_identity(ends, own),
        _judge_rising_error(table),
        _judge_improvement(ends, own),
        _judge_speed(table),
    ]


def _judge_equivalence(
    ends: "Mapping[float, Table]", strength: float, most: float, own: str, claim: str
) -> Claim:
    texts, holds = [], {}
    for amplitude, part in ends.items():
        se, bce = (part.where(optimised=name, strength=strength) for name in ("SE", "BCE"))
        ratio, error = (ratio_interval(bce.column(score), se.column(score)) for score in ("se", "mae"))
        texts.append(
            f"σ_f = {amplitude:g}: SE reached {format_interval(ratio)}, MAE {format_interval(error)}"
        )
        holds[amplitude] = max(abs(ratio[0] - 1), abs(error[0] - 1)) < most
    divided = (
        ""
        if strength == 0
        else " The cross-entropy is divided by the number of blocks; it is the steeper of the two, so that the same λ "
        "smooths it less."
    )
    return judge(
        claim,
        paper=f"by BCE / by SE: {'; '.join(texts)}",
        ours=f"MAE {own} (squared error, λ chosen)",
        holds=all(holds.values()),
        holds_if=holds[UNCERTAIN],
        condition=f"the uncertainty is high (σ_f = {UNCERTAIN:g}): {_describe_levels(holds, f'within {most:.0%}')}."
        + divided,
        reason=f"losses or errors differ by more than {most:.0%}",
        remark=f"Within {most:.0%}.{divided}",
        settings=RUN,
    )


def _describe_levels(holds: Mapping[float, bool], what: str) -> str:
    """Say at which amplitudes something holds, and at which not."""
    yes, no = (", ".join(f"{a:g}" for a, held in holds.items() if held == wanted) for wanted in (True, False))
    return f"{what} at σ_f = {yes}, not at {no}" if yes and no else f"{what} at σ_f = {yes or no}"


def _judge_identity(ends: "Mapping[float, Table]", own: str) -> Claim:
    texts, holds = [], {}
    for amplitude, part in ends.items():
        apart, agreement = (
            interval(part.column(score, optimised=BOTH, strength=0.0)) for score in ("mae", "agreement")
        )
        texts.append(
            f"σ_f = {amplitude:g}: L1 {format_interval(apart)} apart, {format_interval(agreement)} of the labels equal"
        )
        holds[amplitude] = apart[0] < IDENTICAL_MAE and agreement[0] > IDENTICAL_LABELS
    any_level = any(holds.values())
    return judge(
        "The maps reconstructed with the two losses are identical.",
        paper=f"λ = 0: {'; '.join(texts)}",
        ours=f"MAE to the truth {own} (squared error, λ chosen)",
        holds=all(holds.values()),
        holds_if=any_level,
        condition=_describe_levels(
            holds,
            f"the maps count as identical (L1 below {IDENTICAL_MAE}, more than "
            f"{IDENTICAL_LABELS:.0%} of the labels)",
        )
        if any_level
        else "",
        reason=f"they are not identical (L1 below {IDENTICAL_MAE}, more than {IDENTICAL_LABELS:.0%} of the labels) at "
        "any uncertainty, although both start from the same maps",
        settings=RUN,
    )


def _judge_rising_error(table: "Table") -> Claim:
    courses = {a: _mean_errors(table, a, "SE", 0.0) for a in AMPLITUDES}
    grows = {a: bool(course[-1] > 1.05 * course.min()) for a, course in courses.items()}
    texts = [f"σ_f = {a:g}: lowest {c.min():.3f}, at the end {c[-1]:.3f}" for a, c in courses.items()]
    return judge(
        "Without regularisation the error grows as the optimisation goes on.",
        paper="; ".join(texts),
        ours="with λ chosen, the error at the end is "
        + ", ".join(
            f"{table.where(amplitude=a, optimised='vseg').column('mae').mean():.3f}" for a in AMPLITUDES
        ),
        holds=all(grows.values()),
        holds_if=grows[UNCERTAIN],
        condition=f"the uncertainty is high: {_describe_levels(grows, 'it grows by more than 5%')}",
        reason="the error keeps falling",
        settings=RUN,
    )


def _judge_improvement(ends: "Mapping[float, Table]", own: str) -> Claim:
    ratios = {
        amplitude: ratio_interval(
            part.column("mae", optimised="SE", strength=0.0),
            part.column("mae", optimised="SE", strength=10.0),
        )
        for amplitude, part in ends.items()
    }
    better = {amplitude: ratio[1] > 1.5 for amplitude, ratio in ratios.items()}
    return judge(
        "Regularisation with λ = 10 substantially improves the maps.",
        paper="times smaller error: "
        + "; ".join(f"σ_f = {a:g}: {format_interval(ratio, 1)}" for a, ratio in ratios.items()),
        ours=f"MAE {own}",
        holds=all(better.values()),
        holds_if=any(better.values()),
        condition=_describe_levels(better, "the error is at least 1.5 times smaller"),
        reason="the error is less than 1.5 times smaller",
        settings=RUN,
    )


def _judge_speed(table: "Table") -> Claim:
    took = {name: _count_iterations(table, name) for name in ("SE", "BCE")}
    return judge(
        "The squared error converges marginally slower than the cross-entropy, in iterations.",
        paper=f"95 % of its fall after {took['SE']} iterations (SE) and {took['BCE']} (BCE), at the same learning rate",
        ours="exact updates of one location at a time instead of gradient steps",
        holds=1 < took["SE"] / took["BCE"] <= TOLERANCE_FACTOR,
        holds_if=took["SE"] > took["BCE"],
        condition=f"any difference counts as marginal: it takes {took['SE'] / took['BCE']:.1f} times as many",
        reason="the cross-entropy took as long, or longer, at the same learning rate",
        settings=RUN,
    )


def _count_iterations(table: "Table", name: str) -> int:
    """Return the iteration at which the optimised loss has made 95 % of its total fall, on average.

    Few iterations are recorded; between them, the loss is interpolated over the logarithm of the iteration.
    """
    course = [
        table.column(name.lower(), amplitude=UNCERTAIN, optimised=name, strength=0.0, iteration=stop).mean()
        for stop in STOPS
    ]
    goal = course[-1] + 0.05 * (course[0] - course[-1])
    after = max(int(np.argmax(np.array(course) <= goal)), 1)
    log_stops = np.log(STOPS[after - 1 : after + 1])
    return round(np.exp(np.interp(-goal, [-course[after - 1], -course[after]], log_stops)))


def _mean_errors(table: "Table", amplitude: float, name: str, strength: float) -> NDArray[np.float64]:
    own = table.where(amplitude=amplitude, optimised=name, strength=strength)
    return np.array([own.column("mae", iteration=stop).mean() for stop in STOPS])


PANELS = {"bce": "BCE per pair (nats)", "se": "SE per pair", "mae": "MAE (L1 per location)"}
LINES = {
    ("SE", 0.0): ("#E69F00", "-", "SE, λ = 0"),
    ("BCE", 0.0): ("#7A5200", "--", "BCE, λ = 0"),
    ("SE", 10.0): ("#D55E00", "-", "SE, λ = 10"),
    ("BCE", 10.0): ("#6E1F00", "--", "BCE, λ = 10"),
}


def draw(table: "Table", example: dict[str, NDArray[np.float64]]) -> "Figure":
    """Draw losses and error along the optimisation, and the final maps, at high and at moderate uncertainty."""
    names = {f"{loss}_{strength:g}": label for (loss, strength), (_, _, label) in LINES.items()}
    columns = {}
    for amplitude in DRAWN:
        rows = {label: f"{name}_{amplitude:g}" for name, label in names.items()}
        keys = {"truth": f"truth_{amplitude:g}", **rows, "vseg, default": f"ours_{amplitude:g}"}
        columns[f"{LEVELS[amplitude]}, after {LAST} iterations"] = {
            label: drawing.maps_from_image(example[key]) for label, key in keys.items()
        }
    figure, panels = drawing.create_figure(
        columns, charts=3, chart_columns=len(DRAWN), chart_width=3.0, side=0.82, margin=0.72
    )
    for number, amplitude in enumerate(DRAWN):
        own = panels[number * len(PANELS) : (number + 1) * len(PANELS)]
        _draw_courses(own, table.where(amplitude=amplitude), amplitude, labelled=number == 0)
    return figure


def _draw_courses(panels: "Sequence[Axes]", table: "Table", amplitude: float, *, labelled: bool) -> None:
    """Draw the three charts of one amplitude; only the first column has labels and a legend."""
    for axes, (value, label) in zip(panels, PANELS.items(), strict=True):
        means = table.mean_interval(value, by=["optimised", "strength", "iteration"], seed=0)
        for (name, strength), (colour, dashes, text) in LINES.items():
            own_means = means.where(optimised=name, strength=strength)
            low, mean, high = (own_means.column(column) for column in ("low", "mean", "high"))
            axes.fill_between(STOPS, low, high, color=colour, alpha=0.25, linewidth=0)
            axes.plot(STOPS, mean, color=colour, linestyle=dashes, linewidth=1.5, label=text)
        best = means.where(optimised="vseg").rows[0]
        axes.plot(LAST * 1.25, best["mean"], "D", color=COLOURS["ours"], markersize=5, label=LABELS["ours"])
        axes.set_xscale("log")
        last = value == "mae"
        drawing.label_axes(
            axes,
            "iteration" if last else "",
            label if labelled else "",
            key=value == "bce" and labelled,
            columns=3,
            from_zero=value != "bce",
        )
        if not last:
            axes.tick_params(labelbottom=False)
        drawing.write_inside(axes, f"σ_f = {amplitude:g}")
