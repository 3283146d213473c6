"""The whole job on simulated people: from images to answers, maps, statistics and a report to read.

Two composite textures, one more ambiguous than the other, and a photograph whose number of segments nobody
knows. The people are simulated from the images: what makes them unsure is in the picture, not in a setting.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vseg import __version__, designs, figures, metrics
from vseg.errors import VsegWarning
from vseg.layout import Grid, Layout
from vseg.maps import Maps
from vseg.observers import Lapsing, simulate
from vseg.pairs import Pairs
from vseg.reconstruction import Reconstruction, reconstruct
from vseg.report import Report, segments_figure
from vseg.responses import Responses, concatenated
from vseg.selection import SegmentsChoice, choose_segments
from vseg.statistics import compare
from vseg.stimuli import PRESETS, Stimulus, composite, sample
from vseg.stimuli.maps import softmax
from vseg.validation import FOLDS

PARTICIPANTS, BLOCKS, TEXTURE_GRID = 15, 5, Grid(11)
PHOTOGRAPH, PHOTOGRAPH_GRID, PAIRS, ANNOTATORS = "coffee", Grid(16), 1024, 8
SEGMENTS = range(2, 8)
LAPSE = 0.02

DETAIL_PX, WINDOW_PX = (
    4.0,
    8.0,
)  # what a person sees of a texture: the finest detail, and how far it is pooled
GAIN, GAIN_SPREAD, NOISE = 0.7, 0.35, 0.7  # median and log s.d. of the gain over people; s.d. of their noise

Advance = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class TextureExperiment:
    """One condition: the texture, what each person believed and answered, and the maps found."""

    name: str
    stimulus: Stimulus
    truth: Maps
    beliefs: dict[str, Maps]
    responses: Responses
    each: dict[str, Reconstruction]
    together: Reconstruction

    @property
    def entropies(self) -> list[float]:
        """The mean entropy of each person's maps, in nats."""
        return [result.maps.mean_entropy for result in self.each.values()]


@dataclass(frozen=True, eq=False)
class PhotographExperiment:
    """The photograph, its annotators' segmentations, their answers, and the choice of K."""

    image: NDArray[np.uint8]
    annotators: dict[str, Maps]
    pairs: Pairs
    sessions: list[Pairs]
    responses: Responses
    choice: SegmentsChoice


def steps(participants: int = PARTICIPANTS, segments: Sequence[int] = SEGMENTS) -> int:
    """How far the progress of `run` counts."""
    return 2 * (participants + 1) + len(segments) * FOLDS + 1


def run(
    out: str | Path,
    *,
    seed: int,
    progress: Advance | None = None,
    participants: int = PARTICIPANTS,
    segments: Sequence[int] = SEGMENTS,
) -> Path:
    """Run both experiments, write their data and the report, and return the report's path.

    Parameters
    ----------
    out : str or Path
        Folder to write into; made if it is not there.
    progress : function, optional
        Called with the number of steps done since the last call, `steps(…)` in all.
    participants : int
        Per texture, 2 or more.
    segments : sequence of int
        The K to try for the photograph.

    Examples
    --------
    >>> run("vseg-demo", seed=0)  # doctest: +SKIP
    PosixPath('vseg-demo/report.html')
    """
    began, advance = time.perf_counter(), progress or (lambda done: None)
    people, photograph = np.random.SeedSequence(seed).spawn(2)
    pairs = designs.balanced(TEXTURE_GRID, segments=2, seed=seed)
    textures = [
        texture_experiment(name, pairs, participants, seed, condition, advance)
        for name, condition in zip(PRESETS, people.spawn(2), strict=True)
    ]
    photo = photograph_experiment(segments, photograph, advance)
    _write_data(Path(out), textures, photo)
    page = _report(textures, pairs, photo)
    page.footer(
        f"vseg {__version__}, seed {seed}; the experiments, their reconstructions and figures took "
        f"{time.perf_counter() - began:.0f} s."
    )
    advance(1)
    return page.save(Path(out) / "report.html")


# ── people who look at textures ──


