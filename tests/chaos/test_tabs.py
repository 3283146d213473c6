"""Faults of the page that tests/browser/test_nothing_lost.py has not: sleep, clocks, and a disk that does not keep."""

import pytest

from browsers import launched
from chaos.tab_rounds import outcome_of
from chaos.tabs import STUDY
from servers import run_server_process

HERE = (
    "tab put to sleep",
    "clock 30 years fast",
    "IndexedDB full",
    "site data blocked",
)  # make chaos runs all of them


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """One server for all of them: the address of its study, and of its database."""
    folder = tmp_path_factory.mktemp("tabs")
    study = folder / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    url = f"sqlite:///{folder}/tabs.db"
    with run_server_process(study, "--db", url) as server:
        yield server.link("participants"), url


@pytest.mark.parametrize("name", HERE)
def test_the_page_goes_on_and_nothing_is_lost(browser, place, name, tmp_path):
    outcome = outcome_of(name, browser, *place, tmp_path / "export")
    assert outcome.well, outcome
