"""Score models on answers they have not seen: the workflow of `vseg models score` and `vseg bench run`."""

import hashlib
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vseg import __version__
from vseg._support.progress import Progress, StartProgress, no_progress
from vseg.errors import Conflict, InvalidInput, MissingExtra, VsegError, VsegWarning
from vseg.evaluation.fits import MapsByGroup
from vseg.evaluation.folds import FitUnit, HeldOutUnit
from vseg.evaluation.leaderboard import Leaderboard, create_entry
from vseg.evaluation.model_comparison import ModelComparison, compare, count_fits
from vseg.evaluation.sandbox import MEMORY_MB, SECONDS, SandboxExecutor
from vseg.evaluation.submissions import SubmissionResult, file_digest, run_submission
from vseg.features import get_feature
from vseg.models.black_box import fixed_maps
from vseg.models.catalogue import MODEL_DESCRIPTIONS, get_model, get_model_lazily
from vseg.models.model_interface import Family, PicklableFamily
from vseg.models.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vseg.data.maps import Maps

RESULT_FILE = "table.md"  # written last: it marks a complete run
RESULT_FILES = (RESULT_FILE, "table.csv", "scores.json", "forest.png", "calibration.png", "maps.png")
CHECKPOINTS = "unfinished"
MAX_ROWS, MAX_LEADERBOARD_ROWS = 6, 5  # rows of a figure of maps
LEADERBOARD_DPI = 120  # low, because the page contains many pictures


def score_models(
    data: str | Path | Task,
    models: Sequence[str] | Mapping[str, str | Family],
    *,
    by: HeldOutUnit = "pairs",
    per: FitUnit = "participant",
    folds: int = 5,
    features: str | None = None,
    segments: int | None = None,
    image: str | None = None,
    seed: int,
    workers: int = 1,
    seconds: float = SECONDS,
    memory_mb: int = MEMORY_MB,
    out: str | Path | None = None,
    leaderboard: str | Path | None = None,
    force: bool = False,
    progress: StartProgress = no_progress,
) -> ModelComparison:
    """Score models on answers of a dataset that they have not seen.

    A model that fails is reported by a warning, and the others are scored. Models from files run in processes of
    their own, with limits of time and memory.

    Parameters
    ----------
    data : path or Task
        A dataset folder written by `vseg export`, `vseg import` or `vseg bench dataset`, or a task.
    models : sequence of str, or mapping from names to models
        Names of built-in models, or FILE.py or FILE.py:NAME; in a mapping also families.
    by : "pairs", "blocks", "participants" or "images"
        What is held out together.
    per : "participant", "image" or "all"
        What one fit uses: each participant or image has parameters of its own, or all share them.
    folds : int
        Number of folds.
    features : str, optional
        Features of the models that use any; by default each model's own.
    segments : int, optional
        K of models that predict maps; by default the number that the study fixes. For a dataset folder only.
    image : str, optional
        Use only the answers about this image. For a dataset folder only.
    seed : int
        Seed of folds, fits and intervals.
    workers : int
        Number of fits at a time; the numbers do not depend on it.
    seconds, memory_mb : float and int
        Limits of one fit in a process of its own: a model from a file, or any model with several workers. For a
        submission to a leaderboard, the time limit holds for all images together.
    out : path, optional
        Folder for table.md, table.csv, scores.json, forest.png, calibration.png and maps.png. Finished fits are
        stored in it, so that the same call resumes an interrupted run. A run starts again if an answer, an image or
        a Python file in the folder of a model has changed, and if one of the models is a family other than vseg's.
    leaderboard : path, optional
        Folder of a leaderboard to which all scored models are added. Models from files are then submissions: they
        may also be packages, FOLDER or FOLDER:NAME, are called with each image alone and once for all folds, and
        only two lapse rates are fitted.
    force : bool
        Whether to replace the results of an earlier run in `out`.
    progress : callable, optional
        Called with the number of steps; returns a context manager whose value is called with finished steps.

    Returns
    -------
    ModelComparison
        Scores of each model with intervals; `table()` lists them, the best first.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(6), segments=2, seed=0)
    >>> pairs = vseg.designs.scattered(truth.layout, segments=2, seed=1)
    >>> task = vseg.models.Task(vseg.simulate(truth, pairs, blocks=3, seed=2), segments=2)
    >>> scores = vseg.score_models(task, ["chance", "free_maps"], seed=3)
    >>> [row["model"] for row in scores.table()]
    ['free_maps', 'chance']
    """
    named = models if isinstance(models, Mapping) else name_models(models)
    folder = None if out is None else Path(out)
    if folder is not None:
        _check_folder(folder, force=force)
    board = None if leaderboard is None else Leaderboard(leaderboard)
    if board is not None:
        board.entries()  # raises now, not after scoring, if the folder holds something else
    task = load_task(data, segments, image)
    submitted = {
        name: source
        for name, source in named.items()
        if board is not None and isinstance(source, str) and _is_submission(source)
    }
    others = {name: source for name, source in named.items() if name not in submitted}
    families, failures = load_families(others, features)
    total = len(submitted) + count_fits(task, len(named) - len(failures), per=per, folds=folds)
    with progress(total) as advance, open_executor(others.values(), workers, seconds, memory_mb) as executor:
        submissions, failed = _run_submissions(submitted, task, seconds, memory_mb, advance)
        failures |= failed
        families |= {name: fixed_maps(each.maps) for name, each in submissions.items()}
        if not families:
            raise _nothing_scored_error(failures)
        comparison = compare(
            task, families, by=by, per=per, folds=folds, seed=seed, executor=executor, progress=advance,
            checkpoint=None if folder is None else _checkpoint_folder(folder, task, named, features, submissions),
        )  # fmt: skip
    comparison.failures.update(failures)
    comparison.seconds.update({name: each.seconds for name, each in submissions.items()})
    if not comparison.predictions:
        _remove_checkpoints(folder)
        raise _nothing_scored_error(comparison.failures)
    for name, reason in comparison.failures.items():
        warnings.warn(f"{name} was not scored: {reason}", VsegWarning, stacklevel=2)
    if folder is not None:
        _write_results(folder, task, comparison)
        _remove_checkpoints(folder)
    if board is not None:
        name = "" if isinstance(data, Task) else _study_name(data)
        _add_to_leaderboard(board, comparison, task, submissions, name, features)
    return comparison


