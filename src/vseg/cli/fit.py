"""`vseg fit`: probabilistic maps from a table of responses, or from a folder that `vseg export` wrote."""

import csv
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vseg.cli import options
from vseg.cli.output import counted, folder_names, new_folder, progress_bar, share
from vseg.cli.source import Pictures, source_of
from vseg.errors import InvalidInput, NotConverged, VsegWarning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vseg.maps import Maps
    from vseg.reconstruction import Reconstruction
    from vseg.responses import Responses
    from vseg.selection import SegmentsChoice

NUMBERS = ("trials", "pairs", "smoothness", "mean_entropy", "segments", "segments_won")
MOST_TOGETHER = 60  # participants in one picture


@dataclass(frozen=True)
class _Fit:
    """A reconstruction, and the choice of K behind it where there was one."""

    result: "Reconstruction"
    choice: "SegmentsChoice | None" = None
    about: dict[str, str] = field(default_factory=dict)

    @property
    def message(self) -> str:
        """What was chosen, if anything was, and what was found."""
        return f"{self.choice.message if self.choice else ''} {self.result.message}".strip()


def fit(
    responses: Annotated[
        Path,
        typer.Argument(
            metavar="RESPONSES",
            help="CSV or Parquet with the columns i, j, same, or a folder of vseg export.",
        ),
    ],
    grid: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Locations along a side; they count row by row from 0. A folder's are known.",
        ),
    ] = None,
    segments: Annotated[
        str | None,
        typer.Option(
            metavar="K",
            help="Number of segments, or a range to choose from: 2..7 [default: what a folder's study fixed].",
        ),
    ] = None,
    smoothness: Annotated[
        str,
        typer.Option(
            metavar="NUMBER", help="A number from 0 up, or auto: what predicts held-out pairs best."
        ),
    ] = "auto",
    loss: Annotated[
        str, typer.Option(metavar="NAME", help="squared_error or cross_entropy.")
    ] = "squared_error",
    solver: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="coordinate_descent or exponentiated_gradient (the paper's, slow)."
        ),
    ] = "coordinate_descent",
    kernel: Annotated[
        str, typer.Option(metavar="NAME", help="Neighbours: four, eight or gaussian:WIDTH.")
    ] = "four",
    weights: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="A pair counts by its trials, or once as in the paper: trials or pairs."
        ),
    ] = "trials",
    max_iterations: Annotated[
        str | None,
        typer.Option(metavar="COUNT", help="Most iterations of the solver [default: the solver's]."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="all; participant: each of them too; image: each on its own [default: all, "
            "or image for a folder of several].",
        ),
    ] = None,
    image: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only the responses about this image.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The image itself, to draw the boundaries over.")
    ] = None,
    seed: Annotated[
        str, typer.Option(metavar="NUMBER", help="Of the random starts and the held-out pairs.")
    ] = "0",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder to write.")] = Path("fit"),
    force: Annotated[bool, typer.Option("--force", help="Replace the folder if it exists.")] = False,
) -> None:
    """Reconstruct probabilistic maps from RESPONSES.

    Writes maps.npz (array `probabilities`, N x N x K), summary.json and maps.png; with smoothness auto also
    smoothness.png, with a range of segments segments.png, with a picture boundaries.png.

    --by participant adds participants.csv and a folder for each participant; a K chosen from a range is
    chosen once, from all answers. --by image fits each image on its own. Who has too few answers is left
    out, with a warning and a note in the table.

    A folder written by vseg export brings its locations, its images and, unless the study left it free,
    its number of segments.

    \b
    Examples:
      vseg fit exported --out fit
      vseg fit responses.csv --grid 16 --segments 3 --out fit
      vseg fit responses.csv --grid 16 --segments 2..7 --by participant --picture photo.jpg
    """
    settings: dict[str, Any] = {
        "smoothness": options.smoothness_of(smoothness),
        "loss": loss,
        "solver": solver,
        "kernel": kernel,
        "weights": weights,
        "seed": options.whole(seed, "--seed"),
    }
    if max_iterations is not None:
        settings["max_iterations"] = options.whole(max_iterations, "--max-iterations", least=1)
    source = source_of(responses, grid, segments)
    by = None if by is None else options.choice(by, "--by", list(WRITERS))
    with new_folder(out, force=force, inputs=[responses, *([picture] if picture else [])]) as folder:
        import vseg

        answers = vseg.load(responses, source.layout)
        if by is None:
            by = "image" if source.dataset and image is None and len(answers.images) > 1 else "all"
        answers = _about_one_image(answers, by, image)
        shown = source.pictures(picture, by, answers.images)
        with progress_bar("Fitting", _total(by, answers, source.counts, settings)) as advance:
            said = WRITERS[by](folder, answers, source.counts, settings | {"progress": advance}, shown)
    typer.echo(f"{out}: {said}")


