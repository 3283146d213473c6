"""`python -m reproduction annotators`: measure how many trials each method needs with BSDS500's annotators."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vseg._support.text import format_count
from vseg.cli import options
from vseg.cli.output import progress_bar, report_interruption
from vseg.errors import Conflict

if TYPE_CHECKING:
    from reproduction.annotators import StudyResult

OUTPUT_FILES = ("errors.csv", "summary.json", "table.csv", "table.txt", "trials.png")
CHECKPOINT_FOLDER = "checkpoints"

AnnotatorsFolder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Your copy of BSDS500: .jpg and .mat files, at any depth.")
]
ResumableOutput = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Output folder; an interrupted run in it is resumed.")
]


def annotators(
    folder: AnnotatorsFolder,
    images: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="COUNT",
            help="Number of photographs, spread evenly over the folder [default: all].",
        ),
    ] = None,
    grid: Annotated[int, typer.Option(min=4, metavar="N", help="Locations along a side.")] = 16,
    trials: Annotated[
        str,
        typer.Option(metavar="COUNTS", help="Numbers of trials; the last one sets the goal."),
    ] = "32,64,96,128,192,256,512,1024",
    observers: Annotated[
        str, typer.Option(metavar="NAMES", help="aggregate, individual, or both separated by a comma.")
    ] = "aggregate,individual",
    executor: options.Executor = "processes",
    seed: options.SeedOption = 0,
    out: ResumableOutput = Path("annotators"),
) -> None:
    """Measure how many trials each method needs to predict the answers of BSDS500's annotators.

    The answer to a pair is 'same' if both locations have the same label by a randomly drawn annotator (aggregate), or
    by one annotator who lapses on 5 % of the trials (individual). P(same) is therefore known for every pair, and the
    error of a method is the mean |estimate - P(same)| over all pairs. The group prior of an individual uses other
    annotators' answers, which do not count as trials. Writes errors.csv (a row per photograph), table.csv, table.txt,
    summary.json and trials.png. An interrupted run is resumed.

    \b
    Examples:
      python -m reproduction annotators BSDS500/data --images 20 --out annotators
      python -m reproduction annotators BSDS500/data --images 4 --observers individual --trials 64,128,256,1024
    """
    counts, names = (
        options.parse_whole_numbers(trials, "--trials"),
        [name.strip() for name in observers.split(",")],
    )
    check_output_folder(out)
    from reproduction.annotators import run
    from vseg.sweeps import open_workers

    total = run.count_steps(folder, images, names)
    with (
        report_interruption(out),
        open_workers(executor) as place,
        progress_bar("Simulating annotators", total) as advance,
    ):
        result = run.run_study(
            folder,
            images=images,
            grid=grid,
            trials=counts,
            observers=names,
            executor=place,
            checkpoint=out / CHECKPOINT_FOLDER,
            progress=advance,
            seed=seed,
        )
    _write_results(result, out)
    typer.echo(str(result))
    typer.echo(f"\n{out}: {format_count(len(result.images), 'photograph')}; {', '.join(OUTPUT_FILES)}.")


def check_output_folder(out: Path) -> None:
    """Raise Conflict unless the output folder is new, empty, or from an earlier run."""
    if not out.exists():
        return
    if not out.is_dir():
        raise Conflict(
            f"{out} is a file; expected a folder for the results, or a path that does not exist yet."
        )
    if any(out.iterdir()) and not (out / CHECKPOINT_FOLDER).is_dir():
        raise Conflict(f"{out} holds other files; choose another --out.")


def _write_results(result: "StudyResult", out: Path) -> None:
    from reproduction.annotators.figure import draw_errors

    result.save(out)
    draw_errors(result).savefig(out / "trials.png")
