"""`vseg models`: which there are, fitting one, and scoring several on answers they have not seen."""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vseg._support.text import format_count
from vseg.cli import options, unfinished
from vseg.cli.model_results import FINISHED, FIT_FILES, write_fits, write_scores
from vseg.cli.output import new_folder, progress_bar, resumable
from vseg.errors import InvalidInput, MissingExtra, VsegWarning

if TYPE_CHECKING:
    from vseg.evaluation.compare import Family
    from vseg.models.task import Task

HELP = """Fit models of segmentation to answers, and score them.

\b
Examples:
  vseg models list
  vseg models score my-data --models base_rate,logistic,mixture --out scores
"""
models = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=HELP)

DatasetPath = Annotated[
    Path,
    typer.Argument(metavar="DATASET", help="A folder of vseg export, vseg import or vseg bench dataset."),
]
FeaturesOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What models look at: rgb, lab, orientation, gabor, contrast; several with a + between "
        "[default: each model's own].",
    ),
]
SegmentsOption = Annotated[
    str | None, typer.Option(metavar="K", help="Number of segments [default: what the study fixed].")
]
PerOption = Annotated[str, typer.Option(metavar="NAME", help="What one fit sees: participant, image or all.")]
SeedOption = Annotated[str, typer.Option(metavar="NUMBER", help="Of all that is drawn at random.")]
WorkersOption = Annotated[
    str, typer.Option(metavar="COUNT", help="Fits at a time; the numbers do not depend on it.")
]
MinutesOption = Annotated[
    str,
    typer.Option(
        metavar="NUMBER",
        help="That one fit may take; holds for models of your own, and with several workers.",
    ),
]
MemoryOption = Annotated[str, typer.Option(metavar="MB", help="That it may use, likewise.")]
ImageOption = Annotated[str | None, typer.Option(metavar="NAME", help="Only the answers about this image.")]


@models.command("list")
def list_() -> None:
    """List the models that come with vseg, and the features they can look at.

    A model of your own is FILE.py, or FILE.py:NAME.

    \b
    Example:
      vseg models list
    """
    from vseg import features
    from vseg.models import catalogue

    width = max(map(len, catalogue.MODEL_DESCRIPTIONS))
    for name, said in catalogue.MODEL_DESCRIPTIONS.items():
        typer.echo(f"{name:<{width}}  {said}")
    typer.echo(f"\nFeatures: {', '.join(features.FEATURES)}; several with a + between, as in lab+contrast.")
    typer.echo("A model of your own: FILE.py or FILE.py:NAME; see docs/modelling.md.")


@models.command()
def fit(
    dataset: DatasetPath,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="A name of vseg models list, or FILE.py[:NAME].")
    ],
    features: FeaturesOption = None,
    per: PerOption = "participant",
    segments: SegmentsOption = None,
    image: ImageOption = None,
    seed: SeedOption = "0",
    workers: WorkersOption = "1",
    minutes: MinutesOption = "10",
    memory: MemoryOption = "4000",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder to write.")] = Path("model"),
    force: Annotated[bool, typer.Option("--force", help="Replace the folder if it exists.")] = False,
) -> None:
    """Fit one model to all answers of DATASET.

    Writes parameters.json, calibration.png and, of a model that predicts maps, maps/ (an .npz for each fit
    and image) and maps.png, beside the maps of people.

    \b
    Examples:
      vseg models fit my-data --model logistic --features lab --out colours
      vseg models fit my-data --model logistic --features lab+contrast --per all --out shared
    """
    own_seed, place = options.whole(seed, "--seed"), _place(workers, minutes, memory, [model])
    per = options.choice(per, "--per", ["participant", "image", "all"])
    from vseg.evaluation.folds import group_rows
    from vseg.evaluation.held_out import fit_to_all
    from vseg.evaluation.human_maps import reconstruct_human_maps

    with new_folder(out, force=force, inputs=[dataset], ours=FIT_FILES) as folder:
        task, family = _task(dataset, segments, image), _family(model, features)
        groups = group_rows(task.responses, per, "pairs")  # type: ignore[arg-type]
        with progress_bar("Fitting", 2 * len(groups)) as advance, _executor(place) as executor:
            manner: dict[str, Any] = {"seed": own_seed, "executor": executor, "progress": advance}
            told = fit_to_all(task, {model: family}, groups, **manner)[model]
            fits = {group: each for group, each in told.items() if not each.failed}
            if not fits:
                first = next(iter(told))
                raise InvalidInput(f"{model} could not be fitted to {first}: {told[first].failed}")
            people = (
                reconstruct_human_maps(task, groups, **manner)
                if any(each.maps for each in fits.values())
                else {}
            )
        for group in [each for each in told if each not in fits]:
            warnings.warn(f"{group} is left out: {told[group].failed}", VsegWarning, stacklevel=2)
        write_fits(folder, task, model, per, fits, people)
    some = f"{len(fits)} of " if len(fits) < len(told) else ""
    typer.echo(f"{out}: {model} fitted to {some}{format_count(len(told), per if per != 'all' else 'task')}.")


