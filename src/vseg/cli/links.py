"""`vseg links`: personal links, each for one participant."""

from typing import Annotated

import typer

from vseg.cli import options
from vseg.errors import InvalidInput


def links(
    study: options.StudyArgument,
    count: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Number of links [default: 1].")
    ] = None,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Revoke all unused links instead of creating new ones.")
    ] = False,
    url: Annotated[
        str, typer.Option(metavar="URL", help="Address under which participants reach the server.")
    ] = "http://127.0.0.1:8000",
    db: options.DatabaseOption = options.DEFAULT_DATABASE,
) -> None:
    """Create personal links to STUDY, or revoke them.

    Prints one link per line. Each is for one participant; it is not stored, so that it cannot be printed again. If
    links came into the wrong hands, --revoke revokes all that nobody has used; sessions that have begun continue.

    \b
    Examples:
      vseg links two-textures --count 20 --url https://lab.example.org/vseg
      vseg links two-textures --revoke
    """
    if revoke and count is not None:
        raise InvalidInput("--revoke creates no links; leave out either --revoke or --count.")
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"--url: expected an address such as https://lab.example.org/vseg, got {url!r}.")

    from vseg import store

    with store.open(db, must_exist=True) as database:
        row = store.studies.get_study(database, options.read_study_name(study))
        if revoke:
            typer.echo(f"Unused links revoked: {store.sessions.revoke_links(database, row)}.")
            return
        for token in store.sessions.create_links(database, row, count or 1):
            typer.echo(f"{url.rstrip('/')}/s/{row.name}/?link={token}")
