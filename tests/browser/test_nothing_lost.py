"""Test that every answer is stored once despite reloads, crashes, and failures of network and server."""

import json
import re
from collections import Counter
from contextlib import suppress

import pytest
from playwright.sync_api import Error

from browser_participants import BrowserParticipant
from commands import vseg
from vseg import store

STUDY = """
name = "short"
segments = 2
participants = 10
layout = {grid = 4}
images = [{name = "patches", colours = 2}]
design = {blocks = 1, trials = 16}
practice = {trials = 0}
catch = {per_block = 0}
calibration = {distance = false, gamma = false}
timing = {preview_ms = 50, cue_ms = 50, image_ms = 50}
display = {full_screen = false}
prolific = {completion_code = "THANKS42"}
"""


def stored(server):
    with store.open(server.db) as database:
        study = store.studies.get_study(database, server.name)
        return [dict(row) for rows in store.responses.stream_responses(database, study.id) for row in rows]


def stored_events(server, kind):
    """Return the events of a kind as (seq, data)."""
    with store.open(server.db) as database:
        study = store.studies.get_study(database, server.name)
        rows = [row for rows in store.responses.stream_events(database, study.id) for row in rows]
    return [(row["seq"], json.loads(row["data"])) for row in rows if row["kind"] == kind]


def crash(page):
    """Crash the tab, so that the page cannot send anything more."""
    with page.expect_event("crash"), suppress(Error):
        page.goto("chrome://crash", timeout=100)  # which never answers


def is_complete(server):
    """Check that each of the 16 pairs has one good answer, or three flagged ones, and that no `seq` occurs twice."""
    rows = stored(server)
    assert len({row["session"] for row in rows}) == 1
    good = Counter(row["item"] for row in rows if not row["flags"])
    wrong = Counter(row["item"] for row in rows if row["flags"])
    assert all(good[item] == 1 or (good[item], wrong[item]) == (0, 3) for item in range(16))
    assert len({row["seq"] for row in rows}) == len(rows)
    return True


def test_reload_continues_with_the_next_trial(share, visitor):
    server = share(STUDY)
    person = visitor(server.url).walk(trials=5)
    person.page.reload()
    person.walk()
    assert list(dict.fromkeys(row["item"] for row in stored(server))) == list(range(16))
    assert is_complete(server)


def test_crash_of_the_tab(share, visitor):
    server = share(STUDY)
    crash(visitor(server.url).walk(trials=7).page)
    visitor(server.url).walk()
    assert is_complete(server)


@pytest.mark.parametrize("policy", ["resume", "repeat-block"])
def test_crash_with_answers_that_were_never_sent(share, visitor, policy):
    """The next page sends them before it asks where to continue, so that they are not asked again."""
    server = share(STUDY + f'interruption = {{policy = "{policy}", after_minutes = 0}}')
    first = visitor(server.url)
    first.page.route("**/records", lambda route: route.abort())
    first.walk(trials=7)
    assert stored(server) == []
    crash(first.page)
    second = visitor(server.url).walk("done")
    rows = stored(server)
    assert [row["item"] for row in rows[:7]] == first.answered
    ((seq, resumed),) = stored_events(server, "resumed")
    assert resumed["repeat"] == (0 if policy == "repeat-block" else None)
    assert rows[6]["seq"] < seq < rows[7]["seq"]
    if policy == "resume":
        assert not set(first.answered) & set(second.answered) - {row["item"] for row in rows if row["flags"]}
        assert is_complete(server)
    else:
        assert set(second.answered) == set(range(16))


def test_lost_reply_to_begin(share, visitor, context):
    """Beginning again, even in a new tab, does not create a second session."""
    server = share(STUDY)

    def lose_the_reply(route):
        route.fetch()
        route.abort()

    context.route("**/sessions", lose_the_reply)
    first = visitor(server.url).walk("consent")
    with first.page.expect_event("requestfailed"):
        first.choose("consent_agree")
    first.page.close()
    context.unroute("**/sessions")
    visitor(server.url).walk(trials=1)
    with store.open(server.db) as database:
        assert (
            len(store.sessions.list_sessions(database, store.studies.get_study(database, server.name))) == 1
        )


