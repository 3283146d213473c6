"""Run a fault of the page with one participant, and compare the export with what the server acknowledged."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Error

import vseg
from chaos.checking import Found, Verdict, count_sessions, export_study, read_export, session_names
from chaos.faults import SQLITE
from chaos.participants import answer
from chaos.rounds import Outcome
from chaos.tabs import FAULTS, ITEMS, TURNED_AWAY, Desk
from vseg import store


def run_tab_fault(
    name: str, browser: Browser, link: str, url: str, folder: Path, database: str = SQLITE
) -> Outcome:
    """Run a fault and return its outcome; it counts only if it asserts that it had an effect."""
    began = time.perf_counter()
    turned_away = name in TURNED_AWAY
    outcome = Outcome(name, f"Chromium, {database}", planned=1, people=1, turned_away=int(turned_away))
    with store.open(url) as db:
        before = session_names(db)
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
        export_study(db, "tabs", folder)
    here = count_sessions(folder, but=before)
    outcome.sessions = here["completed"]
    if here.total() != 1 - outcome.turned_away:
        outcome.wrong.append(f"One participant left these sessions: {dict(here)}.")
    found = [each for each in read_export(folder) if each[0][0] not in before]
    outcome.responses = len(desk.acknowledged)
    if not turned_away and outcome.responses < ITEMS:
        outcome.wrong.append(f"Only {outcome.responses} of {ITEMS} answers were acknowledged to the page.")
    outcome.verdict = _verdict(desk, found)
    outcome.map_equal = turned_away or has_same_map(found, _get_trials(desk))
    outcome.seconds = time.perf_counter() - began
    return outcome


def _verdict(desk: Desk, found: Found) -> Verdict:
    """Compare the export with the acknowledged answers.

    An item may occur twice, because trials with a display error are repeated; a sequence number may not.
    """
    stored, told = dict(found), desk.acknowledged
    changed = sum(stored[key] != given for key, given in told.items() if key in stored)
    return Verdict(
        len(told.keys() - stored.keys()), len(found) - len(stored), changed, _count_invented(desk, found)
    )


def _count_invented(desk: Desk, found: Found) -> int:
    """Count the answers for which no key was pressed; requests of a page that is being closed cannot be observed."""
    pressed = Counter(item for visitor in desk.visitors for item in visitor.answered)
    items = Counter(item for _, (item, *_) in found)
    other = sum(same != answer(i, j, item) for _, (item, i, j, same) in found)
    return (items - pressed).total() + other


def _get_trials(desk: Desk) -> dict[str, Any]:
    """Return the trials that the page received."""
    return next((visitor.state["trials"] for visitor in desk.visitors if visitor.state), {})


def has_same_map(found: Found, told: dict[str, Any]) -> bool:
    """Return whether the stored answers give the map of the pairs that the page received, without a fault."""
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
