"""Faults of the page in a real Chromium: each fault is a function of a Desk and ends at the last screen.

What the page was told is put down from its own traffic, so that it can be looked for in the export.
"""

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Error, Page, Response

from browser_participants import BrowserParticipant
from browsers import chromium
from chaos.participants import Answer, answer

WINDOW = {"width": 1280, "height": 900}
STUDY = """
name = "tabs"
segments = 2
participants = 100
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
ITEMS = 16
WRONG_CLOCK = """(() => {
  const Right = Date;
  globalThis.wrong_ms = %d;
  globalThis.Date = class extends Right {
    constructor(...given) { given.length ? super(...given) : super(Right.now() + globalThis.wrong_ms); }
    static now() { return Right.now() + globalThis.wrong_ms; }
  };
})()"""
FORBIDDEN = """(() => {
  globalThis.forbidden = 0;
  IDBFactory.prototype.open = () => {
    globalThis.forbidden += 1;
    throw new DOMException('forbidden', 'SecurityError');
  };
})()"""
WATCH_PAUSES = """(() => {
  globalThis.longest_pause_ms = 0;
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    globalThis.longest_pause_ms = Math.max(globalThis.longest_pause_ms, now - last);
    last = now;
  }, 50);
})()"""
ASLEEP_MS = 1500
COUNT_REFUSED_WRITES = """(() => {
  globalThis.refused_writes = 0;
  const begin = IDBDatabase.prototype.transaction;
  IDBDatabase.prototype.transaction = function (...given) {
    const begun = begin.apply(this, given);
    begun.addEventListener('abort', () => {
      if (begun.error?.name === 'QuotaExceededError') globalThis.refused_writes += 1;
    });
    return begun;
  };
})()"""
DATABASES = "indexedDB.databases().then(found => found.map(({ name }) => name))"
KEEPS_NOTHING = "allow cookies and site data"
BLOCKED = {"profile": {"default_content_setting_values": {"cookies": 2}}}
"""Chromium's setting that no site may store data."""
NAMED = "() => { try { return sessionStorage.length; } catch (error) { return error.name; } }"
DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS


def truth(trials: dict[str, Any], item: int) -> bool:
    return answer(trials["i"][item], trials["j"][item], item)


class Desk:
    """One participant's browser, and the answers that were acknowledged to its pages."""

    def __init__(self, browser: Browser, url: str):
        self.browser, self.url = browser, url
        self.context: BrowserContext = browser.new_context(viewport=WINDOW, screen=WINDOW)  # type: ignore[arg-type]
        self.visitors: list[BrowserParticipant] = []
        self._told: list[tuple[BrowserParticipant, dict[str, Any], Any]] = []

    def sit(self) -> BrowserParticipant:
        """Open a new page for the participant; in the same browser it is the same participant."""
        page = self.context.new_page()
        visitor = BrowserParticipant(page, self.url, truth)
        page.on("response", lambda response: self._heard(visitor, response))
        self.visitors.append(visitor.come())
        return visitor

    def processes(self) -> list[int]:
        """Return the PIDs of the renderer processes of this browser."""
        inspector = self.browser.new_browser_cdp_session()
        found = inspector.send("SystemInfo.getProcessInfo")["processInfo"]
        inspector.detach()
        return [each["id"] for each in found if each["type"] == "renderer"]

    def inspector(self, page: Page) -> Any:
        return self.context.new_cdp_session(page)

    def _heard(self, visitor: BrowserParticipant, response: Response) -> None:
        if not response.url.endswith("/records") or response.status != 200:
            return
        with suppress(Error):  # a page that is gone has heard nothing
            records = response.request.post_data_json["records"]
            self._told.append((visitor, self._state(visitor), records))

    def _state(self, visitor: BrowserParticipant) -> dict[str, Any]:
        """A page that comes back sends what is left before it asks where it stands: then as the one before knew.

        Nothing while the reply to the very first question is being read.
        """
        return next((each.state for each in (visitor, *self.visitors) if each.state), {})

    @property
    def acknowledged(self) -> dict[tuple[str, int], Answer]:
        """Return the answers in requests that were acknowledged with status 200."""
        found: dict[tuple[str, int], Answer] = {}
        for visitor, known, records in self._told:
            state = known or self._state(visitor)
            trials = state["trials"]
            for record in records:
                if record["kind"] == "response":
                    item = record["item"]
                    given = (item, trials["i"][item], trials["j"][item], record["same"])
                    found[state["session"], record["seq"]] = given
        return found

    @property
    def problems(self) -> list[str]:
        return [problem for visitor in self.visitors for problem in visitor.problems]


def reloaded(desk: Desk) -> None:
    person = desk.sit()
    for _ in range(3):
        person.walk(trials=4)
        person.page.reload()
        assert person.page.evaluate("performance.getEntriesByType('navigation')[0].type") == "reload"
    person.walk()


def crashed(desk: Desk) -> None:
    page = desk.sit().walk(trials=6).page
    with page.expect_event("crash"), suppress(Error):
        page.goto("chrome://crash", timeout=2000)  # which never answers
    desk.sit().walk()


