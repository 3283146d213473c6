"""`python -m reproduction paper`: which figures there are, and regenerating them."""

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
    from reproduction.paper.running import Outcome

HELP = """Regenerate the paper's results, with its algorithm and ours.

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
    for name, said in FIGURES.items():
        typer.echo(f"{name:<{width}}  {said}")
    typer.echo("\nNext: python -m reproduction paper run all --quick")


@paper.command()
def run(
    figure: Annotated[
        list[str],
        typer.Argument(metavar="FIGURE", help="Names from `paper list`, or all."),
    ],
    resamples: Annotated[
        str | None,
        typer.Option(metavar="COUNT", help="How often pairs and answers are drawn [default: 1000]."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="20 resamples instead: a few minutes for all.")
    ] = False,
    executor: options.Executor = "processes",
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Your copy of BSDS500: its annotators join the natural images."),
    ] = None,
    seed: Annotated[str, typer.Option(metavar="NUMBER", help="Of all that is drawn at random.")] = "0",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write, or to go on in.")] = Path(
        "paper"
    ),
) -> None:
    """Regenerate FIGURE, several, or all: numbers first, then the figure drawn from them, then one page.

    Writes OUT/FIGURE/trials.csv, claims.json, example.npz and figure.png, and OUT/index.html with the claims of all
    figures that are there. Figures that are finished are not run again; a run that was cut goes on where it stopped.

    \b
    Examples:
      python -m reproduction paper run all --quick --out paper
      python -m reproduction paper run blocks uncertainty --resamples 200
      python -m reproduction paper run natural --data BSDS500/data --executor dask://localhost:8786
    """
    if quick and resamples is not None:
        raise InvalidInput("--quick is 20 resamples; give either --quick or --resamples, not both.")
    own_seed = options.whole(seed, "--seed")
    from reproduction.paper import chosen, page, running

    count = running.QUICK if quick else running.RESAMPLES
    if resamples is not None:
        count = options.whole(resamples, "--resamples", least=1)
    names = chosen(figure)
    planned = running.planned(names, resamples=count, data=data)
    with report_interruption(out), _bar(names, planned) as (advance, told):
        found = running.run(
            names,
            resamples=count,
            executor=executor,
            out=out,
            seed=own_seed,
            data=data,
            progress=advance,
            told=told,
        )
    for one in found:
        if not one.fresh:
            typer.echo(f"{_said(one)} (finished before)")
    if spent := page.cost_in_words(page.finished(out, names)):
        typer.echo(spent)
    there = len(page.finished(out))
    typer.echo(f"{out}: {format_count(there, 'figure')} finished; see {out / 'index.html'}.")


def _said(one: "Outcome") -> str:
    from reproduction.paper.page import PROVISIONAL

    verdicts = [claim["verdict"] for claim in one.claims]
    parts = [f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)]
    few = f", from only {one.fewest} resamples" if one.fewest < PROVISIONAL else ""
    return f"{one.name}: {', '.join(parts)}{few}; {one.seconds:.0f} s"


@contextmanager
def _bar(
    names: list[str], seconds: float
) -> "Iterator[tuple[Callable[[float], None], Callable[[Outcome], None]]]":
    """A bar with the time left, and a line for each figure that is finished; only the lines without a terminal."""
    if not sys.stderr.isatty():
        yield (lambda done: None), (lambda one: typer.echo(_said(one)))
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
            (lambda one: bar.console.print(_said(one), markup=False)),
        )
