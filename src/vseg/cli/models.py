"""`vseg models`: list the models, fit one, and score several on answers they have not seen."""

import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from vseg._support.text import format_count
from vseg.cli.output import new_folder, progress_bar, report_interruption
from vseg.errors import VsegWarning

HELP = """Fit models to answers, and score them.

\b
Examples:
  vseg models list
  vseg models score my-data --models base_rate,logistic,mixture --out scores
"""
models = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=HELP)

FIT_FILES = {"parameters.json", "maps", "maps.png", "calibration.png"}

DatasetArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATASET", help="A folder written by vseg export, vseg import or vseg bench dataset."
    ),
]
FeaturesOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Features of the image: rgb, lab, orientation, gabor, contrast; join several with + "
        "[default: each model's own].",
    ),
]
SegmentsOption = Annotated[
    int | None, typer.Option(min=2, metavar="K", help="Number of segments [default: that of the study].")
]
ByOption = Annotated[
    Literal["pairs", "blocks", "participants", "images"],
    typer.Option(help="What each fold holds out: whole pairs, blocks, participants or images."),
]
PerOption = Annotated[
    Literal["participant", "image", "all"],
    typer.Option(help="Fit the model once per participant, once per image, or once to all answers."),
]
FoldsOption = Annotated[int, typer.Option(min=2, metavar="COUNT", help="Number of folds.")]
SeedOption = Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Random seed.")]
WorkersOption = Annotated[
    int,
    typer.Option(
        min=1, metavar="COUNT", help="Number of fits at the same time; the results do not depend on it."
    ),
]
MinutesOption = Annotated[
    float,
    typer.Option(
        min=0.01,
        metavar="NUMBER",
        help="Time limit of one fit in minutes; applies to models from files, and to all with several workers.",
    ),
]
MemoryOption = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="MB",
        help="Memory limit of one fit in megabytes; applies to the same models as --minutes.",
    ),
]
ImageOption = Annotated[str | None, typer.Option(metavar="NAME", help="Only the answers about this image.")]
LeaderboardOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Leaderboard to add the models to; models from files then see each image alone, and no answers.",
        show_default=False,
    ),
]


@models.command("list")
def list_() -> None:
    """List the models of vseg, and the features they use.

    A model of your own is FILE.py, or FILE.py:NAME.

    \b
    Example:
      vseg models list
    """
    from vseg.features import FEATURES
    from vseg.models.catalogue import MODEL_DESCRIPTIONS

    width = max(map(len, MODEL_DESCRIPTIONS))
    for name, description in MODEL_DESCRIPTIONS.items():
        typer.echo(f"{name:<{width}}  {description}")
    typer.echo(f"\nFeatures: {', '.join(FEATURES)}; join several with +, as in lab+contrast.")
    typer.echo("A model of your own: FILE.py or FILE.py:NAME; see docs/modelling.md.")


@models.command()
def fit(
    dataset: DatasetArgument,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="A name from vseg models list, or FILE.py[:NAME].")
    ],
    features: FeaturesOption = None,
    per: PerOption = "participant",
    segments: SegmentsOption = None,
    image: ImageOption = None,
    seed: SeedOption = 0,
    workers: WorkersOption = 1,
    minutes: MinutesOption = 10,
    memory: MemoryOption = 4000,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder to write.")] = Path("model"),
    force: Annotated[bool, typer.Option("--force", help="Replace the folder if it exists.")] = False,
) -> None:
    """Fit one model to all answers of DATASET.

    Writes parameters.json, calibration.png and, for a model that predicts maps, maps/ (an .npz file for each fit and
    image) and maps.png, beside the maps reconstructed from the answers.

    The model variance (two segments, oriented energies) reports ω₁ - ω₂, which the answers identify, with its interval,
    and beside it σ₁² - σ₂² as the paper fits it, from two starts.

    \b
    Examples:
      vseg models fit my-data --model logistic --features lab --out colours
      vseg models fit my-data --model logistic --features lab+contrast --per all --out shared
    """
    from vseg.workflows.fit_model import fit_model

    with new_folder(out, force=force, inputs=[dataset], ours=FIT_FILES) as folder:
        result = fit_model(
            dataset, model, per=per, features=features, segments=segments, image=image, seed=seed, workers=workers,
            seconds=60 * minutes, memory_mb=memory, progress=partial(progress_bar, "Fitting"),
        )  # fmt: skip
        for group, reason in result.failures.items():
            warnings.warn(f"{group} is skipped: {reason}", VsegWarning, stacklevel=2)
        result.save(folder)
    typer.echo(f"{out}: {result.message}")


@models.command()
def score(
    dataset: DatasetArgument,
    models: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Names from vseg models list and your own FILE.py[:NAME], separated by commas.",
        ),
    ],
    folds: FoldsOption = 5,
    by: ByOption = "pairs",
    per: PerOption = "participant",
    features: FeaturesOption = None,
    segments: SegmentsOption = None,
    image: ImageOption = None,
    seed: SeedOption = 0,
    workers: WorkersOption = 1,
    minutes: MinutesOption = 10,
    memory: MemoryOption = 4000,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder to write; an unfinished run in it is resumed.")
    ] = Path("scores"),
    leaderboard: LeaderboardOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the results of an earlier run.")] = False,
) -> None:
    """Score models on answers of DATASET that they have not seen.

    Writes table.md, table.csv, scores.json, forest.png, calibration.png and maps.png, which shows the maps of each
    model and of the participants. A model that fails is reported, and the others are scored. Finished fits are stored:
    the same command resumes an interrupted run. A model from a file runs in a process of its own, which is ended if it
    reaches its limit of time or memory; this protects against accidents, not against malice: run only what you trust.

    \b
    Examples:
      vseg models score my-data --models base_rate,logistic,mixture,slic,mine.py --out scores
      vseg models score my-data --models logistic,mixture --by images --per all --folds 3 --workers 4
      vseg models score my-data --models slic,mine.py --per all --leaderboard leaderboard
    """
    names = [name.strip() for name in models.split(",") if name.strip()]
    from vseg.workflows.score_models import score_models

    with report_interruption(out):
        result = score_models(
            dataset, names, by=by, per=per, folds=folds, features=features, segments=segments, image=image, seed=seed,
            workers=workers, seconds=60 * minutes, memory_mb=memory, out=out, leaderboard=leaderboard, force=force,
            progress=partial(progress_bar, "Scoring"),
        )  # fmt: skip
    typer.echo(result.markdown())
    count = format_count(len(result.predictions), "model")
    typer.echo(f"{out}: {count} scored on {len(result.responses)} answers.")
    if leaderboard is not None:
        typer.echo(describe_leaderboard(leaderboard))


def describe_leaderboard(folder: Path) -> str:
    """Say how many entries a leaderboard has, and where its page is."""
    from vseg.evaluation.leaderboard import PAGE_FILE, Leaderboard

    return f"{folder}: {len(Leaderboard(folder).entries())} on the leaderboard; see {folder / PAGE_FILE}."
