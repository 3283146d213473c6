"""`vseg bench`: a dataset to enter models for, and submissions scored onto a leaderboard."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vseg.cli import options
from vseg.cli.output import new_folder, progress_bar
from vseg.errors import InvalidInput, VsegError, VsegWarning

if TYPE_CHECKING:
    from vseg.data.maps import Maps
    from vseg.evaluation.leaderboard import Leaderboard
    from vseg.evaluation.submissions import Ran
    from vseg.models.task import Task

MOST_IMAGES = 5  # in the picture of an entry
PICTURE_DPI = 120  # a page holds many

HELP = """Score submissions onto a leaderboard.

\b
Examples:
  vseg bench dataset --samples --out samples
  vseg bench run samples --model mine.py
"""
bench = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=HELP)


@bench.command()
def run(
    dataset: Annotated[
        Path,
        typer.Argument(metavar="DATASET", help="A folder of vseg export, vseg import or vseg bench dataset."),
    ],
    model: Annotated[
        list[str],
        typer.Option(
            metavar="FILE[:NAME]", help="A Python file or package with model(image); may be repeated."
        ),
    ],
    leaderboard: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where leaderboard.json and index.html are.")
    ] = Path("leaderboard"),
    seconds: Annotated[
        str, typer.Option(metavar="NUMBER", help="That a submission may take for all images.")
    ] = "600",
    memory: Annotated[str, typer.Option(metavar="MB", help="That it may use.")] = "4000",
    by: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="What is held out together: pairs, blocks, participants or images."
        ),
    ] = "pairs",
    folds: Annotated[str, typer.Option(metavar="COUNT", help="Into how many parts the answers fall.")] = "5",
    segments: Annotated[
        str | None,
        typer.Option(
            metavar="K", help="Of people's maps, where the study leaves it free [default: the study's]."
        ),
    ] = None,
    seed: Annotated[str, typer.Option(metavar="NUMBER", help="Of folds and intervals.")] = "0",
) -> None:
    """Run submissions on the images of DATASET, score them, and put them onto a leaderboard.

    Each runs in a process of its own within these limits: one that hangs, eats memory or fails is ended and told
    of, and the others are scored. It is a fence against accidents, not against malice: run only what you trust.

    model(image) is given uint8 (H, W, 3) and returns labels (H, W), probabilities (H, W, K) or vseg.Maps. Two
    rates of slips are fitted to the answers of the other folds, so that certain labels are not charged
    without end; nothing else is. The same command gives the same numbers.

    \b
    Examples:
      vseg bench run my-data --model mine.py
      vseg bench run my-data --model mine.py:by_colour --model theirs --seconds 60 --memory 2000
    """
    limits = options.number(seconds, "--seconds", least=0.1), options.whole(memory, "--memory", least=1)
    by = options.choice(by, "--by", ["pairs", "blocks", "participants", "images"])
    count, own_seed = options.whole(folds, "--folds", least=2), options.whole(seed, "--seed")
    K = None if segments is None else options.whole(segments, "--segments", least=2)
    from vseg.data.dataset import Dataset
    from vseg.evaluation import leaderboard as leaderboard_module, submissions, tasks
    from vseg.evaluation.submission_scores import peoples_maps

    task, board = tasks.load(dataset, K), leaderboard_module.Leaderboard(leaderboard)
    board.entries()  # a folder that holds something else is told of before anything runs
    how = {"by": by, "folds": count, "seed": own_seed, "dataset": Dataset(dataset).study.name}
    failures = {}
    with progress_bar("Running", len(model) + 1) as advance:
        people = peoples_maps(task, seed=own_seed)
        advance(1)
        for source in model:
            try:
                ran = submissions.run(
                    source, task.images, task.layout, seconds=limits[0], memory_mb=limits[1]
                )
                _enter(board, task, ran, people, how)
            except VsegError as error:
                failures[source] = str(error)
            advance(1)
    if len(failures) == len(model):
        raise InvalidInput(" ".join(f"{source} was not scored: {why}" for source, why in failures.items()))
    for source, why in failures.items():
        warnings.warn(f"{source} was not scored: {why}", VsegWarning, stacklevel=2)
    typer.echo(f"{leaderboard}: {len(board.entries())} on the leaderboard; see {leaderboard / 'index.html'}.")


def _enter(
    board: "Leaderboard", task: "Task", ran: "Ran", people: "dict[str, Maps]", how: dict[str, Any]
) -> None:
    """Score what a submission said, put it onto the leaderboard, and say how it did."""
    from vseg import figures
    from vseg.evaluation import submission_scores

    entry = submission_scores.score(task, ran, people, **how)
    images = list(ran.maps)[:MOST_IMAGES]
    rows = {
        image: ({"people": people[image]} if image in people else {}) | {entry.name: ran.maps[image]}
        for image in images
    }
    picture = figures.side_by_side(rows, {image: task.images[image] for image in images})
    picture.set_dpi(PICTURE_DPI)
    before = board.add(entry, picture)
    low, bits, high = (entry.scores[each] for each in ("low", "bits", "high"))
    typer.echo(f"{entry.name}: {bits:.3f} bits per answer ({low:.3f} to {high:.3f}), {entry.seconds:.1f} s.")
    if not entry.repeatable or (before is not None and before.scores != entry.scores):
        said = f"{entry.name} does not give the same when it is asked again, and so its scores will differ."
        warnings.warn(said, VsegWarning, stacklevel=2)


@bench.command()
def dataset(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder to write.", show_default=False)],
    bsds: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Your copy of BSDS500: its annotators are the observers."),
    ] = None,
    samples: Annotated[
        bool, typer.Option("--samples", help="Pictures of scikit-image, with simulated observers.")
    ] = False,
    images: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Which images, commas between [default: three].")
    ] = None,
    grid: Annotated[
        str | None, typer.Option(metavar="N", help="Locations along a side [default: 16, samples 12].")
    ] = None,
    segments: Annotated[
        str | None, typer.Option(metavar="K", help="Number of segments [default: 4, samples 3].")
    ] = None,
    seed: Annotated[str, typer.Option(metavar="NUMBER", help="Of the pairs and the answers.")] = "0",
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier dataset in that folder.")
    ] = False,
) -> None:
    """Write a dataset to try models on, of your BSDS500 folder or of scikit-image's pictures.

    \b
    Examples:
      vseg bench dataset --samples --out samples
      vseg bench dataset --bsds BSDS500/data --images 112082,118020 --out bsds
    """
    if (bsds is None) == (not samples):
        raise InvalidInput("Say what the dataset is made of: either --bsds FOLDER or --samples.")
    settings: dict[str, int] = {"seed": options.whole(seed, "--seed")}
    if grid is not None:
        settings["grid"] = options.whole(grid, "--grid", least=3)
    if segments is not None:
        settings["segments"] = options.whole(segments, "--segments", least=2)
    chosen = None if images is None else [name.strip() for name in images.split(",") if name.strip()]
    from vseg.data.dataset import TOP_LEVEL_NAMES, is_export

    ours = TOP_LEVEL_NAMES if is_export(out) else frozenset[str]()
    with new_folder(out, force=force, inputs=[] if bsds is None else [bsds], ours=ours) as folder:
        from vseg.evaluation import datasets

        if bsds is not None:
            made = datasets.from_bsds(bsds, folder, images=chosen, **settings)
        else:
            made = datasets.from_samples(folder, images=chosen or datasets.SAMPLES, **settings)
    typer.echo(f"{out}: {made}")
    typer.echo(f"Next: vseg models score {out} --models base_rate,logistic,kmeans --out scores")
