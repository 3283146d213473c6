"""A full-screen browser for one participant in the lab: an installed browser with a temporary profile."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vseg._support.subprocesses import start_program, stop_group
from vseg._support.temporary_folders import temporary_folder
from vseg.errors import InvalidInput

NAMES = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge",
    "microsoft-edge-stable", "msedge",
)  # fmt: skip
APPLICATIONS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
PROGRAMS = (
    "Google/Chrome/Application/chrome.exe",
    "Chromium/Application/chrome.exe",
    "Microsoft/Edge/Application/msedge.exe",
)
PROGRAM_FOLDERS = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")

# The browser shows no questions or offers, and loads nothing but the study.
QUIET = (
    "--no-first-run", "--no-default-browser-check", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-extensions", "--disable-default-apps", "--disable-domain-reliability",
    "--disable-session-crashed-bubble", "--disable-features=Translate,MediaRouter,OptimizationHints",
    "--no-pings", "--password-store=basic", "--use-mock-keychain", "--overscroll-history-navigation=0",
    "--disable-pinch",
)  # fmt: skip
WINDOW = "--window-size=1280,900"
CLOSE_TIMEOUT_S = 5


def find_browser(program: str | None = None) -> str | None:
    """Return the path of an installed Chromium, Chrome or Edge, or None; raise InvalidInput if `program` is missing."""
    if program is not None:
        path = shutil.which(program)
        if path is None:
            raise InvalidInput(
                f"Expected the path of a Chromium, Chrome or Edge browser, got {program!r}, which is not a program."
            )
        return path
    folders = [Path(os.environ[name]) for name in PROGRAM_FOLDERS if name in os.environ]
    places = (*APPLICATIONS, *(str(folder / program) for folder in folders for program in PROGRAMS))
    return next(filter(None, map(shutil.which, (*NAMES, *places))), None)


@contextmanager
def open_browser(browser: str, address: str, *, windowed: bool) -> Iterator[subprocess.Popen[bytes]]:
    """Open the browser at this address, full screen without controls unless `windowed`; close it at the end."""
    with temporary_folder("lab") as profile:
        flags = [f"--user-data-dir={profile}", *QUIET, WINDOW if windowed else "--kiosk", f"--app={address}"]
        if sys.platform == "linux" and os.geteuid() == 0:
            # Without this flag it does not start for root; it shows only our own page.
            flags.append("--no-sandbox")
        process = start_program([browser, *flags])
        try:
            yield process
        finally:
            stop_group(process, CLOSE_TIMEOUT_S)
