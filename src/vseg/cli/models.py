"""`vseg models`: which there are, fitting one, and scoring several on answers they have not seen."""

import hashlib
import json
import shutil
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vseg.cli import options
from vseg.cli.output import counted, folder_names, new_folder, progress_bar
from vseg.errors import Conflict, InvalidInput, MissingExtra, VsegError, VsegWarning

if TYPE_CHECKING:
    from vseg.comparison import Comparison, Family
    from vseg.maps import Maps
    from vseg.models.task import Task

UNFINISHED, FINISHED = "unfinished", "table.md"
WRITTEN = {"parameters.json", "maps", "maps.png", "calibration.png"}
MOST_ROWS = 6  # of maps side by side

models = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Fit models of segmentation to answers, and score them."
)

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

    width = max(map(len, catalogue.NAMES))
    for name, said in catalogue.NAMES.items():
        typer.echo(f"{name:<{width}}  {said}")
    typer.echo(f"\nFeatures: {', '.join(features.NAMES)}; several with a + between, as in lab+contrast.")
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
    own_seed, count = options.whole(seed, "--seed"), options.whole(workers, "--workers", least=1)
    per = options.choice(per, "--per", ["participant", "image", "all"])
    with new_folder(out, force=force, inputs=[dataset], ours=WRITTEN) as folder:
        task = _task(dataset, segments, image)
        family = _family(model, features)
        with _executor(count) as executor:
            found, failures = _fits(task, family, per, own_seed, executor)
        if not found:
            raise InvalidInput(
                "{} could not be fitted to {}: {}".format(model, *next(iter(failures.items())))
            )
        for group, why in failures.items():
            warnings.warn(f"{group} is left out: {why}", VsegWarning, stacklevel=2)
        _write_fits(folder, task, model, per, found)
    some = f"{len(found)} of " if failures else ""
    typer.echo(
        f"{out}: {model} fitted to {some}{counted(len(found) + len(failures), per if per != 'all' else 'task')}."
    )


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
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder to write; an unfinished run in it goes on.")
    ] = Path("scores"),
    force: Annotated[bool, typer.Option("--force", help="Replace the results of an earlier run.")] = False,
) -> None:
    """Score models on answers of DATASET that they have not seen.

    Writes table.md, table.csv, scores.json, forest.png, calibration.png and maps.png, which has each model
    beside people. A model that fails is told of, and the others are scored. What is finished is kept on the
    way: the same command goes on where an earlier one was cut.

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
    count = options.whole(workers, "--workers", least=1)
    _check_unfinished(out, force)
    from vseg.comparison import compare

    names = _names(models)
    task = _task(dataset, segments, image)
    families, absent = _families(names, features)
    kept = out / UNFINISHED / _fingerprint(task, names, features)
    total = len(families) * settings["folds"] * _groups(task, settings["per"])
    with progress_bar("Scoring", total) as advance, _executor(count) as executor:
        found = compare(task, families, **settings, executor=executor, progress=advance, kept=kept)
    found.failures.update(absent)
    if not found.predictions:
        _remove_unfinished(out)
        raise InvalidInput("No model could be scored; {}: {}".format(*next(iter(found.failures.items()))))
    for name, why in found.failures.items():
        warnings.warn(f"{name} was not scored: {why}", VsegWarning, stacklevel=2)
    _write_scores(out, task, found)
    _remove_unfinished(out)
    typer.echo(found.markdown())
    typer.echo(f"{out}: {counted(len(found.predictions), 'model')} scored on {len(task.responses)} answers.")


def _task(dataset: Path, segments: str | None, image: str | None) -> "Task":
    from vseg import benchmark

    count = None if segments is None else options.whole(segments, "--segments", least=2)
    return benchmark.load(dataset, count, image)


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


def _family(name: str, features: str | None) -> "Family":
    from vseg.features import named
    from vseg.models import catalogue

    for each in features.split("+") if features else ():
        named(each)  # one that is not there is told of at once
    family: Family = catalogue.named(name) if features is None else catalogue.named(name, features=features)
    return family


def _families(names: Mapping[str, str], features: str | None) -> "tuple[dict[str, Family], dict[str, str]]":
    """The models, and why some are not there: a user's file that cannot be run, or PyTorch that is not installed."""
    families: dict[str, Family] = {}
    absent: dict[str, str] = {}
    for name, source in names.items():
        try:
            families[name] = _family(source, features)
        except VsegError as error:
            if not isinstance(error, MissingExtra) and ".py" not in source:
                raise
            absent[name] = str(error)
    if not families:
        raise InvalidInput("No model could be scored; {}: {}".format(*next(iter(absent.items()))))
    return families, absent


