"""Figure 6: natural images with a free number of segments; 1,024 pairs on a 16x16 grid, eight sessions of 128 trials.

Eight photographs are shown: the first eight of a folder of BSDS500, whose annotators are the observers, or samples with
simulated observers. They answer 'same' if both locations lie in one region of their segmentation. P(same) is therefore
known for every pair, and maps are scored by their mean error over all 32,640 pairs. The paper reconstructs with K = 5
and λ = 5; vseg chooses K and λ from the same answers. Whether the number of maps that are not empty is the number of
segments that people use is tested with simulated observers who all use 2, 3, 4 or 5 segments.
"""

import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, estimators
from reproduction.paper.claims import Claim, describe_run, format_interval, interval, judge, ratio_interval
from reproduction.paper.costs import PaperFit
from reproduction.paper.estimators import COLOURS, FAST, MARKERS, SLOW
from vseg import designs
from vseg.data.layout import Grid
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.errors import VsegWarning
from vseg.figures import style
from vseg.image_observers import simulate_annotation
from vseg.reconstruction.segment_selection import SegmentsChoice, choose_segments
from vseg.stimuli import Bsds, load_sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "natural"
TITLE = "Natural images with a free number of segments"
WHERE = "Figure 6"
SAMPLES = (
    "coffee", "chelsea", "rocket", "astronaut", "camera", "coins", "hubble_deep_field", "immunohistochemistry",
)  # fmt: skip
PHOTOGRAPHS = 8  # as many as in the paper; of BSDS500 the first by name

LAYOUT, SIZE_PX = Grid(16), 320
PAIRS, SESSIONS, LAPSE = 1024, 8, 0.02
SEGMENTS, STRENGTH = 5, 5.0  # the paper's
CANDIDATE_SEGMENTS = (2, 3, 4, 5, 6)
MIXED = 0  # observers see different numbers of segments
OBSERVER_SEGMENTS = (2, 3, 3, 4)  # segments that mixed simulated observers see, in turn
COUNTS = (2, 3, 4, 5)  # segments that all observers use in the test of the number of segments
ANY_SAMPLE = "any"
POSITION_WEIGHTS = (0.1, 0.2, 0.3, 0.4)  # weight of position against colour in their segmentations, in turn
MAX_MISCOUNT = 0.5  # difference up to which a mean number of segments counts as right
MIN_RIGHT = 0.5  # share of the resamples in which it must be right
RUN = describe_run(
    size=LAYOUT.size, segments=SEGMENTS, pairs=f"{PAIRS} scattered", blocks=1, strength=f"{STRENGTH:g}",
    rate=estimators.stable_learning_rate(STRENGTH),
) + f"; {SESSIONS} sessions of one observer each, {LAPSE:.0%} lapses"  # fmt: skip
FITS = ("paper", "five", "ours")
PARTS = {FAST: FITS[:1], SLOW: FITS[1:]}


class ObservedImage(NamedTuple):
    """A photograph, (H, W, 3) uint8, and the segmentation of each of its observers."""

    image: NDArray[np.uint8]
    observers: list[Maps]

    @property
    def same(self) -> NDArray[np.float64]:
        """P(same) of every pair with a randomly drawn observer, without lapses, (n, n)."""
        return np.mean([maps.probabilities @ maps.probabilities.T for maps in self.observers], axis=0)

    @property
    def disagreement(self) -> NDArray[np.float64]:
        """Disagreement of the observers about each location, (n,): the mean of 4q(1 - q) over the pairs with it."""
        q = self.same
        return np.asarray(np.mean(4 * q * (1 - q), axis=1))


def settings(data: Path | None = None) -> list[dict[str, Any]]:
    """Return the settings: eight photographs (of the folder of BSDS500, or the samples), and the numbers of segments.

    Photographs are seen by annotators or by simulated observers who use different numbers of segments. The number of
    segments is tested with simulated observers who all use the same number; each resample takes one of the samples.
    """
    images = [
        {"image": name, "folder": folder, "used_by_all": MIXED} for name, folder in _list_photographs(data)
    ]
    counts = [{"image": ANY_SAMPLE, "folder": "", "used_by_all": count} for count in COUNTS]
    return [{**setting, "fits": fits} for setting in (*images, *counts) for fits in PARTS]


