"""A fault of the page as a row of the table: one participant, whose export is compared with what the page was told."""

import time
from collections import Counter
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
    """Each fault asserts that it has had its effect; only then it is counted."""
    began = time.perf_counter()
    outcome = Outcome(name, "Chromium", planned=1, people=1, sessions=1)
    desk = Desk(browser, link)
    turned_away = name in TURNED_AWAY
    try:
        FAULTS[name](desk)
        outcome.injected = 1
        outcome.completed = int(turned_away or "THANKS42" in desk.visitors[-1].words())
    except (AssertionError, Error) as error:
        outcome.wrong.append(str(error)[:300])
    outcome.wrong += desk.problems
    desk.context.close()
    with store.open(url) as db:
        exported(db, "tabs", folder)
    session = desk.visitors[-1].state.get("session")
    found = [each for each in in_export(folder) if each[0][0] == session]
    outcome.responses = len(desk.ledger.acknowledged)
    if not turned_away and outcome.responses < ITEMS:
        outcome.wrong.append(f"The page was told that {outcome.responses} of {ITEMS} answers are stored.")
    outcome.verdict = _verdict(desk, found)
    outcome.map_equal = turned_away or _same_map(found)
    outcome.seconds = time.perf_counter() - began
    return outcome


def _verdict(desk: Desk, found: Found) -> Verdict:
    """An item may be there twice here: what was not shown right is asked again. A number may not."""
    stored, told = dict(found), desk.ledger.acknowledged
    changed = sum(stored[key] != given for key, given in told.items() if key in stored)
    return Verdict(
        len(told.keys() - stored.keys()), len(found) - len(stored), changed, _invented(desk, found)
    )


def _invented(desk: Desk, found: Found) -> int:
    """Answers for which no key was pressed. What a page says as it is closed, nobody outside of it hears."""
    pressed = Counter(item for visitor in desk.visitors for item in visitor.answered)
    items = Counter(item for _, (item, *_) in found)
    other = sum(same != answer(i, j, item) for _, (item, i, j, same) in found)
    return (items - pressed).total() + other


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
