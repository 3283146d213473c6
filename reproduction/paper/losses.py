"""Whether squared error and cross-entropy lead to the same maps, and what regularisation does on the way."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, simulation
from reproduction.paper.algorithm import descended, random_start
from reproduction.paper.claims import Claim, interval, judged, ratio_interval, spoken
from reproduction.paper.costs import Fit
from reproduction.paper.estimators import COLOURS, LABELS, ours
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.reconstruction.losses import CODES
from vseg.reconstruction.objective import PairRows, build_objective, data_term

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "losses"
TITLE = "Equivalence of the losses, and regularisation"
WHERE = "Figure 2"
UNSURE, SURE = 1.0, 4.0
SETTINGS = {"amplitude": (UNSURE, SURE)}
BLOCKS = 10
STOPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Iterations after which losses and error are noted."""
LAST = STOPS[-1]
FITS = [(loss, strength) for loss in sorted(CODES) for strength in (0.0, 10.0)]
RATES = {0.0: 0.15, 10.0: 0.05}  # the same for both losses, and stable for both
NEARLY_UNIFORM = 50.0
EQUAL, ALIKE = 0.05, 0.1  # shares by which losses, and errors, may differ: none, and approximately none
SHORT = {"squared_error": "SE", "cross_entropy": "BCE"}


def truth(amplitude: float) -> Maps:
    """Three segments on a 16x16 grid; the paper prints N_b = 10 and λ = 10."""
    return simulation.truth(size=16, amplitude=amplitude, xi=3.2, min_area=0.15, seed=2)


def trial(*, amplitude: float, seed: int) -> list[dict[str, Any]]:
    """One resample: both losses and the error along each of the four optimisations, and the error of our default.

    Where the truth is surer, only the plain squared error is followed.
    """
    true = truth(amplitude)
    tally = simulation.answered(true, blocks=BLOCKS, seed=seed)
    tested = build_objective(tally, 3, weights="pairs").tested
    rows: list[dict[str, Any]] = []
    for loss, strength in FITS if amplitude == UNSURE else [("squared_error", 0.0)]:
        about = {"optimised": SHORT[loss], "strength": strength}
        for stop, p in _course(tally, loss, strength, seed).items():
            rows.append({**about, "iteration": stop, **_scores(p, tested, true)})
    own = ours(tally, 3, seed=seed).probabilities
    return [*rows, {"optimised": "vseg", "strength": None, "iteration": LAST, **_scores(own, tested, true)}]


def _course(tally: Tally, loss: str, strength: float, seed: int) -> dict[int, NDArray[np.float64]]:
    """Maps after each of the noted iterations, from a nearly uniform start."""
    problem = build_objective(tally, 3, strength=strength, loss=loss, weights="pairs")
    p, done, found = random_start(problem, seed, NEARLY_UNIFORM), 0, {}
    for stop in STOPS:
        p, _ = descended(problem, p, RATES[strength], epsilon=0.0, longest=stop - done)
        done, found[stop] = stop, p
    return found


def _scores(p: NDArray[np.float64], tested: PairRows, true: Maps) -> dict[str, float]:
    """Both losses a pair, whichever was optimised, and the error."""
    pairs = len(tested.partner) // 2
    losses = {SHORT[loss].lower(): data_term(p, tested, code) / pairs for loss, code in CODES.items()}
    return {**losses, "mae": Maps(true.layout, p).distance_to(true)}


def papers_fits(*, amplitude: float, seed: int) -> list[Fit]:
    """The fits of Algorithm 1 in one resample, for what they would cost in PyTorch."""
    tally = simulation.answered(truth(amplitude), blocks=BLOCKS, seed=seed)
    return [(tally, 3, 0.0), (tally, 3, 10.0)] * 2 if amplitude == UNSURE else [(tally, 3, 0.0)]


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """The uncertain truth, and where each optimisation ends."""
    true = truth(UNSURE)
    tally = simulation.answered(true, blocks=BLOCKS, seed=seed)
    found = {"truth": true.image}
    for loss, strength in FITS:
        p = _course(tally, loss, strength, seed)[LAST]
        found[f"{SHORT[loss]}_{strength:g}"] = Maps(true.layout, p).align_to(true).image
    return {**found, "ours": ours(tally, 3, seed=seed).align_to(true).image}


def claims(table: "Table") -> list[Claim]:
    """What the paper says about this figure."""
    ends = table.where(amplitude=UNSURE, iteration=LAST)
    own = spoken(interval(ends.column("mae", optimised="vseg")))
    return [
        _equivalent(
            ends,
            0.0,
            EQUAL,
            own,
            "Squared error (SE) and cross-entropy (BCE) lead to comparable losses and errors.",
        ),
        _equivalent(
            ends,
            10.0,
            ALIKE,
            own,
            "With λ = 10 the equivalence of the two losses still holds, at least approximately.",
        ),
        _rising(table),
        _improved(ends, own),
        _slower(table),
    ]