def orientations_deg(image: NDArray[np.uint8], layout: Layout) -> NDArray[np.float64]:
    """(n,) the orientation seen at each location: the doubled-angle mean of the gradients around it."""
    from scipy.ndimage import gaussian_filter

    grey = image.astype(np.float64)
    across, up = (
        gaussian_filter(grey, DETAIL_PX, order=(0, 1)),
        -gaussian_filter(grey, DETAIL_PX, order=(1, 0)),
    )
    x, y = layout.pixels(image.shape[1], image.shape[0]).astype(np.int64).T
    sine = gaussian_filter(2 * across * up, WINDOW_PX)[y, x]
    cosine = gaussian_filter(across**2 - up**2, WINDOW_PX)[y, x]
    return np.rad2deg(np.arctan2(sine, cosine)) / 2


def spread_deg(seen: NDArray[np.float64], means: NDArray[np.float64]) -> float:
    """The s.d. of the seen orientations around the textures', not knowing which is which (EM)."""
    squares, variance = (seen[:, None] - means) ** 2, float(seen.var())
    for _ in range(50):
        weights = softmax(-squares / (2 * variance))
        variance = float((weights * squares).sum() / len(seen))
    return float(np.sqrt(variance))


def beliefs(stimulus: Stimulus, layout: Layout, *, seed: np.random.SeedSequence) -> Maps:
    """What one person believes: Gaussian log-likelihoods of what is seen, with their own gain and noise."""
    rng = np.random.default_rng(seed)
    means = np.array(stimulus.parameters.orientations_deg)
    seen = orientations_deg(stimulus.image, layout)
    evidence = -((seen[:, None] - means) ** 2) / (2 * spread_deg(seen, means) ** 2)
    gain = GAIN * np.exp(GAIN_SPREAD * rng.standard_normal())
    noise = (
        NOISE / np.sqrt(2) * rng.standard_normal(evidence.shape)
    )  # so that the difference of two has NOISE
    return Maps(layout, softmax(gain * evidence + noise))


def texture_experiment(
    name: str,
    pairs: Pairs,
    participants: int,
    seed: int,
    people: np.random.SeedSequence,
    advance: Advance,
) -> TextureExperiment:
    """Everyone looks at one texture and answers the same pairs, block after block."""
    stimulus = composite(preset=PRESETS[name], seed=seed)
    believed, answers = {}, {}
    for number, person in enumerate(people.spawn(participants)):
        who = f"{name}-{number + 1:02d}"
        belief_seed, answer_seed = person.spawn(2)
        believed[who] = beliefs(stimulus, pairs.layout, seed=belief_seed)
        answers[who] = simulate(
            believed[who], pairs, blocks=BLOCKS, observer=Lapsing(LAPSE), participant=who,
            image=f"texture-{name}", seed=answer_seed,
        )  # fmt: skip
    everyone = concatenated(answers.values())
    truth = stimulus.truth_maps(pairs.layout)
    together = _counted(reconstruct(everyone, segments=2, seed=seed), advance)
    each = {who: _counted(reconstruct(own, segments=2, seed=seed), advance) for who, own in answers.items()}
    return TextureExperiment(name, stimulus, truth, believed, everyone, each, together)


def _counted(result: Reconstruction, advance: Advance) -> Reconstruction:
    advance(1)
    return result


# ── people who segment a photograph ──


def annotation(
    image: NDArray[np.uint8], layout: Layout, segments: int, place: float, seed: np.random.SeedSequence
) -> Maps:
    """One annotator: k-means over the colours (CIELAB) and positions of the locations.

    `place` is the weight of the position: 0 for colour alone, about 1 for compact areas.
    """
    from skimage.color import rgb2lab

    cells = layout.cells(image.shape[1], image.shape[0]).ravel()
    count = np.bincount(cells, minlength=len(layout))
    channels = rgb2lab(image).reshape(-1, 3).T
    colours = np.stack([np.bincount(cells, channel, len(layout)) / count for channel in channels], axis=1)
    features = np.hstack([colours / colours.std(), place * layout.positions / layout.positions.std()])
    return Maps.one_hot(layout, _clusters(features, segments, np.random.default_rng(seed)), segments)