def _list_photographs(data: Path | None) -> list[tuple[str, str]]:
    """Return names and folders of the eight photographs; the folder of a sample is empty."""
    if data is None:
        return [(name, "") for name in SAMPLES]
    return [(name, str(data)) for name in Bsds(data).ids[:PHOTOGRAPHS]]


SETTINGS = settings()


def share(*, image: str, folder: str, used_by_all: int, fits: str) -> float:
    """Return the share of the resamples: choosing K takes a third of a second."""
    return 1.0 if fits == FAST else 0.02


@cache
def load_image(image: str, folder: str = "", used_by_all: int = MIXED) -> ObservedImage:
    """Load a photograph with its observers, which are simulated unless it comes from a folder."""
    if folder:
        dataset = Bsds(folder)
        return ObservedImage(dataset.image(image, SIZE_PX), dataset.annotator_maps(image, LAYOUT))
    pixels = load_sample(image, SIZE_PX)
    if pixels.ndim == 2:
        pixels = np.stack([pixels] * 3, axis=2)
    observers = [
        simulate_annotation(
            pixels, LAYOUT, used_by_all or OBSERVER_SEGMENTS[number % len(OBSERVER_SEGMENTS)],
            POSITION_WEIGHTS[number // 2 % len(POSITION_WEIGHTS)],
            np.random.SeedSequence([SAMPLES.index(image), number]),
        )
        for number in range(SESSIONS)
    ]  # fmt: skip
    return ObservedImage(pixels, observers)


def simulate_tally(observed: ObservedImage, seed: int) -> Tally:
    """Simulate scattered pairs, distributed over eight sessions; each session has one observer, who may lapse."""
    rng = np.random.default_rng(seed)
    pairs = designs.scattered(LAYOUT, trials=PAIRS, seed=rng)
    observers = np.resize(rng.permutation(len(observed.observers)), SESSIONS)
    session = rng.permutation(np.arange(len(pairs)) % SESSIONS)
    q = np.stack([observed.observers[index].same_probability(pairs) for index in observers])[
        session, np.arange(len(pairs))
    ]
    same = rng.random(len(pairs)) < (1 - LAPSE) * q + LAPSE / 2
    return Tally(pairs, same, np.ones(len(pairs), np.int64))


def trial(*, image: str, folder: str, used_by_all: int, fits: str, seed: int) -> list[dict[str, Any]]:
    """Run one resample; return for each fit its error over all pairs, its number of segments and its entropy."""
    shown = SAMPLES[seed % len(SAMPLES)] if image == ANY_SAMPLE else image
    observed = load_image(shown, folder, used_by_all)
    used = float(np.mean([maps.segments_won for maps in observed.observers]))
    maps = _fit_all(simulate_tally(observed, seed), seed, PARTS[fits])
    return [{"fit": fit, "used": used, **_scores(own, observed)} for fit, own in maps.items()]


def paper_fits(*, image: str, folder: str, used_by_all: int, fits: str, seed: int) -> list[PaperFit]:
    """Return the fit of Algorithm 1 in one resample, to estimate its time in PyTorch."""
    if fits == SLOW:
        return []
    observed = load_image(SAMPLES[0] if image == ANY_SAMPLE else image, folder, used_by_all)
    return [(simulate_tally(observed, seed), SEGMENTS, STRENGTH)]


def _fit_all(tally: Tally, seed: int, names: tuple[str, ...] = FITS) -> dict[str, Maps]:
    """Fit with the paper's K = 5 and λ = 5, with vseg at K = 5, and with vseg at the K that predicts best."""
    fits = {}
    if "paper" in names:
        fits["paper"] = estimators.fit_paper(tally, SEGMENTS, strength=STRENGTH, seed=seed)
    if "ours" in names:
        choice = _choose_segments(tally, seed)
        five = next(candidate for candidate in choice.candidates if candidate.segments == SEGMENTS)
        fits |= {"five": five.result.maps, "ours": choice.result.maps}
    return fits


def _choose_segments(tally: Tally, seed: int) -> SegmentsChoice:
    with warnings.catch_warnings():
        # The warning that the paper's number of pairs is small for K > 5.
        warnings.simplefilter("ignore", VsegWarning)
        return choose_segments(tally, segments=CANDIDATE_SEGMENTS, seed=seed, threads=1)


def _scores(maps: Maps, observed: ObservedImage) -> dict[str, float]:
    estimate = maps.probabilities @ maps.probabilities.T
    upper = np.triu_indices(len(LAYOUT), 1)
    same = observed.same[upper]
    return {
        "segments": maps.segments,
        "won": maps.segments_won,
        "error": float(np.abs(estimate[upper] - same).mean()),
        "flat": float(np.abs(same - same.mean()).mean()),
        "entropy": maps.mean_entropy,
        "r": _correlation(maps.entropy, observed.disagreement),
    }


def _correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the correlation, or 0 if either array is constant."""
    if min(np.ptp(first), np.ptp(second)) < 1e-9:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def example(*, seed: int, data: Path | None = None) -> dict[str, NDArray[np.float64]]:
    """Return the image, the observers' labels and the maps of each fit, for one resample of each photograph."""
    arrays: Example = {}
    for name, folder in _list_photographs(data):
        observed = load_image(name, folder)
        arrays[f"{name}/image"] = observed.image / 255
        arrays[f"{name}/observers"] = np.array([maps.labels for maps in observed.observers], np.float64)
        for fit, maps in _fit_all(simulate_tally(observed, seed), seed).items():
            arrays[f"{name}/{fit}"] = maps.image
    return arrays


def claims(table: "Table") -> list[Claim]:
    """Judge the paper's claims about natural images."""
    photographs = table.where(used_by_all=MIXED)
    return [_judge_segment_count(table), _judge_error(photographs), _judge_entropy(photographs)]


def _judge_segment_count(table: "Table") -> Claim:
    """Judge by observers who all use the same number; the counts of the photographs are reported beside it."""
    won, ours = (
        {count: table.column(value, used_by_all=count, fit=fit) for count in _list_counts(table)}
        for value, fit in (("won", "paper"), ("segments", "ours"))
    )
    matches = {
        count: abs(values.mean() - count) <= MAX_MISCOUNT and np.mean(values == count) > MIN_RIGHT
        for count, values in won.items()
    }
    right = [str(count) for count, matched in matches.items() if matched]
    photographs = table.where(used_by_all=MIXED)
    seen = _columns_by_image(photographs, "won", "paper")
    used = _columns_by_image(photographs, "used", "paper")

    def describe(counts: dict[int, NDArray[np.float64]]) -> str:
        return ", ".join(
            f"{count}: {format_interval(interval(values), 2)} (right in {np.mean(values == count):.0%})"
            for count, values in counts.items()
        )

    mean_used, mean_won = (np.mean([values.mean() for values in part.values()]) for part in (used, seen))
    return judge(
        "Fitted with K = 5, the number of maps that are not empty is the mean number of segments that people used.",
        printed="3 of 5 maps in six images, 2 in two",
        paper=f"maps that win a location, by the number of segments that all observers use: {describe(won)}; in the "
        f"photographs of the figure {mean_won:.1f}, where observers use {mean_used:.1f} on average",
        ours=f"K by held-out pairs: {describe(ours)}",
        holds=all(matches.values()),
        holds_if=bool(right),
        condition=f"people use {' or '.join(right)} segments: the mean is within {MAX_MISCOUNT:g}, most are right"
        + (
            f" ({SEGMENTS} is the largest number that K = {SEGMENTS} can show)"
            if str(SEGMENTS) in right
            else ""
        ),
        reason=f"the mean is off by more than {MAX_MISCOUNT:g}, or most are wrong, for every number of segments",
        settings=RUN,
    )


def _list_counts(table: "Table") -> list[int]:
    return [count for count in COUNTS if count in set(table.column("used_by_all").tolist())]


def _judge_error(table: "Table") -> Claim:
    sources = _split_by_source(table)

    def values(rows: "Table", name: str, fit: str) -> NDArray[np.float64]:
        return np.asarray(rows.column(name, fit=fit), np.float64)

    def describe(fit: str) -> str:
        return "; ".join(
            f"{format_interval(interval(values(rows, 'error', fit)))} {name}"
            for name, rows in sources.items()
        )

    left = {
        name: ratio_interval(values(rows, "error", "paper"), values(rows, "flat", "paper"))
        for name, rows in sources.items()
    }
    better_than_flat = [name for name, (_, _, high) in left.items() if high < 1]
    gains = {
        name: ratio_interval(values(rows, "error", "paper"), values(rows, "error", "ours"))
        for name, rows in sources.items()
    }
    comparison = (
        "With K and λ chosen by cross-validation on the same answers: the paper's error is "
        + "; ".join(f"{format_interval(gain, 2)} times ours {name}" for name, gain in gains.items())
    )
    return judge(
        "Maps can be reconstructed from 1,024 answers of eight people (K = 5, λ = 5).",
        paper=f"mean error of P(same) over all pairs: {describe('paper')}; one number for all pairs: "
        + "; ".join(f"{values(rows, 'flat', 'paper').mean():.3f} {name}" for name, rows in sources.items()),
        ours=f"{describe('ours')}; with K = 5: {describe('five')}",
        holds=len(better_than_flat) == len(left),
        holds_if=bool(better_than_flat),
        condition=f"only the results {' and '.join(better_than_flat)} count; otherwise one number for all pairs "
        "is as good. "
        f"{comparison}",
        reason=f"One number for all pairs is as good. {comparison}",
        remark=comparison,
        settings=RUN,
    )


def _judge_entropy(table: "Table") -> Claim:
    paper, ours = (_columns_by_image(table, "r", fit) for fit in ("paper", "ours"))
    above_zero = {name: interval(values)[1] > 0 for name, values in paper.items()}
    missed = [name for name, above in above_zero.items() if not above]

    def describe(by_image: dict[str, NDArray[np.float64]]) -> str:
        return ", ".join(f"{name} {values.mean():.2f}" for name, values in by_image.items())

    return judge(
        "The maps show in which regions people are unsure.",
        paper=f"correlation of the entropy with the observers' disagreement: {describe(paper)}",
        ours=describe(ours),
        holds=not missed,
        holds_if=len(missed) <= len(above_zero) / 2,
        condition=f"most images are enough: the correlation is above 0 in {len(above_zero) - len(missed)} of "
        f"{len(above_zero)}, not in {' and '.join(missed)}",
        reason="the entropy does not follow the observers' disagreement in most images",
        settings=RUN,
    )


def _split_by_source(table: "Table") -> dict[str, "Table"]:
    """Split the rows into those of simulated observers and those of annotators."""
    names = {"": "for simulated observers"}
    return {names.get(folder, "for annotators"): rows for (folder,), rows in table.groups(["folder"]).items()}


def _columns_by_image(table: "Table", value: str, fit: str) -> dict[str, NDArray[np.float64]]:
    rows = table.where(fit=fit)
    return {
        image: np.asarray(part.column(value), np.float64) for (image,), part in rows.groups(["image"]).items()
    }


NAMES = {"paper": "paper, K = 5, λ = 5", "five": "vseg, K = 5", "ours": "vseg, K and λ chosen"}
TONES = {"paper": COLOURS["paper"], "five": COLOURS["ours_plain"], "ours": COLOURS["ours"]}
SIGNS = {"paper": MARKERS["paper"], "five": MARKERS["ours_plain"], "ours": MARKERS["ours"]}
SHOWN = ("paper", "ours")
SIDE, STEP, WIDTH = 0.56, 0.59, 11.2
FIRST, TOP = 0.75, 0.5
MAP_COLUMNS = {"paper": SEGMENTS, "ours": max(CANDIDATE_SEGMENTS)}
Example = dict[str, NDArray[np.float64]]


def draw(table: "Table", example: Example) -> "Figure":
    """Draw a row per photograph with the paper's maps and ours; below, errors and numbers of segments."""
    photographs = table.where(used_by_all=MIXED)
    images = list(dict.fromkeys(photographs.column("image").tolist()))
    charts = TOP + len(images) * STEP + 0.75
    figure = style.create_figure(WIDTH, charts + 2.4)
    for row, image in enumerate(images):
        _draw_row(figure, TOP + row * STEP, image, example)
    _draw_scales(figure, TOP + len(images) * STEP + 0.04)
    _draw_headings(figure)
    _draw_errors(style.add_axes(figure, 0.75, charts, 3.9, 1.55), photographs, images)
    _draw_segment_counts(style.add_axes(figure, 5.2, charts, 3.0, 1.55), photographs, images)
    _draw_counts_by_number(style.add_axes(figure, 8.8, charts, 2.2, 1.55), table)
    return figure


def _shorten(image: str) -> str:
    return image if len(image) <= 10 else image.split("_")[0][:6] + "…"


def _draw_row(figure: "Figure", top: float, image: str, example: Example) -> None:
    style.write_text(figure, FIRST - 0.06, top + SIDE / 2, _shorten(image), size=7, ha="right")
    for column in range(2):
        axes = style.add_axes(figure, FIRST + column * STEP, top, SIDE, SIDE)
        style.draw_image(axes, example[f"{image}/image"])
    for labels in example[f"{image}/observers"].astype(np.int64):
        style.draw_boundaries(axes, Maps.one_hot(LAYOUT, labels), tone="#FFD24D", width=0.35)
    paper = drawing.maps_from_image(example[f"{image}/paper"])
    paper = paper.permute(np.argsort(-paper.probabilities.sum(axis=0)))
    ours = drawing.maps_from_image(example[f"{image}/ours"]).align_to(paper)
    for fit, maps in zip(SHOWN, (paper, ours), strict=True):
        _draw_fit(figure, _left_edge(fit), top, maps, MAP_COLUMNS[fit])


def _left_edge(fit: str) -> float:
    return FIRST + 2 * STEP + 0.1 + (0 if fit == "paper" else (MAP_COLUMNS["paper"] + 2) * STEP + 0.15)


def _draw_fit(figure: "Figure", left: float, top: float, maps: Maps, columns: int) -> None:
    """Draw probability maps (empty columns if K is smaller), the segmentation and the entropy."""
    panels = {
        k: style.shade_probabilities(maps.image[..., k], k)
        for k in range(maps.segments)
        if maps.probabilities[:, k].any()
    }
    panels[columns] = style.colour_labels(style.rasterise(maps.layout, maps.labels))
    for column, pixels in panels.items():
        style.draw_image(style.add_axes(figure, left + column * STEP, top, SIDE, SIDE), pixels)
    axes = style.add_axes(figure, left + (columns + 1) * STEP, top, SIDE, SIDE)
    style.draw_image(axes, style.rasterise(maps.layout, maps.entropy), highest=float(np.log(SEGMENTS)))


def _draw_headings(figure: "Figure") -> None:
    """Draw the headings of the columns."""
    heads = [(FIRST, "image"), (FIRST + STEP, "observers")]
    for fit in SHOWN:
        texts = [*(style.segment_letter(k) for k in range(MAP_COLUMNS[fit])), "segments", "entropy"]
        heads += [(_left_edge(fit) + column * STEP, text) for column, text in enumerate(texts)]
        middle = _left_edge(fit) + (MAP_COLUMNS[fit] + 2) * STEP / 2
        style.write_text(figure, middle, 0.14, NAMES[fit], size=style.MEDIUM)
    for left, text in heads:
        style.write_text(figure, left + SIDE / 2, TOP - 0.09, text, size=7)


def _draw_scales(figure: "Figure", top: float) -> None:
    drawing.draw_probability_scale(figure, FIRST + 3.2 * STEP, top, SEGMENTS)
    style.draw_entropy_scale(
        figure, style.add_axes(figure, FIRST + 12 * STEP, top, 1.8, 0.13), float(np.log(SEGMENTS))
    )


def _draw_errors(axes: "Axes", table: "Table", images: list[str]) -> None:
    for number, (fit, label) in enumerate(NAMES.items()):
        _draw_means(axes, table, "error", fit, images, number, label)
    _label_images(axes, images)
    drawing.label_axes(axes, "", "mean error of P(same)", key=None)
    axes.legend(fontsize=7, frameon=False, ncols=3, loc="lower left", handlelength=1, columnspacing=0.8)
    style.set_title(axes, "Error over all pairs: mean and its 95 % interval", style.SMALL)


def _draw_segment_counts(axes: "Axes", table: "Table", images: list[str]) -> None:
    used = [table.column("used", image=image).mean() for image in images]
    axes.plot(
        range(len(images)),
        used,
        linestyle="none",
        marker="_",
        markersize=12,
        color=style.INK,
        label="used by observers",
    )
    _draw_means(axes, table, "won", "paper", images, 0, "paper: maps not empty")
    _draw_means(axes, table, "segments", "ours", images, 2, "vseg: K chosen")
    _label_images(axes, images)
    drawing.label_axes(axes, "", "number of segments", key=None)
    axes.set_ylim(0, max(*used, 6) * 1.35)
    axes.legend(fontsize=6.5, frameon=False, loc="upper left", ncols=3, columnspacing=0.6, handletextpad=0.1)
    style.set_title(axes, "Number of segments in these images", style.SMALL)


def _draw_counts_by_number(axes: "Axes", table: "Table") -> None:
    """Draw the numbers of segments that are found over the number that all observers use."""
    counts = _list_counts(table)
    axes.plot(counts, counts, color=style.INK, linewidth=0.8, linestyle=":", label="right")
    for fit, value, label in (
        ("paper", "won", "paper: maps not empty"),
        ("ours", "segments", "vseg: K chosen"),
    ):
        intervals = np.array([interval(table.column(value, fit=fit, used_by_all=count)) for count in counts])
        mean, low, high = intervals.T
        axes.errorbar(
            counts, mean, [mean - low, high - mean], color=TONES[fit], marker=SIGNS[fit], markersize=4.5, capsize=2,
            linewidth=1.3, linestyle="-", label=label,
        )  # fmt: skip
    axes.set_xticks(counts)
    drawing.label_axes(axes, "segments that all observers use", "segments found", key=None)
    axes.set_ylim(1.5, 7.4)
    axes.legend(fontsize=7, frameon=False, loc="upper left")
    style.set_title(axes, "Is the number found?", style.SMALL)


def _draw_means(
    axes: "Axes", table: "Table", value: str, fit: str, images: list[str], number: int, label: str
) -> None:
    intervals = np.array([interval(table.column(value, fit=fit, image=image)) for image in images])
    mean, low, high = intervals.T
    axes.errorbar(
        np.arange(len(images)) + 0.18 * (number - 1), mean, [mean - low, high - mean], linestyle="none",
        color=TONES[fit], marker=SIGNS[fit], markersize=4.5, capsize=2, linewidth=1.3, label=label,
    )  # fmt: skip


def _label_images(axes: "Axes", images: list[str]) -> None:
    rotation = 0 if len(images) <= 3 else 35
    labels = [_shorten(image) for image in images]
    axes.set_xticks(range(len(images)), labels, rotation=rotation, ha="center" if not rotation else "right")
    axes.set_xlim(-0.6, len(images) - 0.4)
