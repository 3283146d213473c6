"""A participant in a real Chromium, who uses the keyboard alone: `BrowserParticipant(page, url).walk()`."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from playwright.sync_api import Page, TimeoutError as PlaywrightTimeout

TIMEOUT_MS = 30_000
FORWARD = {
    "returning": "returning_go_on", "consent": "consent_agree", "full-screen": "full_screen_enter", "keys": "continue",
    "distance-card": "distance_card_done", "distance-result": "continue", "instructions": "continue",
    "practice": "continue", "block": "continue", "break": "continue", "contours": "contours_skip",
    "debriefing": "continue",
}  # fmt: skip
"""The button that leads on from each step."""

GAMMA = 2.0
WHITE_SHARE = """() => {
  const corner = document.querySelector('canvas.dither').getContext('2d').getImageData(0, 0, 16, 16).data;
  return corner.filter((value, at) => at % 4 === 0 && value > 0).length / 256;
}"""
BLIND_SPOT = """() => {
  const at = (name) => {
    const box = document.getElementById(name)?.getBoundingClientRect();
    return box && (box.left + box.right) / 2;
  };
  const gap = at('virtual-chinrest-square') - at('virtual-chinrest-circle');
  return document.body.dataset.step !== 'distance-blind-spot' || gap > 500;
}"""

CHANGED = """([step, name]) => document.body.dataset.step !== step
  || document.querySelector(`[data-testid=${name}]:enabled`) !== null"""

LAST = ("done", "refused", "left", "other-tab", "error")

TruthFunction = Callable[[dict[str, Any], int], bool]
"""Returns whether the pair of an item is in the same segment, given the session's trials."""


def always_same(_trials: dict[str, Any], _item: int) -> bool:
    return True


class BrowserParticipant:
    """Follows the steps of the page and answers from a truth; `visited` lists the steps in order."""

    def __init__(self, page: Page, url: str, truth: TruthFunction = always_same):
        self.page, self.url, self.truth = page, url, truth
        self.state: dict[str, Any] = {}
        self.visited: list[str] = []
        self.answered: list[int] = []
        self.problems: list[str] = []
        self.keys = {"same": "f", "different": "j"}
        page.set_default_timeout(TIMEOUT_MS)
        page.on("response", self._read_response)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._note_console_error)

    def come(self, query: str = "") -> "BrowserParticipant":
        self.page.goto(self.url + query)
        return self

    def walk(self, until: str = "done", *, trials: int | None = None) -> "BrowserParticipant":
        """Follow the page to the step `until`, or until this number of further trials is answered."""
        enough = None if trials is None else len(self.answered) + trials
        step = self.step()
        while step != until and (enough is None or len(self.answered) < enough):
            assert step not in LAST, f"Reached {step!r} instead of {until!r}: {self.words()} {self.problems}"
            self.take(step)
            step = self.step()
        self._note(step)
        return self

    def step(self) -> str:
        """Return the step of the page; wait until it has one."""
        self.page.wait_for_selector("body[data-step]")
        return str(self.page.evaluate("document.body.dataset.step"))

    def take(self, step: str) -> None:
        """Do what a step requires."""
        self._note(step)
        match step:
            case "response":
                self.answer()
            case "gamma":
                self.match_patch()
            case "distance-blind-spot":
                self.find_blind_spot()
            case _ if step in FORWARD and self.page.query_selector(f"[data-testid={FORWARD[step]}]:enabled"):
                self.choose(FORWARD[step], at=step)
            case "feedback" if self.page.query_selector("[data-testid=continue]"):
                self.choose("continue", at=step)
            case _:
                self.wait_for_change(step)

    def wait_for_change(self, step: str) -> None:
        """Wait at a step that ends by itself, or whose button is not enabled yet, until either may have changed."""
        with suppress(PlaywrightTimeout):  # walk() looks again
            self.page.wait_for_function(
                CHANGED, arg=[step, FORWARD.get(step, "continue")], polling=10, timeout=1000
            )

    def choose(self, name: str, at: str | None = None) -> None:
        """Reach a button by the Tab key and press it; do nothing if the page is no longer at that step."""
        for _ in range(40):
            if at is not None and self.step() != at:
                return
            if self.page.evaluate("document.activeElement?.dataset?.testid") == name:
                self.page.keyboard.press("Enter")
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"The Tab key does not reach {name!r} at {self.step()!r}.")

    def answer(self) -> None:
        """Answer the trial on the screen, and wait until it is gone."""
        shown = self.page.evaluate("document.body.dataset.item")
        if shown is None:  # the page has continued in the meantime
            return
        item = int(shown)
        same = self.truth(self.state["trials"], item)
        self.page.keyboard.press(self.keys["same" if same else "different"])
        self.answered.append(item)
        self.page.wait_for_function(
            "item => document.body.dataset.step !== 'response' || document.body.dataset.item !== item",
            arg=str(item),
            polling=10,
        )

    def match_patch(self) -> None:
        """Set the disc by the arrow keys to the grey that a screen of gamma 2 needs, and confirm."""
        page, slider = self.page, "[data-testid=gamma_level]"
        share = page.evaluate(WHITE_SHARE)
        page.focus(slider)
        wanted, level = round(255 * share ** (1 / GAMMA)), int(page.input_value(slider))
        for _ in range(abs(wanted - level)):
            page.keyboard.press("ArrowUp" if wanted > level else "ArrowDown")
        page.keyboard.press("Enter")

    def find_blind_spot(self) -> None:
        """Start the dot by the space bar, and stop it 500 pixels out."""
        self.page.keyboard.press(" ")
        self.page.wait_for_function(BLIND_SPOT, polling="raf")
        self.page.keyboard.press(" ")

    def words(self) -> str:
        return self.page.inner_text("body")

    def _note(self, step: str) -> None:
        if not self.visited or self.visited[-1] != step:
            self.visited.append(step)

    def _note_console_error(self, message: Any) -> None:
        """Note errors on the page's console, except for failed requests, which tests provoke."""
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(message.text)

    def _read_response(self, response: Any) -> None:
        path = response.url.partition("?")[0]
        if path.endswith(("/sessions", "/session", "/preview")) and response.ok:
            self.state = response.json()