def _write_all(
    folder: Path, answers: "Responses", counts: list[int], settings: dict[str, Any], pictures: Pictures
) -> str:
    found = _fitted(answers, counts, settings)
    _write_top(folder, found, pictures(answers.images[0]))
    return found.message


def _write_participants(
    folder: Path, answers: "Responses", counts: list[int], settings: dict[str, Any], pictures: Pictures
) -> str:
    """All answers together, then each participant with the same K and under the same labels."""
    together, shown = _fitted(answers, counts, settings), pictures(answers.images[0])
    _write_top(folder, together, shown)
    maps = together.result.maps
    each: dict[str, Maps] = {}

    def write(path: Path, found: _Fit) -> None:
        aligned = replace(found.result, maps=found.result.maps.aligned_to(maps))
        each[found.about["participant"]] = aligned.maps
        _write_three(path, replace(found, result=aligned), shown)

    said = _write_each(folder, "participant", answers, [maps.segments], settings, write)
    if len(each) <= MOST_TOGETHER:
        from vseg import figures

        figures.participants(each, shown).savefig(folder / "participants.png")
    return f"{together.message} {said}"


def _write_images(
    folder: Path, answers: "Responses", counts: list[int], settings: dict[str, Any], pictures: Pictures
) -> str:
    def write(path: Path, found: _Fit) -> None:
        shown = pictures(found.about["image"])
        _write_top(path, found, shown)
        if len(answers.images) == 1:
            _write_top(folder, found, shown)

    return _write_each(folder, "image", answers, counts, settings, write)


WRITERS = {"all": _write_all, "participant": _write_participants, "image": _write_images}


def _write_each(
    folder: Path,
    by: str,
    answers: "Responses",
    counts: list[int],
    settings: dict[str, Any],
    write: Callable[[Path, _Fit], None],
) -> str:
    """Fit each participant or image; one that cannot be fitted is listed with the reason, and left out."""
    rows, left_out, warned = [], {}, {}
    places = folder_names(getattr(answers, f"{by}s"))
    for name, place in places.items():
        try:
            with _collected() as warned[name]:
                found = _fitted(answers.of(**{by: name}), counts, settings)
        except (InvalidInput, NotConverged) as error:
            left_out[name] = str(error)
            rows.append({by: name, "note": str(error)})
            continue
        path = folder / f"{by}s" / place
        path.mkdir(parents=True)
        write(path, replace(found, about={by: name}))
        note = " ".join(warned[name])
        rows.append({by: name, "folder": f"{by}s/{place}", **_numbers(found.result), "note": note})
    if len(left_out) == len(places):
        raise InvalidInput("No {} could be fitted; {}: {}".format(by, *next(iter(left_out.items()))))
    for name, why in left_out.items():
        warnings.warn(f"{by} {name} is left out: {why}", VsegWarning, stacklevel=2)
    _warn_by_name(by, {name: said for name, said in warned.items() if name not in left_out})
    _write_table(folder / f"{by}s.csv", [by, "folder", *NUMBERS, "note"], rows)
    some = f"{len(places) - len(left_out)} of " if left_out else ""
    return f"{some}{counted(len(places), by)} fitted separately, in {by}s.csv."


