"""Figure 2: do squared error and cross-entropy lead to the same maps, with and without regularisation?"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, simulation
from reproduction.paper.algorithm import descend, random_start
from reproduction.paper.claims import Claim, format_interval, interval, judge, ratio_interval
from reproduction.paper.costs import PaperFit
from reproduction.paper.estimators import COLOURS, LABELS, fit_vseg
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.reconstruction.losses import LOSS_CODES
from vseg.reconstruction.objective import PairRows, build_objective, data_term

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "losses"
TITLE = "Equivalence of the losses, and regularisation"
WHERE = "Figure 2"
UNCERTAIN, CERTAIN = 1.0, 4.0
SETTINGS = {"amplitude": (UNCERTAIN, CERTAIN)}
BLOCKS = 10
STOPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Iterations after which losses and error are recorded."""
LAST = STOPS[-1]
FITS = [(loss, strength) for loss in sorted(LOSS_CODES) for strength in (0.0, 10.0)]
RATES = {0.0: 0.15, 10.0: 0.05}  # the same for both losses, and stable for both
NEARLY_UNIFORM = 50.0
MAX_DIFFERENCE, MAX_DIFFERENCE_REGULARISED = (
    0.05,
    0.1,
)  # relative difference up to which results are equal, and approximately equal
SHORT = {"squared_error": "SE", "cross_entropy": "BCE"}


def truth(amplitude: float) -> Maps:
    """Return maps of three segments on a 16x16 grid; the paper prints N_b = 10 and λ = 10."""
    return simulation.truth(size=16, amplitude=amplitude, xi=3.2, min_area=0.15, seed=2)


def trial(*, amplitude: float, seed: int) -> list[dict[str, Any]]:
    """Run one resample; return both losses and the error along each of the four optimisations, and those of vseg.

    At the larger amplitude only the squared error without regularisation is run.
    """
    true = truth(amplitude)
    tally = simulation.simulate_tally(true, blocks=BLOCKS, seed=seed)
    tested = build_objective(tally, 3, weights="pairs").tested
    rows: list[dict[str, Any]] = []
    for loss, strength in FITS if amplitude == UNCERTAIN else [("squared_error", 0.0)]:
        labels = {"optimised": SHORT[loss], "strength": strength}
        for stop, p in _optimise(tally, loss, strength, seed).items():
            rows.append({**labels, "iteration": stop, **_scores(p, tested, true)})
    ours = fit_vseg(tally, 3, seed=seed).probabilities
    return [*rows, {"optimised": "vseg", "strength": None, "iteration": LAST, **_scores(ours, tested, true)}]


def _optimise(tally: Tally, loss: str, strength: float, seed: int) -> dict[int, NDArray[np.float64]]:
    """Optimise from a nearly uniform start; return the maps after each of the iterations in STOPS."""
    problem = build_objective(tally, 3, strength=strength, loss=loss, weights="pairs")
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
    return [(tally, 3, 0.0), (tally, 3, 10.0)] * 2 if amplitude == UNCERTAIN else [(tally, 3, 0.0)]


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """Return the uncertain true maps and the final maps of each optimisation."""
    true = truth(UNCERTAIN)
    tally = simulation.simulate_tally(true, blocks=BLOCKS, seed=seed)
    images = {"truth": true.image}
    for loss, strength in FITS:
        p = _optimise(tally, loss, strength, seed)[LAST]
        images[f"{SHORT[loss]}_{strength:g}"] = Maps(true.layout, p).align_to(true).image
    return {**images, "ours": fit_vseg(tally, 3, seed=seed).align_to(true).image}


def claims(table: "Table") -> list[Claim]:
    """Judge the paper's claims about this figure."""
    ends = table.where(amplitude=UNCERTAIN, iteration=LAST)
    own = format_interval(interval(ends.column("mae", optimised="vseg")))
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
        _judge_rising_error(table),
        _judge_improvement(ends, own),
        _judge_speed(table),
    ]


