"""`vseg export`: what a study has collected, as a folder that others can read."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from vseg.cli import options
from vseg.cli.output import new_folder, progress_bar
from vseg.cli.serve import DEFAULT_DATABASE, DatabaseOption


def export(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="The study's name, or its file.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder to write.", show_default=False)],
    db: DatabaseOption = DEFAULT_DATABASE,
    identities: Annotated[
        bool,
        typer.Option("--identities", help="Say who the participants are on Prolific, in identities.csv."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export in that folder.")] = False,
) -> None:
    """Write all that STUDY has collected as a Psych-DS folder.

    A CSV file for each session with every answer, each column described in dataset_description.json; Parquet
    beside; the study file, images and trials. vseg fit and vseg.load take the folder as it is. It can be done
    while the study runs. Of those who withdrew there is nothing but their number.

    \b
    Examples:
      vseg export two-textures --out exported
      vseg export study.toml --db postgresql://vseg@localhost/vseg --out exported --force
    """
    from vseg.data import dataset

    ours = dataset.TOP_LEVEL_NAMES if dataset.is_export(out) else frozenset[str]()
    inputs = [path for path in (Path(study), *_file(db)) if path.is_file()]
    with new_folder(out, force=force, inputs=inputs, ours=ours) as folder:
        from vseg import export as exporting, store

        with store.open(db, must_exist=True) as database:
            row = store.studies.get_study(database, options.study_name(study))
            bar = partial(progress_bar, "Exporting sessions", fits=False)
            counts = exporting.write_dataset(database, row, folder, identities=identities, progress=bar)
    typer.echo(f"{out}: {counts}")
    if identities:
        typer.echo(f"{out / dataset.IDENTITIES} says who people are: keep it apart from what you share.")
    if counts.used:
        free = " --segments 2..6" if row.study.segments == "free" else ""
        typer.echo(f"Next: vseg fit {out}{free} --out fit")


def _file(db: str) -> list[Path]:
    kind, _, path = db.partition(":///")
    return [Path(path)] if kind.startswith("sqlite") and path else []
