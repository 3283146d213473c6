"""film_study(): the participant's way through a study, recorded from the page in a browser, as GIF and HTML.

The study runs on a server of this computer, as a researcher's preview, so nothing is stored. The page's clock is
stopped and moved on frame by frame while pictures are taken, so that the film has the page's timing however slow the
computer is. Trials that are not filmed run through at once.
"""

import io
import math
import os
import secrets
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vseg import store
from vseg._support.atomic_files import atomic_write
from vseg._support.html_report import Report
from vseg._support.optional_imports import import_playwright
from vseg._support.temporary_folders import temporary_folder
from vseg._support.text import format_count
from vseg.errors import Conflict, NotFound
from vseg.server import auth, kiosk
from vseg.server.app import check_page_is_built
from vseg.server.runner import serve_in_thread
from vseg.server.sockets import open_socket
from vseg.study.pictures import load_study_with_pictures
from vseg.study.schema import Study

if TYPE_CHECKING:
    from PIL.Image import Image
    from playwright.sync_api import Page, Request

WINDOW_PX = (1280, 900)
REFRESH_HZ = 60
READ_MS = 3000  # how long the film shows a screen that waits for the participant
ANSWER_MS = 730  # when a key is pressed: the paper's median
SWEEP_INTERVAL_MS = 250  # between pictures of the moving dot
STALLED_S = 60
SCREEN_GAMMA = 2.2  # of the filmed participant's screen
BLIND_SPOT_PX = 510  # with the card as large as it is at first, a viewing distance of 57 cm
PRACTICE_TRIALS = 2  # filmed: one answered correctly, one not
CAPTION_PX = 44

SELF_PACED = "until the participant goes on"
TITLES = {
    "device": "Check of the device",
    "consent": "Consent",
    "full-screen": "Full screen",
    "keys": "The two keys",
    "distance-card": "Viewing distance: the size of a card",
    "distance-blind-spot": "Viewing distance: the blind spot",
    "distance-result": "Viewing distance: the result",
    "gamma": "Gamma of the screen: matching a disc to a pattern",
    "instructions": "Instructions",
    "practice": "Before practice",
    "block": "Before a block",
    "preview": "The whole image",
    "pause": "Trial: pause",
    "cue": "Trial: two circles on grey",
    "image": "Trial: the circles on the image",
    "response": "Trial: question",
    "feedback": "Feedback in practice",
    "break": "Break",
    "contours": "Drawing the contours",
    "debriefing": "Debriefing",
    "done": "The end",
}
BUTTONS = {
    "consent": "consent_agree", "full-screen": "full_screen_enter", "distance-card": "distance_card_done",
}  # fmt: skip
KEYS = {"arrowleft": "ArrowLeft", "arrowright": "ArrowRight", "arrowup": "ArrowUp", "arrowdown": "ArrowDown",
        "space": " ", "enter": "Enter"}  # fmt: skip

