"""The demonstration (vseg demo): a sample study, simulated participants who answer it, and a report.

Nothing is mocked: the study is registered like any other, and its participants use HTTP.
"""

import secrets
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from vseg import store
from vseg.errors import NotFound
from vseg.server import auth
from vseg.server.dashboard.context import render_page, require_login
from vseg.server.headers import DOWNLOAD
from vseg.server.simulated_participants import Simulations
from vseg.store.studies import StudyRow
from vseg.study import pictures
from vseg.study.schema import parse_study

STUDY = """\
# What `vseg demo` shows: three images, each seen by a third of the participants.
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
design = {blocks = 1, split = 3}   # three participants share the pairs of an image
practice = {trials = 6}
catch = {per_block = 4}
calibration = {distance = false, gamma = false}
contours = {draw = true}
"""
RESEARCHER = "demo"
# (participants, pace): fifteen within half a minute, so that maps appear; then a few at human speed.
GROUPS = ((15, 0.1), (6, 1.0))
# The report is one file that contains its styles and figures, and no script.
REPORT_POLICY = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
}

RELOAD_AFTER_S = 5
REPORT_PENDING = "The report is still being written, which takes about a minute; this page will then show it."
REPORT_FAILED = (
    "The process that writes the report ended without one; the terminal of the demonstration shows why."
)
_finished: set[Path] = set()  # folders of demonstrations whose report was written or has failed


@dataclass(frozen=True)
class DemoStudy:
    """The registered sample study, the password of its researcher, and the path of a sign-in link."""

    study: StudyRow
    password: str
    sign_in: str


def prepare(db: store.Database, folder: Path) -> DemoStudy:
    """Write the sample study to a file, register it, and create a researcher."""
    folder.joinpath("study.toml").write_text(STUDY, encoding="utf-8")
    study = parse_study(STUDY)
    row = store.studies.register(db, STUDY, study, pictures.render_pictures(study, folder))
    password = secrets.token_urlsafe(12)
    auth.set_password(db, RESEARCHER, password)
    token = auth.create_sign_in_token(db, RESEARCHER)
    return DemoStudy(row, password, f"/signin?token={token}&next=/studies/{row.name}")


def start(simulations: Simulations, demo: DemoStudy, address: str, folder: Path, seed: int) -> None:
    """Start the simulated participants, then write the report, both in the background."""
    threading.Thread(
        target=_simulate_and_report, args=(simulations, demo, address, folder, seed), daemon=True
    ).start()


def _simulate_and_report(
    simulations: Simulations, demo: DemoStudy, address: str, folder: Path, seed: int
) -> None:
    first, second = GROUPS
    try:
        simulations.start(address, demo.study, count=first[0], pace=first[1], seed=seed).finished.wait()
        simulations.start(address, demo.study, count=second[0], pace=second[1], seed=seed + 1)
        command = ["-m", "vseg.demo", str(folder / "report"), str(seed)]
        with simulations.child_process(command, stdout=subprocess.DEVNULL, stderr=None) as process:
            process.wait()
    finally:
        _finished.add(folder)


@require_login
async def report(request: Request) -> Response:
    """Show the report of the demonstration, or a page that says that it is not ready or has failed."""
    folder: Path | None = request.app.state.report
    if folder is None:
        raise NotFound("This server has no report; only vseg demo writes one.")
    file = folder / "report" / "report.html"
    is_finished = folder in _finished  # read before the file, which may be written in between
    if file.is_file():
        return FileResponse(file, headers={**REPORT_POLICY, **DOWNLOAD})
    if is_finished:
        return await render_page(
            request, "error.html", status=404, heading="There is no report", message=REPORT_FAILED
        )
    waiting = await render_page(
        request, "error.html", status=503, heading="Not ready yet", message=REPORT_PENDING, is_waiting=True
    )
    waiting.headers.update({"Retry-After": str(RELOAD_AFTER_S), "Refresh": str(RELOAD_AFTER_S)})
    return waiting