@models.command()
def score(
    dataset: DatasetPath,
    models: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="Names of vseg models list and FILE.py[:NAME] of your own, commas between."
        ),
    ],
    folds: Annotated[str, typer.Option(metavar="COUNT", help="Into how many parts the answers fall.")] = "5",
    by: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="What is held out together: pairs, blocks, participants or images."
        ),
    ] = "pairs",
    per: PerOption = "participant",
    features: FeaturesOption = None,
    segments: SegmentsOption = None,
    image: ImageOption = None,
    seed: SeedOption = "0",
    workers: WorkersOption = "1",
    minutes: MinutesOption = "10",
    memory: MemoryOption = "4000",
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder to write; an unfinished run in it goes on.")
    ] = Path("scores"),
    force: Annotated[bool, typer.Option("--force", help="Replace the results of an earlier run.")] = False,
) -> None:
    """Score models on answers of DATASET that they have not seen.

    Writes table.md, table.csv, scores.json, forest.png, calibration.png and maps.png, which has each model
    beside people. A model that fails is told of, and the others are scored. What is finished is kept on the
    way: the same command goes on where an earlier one was cut. A model of your own runs in a process of its own:
    if it hangs or eats memory it is ended, and told of like any that fails.

    \b
    Examples:
      vseg models score my-data --models base_rate,logistic,mixture,slic,mine.py --out scores
      vseg models score my-data --models logistic,mixture --by images --per all --folds 3 --workers 4
    """
    settings: dict[str, Any] = {
        "by": options.choice(by, "--by", ["pairs", "blocks", "participants", "images"]),
        "per": options.choice(per, "--per", ["participant", "image", "all"]),
        "folds": options.whole(folds, "--folds", least=2),
        "seed": options.whole(seed, "--seed"),
    }
    names = _names(models)
    place = _place(workers, minutes, memory, names.values())
    unfinished.check(out, FINISHED, force=force)
    from vseg.evaluation.compare import compare

    task = _task(dataset, segments, image)
    families, absent = _families(names, features)
    kept = unfinished.folder(out, task, names, features)
    with (
        resumable(out),
        progress_bar("Scoring", _fits(task, settings, len(families))) as advance,
        _executor(place) as executor,
    ):
        found = compare(task, families, **settings, executor=executor, progress=advance, kept=kept)
    found.failures.update(absent)
    if not found.predictions:
        unfinished.remove(out)
        raise _nothing_scored(found.failures)
    for name, why in found.failures.items():
        warnings.warn(f"{name} was not scored: {why}", VsegWarning, stacklevel=2)
    write_scores(out, task, found)
    unfinished.remove(out)
    typer.echo(found.markdown())
    typer.echo(
        f"{out}: {format_count(len(found.predictions), 'model')} scored on {len(task.responses)} answers."
    )


def _task(dataset: Path, segments: str | None, image: str | None) -> "Task":
    from vseg.evaluation import tasks

    count = None if segments is None else options.whole(segments, "--segments", least=2)
    return tasks.load(dataset, count, image)


def _names(text: str) -> dict[str, str]:
    """What is asked for, by what it is called in tables: a file without its folder, unless two are called the same."""
    sources = [name.strip() for name in text.split(",") if name.strip()]
    if not sources:
        raise InvalidInput(
            "--models names at least one model, with commas between; vseg models list has them."
        )
    if len(set(sources)) < len(sources):
        raise InvalidInput(f"--models names a model twice: {', '.join(sources)}.")
    short = [Path(source).name for source in sources]
    return {
        name if short.count(name) == 1 else source: source
        for name, source in zip(short, sources, strict=True)
    }


def _family(source: str, features: str | None) -> "Family":
    """A user's own is not run here: it might hang."""
    from vseg.features import get_feature
    from vseg.models import catalogue

    for each in features.split("+") if features else ():
        get_feature(each)  # one that is not there is told of at once
    if _is_own(source):
        return catalogue.get_model_lazily(source, features=features)
    return catalogue.get_model(source, features=features)


def _families(names: Mapping[str, str], features: str | None) -> "tuple[dict[str, Family], dict[str, str]]":
    """The models, and why some are not there: PyTorch may not be installed."""
    families: dict[str, Family] = {}
    absent: dict[str, str] = {}
    for name, source in names.items():
        try:
            families[name] = _family(source, features)
        except MissingExtra as error:
            absent[name] = str(error)
    if not families:
        raise _nothing_scored(absent)
    return families, absent


def _nothing_scored(failures: Mapping[str, str]) -> InvalidInput:
    return InvalidInput("No model could be scored; {}: {}".format(*next(iter(failures.items()))))


def _fits(task: "Task", settings: Mapping[str, Any], models: int) -> int:
    """How many there will be: of each fold, of all answers, and of people's maps."""
    groups = 1 if settings["per"] == "all" else len(getattr(task.responses, f"{settings['per']}s"))
    return groups * (models * (settings["folds"] + 1) + 1)


def _is_own(source: str) -> bool:
    return ".py" in source


@dataclass(frozen=True)
class _Place:
    """Where fits run: here, or in processes with limits."""

    workers: int
    seconds: float
    memory_mb: int
    fenced: bool


def _place(workers: str, minutes: str, memory: str, sources: Iterable[str]) -> _Place:
    count = options.whole(workers, "--workers", least=1)
    seconds = 60 * options.number(minutes, "--minutes", least=0.01)
    fenced = count > 1 or any(map(_is_own, sources))
    return _Place(count, seconds, options.whole(memory, "--memory", least=1), fenced)


@contextmanager
def _executor(place: _Place) -> Iterator[Executor | None]:
    """Processes, since threads wait for each other in models written in Python; in the end, what waits is dropped."""
    if not place.fenced:
        yield None
        return
    from vseg.evaluation.compare import SandboxExecutor

    executor = SandboxExecutor(place.workers, seconds=place.seconds, memory_mb=place.memory_mb)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)
