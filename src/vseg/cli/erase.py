"""`vseg erase`: delete a participant with all their data, or only the identities of participants."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from vseg._support.text import format_count
from vseg.cli import options
from vseg.errors import InvalidInput

if TYPE_CHECKING:
    from vseg.store import Database
    from vseg.store.studies import StudyRow

UNCONFIRMED = "Nothing was deleted, since nobody confirmed it; use --yes to delete without confirmation."
WHO, IDENTITIES = "Which participant", "Instead of a participant"

ProlificOption = Annotated[
    str | None,
    typer.Option(
        "--prolific-id",
        "--code",
        metavar="ID",
        help="Prolific ID, or your code for the participant in vseg lab.",
        rich_help_panel=WHO,
    ),
]
LinkOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Personal link that was sent to the participant, or the part after link=.",
        rich_help_panel=WHO,
    ),
]
IdentitiesOption = Annotated[
    bool,
    typer.Option(
        "--identities",
        help="Delete only identities: Prolific IDs and used personal links; answers are kept.",
        rich_help_panel=IDENTITIES,
    ),
]
OlderOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="DAYS",
        help="With --identities: only of participants inactive for this many days.",
        rich_help_panel=IDENTITIES,
    ),
]
SweepOption = Annotated[
    bool,
    typer.Option(
        "--sweep",
        help="Only remove traces of deleted data from the database's files that could not be removed before.",
        rich_help_panel=IDENTITIES,
    ),
]


def erase(
    study: options.StudyArgument,
    participant: Annotated[
        str | None,
        typer.Argument(
            metavar="PARTICIPANT",
            help="Random name, such as p3f6kq2mzxa: see the dashboard, or the file names of an export.",
            show_default=False,
        ),
    ] = None,
    prolific_id: ProlificOption = None,
    link: LinkOption = None,
    identities: IdentitiesOption = False,
    older_than_days: OlderOption = None,
    sweep: SweepOption = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation; needed in scripts.")
    ] = False,
    db: options.DatabaseOption = options.DEFAULT_DATABASE,
) -> None:
    """Permanently delete a participant, or identities.

    All data of the participant are deleted from the database; a SQLite file is rewritten and its log emptied. Exports,
    backups and other copies made before are not changed. The server may run meanwhile. --identities keeps the
    identities of participants who are taking part (not finished, active within the last hour), prints their number,
    and exits with 1. The exit code is also 1 if traces are left for now, because the file is being read.

    \b
    Examples:
      vseg erase two-textures p3f6kq2mzxa
      vseg erase two-textures --prolific-id 5f2c9d1e8a7b6c5d4e3f2a1b --yes
      vseg erase two-textures --code 07 --db sqlite:///two-textures-lab.db
      vseg erase two-textures --link "https://lab.example.org/s/two-textures/?link=kT3…"
      vseg erase two-textures --identities --older-than-days 30
    """
    if older_than_days is not None and not identities:
        raise InvalidInput("--older-than-days goes with --identities; leave it out to erase a participant.")
    if "" in (participant, prolific_id, link):
        raise InvalidInput("The name of the participant is empty; name the participant to erase.")
    names = [name is not None for name in (participant, prolific_id, link)]
    if [*names, identities, sweep].count(True) != 1:
        raise InvalidInput(
            "Name one PARTICIPANT, or give --prolific-id (or --code), --link, --identities or --sweep: one of the five."
        )

    from vseg import store

    with store.open(db, must_exist=True) as database:
        row = store.studies.get_study(database, options.read_study_name(study))
        if sweep:
            typer.echo(store.vacuum.remove_traces(database))
            typer.echo(store.vacuum.OUT_OF_REACH)
            is_complete = True
        elif identities:
            is_complete = _forget_identities(database, row, older_than_days or 0, yes)
        else:
            _erase_participant(database, row, _find_name(database, row, participant, prolific_id, link), yes)
            is_complete = True
        is_complete = is_complete and not store.vacuum.is_due(database)
    if not is_complete:
        raise typer.Exit(1)


def _find_name(
    database: "Database", row: "StudyRow", participant: str | None, prolific_id: str | None, link: str | None
) -> str:
    """Return the random name of an existing participant."""
    from vseg.store import sessions

    if prolific_id is not None:
        return sessions.find_by_prolific_id(database, row, prolific_id)
    if link is not None:
        return sessions.find_by_link(database, row, link)
    assert participant is not None
    sessions.check_participant(database, row, participant)
    return participant


def _confirm(question: str, yes: bool) -> None:
    if yes:
        return
    if sys.stdin is None:  # closed, as in `vseg erase … <&-`
        raise InvalidInput(UNCONFIRMED)
    try:
        is_confirmed = typer.confirm(question)
    except typer.Abort:
        typer.echo()  # end the line of the question
        raise InvalidInput(UNCONFIRMED) from None
    if not is_confirmed:
        typer.echo("Nothing was deleted.")
        raise typer.Exit(1)


def _erase_participant(database: "Database", row: "StudyRow", name: str, yes: bool) -> None:
    from vseg import store

    _confirm(f"Permanently delete {name} and all their data from {row.name}?", yes)
    erased = vars(store.sessions.erase(database, row, name))
    counts = [f"{table} {count}" for table, count in erased.items() if table != "traces" and count]
    typer.echo(f"Erased {name}. Rows deleted: {', '.join(counts)}.")
    typer.echo(erased["traces"])
    typer.echo(store.vacuum.OUT_OF_REACH)


def _forget_identities(database: "Database", row: "StudyRow", days: int, yes: bool) -> bool:
    """Return whether the identities of all participants concerned were deleted."""
    from vseg import store

    inactive = f" inactive for {format_count(days, 'day')}" if days else ""
    _confirm(
        f"Permanently delete the identities of participants of {row.name}{inactive}? Answers are kept.", yes
    )
    forgotten = store.sessions.forget_identities(database, row, days=days)
    if forgotten.identities or forgotten.links:
        typer.echo(f"Rows deleted: identities {forgotten.identities}, links {forgotten.links}.")
        typer.echo(forgotten.traces)
        typer.echo(store.vacuum.OUT_OF_REACH)
    else:
        typer.echo("There were no identities to delete.")
    if forgotten.kept:
        typer.echo(
            f"Kept the identities of {format_count(forgotten.kept, 'participant')} still taking part (not finished, "
            "active within the last hour); run the command again later."
        )
    return not forgotten.kept
