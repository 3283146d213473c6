"""Appendix S3: is an unknown number of segments the largest K without an empty map?"""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, simulation
from reproduction.paper.claims import Claim, describe_run, format_interval, interval, judge
from reproduction.paper.costs import PaperFit
from reproduction.paper.estimators import COLOURS, FAST, SLOW, fit_paper, stable_learning_rate
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.errors import VsegWarning
from vseg.evaluation import metrics
from vseg.figures import style
from vseg.reconstruction.segment_selection import choose_segments

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "unknown_segments"
TITLE = "An unknown number of segments"
WHERE = "Appendix S3, second figure"
LARGE, ANY = "each segment at least 10 %", "segments of any size"
SETTINGS = {"areas": (LARGE, ANY), "fits": (FAST, SLOW)}
SMALLEST = {LARGE: 0.1, ANY: 0.01}  # share of the locations that each segment covers at least
TRUE = 5
TRIED = (3, 4, 5, 6, 7)
EMPTY = 0.005  # mean probability below which a map counts as set to zero
MOSTLY = 0.9  # share of the resamples in which a rule must find K
SIZE, AMPLITUDE, XI, BLOCKS = 16, 8.0, 3.2, 10
RUN = describe_run(
    size=SIZE, segments="3 to 7 (true: 5)", pairs="KN²", blocks=BLOCKS, amplitude=AMPLITUDE, xi=XI, strength=10,
    rate=stable_learning_rate(10.0), starts="one random start, a new truth in each resample",
)  # fmt: skip


def truth(areas: str, seed: int) -> Maps:
    """Return maps of five segments on a 16x16 grid; each resample has its own, because one map cannot test a rule."""
    return simulation.sample_maps(
        size=SIZE, segments=TRUE, amplitude=AMPLITUDE, xi=XI, min_area=SMALLEST[areas], seed=seed
    )


def share(*, areas: str, fits: str) -> float:
    """Return the share of the resamples: choosing K takes five cross-validated fits, about a second."""
    return 1.0 if fits == FAST else 0.04


def trial(*, areas: str, fits: str, seed: int) -> list[dict[str, Any]]:
    """Run one resample; return the K found by each rule and the mean probability of the superfluous maps."""
    true, tally = _simulate(areas, seed)
    return _find_by_empty_maps(true, tally, seed) if fits == FAST else _find_by_likelihood(tally, seed)


def _find_by_likelihood(tally: Tally, seed: int) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", VsegWarning
        )  # too few pairs for K > 5; the paper also uses the number for five segments
        choice = choose_segments(tally, segments=TRIED, seed=seed, threads=1)
    return [
        {"rule": "ours", "found": choice.by_likelihood, "spare": None, "mae": None},
        {"rule": "ours_empty", "found": choice.by_empty_maps or 0, "spare": None, "mae": None},
    ]


def _find_by_empty_maps(true: Maps, tally: Tally, seed: int) -> list[dict[str, Any]]:
    fits = {K: fit_paper(tally, K, seed=seed) for K in TRIED}
    winning = max((K for K, maps in fits.items() if maps.segments_won == K), default=0)
    holding = max((K for K, maps in fits.items() if maps.probabilities.mean(axis=0).min() > EMPTY), default=0)
    spare = np.sort(fits[TRIED[-1]].probabilities.mean(axis=0))[: TRIED[-1] - TRUE]
    return [
        {"rule": "paper", "found": winning, "spare": spare.mean(), "mae": metrics.mae(fits[TRUE], true)},
        {"rule": "paper_mass", "found": holding, "spare": spare.mean(), "mae": metrics.mae(fits[TRUE], true)},
    ]


def _simulate(areas: str, seed: int) -> tuple[Maps, Tally]:
    true = truth(areas, seed)
    return true, simulation.simulate_tally(true, blocks=BLOCKS, seed=seed)


def paper_fits(*, areas: str, fits: str, seed: int) -> list[PaperFit]:
    """Return the fits of Algorithm 1 in one resample, to estimate their time in PyTorch."""
    return [] if fits == SLOW else [(_simulate(areas, seed)[1], K, 10.0) for K in TRIED]


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """Return the true maps and the paper's maps with each K."""
    true, tally = _simulate(LARGE, seed)
    return {
        "truth": true.image,
        **{f"K{K}": fit_paper(tally, K, seed=seed).align_to(true).image for K in TRIED},
    }