# Frames at a fixed rate of the stopped clock (Playwright's own have 62.5 Hz), and what the canvas of the trials shows:
# every drawing begins with the background.
INSTRUMENTS = """(hz) => {
  const frame_ms = 1000 / hz;
  window.requestAnimationFrame = (callback) => {
    const now = performance.now();
    const next = (Math.floor(now / frame_ms + 1e-6) + 1) * frame_ms;
    return setTimeout(() => callback(performance.now()), next - now);
  };
  window.cancelAnimationFrame = clearTimeout;
  window.drawing = {parts: '', at_ms: 0};
  const context = CanvasRenderingContext2D.prototype;
  for (const [name, part] of [['fillRect', ''], ['drawImage', 'image '], ['fill', 'circles '], ['fillText', 'text ']]) {
    const draw = context[name];
    context[name] = function (...parameters) {
      if (this.canvas.id === 'trial-canvas') {
        if (name === 'fillRect') window.drawing = {parts: '', at_ms: performance.now()};
        if (!window.drawing.parts.includes(part)) window.drawing.parts += part;
      }
      return draw.apply(this, parameters);
    };
  }
}"""
# The parts of the drawings of each phase; a preview has a text if there is space for it.
PARTS = {
    "preview": ("image ", "image text "), "pause": ("",), "cue": ("circles ",), "image": ("image circles ",)
}  # fmt: skip
# Participants do not see the note of a preview; a style sheet in a tag would violate the page's policy.
HIDE_BANNER = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('#preview-banner { display: none }');
  document.adoptedStyleSheets.push(sheet);
}"""
STATE = """() => ({step: document.body.dataset.step ?? '', item: document.body.dataset.item ?? '', drawing,
  words: document.getElementById('experiment')?.innerText ?? ''})"""
WHITE_SHARE = """() => {
  const corner = document.querySelector('canvas.dither').getContext('2d').getImageData(0, 0, 16, 16).data;
  return corner.filter((value, at) => at % 4 === 0 && value > 0).length / 256;
}"""
DOT_OFFSET_PX = """() => {
  const centre = (name) => {
    const box = document.getElementById(name)?.getBoundingClientRect();
    return box ? (box.left + box.right) / 2 : 0;
  };
  return centre('virtual-chinrest-square') - centre('virtual-chinrest-circle');
}"""


@dataclass(frozen=True)
class FilmedScreen:
    """One picture of the film.

    Attributes
    ----------
    step : str
        The page's name of the step; "pause", "cue" and "image" are the phases of a trial.
    title : str
        The name of the step in words.
    timing : str
        How long participants see it: a duration, or what ends it.
    duration_ms : int
        How long the film shows it: as long as the page, or 3 s if it waits for the participant.
    png : bytes
    moves : bool
        Whether it continues the movement of the picture before it; the page of the film does not list it.
    """

    step: str
    title: str
    timing: str
    duration_ms: int
    png: bytes = field(repr=False)
    moves: bool = False

    @property
    def caption(self) -> str:
        """The name of the step and its duration."""
        return f"{self.title}, {self.timing}"


@dataclass(frozen=True)
class Film:
    """The screens of a study in the order in which a participant sees them.

    Attributes
    ----------
    study : Study
    screens : list of FilmedScreen
        The pictures of the film; a screen on which something moves has several.
    """

    study: Study
    screens: list[FilmedScreen]

    @property
    def listed(self) -> list[FilmedScreen]:
        """The screens that the page of the film lists: all but those that continue a movement."""
        return [screen for screen in self.screens if not screen.moves]

    def save(self, folder: str | Path) -> list[Path]:
        """Write film.gif and film.html into a folder, which is created; return their paths."""
        folder = Path(folder)
        gif = self.gif()
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / "film.gif", "wb") as file:
            file.write(gif)
        return [folder / "film.gif", self._page(gif).save(folder / "film.html")]

    def gif(self) -> bytes:
        """Return the film as an animated GIF, with a caption below each screen."""
        from PIL import Image

        numbers = accumulate(int(not screen.moves) for screen in self.screens)
        frames = [
            _add_caption(f"{number}  {screen.caption}", screen.png).quantize(256, dither=Image.Dither.NONE)
            for number, screen in zip(numbers, self.screens, strict=True)
        ]
        durations = [screen.duration_ms for screen in self.screens]
        file = io.BytesIO()
        frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0)
        return file.getvalue()

    def _page(self, gif: bytes) -> Report:
        name = self.study.title or self.study.name
        page = Report(
            f"What participants see: {name}",
            f"The screens of the study {self.study.name}, recorded from its page, with its own texts and images.",
        )
        page.section("Film")
        page.text(
            "Timed screens are shown for as long as participants see them, at "
            f"{_choose_refresh(self.study):g} frames per second. A screen that waits for the participant is shown for "
            f"{READ_MS / 1000:g} s, and a question for {ANSWER_MS} ms. The answers and settings in the film are "
            "examples."
        )
        page.figure(gif, alt="The film: all screens below, one after the other.", caption="film.gif")
        page.section("Screens")
        rows = [
            [str(number), screen.title, screen.timing] for number, screen in enumerate(self.listed, start=1)
        ]
        page.table(["", "screen", "duration"], rows, caption="The screens in their order.")
        for number, screen in enumerate(self.listed, start=1):
            page.figure(screen.png, alt=screen.title, caption=f"{number}. {screen.caption}")
        return page


def film_study(
    path: str | Path, *, browser: str | None = None, window_px: tuple[int, int] = WINDOW_PX, trials: int = 3
) -> Film:
    """Film what a participant sees, from the first screen to the last, in a browser without a window.

    Needs playwright (`pip install "vseg[film]"`) and an installed Chromium, Chrome or Edge.

    Parameters
    ----------
    path : str or Path
        A study file.
    browser : str, optional
        The program of the browser; by default, an installed one is found.
    window_px : tuple of int
        Width and height of the window, made larger if the study requires it.
    trials : int
        How many trials of the first block are filmed.

    Returns
    -------
    Film
        The screens; `Film.save` writes them as GIF and HTML.

    Examples
    --------
    >>> film_study("my-study.toml").save("my-film")  # doctest: +SKIP
    """
    import_playwright()
    program = kiosk.find_browser(browser)
    if program is None:
        raise NotFound(
            "No Chromium, Chrome or Edge was found, which a film is recorded with; install one of them (on Debian or "
            "Ubuntu: apt install chromium), or give the path of its program as browser."
        )
    check_page_is_built()
    text, study, pictures = load_study_with_pictures(path)
    with (
        temporary_folder("film") as folder,
        open_socket("127.0.0.1", 0) as listening,
        store.open(f"sqlite:///{(folder / 'film.db').as_posix()}") as db,
    ):
        store.studies.register(db, text, study, pictures)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        auth.set_password(db, "film", secrets.token_urlsafe(12))
        sign_in = f"{address}/signin?token={auth.create_sign_in_token(db, 'film')}&next=/"
        width, height = (max(sizes) for sizes in zip(window_px, study.display.window_px, strict=True))

        def record() -> list[FilmedScreen]:
            return _record(
                program, study, sign_in, f"{address}/s/{study.name}/?preview=1", (width, height), trials
            )

        # In a thread, since Playwright refuses to run where an event loop does, as in a notebook.
        with serve_in_thread(db, listening), ThreadPoolExecutor(1) as thread:
            return Film(study, thread.submit(record).result())


def _record(
    program: str, study: Study, sign_in: str, address: str, window: tuple[int, int], trials: int
) -> list[FilmedScreen]:
    from playwright.sync_api import Error, sync_playwright

    # Without this flag a browser does not start for root; it shows only our own page.
    flags = ["--no-sandbox"] if sys.platform == "linux" and os.geteuid() == 0 else []
    size: Any = {"width": window[0], "height": window[1]}
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=program, args=flags)
        except Error as error:
            raise Conflict(
                f"The browser {program} could not be started ({error.message.splitlines()[0]}); repair it, or give the "
                "path of another as browser."
            ) from error
        try:
            context = browser.new_context(viewport=size, screen=size)
            page = context.new_page()
            page.goto(sign_in)
            page.close()
            return _Recording(context.new_page(), study, trials).run(address)
        finally:
            browser.close()


class _Recording:
    """Goes through the study as a participant and takes pictures of its screens."""

    def __init__(self, page: "Page", study: Study, trials: int):
        self.page, self.study, self.trials = page, study, trials
        self.frame_ms = 1000 / _choose_refresh(study)
        self.time_ms = 0
        self.screens: list[FilmedScreen] = []
        self.filmed: Counter[object] = Counter()
        self.skipped = 0  # trials since the last picture
        self.is_practice = True
        self.answers: list[bool | None] = []  # the right answers of practice and catch trials, by item
        self.in_practice: list[bool] = []

    def run(self, address: str) -> list[FilmedScreen]:
        """Go from the first screen to the last and return the pictures."""
        self.page.on("requestfinished", self._read_session)
        self.page.clock.install()
        self.page.clock.pause_at(time.time() + 1)
        self.page.add_init_script(f"({INSTRUMENTS})({_choose_refresh(self.study)})")
        self.page.goto(address)
        self.page.evaluate(HIDE_BANNER)
        state, changed_at = self._state(), time.monotonic()
        while state["step"] != "done":
            if state["step"] in ("refused", "error", "left") or time.monotonic() - changed_at > STALLED_S:
                raise Conflict(
                    f"The page of study {self.study.name} stopped at the step {state['step']!r} with the words "
                    f"{' '.join(state['words'].split())!r:.300}; go through its preview in a browser to see why."
                )
            self._take(state)
            before, state = state, self._state()
            if state != before:
                changed_at = time.monotonic()
        self._shoot("done", "the last screen")
        return self.screens

    def _take(self, state: dict[str, Any]) -> None:
        """Do what a step requires, and film it if it is to be filmed."""
        step = state["step"]
        match step:
            case "preview":
                self._watch_preview()
            case "trial":
                self._watch_trial(int(state["item"]))
            case "response":
                self._answer(int(state["item"]))
            case "device":
                self._watch_until_change(step)
            case "feedback":
                self._watch_feedback()
            case "distance-blind-spot":
                self._find_blind_spot()
            case "gamma":
                self._match_disc()
            case "contours":
                self._draw_contours()
            case _ if step in TITLES:
                self._go_on(step, state["words"])
            case _:
                self._advance()

    # Screens that wait for the participant.

    def _go_on(self, step: str, words: str) -> None:
        """Film a screen once, each page of the instructions, and press its button."""
        self.is_practice = step == "practice" or (self.is_practice and step != "block")
        button = self.page.query_selector(f"[data-testid={BUTTONS.get(step, 'continue')}]:enabled")
        if button is None:  # it is not there yet
            self._advance(100)
            return
        key = (step, words) if step == "instructions" else step
        if self._is_first(key):
            least_s = self.study.breaks.at_least_s if step == "break" else 0
            self._shoot(step, f"{SELF_PACED}, {least_s} s or more" if least_s else SELF_PACED)
        button.click()
        self._advance()

    def _match_disc(self) -> None:
        """Set the disc as a screen of gamma 2.2 needs it, and confirm; film the first match, before and after."""
        slider = self.page.query_selector("[data-testid=gamma_level]")
        if slider is None:
            self._advance()
            return
        is_filmed = self._is_first("gamma")
        if is_filmed:
            self._shoot("gamma", SELF_PACED)
        share = float(self.page.evaluate(WHITE_SHARE))
        slider.fill(str(round(255 * share ** (1 / SCREEN_GAMMA))))
        self._advance()
        if is_filmed:
            count = format_count(self.study.calibration.gamma_matches, "time")
            self._shoot("gamma", f"{SELF_PACED}; {count} in all")
        self.page.click("[data-testid=gamma_match]")
        self._advance()

    def _find_blind_spot(self) -> None:
        """Start the dot and stop it where it would disappear; film the first time."""
        is_filmed = self._is_first("distance-blind-spot")
        if is_filmed:
            self._shoot("distance-blind-spot", SELF_PACED)
        self.page.keyboard.press(" ")
        waited_ms = 0
        while (
            self._state()["step"] == "distance-blind-spot"
            and self.page.evaluate(DOT_OFFSET_PX) < BLIND_SPOT_PX
        ):
            elapsed_ms = self._advance(SWEEP_INTERVAL_MS if is_filmed else 50)
            if is_filmed:
                timing, moves = "until the dot disappears, several times", waited_ms > 0
                self._shoot("distance-blind-spot", timing, elapsed_ms, moves=moves)
            waited_ms += elapsed_ms
            if waited_ms > 1000 * STALLED_S:
                return
        self.page.keyboard.press(" ")
        self._advance()

    def _draw_contours(self) -> None:
        """Draw a line down the middle and finish; film the empty and the drawn image."""
        surface = self.page.query_selector("[data-testid=drawing]")
        box = surface.bounding_box() if surface is not None else None
        if box is None:
            self._advance()
            return
        is_filmed = self._is_first("contours")
        if is_filmed:
            self._shoot("contours", SELF_PACED)
        mouse = self.page.mouse
        for number in range(25):
            down = number / 24
            x = box["x"] + box["width"] * (0.5 + 0.1 * math.sin(2 * math.pi * down))
            mouse.move(x, box["y"] + box["height"] * (0.01 + 0.98 * down))
            if number == 0:
                mouse.down()
        mouse.up()
        self._advance()
        if is_filmed:
            self._shoot("contours", SELF_PACED)
        self.page.click("[data-testid=contours_skip]")
        self._advance()

    # Screens that end by themselves.

    def _watch_until_change(self, step: str) -> None:
        """Film a screen that ends by itself, with its duration."""
        is_filmed = self._is_first(step)
        png = self._picture() if is_filmed else b""
        elapsed_ms = self._advance()
        while self._state()["step"] == step and elapsed_ms < 1000 * STALLED_S:
            elapsed_ms += self._advance()
        if is_filmed:
            self._add(step, f"about {elapsed_ms / 1000:.0f} s", elapsed_ms, png)

    def _watch_feedback(self) -> None:
        """Film feedback once for a right and once for a wrong answer, which waits for the participant."""
        words = self._state()["words"]
        png = self._picture() if self._is_first(("feedback", words)) else b""
        elapsed_ms, timing = 0, ""
        while self._state()["step"] == "feedback" and not timing:
            if button := self.page.query_selector("[data-testid=continue]:enabled"):
                timing = SELF_PACED
                png = self._picture() if png else b""
                button.click()
            elapsed_ms += self._advance()
        if png:
            self._add("feedback", timing or f"{elapsed_ms} ms", READ_MS if timing else elapsed_ms, png)

    def _watch_preview(self) -> None:
        if self.filmed["preview", self.is_practice]:
            self._advance(self.study.timing.preview_ms)
        elif self._wait_for_drawing("preview", "preview"):
            self.filmed["preview", self.is_practice] += 1
            self._film_drawing("preview", "preview")

    def _watch_trial(self, item: int) -> None:
        """Film the phases of a trial, each until the page draws the next."""
        timing = self.study.timing
        asked = {"pause": timing.pause_ms, "cue": timing.cue_ms, "image": timing.image_ms}
        practice = self.in_practice[item]
        if self.filmed["trial", practice] >= (PRACTICE_TRIALS if practice else self.trials):
            self._advance(sum(asked.values()) + 2 * math.ceil(self.frame_ms))
            return
        for phase in [name for name, duration_ms in asked.items() if duration_ms]:
            if self._wait_for_drawing(phase, "trial"):
                self._film_drawing(phase, "trial")

    def _wait_for_drawing(self, phase: str, step: str) -> bool:
        """Move on frame by frame until the canvas shows a phase or the step ends; return whether it shows it."""
        while (state := self._state())["drawing"]["parts"] not in PARTS[phase] and state["step"] == step:
            self._advance()
        return state["drawing"]["parts"] in PARTS[phase]

    def _film_drawing(self, name: str, step: str) -> None:
        """Film what the canvas shows until the page draws something else, for as long as the page shows it."""
        png, shown = self._picture(), self._state()["drawing"]
        while (state := self._state())["step"] == step and state["drawing"]["parts"] == shown["parts"]:
            shown = state["drawing"]  # a pause is drawn again on a canvas that was empty before
            self._advance()
        duration_ms = round(state["drawing"]["at_ms"] - shown["at_ms"])
        self._add(name, f"{duration_ms} ms", duration_ms, png)

    def _answer(self, item: int) -> None:
        """Answer a practice trial correctly, except the second one, and other trials alternately."""
        practice = self.in_practice[item]
        filmed = self.filmed["trial", practice]
        right = self.answers[item]
        same = item % 2 == 0 if right is None else right != (practice and filmed == 1)
        if filmed < (PRACTICE_TRIALS if practice else self.trials):
            self.filmed["trial", practice] += 1
            png = self._picture()
            self._advance(ANSWER_MS)
            self._add("response", "until a key is pressed", ANSWER_MS, png)
        else:
            self.skipped += 1
        key = self.study.keys.same if same else self.study.keys.different
        self.page.keyboard.press(KEYS.get(key, key))
        self._advance()

    # The clock and the camera.

    def _advance(self, duration_ms: float = 0) -> int:
        """Move the page's clock on, by one frame or for longer; return the milliseconds."""
        end_ms = math.ceil((math.floor(self.time_ms / self.frame_ms + 1e-6) + 1) * self.frame_ms)
        end_ms = max(end_ms, self.time_ms + math.ceil(duration_ms))
        elapsed_ms, self.time_ms = end_ms - self.time_ms, end_ms
        self.page.clock.run_for(elapsed_ms)
        return elapsed_ms

    def _state(self) -> dict[str, Any]:
        return dict(self.page.evaluate(STATE))

    def _picture(self) -> bytes:
        """Return the screen as PNG; texts that fade in are shown."""
        return self.page.screenshot(animations="disabled")

    def _is_first(self, key: object) -> bool:
        self.filmed[key] += 1
        return self.filmed[key] == 1

    def _shoot(self, step: str, timing: str, duration_ms: int = READ_MS, *, moves: bool = False) -> None:
        self._add(step, timing, duration_ms, self._picture(), moves=moves)

    def _add(self, step: str, timing: str, duration_ms: int, png: bytes, *, moves: bool = False) -> None:
        if self.skipped:
            timing += f" (after {format_count(self.skipped, 'trial')} that the film leaves out)"
            self.skipped = 0
        self.screens.append(FilmedScreen(step, TITLES[step], timing, duration_ms, png, moves))

    def _read_session(self, request: "Request") -> None:
        if request.url.endswith("/preview"):
            response = request.response()
            trials = response.json()["trials"] if response is not None else {"answer": [], "practice": []}
            self.answers, self.in_practice = trials["answer"], trials["practice"]


def _choose_refresh(study: Study) -> float:
    """Return the frames per second of the film: 60, or more if the study requires it."""
    return max(REFRESH_HZ, study.display.refresh_hz)


def _add_caption(text: str, png: bytes) -> "Image":
    from PIL import Image, ImageDraw, ImageFont

    screen = Image.open(io.BytesIO(png)).convert("RGB")
    frame = Image.new("RGB", (screen.width, screen.height + CAPTION_PX), "white")
    frame.paste(screen, (0, 0))
    font = ImageFont.load_default(CAPTION_PX // 2)
    ImageDraw.Draw(frame).text(
        (CAPTION_PX // 3, screen.height + CAPTION_PX // 5), text, fill="black", font=font
    )
    return frame
