"""`python -m reproduction paper`: list and regenerate the paper's figures."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vseg._support.text import format_count
from vseg.cli import options
from vseg.cli.output import report_interruption
from vseg.errors import InvalidInput

if TYPE_CHECKING:
    from reproduction.paper.runner import FigureResult

HELP = """Regenerate the paper's results with its algorithm and with vseg.

\b
Examples:
  python -m reproduction paper list
  python -m reproduction paper run all --quick --out paper
"""
paper = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=HELP)


@paper.command("list")
def list_() -> None:
    """List the figures that can be regenerated.

    \b
    Example:
      python -m reproduction paper list
    """
    from reproduction.paper import FIGURES

    width = max(map(len, FIGURES))
    for name, title in FIGURES.items():
        typer.echo(f"{name:<{width}}  {title}")
    typer.echo("\nNext: python -m reproduction paper run all --quick")


@paper.command()
def run(
    figure: Annotated[
        list[str],
        typer.Argument(metavar="FIGURE", help="Names from `paper list`, numbers such as fig2 or s4, or all."),
    ],
    resamples: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="COUNT", help="Number of resamples of pairs and answers [default: 1000]."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run 20 resamples; all figures take a few minutes.")
    ] = False,
    executor: options.Executor = "processes",
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Your copy of BSDS500; its annotators become observers of natural images."
        ),
    ] = None,
    seed: options.SeedOption = 0,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Output folder; an interrupted run in it is resumed.")
    ] = Path("paper"),
) -> None:
    """Regenerate one or several figures, or all, and write a page with the paper's claims and verdicts.

    Writes OUT/FIGURE/trials.csv, claims.json, example.npz and figure.png, and OUT/index.html with the claims of all
    finished figures. Finished figures are not run again; an interrupted run is resumed.

    \b
    Examples:
      python -m reproduction paper run all --quick --out paper
      python -m reproduction paper run fig4 fig5 --resamples 200
      python -m reproduction paper run natural --data BSDS500/data --executor dask://localhost:8786
    """
    if quick and resamples is not None:
        raise InvalidInput("--quick means 20 resamples; give either --quick or --resamples, not both.")
    from reproduction.paper import page, runner, select_figures

    count = runner.QUICK_RESAMPLES if quick else runner.RESAMPLES
    if resamples is not None:
        count = resamples
    names = select_figures(figure)
    seconds = runner.estimate_seconds(names, resamples=count, data=data)
    with report_interruption(out), _progress_reporter(names, seconds) as (advance, report):
        results = runner.run(
            names,
            resamples=count,
            executor=executor,
            out=out,
            seed=seed,
            data=data,
            progress=advance,
            on_finished=report,
        )
    for result in results:
        if not result.fresh:
            typer.echo(f"{_describe_result(result)} (finished before)")
    if cost := page.describe_cost(page.load_finished(out, names)):
        typer.echo(cost)
    count = len(page.load_finished(out))
    typer.echo(f"{out}: {format_count(count, 'figure')} finished; see {out / 'index.html'}.")


@paper.command()
def publish(
    docs: Annotated[
        Path, typer.Argument(metavar="DOCS", help="Folder of the documentation, with a subfolder pictures.")
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Output folder of `paper run`.")] = Path(
        "paper"
    ),
) -> None:
    """Write the figures and claims of a run into the documentation: DOCS/claims.md and DOCS/pictures/paper-*.png.

    \b
    Example:
      python -m reproduction paper publish docs --out paper
    """
    from reproduction.paper import page

    written = page.write_docs(out, docs)
    typer.echo(f"{docs}: wrote {format_count(len(written) - 1, 'picture')} and {written[-1]}.")


def _describe_result(result: "FigureResult") -> str:
    from reproduction.paper.page import PROVISIONAL_RESAMPLES

    verdicts = [claim["verdict"] for claim in result.claims]
    parts = [f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)]
    few = f", from only {result.fewest} resamples" if result.fewest < PROVISIONAL_RESAMPLES else ""
    return f"{result.name}: {', '.join(parts)}{few}; {result.seconds:.0f} s"


@contextmanager
def _progress_reporter(
    names: list[str], seconds: float
) -> "Iterator[tuple[Callable[[float], None], Callable[[FigureResult], None]]]":
    """Show a progress bar (on a terminal only) and print a line for each finished figure.

    Yield a function that advances the bar by seconds, and a function that prints a result.
    """
    if not sys.stderr.isatty():
        yield (lambda done: None), (lambda result: typer.echo(_describe_result(result)))
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=300) as bar:
        task = bar.add_task(format_count(len(names), "figure"), total=seconds)
        yield (
            (lambda done: bar.advance(task, done)),
            (lambda result: bar.console.print(_describe_result(result), markup=False)),
        )