def claims(table: "Table") -> list[Claim]:
    """Judge the paper's claims about this figure."""
    right = {
        areas: {rule: interval(table.column("found", areas=areas, rule=rule) == TRUE) for rule in RULES}
        for areas in SETTINGS["areas"]
    }
    spare = interval(table.column("spare", areas=LARGE, rule="paper"))
    return [
        judge(
            "The true K is the largest one that leaves no map empty.",
            printed="correct (one map)",
            paper=f"K = {TRUE} found in {format_interval(right[LARGE]['paper'], 2)} of the maps with large segments, "
            f"{format_interval(right[ANY]['paper'], 2)} with any",
            ours=f"by held-out likelihood {format_interval(right[LARGE]['ours'], 2)} and "
            f"{format_interval(right[ANY]['ours'], 2)}; by "
            f"empty maps {format_interval(right[LARGE]['ours_empty'], 2)} and "
            f"{format_interval(right[ANY]['ours_empty'], 2)}",
            holds=all(right[areas]["paper"][0] >= MOSTLY for areas in right),
            holds_if=right[LARGE]["paper"][0] >= MOSTLY,
            condition="every segment covers at least a tenth of the image, and “empty” means “wins no location”",
            reason="the rule misses K too often",
            settings=RUN,
        ),
        judge(
            "With K too large, the superfluous maps are set to zero.",
            paper=f"at K = {TRIED[-1]} each of them keeps {format_interval(spare)} of the probability",
            ours=f"by that rule K = {TRUE} would be found in {format_interval(right[LARGE]['paper_mass'], 2)} "
            "of the maps",
            holds=spare[0] < EMPTY,
            holds_if=right[LARGE]["paper"][0] >= MOSTLY,
            condition="“zero” means that they win no location; they keep some probability everywhere",
            reason="they keep some probability and win locations",
            settings=RUN,
        ),
    ]


RULES = {
    "paper": "no map without\na location (paper)",
    "paper_mass": "no map of mass\n< 0.5 % (paper)",
    "ours": "held-out\nlikelihood (vseg)",
    "ours_empty": "no map without a\nlocation (vseg)",
}
TONES = {
    "paper": COLOURS["paper"],
    "paper_mass": COLOURS["paper_plain"],
    "ours": COLOURS["ours"],
    "ours_empty": COLOURS["ours_plain"],
}


def draw(table: "Table", example: dict[str, NDArray[np.float64]]) -> "Figure":
    """Draw how often each rule finds each K, and the paper's maps at each K."""
    rows = {"truth": drawing.maps_from_image(example["truth"])}
    rows |= {f"K = {K}": drawing.maps_from_image(example[f"K{K}"]) for K in TRIED}
    figure, panels = drawing.create_figure({"paper, λ = 10": rows}, charts=2, chart_width=4.4, key_lines=2)
    for axes, areas in zip(panels, SETTINGS["areas"], strict=True):
        for number, (rule, label) in enumerate(RULES.items()):
            chosen = table.column("found", areas=areas, rule=rule)
            shares = [float(np.mean(chosen == K)) for K in TRIED]
            at = np.arange(len(TRIED)) + 0.2 * (number - 1.5)
            axes.bar(at, shares, width=0.18, color=TONES[rule], label=label.replace("\n", " "))
        axes.set_xticks(range(len(TRIED)), [str(K) for K in TRIED])
        axes.set_ylim(0, 1.3)
        last = areas == ANY
        drawing.label_axes(
            axes, "K found (true: 5)" if last else "", "share of maps", key=False, from_zero=False
        )
        axes.text(
            0.01, 0.97, areas, transform=axes.transAxes, fontsize=style.SMALL, va="top", color=style.INK
        )
    panels[0].legend(
        fontsize=style.SMALL - 1, frameon=False, loc="lower left", bbox_to_anchor=(-0.12, 1.0), ncols=2,
        borderaxespad=0, columnspacing=1.0, handlelength=1.2,
    )  # fmt: skip
    return figure
