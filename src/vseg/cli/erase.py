"""`vseg erase`: a participant with everything of theirs, or who the participants are."""

import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from vseg._support.text import format_count
from vseg.cli import options
from vseg.cli.serve import DEFAULT_DATABASE, DatabaseOption
from vseg.errors import InvalidInput

if TYPE_CHECKING:
    from vseg.store import Database
    from vseg.store.studies import StudyRow

UNANSWERED = "Nothing was deleted, since nobody said yes; pass --yes to delete without the question."

ProlificOption = Annotated[
    str | None,
    typer.Option(
        "--prolific-id",
        "--code",
        metavar="ID",
        help="By their Prolific ID, or your code for them in vseg lab.",
    ),
]
LinkOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="By the personal link they were sent, or the end of it behind link=."),
]
IdentitiesOption = Annotated[
    bool,
    typer.Option(
        "--identities", help="Only who people are: Prolific IDs and used personal links; answers stay."
    ),
]
SweepOption = Annotated[
    bool,
    typer.Option("--sweep", help="Only the traces in the database's files that could not be removed before."),
]
OlderOption = Annotated[
    str | None,
    typer.Option(metavar="DAYS", help="With --identities: of whom nothing was heard for so many days."),
]


def erase(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="The study's name, or its file.", show_default=False)
    ],
    participant: Annotated[
        str | None,
        typer.Argument(
            metavar="PARTICIPANT",
            help="Their random name, such as p3f6kq2mzxa: on the dashboard, and in the names of an export's files.",
            show_default=False,
        ),
    ] = None,
    prolific_id: ProlificOption = None,
    link: LinkOption = None,
    identities: IdentitiesOption = False,
    older_than_days: OlderOption = None,
    sweep: SweepOption = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first; needed in a script or cron.")] = False,
    db: DatabaseOption = DEFAULT_DATABASE,
) -> None:
    """Delete a participant of STUDY and everything of theirs, or who its participants are, for good.

    No trace stays in the database: a SQLite file is rewritten and its log emptied. Exports, backups and other copies
    made before are out of reach, and said to be. It can be done while the study runs: of those who are taking part
    (not finished, heard of within the last hour) --identities keeps who they are, says how many, and exits with 1. So
    does any erasing that leaves traces for now, since the file is being read.

    \b
    Examples:
      vseg erase two-textures p3f6kq2mzxa
      vseg erase two-textures --prolific-id 5f2c9d1e8a7b6c5d4e3f2a1b --yes
      vseg erase two-textures --code 07 --db sqlite:///two-textures-lab.db
      vseg erase two-textures --link "https://lab.example.org/s/two-textures/?link=kT3…"
      vseg erase two-textures --identities --older-than-days 30
    """
    days = options.whole("0" if older_than_days is None else older_than_days, "--older-than-days", 0)
    if older_than_days is not None and not identities:
        raise InvalidInput(
            "--older-than-days goes with --identities; leave it out to erase a participant, however long ago they came."
        )
    if "" in (participant, prolific_id, link):
        raise InvalidInput("The name of the participant is empty; say who is to be erased.")
    named = [each is not None for each in (participant, prolific_id, link)]
    if [*named, identities, sweep].count(True) != 1:
        raise InvalidInput(
            "Name one PARTICIPANT, or give --prolific-id (or --code), --link, --identities or --sweep: one of the five."
        )

    from vseg import store

    with store.open(db, must_exist=True) as database:
        row = store.studies.get_study(database, options.study_name(study))
        if sweep:
            done = _sweep(database)
        elif identities:
            done = _forget(database, row, days, yes)
        else:
            done = _erase(database, row, _who(database, row, participant, prolific_id, link), yes)
    if not done:
        raise typer.Exit(1)


def _who(
    database: "Database", row: "StudyRow", participant: str | None, prolific_id: str | None, link: str | None
) -> str:
    """The random name of a participant who is there."""
    from vseg.store import sessions

    if prolific_id is not None:
        return sessions.find_by_prolific_id(database, row, prolific_id)
    if link is not None:
        return sessions.find_by_link(database, row, _token(link))
    sessions.check_participant(database, row, participant or "")
    return participant or ""


def _token(link: str) -> str:
    """What tells one personal link from another: behind link= in an address, or all of it."""
    found = re.search(r"[?&]link=([^&#\s]+)", link)
    return found[1] if found else link.strip()


def _ask(question: str, yes: bool) -> None:
    if yes:
        return
    if sys.stdin is None:  # as `vseg erase … <&-` has it
        raise InvalidInput(UNANSWERED)
    try:
        agreed = typer.confirm(question)
    except typer.Abort:
        typer.echo()  # the line of the question is still open
        raise InvalidInput(UNANSWERED) from None
    if not agreed:
        typer.echo("Nothing was deleted.")
        raise typer.Exit(1)


def _erase(database: "Database", row: "StudyRow", who: str, yes: bool) -> bool:
    """Whether nothing of theirs is left."""
    from vseg import store

    _ask(f"Delete {who} and everything of theirs from {row.name}, for good?", yes)
    erased = vars(store.sessions.erase(database, row, who))
    counts = ", ".join(
        f"{table} {number}" for table, number in erased.items() if table != "traces" and number
    )
    typer.echo(f"Erased {who}. Rows deleted: {counts}.")
    typer.echo(erased["traces"])
    typer.echo(store.vacuum.OUT_OF_REACH)
    return not store.vacuum.is_due(database)


def _forget(database: "Database", row: "StudyRow", days: int, yes: bool) -> bool:
    """Whether nobody had to be kept, and nothing is left of the others."""
    from vseg import store

    those = f"; only those who were silent for {format_count(days, 'day')}" if days else ""
    _ask(f"Forget for good who took part in {row.name}{those}? Their answers stay.", yes)
    gone = store.sessions.forget_identities(database, row, days=days)
    if gone.identities or gone.links:
        typer.echo(f"Forgotten. Rows deleted: identities {gone.identities}, links {gone.links}.")
        typer.echo(gone.traces)
        typer.echo(store.vacuum.OUT_OF_REACH)
    else:
        typer.echo("Nobody's identity was due; nothing was deleted.")
    if gone.kept:
        typer.echo(
            f"Kept {gone.kept} who are taking part (not finished, heard of within the last hour); run it again later."
        )
    return not (gone.kept or store.vacuum.is_due(database))


def _sweep(database: "Database") -> bool:
    """Whether nothing is left to be swept."""
    from vseg import store

    typer.echo(store.vacuum.sweep(database))
    typer.echo(store.vacuum.OUT_OF_REACH)
    return not store.vacuum.is_due(database)