def opened_twice(desk: Desk) -> None:
    first = desk.sit().walk(trials=3)
    second = desk.sit().walk("other-tab")
    first.walk(trials=3)
    first.page.close()
    second.page.wait_for_selector("body:not([data-step=other-tab])")
    second.walk()


def asleep(desk: Desk) -> None:
    """Its processes stand still, as when a laptop's lid is shut in the middle of a trial, while answers are under way.

    Chromium's own "frozen" does nothing to a page in a window that counts as visible, as all do without a screen.
    """
    desk.context.add_init_script(WATCH_PAUSES)
    person = desk.sit().walk(trials=4)
    for _ in range(2):
        person.page.evaluate("() => { globalThis.longest_pause_ms = 0; }")
        pages = desk.processes()
        for each in pages:
            os.kill(each, signal.SIGSTOP)
        try:
            person.page.wait_for_timeout(ASLEEP_MS)
        finally:
            for each in pages:
                os.kill(each, signal.SIGCONT)
        slept = "least => globalThis.longest_pause_ms >= least"
        person.page.wait_for_function(slept, arg=ASLEEP_MS - 100, polling=50)  # else it was not asleep
        person.walk(trials=3)
    person.walk()


def clock_at(offset_ms: int) -> Callable[[Desk], None]:
    def wrong(desk: Desk) -> None:
        desk.context.add_init_script(WRONG_CLOCK % offset_ms)
        person = desk.sit().walk(trials=4)
        _assert_wrong_by(person.page, offset_ms)
        person.page.reload()
        person.walk()

    return wrong


def clock_jumps(desk: Desk) -> None:
    desk.context.add_init_script(WRONG_CLOCK % 0)
    person = desk.sit()
    for offset in (-YEAR_MS, 2 * YEAR_MS, 0):
        person.walk(trials=3)
        person.page.evaluate("wrong => { globalThis.wrong_ms = wrong; }", offset)
        _assert_wrong_by(person.page, offset)
    person.walk()


def _assert_wrong_by(page: Page, offset_ms: int) -> None:
    """Check the offset of the page's clock, to the day."""
    found = page.evaluate("Date.now()") - 1000 * time.time()
    assert abs(found - offset_ms) < DAY_MS, f"The page's clock is wrong by {found} ms, not by {offset_ms}."


def no_database(desk: Desk) -> None:
    """Forbid IndexedDB: the page must say what to change before the first question."""
    desk.context.add_init_script(FORBIDDEN)
    page = _turned_away(desk)
    assert page.evaluate("globalThis.forbidden") > 0, "The page has not asked for a database."


def nothing_kept(desk: Desk) -> None:
    """Block site data in the browser's settings; the page must say what to change."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        settings = Path(folder, "Default", "Preferences")
        settings.parent.mkdir()
        settings.write_text(json.dumps(BLOCKED), encoding="utf-8")
        desk.context.close()
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        desk.context = desk.browser.browser_type.launch_persistent_context(
            folder, executable_path=chromium(), args=flags
        )
        denied = _turned_away(desk).evaluate(NAMED)
        assert denied == "SecurityError", f"The browser keeps something after all: {denied}."
        desk.context.close()


def _turned_away(desk: Desk) -> Page:
    page = desk.sit().page
    page.wait_for_function("words => document.body.innerText.includes(words)", arg=KEEPS_NOTHING)
    assert desk.acknowledged == {}
    return page


def full_database(desk: Desk) -> None:
    """Refuse all writes from the first on, because Chromium notices a newly full disk only after half a minute."""
    desk.context.add_init_script(COUNT_REFUSED_WRITES)
    inspector = desk.inspector(desk.context.new_page())  # the limit lasts as long as this does
    quota = {"origin": "/".join(desk.url.split("/")[:3]), "quotaSize": 1}
    inspector.send("Storage.overrideQuotaForOrigin", quota)
    person = desk.sit().walk()
    refused = person.page.evaluate("globalThis.refused_writes")
    assert refused >= ITEMS, f"Only {refused} writes were refused."
    inspector.detach()


def vanished_database(desk: Desk) -> None:
    """Delete IndexedDB during the study, as when a participant clears the site's data."""
    person = desk.sit().walk(trials=4)
    assert "vseg" in person.page.evaluate(DATABASES)
    what = {"origin": "/".join(desk.url.split("/")[:3]), "storageTypes": "indexeddb"}
    desk.inspector(person.page).send("Storage.clearDataForOrigin", what)
    assert "vseg" not in person.page.evaluate(DATABASES), "The database is still there."
    person.walk()


TURNED_AWAY = ("IndexedDB unavailable", "site data blocked")
"""Faults that end at a message; all others end at the last screen."""
FAULTS: dict[str, Callable[[Desk], None]] = {
    "tab reloaded": reloaded,
    "tab crashed": crashed,
    "opened in two tabs": opened_twice,
    "tab put to sleep": asleep,
    "clock 30 years fast": clock_at(30 * YEAR_MS),
    "clock 20 years slow": clock_at(-20 * YEAR_MS),
    "clock jumps": clock_jumps,
    "IndexedDB unavailable": no_database,
    "site data blocked": nothing_kept,
    "IndexedDB full": full_database,
    "IndexedDB cleared meanwhile": vanished_database,
}
