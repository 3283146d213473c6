"""`vseg bench`: write a dataset to try models on, and score submissions on a leaderboard."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from vseg.cli.models import (
    ByOption,
    DatasetArgument,
    FoldsOption,
    SeedOption,
    SegmentsOption,
    describe_leaderboard,
)
from vseg.cli.output import new_folder, progress_bar
from vseg.errors import InvalidInput

HELP = """Score submissions on a leaderboard.

\b
Examples:
  vseg bench dataset --samples --out samples
  vseg bench run samples --model mine.py
"""
bench = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=HELP)


@bench.command()
def run(
    dataset: DatasetArgument,
    model: Annotated[
        list[str],
        typer.Option(
            metavar="FILE[:NAME]", help="A Python file or package with model(image); may be repeated."
        ),
    ],
    leaderboard: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder of leaderboard.json and index.html.")
    ] = Path("leaderboard"),
    seconds: Annotated[
        float,
        typer.Option(
            min=0.1, metavar="NUMBER", help="Time limit of a submission for all images, in seconds."
        ),
    ] = 600,
    memory: Annotated[
        int, typer.Option(min=1, metavar="MB", help="Memory limit of a submission in megabytes.")
    ] = 4000,
    by: ByOption = "pairs",
    folds: FoldsOption = 5,
    segments: SegmentsOption = None,
    seed: SeedOption = 0,
) -> None:
    """Score submissions and add them to a leaderboard.

    Short for vseg models score --per all --leaderboard FOLDER, without a folder of results. A submission runs in a
    process of its own, which is ended if it reaches its limit of time or memory; one that fails is reported, and the
    others are scored. This protects against accidents, not against malice: run only what you trust.

    model(image) gets uint8 (H, W, 3) and returns labels (H, W), probabilities (H, W, K) or vseg.Maps. Two lapse rates
    are fitted to the answers of the other folds, so that certain labels do not cost infinitely much; nothing else is
    fitted. The same command gives the same numbers.

    \b
    Examples:
      vseg bench run my-data --model mine.py
      vseg bench run my-data --model mine.py:by_colour --model theirs --seconds 60 --memory 2000
    """
    from vseg.workflows.score_models import score_models

    result = score_models(
        dataset, model, by=by, per="all", folds=folds, segments=segments, seed=seed, seconds=seconds,
        memory_mb=memory, leaderboard=leaderboard, progress=partial(progress_bar, "Scoring"),
    )  # fmt: skip
    rows = {row["model"]: row for row in result.table()}
    for model_name in result.predictions:
        row, took = rows[model_name], result.seconds.get(model_name)
        name = model_name.replace(".py", "")
        score = f"{row['bits']:.3f} bits per answer ({row['low']:.3f} to {row['high']:.3f})"
        typer.echo(f"{name}: {score}." if took is None else f"{name}: {score}, {took:.1f} s.")
    typer.echo(describe_leaderboard(leaderboard))


@bench.command()
def dataset(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder to write.", show_default=False)],
    bsds: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Your copy of BSDS500, whose annotators are the observers."),
    ] = None,
    samples: Annotated[
        bool, typer.Option("--samples", help="Sample images of scikit-image, with simulated observers.")
    ] = False,
    images: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Images, separated by commas [default: three].")
    ] = None,
    grid: Annotated[
        int | None, typer.Option(min=3, metavar="N", help="Locations along a side [default: 16, samples 12].")
    ] = None,
    segments: Annotated[
        int | None, typer.Option(min=2, metavar="K", help="Number of segments [default: 4, samples 3].")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, metavar="NUMBER", help="Seed of the pairs and the answers.")
    ] = 0,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier dataset in that folder.")
    ] = False,
) -> None:
    """Write a dataset to try models on.

    Its images are from your BSDS500 folder, or samples of scikit-image.

    \b
    Examples:
      vseg bench dataset --samples --out samples
      vseg bench dataset --bsds BSDS500/data --images 112082,118020 --out bsds
    """
    if (bsds is None) == (not samples):
        raise InvalidInput("Expected either --bsds FOLDER or --samples.")
    given = {"grid": grid, "segments": segments, "seed": seed}
    settings = {name: value for name, value in given.items() if value is not None}
    names = None if images is None else [name.strip() for name in images.split(",") if name.strip()]
    from vseg.data.dataset import TOP_LEVEL_NAMES, is_export

    ours = TOP_LEVEL_NAMES if is_export(out) else frozenset[str]()
    with new_folder(out, force=force, inputs=[] if bsds is None else [bsds], ours=ours) as folder:
        from vseg.evaluation import datasets

        if bsds is not None:
            summary = datasets.write_bsds_dataset(bsds, folder, images=names, **settings)
        else:
            summary = datasets.write_sample_dataset(folder, images=names or datasets.SAMPLES, **settings)
    typer.echo(f"{out}: {summary}")
    typer.echo(f"Next: vseg models score {out} --models base_rate,logistic,kmeans --out scores")
