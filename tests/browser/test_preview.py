"""Test that a researcher can preview a study, and that nothing of the preview is stored."""

import pytest

from vseg import store

STUDY = """
name = "look"
segments = 2
participants = 1
layout = {grid = 4}
images = [{name = "patches", colours = 2}]
design = {blocks = 1, trials = 8}
practice = {trials = 2}
catch = {per_block = 1}
calibration = {distance = false, gamma_matches = 2}
timing = {preview_ms = 200, cue_ms = 50, image_ms = 50}
contours = {draw = true}
personal_links_only = true
"""
ON_CANVAS = ("preview", "trial", "response")


def log_in(server, context) -> None:
    page = context.new_page()
    page.goto(server.running.link("Researcher"))
    page.fill("[name=name]", "ann")
    page.fill("[name=password]", "a long enough password")
    page.click("main form button")
    page.wait_for_url("**/")
    page.close()


def rows(server) -> int:
    """Count everything that a participant could leave in the database."""
    with store.open(server.db) as database:
        study = store.studies.get_study(database, server.name)
        assert study.frozen_at_ms is None
        sessions = store.sessions.list_sessions(database, study)
        return len(sessions) + sum(map(len, store.responses.stream_events(database, study.id)))


def test_whole_preview_stores_nothing(serve, visitor, context):
    server = serve(STUDY)
    log_in(server, context)
    posted = []
    context.on("request", lambda request: request.method != "GET" and posted.append(request.url))
    person = visitor(server.url, "?preview=1")
    banners = {}
    take = person.take

    def noting(step):
        banners[step] = person.page.is_visible("#preview-banner")
        take(step)

    person.take = noting
    person.walk("done")
    for step in ("consent", "keys", "gamma", "instructions", "practice", "block", "contours", "debriefing"):
        assert banners[step], step
    assert len(person.answered) >= 11
    assert person.page.inner_text("#preview-banner") == "Preview: nothing is stored"
    assert posted == []
    assert rows(server) == 0
    kept = person.page.evaluate(
        "async () => [(await indexedDB.databases()).length, localStorage.length, sessionStorage.length]"
    )
    assert kept == [0, 0, 0]
    person.page.reload()
    assert person.step() != "done"
    person.walk("consent")


@pytest.mark.chaos  # long
def test_banner_is_hidden_during_trials(serve, visitor, context):
    server = serve(
        STUDY.replace("timing = {", "timing = {pause_ms = 300, ") + "display = {full_screen = false}\n"
    )
    log_in(server, context)
    person = visitor(server.url, "?preview=1")
    for step in ON_CANVAS:
        person.walk(step)
        assert not person.page.is_visible("#preview-banner"), step


@pytest.mark.chaos  # long
def test_two_tabs_and_a_study_that_is_full_or_closed(serve, visitor, context):
    """A preview is possible at any time, and in several tabs."""
    server = serve(STUDY)
    log_in(server, context)
    with store.open(server.db) as database:
        store.studies.close(database, "look")
    first = visitor(server.url, "?preview=1").walk("consent")
    visitor(server.url, "?preview=1").walk("consent")
    assert first.page.is_visible("#preview-banner")
    refused = visitor(server.url).walk("refused")
    assert "closed" in refused.words()
    assert refused.page.query_selector("#preview-banner") is None


def test_leaving_a_preview_sends_nothing(serve, visitor, context):
    server = serve(STUDY)
    log_in(server, context)
    person = visitor(server.url, "?preview=1").walk("keys")
    person.page.click("[data-testid=leave]")
    person.page.click("[data-testid=leave_withdraw]")
    person.walk("left")
    assert rows(server) == 0


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "researcher who is logged in"), ("fr", "chercheur connecté"), ("de", "angemeldet")],
)
def test_preview_requires_the_login(share, visitor, language, words):
    server = share(STUDY + f'language = "{language}"\n')
    person = visitor(server.url, "?preview=1").walk("refused")
    assert words in person.words()
    person.page.click("[data-testid=rehearsal_log_in]")
    person.page.wait_for_url("**/login")
    assert rows(server) == 0