def _clusters(
    features: NDArray[np.float64], count: int, rng: np.random.Generator, tries: int = 5
) -> NDArray[np.int64]:
    """Lloyd's k-means, the tightest of a few starts."""
    best, tightest = np.zeros(len(features), np.int64), np.inf
    for _ in range(tries):
        centres = features[rng.choice(len(features), count, replace=False)]
        for _ in range(30):
            distances = ((features[:, None] - centres) ** 2).sum(axis=2)
            labels = distances.argmin(axis=1)
            centres = np.stack(
                [
                    features[labels == k].mean(axis=0) if (labels == k).any() else centres[k]
                    for k in range(count)
                ]
            )
        if (loose := float(distances.min(axis=1).sum())) < tightest:
            best, tightest = labels, loose
    return best


def photograph_experiment(
    segments: Sequence[int], seed: np.random.SeedSequence, advance: Advance
) -> PhotographExperiment:
    """Annotators who disagree, one session each, and K chosen from all answers."""
    image = sample(PHOTOGRAPH)
    first, *people = seed.spawn(1 + ANNOTATORS)
    number = int(first.generate_state(1)[0])
    pairs = designs.scattered(PHOTOGRAPH_GRID, trials=PAIRS, seed=number)
    sessions = designs.split(pairs, ANNOTATORS, seed=number)
    annotators, answers = {}, []
    for at, (person, session) in enumerate(zip(people, sessions, strict=True)):
        who, (drawing, answering) = f"annotator-{at + 1}", person.spawn(2)
        annotators[who] = annotation(
            image, PHOTOGRAPH_GRID, 3 + at % 3, (0.3, 0.5, 0.7, 0.9)[at % 4], drawing
        )
        answers.append(
            simulate(
                annotators[who],
                session,
                observer=Lapsing(LAPSE),
                participant=who,
                image=PHOTOGRAPH,
                seed=answering,
            )
        )
    responses = concatenated(answers)
    with warnings.catch_warnings():
        # 1024 pairs are few for 6 and 7 segments, which is what the choice is there to find out.
        warnings.simplefilter("ignore", VsegWarning)
        choice = choose_segments(responses, segments=segments, seed=number, progress=lambda done: advance(1))
    return PhotographExperiment(image, annotators, pairs, sessions, responses, choice)


# ── what is written ──


def _write_data(out: Path, textures: list[TextureExperiment], photo: PhotographExperiment) -> None:
    from PIL import Image

    for one in textures:
        folder = out / f"texture-{one.name}"
        folder.mkdir(parents=True, exist_ok=True)
        one.responses.save(folder / "responses.csv")
        one.together.save(folder)
        one.truth.save(folder / "truth.npz")
        Image.fromarray(one.stimulus.image).save(folder / "texture.png")
    folder = out / "photograph"
    folder.mkdir(parents=True, exist_ok=True)
    photo.responses.save(folder / "responses.csv")
    photo.choice.result.save(folder)
    Image.fromarray(photo.image).save(folder / "photograph.png")


def _report(textures: list[TextureExperiment], pairs: Pairs, photo: PhotographExperiment) -> Report:
    page = Report(
        "vseg: a demonstration",
        "How people segment an image, and how sure they are, measured by asking again and again "
        "whether two places in it belong to the same segment.",
    )
    page.text(
        "The people in this report are simulated, and so are their answers. The textures were made for it, "
        "the photograph is real. From the answers on, everything is the analysis that real data would get.",
        kind="note",
    )
    _texture_section(page, textures, pairs)
    _photograph_section(page, photo)
    _next_section(page)
    return page