def test_someone_else_at_a_shared_computer(share, visitor):
    """The second participant gets a new session; the first one's answers are kept, and their session is `left`."""
    server = share(STUDY)
    first = visitor(server.url).walk(trials=5)
    first.page.close()
    second = visitor(server.url).walk("returning")
    assert "on this computer" in second.words()
    second.choose("returning_new")
    second.walk(trials=2)
    assert first.answered == [0, 1, 2, 3, 4]
    assert second.answered == [0, 1]
    with store.open(server.db) as database:
        listed = store.sessions.list_sessions(database, store.studies.get_study(database, server.name))
    assert sorted(row["status"] for row in listed) == ["active", "left"]
    (left,) = [row["name"] for row in listed if row["status"] == "left"]
    assert [row["item"] for row in stored(server) if row["session"] == left] == first.answered


def test_rejected_answer_is_asked_again(share, visitor, context):
    """An event replaces the rejected answer, the pair is asked again, and the session is completed."""
    server = share(STUDY)

    def spoil(route):
        records = route.request.post_data_json["records"]
        for record in records:
            if record["kind"] == "response" and record["item"] == 15 and not spoilt:
                record["refresh_hz"] = None
        answer = route.fetch(post_data=json.dumps({"records": records}))
        if answer.status == 422 and len(records) == 1:
            spoilt.append(records)
        route.fulfill(response=answer)

    spoilt = []
    context.route("**/records", spoil)
    person = visitor(server.url).walk("done")
    assert len(spoilt) == 1
    assert person.answered.count(15) > 1
    ((_, data),) = stored_events(server, "interruption")
    assert (data["reason"], data["item"]) == ("refused", 15)
    assert is_complete(server)


def test_crash_while_leaving(share, visitor):
    """The next page finishes what the participant chose."""
    server = share(STUDY)
    person = visitor(server.url, "?PROLIFIC_PID=someone").walk(trials=5)
    person.page.route("**/leave", lambda route: route.abort())
    person.page.keyboard.press("Escape")
    person.choose("leave_withdraw")
    person.walk("finishing")
    person.page.wait_for_selector("#delivery:not(:empty)")
    crash(person.page)
    assert len(stored(server)) == 5
    visitor(server.url, "?PROLIFIC_PID=someone").walk("left")
    assert stored(server) == []


def test_network_outage(share, visitor, context):
    """Trials continue without network; the completion code is shown when it is back."""
    server = share(STUDY)
    person = visitor(server.url).walk(trials=2)
    context.set_offline(True)
    person.walk("finishing")
    assert "THANKS42" not in person.words()
    assert len(stored(server)) < 16
    context.set_offline(False)
    person.walk("done")
    assert "THANKS42" in person.words()
    assert is_complete(server)


def test_server_killed_and_started_again(serve, visitor):
    server = serve(STUDY)
    person = visitor(server.url).walk(trials=4)
    server.kill()
    person.walk(trials=6)
    server.start()
    person.walk("done")
    assert is_complete(server)


def test_second_tab_waits_and_takes_over(share, visitor):
    server = share(STUDY)
    first = visitor(server.url).walk(trials=3)
    second = visitor(server.url).walk("other-tab")
    assert "another tab" in second.words()
    first.page.close()
    second.page.wait_for_selector("body:not([data-step=other-tab])")
    second.walk("done")
    assert is_complete(server)


def test_answers_sent_twice_count_once(share, visitor, context):
    """If a reply is lost, the page sends again what the server already has."""
    server = share(STUDY)
    swallowed = []

    def lose_the_reply(route):
        if len(swallowed) < 3:
            swallowed.append(route.fetch().status)  # the server has stored it
            route.abort()  # but the page gets no reply
        else:
            route.continue_()

    context.route("**/records", lose_the_reply)
    visitor(server.url).walk("done")
    assert swallowed == [200, 200, 200]
    assert is_complete(server)


@pytest.mark.parametrize("choice", ["keep", "withdraw"])
def test_leaving(share, visitor, choice):
    server = share(STUDY)
    person = visitor(server.url).walk(trials=5)
    person.page.keyboard.press("Escape")
    person.choose(f"leave_{choice}")
    person.walk("left")
    assert len(stored(server)) == (5 if choice == "keep" else 0)


