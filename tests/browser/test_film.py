"""Test that a film shows every screen of a study, from its page, for as long as the page shows it."""

import asyncio
import io
import re

import numpy as np
import pytest
from PIL import Image

from commands import vseg
from vseg.server.film import film_study

STUDY = """
name = "seen"
title = "Seen & filmed"
segments = 2
participants = 1
personal_links_only = true
layout = {grid = 4}
images = [{name = "texture", texture = "low"}]
design = {blocks = 2, trials = 8}
practice = {trials = 3}
catch = {per_block = 1}
calibration = {gamma_matches = 2, image_gamma = 1}
timing = {preview_ms = 400, pause_ms = 50, cue_ms = 100, image_ms = 200}
keys = {same = "arrowleft", different = "space"}
contours = {draw = true}
breaks = {every_trials = 4}
"""
SHORT = """
name = "short"
segments = 2
participants = 1
layout = {grid = 4}
images = [{name = "patches", colours = 2}]
design = {blocks = 1, trials = 8}
practice = {trials = 0}
catch = {per_block = 0}
calibration = {gamma = false}
timing = {preview_ms = 100}
"""
TRIAL = ["pause", "cue", "image", "response"]


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    path = tmp_path_factory.mktemp("film") / "seen.toml"
    path.write_text(STUDY, encoding="utf-8")

    async def film_in_a_notebook():  # where an event loop runs
        return film_study(path, trials=2)

    return asyncio.run(film_in_a_notebook())


def test_every_screen_is_filmed_in_order(film):
    steps = [screen.step for screen in film.listed]
    assert steps == [
        "device", "consent", "full-screen", "keys", "distance-card", "distance-blind-spot", "distance-blind-spot",
        "distance-result", "gamma", "gamma", "instructions", "instructions", "instructions",
        "practice", "preview", *TRIAL, "feedback", *TRIAL, "feedback",
        "block", "preview", *TRIAL, *TRIAL, "break", "contours", "contours", "debriefing", "done",
    ]  # fmt: skip
    moving = [screen for screen in film.screens if screen.moves]
    assert moving
    assert {screen.step for screen in moving} == {"distance-blind-spot"}


def test_durations_are_those_of_the_page(film):
    expected = {"preview": 400, "pause": 50, "cue": 100, "image": 200}
    for screen in film.screens:
        if screen.step in expected:
            assert screen.duration_ms == pytest.approx(expected[screen.step], abs=1), screen.step
            assert screen.timing == f"{screen.duration_ms} ms"
    (before_block,) = [screen for screen in film.screens if screen.step == "block"]
    assert before_block.timing == "until the participant goes on (after 1 trial that the film leaves out)"


def test_the_first_break_comes_after_every_trials_of_the_block(film):
    """Of the four trials before it, two are filmed; practice trials do not count."""
    (first,) = [screen for screen in film.screens if screen.step == "break"]
    assert first.timing == "until the participant goes on (after 2 trials that the film leaves out)"


def test_the_command_prints_the_number_of_listed_screens(tmp_path, capsys):
    path = tmp_path / "short.toml"
    path.write_text(SHORT, encoding="utf-8")
    code, out, _ = vseg(f"study film {path} --out {tmp_path / 'out'} --trials 1", capsys)
    assert code == 0
    page = (tmp_path / "out" / "film.html").read_text(encoding="utf-8")
    with Image.open(tmp_path / "out" / "film.gif") as animation:
        listed = page.count("<figcaption>") - 1  # one is of the film
        assert listed < animation.n_frames, "the dot of the blind spot moves"
    assert f"film.gif: {listed} screens\n" in out


def test_pictures_show_the_screens(film):
    """No two screens look alike but the pauses and questions of trials; circles are red, images are not grey alone."""
    pictures = {}
    for screen in film.screens:
        pixels = np.asarray(Image.open(io.BytesIO(screen.png)).convert("RGB")).astype(int)
        assert pixels.shape == (900, 1280, 3)
        red = ((pixels[..., 0] > 200) & (pixels[..., 1] < 60)).sum()
        if screen.step != "instructions":  # one of its three pages has no circles
            assert (red > 0) == (screen.step in ("cue", "image", "distance-blind-spot")), screen.step
        if screen.step not in ("pause", "response"):
            pictures.setdefault(screen.png, []).append(screen.step)
    assert [steps for steps in pictures.values() if len(steps) > 1] == []
    first_block = [screen.step for screen in film.screens].index("block")
    preview = np.asarray(Image.open(io.BytesIO(film.screens[first_block + 1].png)).convert("L")).astype(float)
    assert preview[350:550, 540:740].std() > 20, "the texture in the middle"


def test_gif_and_page(film, tmp_path):
    gif, page = film.save(tmp_path / "out")
    with Image.open(gif) as animation:
        assert animation.n_frames == len(film.screens)
        assert animation.size == (1280, 944)
        durations = []
        for number in range(animation.n_frames):
            animation.seek(number)
            durations.append(animation.info["duration"])
    assert durations == pytest.approx(
        [screen.duration_ms for screen in film.screens], abs=10
    )  # GIF has 10 ms
    text = page.read_text(encoding="utf-8")
    assert "What participants see: Seen &amp; filmed" in text
    assert text.count("data:image/gif;base64,") == 1
    assert text.count("data:image/png;base64,") == len(film.listed)
    assert not re.search(r"(src|href)=\"(?!data:)|<script", text)
    for number, screen in enumerate(film.listed, start=1):
        assert f"<figcaption>{number}. {screen.caption}</figcaption>" in text
