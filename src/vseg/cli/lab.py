"""`vseg lab`: one participant on this computer, offline."""

import re
import time
from contextlib import suppress
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import TYPE_CHECKING, Annotated

import typer

from vseg._support.text import format_count
from vseg.cli import kiosk, options
from vseg.cli.serve import bound
from vseg.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from vseg.store import Database
    from vseg.store.studies import StudyRow
    from vseg.study.schema import Study

LOOK_EVERY_S = 0.2
LAST_WORDS_S = 30  # how long the page that thanks stays, unless it is closed

StudyArgument = Annotated[Path, typer.Argument(metavar="STUDY", help="A study file.", show_default=False)]
ParticipantOption = Annotated[
    str | None,
    typer.Option(
        metavar="CODE",
        help="Your code for this person; with the same one they go on where they stopped.",
        show_default=False,
    ),
]
DatabaseFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Where the answers go, a file or a URL [default: STUDYNAME-lab.db beside the study file].",
        show_default=False,
    ),
]
PhotodiodeOption = Annotated[
    bool,
    typer.Option("--photodiode", help="Draw a patch for a photodiode, if the study file describes none."),
]


def lab(
    study: StudyArgument,
    participant: ParticipantOption = None,
    db: DatabaseFile = None,
    photodiode: PhotodiodeOption = False,
    windowed: Annotated[bool, typer.Option("--windowed", help="In a window, not full screen.")] = False,
    browser: Annotated[
        str | None, typer.Option(metavar="PATH", help="Which browser to open.", show_default=False)
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open none; print the address.")] = False,
    port: Annotated[str, typer.Option(metavar="NUMBER", help="The port; 0 takes a free one.")] = "0",
) -> None:
    """Run STUDY for one participant on this computer, full screen and without any network.

    A server for this computer alone and a browser of its own are started; both end when the session is complete,
    or with Ctrl+C. The answers of all participants gather in one file. docs/lab.md tells of photodiodes and markers.

    \b
    Examples:
      vseg lab study.toml --participant 07
      vseg lab study.toml --participant 07 --photodiode --windowed
    """
    number = options.whole(port, "--port")
    if participant is not None and not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", participant):
        raise InvalidInput(
            f"--participant is a code of letters, digits, - and _, at most 64, got {participant!r:.80}."
        )
    program = None if no_browser else kiosk.found(browser)

    from vseg import store
    from vseg.server.app import check_page_is_built
    from vseg.server.runner import serve_in_thread

    check_page_is_built()
    text, described = _read(study, photodiode)
    url = _database(study, described, db)
    with bound("127.0.0.1", number) as listening, store.open(url) as database:
        row = _registered(database, text, described, study.parent)
        _check_place(database, row, participant)
        address = _address(database, row, listening.getsockname()[1], participant)
        _say(row.name, address, database.address, program, no_browser)
        with serve_in_thread(database, listening):
            how = _until_over(database, row, program, address, windowed)
        _say_end(database, row, url, participant, how)


def _read(path: Path, photodiode: bool) -> "tuple[str, Study]":
    """The study file; with a patch, if it is to have one and describes none."""
    from vseg.study import schema

    text = schema.read_study_text(path)
    described = schema.parse_study(text, str(path))
    if not photodiode or described.lab.photodiode is not None:
        return text, described
    if "lab" in described.model_fields_set:
        text = re.sub(r"^\[lab\][ \t]*(#.*)?$", r"\g<0>\nphotodiode = {}", text, count=1, flags=re.MULTILINE)
    else:
        text += "\n[lab]\nphotodiode = {}\n"
    described = schema.parse_study(text, str(path))
    if described.lab.photodiode is None:
        raise InvalidInput(f"{path} has a lab table without a photodiode; write photodiode = {{}} into it.")
    return text, described


def _database(path: Path, described: "Study", given: str | None) -> str:
    if given is not None and "://" in given:
        return given
    file = Path(given) if given is not None else path.parent / f"{described.name}-lab.db"
    return f"sqlite:///{file.absolute().as_posix()}"


def _registered(database: "Database", text: str, described: "Study", folder: Path) -> "StudyRow":
    from vseg import store
    from vseg.study import pictures

    return store.studies.register(database, text, described, pictures.render_pictures(described, folder))


def _check_place(database: "Database", row: "StudyRow", participant: str | None) -> None:
    """`Conflict` where this person could not take part, before a browser is opened for them."""
    from vseg import store
    from vseg.store.database import now_ms

    required = row.study.prolific is not None and row.study.prolific.required
    if required and participant is None:
        raise InvalidInput("This study wants to know who takes part; give --participant CODE.")
    status = _status(database, row, participant)
    if status == "active":
        return
    if status is not None:
        raise Conflict(
            f"Participant {participant} has taken part already (the session is {status}); give another "
            "--participant, or another --db."
        )
    reason = store.sessions.get_refusal_reason(database, row, now_ms=now_ms())
    if reason == "full":
        raise Conflict(
            f"Study {row.name} has all the participants it needs ({row.study.participants}) in {database.address}; "
            "give another --db, or a study with more under another name."
        )
    if reason is not None:
        raise Conflict(
            f"Study {row.name} is {reason} in {database.address}; reopen it, or give another --db."
        )


def _status(database: "Database", row: "StudyRow", participant: str | None) -> str | None:
    """How the session of a participant stands; None if there is none."""
    from vseg.store.snapshot import take_snapshot

    with take_snapshot(database, row) as found:
        names = [name for name, who in found.identities().items() if who.prolific_pid == participant]
        return next((head.status for head in found.sessions if head.participant in names), None)


def _address(database: "Database", row: "StudyRow", port: int, participant: str | None) -> str:
    """A personal link; a code comes where Prolific's would, so that the same person is known again."""
    from vseg import store

    (token,) = store.sessions.create_links(database, row, 1)
    code = f"&PROLIFIC_PID={participant}" if participant is not None else ""
    return f"http://127.0.0.1:{port}/s/{row.name}/?link={token}{code}"


def _until_over(
    database: "Database", row: "StudyRow", program: str | None, address: str, windowed: bool
) -> str:
    """How it ended: completed, left, withdrawn or ended, "closed" with the browser, or "stopped" by Ctrl+C."""
    before = _over(database, row)
    try:
        if program is None:
            return _wait(database, row, before, None)
        with kiosk.opened(program, address, windowed=windowed) as browser:
            how = _wait(database, row, before, browser)
            if how != "closed":
                _linger(browser)
            return how
    except KeyboardInterrupt:
        return next(iter(_over(database, row).items() - before.items()), ("", "stopped"))[1]


def _wait(
    database: "Database", row: "StudyRow", before: dict[str, str], browser: "Popen[bytes] | None"
) -> str:
    while True:
        closed = browser is not None and browser.poll() is not None
        for _, status in _over(database, row).items() - before.items():
            return status
        if closed:
            return "closed"
        time.sleep(LOOK_EVERY_S)


def _linger(browser: "Popen[bytes]") -> None:
    """Leave the last words on the screen for a while, or until the window is closed."""
    with suppress(TimeoutExpired):
        browser.wait(LAST_WORDS_S)


def _over(database: "Database", row: "StudyRow") -> dict[str, str]:
    """The sessions that have ended, and how."""
    from vseg import store

    sessions = store.sessions.list_sessions(database, row)
    return {each["name"]: each["status"] for each in sessions if each["status"] != "active"}


def _say(name: str, address: str, place: str, program: str | None, no_browser: bool) -> None:
    typer.echo(f"Study {name}, for one participant on this computer")
    typer.echo(f"  address  {address}")
    typer.echo(f"  data     {place}")
    if program is not None:
        typer.echo(f"The study opens in {program}; it ends with the session, or with Ctrl+C.")
    elif no_browser:
        typer.echo(
            "Open that address in a browser on this computer; it ends with the session, or with Ctrl+C."
        )
    else:
        typer.echo(
            "No Chromium, Chrome or Edge was found here: open that address yourself, or install one and give "
            "--browser PATH. It ends with the session, or with Ctrl+C."
        )


def _say_end(database: "Database", row: "StudyRow", url: str, participant: str | None, how: str) -> None:
    from vseg import store

    again = f"--participant {participant}" if participant is not None else "a --participant from the start"
    said = {
        "completed": "The session is complete.",
        "left": "The participant has left; the answers given are kept.",
        "withdrawn": "The participant has left, and the answers given are deleted.",
        "ended": "The session has ended: it was interrupted for too long.",
    }.get(how)
    if said is None:
        why = "The browser was closed" if how == "closed" else "Stopped"
        said = f"{why} before the session was complete; with {again} it can go on."
    answers = sum(each["responses"] for each in store.sessions.list_sessions(database, row))
    identities = " --identities" if participant is not None else ""
    typer.echo(said)
    typer.echo(f"Data   {database.address} ({format_count(answers, 'answer')} of all participants so far)")
    typer.echo(f"Next:  vseg export {row.name} --db {url} --out {row.name}-data{identities}")
    if how == "closed":
        raise typer.Exit(1)
