"""Faults of the page that tests/browser/test_nothing_lost.py has not: sleep, clocks, and a disk that does not keep."""

import os

import pytest
from playwright.sync_api import sync_playwright

from browsers import chromium
from chaos.checking import exported, in_export
from chaos.tabs import FAULTS, ITEMS, STUDY, TURNED_AWAY, Desk
from servers import serving
from vseg import store

HERE = [name for name in FAULTS if name not in ("tab reloaded", "tab crashed", "opened in two tabs")]


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        opened = playwright.chromium.launch(executable_path=chromium(), args=flags)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """One server for all of them: the address of its study, and of its database."""
    folder = tmp_path_factory.mktemp("tabs")
    study = folder / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    url = f"sqlite:///{folder}/tabs.db"
    with serving(study, "--db", url) as server:
        yield server.link("participants"), url


@pytest.mark.parametrize("name", HERE)
def test_the_page_goes_on_and_nothing_is_lost(browser, place, name, tmp_path):
    link, url = place
    desk = Desk(browser, link)
    FAULTS[name](desk)
    if name in TURNED_AWAY:
        assert desk.ledger.acknowledged == {}
        desk.context.close()
        return
    assert "THANKS42" in desk.visitors[-1].words()
    assert desk.problems == []
    desk.context.close()
    with store.open(url) as db:
        exported(db, "tabs", tmp_path / "export")
    session = desk.visitors[-1].state["session"]
    found = [each for each in in_export(tmp_path / "export") if each[0][0] == session]
    assert {given[0] for _, given in found} == set(range(ITEMS))
    assert desk.ledger.acknowledged.keys() <= dict(found).keys()
    assert all(dict(found)[key] == given for key, given in desk.ledger.acknowledged.items())
