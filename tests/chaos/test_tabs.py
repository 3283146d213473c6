"""Faults of the page that tests/browser/test_nothing_lost.py does not test: sleep, wrong clocks and full storage."""

import pytest

from browsers import launched
from chaos.tab_rounds import run_tab_fault
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
def server_and_database(tmp_path_factory):
    """Run one server for all tests; return the links to its study and its database."""
    folder = tmp_path_factory.mktemp("tabs")
    study = folder / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    url = f"sqlite:///{folder}/tabs.db"
    with run_server_process(study, "--db", url) as server:
        yield server.link("participants"), url


@pytest.mark.parametrize("name", HERE)
def test_the_page_continues_and_nothing_is_lost(browser, server_and_database, name, tmp_path):
    outcome = run_tab_fault(name, browser, *server_and_database, tmp_path / "export")
    assert outcome.passed, outcome
