"""`vseg backup` and `vseg restore`: a database as one file, and such a file as a database again."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from vseg.cli.output import progress_bar
from vseg.cli.serve import DEFAULT_DATABASE, DatabaseOption


def backup(
    out: Annotated[Path, typer.Option(metavar="FILE", help="New file to write.", show_default=False)],
    db: DatabaseOption = DEFAULT_DATABASE,
) -> None:
    """Write the whole database, all its studies, into one file, while the server goes on.

    It holds one instant: every answer acknowledged before is in it. The file is checked before it has its name,
    readable by you alone, and a SQLite database, also of PostgreSQL: vseg export --db sqlite:///FILE reads it. It
    says who people are on Prolific, and has the hashes of passwords and tokens; keep it as safe as the database.

    \b
    Examples:
      vseg backup --out vseg-monday.db
      vseg backup --db postgresql://vseg@localhost/vseg --out /safe/vseg-monday.db
    """
    from vseg import store

    with store.open(db, must_exist=True, update_schema=False) as database:
        bar = partial(progress_bar, "Writing the backup", fits=False)
        copied = store.backup.back_up(database, out, progress=bar)
    typer.echo(f"{out}: {copied}. Checked: it is whole.")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What vseg backup wrote.", show_default=False)],
    db: DatabaseOption = DEFAULT_DATABASE,
) -> None:
    """Make a new database out of FILE; nothing that exists is overwritten.

    --db names a SQLite file that is not there, or a PostgreSQL database without data, of whichever kind the backup
    was taken. Researchers have to log in again. vseg serve --db URL then goes on with its studies, without their files.

    \b
    Examples:
      vseg restore vseg-monday.db --db sqlite:///vseg.db
      vseg restore vseg-monday.db --db postgresql://vseg@localhost/empty
    """
    from vseg import store

    bar = partial(progress_bar, "Restoring", fits=False)
    copied = store.backup.restore(file, db, progress=bar)
    place = store.database.describe_url(store.database.parse_url(db))
    typer.echo(f"Restored {file} into {place}: {copied}. Logins and one-time links were left out.")
    typer.echo(
        "Whoever withdrew or was erased since the backup is in it again, and passwords changed and tokens and links "
        "revoked since are good again: erase, change and revoke them once more."
    )