def _texture_section(page: Report, textures: list[TextureExperiment], pairs: Pairs) -> None:
    low, high = textures
    people = len(low.each)
    page.section("1. Two textures: low and high uncertainty")
    page.text(
        f"Each image holds two oriented textures, {_angles(low)} from the vertical. The orientations "
        f"within a texture scatter by {low.stimulus.parameters.spread_deg:g}° in the first image and by "
        f"{high.stimulus.parameters.spread_deg:g}° in the second, which makes it harder to tell them apart. "
        "Both images have the same two areas."
    )
    page.figure(
        *(_smaller(one.stimulus.image) for one in textures),
        alt=[f"Grey oriented texture in two areas, {one.name} uncertainty." for one in textures],
        caption="First the image of low uncertainty, then that of high uncertainty.",
    )
    page.section("What was asked", level=3)
    page.text(
        f"In each of {BLOCKS} blocks, each of {people} people per image judged the same pairs. "
        f"{designs.coverage(pairs, segments=2)}"
    )
    page.text(
        "A simulated person estimates the local orientation at each location from the pixels, weighs it "
        "against the two textures' orientations by the scatter found in the image, and adds a gain and "
        f"noise of their own. They answer from the resulting beliefs, and without looking in "
        f"{LAPSE:.0%} of the trials. Nobody tells them which image is the uncertain one."
    )
    page.text(
        f"How sure they are is our choice all the same: the finest detail they see ({DETAIL_PX:g} px), how far they "
        f"pool it ({WINDOW_PX:g} px) and their gain were set so that both textures leave doubt. With finer "
        "detail and wider pooling (2 px and 12 px) they would be nearly certain of both, and the difference below "
        "would all but disappear."
    )
    page.section("Each person's maps", level=3)
    for one in textures:
        page.figure(
            figures.participants({who: result.maps for who, result in one.each.items()}),
            alt=f"{people} small entropy maps with segment boundaries, {one.name} uncertainty; mean entropy "
            f"{np.mean(one.entropies):.2f} nats.",
            caption=f"{one.name.capitalize()} uncertainty: entropy (bright is unsure) and the boundary "
            "between the segments, person by person, on one scale.",
        )
    page.section("All people together, against the truth", level=3)
    for one in textures:
        page.figure(
            figures.maps(
                one.truth, one.together.maps, image=one.stimulus.image, names=["truth", "all people"]
            ),
            alt=f"True maps above, maps from all answers below, {one.name} uncertainty.",
            caption=f"{one.name.capitalize()} uncertainty: the texture with boundaries, the probability of "
            "each segment, the most probable segment, and the entropy.",
        )
    _texture_scores(page, textures)
    page.section("Is the second image more uncertain?", level=3)
    found = compare(low.entropies, high.entropies, quantity="mean entropy", unit="nats")
    page.figure(
        figures.groups({one.name: one.entropies for one in textures}, "mean entropy (nats)"),
        alt=f"A dot a person: {found}.",
        caption="Mean entropy of each person's maps.",
    )
    page.text(f"Low vs high: {found} (95 % interval).")


def _texture_scores(page: Report, textures: list[TextureExperiment]) -> None:
    scores = [metrics.evaluate(one.together.maps.aligned_to(one.truth), one.truth) for one in textures]
    rows = [
        [label, unit, *(f"{score[name]:.2f}" for score in scores)]
        for name, label, unit in (
            ("label_accuracy", "locations with the right segment", "share"),
            ("adjusted_rand_index", "adjusted Rand index", "up to 1"),
            ("boundary_f", "boundary F", "0 to 1"),
            ("mean_entropy", "mean entropy of the maps", "nats"),
        )
    ]
    rows.append(["smoothness chosen", "λ", *(f"{one.together.smoothness:g}" for one in textures)])
    page.table(
        ["all people together", "unit", "low", "high"],
        rows,
        caption="Maps from all answers, against the textures.",
    )
    believed = [metrics.mean_entropy(list(one.beliefs.values())).mean for one in textures]
    recovered = [
        ["mean entropy believed", "nats", *(f"{entropy:.2f}" for entropy in believed)],
        ["mean entropy reconstructed", "nats", *(f"{np.mean(one.entropies):.2f}" for one in textures)],
        ["error of a probability", "0 to 1", *(f"{_recovery(one):.3f}" for one in textures)],
    ]
    page.table(
        ["each person", "unit", "low", "high"],
        recovered,
        caption="Since the people are simulated, what they believed is known: the maps found from the "
        "answers, against the beliefs behind them, averaged over people.",
    )


