"""Test the dashboard in Chromium: a study from creation to export, and the accessibility of every page.

Screenshots of every page, light and dark, wide and narrow, are written to the folder in VSEG_SCREENSHOTS.
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
TIMEOUT_MS = 60_000  # simulated participants are slow on a busy machine


@pytest.fixture
def dashboard(serve, context) -> Callable[..., tuple[str, Page]]:
    """Return a function that starts a server and returns its address and a logged-in page."""

    def start(text: str = STUDY) -> tuple[str, Page]:
        return open_logged_in(serve(text), context)

    return start


def open_logged_in(server, context) -> tuple[str, Page]:
    """Return the server's address and a page on which a researcher is logged in."""
    base = server.url.split("/s/")[0]
    with store.open(server.db) as db:
        auth.set_password(db, NAME, PASSWORD)
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    log_in(page, base)
    return base, page


def log_in(page: Page, base: str) -> None:
    page.goto(f"{base}/")
    page.fill("#name", NAME)
    page.fill("#password", PASSWORD)
    page.click("main button")
    page.wait_for_selector("h1:has-text('Studies')")


def start_simulation(page: Page, count: int, observer: str = "lapsing:0.05") -> None:
    """Send simulated participants with the form at the end of the page."""
    page.fill("#count", str(count))
    page.select_option("#source", "truth")
    page.select_option("#observer", observer)
    page.click("text=Start simulation")


def mark(page: Page) -> None:
    """Mark a page, to detect later whether it was reloaded."""
    page.evaluate("window.not_reloaded = true")


def assert_not_reloaded(page: Page) -> None:
    assert page.evaluate("window.not_reloaded") is True


def wait_for_picture(page: Page, selector: str) -> None:
    page.wait_for_function(
        "(s) => { const at = document.querySelector(s); return at && at.complete && at.naturalWidth > 0; }",
        arg=selector,
        timeout=TIMEOUT_MS,
    )


def test_study_from_creation_to_export(dashboard, tmp_path):
    """Create a study, simulate participants, select maps, erase a participant, export, and reload."""
    base, page = dashboard()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.click("text=New study")
    page.click("text=Coloured patches")
    page.click("text=Create study")
    page.wait_for_url(f"{base}/studies/patches")
    assert page.get_attribute("[data-testid=preview]", "href").endswith("/s/patches/?preview=1")
    expect(page.locator("main")).to_contain_text("200 pairs missing")

    start_simulation(page, 5)
    mark(page)
    expect(page.locator("[data-testid=completed]")).to_have_text("5", timeout=TIMEOUT_MS)
    wait_for_picture(page, "img[src*='segmentation.png']")
    assert int(page.inner_text("[data-testid=answers]").replace(",", "")) > 500
    assert page.locator(".plot canvas").count() >= 2
    page.click(".strip a >> nth=1")
    expect(page.locator("#map-title")).to_have_text("another")
    assert page.url.endswith("?image=another")
    assert_not_reloaded(page)

    page.click("text=Explore this image")
    mark(page)
    wait_for_picture(page, "[data-key=segmentation] img")
    page.wait_for_selector("[data-testid=smoothness]")
    page.select_option("#segments", "2")
    expect(page.locator("[data-key^=segment-]")).to_have_count(2, timeout=TIMEOUT_MS)
    wait_for_picture(page, "[data-key=segmentation] img[src*='segments=2']")
    assert "segments=2" in page.url
    page.select_option("#smoothness", "10")
    expect(page.locator("[data-testid=smoothness]")).to_have_text("10", timeout=TIMEOUT_MS)
    assert_not_reloaded(page)

    page.goto(f"{base}/studies/patches")
    start_simulation(page, 6, "random")  # at least one of six random observers fails the catch trials
    mark(page)
    page.wait_for_selector("tr.look .reasons", timeout=TIMEOUT_MS)
    assert_not_reloaded(page)
    expect(page.locator("[data-testid=completed]")).to_have_text("11", timeout=TIMEOUT_MS)
    guesser = page.inner_text("tr.look a >> nth=0")
    page.click("tr.look a >> nth=0")
    assert "catch trials" in page.inner_text(".card.look")
    page.click("text=Erase this participant…")
    page.check("[name=confirmed]")
    page.click(f"text=Erase {guesser} permanently")
    page.wait_for_selector(f"h1:has-text('{guesser} was erased')")
    page.click("text=Back to the study")
    expect(page.locator("[data-testid=completed]")).to_have_text("10")
    assert guesser not in page.inner_text("#participants")

    with page.expect_download() as download:
        page.click("text=Download")
    download.value.save_as(tmp_path / "data.zip")
    assert "patches/dataset_description.json" in zipfile.ZipFile(tmp_path / "data.zip").namelist()
    before = page.inner_text(".tiles >> nth=0")
    page.reload()
    assert page.inner_text(".tiles >> nth=0") == before
    assert problems == []


