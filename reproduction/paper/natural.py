"""Natural images with a free number of segments: 1,024 pairs on a 16x16 grid, from eight people with 128 trials each.

The observers are simulated (sample photographs) or, given a folder of BSDS500, its annotators: each answers 'same'
where both locations lie in one region that they drew. So P(same) of every pair is known, and maps are judged by their
mean error over all 32,640 pairs. The paper reconstructs with K = 5 and λ = 5; ours gets the same answers and chooses K
and λ.
"""

import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import drawing, estimators
from reproduction.paper.claims import Claim, interval, judged, ratio_interval, spoken
from reproduction.paper.costs import Fit
from reproduction.paper.estimators import COLOURS, MARKERS
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
SAMPLES = ("coffee", "chelsea", "rocket", "astronaut")
PHOTOGRAPHS = 8  # of BSDS500, as many as in the paper: the first by name

LAYOUT, SIZE_PX = Grid(16), 320
PAIRS, SESSIONS, LAPSE = 1024, 8, 0.02
SEGMENTS, STRENGTH = 5, 5.0  # the paper's
TRIED = (2, 3, 4, 5, 6)
HOW_MANY = (2, 3, 3, 4)  # segments that the simulated people see, in turn
PLACES = (0.1, 0.2, 0.3, 0.4)  # how much they go by position rather than by colour, in turn
FITS = ("paper", "five", "ours")


class Seen(NamedTuple):
    """A photograph, (H, W, 3) uint8, and what each of its observers sees of it."""

    image: NDArray[np.uint8]
    observers: list[Maps]

    @property
    def same(self) -> NDArray[np.float64]:
        """(n, n) P(same) of a trial with an observer drawn at random, but for lapses."""
        return np.mean([one.probabilities @ one.probabilities.T for one in self.observers], axis=0)

    @property
    def disagreement(self) -> NDArray[np.float64]:
        """(n,) how much the observers disagree about a location: 4q(1 - q), mean over all pairs that it is in."""
        q = self.same
        return np.asarray(np.mean(4 * q * (1 - q), axis=1))


def settings(data: Path | None = None) -> list[dict[str, str]]:
    """The sample photographs; with a folder of BSDS500, also its first eight."""
    found = [{"image": name, "folder": ""} for name in SAMPLES]
    if data is not None:
        found += [{"image": name, "folder": str(data)} for name in Bsds(data).ids[:PHOTOGRAPHS]]
    return found


SETTINGS = settings()


def share(*, image: str, folder: str) -> float:
    """Choosing K takes a second, and there are several photographs."""
    return 0.02 if folder else 0.03


