"""`vseg backup` and `vseg restore`: write a database to a file, and create a database from such a file."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from vseg.cli import options
from vseg.cli.output import progress_bar


def backup(
    out: Annotated[Path, typer.Option(metavar="FILE", help="New file to write.", show_default=False)],
    db: options.DatabaseOption = options.DEFAULT_DATABASE,
) -> None:
    """Back up the whole database to one file.

    The server can run meanwhile: the backup has every answer that was acknowledged before it began. The file is checked
    before it gets its name, and only you can read it. It is a SQLite database, also for PostgreSQL, so that vseg
    export --db sqlite:///FILE reads it. It contains participants' Prolific IDs and the hashes of passwords and tokens;
    keep it as safe as the database.

    \b
    Examples:
      vseg backup --out vseg-monday.db
      vseg backup --db postgresql://vseg@localhost/vseg --out /safe/vseg-monday.db
    """
    from vseg import store

    with store.open(db, must_exist=True, update_schema=False) as database:
        bar = partial(progress_bar, "Writing the backup", fits=False)
        copied = store.backup.back_up(database, out, progress=bar)
    typer.echo(f"{out}: {copied}. The file was checked and is complete.")


def restore(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File written by vseg backup.", show_default=False)
    ],
    db: options.DatabaseOption = options.DEFAULT_DATABASE,
) -> None:
    """Create a new database from a backup.

    --db is a SQLite file that does not exist yet or a PostgreSQL database without data, whatever the backup was taken
    from; nothing is overwritten. Researchers have to log in again. vseg serve --db URL then continues the studies; it
    does not need their files.

    \b
    Examples:
      vseg restore vseg-monday.db --db sqlite:///vseg.db
      vseg restore vseg-monday.db --db postgresql://vseg@localhost/empty
    """
    from vseg import store

    bar = partial(progress_bar, "Restoring", fits=False)
    copied = store.backup.restore(file, db, progress=bar)
    place = store.database.describe_url(store.database.parse_url(db))
    typer.echo(f"Restored {file} into {place}: {copied}. Logins and one-time links were not restored.")
    typer.echo(
        "The database is as it was at the time of the backup: erase again the participants who withdrew or were erased "
        "since, and repeat later changes of passwords and revocations of tokens and links."
    )