def _groups(task: "Task", per: str) -> int:
    return 1 if per == "all" else len(getattr(task.responses, f"{per}s"))


@contextmanager
def _executor(workers: int) -> Iterator[Executor | None]:
    """Threads, since most of the work is done outside of Python; what waits is dropped if something fails."""
    if workers == 1:
        yield None
        return
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _check_unfinished(out: Path, force: bool) -> None:
    """A folder may be new, or hold an unfinished run; a finished one is replaced only if that is asked for."""
    if out.is_file():
        raise Conflict(f"{out} is a file; choose another --out.")
    if not out.is_dir() or force:
        return
    if (out / FINISHED).exists():
        raise Conflict(f"{out} holds the results of an earlier run; choose another --out, or pass --force.")
    foreign = sorted(entry.name for entry in out.iterdir() if entry.name != UNFINISHED)
    if foreign:
        raise Conflict(f"{out} holds {foreign[0]}, which is no unfinished run; choose another --out.")


def _remove_unfinished(out: Path) -> None:
    """What was kept on the way, and the folder itself if there is nothing else in it."""
    shutil.rmtree(out / UNFINISHED, ignore_errors=True)
    if out.is_dir() and not any(out.iterdir()):
        out.rmdir()


def _fingerprint(task: "Task", names: Mapping[str, str], features: str | None) -> str:
    """Of all that predictions follow from but models by name: another model.py does not go on with these."""
    from vseg import __version__, benchmark
    from vseg.benchmark.submissions import file_digest

    found = hashlib.sha256(f"{__version__} {benchmark.digest(task)} {features}".encode())
    for name, source in names.items():
        path = Path(source.rpartition(".py")[0] + ".py")
        if path.is_file():
            found.update(f"{name} {file_digest(path)}".encode())
    return found.hexdigest()[:16]


# ── fitting ──


