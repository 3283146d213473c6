"""fit_dataset(): maps for a data set, for each participant or for each image; and its result, DatasetFit."""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Required, TypedDict, Unpack

from vseg._support.progress import Progress
from vseg._support.text import format_count, safe_folder_names
from vseg.data.catch_trials import CatchTrials
from vseg.data.contours import load_contours
from vseg.data.dataset import Dataset
from vseg.data.durations import DurationTable
from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.responses import Responses
from vseg.errors import Conflict, InvalidInput, VsegWarning
from vseg.reconstruction.kernels import Kernel
from vseg.reconstruction.solvers import Solver
from vseg.workflows.data_source import DataSource, ReadImage, Segments
from vseg.workflows.fits import FailedFit, Fit, FitMethod, NamedFits, Pixels, try_fit, write_table
from vseg.workflows.penalised_fits import PenalisedMethod
from vseg.workflows.posterior_fits import Lapses, PosteriorMethod
from vseg.workflows.score_contours import ContourAgreement, score_contours

GROUPINGS = ("all", "participant", "image")
SEGMENT_CHOICES = ("all", "participant")
SETTINGS_BY_METHOD = {
    "posterior": ("prior", "lapses", "catch", "draws", "budget"),
    "penalised": (
        "smoothness",
        "loss",
        "solver",
        "kernel",
        "weights",
        "max_iterations",
        "learning_rate",
        "epsilon",
    ),
}
MAX_DRAWN_TOGETHER = 60  # participants in one figure
CONTOURS_SEED = 0  # of the choice of pairs of drawings, where there are thousands

Grouping = Literal["all", "participant", "image"]
SegmentsBy = Literal["all", "participant"]
Method = Literal["penalised", "posterior"]
Prior = Literal["spatial", "image", "group"]


