"""The Chromium or Chrome that the browser tests drive: $VSEG_CHROMIUM, or the first one on the path."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


def chromium() -> str:
    """Its path; SystemExit with a sentence where there is none."""
    if given := os.environ.get("VSEG_CHROMIUM"):
        if not Path(given).exists():
            sys.exit(
                f"VSEG_CHROMIUM names {given}, which is not there; give the path of a Chromium or Chrome."
            )
        return given
    found = next(filter(None, map(shutil.which, NAMES)), None) or next(
        (place for place in PLACES if Path(place).exists()), None
    )
    if found is None:
        sys.exit(
            f"The browser tests need Chromium or Chrome; found none of {', '.join(NAMES)}. "
            "Install one (Debian, Ubuntu: apt install chromium) or set VSEG_CHROMIUM to its path."
        )
    return found


@contextmanager
def launched() -> "Iterator[Browser]":
    """A browser while the block lasts: while Playwright runs, its event loop does, and nobody can have another."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium(), args=flags)
        yield browser
        browser.close()


if __name__ == "__main__":
    print(chromium())