def _equivalent(ends: "Table", strength: float, most: float, own: str, claim: str) -> Claim:
    se, bce = (ends.where(optimised=name, strength=strength) for name in ("SE", "BCE"))
    ratio, error = (ratio_interval(bce.column(score), se.column(score)) for score in ("se", "mae"))
    return judged(
        claim,
        paper=f"by BCE / by SE: SE reached {spoken(ratio)}, MAE {spoken(error)}",
        ours=f"MAE {own} (squared error)",
        holds=abs(ratio[0] - 1) < most and abs(error[0] - 1) < most,
        reason=f"losses or errors differ by more than {most:.0%}",
        remark=f"Within {most:.0%}."
        if strength == 0
        else f"Within {most:.0%}, once the cross-entropy is divided by the number of blocks; it is the steeper of the "
        "two, so that the same λ smooths it less.",
    )


def _rising(table: "Table") -> Claim:
    courses = {a: _mean_course(table, a, "SE", 0.0) for a in (UNSURE, SURE)}
    grows = {a: bool(course[-1] > 1.05 * course.min()) for a, course in courses.items()}
    said = [f"σ_f = {a:g}: lowest {c.min():.3f}, at the end {c[-1]:.3f}" for a, c in courses.items()]
    return judged(
        "Without regularisation the error grows as the optimisation goes on.",
        paper="; ".join(said),
        ours="with λ chosen, the error at the end is "
        + " and ".join(
            f"{table.where(amplitude=a, optimised='vseg').column('mae').mean():.3f}" for a in (UNSURE, SURE)
        ),
        holds=all(grows.values()),
        holds_if=grows[UNSURE],
        condition="the uncertainty is high (log-odds of standard deviation 1); at 4 the error falls to the end",
        reason="the error falls to the end",
    )


def _improved(ends: "Table", own: str) -> Claim:
    ratio = ratio_interval(
        ends.column("mae", optimised="SE", strength=0.0), ends.column("mae", optimised="SE", strength=10.0)
    )
    return judged(
        "Regularisation with λ = 10 substantially improves the maps.",
        paper=f"the error is {spoken(ratio, 1)} times smaller",
        ours=f"MAE {own}",
        holds=ratio[1] > 1.5,
        reason="the error is less than 1.5 times smaller",
    )


def _slower(table: "Table") -> Claim:
    took = {name: _took(table, name) for name in ("SE", "BCE")}
    return judged(
        "The squared error converges marginally slower than the cross-entropy, in iterations.",
        paper=f"95 % of its fall after {took['SE']} iterations (SE) and {took['BCE']} (BCE), at one learning rate",
        ours="exact updates of one location at a time instead of gradient steps",
        holds=took["SE"] > took["BCE"],
        reason="the cross-entropy took as long, or longer, at the same learning rate",
    )


def _took(table: "Table", name: str) -> int:
    """The first noted iteration at which the mean loss it optimises has fallen by 95 % of its whole fall."""
    course = [
        table.column(name.lower(), amplitude=UNSURE, optimised=name, strength=0.0, iteration=stop).mean()
        for stop in STOPS
    ]
    return STOPS[int(np.argmax(np.array(course) <= course[-1] + 0.05 * (course[0] - course[-1])))]


def _mean_course(table: "Table", amplitude: float, name: str, strength: float) -> NDArray[np.float64]:
    own = table.where(amplitude=amplitude, optimised=name, strength=strength)
    return np.array([own.column("mae", iteration=stop).mean() for stop in STOPS])


PANELS = {"bce": "BCE a pair (nats)", "se": "SE a pair", "mae": "MAE (L1 a location)"}
LINES = {
    ("SE", 0.0): ("#E69F00", "-", "SE, λ = 0"),
    ("BCE", 0.0): ("#7A5200", "--", "BCE, λ = 0"),
    ("SE", 10.0): ("#D55E00", "-", "SE, λ = 10"),
    ("BCE", 10.0): ("#6E1F00", "--", "BCE, λ = 10"),
}


def draw(table: "Table", example: dict[str, NDArray[np.float64]]) -> "Figure":
    """Losses and error along the optimisation, and the maps where it ends."""
    names = {f"{loss}_{strength:g}": said for (loss, strength), (_, _, said) in LINES.items()}
    rows = {said: drawing.as_maps(example[name]) for name, said in names.items()}
    true, own = drawing.as_maps(example["truth"]), drawing.as_maps(example["ours"])
    shown = {"after 1000 iterations": {"truth": true, **rows, "vseg, default": own}}
    figure, panels = drawing.chart_and_maps(
        shown, charts=3, chart_width=4.2, side=0.92, key_lines=3, margin=0.72
    )
    unsure = table.where(amplitude=UNSURE)
    for axes, (value, label) in zip(panels, PANELS.items(), strict=True):
        means = unsure.mean_interval(value, by=["optimised", "strength", "iteration"], seed=0)
        for (name, strength), (colour, dashes, said) in LINES.items():
            own_means = means.where(optimised=name, strength=strength)
            low, mean, high = (own_means.column(each) for each in ("low", "mean", "high"))
            axes.fill_between(STOPS, low, high, color=colour, alpha=0.25, linewidth=0)
            axes.plot(STOPS, mean, color=colour, linestyle=dashes, linewidth=1.5, label=said)
        best = means.where(optimised="vseg").rows[0]
        axes.plot(LAST * 1.25, best["mean"], "D", color=COLOURS["ours"], markersize=5, label=LABELS["ours"])
        axes.set_xscale("log")
        last = value == "mae"
        drawing.finished(
            axes, "iteration" if last else "", label, key=value == "bce", from_zero=value != "bce"
        )
        if not last:
            axes.tick_params(labelbottom=False)
    return figure
