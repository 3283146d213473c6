"""`vseg import` and `vseg import-jspsych`: convert data of other software to the form of an export."""

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
DESCRIPTION = """
    Writes a folder like that of vseg export, which vseg fit and vseg.load read. FILES are data of jsPsych (JSON of any
    of its shapes, one document per line, or CSV), CSV tables with one row per trial, JATOS result archives (.jrzip,
    .zip), or folders of these; the type is recognised from the content.

    --map names the column of a value that is not recognised by itself: --map TARGET=COLUMN; a nested value as
    --map x1=dots[0].x; an answer with the values that mean yes as --map same=response:f,yes; one value for all rows
    as --map image=:cat. Targets: participant, session, image, image_width, image_height, block, trial; the dots
    x1 y1 x2 y2 (from the top left of the image) or their locations i j; same, different, rt_ms (if in seconds:
    rt_ms=rt:s), practice, catch, correct; and only, which selects the rows to use. Rows without dots or without an
    answer are skipped and counted. The command prints what it guessed.

    With --grid each dot is assigned to the nearest location, and the largest distance is printed; without it, the
    distinct positions of the dots are the locations.
"""
HELP = "Import the data of a same/different task.\n" + DESCRIPTION + EXAMPLES.format(command="import")
HELP_JSPSYCH = "The same as vseg import.\n" + DESCRIPTION + EXAMPLES.format(command="import-jspsych")
LOCATIONS, STUDY = "Locations and images", "Study"


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="Files, folders or archives.", show_default=False),
    ],
    out: options.OutOption,
    columns: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="TARGET=COLUMN", help="Column of a value; may be repeated."),
    ] = None,
    grid: Annotated[
        int | None,
        typer.Option(
            min=3, metavar="N", help="Locations along a side of the grid.", rich_help_panel=LOCATIONS
        ),
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The locations: x,y on each line, as fractions of the image.",
            rich_help_panel=LOCATIONS,
        ),
    ] = None,
    image_size: Annotated[
        str | None,
        typer.Option(
            metavar="WxH",
            help="Size of the image in the pixels of the dots' coordinates.",
            rich_help_panel=LOCATIONS,
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The pictures that were shown; their sizes are read, and they are copied.",
            rich_help_panel=LOCATIONS,
        ),
    ] = None,
    units: Annotated[
        Literal["px", "fraction"] | None,
        typer.Option(
            help="Unit of the dots' coordinates [default: fraction if all are from 0 to 1, else px].",
            rich_help_panel=LOCATIONS,
        ),
    ] = None,
    count_from: Annotated[
        int,
        typer.Option(
            min=0,
            max=1,
            metavar="NUMBER",
            help="Number of the first location, 0 or 1.",
            rich_help_panel=LOCATIONS,
        ),
    ] = 0,
    segments: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="K",
            help="Number of segments that participants were asked to see, if any.",
            rich_help_panel=STUDY,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Name of the study [default: from the folder's name].", rich_help_panel=STUDY
        ),
    ] = None,
    identities: Annotated[
        bool,
        typer.Option(
            "--identities",
            help="Also write the original names of participants, to identities.csv.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace an earlier import in that folder.", rich_help_panel=options.OUTPUT
        ),
    ] = False,
) -> None:
    """Import files; the help texts are HELP and HELP_JSPSYCH."""
    from vseg.data import dataset

    ours = dataset.TOP_LEVEL_NAMES if dataset.is_export(out) else frozenset[str]()
    inputs = [*files, *(path for path in (points, images) if path is not None)]
    with new_folder(out, force=force, inputs=inputs, ours=ours) as folder:
        from vseg.data import importers

        size = None if image_size is None else _parse_size(image_size)
        bar = partial(progress_bar, fits=False)
        imported = importers.import_trials(
            files, columns=columns or [], layout=_make_layout(grid, points, size), image_size=size, images=images,
            units=units, count_from=count_from, progress=bar,
        )  # fmt: skip
        study_name = _make_study_name(out.name) if name is None else name
        importers.write_dataset(
            imported, folder, name=study_name, segments=segments, identities=identities, progress=bar
        )
    for remark in imported.remarks:
        typer.echo(remark)
    if imported.skipped.reasons:
        typer.echo(imported.skipped)
    typer.echo(f"{out}: {imported}")
    if any(imported.columns["used"]):
        typer.echo(f"Next: vseg fit {out} --out fit")


def _parse_size(text: str) -> tuple[float, float]:
    match = re.fullmatch(r"([1-9][0-9]{0,5})[x×X*]([1-9][0-9]{0,5})", text.strip())
    if not match:
        raise InvalidInput(f"--image-size: expected WIDTHxHEIGHT in pixels, such as 512x512, got {text!r}.")
    return float(match[1]), float(match[2])


def _make_layout(grid: int | None, points: Path | None, size: tuple[float, float] | None) -> "Layout | None":
    if grid is not None and points is not None:
        raise InvalidInput("--grid and --points both define the locations; give one of them.")
    if grid is not None:
        from vseg.data.layout import Grid

        return Grid(grid)
    if points is not None:
        from vseg.data.importers import read_points

        return read_points(points, size)
    return None


def _make_study_name(folder_name: str) -> str:
    """Return a valid name of a study that is similar to the name of a folder."""
    return re.sub(r"[^a-z0-9]+", "-", folder_name.lower()).strip("-")[:63].strip("-") or "imported"