def load_task(data: str | Path | Task, segments: int | None, image: str | None) -> Task:
    """Load the task of a dataset folder, or return a task as it is."""
    if not isinstance(data, Task):
        return Task.load(data, segments, image)
    if segments is not None or image is not None:
        raise InvalidInput(
            "A task has its own segments and images; give segments and image with a folder only."
        )
    return data


def name_models(sources: Sequence[str]) -> dict[str, str]:
    """Return the models by their name in tables: a file without its folder, unless two would have one name."""
    if not sources:
        raise InvalidInput("Expected the name of at least one model, got none.")
    if len(set(sources)) < len(sources):
        raise InvalidInput(f"Expected each model once, got {', '.join(sources)}.")
    short = [Path(source).name for source in sources]
    return {
        name if short.count(name) == 1 else source: source
        for name, source in zip(short, sources, strict=True)
    }


def load_families(
    models: Mapping[str, str | Family], features: str | None
) -> tuple[dict[str, Family], dict[str, str]]:
    """Return the families by name, and the reason for each model that needs an extra that is not installed."""
    families: dict[str, Family] = {}
    failures: dict[str, str] = {}
    for name, source in models.items():
        try:
            families[name] = load_family(source, features)
        except MissingExtra as error:
            failures[name] = str(error)
    return families, failures


def load_family(model: str | Family, features: str | None) -> Family:
    """Return the family of a model; a user's file is not run here, because it might not return."""
    for feature in features.split("+") if features else ():
        get_feature(feature)  # raises if there is no such feature
    if not isinstance(model, str):
        return model
    return (
        get_model_lazily(model, features=features) if _is_file(model) else get_model(model, features=features)
    )


