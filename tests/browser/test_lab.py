"""Test the lab: the photodiode patch, and `vseg lab` with a local browser."""

import csv
import io
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from browser_participants import BrowserParticipant
from browsers import chromium
from vseg import export, store

STUDY = """
name = "lab"
segments = 2
participants = 3
layout = {grid = 4}
images = [{name = "patches", colours = 2}]
design = {blocks = 1, trials = 12}
practice = {trials = 2}
catch = {per_block = 1}
calibration = {distance = false, gamma = false}
timing = {preview_ms = 200, cue_ms = 100, image_ms = 150, pause_ms = 50}
"""
LAB = """
[lab]
markers = true
photodiode = {corner = "CORNER", size_px = 60, phase = "PHASE"}
"""
# At the start of each frame, before the page draws, read the grey of the last frame in the patch and next to it.
WATCH = """([x, y, beside]) => {
  const context = document.getElementById("trial-canvas").getContext("2d");
  const grey = (x, y) => context.getImageData(x < 0 ? innerWidth + x : x, y < 0 ? innerHeight + y : y, 1, 1).data[0];
  window.frames_seen = [];
  let last = null;
  const look = (now) => {
    if (last !== null) window.frames_seen.push([last, grey(x, y), grey(beside, y)]);
    last = now;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


def stored(db: str):
    with store.open(db) as database:
        study = store.studies.get_study(database, "lab")
        responses = [
            dict(row) for rows in store.responses.stream_responses(database, study.id) for row in rows
        ]
        events = [dict(row) for rows in store.responses.stream_events(database, study.id) for row in rows]
    return responses, [(row["kind"], json.loads(row["data"])) for row in events]


@pytest.mark.parametrize(
    ("corner", "phase", "eye"),
    [("bottom-left", "image", (30, -30, 70)), ("top-right", "cue", (-30, 30, -70))],
)
def test_patch_is_white_during_its_phase_and_black_otherwise(serve, visitor, corner, phase, eye):
    server = serve(STUDY + LAB.replace("CORNER", corner).replace("PHASE", phase))
    person = visitor(server.url).walk("block")
    assert read_pixel(person.page, eye[:2]) == (0, 0, 0)  # also between trials
    person.page.evaluate(WATCH, eye)
    person.walk("debriefing")
    assert read_pixel(person.page, eye[:2]) == (0, 0, 0)
    seen = person.page.evaluate("frames_seen")
    person.walk("done")

    rows, events = stored(server.db)
    shown = [(row[f"{phase}_onset_ms"], row[f"{phase}_onset_ms"] + row[f"{phase}_ms"]) for row in rows]
    during = [min(start for start, _ in shown) <= at <= max(end for _, end in shown) for at, *_ in seen]
    seen = [frame for frame, inside in zip(seen, during, strict=True) if inside]
    assert len(seen) > 100
    half = 500 / rows[0]["refresh_hz"]  # time stamps are those of frames: tolerate half a frame
    for at, patch, beside in seen:
        lit = any(start - half < at < end - half for start, end in shown)
        assert patch == (255 if lit else 0), (at, shown)
        assert beside == 128
    (screen, *_) = [data for kind, data in events if kind == "screen"]
    assert screen["photodiode"] == {"corner": corner, "size_px": 60, "phase": phase}


def read_pixel(page, eye) -> tuple[int, ...]:
    """Return the colour of a pixel of the whole page, not only of the canvas."""
    window = page.viewport_size
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    return picture.getpixel((eye[0] % window["width"], eye[1] % window["height"]))


@pytest.mark.chaos  # long
def test_patch_does_not_cover_the_image_or_the_leave_button(serve, visitor):
    """The window is so narrow that the patch has to be smaller than requested."""
    lab = (
        LAB.replace("CORNER", "bottom-right")
        .replace("PHASE", "image")
        .replace("size_px = 60", "size_px = 300")
    )
    server = serve(STUDY + "display = {width_px = 800}\n" + lab)
    person = visitor(server.url).walk("block")
    leave = person.page.locator("[data-testid=leave]").bounding_box()
    assert leave["x"] + leave["width"] <= 1280 - 300
    person.walk("done")
    (screen, *_) = [data for kind, data in stored(server.db)[1] if kind == "screen"]
    assert screen["width_px"] == 800
    assert screen["photodiode"]["size_px"] == (1280 - 800) / 2


@pytest.mark.skipif(sys.platform == "win32", reason="the test wraps the browser in a shell script")
def test_lab_command_with_a_local_browser(browser, tmp_path):
    """`vseg lab` opens the browser, loads nothing from other hosts, and ends with the session."""
    study, told, script = tmp_path / "study.toml", tmp_path / "told", tmp_path / "headless"
    study.write_text(STUDY + LAB.replace("CORNER", "top-left").replace("PHASE", "image"), encoding="utf-8")
    os.mkfifo(told)
    # The script starts the browser headless and with a debugging port for this test.
    script.write_text(
        f"#!/bin/sh\necho \"$@\" > {tmp_path}/flags\n"
        f"exec {shlex.quote(chromium())} --headless=new --remote-debugging-port=0 \"$@\" 2> {told}\n"
    )  # fmt: skip
    script.chmod(0o755)
    command = [sys.executable, "-m", "vseg", "lab", study, "--participant", "07", "--browser", script]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        with open(told, encoding="utf-8") as lines:
            devtools = next(line.split()[-1] for line in lines if "DevTools listening" in line)
            opened = browser.browser_type.connect_over_cdp(devtools)
            page = opened.contexts[0].pages[0]
            page.wait_for_url("**/s/**")  # the page cannot be reloaded before it is open
            person = BrowserParticipant(page, page.url)
            requested = []
            page.on("request", lambda request: requested.append(request.url))
            page.reload()
            person.walk("done")
            loaded = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
            base = page.url.partition("/s/")[0]
            assert base.startswith("http://127.0.0.1:")
            assert len(requested) > 10
            assert [url for url in (*requested, *loaded) if not url.startswith((f"{base}/", "data:"))] == []
            opened.new_browser_cdp_session().send("Browser.close")
            lines.read()
        out, err = process.communicate()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert (process.returncode, err, person.problems) == (0, "", [])
    assert "The session is complete." in out
    flags = (tmp_path / "flags").read_text().split()
    assert "--kiosk" in flags
    (profile,) = [Path(flag.partition("=")[2]) for flag in flags if flag.startswith("--user-data-dir=")]
    assert not profile.exists()
    check_markers(tmp_path)


def check_markers(folder: Path) -> None:
    """Check that the answers are in the file next to the study, and that their markers can be exported."""
    database_url = f"sqlite:///{folder}/lab-lab.db"
    rows, _ = stored(database_url)
    data = folder / "data"
    data.mkdir()
    with store.open(database_url) as database:
        export.write_dataset(database, store.studies.get_study(database, "lab"), data)
    (table,) = data.glob("markers/*_events.tsv")
    with open(table, encoding="utf-8", newline="") as file:
        events = list(csv.DictReader(file, delimiter="\t"))
    assert len(events) == 4 * len(rows)
    onsets = [float(event["onset"]) for event in events]
    assert onsets == sorted(onsets)
    images = [float(event["page_ms"]) for event in events if event["trial_type"] == "image"]
    assert images == pytest.approx([row["image_onset_ms"] for row in rows], abs=0.001)
    first = float(events[0]["epoch_ms"])
    assert first == pytest.approx(rows[0]["shown_at_ms"], abs=100)  # two clocks: the event's and the trial's
