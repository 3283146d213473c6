"""One session in the lab (vseg lab): who may begin, the participant's address, and waiting for the end."""

import re
import time
from contextlib import suppress
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Literal, cast

from vseg import store
from vseg.errors import Conflict, InvalidInput
from vseg.server import kiosk
from vseg.store import Database
from vseg.store.database import now_ms
from vseg.store.snapshot import take_snapshot
from vseg.store.studies import StudyRow
from vseg.study import schema
from vseg.study.schema import Study

POLL_INTERVAL_S = 0.2
LAST_PAGE_S = 30  # how long the last page is shown, unless the participant closes it

SessionEnd = Literal["completed", "left", "withdrawn", "ended", "closed", "stopped"]
"""How a session ended: as its status says, because the browser was closed, or by Ctrl+C."""


def read_study(path: Path, *, photodiode: bool = False) -> tuple[str, Study]:
    """Return the text of a study file and the study; with `photodiode`, a patch is added if there is none."""
    text = schema.read_study_text(path)
    study = schema.parse_study(text, str(path))
    if not photodiode or study.lab.photodiode is not None:
        return text, study
    if "lab" in study.model_fields_set:
        text = re.sub(r"^\[lab\][ \t]*(#.*)?$", r"\g<0>\nphotodiode = {}", text, count=1, flags=re.MULTILINE)
    else:
        text += "\n[lab]\nphotodiode = {}\n"
    study = schema.parse_study(text, str(path))
    if study.lab.photodiode is None:
        raise InvalidInput(f"{path} has a lab table without a photodiode; write photodiode = {{}} into it.")
    return text, study


def check_admission(database: Database, row: StudyRow, participant: str | None) -> None:
    """Raise `Conflict` or `InvalidInput` if a participant with this code cannot begin or resume a session."""
    is_required = row.study.prolific is not None and row.study.prolific.required
    if is_required and participant is None:
        raise InvalidInput("This study requires a participant code; give one.")
    status = _find_status(database, row, participant)
    if status == "active":
        return
    if status is not None:
        raise Conflict(
            f"Participant {participant} has already taken part (the session is {status}); use another participant code "
            "or another database."
        )
    reason = store.sessions.get_refusal_reason(database, row, has_link=True, now_ms=now_ms())
    if reason == "full":
        raise Conflict(
            f"Study {row.name} has all the participants it needs ({row.study.participants}) in {database.address}; use "
            "another database, or a study with another name and more participants."
        )
    if reason is not None:
        raise Conflict(
            f"Study {row.name} is {reason} in {database.address}; reopen it, or use another database."
        )


def _find_status(database: Database, row: StudyRow, participant: str | None) -> str | None:
    """Return the status of a participant's session, or None if there is none."""
    with take_snapshot(database, row) as snapshot:
        names = [
            name for name, identity in snapshot.identities().items() if identity.prolific_pid == participant
        ]
        return next((session.status for session in snapshot.sessions if session.participant in names), None)


def create_address(database: Database, row: StudyRow, port: int, participant: str | None) -> str:
    """Create a personal link; the code takes the place of a Prolific ID, so that the participant can resume."""
    (token,) = store.sessions.create_links(database, row, 1, prolific_pid=participant)
    code = f"&PROLIFIC_PID={participant}" if participant is not None else ""
    return f"http://127.0.0.1:{port}/s/{row.name}/?link={token}{code}"


def run_session(
    database: Database, row: StudyRow, address: str, *, browser: str | None, windowed: bool
) -> SessionEnd:
    """Open the browser, if any, and wait until a session ends; return how it ended."""
    before = _list_ended(database, row)
    try:
        if browser is None:
            return _wait_for_end(database, row, before, None)
        with kiosk.open_browser(browser, address, windowed=windowed) as process:
            end = _wait_for_end(database, row, before, process)
            if end != "closed":
                with suppress(TimeoutExpired):
                    process.wait(LAST_PAGE_S)
            return end
    except KeyboardInterrupt:
        return _find_new_end(database, row, before) or "stopped"


def _wait_for_end(
    database: Database, row: StudyRow, before: dict[str, str], browser: Popen[bytes] | None
) -> SessionEnd:
    while True:
        is_closed = browser is not None and browser.poll() is not None
        if end := _find_new_end(database, row, before):
            return end
        if is_closed:
            return "closed"
        time.sleep(POLL_INTERVAL_S)


def _find_new_end(database: Database, row: StudyRow, before: dict[str, str]) -> SessionEnd | None:
    """Return the status of a session that has ended since `before`, or None."""
    new = _list_ended(database, row).items() - before.items()
    return next((cast(SessionEnd, status) for _, status in new), None)


def _list_ended(database: Database, row: StudyRow) -> dict[str, str]:
    """Return the status of each session that has ended."""
    sessions = store.sessions.list_sessions(database, row)
    return {session["name"]: session["status"] for session in sessions if session["status"] != "active"}