@cache
def seen(image: str, folder: str = "") -> Seen:
    """A photograph and its observers, simulated unless it comes from a folder."""
    if folder:
        held = Bsds(folder)
        return Seen(held.image(image, SIZE_PX), held.annotator_maps(image, LAYOUT))
    pixels = load_sample(image, SIZE_PX)
    people = [
        simulate_annotation(
            pixels, LAYOUT, HOW_MANY[number % len(HOW_MANY)], PLACES[number // 2 % len(PLACES)],
            np.random.SeedSequence([SAMPLES.index(image), number]),
        )
        for number in range(SESSIONS)
    ]  # fmt: skip
    return Seen(pixels, people)


def answered(shown: Seen, seed: int) -> Tally:
    """Scattered pairs dealt out over eight sessions; a session has one observer, who lapses now and then."""
    rng = np.random.default_rng(seed)
    pairs = designs.scattered(LAYOUT, trials=PAIRS, seed=rng)
    observers = np.resize(rng.permutation(len(shown.observers)), SESSIONS)
    who = rng.permutation(np.arange(len(pairs)) % SESSIONS)
    q = np.stack([shown.observers[each].same_probability(pairs) for each in observers])[
        who, np.arange(len(pairs))
    ]
    same = rng.random(len(pairs)) < (1 - LAPSE) * q + LAPSE / 2
    return Tally(pairs, same, np.ones(len(pairs), np.int64))


def trial(*, image: str, folder: str, seed: int) -> list[dict[str, Any]]:
    """One resample of the answers: each fit's error over all pairs, its segments and where it is unsure."""
    shown = seen(image, folder)
    fits = _fitted(answered(shown, seed), seed)
    used = float(np.mean([one.segments_won for one in shown.observers]))
    return [{"fit": fit, "used": used, **_scores(maps, shown)} for fit, maps in fits.items()]


def papers_fits(*, image: str, folder: str, seed: int) -> list[Fit]:
    """The fit of Algorithm 1 in one resample, for what it would cost in PyTorch."""
    return [(answered(seen(image, folder), seed), SEGMENTS, STRENGTH)]


def _fitted(tally: Tally, seed: int) -> dict[str, Maps]:
    """The paper's K = 5, λ = 5; ours with K = 5; ours with the K that predicts best."""
    chosen = _chosen(tally, seed)
    five = next(each for each in chosen.candidates if each.segments == SEGMENTS)
    return {
        "paper": estimators.paper(tally, SEGMENTS, strength=STRENGTH, seed=seed),
        "five": five.result.maps,
        "ours": chosen.result.maps,
    }


def _chosen(tally: Tally, seed: int) -> SegmentsChoice:
    with warnings.catch_warnings():
        # The paper's number of pairs is known to be small for K > 5.
        warnings.simplefilter("ignore", VsegWarning)
        return choose_segments(tally, segments=TRIED, seed=seed, threads=1)


def _scores(maps: Maps, shown: Seen) -> dict[str, float]:
    said = maps.probabilities @ maps.probabilities.T
    every = np.triu_indices(len(LAYOUT), 1)
    same = shown.same[every]
    return {
        "segments": maps.segments,
        "won": maps.segments_won,
        "error": float(np.abs(said[every] - same).mean()),
        "flat": float(np.abs(same - same.mean()).mean()),
        "entropy": maps.mean_entropy,
        "r": _correlation(maps.entropy, shown.disagreement),
    }


def _correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """0 where either is the same everywhere."""
    if min(np.ptp(one), np.ptp(other)) < 1e-9:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def example(*, seed: int, data: Path | None = None) -> dict[str, NDArray[np.float64]]:
    """One resample of each photograph: the image, the observers' labels, and each fit's maps."""
    found: dict[str, NDArray[np.float64]] = {}
    for setting in settings(data):
        shown, name = seen(**setting), setting["image"]
        found[f"{name}/image"] = shown.image / 255
        found[f"{name}/observers"] = np.array([one.labels for one in shown.observers], np.float64)
        for fit, maps in _fitted(answered(shown, seed), seed).items():
            found[f"{name}/{fit}"] = maps.image
    return found


def claims(table: "Table") -> list[Claim]:
    """What the paper says about natural images."""
    return [_how_many(table), _serves(table), _unsure(table)]


def _how_many(table: "Table") -> Claim:
    used, won, ours = (
        _by_image(table, value, fit)
        for value, fit in (("used", "paper"), ("won", "paper"), ("segments", "ours"))
    )
    told = {
        name: abs(won[name].mean() - used[name].mean()) <= 0.5
        for name in used
        if used[name].mean() <= SEGMENTS
    }
    more = sum(used[name].mean() > SEGMENTS for name in used)

    def said(found: dict[str, NDArray[np.float64]]) -> str:
        return ", ".join(
            f"{name} {values.mean():.1f} of {used[name].mean():.1f}" for name, values in found.items()
        )

    return judged(
        "Fitted with K = 5, the maps that are not empty tell how many segments people used on average.",
        printed="3 of 5 maps in six images, 2 in two",
        paper=f"maps that win a location, and segments that observers used: {said(won)}",
        ours=f"K by held-out pairs: {said(ours)}",
        holds=all(told.values()) and not more,
        holds_if=bool(told) and sum(told.values()) >= len(told) / 2,
        condition=f"people use five segments at most, as they do in {len(told)} of {len(used)} images: in "
        f"{sum(told.values())} of these the number is right to within a half",
        reason="the number is off by more than a half in most images",
    )


def _serves(table: "Table") -> Claim:
    sources = _sources(table)

    def of(own: "Table", value: str, fit: str) -> NDArray[np.float64]:
        return np.asarray(own.column(value, fit=fit), np.float64)

    def said(fit: str) -> str:
        return "; ".join(f"{spoken(interval(of(own, 'error', fit)))} {name}" for name, own in sources.items())

    left = {
        name: ratio_interval(of(own, "error", "paper"), of(own, "flat", "paper"))
        for name, own in sources.items()
    }
    told = [name for name, (_, _, high) in left.items() if high < 1]
    gains = {
        name: ratio_interval(of(own, "error", "paper"), of(own, "error", "ours"))
        for name, own in sources.items()
    }
    better = "With K and λ chosen by held-out pairs from the same answers: the paper's error is " + "; ".join(
        f"{spoken(gain, 2)} times ours {name}" for name, gain in gains.items()
    )
    return judged(
        "Maps can be reconstructed from 1,024 answers of eight people (K = 5, λ = 5).",
        paper=f"mean error of P(same) over all pairs: {said('paper')}; one number for all pairs: "
        + "; ".join(f"{of(own, 'flat', 'paper').mean():.3f} {name}" for name, own in sources.items()),
        ours=f"{said('ours')}; with K = 5: {said('five')}",
        holds=len(told) == len(left),
        holds_if=bool(told),
        condition=f"one asks {' and '.join(told)}; else one number for all pairs is as good. {better}",
        reason=f"One number for all pairs is as good. {better}",
        remark=better,
    )


def _unsure(table: "Table") -> Claim:
    paper, ours = (_by_image(table, "r", fit) for fit in ("paper", "ours"))
    found = {name: interval(values)[1] > 0 for name, values in paper.items()}
    missed = [name for name, above in found.items() if not above]

    def said(by_image: dict[str, NDArray[np.float64]]) -> str:
        return ", ".join(f"{name} {values.mean():.2f}" for name, values in by_image.items())

    return judged(
        "The maps show in which regions people are unsure.",
        paper=f"correlation of the entropy with the observers' disagreement: {said(paper)}",
        ours=said(ours),
        holds=not missed,
        holds_if=len(missed) <= len(found) / 2,
        condition=f"one takes most images for all: the correlation is above 0 in {len(found) - len(missed)} of "
        f"{len(found)}, not in {' and '.join(missed)}",
        reason="the entropy does not follow the observers' disagreement in most images",
    )


def _sources(table: "Table") -> dict[str, "Table"]:
    """Simulated observers and annotators apart."""
    named = {"": "for simulated observers"}
    return {named.get(folder, "for annotators"): own for (folder,), own in table.groups(["folder"]).items()}


def _by_image(table: "Table", value: str, fit: str) -> dict[str, NDArray[np.float64]]:
    own = table.where(fit=fit)
    return {
        image: np.asarray(part.column(value), np.float64) for (image,), part in own.groups(["image"]).items()
    }


NAMES = {"paper": "paper, K = 5, λ = 5", "five": "vseg, K = 5", "ours": "vseg, K and λ chosen"}
TONES = {"paper": COLOURS["paper"], "five": COLOURS["ours_plain"], "ours": COLOURS["ours"]}
SIGNS = {"paper": MARKERS["paper"], "five": MARKERS["ours_plain"], "ours": MARKERS["ours"]}
SHOWN = ("paper", "ours")
SIDE, STEP, WIDTH = 0.56, 0.59, 11.2
FIRST, TOP = 0.75, 0.5
MAP_COLUMNS = {"paper": SEGMENTS, "ours": max(TRIED)}
Example = dict[str, NDArray[np.float64]]


def draw(table: "Table", example: Example) -> "Figure":
    """A row a photograph: image, the paper's maps and ours; below, the error over all pairs."""
    images = list(dict.fromkeys(table.column("image").tolist()))
    charts = TOP + len(images) * STEP + 0.75
    figure = style.sheet(WIDTH, charts + 2.55)
    for row, image in enumerate(images):
        _draw_row(figure, TOP + row * STEP, image, example)
    _draw_scales(figure, TOP + len(images) * STEP + 0.04)
    _draw_headings(figure)
    error = style.axes_at(figure, 0.75, charts, 5.6, 1.75)
    _draw_errors(error, table, images)
    _draw_segment_counts(style.axes_at(figure, 7.1, charts, 3.7, 1.75), table, images)
    return figure


def _draw_row(figure: "Figure", top: float, image: str, example: Example) -> None:
    style.write(figure, FIRST - 0.06, top + SIDE / 2, image, size=7, ha="right")
    for column in range(2):
        axes = style.axes_at(figure, FIRST + column * STEP, top, SIDE, SIDE)
        style.picture(axes, example[f"{image}/image"])
    for labels in example[f"{image}/observers"].astype(np.int64):
        style.draw_boundaries(axes, Maps.one_hot(LAYOUT, labels), tone="#FFD24D", width=0.35)
    paper = drawing.as_maps(example[f"{image}/paper"])
    paper = paper.permute(np.argsort(-paper.probabilities.sum(axis=0)))
    ours = drawing.as_maps(example[f"{image}/ours"]).align_to(paper)
    for fit, maps in zip(SHOWN, (paper, ours), strict=True):
        _draw_fit(figure, _left_edge(fit), top, maps, MAP_COLUMNS[fit])


def _left_edge(fit: str) -> float:
    return FIRST + 2 * STEP + 0.1 + (0 if fit == "paper" else (MAP_COLUMNS["paper"] + 2) * STEP + 0.15)


def _draw_fit(figure: "Figure", left: float, top: float, maps: Maps, room: int) -> None:
    """Probability maps (none for segments that a smaller K does without), the segmentation and the entropy."""
    pictures = {
        k: style.shade(maps.image[..., k], k) for k in range(maps.segments) if maps.probabilities[:, k].any()
    }
    pictures[room] = style.paint(style.raster(maps.layout, maps.labels))
    for column, pixels in pictures.items():
        style.picture(style.axes_at(figure, left + column * STEP, top, SIDE, SIDE), pixels)
    axes = style.axes_at(figure, left + (room + 1) * STEP, top, SIDE, SIDE)
    style.picture(axes, style.raster(maps.layout, maps.entropy), highest=float(np.log(SEGMENTS)))


def _draw_headings(figure: "Figure") -> None:
    """What the columns are."""
    heads = [(FIRST, "image"), (FIRST + STEP, "observers")]
    for fit in SHOWN:
        texts = [*(style.letter(k) for k in range(MAP_COLUMNS[fit])), "segments", "entropy"]
        heads += [(_left_edge(fit) + column * STEP, text) for column, text in enumerate(texts)]
        middle = _left_edge(fit) + (MAP_COLUMNS[fit] + 2) * STEP / 2
        style.write(figure, middle, 0.14, NAMES[fit], size=style.MEDIUM)
    for left, text in heads:
        style.write(figure, left + SIDE / 2, TOP - 0.09, text, size=7)


def _draw_scales(figure: "Figure", top: float) -> None:
    drawing.probability_key(figure, FIRST + 3.2 * STEP, top, SEGMENTS)
    style.entropy_bar(
        figure, style.axes_at(figure, FIRST + 12 * STEP, top, 1.8, 0.13), float(np.log(SEGMENTS))
    )


def _draw_errors(axes: "Axes", table: "Table", images: list[str]) -> None:
    for number, (fit, label) in enumerate(NAMES.items()):
        _draw_means(axes, table, "error", fit, images, number, label)
    _label_images(axes, images)
    drawing.finished(axes, "", "mean error of P(same)", key=None)
    axes.legend(fontsize=7, frameon=False, ncols=3, loc="lower left", handlelength=1)
    style.title(axes, "Error over all pairs, same answers: mean and its 95 % interval", style.SMALL)


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
    drawing.finished(axes, "", "number of segments", key=None)
    axes.set_ylim(0, max(*used, 6) * 1.35)
    axes.legend(fontsize=7, frameon=False, loc="upper left", ncols=3, columnspacing=0.8, handletextpad=0.2)
    style.title(axes, "Number of segments: mean and its 95 % interval", style.SMALL)


def _draw_means(
    axes: "Axes", table: "Table", value: str, fit: str, images: list[str], number: int, label: str
) -> None:
    found = np.array([interval(table.column(value, fit=fit, image=image)) for image in images])
    mean, low, high = found.T
    axes.errorbar(
        np.arange(len(images)) + 0.18 * (number - 1), mean, [mean - low, high - mean], linestyle="none",
        color=TONES[fit], marker=SIGNS[fit], markersize=4.5, capsize=2, linewidth=1.3, label=label,
    )  # fmt: skip


def _label_images(axes: "Axes", images: list[str]) -> None:
    turned = 0 if len(images) <= 5 else 45
    axes.set_xticks(range(len(images)), images, rotation=turned, ha="center" if not turned else "right")
    axes.set_xlim(-0.6, len(images) - 0.4)
