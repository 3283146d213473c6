"""Test a whole session, from the link to the completion code, and the maps from its answers."""

import json

import numpy as np
import pytest

import vseg
from browser_participants import GAMMA
from vseg import export, store

STUDY = """
name = "two-halves"
segments = 2
participants = 4
layout = {grid = 4}
images = [{name = "patches", colours = 2, seed = 3}]
design = {blocks = 2, trials = 32}
practice = {trials = 3}
catch = {per_block = 2}
timing = {preview_ms = 200, cue_ms = 50, image_ms = 50}
contours = {draw = true}
prolific = {completion_code = "THANKS42"}
"""

ORDER = (
    "consent", "full-screen", "keys", "distance-card", "distance-blind-spot", "distance-result", "gamma",
    "instructions", "practice", "block", "break", "contours", "debriefing", "done",
)  # fmt: skip


@pytest.fixture
def truth(tmp_path):
    """Return a function that answers from the true segments of the image."""
    from vseg.study import pictures, schema

    labels = pictures.render_pictures(schema.parse_study(STUDY), tmp_path)["patches"].truth.labels

    def same(trials, item):
        if trials["image"][item] == "practice":
            return trials["answer"][item] is not False
        return bool(labels[trials["i"][item]] == labels[trials["j"][item]])

    same.labels = labels
    return same


def test_whole_session_recovers_the_true_segments(serve, visitor, truth, tmp_path):
    server = serve(STUDY)
    person = visitor(server.url, "?PROLIFIC_PID=someone&STUDY_ID=a&SESSION_ID=b", truth)
    person.walk("contours")
    draw_two_lines_and_undo_one(person)
    person.walk("done")

    firsts = [step for step in dict.fromkeys(person.visited) if step in ORDER]
    assert tuple(firsts) == ORDER
    assert "THANKS42" in person.words()
    assert "Thank you" in person.page.inner_text("h1")
    assert person.page.get_attribute("[data-testid=done_return]", "href").endswith("cc=THANKS42")

    data = tmp_path / "data"
    data.mkdir()
    with store.open(server.db) as database:
        study = store.studies.get_study(database, "two-halves")
        export.write_dataset(database, study, data)
        batches = list(store.responses.stream_events(database, study.id))
    events = {
        row["kind"]: json.loads(row["data"]) for rows in batches for row in rows
    }  # the last of each kind
    responses = vseg.load(data)
    assert len(responses) == 64
    maps = vseg.reconstruct(responses, segments=2, seed=0).maps
    agree = maps.labels == truth.labels
    assert (
        max(agree.mean(), 1 - agree.mean()) == 1.0
    )  # the observer makes no errors: every location must be correct

    assert events["gamma"]["gamma"] == pytest.approx(
        GAMMA, abs=0.02
    )  # the grey is whole, so is no match exact
    px_per_mm = events["distance"]["px_per_mm"]
    assert px_per_mm == pytest.approx(320 / 85.6)  # the card was left as it was
    far = 500 / px_per_mm / np.tan(np.radians(13.5))
    measured = events["distance"]["measured_mm"]
    assert min(measured) == pytest.approx(
        far, rel=0.1
    )  # on a busy machine some key presses come late, none early
    assert events["distance"]["distance_mm"] == pytest.approx(np.mean(measured), abs=0.5)
    shown = events["screen"]
    degree = px_per_mm * events["distance"]["distance_mm"] * np.tan(np.radians(1))
    assert shown["width_px"] == pytest.approx(10 * degree, rel=0.02)
    assert shown["width_deg"] == pytest.approx(10, rel=0.01)
    assert (shown["width_deg_asked"], shown["shrunk"]) == (10, False)
    assert events["distance"]["device_pixel_ratio"] == 1
    assert len(events["contours"]["contours"]) == 1


def draw_two_lines_and_undo_one(person):
    """Draw with the mouse."""
    box = person.page.locator("[data-testid=drawing]").bounding_box()
    for share in (0.3, 0.6):
        y = box["y"] + share * box["height"]
        person.page.mouse.move(box["x"] + 20, y)
        person.page.mouse.down()
        person.page.mouse.move(box["x"] + box["width"] - 20, y + 30, steps=10)
        person.page.mouse.up()
    person.choose("contours_undo")