@dataclass(frozen=True, eq=False, repr=False)
class DatasetFit:
    """The fits of a data set, as `fit_dataset` returns them.

    Attributes
    ----------
    by : "all", "participant" or "image"
    together : Fit or None
        All answers taken as one observer's: `together.result` is a Posterior or a Reconstruction, `together.maps` its
        maps; None where each image was fitted separately.
    each : dict of Fit
        The fit of every participant, with segments in the order of the maps of all, or of every image. `fit.result` is
        a Reconstruction or a Posterior, `fit.maps` its maps, `fit.notes` what to watch out for. If a participant has
        another number of segments, those that match segments of all come first, and
        `fit.details["matching_segments"]` names them.
    skipped : dict of str
        Participants or images that could not be fitted, with the reason.
    rows : list of dict
        A row a participant or image: what `save` writes to participants.csv or images.csv.
    method : PenalisedMethod or PosteriorMethod
    read_image : function
        Returns the pixels of an image by its name, or None.
    image : str
        The name of the image, where all answers are about one.
    segments_by : "all" or "participant"
        Whether K was chosen once, or for each participant.
    durations : DurationTable or None
        Reaction times and durations of the participants who answered, about all images; None without reaction times.
    contours : ContourAgreement or None
        How well contours that participants drew agree with these maps, with the truth, and with each other, if a
        folder of data holds any.

    Notes
    -----
    All fits stay in memory until the object is deleted. For hundreds of images with posteriors of many draws, fit
    parts of the images, one call each.
    """

    by: Grouping
    together: Fit | None
    each: dict[str, Fit]
    skipped: dict[str, str]
    rows: list[dict[str, Any]]
    method: FitMethod
    read_image: ReadImage
    image: str
    segments_by: SegmentsBy = "all"
    durations: DurationTable | None = None
    contours: ContourAgreement | None = None

    @property
    def maps(self) -> Maps:
        """The maps of all answers taken together."""
        if self.together is None:
            raise InvalidInput("Each image was fitted separately; the maps of one are fits.each[NAME].maps.")
        return self.together.maps

    @property
    def segments(self) -> int:
        """The number of segments K of all answers taken together, chosen or given."""
        return self.maps.segments

    @property
    def message(self) -> str:
        """Sentences about all fits, a line for each image fitted separately, and a line about the durations."""
        parts = [self.together.message] if self.together is not None else []
        if self.by != "all":
            total = len(self.each) + len(self.skipped)
            some = f"{len(self.each)} of " if self.skipped else ""
            parts.append(f"{some}{format_count(total, self.by)} fitted separately, in {self.by}s.csv.")
        if self.segments_by == "participant":
            counts = Counter(fit.maps.segments for fit in self.each.values())
            listed = (f"{K} ({format_count(counts[K], 'participant')})" for K in sorted(counts))
            parts.append(f"Segments: {', '.join(listed)}.")
        if self.by == "participant":
            parts.append(self.method.describe_participants(self.each))
        lines = [" ".join(part for part in parts if part)]
        if self.by == "image":
            lines += [f"{name}: {fit.message}" for name, fit in self.each.items()]
        if self.contours is not None:
            lines.append(self.contours.message)
        if self.durations is not None:
            lines.append(str(self.durations))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<DatasetFit: {self.message.splitlines()[0]}>"

    def save(self, folder: str | Path) -> None:
        """Write maps, numbers and figures into a new or empty folder: what `vseg fit` writes.

        maps.npz, summary.json, maps.png and the other figures of all answers; participants.csv with a folder in
        participants/ for each participant, or images.csv with a folder in images/ for each image; durations.csv with
        the reaction times and durations of each participant, if the data have them.
        If participants drew contours, contours.csv, contour_pairs.csv and contours.png.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist; a Conflict if it holds anything.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise Conflict(f"{folder} is not empty; choose a new folder for a fit.")
        if self.together is not None:
            self._save_top(folder, self.together, self.image)
        for row in self.rows:
            if "folder" not in row:
                continue
            name, own = row[self.by], folder / row["folder"]
            own.mkdir(parents=True)
            if self.by == "image":
                self._save_top(own, self.each[name], name)
            else:
                self.each[name].save(own)
                self.method.draw(own, self.each[name], self.read_image(self.image), top=False)
        if self.by == "image" and len(self.each) == 1 and not self.skipped:
            [(name, fit)] = self.each.items()
            self._save_top(folder, fit, name)
        if self.by != "all":
            columns = [self.by, "folder", *self.method.columns, "note"]
            write_table(folder / f"{self.by}s.csv", columns, self.rows)
        if self.durations is not None:
            self.durations.save(folder / "durations.csv")
        if self.by == "participant" and len(self.each) <= MAX_DRAWN_TOGETHER:
            self.method.draw_participants(folder, self.each, self.read_image(self.image))
        if self.contours is not None:
            self._save_contours(folder, self.contours)

    def _save_contours(self, folder: Path, contours: ContourAgreement) -> None:
        """Write the tables of drawn contours, and a figure for each image."""
        contours.save(folder)
        folders = {row["image"]: row.get("folder") for row in self.rows} if self.by == "image" else {}
        for image in dict.fromkeys(drawing.image for drawing in contours.contours):
            own = folders.get(image, "." if self.by != "image" else None)
            if own is not None:
                figure = contours.select(image).draw(self.read_image(image))
                figure.savefig(folder / own / "contours.png")

    def _save_top(self, folder: Path, fit: Fit, image: str) -> None:
        """Write maps, numbers and all figures of one fit."""
        from vseg import figures

        pixels = self.read_image(image)
        fit.save(folder)
        self.method.draw(folder, fit, pixels, top=True)
        if pixels is not None:
            figures.boundaries(fit.maps, pixels).savefig(folder / "boundaries.png")


def fit_dataset(
    data: str | Path | Responses,
    *,
    layout: Layout | None = None,
    segments: Segments | None = None,
    segments_by: SegmentsBy = "all",
    by: Grouping | None = None,
    image: str | None = None,
    picture: str | Path | Pixels | None = None,
    method: Method | None = None,
    smoothness: float | str | None = None,
    loss: str | None = None,
    solver: str | Solver | None = None,
    kernel: Kernel | None = None,
    weights: str | None = None,
    max_iterations: int | None = None,
    learning_rate: float | None = None,
    epsilon: float | None = None,
    prior: Prior | None = None,
    lapses: Lapses | None = None,
    catch: CatchTrials | None = None,
    draws: int | None = None,
    budget: int | None = None,
    seed: int,
    progress: Progress | None = None,
) -> DatasetFit:
    """Fit maps to a whole data set: all answers together, each participant, or each image.

    This is what `vseg fit` runs. Participants or images that cannot be fitted, for instance because there are too few
    answers, are skipped with a warning. Unless each participant has a K of their own, it is chosen once, from all
    answers. The segments of every participant are put into the order of the maps of all.

    Parameters
    ----------
    data : str, Path or Responses
        A folder written by `vseg export`, which brings its layout, images, catch trials and number of segments; a CSV
        or Parquet table of responses; or Responses.
    layout : Layout, optional
        The locations of a table, such as `vseg.Grid(16)`.
    segments : int, several int, or "auto", optional
        K; or those to choose from: the penalised method takes the best held-out likelihood, the posterior the
        highest evidence. "auto" takes the highest evidence of 2 to 8 with either method. By default the number of a
        folder's study, or "auto" if the study leaves it free.
    segments_by : "all" or "participant"
        Whether K is chosen once, from all answers, or, with by="participant", also for each participant from their
        own answers.
    by : "all", "participant" or "image", optional
        "participant" fits all answers and then each participant, "image" each image separately. By default "all", or
        "image" for a folder with several images.
    image : str, optional
        Use only the responses about this image.
    picture : str, Path or array, optional
        The image itself, to draw boundaries over and for the image prior. A folder brings its own.
    method : "posterior" or "penalised", optional
        Maps with intervals (`vseg.posterior`), or the paper's estimator (`vseg.reconstruct`). By default "posterior";
        "penalised" if one of its settings is given.
    smoothness, loss, solver, kernel, weights, max_iterations : optional
        Settings of the penalised method, as in `vseg.reconstruct`.
    learning_rate, epsilon : float, optional
        λ_r and ε of Algorithm 1, with the solver "exponentiated_gradient".
    prior : "spatial", "image" or "group", optional
        Setting of the posterior, by default "spatial". "image" expects locations that look alike to belong together,
        "group", with by="participant", expects each participant to see what the others see where the evidence agrees.
    lapses : "auto", "none", "estimate" or (float, float), optional
        Setting of the posterior: lapse rates are left out, estimated, or given. By default "auto", which estimates
        them if the data set has catch trials.
    catch : dict of (int, int), optional
        Setting of the posterior: catch trials of each participant, right and asked, for data given as Responses. A
        folder or table brings its own.
    draws, budget : int, optional
        Settings of the posterior: the number of maps to draw, and of draws of each chain at most, as in
        `vseg.posterior`.
    seed : int
        Seed of random starts, held-out pairs and draws.
    progress : function, optional
        Called with the number of steps finished since the last call.

    Returns
    -------
    DatasetFit
        With `together`, `each`, `skipped`, and `save(folder)`, which writes what `vseg fit` writes.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(6), segments=2, entropy=0.2, seed=0)
    >>> pairs = vseg.designs.covering(truth.layout, segments=2, seed=1)
    >>> responses = vseg.simulate(truth, pairs, blocks=3, seed=2, participant="Ann")
    >>> fits = vseg.fit_dataset(responses, segments=2, by="participant", smoothness=1.0, seed=3)
    >>> list(fits.each), fits.skipped, fits.each["Ann"].maps.segments
    (['Ann'], {}, 2)
    >>> fits.save("fit")  # doctest: +SKIP
    """
    job = prepare_fit(
        data, layout=layout, segments=segments, segments_by=segments_by, by=by, image=image, picture=picture,
        method=method, smoothness=smoothness, loss=loss, solver=solver, kernel=kernel, weights=weights,
        max_iterations=max_iterations, learning_rate=learning_rate, epsilon=epsilon, prior=prior, lapses=lapses,
        catch=catch, draws=draws, budget=budget, seed=seed,
    )  # fmt: skip
    return job.run(progress)


class FitSettings(TypedDict, total=False):
    """The parameters of `fit_dataset` apart from the data and the progress."""

    layout: Layout | None
    segments: Segments | None
    segments_by: SegmentsBy
    by: Grouping | None
    image: str | None
    picture: str | Path | Pixels | None
    method: Method | None
    smoothness: float | str | None
    loss: str | None
    solver: str | Solver | None
    kernel: Kernel | None
    weights: str | None
    max_iterations: int | None
    learning_rate: float | None
    epsilon: float | None
    prior: Prior | None
    lapses: Lapses | None
    catch: CatchTrials | None
    draws: int | None
    budget: int | None
    seed: Required[int]


@dataclass(frozen=True)
class DatasetFitJob:
    """A data set that was read and checked, ready to be fitted.

    Attributes
    ----------
    answers : Responses
    counts : list of int
        The numbers of segments to choose from.
    by : "all", "participant" or "image"
    method : PenalisedMethod or PosteriorMethod
    read_image : function
        Returns the pixels of an image by its name, or None.
    segments_by : "all" or "participant"
        Whether K is chosen once, or for each participant.
    durations : DurationTable or None
        Reaction times and durations of the participants.
    dataset : Dataset or None
        The folder of the data, if it is one; it may hold drawn contours.
    """

    answers: Responses
    counts: list[int]
    by: Grouping
    method: FitMethod
    read_image: ReadImage
    segments_by: SegmentsBy = "all"
    durations: DurationTable | None = None
    dataset: Dataset | None = None

    @property
    def steps(self) -> int:
        """The number of progress steps."""
        one = self.method.count_steps(self.counts)
        if self.by == "participant":
            counts = self.counts if self.segments_by == "participant" else self.counts[:1]
            return one + len(self.answers.participants) * self.method.count_participant_steps(counts)
        return one * len(self.answers.images)

    def run(self, progress: Progress | None = None) -> DatasetFit:
        """Fit the data set; `progress` is called with the number of steps finished since the last call."""
        report: Progress = progress or (lambda done: None)
        if self.by == "image":
            return self._collect(None, self.answers.images, self._fit_images(report))
        pixels = self.read_image(self.answers.images[0])
        together = self.method.fit(self.answers, self.counts, report, pixels)
        if self.by == "all":
            return self._collect(together, [], iter(()))
        counts = [together.maps.segments]
        if self.segments_by == "participant":
            counts = self.counts
            together = replace(together, details={**together.details, "segments_by": self.segments_by})
        fits = self.method.fit_participants(self.answers, counts, report, pixels)
        return self._collect(together, self.answers.participants, fits)

    def _fit_images(self, progress: Progress) -> NamedFits:
        for name in self.answers.images:
            answers = self.answers.select(image=name)

            def run(answers: Responses = answers, name: str = name) -> Fit:
                return self.method.fit(answers, self.counts, progress, self.read_image(name))

            yield name, try_fit(run)

    def _collect(self, together: Fit | None, names: list[str], fits: NamedFits) -> DatasetFit:
        """Gather the fits; align participants to the maps of all; warn of those that are skipped."""
        folders = safe_folder_names(names)
        each: dict[str, Fit] = {}
        skipped: dict[str, str] = {}
        rows: list[dict[str, Any]] = []
        for name, fit in fits:
            if isinstance(fit, FailedFit):
                skipped[name] = fit.reason
                rows.append({self.by: name, "note": fit.reason})
                continue
            numbers, notes = self.method.table_row(fit), " ".join(fit.notes)
            rows.append({self.by: name, "folder": f"{self.by}s/{folders[name]}", **numbers, "note": notes})
            fit = replace(fit, details={self.by: name, **fit.details})
            each[name] = fit if together is None else fit.align_to(together.maps)
        if names and not each:
            name, reason = next(iter(skipped.items()))
            raise InvalidInput(f"No {self.by} could be fitted; {name}: {reason}")
        for name, reason in skipped.items():
            warnings.warn(f"{self.by} {name} is left out: {reason}", VsegWarning, stacklevel=4)
        _warn_by_kind(self.by, {name: fit.notes for name, fit in each.items()})
        image = self.answers.images[0]
        contours = self._score_contours(together, each)
        return DatasetFit(
            self.by, together, each, skipped, rows, self.method, self.read_image, image, self.segments_by,
            self.durations, contours,
        )  # fmt: skip

    def _score_contours(self, together: Fit | None, each: Mapping[str, Fit]) -> ContourAgreement | None:
        """Compare the contours that participants drew on these images with the maps; None if there are none."""
        if self.dataset is None:
            return None
        drawn = {drawing.image for drawing in load_contours(self.dataset.folder)}
        if not drawn.intersection(self.answers.images):
            return None
        image = self.answers.images[0]
        if together is None:
            maps = {("", name): fit.maps for name, fit in each.items()}
        else:
            own = {(name, image): fit.maps for name, fit in each.items()}
            maps = {("", image): together.maps} if self.by == "all" else own
        only = image if len(self.answers.images) == 1 else None
        return score_contours(self.dataset.folder, maps, image=only, seed=CONTOURS_SEED)


def prepare_fit(data: str | Path | Responses, **settings: Unpack[FitSettings]) -> DatasetFitJob:
    """Check the settings of a fit and read its data; the parameters are those of `fit_dataset`."""
    by, image, segments = settings.get("by"), settings.get("image"), settings.get("segments")
    if by is not None and by not in GROUPINGS:
        raise InvalidInput(f"Cannot fit by {by!r}; choose one of {', '.join(GROUPINGS)}.")
    name, own_settings = _choose_method(settings)
    source = DataSource.open(data, settings.get("layout"))
    counts = source.list_counts(segments)
    segments_by = _check_segments_by(settings.get("segments_by", "all"), by, counts)
    method = _build_method(name, own_settings, source, segments, settings["seed"])
    answers = source.load()
    if by is None:
        by = "image" if source.dataset and image is None and len(answers.images) > 1 else "all"
    answers = _choose_image(answers, by, image)
    read_image = source.image_reader(settings.get("picture"), answers.images)
    return DatasetFitJob(
        answers,
        counts,
        by,
        method,
        read_image,
        segments_by,
        durations=source.measure_durations(answers.participants),
        dataset=source.dataset,
    )


def _check_segments_by(segments_by: SegmentsBy, by: Grouping | None, counts: list[int]) -> SegmentsBy:
    if segments_by not in SEGMENT_CHOICES:
        raise InvalidInput(f"Cannot choose K by {segments_by!r}; choose one of {', '.join(SEGMENT_CHOICES)}.")
    if segments_by == "participant" and by != "participant":
        raise InvalidInput("K is chosen for each participant only where each is fitted; fit by participant.")
    if segments_by == "participant" and len(counts) == 1:
        raise InvalidInput(
            f"The number of segments is {counts[0]}, so there is none to choose "
            "for each participant; give several, or 'auto'."
        )
    return segments_by


def _choose_method(settings: FitSettings) -> tuple[Method, dict[str, Any]]:
    """Return the method, chosen or implied by its settings, with those settings; refuse settings of the other one."""
    given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    posterior, penalised = (
        {name: given[name] for name in names if name in given} for names in SETTINGS_BY_METHOD.values()
    )
    method: Method = given.get("method") or ("penalised" if penalised else "posterior")
    if method not in SETTINGS_BY_METHOD:
        raise InvalidInput(f"Unknown method {method!r}; choose one of {', '.join(SETTINGS_BY_METHOD)}.")
    if penalised and posterior:
        raise InvalidInput(
            f"{list_settings(penalised, 'penalised')} and {list_settings(posterior, 'posterior')} are settings of "
            "two methods; give those of one only."
        )
    refused, other = (posterior, "posterior") if method == "penalised" else (penalised, "penalised")
    if refused:
        raise InvalidInput(
            f"{list_settings(refused, other)} cannot be used with the method {method}; leave "
            f"{'it' if len(refused) == 1 else 'them'} out, or choose the method {other}."
        )
    if given.get("prior") == "group" and given.get("by") != "participant":
        raise InvalidInput(
            "The group prior of a participant is made from the others' answers; fit by participant to use it."
        )
    return method, penalised or posterior


def _build_method(
    name: Method, settings: dict[str, Any], source: DataSource, segments: Segments | None, seed: int
) -> FitMethod:
    """Return the method with its settings, and with the catch trials of the data if it uses them."""
    if name == "penalised":
        by_evidence = segments is None or isinstance(segments, str)
        catch = source.count_catch_trials() if by_evidence else {}
        return PenalisedMethod(seed=seed, by_evidence=by_evidence, catch=catch, **settings)
    if "catch" not in settings and settings.get("lapses", "auto") in ("auto", "estimate"):
        settings = {**settings, "catch": source.count_catch_trials()}
    return PosteriorMethod(seed=seed, **settings)


def list_settings(names: Iterable[str], method: str) -> str:
    """Return the names with their method behind each, which commands replace by their options."""
    return ", ".join(f"{name} ({method})" for name in names)


def _choose_image(answers: Responses, by: Grouping, image: str | None) -> Responses:
    """Return the answers about one image, or about all if each is fitted separately."""
    if image is not None:
        answers = answers.select(image=image)
    if len(answers.images) > 1 and by != "image":
        some = ", ".join(answers.images[:5]) + (", …" if len(answers.images) > 5 else "")
        raise InvalidInput(
            f"The responses are about {len(answers.images)} images ({some}); choose one image, or fit each image "
            "separately (by image)."
        )
    return answers


def _warn_by_kind(by: Grouping, notes: Mapping[str, tuple[str, ...]]) -> None:
    """Warn once for each kind of note; notes that differ only in numbers are of one kind."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for name, sentences in notes.items():
        for sentence in sentences:
            kinds.setdefault(re.sub(r"[0-9]+", "0", sentence), []).append((name, sentence))
    for (name, sentence), *others in kinds.values():
        many = f"{1 + len(others)} of {len(notes)} {by}s, for example {name}"
        warnings.warn(f"{many if others else f'{by} {name}'}: {sentence}", VsegWarning, stacklevel=5)
