"""A fault of the page as a row of the table: one participant, whose export is compared with what the page was told."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Error

import vseg
from chaos.checking import Found, Verdict, exported, in_export, names_in, sessions_in
from chaos.faults import SQLITE
from chaos.people import answer
from chaos.rounds import Outcome
from chaos.tabs import FAULTS, ITEMS, TURNED_AWAY, Desk
from vseg import store


def outcome_of(
    name: str, browser: Browser, link: str, url: str, folder: Path, database: str = SQLITE
) -> Outcome:
    """Each fault asserts that it has had its effect; only then it is counted."""
    began = time.perf_counter()
    turned_away = name in TURNED_AWAY
    outcome = Outcome(name, f"Chromium, {database}", planned=1, people=1, turned_away=int(turned_away))
    with store.open(url) as db:
        before = names_in(db)
    desk = Desk(browser, link)
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
    here = sessions_in(folder, but=before)
    outcome.sessions = here["completed"]
    if here.total() != 1 - outcome.turned_away:
        outcome.wrong.append(f"One person has left these sessions: {dict(here)}.")
    found = [each for each in in_export(folder) if each[0][0] not in before]
    outcome.responses = len(desk.acknowledged)
    if not turned_away and outcome.responses < ITEMS:
        outcome.wrong.append(f"The page was told that {outcome.responses} of {ITEMS} answers are stored.")
    outcome.verdict = _verdict(desk, found)
    outcome.map_equal = turned_away or same_map(found, _told(desk))
    outcome.seconds = time.perf_counter() - began
    return outcome


def _verdict(desk: Desk, found: Found) -> Verdict:
    """An item may be there twice here: what was not shown right is asked again. A number may not."""
    stored, told = dict(found), desk.acknowledged
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


def _told(desk: Desk) -> dict[str, Any]:
    """The trials that the page was told to show."""
    return next((visitor.state["trials"] for visitor in desk.visitors if visitor.state), {})


def same_map(found: Found, told: dict[str, Any]) -> bool:
    """Beside the map of the pairs that the page was told, answered as this person answers, in an undisturbed order."""
    stored = {given[0]: given for _, given in found}
    if not told or stored.keys() != set(range(ITEMS)):
        return False
    pairs = [(told["i"][item], told["j"][item]) for item in range(ITEMS)]
    wanted = [(item, i, j, answer(i, j, item)) for item, (i, j) in enumerate(pairs)]
    maps = []
    for answers in ([stored[item] for item in range(ITEMS)], wanted):
        _, i, j, same = zip(*answers, strict=True)
        responses = vseg.Responses(vseg.Grid(4), i=i, j=j, same=same)
        maps.append(vseg.reconstruct(responses, segments=2, smoothness=1.0, seed=0).maps.probabilities)
    return bool(np.array_equal(*maps))
