"""Chromium, and `vseg serve` in a process of its own, so that neither disturbs the timing of the other."""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from browser_participants import BrowserParticipant, TruthFunction, always_same
from browsers import launched
from servers import STUDY, register_studies, start_server_process
from vseg import store

WINDOW = {"width": 1280, "height": 900}
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return a browser, closed after each module: other tests cannot run an event loop while Playwright does."""
    with launched() as browser:
        yield browser


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    opened = browser.new_context(viewport=WINDOW, screen=WINDOW)
    yield opened
    opened.close()


class Server:
    """`vseg serve` on a study; it can be killed and started again on the same port and database."""

    def __init__(self, study: Path, db: str, *options: str):
        self.study, self.db, self.options, self.port = study, db, options, "0"
        self.start()

    def start(self) -> None:
        self.running = start_server_process(self.study, "--db", self.db, *self.options, port=self.port)
        self.url = self.running.link("participants")
        self.name = self.url.split("/s/")[1].strip("/")
        self.port = self.url.split(":")[2].split("/")[0]

    def kill(self) -> None:
        self.running.kill()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    running: list[Server] = []

    def start(text: str, *options: str) -> Server:
        study = tmp_path / "study.toml"
        study.write_text(text, encoding="utf-8")
        running.append(Server(study, f"sqlite:///{tmp_path}/study.db", *options))
        return running[-1]

    yield start
    for server in running:
        server.kill()


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("shared")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    server = Server(folder / "study.toml", f"sqlite:///{folder}/study.db")
    yield server
    server.kill()


@dataclass(frozen=True)
class SharedStudy:
    """A study on a server that the tests of a module share."""

    name: str
    url: str
    db: str


@pytest.fixture
def share(shared_server: Server) -> Callable[[str], SharedStudy]:
    """Return a function that serves a study under a name of its own, which is quicker than a server of its own."""

    def add(text: str) -> SharedStudy:
        name = f"study-{next(NUMBERS)}"
        with store.open(shared_server.db) as database:
            register_studies(database, re.sub('^name = ".*"', f'name = "{name}"', text, flags=re.MULTILINE))
        return SharedStudy(name, shared_server.url.replace(shared_server.name, name), shared_server.db)

    return add


@pytest.fixture
def visitor(context: BrowserContext) -> Iterator[Callable[..., BrowserParticipant]]:
    """Return a function that opens a study as a participant; errors on the page fail the test."""
    visitors: list[BrowserParticipant] = []

    def come(url: str, query: str = "", truth: TruthFunction = always_same) -> BrowserParticipant:
        visitors.append(BrowserParticipant(context.new_page(), url, truth).come(query))
        return visitors[-1]

    yield come
    for participant in visitors:
        assert participant.problems == []
