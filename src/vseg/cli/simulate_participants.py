"""`vseg simulate-participants`: take a running study, as people would."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from vseg._support import user_code
from vseg._support.text import format_count
from vseg.cli import options
from vseg.cli.output import counting_bar
from vseg.errors import MissingExtra, VsegWarning


def simulate_participants(
    url: Annotated[str, typer.Argument(metavar="URL", help="The participants' address.", show_default=False)],
    count: Annotated[str, typer.Option(metavar="NUMBER", help="How many take part.")] = "15",
    observer: Annotated[
        str, typer.Option(metavar="NAME", help="Who answers: ideal, lapsing:RATE or random.")
    ] = "lapsing:0.05",
    truth: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Maps they see: .npz, a folder with IMAGE.npz, or a study file, for the true maps of the images that "
            "vseg generates [default: made from each picture's colours].",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py[:NAME]",
            help="A function of yours, image -> labels (H, W) or probabilities (H, W, K), that they see by.",
        ),
    ] = None,
    segments: Annotated[
        str | None,
        typer.Option(metavar="K", help="Segments they see in a picture [default: what the study asks for]."),
    ] = None,
    flagged: Annotated[
        str, typer.Option(metavar="SHARE", help="Share of trials reported as not shown right.")
    ] = "0.02",
    pace: Annotated[
        str, typer.Option(metavar="NUMBER", help="0: without waiting; 1: as slowly as people.")
    ] = "0",
    at_once: Annotated[str, typer.Option(metavar="NUMBER", help="Most of them at the same time.")] = "16",
    seed: Annotated[str, typer.Option(metavar="NUMBER", help="Another seed, other people.")] = "0",
) -> None:
    """Let simulated participants take the study at URL, over HTTP, as a browser does.

    They answer by the colours of the pictures, with reaction times like people's. Grey textures have none: with
    --truth STUDY.toml they answer by the true maps of generated images. Their sessions are stored like anyone's:
    try this on a database of its own. A personal link, or an address with Prolific's parameters, is one person's:
    --count 1.

    \b
    Examples:
      vseg simulate-participants http://127.0.0.1:8000/s/two-textures/ --count 15
      vseg simulate-participants http://127.0.0.1:8000/s/two-textures/ --truth two-textures.toml
      vseg simulate-participants http://127.0.0.1:8000/s/two-textures/ --observer ideal --truth my-data/study/truth
      vseg simulate-participants http://127.0.0.1:8000/s/two-textures/ --model mine.py:segment
    """
    people = options.whole(count, "--count", least=1)
    settings: dict[str, Any] = {
        "segments": None if segments is None else options.whole(segments, "--segments", least=2),
        "flagged": options.number(flagged, "--flagged", most=0.5),
        "pace": options.number(pace, "--pace"),
        "at_once": options.whole(at_once, "--at-once", least=1),
        "seed": options.whole(seed, "--seed"),
    }
    try:
        from vseg import bots
    except ModuleNotFoundError as error:
        raise MissingExtra('Simulated participants need httpx: pip install "vseg[server]".') from error

    settings["model"] = None if model is None else user_code.load_function(model)
    chosen, seen = bots.parse_observer(observer), None if truth is None else bots.load_true_maps(truth)
    # One person may take long, so that answers are counted, too.
    bar = counting_bar("Taking part", people, "participants, {:,} answers")
    with _told_when_cut(), bar as (advance, answer):
        summary = bots.simulate_participants(
            url,
            count=people,
            observer=chosen,
            truth=seen,
            progress=advance,
            on_stored=answer,
            **settings,
        )
    if summary.refused:
        warnings.warn(
            f"{format_count(summary.refused, 'participant')} could not take part: {summary.reason}",
            VsegWarning,
            stacklevel=1,
        )
    typer.echo(str(summary))


@contextmanager
def _told_when_cut() -> Iterator[None]:
    """Whoever cuts the work is told how far it was."""
    try:
        yield
    except KeyboardInterrupt as cut:
        print(f"\nCut. {cut}".rstrip(), file=sys.stderr)
        raise