def _fits(
    task: "Task", family: "Family", per: str, seed: int, executor: Executor | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The fitted model of each group, and why some have none."""
    import numpy as np

    from vseg.comparison.folds import groups_of

    groups = groups_of(task.responses, per, "pairs")  # type: ignore[arg-type]
    seeds = np.random.SeedSequence(seed).spawn(len(groups))

    def fitted(place: int) -> Any:
        rows = list(groups.values())[place]
        try:
            return family(task.where(rows), seed=int(seeds[place].generate_state(1)[0]))
        except Exception as error:  # a user's model may raise anything
            return str(error) if isinstance(error, VsegError) else f"{type(error).__name__}: {error}"

    found: dict[str, Any] = {}
    with progress_bar("Fitting", len(groups)) as advance:
        run = map if executor is None else executor.map
        for group, each in zip(groups, run(fitted, range(len(groups))), strict=True):
            found[group] = each
            advance(1)
    failures = {group: each for group, each in found.items() if isinstance(each, str)}
    return {group: each for group, each in found.items() if group not in failures}, failures


def _write_fits(folder: Path, task: "Task", model: str, per: str, found: Mapping[str, Any]) -> None:
    import numpy as np

    from vseg import figures
    from vseg.comparison.folds import groups_of
    from vseg.comparison.held_out import predicted
    from vseg.comparison.scores import bits, calibration

    groups = groups_of(task.responses, per, "pairs")  # type: ignore[arg-type]
    told, said = {}, np.full(len(task.responses), np.nan)
    maps: dict[tuple[str, str], Maps] = {}
    for group, fitted in found.items():
        own = task.where(groups[group]).responses
        said[groups[group]] = predicted(fitted, own)
        score = float(bits(said[groups[group]], own.same).mean())
        told[group] = {"answers": len(own), "bits_fitted": score, "parameters": _parameters(fitted)}
        if hasattr(fitted, "maps"):
            maps |= {(group, image): fitted.maps(image) for image in own.images}
    content = {"model": model, "per": per, "segments": task.segments, "fits": told}
    (folder / "parameters.json").write_text(
        json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    there = np.isfinite(said)
    curve = calibration(said[there], task.responses.same[there])
    figures.calibration({model: curve}).savefig(folder / "calibration.png")
    if maps:
        _save_maps(folder / "maps", maps)
        _draw_maps(folder / "maps.png", task, {model: maps}, per)


def _save_maps(folder: Path, maps: "Mapping[tuple[str, str], Maps]") -> None:
    groups, images = (
        folder_names(dict.fromkeys(g for g, _ in maps)),
        folder_names(dict.fromkeys(i for _, i in maps)),
    )
    for (group, image), each in maps.items():
        (folder / groups[group]).mkdir(parents=True, exist_ok=True)
        each.save(folder / groups[group] / f"{images[image]}.npz")


def _parameters(fitted: Any) -> dict[str, Any]:
    """As the model tells them, or else the numbers and arrays that it holds."""
    told = getattr(fitted, "parameters", None)
    if not isinstance(told, Mapping):
        told = {name: each for name, each in vars(fitted).items() if _is_numeric(each)}
    return {str(name): _plain(each) for name, each in told.items()}


def _is_numeric(value: Any) -> bool:
    import numpy as np

    return isinstance(value, bool | int | float | np.number) or (
        isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    )


def _plain(value: Any) -> Any:
    """As JSON has it, which knows no NaN."""
    import numpy as np

    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)


# ── scoring ──


def _write_scores(out: Path, task: "Task", found: "Comparison") -> None:
    from vseg import figures

    out.mkdir(parents=True, exist_ok=True)
    (out / "table.csv").write_text(found.csv(), encoding="utf-8")
    (out / "scores.json").write_text(found.json(), encoding="utf-8")
    table = found.table()
    figures.forest(table, found.ceilings()).savefig(out / "forest.png")
    curves = {row["model"]: found.calibration(row["model"]) for row in table}
    figures.calibration(curves).savefig(out / "calibration.png")
    maps = {row["model"]: found.maps[row["model"]] for row in table if row["model"] in found.maps}
    if maps:
        _draw_maps(out / "maps.png", task, maps, found.per)
    (out / FINISHED).write_text(found.markdown(), encoding="utf-8")  # last: it tells that all is there


def _draw_maps(
    path: Path, task: "Task", maps: "Mapping[str, Mapping[tuple[str, str], Maps]]", per: str
) -> None:
    """Each model beside people, of every image first for one group, then for the next, as far as there is room."""
    from vseg import figures

    free = next((name for name in maps if name.startswith("free")), None)
    if free is not None:
        maps = {"people": maps[free]} | {name: each for name, each in maps.items() if name != free}
    keys = sorted({key for each in maps.values() for key in each})
    seen: dict[str, int] = {}
    ranked = []
    for group, image in keys:
        seen[image] = seen.get(image, -1) + 1
        ranked.append((seen[image], image, group))
    rows: dict[str, dict[str, Maps]] = {}
    pictures = {}
    for _, image, group in sorted(ranked)[:MOST_ROWS]:
        name = f"{group}\n{image}" if per == "participant" else image
        rows[name] = _people(task, group, image, per, maps) | {
            model: each[group, image] for model, each in maps.items() if (group, image) in each
        }
        if image in task.images:
            pictures[name] = task.images[image]
    figures.side_by_side(rows, pictures).savefig(path)


def _people(
    task: "Task", group: str, image: str, per: str, maps: "Mapping[str, Mapping[tuple[str, str], Maps]]"
) -> "dict[str, Maps]":
    """The maps found from the answers alone; none where the answers are too few, or a model has them already."""
    if "people" in maps:
        return {}
    from vseg.benchmark.scoring import seen_in

    answers = task.responses.of(image=image, participant=group if per == "participant" else None)
    seen = seen_in(answers, task.segments, seed=0)
    return {} if seen is None else {"people": seen}
