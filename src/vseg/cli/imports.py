"""`vseg import` and `vseg import-jspsych`: data from elsewhere, in the form of an export."""

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vseg.cli import options
from vseg.cli.output import new_folder, progress_bar
from vseg.errors import InvalidInput

if TYPE_CHECKING:
    from vseg.data.layout import Layout

EXAMPLES = """
    \b
    Examples:
      vseg {command} data.json --map same=response:f --map image=stimulus --grid 16 --image-size 512x512
        --out imported
      vseg {command} jatos_results.jrzip --map same=response:0 --map x1=dots[0].x --map y1=dots[0].y
        --map x2=dots[1].x --map y2=dots[1].y --images pictures --out imported
      vseg {command} trials.csv --grid 16 --image-size 512x512 --out imported
"""
ABOUT = """Read FILES of one's own same/different experiment into a folder as vseg export writes it.

    FILES are jsPsych's data (JSON of any of its shapes, one document a line, or CSV), CSV tables with a row
    a trial, JATOS result archives (.jrzip, .zip), or folders of these; which it is shows in each file. vseg
    fit and vseg.load take the new folder as it is.

    --map says which column holds what, where it is not found by itself: --map TARGET=COLUMN, deeper down
    --map x1=dots[0].x, an answer with the values that mean yes --map same=response:f,yes, one value for all
    rows --map image=:cat. Targets: participant, session, image, image_width, image_height, block, trial, the
    dots x1 y1 x2 y2 (from the image's top left) or their locations i j, same, different, rt_ms (in seconds:
    rt_ms=rt:s), practice, catch, correct, and only, the rows to take at all. Rows without dots or without
    an answer are left out and counted. Whatever is guessed is said.

    With --grid the dots go to the nearest location, and the largest distance is said; without it, the
    distinct positions of the dots are the locations.
"""
HELP = ABOUT + EXAMPLES.format(command="import")
HELP_JSPSYCH = ABOUT + EXAMPLES.format(command="import-jspsych")


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="Files, folders or archives.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder to write.", show_default=False)],
    maps: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="TARGET=COLUMN", help="Which column holds what; may be repeated."),
    ] = None,
    grid: Annotated[str | None, typer.Option(metavar="N", help="Locations along a side of the grid.")] = None,
    points: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The locations, x,y on each line, as fractions of the image."),
    ] = None,
    image_size: Annotated[
        str | None, typer.Option(metavar="WxH", help="The image's size in the pixels of the dots.")
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="The pictures that were shown, to go along; their sizes are read."
        ),
    ] = None,
    units: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the dots: px or fraction [default: as they look].")
    ] = None,
    count_from: Annotated[
        str, typer.Option(metavar="NUMBER", help="The number of the first location, 0 or 1.")
    ] = "0",
    segments: Annotated[
        str | None,
        typer.Option(metavar="K", help="How many segments people were asked to see, if it was said."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the study [default: after the folder].")
    ] = None,
    identities: Annotated[
        bool,
        typer.Option("--identities", help="Say who the participants are elsewhere, in identities.csv."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier import in that folder.")] = False,
) -> None:
    """Parse, call, print; the words of --help are HELP and HELP_JSPSYCH."""
    from vseg.data import dataset

    ours = dataset.TOP_LEVEL_NAMES if dataset.is_export(out) else frozenset[str]()
    count = None if segments is None else options.whole(segments, "--segments", least=2)
    inputs = [*files, *(path for path in (points, images) if path is not None)]
    with new_folder(out, force=force, inputs=inputs, ours=ours) as folder:
        from vseg.data import importers

        size = None if image_size is None else _size(image_size)
        bar = partial(progress_bar, fits=False)
        found = importers.import_trials(
            files,
            columns=maps or [],
            layout=_layout(grid, points, size),
            image_size=size,
            images=images,
            units=None if units is None else options.choice(units, "--units", ["px", "fraction"]),
            count_from=int(options.choice(count_from, "--count-from", ["0", "1"])),
            progress=bar,
        )
        called = _slug(out.name) if name is None else name
        importers.write_dataset(found, folder, name=called, segments=count, identities=identities, progress=bar)
    for remark in found.remarks:
        typer.echo(remark)
    if found.skipped.reasons:
        typer.echo(found.skipped)
    typer.echo(f"{out}: {found}")
    if any(found.columns["used"]):
        typer.echo(f"Next: vseg fit {out}{'' if count else ' --segments 2..6'} --out fit")


def _size(text: str) -> tuple[float, float]:
    found = re.fullmatch(r"([1-9][0-9]{0,5})[x×X*]([1-9][0-9]{0,5})", text.strip())
    if not found:
        raise InvalidInput(f"--image-size is WIDTHxHEIGHT in pixels such as 512x512, got {text!r}.")
    return float(found[1]), float(found[2])


def _layout(grid: str | None, points: Path | None, size: tuple[float, float] | None) -> "Layout | None":
    if grid is not None and points is not None:
        raise InvalidInput("--grid and --points both say where the locations are; give one of them.")
    if grid is not None:
        from vseg.data.layout import Grid

        return Grid(options.whole(grid, "--grid", least=3))
    if points is not None:
        from vseg.data.importers import read_points

        return read_points(points, size)
    return None


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:63].strip("-") or "imported"
