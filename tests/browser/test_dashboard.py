"""The researcher's pages in a real Chromium: the whole way of a study, and every page looked at and checked.

Screenshots of every page, light and dark, wide and narrow, are written to the folder that VSEG_SCREENSHOTS names.
"""

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from vseg import store
from vseg.server import auth

FRONTEND = Path(__file__).parents[2] / "frontend"
AXE = FRONTEND / "node_modules/axe-core/axe.min.js"
NAME, PASSWORD = "Ann Lee", "correct horse battery"
STUDY = """
name = "served"
title = "Served from a file"
segments = 2
participants = 12
layout = {grid = 6}
images = [{name = "left", colours = 2}, {name = "right", colours = 2, seed = 3}]
assignment = {images = "within"}
design = {blocks = 2}
practice = {trials = 2}
catch = {per_block = 4}
calibration = {distance = false, gamma = false}
"""
SIZES = {"wide": (1440, 900), "phone": (390, 844)}
PATIENCE_MS = 60_000  # for simulated people on a busy machine


@pytest.fixture
def entered(serve, context) -> Callable[..., tuple[str, Page]]:
    """A running server's address, and a page on which Ann has logged in."""

    def enter(text: str = STUDY) -> tuple[str, Page]:
        return ann_on(serve(text), context)

    return enter


def ann_on(server, context) -> tuple[str, Page]:
    """The server's address, and a page on which Ann has logged in."""
    base = server.url.split("/s/")[0]
    with store.open(server.db) as db:
        auth.set_password(db, NAME, PASSWORD)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    log_in(page, base)
    return base, page


def log_in(page: Page, base: str) -> None:
    page.goto(f"{base}/")
    page.fill("#name", NAME)
    page.fill("#password", PASSWORD)
    page.click("main button")
    page.wait_for_selector("h1:has-text('Studies')")


def send(page: Page, count: int, observer: str = "lapsing:0.05") -> None:
    """Some simulated participants, by the form at the end of the page."""
    page.fill("#count", str(count))
    page.select_option("#source", "truth")
    page.select_option("#observer", observer)
    page.click("text=Send them in")


def mark(page: Page) -> None:
    """So that a page that was loaded again is found out."""
    page.evaluate("window.never_left = true")


def assert_still_there(page: Page) -> None:
    assert page.evaluate("window.never_left") is True


def wait_for_picture(page: Page, selector: str) -> None:
    page.wait_for_function(
        "(s) => { const at = document.querySelector(s); return at && at.complete && at.naturalWidth > 0; }",
        arg=selector,
        timeout=PATIENCE_MS,
    )


def test_the_whole_way(entered, tmp_path):
    """Create, simulate, watch, steer, look closer, erase, export, reload."""
    base, page = entered()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.click("text=New study")
    page.click("text=Coloured patches")
    page.click("text=Create the study")
    page.wait_for_url(f"{base}/studies/colour-patches")
    assert page.get_attribute("[data-testid=preview]", "href").endswith("/s/colour-patches/?preview=1")
    expect(page.locator("main")).to_contain_text("200 pairs missing")

    send(page, 5)
    mark(page)
    expect(page.locator("[data-testid=completed]")).to_have_text("5", timeout=PATIENCE_MS)
    wait_for_picture(page, "img[src*='segmentation.png']")
    assert int(page.inner_text("[data-testid=answers]").replace(",", "")) > 500
    assert page.locator(".plot canvas").count() >= 2
    page.click(".strip a >> nth=1")
    expect(page.locator("#map-title")).to_have_text("another")
    assert page.url.endswith("?image=another")
    assert_still_there(page)

    page.click("text=Explore this image")
    mark(page)
    wait_for_picture(page, "[data-key=segmentation] img")
    page.wait_for_selector("[data-testid=smoothness]")
    page.select_option("#segments", "2")
    expect(page.locator("[data-key^=segment-]")).to_have_count(2, timeout=PATIENCE_MS)
    wait_for_picture(page, "[data-key=segmentation] img[src*='segments=2']")
    assert "segments=2" in page.url
    page.select_option("#smoothness", "10")
    expect(page.locator("[data-testid=smoothness]")).to_have_text("10", timeout=PATIENCE_MS)
    assert_still_there(page)

    page.goto(f"{base}/studies/colour-patches")
    send(page, 6, "random")  # of six who guess, one at least misses the catch trials
    mark(page)
    page.wait_for_selector("tr.look .reasons", timeout=PATIENCE_MS)
    assert_still_there(page)
    expect(page.locator("[data-testid=completed]")).to_have_text("11", timeout=PATIENCE_MS)
    guesser = page.inner_text("tr.look a >> nth=0")
    page.click("tr.look a >> nth=0")
    assert "catch trials" in page.inner_text(".card.look")
    page.click("text=Erase this participant…")
    page.check("[name=confirmed]")
    page.click(f"text=Erase {guesser} for good")
    page.wait_for_selector(f"h1:has-text('{guesser} was erased')")
    page.click("text=Back to the study")
    expect(page.locator("[data-testid=completed]")).to_have_text("10")
    assert guesser not in page.inner_text("#people")

    with page.expect_download() as download:
        page.click("text=Download")
    download.value.save_as(tmp_path / "data.zip")
    assert "colour-patches/dataset_description.json" in zipfile.ZipFile(tmp_path / "data.zip").namelist()
    before = page.inner_text(".tiles >> nth=0")
    page.reload()
    assert page.inner_text(".tiles >> nth=0") == before
    assert problems == []


def test_two_researchers_see_what_the_other_does(entered, browser):
    base, page = entered()
    page.goto(f"{base}/studies/served")
    mark(page)
    other = browser.new_context()
    second = other.new_page()
    log_in(second, base)
    second.goto(f"{base}/studies/served")
    second.click("text=Pause")
    expect(page.locator("h1 .pill")).to_have_text("paused", timeout=PATIENCE_MS)
    assert_still_there(page)
    other.close()


