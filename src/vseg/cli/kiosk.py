"""A browser for one participant: the one that is installed, with a profile that is new and gone afterwards."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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

# Nothing is asked, offered or fetched beside the study itself.
QUIET = (
    "--no-first-run", "--no-default-browser-check", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-extensions", "--disable-default-apps", "--disable-domain-reliability",
    "--disable-session-crashed-bubble", "--disable-features=Translate,MediaRouter,OptimizationHints",
    "--no-pings", "--password-store=basic", "--use-mock-keychain", "--overscroll-history-navigation=0",
    "--disable-pinch",
)  # fmt: skip
WINDOW = "--window-size=1280,900"
CLOSES_WITHIN_S = 5


def found(given: str | None = None) -> str | None:
    """The path of a Chromium, Chrome or Edge; None if there is none. `given` is one that has to be there."""
    if given is not None:
        path = shutil.which(given)
        if path is None:
            raise InvalidInput(
                f"--browser is the path of a Chromium, Chrome or Edge, and {given!r} is no program here; "
                "leave it out, or give --no-browser."
            )
        return path
    folders = [Path(os.environ[name]) for name in PROGRAM_FOLDERS if name in os.environ]
    places = (*APPLICATIONS, *(str(folder / program) for folder in folders for program in PROGRAMS))
    return next(filter(None, map(shutil.which, (*NAMES, *places))), None)


@contextmanager
def opened(browser: str, address: str, *, windowed: bool) -> Iterator[subprocess.Popen[bytes]]:
    """The browser at this address, full screen and without anything around the page; closed at the end."""
    with tempfile.TemporaryDirectory(prefix="vseg-lab-", ignore_cleanup_errors=True) as profile:
        flags = [f"--user-data-dir={profile}", *QUIET, WINDOW if windowed else "--kiosk", f"--app={address}"]
        if sys.platform == "linux" and os.geteuid() == 0:
            # It would not start for root otherwise, and shows nothing but our own page.
            flags.append("--no-sandbox")
        process = subprocess.Popen(
            [browser, *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl+C is for us; its own processes end with it
        )
        try:
            yield process
        finally:
            _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        _end(process, forced=False)
    try:
        process.wait(CLOSES_WITHIN_S)
    except subprocess.TimeoutExpired:
        _end(process, forced=True)
        process.wait()


def _end(process: subprocess.Popen[bytes], *, forced: bool) -> None:
    if sys.platform == "win32":
        end = process.kill if forced else process.terminate
        end()
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL if forced else signal.SIGTERM)