@contextmanager
def _collected() -> Iterator[list[str]]:
    """The sentences of our own warnings, which are not shown; others are."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VsegWarning)
        yield said
    for one in caught:
        if issubclass(one.category, VsegWarning):
            said.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _warn_by_name(by: str, said: dict[str, list[str]]) -> None:
    """A line for each kind of warning: sentences that differ in numbers alone are of one kind."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for name, sentences in said.items():
        for sentence in sentences:
            kinds.setdefault(re.sub(r"[0-9]+", "0", sentence), []).append((name, sentence))
    for (name, sentence), *others in kinds.values():
        many = f"{1 + len(others)} of {len(said)} {by}s, for example {name}"
        warnings.warn(f"{many if others else f'{by} {name}'}: {sentence}", VsegWarning, stacklevel=3)


def _fitted(answers: "Responses", counts: list[int], settings: dict[str, Any]) -> _Fit:
    """One K, or the best of several; a fit that stopped early is kept, with a warning."""
    from vseg import choose_segments, reconstruct

    with share(settings["progress"], _fits(counts, settings)) as advance:
        settings = settings | {"progress": advance}
        if len(counts) > 1:
            choice = choose_segments(answers, segments=counts, **settings)
            found = _Fit(choice.result, choice)
        else:
            try:
                return _Fit(reconstruct(answers, segments=counts[0], **settings))
            except NotConverged as error:
                if error.result is None:
                    raise
                found = _Fit(error.result)
    if not found.result.converged:
        kept = f"The fit of {found.result.maps.segments} segments is kept as it was: {found.result.solution.status}"
        warnings.warn(f"{kept} Raise --max-iterations.", VsegWarning, stacklevel=2)
    return found


def _write_top(folder: Path, found: _Fit, shown: "NDArray[np.uint8] | None") -> None:
    """The three files, and the pictures of what was chosen."""
    from vseg import figures

    _write_three(folder, found, shown)
    if found.result.path is not None:
        tried = found.result.path
        figures.path(tried.strengths, tried.held_out, tried.chosen).savefig(folder / "smoothness.png")
    if found.choice is not None:
        each = found.choice.candidates
        figures.segments(
            [candidate.segments for candidate in each],
            list(zip(*(candidate.scores for candidate in each), strict=True)),
            [candidate.winning for candidate in each],
            found.choice.by_likelihood,
        ).savefig(folder / "segments.png")
    if shown is not None:
        figures.boundaries(found.result.maps, shown).savefig(folder / "boundaries.png")


def _write_three(folder: Path, found: _Fit, shown: "NDArray[np.uint8] | None") -> None:
    from vseg import figures

    about: dict[str, Any] = dict(found.about)
    if found.choice is not None:
        about |= {
            "segments_table": found.choice.table(),
            "segments_by_likelihood": found.choice.by_likelihood,
            "segments_by_empty_maps": found.choice.by_empty_maps,
        }
    found.result.save(folder, about)
    figures.maps(found.result.maps, image=shown).savefig(folder / "maps.png")


def _numbers(result: "Reconstruction") -> dict[str, Any]:
    summary = result.summary()
    return {name: summary[name] for name in NUMBERS}


def _write_table(path: Path, columns: list[str], rows: list[dict[str, Any]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _about_one_image(answers: "Responses", by: str, image: str | None) -> "Responses":
    if image is not None:
        answers = answers.of(image=image)
    if len(answers.images) > 1 and by != "image":
        some = ", ".join(answers.images[:5]) + (", …" if len(answers.images) > 5 else "")
        raise InvalidInput(
            f"The responses are about {len(answers.images)} images ({some}); "
            "choose one with --image NAME, or fit each with --by image."
        )
    return answers


def _fits(counts: list[int], settings: dict[str, Any]) -> int:
    """How many steps the progress of one fit, or of one choice of K, counts up to."""
    from vseg.validation import FOLDS, STRENGTHS

    if settings["smoothness"] == "auto":
        return len(counts) * FOLDS * len(STRENGTHS)
    return len(counts) * (1 + FOLDS) if len(counts) > 1 else 1


def _total(by: str, answers: "Responses", counts: list[int], settings: dict[str, Any]) -> int:
    """The same for all of a command: K is chosen for each image, but once for all participants."""
    one = _fits(counts, settings)
    if by == "participant":
        return one + len(answers.participants) * _fits(counts[:1], settings)
    return one * len(answers.images)
