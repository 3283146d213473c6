"""When pairs are needed and for which items: tested without a server, for every course of a session."""

import pytest
from hypothesis import given, strategies as st

from adaptive_participants import ADAPTIVE_STUDY, SHARED_STUDY, TWO_IMAGE_STUDY
from servers import register_studies
from vseg import store
from vseg.server.participant_routes import make_trial_drawer
from vseg.server.session_choices import SessionChoices

MARGIN = 4


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """A study and a new session of each kind, by name."""
    sessions = {}
    for name, text in {"solo": ADAPTIVE_STUDY, "crowd": SHARED_STUDY, "two": TWO_IMAGE_STUDY}.items():
        with store.open(f"sqlite:///{tmp_path_factory.mktemp(name)}/vseg.db") as db:
            register_studies(db, text)
            study = store.studies.get_study(db, "ada")
            sessions[name] = (
                study,
                store.sessions.begin(db, study, make_trial_drawer(study), now_ms=0).session,
            )
    return sessions


def real_items(row) -> list[int]:
    trials = row.trials
    return [item for item in range(len(trials)) if not (trials.practice[item] or trials.catch[item])]


@given(kind=st.sampled_from(["solo", "crowd", "two"]), size=st.integers(3, 30), late=st.integers(0, 2))
def test_every_trial_gets_a_choice_if_choosing_takes_at_most_two_trials(sessions, kind, size, late):
    """For any batch size: a session that requests pairs when four trials are left has two left when they come."""
    study, row = sessions[kind]
    choices = SessionChoices.for_session(study, row)
    waiting: list[tuple[int, list[int]]] = []
    start = 0 if kind == "crowd" else study.study.initial_pairs
    for item in range(len(row.trials)):
        while waiting and waiting[0][0] <= item:
            choices.pairs |= dict.fromkeys(waiting.pop(0)[1], (0, 1))
        if not waiting and (need := choices.find_need(MARGIN)) is not None:
            items = need.trials.items[need.first : need.first + size]
            assert not choices.pairs.keys() & set(items)
            assert min(items) > choices.last_item
            waiting.append((item + late, items))
        trials = next((trials for trials in choices.images if item in trials.items), None)
        if trials is not None and start <= trials.items.index(item) and item > real_items(row)[0] + late:
            assert item in choices.pairs, (item, choices.pairs)
        choices.note_answered([item])


@given(last=st.integers(-1, 63), known=st.integers(0, 63))
def test_a_message_holds_the_choices_behind_the_last_answer(sessions, last, known):
    study, row = sessions["solo"]
    choices = SessionChoices.for_session(study, row)
    choices.pairs = {item: (0, 1) for item in real_items(row) if item < known}
    choices.note_answered([last] if last >= 0 else [])
    columns = choices.to_message()["choices"]
    assert columns["item"] == [item for item in choices.pairs if item > last]
    assert {len(column) for column in columns.values()} == {len(columns["item"])}


def test_a_session_that_ran_out_gets_choices_from_the_trial_after_next(sessions):
    """The trial under way and the next one may begin before a choice arrives."""
    study, row = sessions["solo"]
    choices = SessionChoices.for_session(study, row)
    items = real_items(row)
    choices.note_answered(items[:20])
    need = choices.find_need(MARGIN)
    assert need.trials.items[need.first] == items[22]


def test_no_pairs_are_needed_for_an_image_that_was_stopped(sessions):
    study, row = sessions["two"]
    choices = SessionChoices.for_session(study, row)
    first, second = choices.images
    choices.note_answered([first.items[25]])
    assert choices.find_need(MARGIN).trials == first
    choices.stops = [store.choices.EarlyStop(first.image, first.items[26], first.until, 26, 0.01)]
    assert choices.find_need(MARGIN) is None  # the second image begins with fixed pairs
    choices.note_answered([second.items[3]])
    assert choices.find_need(MARGIN).trials == second
