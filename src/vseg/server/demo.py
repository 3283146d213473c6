"""The demonstration: a sample study, simulated people who answer it while one looks on, and the report beside.

Everything is the real thing: the study is registered like any other, and its people come over HTTP.
"""

import secrets
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from vseg import store
from vseg.errors import NotFound
from vseg.server import auth
from vseg.server.dashboard.context import page, researchers_only
from vseg.server.simulated_participants import Simulations
from vseg.store.studies import StudyRow
from vseg.study import pictures
from vseg.study.schema import parsed

STUDY = """\
# What `vseg demo` shows: three pictures, each seen by a third of the people.
name = "demo"
title = "One segment or two?"
segments = 3
participants = 60
layout = {grid = 12}
images = [
  {name = "coffee", sample = "coffee"},
  {name = "cat", sample = "chelsea"},
  {name = "patches", colours = 3},
]
design = {blocks = 1, split = 3}   # three people share the pairs of a picture
practice = {trials = 6}
catch = {per_block = 4}
calibration = {distance = false, gamma = false}
"""
RESEARCHER = "demo"
# Fifteen within half a minute, so that maps grow; then a few as slowly as people.
GROUPS = ((15, 0.1), (6, 1.0))
# The report is one file with styles and pictures inside, and no script.
REPORT_POLICY = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
}

AGAIN_S = 5
WAITING = "The report is still being written, which takes about a minute; this page shows it as soon as it is there."
FAILED = "The process that writes the report ended without one. It says why in a terminal: vseg demo --report-only."
_ended: set[Path] = set()  # folders of demonstrations of this process whose report is written, or will not be


@dataclass(frozen=True)
class Shown:
    """What there is to see, and how to get in."""

    study: StudyRow
    password: str
    sign_in: str


def prepare(db: store.Database, folder: Path) -> Shown:
    """The sample study, as a file and in the database, and a researcher who may look at it."""
    folder.joinpath("study.toml").write_text(STUDY, encoding="utf-8")
    study = parsed(STUDY)
    row = store.studies.register(db, STUDY, study, pictures.shown(study, folder))
    password = secrets.token_urlsafe(12)
    auth.set_password(db, RESEARCHER, password)
    token = auth.new_sign_in_link(db, RESEARCHER)
    return Shown(row, password, f"/signin?token={token}&next=/studies/{row.name}")


def start(simulations: Simulations, shown: Shown, address: str, folder: Path, seed: int) -> None:
    """Send the people in, then write the report; both go on while the server runs."""
    threading.Thread(target=_go_on, args=(simulations, shown, address, folder, seed), daemon=True).start()


def _go_on(simulations: Simulations, shown: Shown, address: str, folder: Path, seed: int) -> None:
    first, then = GROUPS
    command = [sys.executable, "-m", "vseg", "demo", "--report-only", "--no-browser", "--seed", str(seed)]
    try:
        simulations.start(address, shown.study, count=first[0], pace=first[1], seed=seed).finished.wait()
        simulations.start(address, shown.study, count=then[0], pace=then[1], seed=seed + 1)
        with simulations.alongside([*command, "--out", str(folder / "report")]) as process:
            process.wait()
    finally:
        _ended.add(folder)


@researchers_only
async def report(request: Request) -> Response:
    """The report of the demonstration, or a word that it is not there yet, or will not be."""
    folder: Path | None = request.app.state.report
    if folder is None:
        raise NotFound("This server shows no report; vseg demo does.")
    file = folder / "report" / "report.html"
    is_over = folder in _ended  # looked at first, since the file may come in between
    if file.is_file():
        return FileResponse(file, headers=REPORT_POLICY)
    if is_over:
        return await page(request, "problem.html", status=404, heading="There is no report", said=FAILED)
    waiting = await page(
        request, "problem.html", status=503, heading="Not there yet", said=WAITING, calm=True
    )
    waiting.headers.update({"Retry-After": str(AGAIN_S), "Refresh": str(AGAIN_S)})
    return waiting
