"""`vseg links`: personal links, each for one person."""

from typing import Annotated

import typer

from vseg.cli import options
from vseg.cli.serve import DEFAULT_DATABASE, DatabaseOption
from vseg.errors import InvalidInput


def links(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="The study's name, or its file.", show_default=False)
    ],
    count: Annotated[str | None, typer.Option(metavar="NUMBER", help="How many links. [default: 1]")] = None,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Make no links, but revoke all that nobody has used.")
    ] = False,
    db: DatabaseOption = DEFAULT_DATABASE,
    url: Annotated[
        str, typer.Option(metavar="URL", help="The server's address as participants reach it.")
    ] = "http://127.0.0.1:8000",
) -> None:
    """Print new personal links to STUDY, one a line; each is for one person and is not shown again.

    They begin with --url, the address under which participants reach your server. If they came into the wrong hands,
    --revoke revokes all that nobody has begun with; whoever has begun goes on.

    \b
    Examples:
      vseg links two-textures --count 20 --url https://lab.example.org/vseg
      vseg links two-textures --revoke
    """
    number = options.whole("1" if count is None else count, "--count", 1)
    if revoke and count is not None:
        raise InvalidInput("--revoke makes no links, so it goes without --count; leave one of them out.")
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"--url is an address such as https://lab.example.org/vseg, got {url!r}.")

    from vseg import store

    with store.open(db, must_exist=True) as database:
        row = store.studies.get_study(database, options.study_name(study))
        if revoke:
            typer.echo(f"Links revoked that nobody had used: {store.sessions.revoke_links(database, row)}.")
            return
        for token in store.sessions.create_links(database, row, number):
            typer.echo(f"{url.rstrip('/')}/s/{row.name}/?link={token}")