def _recovery(one: TextureExperiment) -> float:
    """The error of one probability, averaged over locations and people."""
    errors = [metrics.mae_per_entry(one.each[who].maps, belief) for who, belief in one.beliefs.items()]
    return float(np.mean(errors))


def _photograph_section(page: Report, photo: PhotographExperiment) -> None:
    choice, counts = photo.choice, [maps.segments for maps in photo.annotators.values()]
    page.section("2. A photograph: how many segments?")
    page.text(
        f"{len(photo.annotators)} simulated annotators look at a photograph and disagree: each clusters its "
        f"colours and positions in their own way, into {min(counts)} to {max(counts)} segments. Each of them "
        f"answers one session of {len(photo.sessions[0])} pairs, once; all sessions together make one "
        "set of answers."
    )
    page.text(str(designs.coverage(photo.pairs)))
    page.figure(
        figures.boundaries(photo.annotators, photo.image),
        alt=f"The photograph under the boundaries of {len(photo.annotators)} annotators.",
        caption="What the annotators see; in an experiment this would be unknown.",
    )
    page.section("Choosing the number of segments", level=3)
    page.figure(
        segments_figure(choice),
        alt=f"Held-out log-likelihood and winning maps against K; {choice.by_likelihood} is chosen.",
        caption="How well each K predicts answers it has not seen (mean ± standard error over five folds), "
        "and how many of its maps win a location.",
    )
    columns = {
        "segments K": ("segments", "g"), "held-out log-likelihood (nats per trial)": ("held_out", ".4f"),
        "standard error": ("standard_error", ".4f"), "winning maps": ("segments_won", "g"),
        "smoothness λ": ("smoothness", "g"), "mean entropy (nats)": ("mean_entropy", ".2f"),
    }  # fmt: skip
    page.table(
        list(columns),
        [[format(row[name], style) for name, style in columns.values()] for row in choice.table()],
        caption="A row for each number of segments.",
    )
    page.text(
        f"The likelihood chooses K = {choice.by_likelihood}, the smallest that predicts as well as the best "
        f"to within one standard error. The paper's rule, the largest K of which every map wins a location, "
        f"chooses K = {choice.by_empty_maps}."
    )
    page.section(f"The maps with {choice.by_likelihood} segments", level=3)
    page.figure(
        figures.maps(choice.result.maps, image=photo.image, names=["all annotators"]),
        alt=f"Probability maps of {choice.by_likelihood} segments, the segmentation and its entropy.",
        caption="Bright entropy marks where the annotators disagree.",
    )
    page.figure(
        figures.boundaries(choice.result.maps, photo.image),
        alt="The photograph under the boundaries of the reconstructed segments.",
        caption="The boundaries of the reconstructed segmentation.",
    )


def _next_section(page: Report) -> None:
    page.section("3. The same from the command line")
    page.text("The data lie beside this report. In its folder:")
    low, photo, counts = "texture-low", "photograph", f"{SEGMENTS[0]}..{SEGMENTS[-1]}"
    page.commands(
        f"vseg fit {low}/responses.csv --grid {TEXTURE_GRID.size} --segments 2 \\",
        f"    --by participant --out my-{low}",
        f"vseg evaluate my-{low}/maps.npz --truth {low}/truth.npz",
        f"vseg fit {photo}/responses.csv --grid {PHOTOGRAPH_GRID.size} --segments {counts} \\",
        f"    --picture {photo}/photograph.png --out my-{photo}",
    )
    page.text("Your own answers need only a table with the columns i, j and same. All options are listed by:")
    page.commands("vseg fit --help")


def _angles(one: TextureExperiment) -> str:
    first, second = one.stimulus.parameters.orientations_deg
    return f"{first:+g}° and {second:+g}°".replace("-", "−")


def _smaller(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Half as large, pixel by pixel averaged, to keep the page light."""
    side = len(image) // 2
    return np.rint(image.reshape(side, 2, side, 2).mean(axis=(1, 3))).astype(np.uint8)