def test_paused_trial_is_repeated(share, visitor):
    """Pressing Escape and staying records nothing of the trial that was on the screen."""
    server = share(STUDY)
    person = visitor(server.url).walk(trials=5)
    person.page.keyboard.press("Escape")
    person.choose("leave_stay")
    person.walk("done")
    assert is_complete(server)


def test_long_absence_repeats_the_block(share, visitor):
    server = share(STUDY + 'interruption = {policy = "repeat-block", after_minutes = 0}')
    person = visitor(server.url).walk(trials=5)
    person.page.reload()
    person.walk("done")
    first_time, again = person.answered[:5], person.answered[5:]
    assert first_time == list(range(5))
    assert set(again) == set(range(16))


def test_long_absence_ends_the_session(share, visitor):
    server = share(STUDY + 'interruption = {policy = "end", after_minutes = 0}')
    person = visitor(server.url).walk(trials=5)
    person.page.reload()
    person.walk("refused")
    assert len(stored(server)) == 5


def test_prolific_participant_continues_in_another_browser(share, visitor, browser):
    """The session moves; the first page says so, and offers its unsent answers as a file."""
    server = share(STUDY)
    query = "?PROLIFIC_PID=someone&STUDY_ID=a&SESSION_ID=b"
    first = visitor(server.url, query).walk(trials=5)
    elsewhere = browser.new_context(viewport={"width": 1280, "height": 900})
    second = BrowserParticipant(elsewhere.new_page(), server.url).come(query).walk(trials=3)
    assert second.answered == [5, 6, 7]
    first.walk("refused")
    assert "another browser" in first.words()
    assert first.page.get_attribute("[data-testid=download]", "download").endswith(".json")
    second.walk("done")
    elsewhere.close()
    assert is_complete(server)


@pytest.mark.parametrize("answers", [0, 3])
def test_prolific_participant_returns_to_the_first_browser(share, visitor, browser, answers):
    """Unsent answers of the first browser are sent if their `seq` is free, else asked again; the session completes."""
    server = share(STUDY)
    query = "?PROLIFIC_PID=someone&STUDY_ID=a&SESSION_ID=b"
    first = visitor(server.url, query).walk(trials=5)
    elsewhere = browser.new_context(viewport={"width": 1280, "height": 900})
    second = (
        BrowserParticipant(elsewhere.new_page(), server.url).come(query).walk("block").walk(trials=answers)
    )
    first.walk("refused")
    first.page.reload()
    first.walk("done")
    second.walk("refused")
    elsewhere.close()
    assert second.problems == []
    answered = {row["item"] for row in stored(server)}
    assert answered == set(range(16))
    assert len({row["session"] for row in stored(server)}) == 1


def test_session_erased_meanwhile(share, visitor):
    """An anonymous participant is told so in the study's language, and can begin again."""
    server = share(STUDY + 'language = "de"')
    person = visitor(server.url).walk(trials=5)
    with store.open(server.db) as database:
        study = store.studies.get_study(database, server.name)
        store.sessions.erase(database, study, person.state["participant"])
    person.walk("refused")
    assert "gelöscht" in person.words()
    person.page.reload()
    person.walk("gone")
    assert "gelöscht" in person.words()
    with person.page.expect_download() as download:
        person.page.click("[data-testid=download]")
    saved = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert set(person.answered) == {
        record["item"] for record in saved["records"] if record["kind"] == "response"
    }
    person.choose("gone_new")
    person.walk("done")
    assert is_complete(server)


def test_personal_link(share, visitor, browser, capsys):
    """A personal link resumes its session, and cannot be used for a second one."""
    server = share(STUDY + "personal_links_only = true")
    assert "link" in visitor(server.url).walk("refused").words()
    _, printed, _ = vseg(f"links {server.name} --db {server.db}", capsys)
    query = "?link=" + re.search(r"link=(\S+)", printed)[1]
    visitor(server.url, query).walk("done")
    elsewhere = browser.new_context(viewport={"width": 1280, "height": 900})
    again = BrowserParticipant(elsewhere.new_page(), server.url).come(query).walk("consent")
    again.choose("consent_agree")
    again.walk("refused")
    elsewhere.close()
    assert is_complete(server)
