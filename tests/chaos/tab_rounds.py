"""A fault of the page as a row of the table: one participant, whose export is compared with what the page was told."""

import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Error

import vseg
from chaos.checking import Found, Verdict, exported, in_export
from chaos.people import answer
from chaos.rounds import Outcome
from chaos.tabs import FAULTS, ITEMS, TURNED_AWAY, Desk
from vseg import store


def outcome_of(name: str, browser: Browser, link: str, url: str, folder: Path) -> Outcome:
    began = time.perf_counter()
    outcome = Outcome(name, "Chromium", planned=1, injected=1, people=1, sessions=1)
    desk = Desk(browser, link)
    try:
        FAULTS[name](desk)
        outcome.completed = int(name in TURNED_AWAY or "THANKS42" in desk.visitors[-1].words())
    except (AssertionError, Error) as error:
        outcome.wrong.append(str(error)[:300])
    outcome.wrong += desk.problems
    desk.context.close()
    with store.open(url) as db:
        exported(db, "tabs", folder)
    session = desk.visitors[-1].state.get("session")
    found = [each for each in in_export(folder) if each[0][0] == session]
    outcome.responses = len(desk.ledger.acknowledged)
    outcome.verdict = _verdict(desk, found)
    outcome.map_equal = name in TURNED_AWAY or _same_map(found)
    outcome.seconds = time.perf_counter() - began
    return outcome


def _verdict(desk: Desk, found: Found) -> Verdict:
    """An item may be there twice here: what was not shown right is asked again. A number may not."""
    stored, told = dict(found), desk.ledger.acknowledged
    changed = sum(stored[key] != given for key, given in told.items() if key in stored)
    return Verdict(len(told.keys() - stored.keys()), len(found) - len(stored), changed)


def _same_map(found: Found) -> bool:
    """Beside the map of the same pairs, answered as this person answers, in an undisturbed order."""
    asked = {given[0]: given for _, given in found}
    if asked.keys() != set(range(ITEMS)):
        return False
    answers = [asked[item] for item in range(ITEMS)]
    maps = []
    for same in ([each[3] for each in answers], [answer(i, j, item) for item, i, j, _ in answers]):
        i, j = [each[1] for each in answers], [each[2] for each in answers]
        responses = vseg.Responses(vseg.Grid(4), i=i, j=j, same=same)
        maps.append(vseg.reconstruct(responses, segments=2, smoothness=1.0, seed=0).maps.probabilities)
    return bool(np.array_equal(*maps))