def test_page_shows_changes_by_another_researcher(dashboard, browser):
    base, page = dashboard()
    page.goto(f"{base}/studies/served")
    mark(page)
    other = browser.new_context()
    second = other.new_page()
    log_in(second, base)
    second.goto(f"{base}/studies/served")
    second.click("text=Pause")
    expect(page.locator("h1 .pill")).to_have_text("paused", timeout=TIMEOUT_MS)
    assert_not_reloaded(page)
    other.close()


def test_update_keeps_open_hints_and_focus(dashboard):
    base, page = dashboard()
    page.goto(f"{base}/studies/served")
    page.focus(".hint summary >> nth=0")
    page.keyboard.press("Enter")
    mark(page)
    page.evaluate("window.before = document.querySelector('.hint')")
    page.request.post(f"{base}/s/served/sessions", data={"consented": True, "entry": "a" * 32})
    expect(page.locator(".tiles >> nth=0")).to_contain_text("11 places left", timeout=TIMEOUT_MS)
    assert page.evaluate(
        "window.before.open && window.before.isConnected && window.before.contains(document.activeElement)"
    )
    assert_not_reloaded(page)


def test_banner_while_the_server_is_away_or_the_login_has_ended(serve, context):
    server = serve(STUDY)
    base, page = open_logged_in(server, context)
    page.goto(f"{base}/studies/served")
    mark(page)
    server.kill()
    page.wait_for_selector("#banner:has-text('does not answer')")
    server.start()
    page.wait_for_selector("#banner", state="detached")
    with store.open(server.db) as db:
        store.researchers.log_out(db, NAME)
    page.wait_for_selector("#banner:has-text('logged out')")
    assert_not_reloaded(page)


def test_forms_work_without_scripts(dashboard, browser):
    base, page = dashboard()
    plain = browser.new_context(java_script_enabled=False, storage_state=page.context.storage_state())
    static = plain.new_page()
    static.goto(f"{base}/studies/served/images/left")
    static.select_option("#segments", "4")
    static.click("text=Show")
    assert "segments=4" in static.url
    assert "108 pairs missing" in static.inner_text("main")
    plain.close()


def test_keyboard_reaches_everything(dashboard):
    base, page = dashboard()
    page.goto(f"{base}/studies/served")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("(document.activeElement.textContent || document.activeElement.name || '').trim()")
        )
    assert {"Preview", "Pause", "Close", "Download", "Start simulation", "Copy"} <= reached