@contextmanager
def open_executor(
    models: Iterable[str | Family], workers: int, seconds: float, memory_mb: int
) -> Iterator[Executor | None]:
    """Yield processes with limits for several workers or models from files; otherwise None.

    Processes and not threads, because models written in Python block each other's threads. On exit, fits that still
    run are ended.
    """
    if workers == 1 and not any(isinstance(source, str) and _is_file(source) for source in models):
        yield None
        return
    executor = SandboxExecutor(workers, seconds=seconds, memory_mb=memory_mb)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def make_maps_figure(
    task: Task, maps: "Mapping[str, MapsByGroup]", per: FitUnit, *, max_rows: int = MAX_ROWS
) -> "Figure":
    """Draw maps side by side: a column for each model, a row for each image of one group, then of the next."""
    from vseg import figures

    rows: dict[str, dict[str, Maps]] = {}
    images = {}
    for group, image in _order_rows({key for each in maps.values() for key in each})[:max_rows]:
        name = f"{group}\n{image}" if per == "participant" else image
        rows[name] = {model: each[group, image] for model, each in maps.items() if (group, image) in each}
        if image in task.images:
            images[name] = task.images[image]
    return figures.side_by_side(rows, images)


def _order_rows(keys: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Order (group, image) so that each image comes once before any comes a second time."""
    counts: dict[str, int] = {}
    ranked = []
    for group, image in sorted(keys):
        counts[image] = counts.get(image, -1) + 1
        ranked.append((counts[image], image, group))
    return [(group, image) for _, image, group in sorted(ranked)]


def _is_file(source: str) -> bool:
    return ".py" in source


def _is_submission(source: str) -> bool:
    path = source.rpartition(":")[0] if ":" in Path(source).name else source
    return _is_file(source) or (source not in MODEL_DESCRIPTIONS and Path(path).is_dir())


def _nothing_scored_error(failures: Mapping[str, str]) -> InvalidInput:
    return InvalidInput("No model could be scored; {}: {}".format(*next(iter(failures.items()))))


def _study_name(folder: str | Path) -> str:
    from vseg.data.dataset import Dataset

    return Dataset(folder).study.name


def _run_submissions(
    sources: Mapping[str, str], task: Task, seconds: float, memory_mb: int, progress: Progress
) -> tuple[dict[str, SubmissionResult], dict[str, str]]:
    """Run each submission on the images; return the results, and the reason for each one that failed."""
    results: dict[str, SubmissionResult] = {}
    failures: dict[str, str] = {}
    for name, source in sources.items():
        try:
            results[name] = run_submission(
                source, task.images, task.layout, seconds=seconds, memory_mb=memory_mb
            )
        except VsegError as error:
            failures[name] = str(error)
        progress(1)
    return results, failures


def _check_folder(out: Path, *, force: bool) -> None:
    """Raise unless the folder is new, holds an unfinished run, or may be replaced."""
    if out.is_file():
        raise Conflict(f"{out} is a file; choose another folder.")
    if not out.is_dir() or force:
        return
    if (out / RESULT_FILE).exists():
        raise Conflict(
            f"{out} holds the results of an earlier run; choose another folder, or force their replacement."
        )
    others = sorted(entry.name for entry in out.iterdir() if entry.name != CHECKPOINTS)
    if others:
        raise Conflict(f"{out} holds {others[0]}, which is not an unfinished run; choose another folder.")


def _checkpoint_folder(
    out: Path,
    task: Task,
    models: Mapping[str, str | Family],
    features: str | None,
    submissions: Mapping[str, SubmissionResult],
) -> Path | None:
    """Return a folder named after everything the fits depend on; None if a model cannot be identified."""
    digest = hashlib.sha256(f"{__version__} {task.digest} {task.segments} {features}".encode())
    for name, source in models.items():
        identity = (
            _identify_maps(submissions[name].maps)
            if name in submissions
            else _identify_model(source, features)
        )
        if identity is None:
            return None
        digest.update(f"{name!r} {identity}\n".encode())
    return out / CHECKPOINTS / digest.hexdigest()[:16]


def _identify_maps(maps: "Mapping[str, Maps]") -> str:
    digest = hashlib.sha256()
    for image, each in maps.items():
        digest.update(f"{image!r} {each.probabilities.shape}".encode() + each.probabilities.tobytes())
    return f"maps {digest.hexdigest()}"


def _identify_model(model: str | Family, features: object) -> str | None:
    """Return a text that changes with the model; None for families that may change without a trace.

    The code of a function does not tell what it computes: it may use other functions, and values from outside.
    """
    if isinstance(model, str):
        return f"{model!r} {features!r} {_digest_python_files(model) if _is_file(model) else ''}"
    if not isinstance(model, PicklableFamily) or not model.factory.__module__.startswith("vseg."):
        return None
    if not (_is_plain(model.arguments) and _is_plain(model.settings)):
        return None
    files = [text for text in (*model.arguments, *model.settings.values()) if isinstance(text, str)]
    digests = [_digest_python_files(text) for text in files if _is_file(text)]
    factory = f"{model.factory.__module__}.{model.factory.__qualname__}"
    return f"{factory} {model.arguments!r} {sorted(model.settings.items())!r} {digests}"


def _digest_python_files(source: str) -> str:
    """Return the SHA-256 of FILE.py and the Python files that it can import: its neighbours and their packages."""
    folder = Path(source.rpartition(".py")[0] + ".py").resolve().parent
    digest = hashlib.sha256()
    for file in sorted({*folder.glob("*.py"), *folder.glob("*/*.py")}):
        if file.is_file():
            digest.update(f"{file.relative_to(folder)} {file_digest(file)}\n".encode())
    return digest.hexdigest()


def _is_plain(value: object) -> bool:
    """Return whether a value consists of numbers and text, so that its `repr` says all about it."""
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(_is_plain(each) for item in value.items() for each in item)
    return value is None or type(value) in (bool, int, float, str)


def _remove_checkpoints(out: Path | None) -> None:
    """Remove the checkpoints, and the folder itself if nothing else is in it."""
    if out is None:
        return
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
    if out.is_dir() and not any(out.iterdir()):
        out.rmdir()


def _write_results(out: Path, task: Task, comparison: ModelComparison) -> None:
    """Write the tables and figures of a comparison."""
    from vseg import figures

    out.mkdir(parents=True, exist_ok=True)
    for name in RESULT_FILES:  # of an earlier run: not every model has maps
        (out / name).unlink(missing_ok=True)
    (out / "table.csv").write_text(comparison.csv(), encoding="utf-8")
    (out / "scores.json").write_text(comparison.json(), encoding="utf-8")
    table = comparison.table()
    figures.forest(table, comparison.ceilings()).savefig(out / "forest.png")
    curves = {row["model"]: comparison.calibration(row["model"]) for row in table}
    figures.calibration(curves).savefig(out / "calibration.png")
    maps = {row["model"]: comparison.maps[row["model"]] for row in table if row["model"] in comparison.maps}
    if maps:
        columns = {"people": comparison.human_maps, **maps}
        make_maps_figure(task, columns, comparison.per).savefig(out / "maps.png")
    (out / RESULT_FILE).write_text(comparison.markdown(), encoding="utf-8")


def _add_to_leaderboard(
    board: Leaderboard,
    comparison: ModelComparison,
    task: Task,
    submissions: Mapping[str, SubmissionResult],
    dataset_name: str,
    features: str | None,
) -> None:
    """Add every scored model, with a picture of its maps; warn if the scores of a submission are not repeatable."""
    for model in comparison.predictions:
        submission = submissions.get(model)
        if submission is None:
            entry = create_entry(comparison, model, task, dataset_name=dataset_name, features=features)
        else:
            fitted = fixed_maps(submission.maps)(task, seed=comparison.seed)
            entry = create_entry(
                comparison, model, task, name=submission.name, dataset_name=dataset_name,
                file=submission.digest, lapses=fitted.lapses, repeatable=submission.repeatable,
                seconds=submission.seconds,
            )  # fmt: skip
        picture = None
        if model in comparison.maps:
            columns = {"people": comparison.human_maps, entry.name: comparison.maps[model]}
            picture = make_maps_figure(task, columns, comparison.per, max_rows=MAX_LEADERBOARD_ROWS)
            picture.set_dpi(LEADERBOARD_DPI)
        previous = board.add(entry, picture)
        if not entry.repeatable or (previous is not None and previous.scores != entry.scores):
            warnings.warn(
                f"{entry.name} gives different results when it is run again, and so its scores will differ.",
                VsegWarning,
                stacklevel=3,
            )
