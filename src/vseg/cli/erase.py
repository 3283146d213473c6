"""`vseg erase`: a participant with everything of theirs, or who the participants are."""

from typing import TYPE_CHECKING, Annotated

import typer

from vseg.cli import options
from vseg.cli.serve import DEFAULT_DATABASE, DatabaseOption
from vseg.errors import InvalidInput

if TYPE_CHECKING:
    from vseg.store import Database
    from vseg.store.studies import StudyRow

ProlificOption = Annotated[
    str | None,
    typer.Option("--prolific-id", metavar="ID", help="The participant by their ID of Prolific."),
]
IdentitiesOption = Annotated[
    bool,
    typer.Option(
        "--identities", help="Only who people are: Prolific IDs and used personal links; answers stay."
    ),
]
OlderOption = Annotated[
    str | None,
    typer.Option(metavar="DAYS", help="With --identities: of whom nothing was heard for so many days."),
]


def erase(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="The study's name.", show_default=False)],
    participant: Annotated[
        str | None,
        typer.Argument(
            metavar="PARTICIPANT", help="Their random name, such as p3f6kq2mzxa.", show_default=False
        ),
    ] = None,
    prolific_id: ProlificOption = None,
    identities: IdentitiesOption = False,
    older_than_days: OlderOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    db: DatabaseOption = DEFAULT_DATABASE,
) -> None:
    """Delete a participant of STUDY and everything of theirs, or who its participants are, for good.

    No trace stays in the database: a SQLite file is rewritten and its log emptied. Exports, backups and other copies
    made before are out of reach, and said to be. It can be done while the study runs.

    \b
    Examples:
      vseg erase two-textures p3f6kq2mzxa
      vseg erase two-textures --prolific-id 5f2c9d1e8a7b6c5d4e3f2a1b --yes
      vseg erase two-textures --identities --older-than-days 30
    """
    days = options.whole("0" if older_than_days is None else older_than_days, "--older-than-days", 0)
    if older_than_days is not None and not identities:
        raise InvalidInput(
            "--older-than-days goes with --identities; a participant is erased whatever their age."
        )
    if participant == "" or prolific_id == "":
        raise InvalidInput("The name of the participant is empty; say who is to be erased.")
    if [participant is not None, prolific_id is not None, identities].count(True) != 1:
        raise InvalidInput("Name one PARTICIPANT, or give --prolific-id or --identities: one of the three.")

    from vseg import store

    with store.open(db, must_exist=True) as database:
        row = store.studies.named(database, study)
        if identities:
            _forget(database, row, days, yes)
        else:
            who = participant or store.sessions.of_prolific(database, row, prolific_id or "")
            _erase(database, row, who, yes)
    typer.echo(store.erasing.OUT_OF_REACH)


def _erase(database: "Database", row: "StudyRow", who: str, yes: bool) -> None:
    from vseg import store

    if not yes:
        typer.confirm(f"Delete {who} and everything of theirs from {row.name}, for good?", abort=True)
    erased = vars(store.sessions.erase(database, row, who))
    counts = ", ".join(f"{table} {number}" for table, number in erased.items() if table != "traces")
    typer.echo(f"Erased {who}. Rows deleted: {counts}.")
    typer.echo(erased["traces"])


def _forget(database: "Database", row: "StudyRow", days: int, yes: bool) -> None:
    from vseg import store

    if not yes:
        whose = f"those in {row.name} who were silent for {days} days" if days else f"everyone in {row.name}"
        typer.confirm(f"Delete who {whose} are, for good? Their answers stay.", abort=True)
    gone = store.sessions.forget(database, row, days=days)
    typer.echo(f"Forgotten. Rows deleted: identities {gone.identities}, links {gone.links}.")
    if gone.traces:
        typer.echo(gone.traces)
