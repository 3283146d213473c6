"""`vseg demo`: the whole job on simulated people, as a report to read."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from vseg.cli import options
from vseg.cli.output import new_folder, progress_bar, unused

DEFAULT = "vseg-demo"


def demo(
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help=f"New folder to write [default: {DEFAULT}, {DEFAULT}-2, …]."),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the report in a browser.")
    ] = True,
    seed: Annotated[str, typer.Option(metavar="NUMBER", help="Another seed, other people.")] = "0",
    force: Annotated[bool, typer.Option("--force", help="Replace the folder if it exists.")] = False,
) -> None:
    """Run two experiments on simulated people and write a report.

    Textures of low and high uncertainty, and a photograph whose number of segments is unknown: from the
    image to answers, maps and statistics, with the data beside the report. It takes well under a minute.

    \b
    Example:
      vseg demo --out vseg-demo --no-browser
    """
    number = options.whole(seed, "--seed")
    folder = out or unused(DEFAULT)
    with new_folder(folder, force=force) as new:
        from vseg import demo

        with progress_bar("Running two experiments", demo.steps()) as advance:
            name = demo.run(new, seed=number, progress=advance).name
    report = (folder / name).resolve()
    typer.echo(f"Report: {report}")
    if browser and _has_display():
        import webbrowser

        webbrowser.open(report.as_uri())


def _has_display() -> bool:
    """Without one, `webbrowser` may start a text browser in this very terminal."""
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
