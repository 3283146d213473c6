"""Test that the page explains why someone cannot take part."""

import pytest

from vseg import store

STUDY = """
name = "doors"
segments = 2
participants = 1
layout = {grid = 4}
images = [{name = "patches", colours = 2}]
design = {blocks = 1, trials = 8}
practice = {trials = 0}
catch = {per_block = 0}
calibration = {distance = false, gamma = false}
timing = {preview_ms = 50, cue_ms = 50, image_ms = 50}
"""


def test_phone_and_browser_without_a_frame_clock(share, browser, context):
    server = share(STUDY)
    blurred = context.new_page()
    blurred.add_init_script(
        "const real = requestAnimationFrame; window.requestAnimationFrame = (act) => real(() => act(1000));"
    )
    blurred.goto(server.url)
    blurred.wait_for_selector("[data-testid=device_browser]")
    phone = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = phone.new_page()
    page.goto(server.url)
    page.wait_for_selector("[data-testid=device_phone]")
    assert "computer" in page.inner_text("body")
    phone.close()


def test_small_window_shows_the_sizes_and_can_be_enlarged(share, visitor, browser):
    server = share(STUDY + "display = {full_screen = false, window_px = [800, 600]}")
    context = browser.new_context(viewport={"width": 700, "height": 500})
    page = context.new_page()
    page.goto(server.url)
    page.wait_for_selector("[data-testid=device_window]")
    assert "800 × 600" in page.inner_text("body")
    assert "700 × 500" in page.inner_text("body")
    page.set_viewport_size({"width": 900, "height": 700})
    page.wait_for_selector("[data-testid=consent_agree]")
    context.close()


def test_slow_screen(share, visitor):
    server = share(STUDY + "display = {refresh_hz = 100.0}")
    person = visitor(server.url)
    person.page.wait_for_selector("[data-testid=device_refresh]")
    assert "100" in person.words()


def test_declining_stores_nothing(share, visitor):
    server = share(STUDY)
    person = visitor(server.url).walk("consent")
    person.choose("consent_decline")
    person.walk("left")
    with store.open(server.db) as database:
        assert store.studies.get_study(database, server.name).frozen_at_ms is None


def test_full_study(share, visitor, browser):
    server = share(STUDY)
    visitor(server.url).walk("done")
    other = browser.new_context()
    page = other.new_page()
    page.goto(server.url)
    page.wait_for_selector("body[data-step=refused]")
    assert "Enough people have taken part" in page.inner_text("body")
    other.close()


def test_closed_study_refuses_new_participants(share, visitor, context):
    server = share(STUDY)
    query = "?PROLIFIC_PID=someone&STUDY_ID=a&SESSION_ID=b"
    with store.open(server.db) as database:
        store.studies.close(database, server.name)
    assert "closed" in visitor(server.url).walk("refused").words()
    known = visitor(server.url, query).walk("consent")  # the server may know this participant
    context.route("**/sessions", lambda route: route.abort())
    known.choose("consent_agree")
    known.page.wait_for_selector("#delivery:not(:empty)")
    context.unroute("**/sessions")
    known.walk("refused")
    assert "closed" in known.words()
    assert "safe" not in known.words()  # there are no answers


def test_unknown_study(share, context):
    server = share(STUDY)
    page = context.new_page()
    answer = page.goto(server.url.replace(server.name, "windows"))
    assert answer.status == 404
    assert "no study at this address" in page.inner_text("body")


@pytest.mark.parametrize(("language", "word"), [("fr", "écran"), ("de", "Bildschirm")])
def test_languages(share, visitor, language, word):
    server = share(STUDY + f'language = "{language}"')
    person = visitor(server.url).walk("full-screen")
    assert word in person.words()
    assert person.page.get_attribute("html", "lang") == language
