"""`vseg fit`: probabilistic maps from a table of responses, or from a folder that `vseg export` wrote."""

import csv
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vseg._support.text import format_count, safe_folder_names
from vseg.cli import options
from vseg.cli.methods import Believed, Each, Found, Penalised, Refused, tried
from vseg.cli.output import Advance, new_folder, progress_bar
from vseg.cli.source import Pictures, Source, source_of
from vseg.errors import InvalidInput, VsegWarning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vseg.data.responses import Responses

MOST_TOGETHER = 60  # participants in one picture
FEWEST_DRAWS, MOST_DRAWS = 8, 10_000
UNLESS_TOLD = {
    "smoothness": "auto", "loss": "squared_error", "solver": "coordinate_descent", "kernel": "four",
    "weights": "trials",
}  # fmt: skip


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
            help="Number of segments, auto (the most evident of 2 to 8), or a range to choose from: 2..5 "
            "[default: what a folder's study fixed].",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(metavar="NAME", help="penalised, as in the paper, or posterior: maps with intervals."),
    ] = "penalised",
    prior: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of a posterior: spatial; image: what looks alike belongs together; group: with --by participant, "
            "what the others see, where it helps [default: spatial].",
        ),
    ] = None,
    lapses: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES",
            help="Of a posterior: none, estimate, two such as 0.02,0.05, or auto: estimate with catch trials, "
            "else none [default: auto].",
        ),
    ] = None,
    draws: Annotated[
        str | None,
        typer.Option(
            metavar="COUNT",
            help="Of a posterior: maps to draw; more where chains do not agree [default: 64].",
        ),
    ] = None,
    smoothness: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="A number from 0 up, or auto: what predicts held-out pairs best [default: auto].",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="squared_error or cross_entropy [default: squared_error]."),
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="coordinate_descent or exponentiated_gradient (the paper's, slow) [default: coordinate_descent].",
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Neighbours: four, eight or gaussian:WIDTH [default: four]."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A pair counts by its trials, or once as in the paper: trials or pairs [default: trials].",
        ),
    ] = None,
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
    smoothness.png, with several K segments.png, with a picture boundaries.png.

    --method posterior finds the smoothness by evidence, and adds the arrays `lower`, `upper` (90 %) and `draws` to
    maps.npz, the entropy's interval to summary.json, and intervals.png. Catch trials in the data help to estimate
    lapses. --smoothness, --loss, --solver, --kernel, --weights and --max-iterations are for the paper's estimator.

    --segments auto takes the K of most evidence, by either method; a range does so too for the posterior, while the
    paper's estimator looks at held-out pairs and names the paper's choice beside it.

    --by participant adds participants.csv and a folder for each participant, and for a posterior entropies.png, to be
    compared with another group's by vseg groups; a K chosen from several is chosen once, from all answers. --by image
    fits each image on its own. Who has too few answers is left out, with a warning and a note in the table.

    A folder written by vseg export brings its locations, its images, its catch trials and, unless the study left it
    free, its number of segments.

    \b
    Examples:
      vseg fit exported --out fit
      vseg fit responses.csv --grid 16 --segments 3 --method posterior --out fit
      vseg fit exported --image boat --method posterior --by participant --prior group --out boat
      vseg fit responses.csv --grid 16 --segments auto --by participant --picture photo.jpg
    """
    own_seed = options.whole(seed, "--seed")
    name = options.choice(method, "--method", ["penalised", "posterior"])
    source = source_of(responses, grid, segments)
    by = None if by is None else options.choice(by, "--by", list(WRITERS))
    of_paper = {
        "smoothness": smoothness, "loss": loss, "solver": solver, "kernel": kernel, "weights": weights,
        "max_iterations": max_iterations,
    }  # fmt: skip
    of_posterior = {"prior": prior, "lapses": lapses, "draws": draws}
    how: Method
    if name == "posterior":
        _refuse(of_paper, "penalised")
        how = _believed(prior or "spatial", lapses or "auto", draws, by, own_seed, source)
    else:
        _refuse(of_posterior, "posterior")
        how = Penalised(by_evidence=source.automatic, seed=own_seed, **_settings(of_paper))
    with new_folder(out, force=force, inputs=[responses, *([picture] if picture else [])]) as folder:
        import vseg

        answers = vseg.load(responses, source.layout)
        if by is None:
            by = "image" if source.dataset and image is None and len(answers.images) > 1 else "all"
        answers = _about_one_image(answers, by, image)
        shown = source.pictures(picture, by, answers.images)
        with progress_bar("Fitting", _total(by, answers, source.counts, how)) as advance:
            said = WRITERS[by](_Work(folder, how, answers, source.counts, shown, advance))
    typer.echo(f"{out}: {said}")


Method = Penalised | Believed


def _refuse(given: dict[str, str | None], method: str) -> None:
    """Options of a method that was not asked for."""
    names = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is not None]
    if names:
        raise InvalidInput(f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} for --method {method}.")


def _believed(
    prior: str, lapses: str, draws: str | None, by: str | None, seed: int, source: Source
) -> Believed:
    if prior == "group" and by != "participant":
        raise InvalidInput(
            "--prior group needs --by participant: the others' answers make the prior of each."
        )
    count = None if draws is None else options.whole(draws, "--draws", least=FEWEST_DRAWS)
    if count is not None and count > MOST_DRAWS:
        raise InvalidInput(f"--draws is a whole number from {FEWEST_DRAWS} to {MOST_DRAWS}, got {count}.")
    return Believed(prior, lapses, seed, source.catch(), draws=count)


def _settings(given: dict[str, str | None]) -> dict[str, Any]:
    """Of the paper's estimator, what was not given as it is unless told."""
    settings: dict[str, Any] = UNLESS_TOLD | {
        name: value for name, value in given.items() if value is not None
    }
    settings["smoothness"] = options.smoothness_of(settings["smoothness"])
    if "max_iterations" in settings:
        settings["max_iterations"] = options.whole(settings["max_iterations"], "--max-iterations", least=1)
    return settings


