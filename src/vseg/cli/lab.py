"""`vseg lab`: run a study for one participant on this computer, offline."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vseg._support.text import format_count
from vseg.cli import options
from vseg.errors import InvalidInput

if TYPE_CHECKING:
    from vseg.server.lab import SessionEnd
    from vseg.store import Database
    from vseg.store.studies import StudyRow

BROWSER = "Browser and server"
END_MESSAGES: "dict[SessionEnd, str]" = {
    "completed": "The session is complete.",
    "left": "The participant has left; the answers given are kept.",
    "withdrawn": "The participant has withdrawn; the answers given are deleted.",
    "ended": "The session has ended: it was interrupted for too long.",
}

ParticipantOption = Annotated[
    str | None,
    typer.Option(
        metavar="CODE",
        help="Your code for the participant; the same code resumes an interrupted session.",
        show_default=False,
    ),
]
DatabaseFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="File or URL of the database [default: STUDYNAME-lab.db beside the study file].",
        show_default=False,
    ),
]
PhotodiodeOption = Annotated[
    bool,
    typer.Option("--photodiode", help="Draw a patch for a photodiode, if the study file has none."),
]
WindowedOption = Annotated[
    bool, typer.Option("--windowed", help="Use a window instead of the full screen.", rich_help_panel=BROWSER)
]
BrowserOption = Annotated[
    str | None,
    typer.Option(metavar="PATH", help="The browser to open.", show_default=False, rich_help_panel=BROWSER),
]
NoBrowserOption = Annotated[
    bool,
    typer.Option("--no-browser", help="Open no browser; print the address.", rich_help_panel=BROWSER),
]


def lab(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="A study file.", show_default=False)],
    participant: ParticipantOption = None,
    db: DatabaseFile = None,
    photodiode: PhotodiodeOption = False,
    windowed: WindowedOption = False,
    browser: BrowserOption = None,
    no_browser: NoBrowserOption = False,
    port: options.PortOption = 0,
) -> None:
    """Run STUDY for one participant on this computer.

    Starts a server that only this computer can reach and a full-screen browser; both end when the session is complete,
    or with Ctrl+C. No network is needed. The answers of all participants are stored in one file. See docs/lab.md for
    photodiodes and markers.

    \b
    Examples:
      vseg lab study.toml --participant 07
      vseg lab study.toml --participant 07 --photodiode --windowed
    """
    if participant is not None and not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", participant):
        raise InvalidInput(
            f"--participant: expected a code of at most 64 letters, digits, - and _, got {participant!r:.80}."
        )

    from vseg import store
    from vseg.server import kiosk, lab as lab_session
    from vseg.server.app import check_page_is_built
    from vseg.server.runner import serve_in_thread
    from vseg.server.sockets import open_socket
    from vseg.study.pictures import render_pictures

    program = None if no_browser else kiosk.find_browser(browser)
    check_page_is_built()
    text, described = lab_session.read_study(options.check_study_file(study), photodiode=photodiode)
    url = _get_database_url(db, default=study.parent / f"{described.name}-lab.db")
    with open_socket("127.0.0.1", port) as listening, store.open(url) as database:
        row = store.studies.register(database, text, described, render_pictures(described, study.parent))
        lab_session.check_admission(database, row, participant)
        address = lab_session.create_address(database, row, listening.getsockname()[1], participant)
        _print_start(row.name, address, database.address, program, no_browser)
        with serve_in_thread(database, listening):
            end = lab_session.run_session(database, row, address, browser=program, windowed=windowed)
        _print_end(database, row, url, participant, end)
    if end == "closed":
        raise typer.Exit(1)


def _get_database_url(db: str | None, default: Path) -> str:
    if db is not None and "://" in db:
        return db
    file = default if db is None else Path(db)
    return f"sqlite:///{file.absolute().as_posix()}"


def _print_start(name: str, address: str, place: str, program: str | None, no_browser: bool) -> None:
    typer.echo(f"Study {name}, for one participant on this computer")
    typer.echo(f"  address  {address}")
    typer.echo(f"  data     {place}")
    if program is not None:
        typer.echo(f"The study opens in {program}.")
    elif no_browser:
        typer.echo("Open the address in a browser on this computer.")
    else:
        typer.echo(
            "No Chromium, Chrome or Edge was found: open the address yourself, or install one of them and use "
            "--browser PATH."
        )
    typer.echo("The command ends with the session, or with Ctrl+C.")


def _print_end(
    database: "Database", row: "StudyRow", url: str, participant: str | None, end: "SessionEnd"
) -> None:
    from vseg import store

    message = END_MESSAGES.get(end)
    if message is None:
        reason = "The browser was closed" if end == "closed" else "Stopped"
        code = f"--participant {participant}" if participant is not None else "a --participant from the start"
        message = f"{reason} before the session was complete; with {code} it can be resumed."
    answers = sum(session["responses"] for session in store.sessions.list_sessions(database, row))
    identities = " --identities" if participant is not None else ""
    typer.echo(message)
    typer.echo(f"Data   {database.address} ({format_count(answers, 'answer')} of all participants so far)")
    typer.echo(f"Next:  vseg export {row.name} --db {url} --out {row.name}-data{identities}")
