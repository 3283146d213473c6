"""When to choose and for which items: pure, for every way through a session."""

import pytest
from hypothesis import given, strategies as st

from adaptive_participants import ADAPTIVE_STUDY, SHARED_STUDY, TWO_IMAGE_STUDY
from servers import register_studies
from vseg import store
from vseg.server.participants import make_trial_drawer
from vseg.server.pending_choices import Ahead

MARGIN = 4


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """A study and a new session of each kind."""
    found = {}
    for name, text in {"solo": ADAPTIVE_STUDY, "crowd": SHARED_STUDY, "two": TWO_IMAGE_STUDY}.items():
        with store.open(f"sqlite:///{tmp_path_factory.mktemp(name)}/vseg.db") as db:
            register_studies(db, text)
            study = store.studies.get_study(db, "ada")
            found[name] = study, store.sessions.begin(db, study, make_trial_drawer(study), now_ms=0).session
    return found


def real_items(row) -> list[int]:
    trials = row.trials
    return [item for item in range(len(trials)) if not (trials.practice[item] or trials.catch[item])]


@given(kind=st.sampled_from(["solo", "crowd", "two"]), size=st.integers(3, 30), late=st.integers(0, 2))
def test_every_trial_has_its_choice_if_choosing_takes_no_longer_than_two(sessions, kind, size, late):
    """Whatever the size of batches: who asks for more when four are left has two left when they come."""
    study, row = sessions[kind]
    ahead = Ahead.of(study, row)
    waiting: list[tuple[int, list[int]]] = []
    start = 0 if kind == "crowd" else study.study.start
    for item in range(len(row.trials)):
        while waiting and waiting[0][0] <= item:
            ahead.choices |= dict.fromkeys(waiting.pop(0)[1], (0, 1))
        if not waiting and (need := ahead.need(MARGIN)) is not None:
            items = need.part.items[need.first : need.first + size]
            assert not ahead.choices.keys() & set(items)
            assert min(items) > ahead.asked
            waiting.append((item + late, items))
        part = next((part for part in ahead.parts if item in part.items), None)
        if part is not None and start <= part.items.index(item) and item > real_items(row)[0] + late:
            assert item in ahead.choices, (item, ahead.choices)
        ahead.answered([item])


@given(asked=st.integers(-1, 63), known=st.integers(0, 63))
def test_what_is_told_lies_ahead(sessions, asked, known):
    study, row = sessions["solo"]
    ahead = Ahead.of(study, row)
    ahead.choices = {item: (0, 1) for item in real_items(row) if item < known}
    ahead.answered([asked] if asked >= 0 else [])
    told = ahead.told()["choices"]
    assert told["item"] == [item for item in ahead.choices if item > asked]
    assert {len(column) for column in told.values()} == {len(told["item"])}


def test_who_ran_dry_gets_choices_from_the_trial_after_next(sessions):
    """The trial under way and the next may begin before a choice can arrive."""
    study, row = sessions["solo"]
    ahead = Ahead.of(study, row)
    items = real_items(row)
    ahead.answered(items[:20])
    need = ahead.need(MARGIN)
    assert need.part.items[need.first] == items[22]


def test_nothing_is_wanted_of_an_image_that_is_done(sessions):
    study, row = sessions["two"]
    ahead = Ahead.of(study, row)
    first, second = ahead.parts
    ahead.answered([first.items[25]])
    assert ahead.need(MARGIN).part == first
    ahead.stops = [store.choices.EarlyStop(first.image, first.items[26], first.until, 26, 0.01)]
    assert ahead.need(MARGIN) is None  # the second begins with fixed pairs
    ahead.answered([second.items[3]])
    assert ahead.need(MARGIN).part == second
