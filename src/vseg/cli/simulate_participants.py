"""`vseg simulate-participants`: simulated participants who take a running study."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from vseg._support import user_code
from vseg._support.text import format_count
from vseg.cli import options
from vseg.cli.output import counting_bar
from vseg.errors import MissingExtra, VsegWarning

PERCEPTION, TIMING = "What they see and answer", "Number and speed"


def simulate_participants(
    url: Annotated[str, typer.Argument(metavar="URL", help="The participants' address.", show_default=False)],
    count: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="Number of participants.", rich_help_panel=TIMING)
    ] = 15,
    observer: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="How they answer: ideal, lapsing:RATE or random.", rich_help_panel=PERCEPTION
        ),
    ] = "lapsing:0.05",
    truth: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Maps they see: an .npz file, a folder with IMAGE.npz, or a study file for the true maps of the "
            "images that vseg generates [default: made from each picture's colours].",
            rich_help_panel=PERCEPTION,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py[:NAME]",
            help="Your function that segments the images for them: image -> labels (H, W) or probabilities (H, W, K).",
            rich_help_panel=PERCEPTION,
        ),
    ] = None,
    segments: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="K",
            help="Number of segments they see in a picture [default: that of the study].",
            rich_help_panel=PERCEPTION,
        ),
    ] = None,
    flagged: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.5,
            metavar="SHARE",
            help="Share of trials reported as not shown right.",
            rich_help_panel=PERCEPTION,
        ),
    ] = 0.02,
    pace: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="0: without waiting; 1: as slowly as people.",
            rich_help_panel=TIMING,
        ),
    ] = 0,
    at_once: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="NUMBER",
            help="Maximum number of participants at the same time.",
            rich_help_panel=TIMING,
        ),
    ] = 16,
    seed: options.SeedOption = 0,
) -> None:
    """Let simulated participants take a running study.

    They use the study at URL over HTTP, as a browser does. They answer by the colours of the pictures, with realistic
    reaction times. Grey textures have no colours: with --truth STUDY.toml they answer by the true maps of generated
    images. If the study asks for contours, they draw the borders of what they see. Their sessions are stored like those
    of people, so use a separate database. A personal link, or an address with Prolific's parameters, is for one
    participant: use --count 1.

    \b
    Examples:
      vseg simulate-participants http://127.0.0.1:8000/s/two-textures/ --count 15
      vseg simulate-participants http://127.0.0.1:8000/s/two-textures/ --truth two-textures.toml
      vseg simulate-participants http://127.0.0.1:8000/s/two-textures/ --observer ideal --truth my-data/study/truth
      vseg simulate-participants http://127.0.0.1:8000/s/two-textures/ --model mine.py:segment
    """
    try:
        from vseg import bots
    except ModuleNotFoundError as error:
        raise MissingExtra('Simulated participants need httpx: pip install "vseg[server]".') from error

    function = None if model is None else user_code.load_function(model)
    answering = bots.parse_observer(observer)
    maps = None if truth is None else bots.load_true_maps(truth)
    borders = None if truth is None else bots.load_borders(truth)
    # Answers are counted too, since one participant may take long.
    bar = counting_bar("Taking part", count, "participants, {:,} answers")
    with _report_interruption(), bar as (advance, add_answers):
        summary = bots.run_bots(
            url, count=count, observer=answering, truth=maps, segments=segments, model=function, borders=borders,
            flagged=flagged, pace=pace, at_once=at_once, seed=seed, progress=advance, on_stored=add_answers,
        )  # fmt: skip
    if summary.refused:
        warnings.warn(
            f"{format_count(summary.refused, 'participant')} could not take part: {summary.reason}",
            VsegWarning,
            stacklevel=1,
        )
    typer.echo(str(summary))


@contextmanager
def _report_interruption() -> Iterator[None]:
    """Print on Ctrl+C how far the participants came."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        print(f"\nInterrupted. {interruption}".rstrip(), file=sys.stderr)
        raise