def test_what_was_opened_stays_open_and_focus_stays(entered):
    base, page = entered()
    page.goto(f"{base}/studies/served")
    page.focus(".hint summary >> nth=0")
    page.keyboard.press("Enter")
    mark(page)
    page.evaluate("window.before = document.querySelector('.hint')")
    page.request.post(f"{base}/s/served/sessions", data={"consented": True, "entry": "a" * 32})
    expect(page.locator(".tiles >> nth=0")).to_contain_text("11 places left", timeout=PATIENCE_MS)
    assert page.evaluate(
        "window.before.open && window.before.isConnected && window.before.contains(document.activeElement)"
    )
    assert_still_there(page)


def test_a_server_that_is_gone_is_said_and_comes_back(serve, context):
    server = serve(STUDY)
    base, page = ann_on(server, context)
    page.goto(f"{base}/studies/served")
    mark(page)
    server.kill()
    page.wait_for_selector("#banner:has-text('does not answer')")
    server.start()
    page.wait_for_selector("#banner", state="detached")
    with store.open(server.db) as db:
        store.researchers.sign_out(db, NAME)
    page.wait_for_selector("#banner:has-text('logged out')")
    assert_still_there(page)


def test_without_script_forms_do_the_same(entered, browser):
    base, page = entered()
    plain = browser.new_context(java_script_enabled=False, storage_state=page.context.storage_state())
    still = plain.new_page()
    still.goto(f"{base}/studies/served/images/left")
    still.select_option("#segments", "4")
    still.click("text=Show")
    assert "segments=4" in still.url
    assert "108 pairs missing" in still.inner_text("main")
    plain.close()


def test_by_keyboard_alone(entered):
    base, page = entered()
    page.goto(f"{base}/studies/served")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("(document.activeElement.textContent || document.activeElement.name || '').trim()")
        )
    assert {"Preview", "Pause", "Close", "Download", "Send them in", "Copy"} <= reached


def test_every_page_is_looked_at_and_accessible(entered, tmp_path):
    """Each page once, in both schemes and both widths; axe-core finds nothing serious in either scheme.

    A page is loaded once and then turned over: of neighbours in the list one begins light and narrow and becomes dark
    and wide, the other begins dark and narrow and becomes light and wide. The structure that axe-core looks at is the
    same in both, so that the second look asks about colours alone.
    """
    base, page = entered()
    answered_by_some(page, base)
    page.wait_for_selector("tr.look")
    who = page.inner_text("tr.look a >> nth=0")
    image, person = "/studies/served/images/left", f"/studies/served/participants/{who}"
    for asked in (image, person):
        page.request.get(base + asked)  # their posteriors are worked out while other pages are looked at
    pages = {
        "studies": "/",
        "new": "/new?sample=patches",
        "study": "/studies/served",
        "too-few": f"{image}?segments=12&participant={who}",
        "data": "/studies/served/data",
        "settings": "/settings",
        "not-found": "/foo",
        "image": image,
        "participant": person,
        "login": "/login",
    }
    folder = Path(os.environ.get("VSEG_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    findings: list[str] = []
    page.on("pageerror", lambda error: findings.append(f"{page.url}: {error}"))
    page.on(
        "console",
        lambda said: "Content Security" in said.text and findings.append(f"{page.url}: {said.text}"),
    )
    for number, (name, path) in enumerate(pages.items()):
        if name == "login":
            page.context.clear_cookies()
        first, then = ("light", "dark") if number % 2 else ("dark", "light")
        show(page, first, "phone")
        page.goto(base + path)
        settled(page)
        page.evaluate(AXE.read_text(encoding="utf-8"))
        findings += looked_at(page, folder / f"{name}-{first}-phone.png", EVERYTHING)
        show(page, then, "wide")
        findings += looked_at(page, folder / f"{name}-{then}-wide.png", COLOURS)
    assert findings == []


EVERYTHING = "{resultTypes: ['violations']}"
COLOURS = "{resultTypes: ['violations'], runOnly: ['color-contrast', 'link-in-text-block']}"


def answered_by_some(page: Page, base: str) -> None:
    """Five simulated people who look now and then: their maps can be seen, and some are worth a look."""
    token = page.request.get(f"{base}/api/me").json()["csrf_token"]
    address, headers = f"{base}/api/studies/served/simulate", {"X-CSRF-Token": token}
    wish = {"count": 5, "source": "truth", "observer": "lapsing:0.7", "seed": 3}
    assert page.request.post(address, data=wish, headers=headers).ok
    page.goto(f"{base}/studies/served")
    expect(page.locator("[data-testid=completed]")).to_have_text("5", timeout=PATIENCE_MS)


def show(page: Page, scheme: str, size: str) -> None:
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme)


def settled(page: Page) -> None:
    """Everything that fills in by itself has."""
    for waiting in ("[data-live-now]", "[data-key=coming]"):
        page.wait_for_selector(waiting, state="detached", timeout=PATIENCE_MS)
    page.wait_for_function(
        "() => [...document.images].every((each) => each.complete || each.loading === 'lazy')",
        timeout=PATIENCE_MS,
    )


def looked_at(page: Page, file: Path, asked: str) -> list[str]:
    """What is wrong with the page as it is shown now, after a picture of it was taken."""
    page.screenshot(path=file, full_page=True)
    problems = []
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        problems.append(f"{file.stem}: wider than the window")
    found = json.loads(page.evaluate(f"axe.run({asked}).then((found) => JSON.stringify(found.violations))"))
    return problems + [
        f"{file.stem}: {each['id']} {each['nodes'][0]['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