@dataclass(frozen=True)
class _Work:
    """What is to be fitted, how, and where to."""

    folder: Path
    method: Method
    answers: "Responses"
    counts: list[int]
    pictures: Pictures
    advance: Advance


def _write_all(work: _Work) -> str:
    shown = work.pictures(work.answers.images[0])
    found = work.method.fitted(work.answers, work.counts, work.advance, shown)
    _write_top(work.folder, work.method, found, shown)
    return found.message


def _write_participants(work: _Work) -> str:
    """All answers together, then each participant with the same K and under the same labels."""
    shown = work.pictures(work.answers.images[0])
    together = work.method.fitted(work.answers, work.counts, work.advance, shown)
    _write_top(work.folder, work.method, together, shown)
    each: dict[str, Any] = {}

    def write(path: Path, found: Found) -> None:
        aligned = replace(found, result=found.result.align_to(together.maps))
        each[found.about["participant"]] = aligned.result
        aligned.save(path)
        work.method.draw(path, aligned, shown, top=False)

    fits = work.method.participants(work.answers, together.maps.segments, work.advance, shown)
    said = _write_each(work, "participant", work.answers.participants, fits, write)
    if len(each) <= MOST_TOGETHER:
        work.method.draw_people(work.folder, each, shown)
    return " ".join(part for part in (together.message, said, work.method.about_people(each)) if part)


def _write_images(work: _Work) -> str:
    def write(path: Path, found: Found) -> None:
        shown = work.pictures(found.about["image"])
        _write_top(path, work.method, found, shown)
        if len(work.answers.images) == 1:
            _write_top(work.folder, work.method, found, shown)

    names = work.answers.images
    fits = (
        (
            name,
            tried(work.method, work.answers.of(image=name), work.counts, work.advance, work.pictures(name)),
        )
        for name in names
    )
    return _write_each(work, "image", names, fits, write)


WRITERS = {"all": _write_all, "participant": _write_participants, "image": _write_images}


def _write_each(
    work: _Work, by: str, names: list[str], fits: Each, write: Callable[[Path, Found], None]
) -> str:
    """Write each participant or image; one that cannot be fitted is listed with the reason, and left out."""
    rows: list[dict[str, Any]] = []
    left_out, warned = {}, {}
    places = safe_folder_names(names)
    for name, found in fits:
        if isinstance(found, Refused):
            left_out[name] = found.why
            rows.append({by: name, "note": found.why})
            continue
        path = work.folder / f"{by}s" / places[name]
        path.mkdir(parents=True)
        write(path, replace(found, about={by: name, **found.about}))
        warned[name] = list(found.notes)
        place, note = f"{by}s/{places[name]}", " ".join(found.notes)
        rows.append({by: name, "folder": place, **work.method.numbers(found), "note": note})
    if len(left_out) == len(places):
        raise InvalidInput("No {} could be fitted; {}: {}".format(by, *next(iter(left_out.items()))))
    for name, why in left_out.items():
        warnings.warn(f"{by} {name} is left out: {why}", VsegWarning, stacklevel=2)
    _warn_by_name(by, warned)
    _write_table(work.folder / f"{by}s.csv", [by, "folder", *work.method.columns, "note"], rows)
    some = f"{len(places) - len(left_out)} of " if left_out else ""
    return f"{some}{format_count(len(places), by)} fitted separately, in {by}s.csv."


def _warn_by_name(by: str, said: dict[str, list[str]]) -> None:
    """A line for each kind of warning: sentences that differ in numbers alone are of one kind."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for name, sentences in said.items():
        for sentence in sentences:
            kinds.setdefault(re.sub(r"[0-9]+", "0", sentence), []).append((name, sentence))
    for (name, sentence), *others in kinds.values():
        many = f"{1 + len(others)} of {len(said)} {by}s, for example {name}"
        warnings.warn(f"{many if others else f'{by} {name}'}: {sentence}", VsegWarning, stacklevel=3)


def _write_top(folder: Path, method: Method, found: Found, shown: "NDArray[np.uint8] | None") -> None:
    """Maps, numbers, and all pictures."""
    from vseg import figures

    found.save(folder)
    method.draw(folder, found, shown, top=True)
    if shown is not None:
        figures.boundaries(found.maps, shown).savefig(folder / "boundaries.png")


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


def _total(by: str, answers: "Responses", counts: list[int], method: Method) -> int:
    """All steps of a command: K is chosen for each image, but once for all participants."""
    one = method.steps(counts)
    if by == "participant":
        return one + len(answers.participants) * method.steps_each()
    return one * len(answers.images)
