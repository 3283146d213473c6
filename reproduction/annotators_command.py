"""`python -m reproduction annotators`: BSDS500's annotators as observers, and how few trials each method needs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vseg._support.text import format_count
from vseg.cli import options
from vseg.cli.output import progress_bar, report_interruption
from vseg.errors import Conflict

if TYPE_CHECKING:
    from reproduction.annotators import Comparison

WRITTEN = ("errors.csv", "summary.json", "table.csv", "table.txt", "trials.png")
KEPT = "kept"


def annotators(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Your copy of BSDS500: .jpg and .mat files, at any depth."),
    ],
    images: Annotated[
        str | None,
        typer.Option(metavar="COUNT", help="Photographs, spread over the folder [default: all]."),
    ] = None,
    grid: Annotated[str, typer.Option(metavar="N", help="Locations along a side.")] = "16",
    trials: Annotated[
        str,
        typer.Option(
            metavar="COUNTS", help="Numbers of trials; the paper's settings set the goal at the last."
        ),
    ] = "32,64,96,128,192,256,512,1024",
    observers: Annotated[
        str, typer.Option(metavar="NAMES", help="aggregate, individual, or both with a comma.")
    ] = "aggregate,individual",
    executor: options.Executor = "processes",
    seed: Annotated[str, typer.Option(metavar="NUMBER", help="Of pairs and answers.")] = "0",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write, or to go on in.")] = Path(
        "annotators"
    ),
) -> None:
    """Ask BSDS500's annotators: how many trials does each method need to know what they would say?

    An answer is 'same' where both locations have one label in a randomly drawn annotator (aggregate), or in one
    annotator who lapses at 5 % of the trials (individual). So P(same) of every pair is known, and the error is
    mean |estimate - P(same)| over all pairs. The group prior of an individual rests on other annotators'
    answers, which are not counted. Writes errors.csv (a row a photograph), table.csv, table.txt,
    summary.json and trials.png. A run that was cut goes on where it stopped.

    \b
    Examples:
      python -m reproduction annotators BSDS500/data --images 20 --out annotators
      python -m reproduction annotators BSDS500/data --images 4 --observers individual --trials 64,128,256,1024
    """
    count = None if images is None else options.whole(images, "--images", least=1)
    size, own_seed = options.whole(grid, "--grid", least=4), options.whole(seed, "--seed")
    counts, names = options.wholes(trials, "--trials"), [name.strip() for name in observers.split(",")]
    _check_free(out)
    from reproduction.annotators import run
    from vseg.sweeps import open_workers

    total = run.steps(folder, count, names)
    with (
        report_interruption(out),
        open_workers(executor) as place,
        progress_bar("Asking annotators", total) as advance,
    ):
        found = run.study(
            folder,
            images=count,
            grid=size,
            trials=counts,
            observers=names,
            executor=place,
            kept=out / KEPT,
            progress=advance,
            seed=own_seed,
        )
    _write(found, out)
    typer.echo(str(found))
    typer.echo(f"\n{out}: {format_count(len(found.images), 'photograph')}; {', '.join(WRITTEN)}.")


def _check_free(out: Path) -> None:
    """A folder of ours or none yet."""
    if not out.exists():
        return
    if not out.is_dir():
        raise Conflict(f"{out} is a file; expected a folder for the results, or none yet.")
    if any(out.iterdir()) and not (out / KEPT).is_dir():
        raise Conflict(f"{out} holds other files; choose another --out.")


def _write(found: "Comparison", out: Path) -> None:
    from reproduction.annotators.figure import annotators

    found.save(out)
    annotators(found).savefig(out / "trials.png")