def test_every_page_is_accessible_and_fits(dashboard, tmp_path):
    """Check each page in both colour schemes and both widths with axe-core, and that it is not wider than the window.

    A page is loaded once, narrow and in one scheme, and then switched to wide and the other scheme; pages alternate
    between light and dark. Its structure is the same in both, so that the second check is about colours only.
    """
    base, page = dashboard()
    simulate_careless_participants(page, base)
    page.wait_for_selector("tr.look")
    name_in_review = page.inner_text("tr.look a >> nth=0")
    image, participant = "/studies/served/images/left", f"/studies/served/participants/{name_in_review}"
    for path in (image, participant):
        page.request.get(base + path)  # their posteriors are computed while other pages are checked
    pages = {
        "studies": "/",
        "new": "/new?sample=patches",
        "study": "/studies/served",
        "too-few": f"{image}?segments=12&participant={name_in_review}",
        "data": "/studies/served/data",
        "settings": "/settings",
        "not-found": "/foo",
        "image": image,
        "participant": participant,
        "login": "/login",
    }
    folder = Path(os.environ.get("VSEG_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    findings: list[str] = []
    page.on("pageerror", lambda error: findings.append(f"{page.url}: {error}"))
    page.on(
        "console",
        lambda message: "Content Security" in message.text and findings.append(f"{page.url}: {message.text}"),
    )
    for number, (name, path) in enumerate(pages.items()):
        if name == "login":
            page.context.clear_cookies()
        first, second = ("light", "dark") if number % 2 else ("dark", "light")
        show(page, first, "phone")
        page.goto(base + path)
        wait_until_loaded(page)
        page.evaluate(AXE.read_text(encoding="utf-8"))
        findings += check_page(page, folder / f"{name}-{first}-phone.png", ALL_RULES)
        show(page, second, "wide")
        findings += check_page(page, folder / f"{name}-{second}-wide.png", COLOUR_RULES)
    assert findings == []


def test_help_is_beside_its_words_and_inside_the_window(dashboard):
    base, page = dashboard(f"{STUDY}contours = {{draw = true}}\n")
    simulate_careless_participants(page, base)
    name = page.inner_text(".people tbody a >> nth=0")
    pages = {
        "/studies/served": "catch trials",
        "/studies/served/images/left": "boundary F",
        f"/studies/served/participants/{name}": "boundary F",
    }
    findings: list[str] = []
    for path, term in pages.items():
        page.goto(base + path)
        wait_until_loaded(page)
        assert page.locator(f"summary[aria-label*='“{term}”']").count()
        for width in (1280, 800, 390):
            page.set_viewport_size({"width": width, "height": 900})
            findings += [f"{path}, {width} px: {found}" for found in page.evaluate(FIND_STRAY_HELP)]
    assert findings == []


# Opens each help box in turn, and compares its "?" with the end of the words before it.
FIND_STRAY_HELP = """() => [...document.querySelectorAll('.hint')].flatMap((hint) => {
  const summary = hint.querySelector('summary'), mark = summary.getBoundingClientRect();
  if (!mark.width) return [];  // in details that are closed
  const found = [], name = summary.ariaLabel;
  hint.open = true;
  const box = hint.querySelector('div').getBoundingClientRect();
  if (box.left < 0 || box.right > document.documentElement.clientWidth || box.width < 100)
    found.push(`${name} is from ${box.left} to ${box.right}`);
  hint.open = false;
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  texts.currentNode = hint;
  let words = texts.previousNode();
  while (words && !words.data.trim()) words = texts.previousNode();
  const range = document.createRange();
  range.selectNodeContents(words);
  const line = [...range.getClientRects()].at(-1);
  if (line.bottom <= mark.top || line.top >= mark.bottom) found.push(`${name} is not beside ${words.data.trim()}`);
  return found;
})"""
ALL_RULES = "{resultTypes: ['violations']}"
COLOUR_RULES = "{resultTypes: ['violations'], runOnly: ['color-contrast', 'link-in-text-block']}"


def simulate_careless_participants(page: Page, base: str) -> None:
    """Simulate five participants with many lapses, so that there are maps and some need review."""
    token = page.request.get(f"{base}/api/me").json()["csrf_token"]
    address, headers = f"{base}/api/studies/served/simulate", {"X-CSRF-Token": token}
    settings = {"count": 5, "source": "truth", "observer": "lapsing:0.7", "seed": 3}
    assert page.request.post(address, data=settings, headers=headers).ok
    page.goto(f"{base}/studies/served")
    expect(page.locator("[data-testid=completed]")).to_have_text("5", timeout=TIMEOUT_MS)


def show(page: Page, scheme: str, size: str) -> None:
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme)


def wait_until_loaded(page: Page) -> None:
    """Wait until all parts and pictures that load later are there."""
    for pending in ("[data-live-now]", "[data-key=pending]"):
        page.wait_for_selector(pending, state="detached", timeout=TIMEOUT_MS)
    page.wait_for_function(
        "() => [...document.images].every((image) => image.complete || image.loading === 'lazy')",
        timeout=TIMEOUT_MS,
    )


def check_page(page: Page, file: Path, options: str) -> list[str]:
    """Take a screenshot of the page and return its problems."""
    page.screenshot(path=file, full_page=True)
    problems = []
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        problems.append(f"{file.stem}: wider than the window")
    found = json.loads(page.evaluate(f"axe.run({options}).then((found) => JSON.stringify(found.violations))"))
    return problems + [
        f"{file.stem}: {violation['id']} {violation['nodes'][0]['html'][:200]}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
    ]