def _judge_equivalence(ends: "Table", strength: float, most: float, own: str, claim: str) -> Claim:
    se, bce = (ends.where(optimised=name, strength=strength) for name in ("SE", "BCE"))
    ratio, error = (ratio_interval(bce.column(score), se.column(score)) for score in ("se", "mae"))
    return judge(
        claim,
        paper=f"by BCE / by SE: SE reached {format_interval(ratio)}, MAE {format_interval(error)}",
        ours=f"MAE {own} (squared error)",
        holds=abs(ratio[0] - 1) < most and abs(error[0] - 1) < most,
        reason=f"losses or errors differ by more than {most:.0%}",
        remark=f"Within {most:.0%}."
        if strength == 0
        else f"Within {most:.0%}, once the cross-entropy is divided by the number of blocks; it is the steeper of the "
        "two, so that the same λ smooths it less.",
    )


def _judge_rising_error(table: "Table") -> Claim:
    courses = {a: _mean_errors(table, a, "SE", 0.0) for a in (UNCERTAIN, CERTAIN)}
    grows = {a: bool(course[-1] > 1.05 * course.min()) for a, course in courses.items()}
    texts = [f"σ_f = {a:g}: lowest {c.min():.3f}, at the end {c[-1]:.3f}" for a, c in courses.items()]
    return judge(
        "Without regularisation the error grows as the optimisation goes on.",
        paper="; ".join(texts),
        ours="with λ chosen, the error at the end is "
        + " and ".join(
            f"{table.where(amplitude=a, optimised='vseg').column('mae').mean():.3f}"
            for a in (UNCERTAIN, CERTAIN)
        ),
        holds=all(grows.values()),
        holds_if=grows[UNCERTAIN],
        condition="the uncertainty is high (log-odds of standard deviation 1); at 4 the error keeps falling",
        reason="the error keeps falling",
    )


def _judge_improvement(ends: "Table", own: str) -> Claim:
    ratio = ratio_interval(
        ends.column("mae", optimised="SE", strength=0.0), ends.column("mae", optimised="SE", strength=10.0)
    )
    return judge(
        "Regularisation with λ = 10 substantially improves the maps.",
        paper=f"the error is {format_interval(ratio, 1)} times smaller",
        ours=f"MAE {own}",
        holds=ratio[1] > 1.5,
        reason="the error is less than 1.5 times smaller",
    )


def _judge_speed(table: "Table") -> Claim:
    took = {name: _count_iterations(table, name) for name in ("SE", "BCE")}
    return judge(
        "The squared error converges marginally slower than the cross-entropy, in iterations.",
        paper=f"95 % of its fall after {took['SE']} iterations (SE) and {took['BCE']} (BCE), at the same learning rate",
        ours="exact updates of one location at a time instead of gradient steps",
        holds=took["SE"] > took["BCE"],
        reason="the cross-entropy took as long, or longer, at the same learning rate",
    )


def _count_iterations(table: "Table", name: str) -> int:
    """Return the first recorded iteration at which the optimised loss has made 95 % of its total fall, on average."""
    course = [
        table.column(name.lower(), amplitude=UNCERTAIN, optimised=name, strength=0.0, iteration=stop).mean()
        for stop in STOPS
    ]
    return STOPS[int(np.argmax(np.array(course) <= course[-1] + 0.05 * (course[0] - course[-1])))]


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
    """Draw losses and error along the optimisation, and the final maps."""
    names = {f"{loss}_{strength:g}": label for (loss, strength), (_, _, label) in LINES.items()}
    rows = {label: drawing.maps_from_image(example[name]) for name, label in names.items()}
    true, own = drawing.maps_from_image(example["truth"]), drawing.maps_from_image(example["ours"])
    columns = {"after 1000 iterations": {"truth": true, **rows, "vseg, default": own}}
    figure, panels = drawing.create_figure(
        columns, charts=3, chart_width=4.2, side=0.92, key_lines=3, margin=0.72
    )
    uncertain = table.where(amplitude=UNCERTAIN)
    for axes, (value, label) in zip(panels, PANELS.items(), strict=True):
        means = uncertain.mean_interval(value, by=["optimised", "strength", "iteration"], seed=0)
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
            axes, "iteration" if last else "", label, key=value == "bce", from_zero=value != "bce"
        )
        if not last:
            axes.tick_params(labelbottom=False)
    return figure
