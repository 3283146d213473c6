"""`vseg export`: write the data of a study to a folder that other software can read."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from vseg.cli import options
from vseg.cli.output import new_folder, progress_bar


def export(
    study: options.StudyArgument,
    out: options.OutOption,
    db: options.DatabaseOption = options.DEFAULT_DATABASE,
    identities: Annotated[
        bool,
        typer.Option(
            "--identities",
            help="Also write the participants' Prolific IDs, to identities.csv.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace an earlier export in that folder.", rich_help_panel=options.OUTPUT
        ),
    ] = False,
) -> None:
    """Export the data of STUDY as a Psych-DS folder.

    The folder has a CSV file with every answer for each session, the same data as Parquet, descriptions of all columns
    in dataset_description.json, the study file, the images and the trials. vseg fit and vseg.load read the folder. The
    server can run meanwhile. Participants who withdrew are only counted.

    \b
    Examples:
      vseg export two-textures --out exported
      vseg export study.toml --db postgresql://vseg@localhost/vseg --out exported --force
    """
    from vseg.data import dataset

    ours = dataset.TOP_LEVEL_NAMES if dataset.is_export(out) else frozenset[str]()
    inputs = [path for path in (Path(study), *_find_database_file(db)) if path.is_file()]
    with new_folder(out, force=force, inputs=inputs, ours=ours) as folder:
        from vseg import store
        from vseg.export import write_dataset

        with store.open(db, must_exist=True) as database:
            row = store.studies.get_study(database, options.read_study_name(study))
            bar = partial(progress_bar, "Exporting sessions", fits=False)
            counts = write_dataset(database, row, folder, identities=identities, progress=bar)
    typer.echo(f"{out}: {counts}")
    if identities:
        typer.echo(
            f"{out / dataset.IDENTITIES} identifies participants: do not share it with the other files."
        )
    if counts.used:
        typer.echo(f"Next: vseg fit {out} --out fit")


def _find_database_file(db: str) -> list[Path]:
    """Return the file of a SQLite database, in a list; an empty list for other databases."""
    kind, _, path = db.partition(":///")
    return [Path(path)] if kind.startswith("sqlite") and path else []
