"""`vseg groups`: the mean entropies of two groups of participants."""

from pathlib import Path
from typing import Annotated

import typer

from vseg.cli.output import new_folder


def groups(
    first: Annotated[
        Path,
        typer.Argument(
            metavar="FIRST",
            help="Folder of the first group, written by vseg fit --by participant.",
        ),
    ],
    second: Annotated[
        Path | None,
        typer.Argument(
            metavar="SECOND",
            help="Folder of the second group, written in the same way; leave it out if --table gives the groups.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="If FIRST contains both groups: a CSV table with the columns participant and group.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="New folder to write.", rich_help_panel="Output")
    ] = Path("groups"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace the folder if it exists.", rich_help_panel="Output")
    ] = False,
) -> None:
    """Compare the mean entropies of two groups.

    The groups are different participants, or the same participants with two images.

    Participants whose entropy is less certain have less weight; participants in both groups are compared with
    themselves. Prints the difference in nats, second minus first, with its 95 % interval; if participants have
    different numbers of segments K, also that of the entropies as shares of log K. Writes comparison.json (the
    difference, and how both groups were fitted), entropies.csv, and entropies.png, which shows every participant with
    their interval.

    Fits by the penalised estimator (the paper's) have no such uncertainty: they are compared by Welch's t test, with
    Cohen's d. Both fits must be of one method.

    \b
    Examples:
      vseg groups fit-low fit-high --out low-high
      vseg groups fit --table groups.csv --out patients
      vseg fit low.csv --grid 11 --segments 2 --by participant --smoothness 0 --out paper-low
      vseg groups paper-low paper-high --out paper
    """
    from vseg.workflows.compare_groups import FILES, compare_groups

    comparison = compare_groups(first, second, groups=table)
    with new_folder(out, force=force, inputs=[first, *([second] if second else [])], ours=FILES) as folder:
        comparison.save(folder)
    typer.echo(comparison)
    typer.echo(f"{out}: {', '.join(FILES)}.")
