from collections import Counter
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from stored_sessions import NOW, begin_session, complete_session, draw_trials, register_study
from vseg import store
from vseg.errors import Conflict
from vseg.store.sessions import assignment
from vseg.store.sessions.assignment import Occupancy
from vseg.study.schema import parse_study
from vseg.study.trials import Unit

numbers = count()


@pytest.mark.parametrize("each", [1, 2])
def test_images_stay_balanced_if_everyone_completes(db, each):
    more = "" if each == 1 else 'assignment = {images = "within", per_participant = 2}'
    study = register_study(db, "abc", participants=9, more=more)
    seen = Counter()
    for _ in range(9):
        begun = begin_session(db, study)
        complete_session(db, begun)
        seen.update(unit.image for unit in begun.session.units)
        assert max(seen[name] for name in "abc") - min(seen[name] for name in "abc") <= 1
    assert seen == dict.fromkeys("abc", 3 * each)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
@given(
    steps=st.lists(
        st.sampled_from(["begin", "begin", "complete", "leave", "withdraw", "silence"]), max_size=18
    )
)
def test_new_sessions_get_the_image_with_fewest_sessions_and_its_lowest_free_unit(db, steps):
    """Only participants who leave unbalance the images; each new session gets the image with the fewest sessions."""
    study = register_study(db, "abc", participants=6, name=f"study-{next(numbers)}")
    held: dict[str, Unit] = {}  # units by session, for completed and alive sessions
    active = []
    for step in steps:
        if step == "begin":
            fewest = Counter(dict.fromkeys("abc", 0))
            fewest.update(unit.image for unit in held.values())
            if len(held) == 6:
                with pytest.raises(Conflict, match="all the participants"):
                    begin_session(db, study)
                continue
            begun = begin_session(db, study)
            (unit,) = begun.session.units
            assert fewest[unit.image] == min(fewest.values())
            taken = {each.unit for each in held.values() if each.image == unit.image}
            assert unit.unit == min(set(range(7)) - taken)
            held[begun.session.name] = unit
            active.append(begun)
        elif active:
            begun = active.pop(0)
            if step == "complete":
                complete_session(db, begun)
            else:
                del held[begun.session.name]
                {"leave": left, "withdraw": withdrawn, "silence": silent}[step](db, begun)
    counts = store.sessions.count_sessions(db, study, now_ms=NOW)
    assert counts.completed + counts.alive == len(held)
    for name, found in counts.images.items():
        assert sorted(found["units"]) == sorted(unit.unit for unit in held.values() if unit.image == name)


def left(db, begun):
    store.sessions.leave(db, begun.session, keep=True)


def withdrawn(db, begun):
    store.sessions.leave(db, begun.session, keep=False)


def silent(db, begun):
    store.sessions.end(db, begun.session)


def test_a_freed_unit_is_assigned_again_with_the_same_pairs(db):
    study = register_study(db, "a", participants=3)
    first, second = begin_session(db, study), begin_session(db, study)
    store.sessions.leave(db, first.session, keep=True)
    third, fourth = begin_session(db, study), begin_session(db, study)
    assert third.session.units == first.session.units == [Unit("a", 0)]
    assert third.session.trials == first.session.trials == draw_trials([Unit("a", 0)])
    assert [each.session.units[0].unit for each in (second, fourth)] == [1, 2]


def test_quota_per_image_is_respected(db):
    study = register_study(db, "ab", participants=10, more="assignment = {quota_per_image = 2}")
    seen = Counter(begin_session(db, study).session.units[0].image for _ in range(4))
    assert seen == {"a": 2, "b": 2}
    with pytest.raises(Conflict, match="all the participants"):
        begin_session(db, study)


def test_quota_per_condition_is_respected(db):
    more = "assignment = {quota_per_condition = {calm = 1, none = 0}}"
    conditions = {"a": "calm", "b": "calm", "c": "wild", "d": "none"}
    study = register_study(db, "abcd", participants=6, more=more, conditions=conditions)
    seen = Counter(conditions[begin_session(db, study).session.units[0].image] for _ in range(6))
    assert seen == {"calm": 1, "wild": 5}


def test_order_of_images_varies_between_participants():
    study = parse_study(
        'name = "x"\nsegments = 2\nparticipants = 20\nlayout = {grid = 3}\nassignment = {images = "within"}\n'
        'images = [{name = "a", texture = "low"}, {name = "b", texture = "low"}, {name = "c", texture = "low"}]'
    )
    nobody = Occupancy(0, {name: set() for name in "abc"}, Counter(), Counter())
    orders = Counter(tuple(u.image for u in assignment.assign_units(study, nobody, n)) for n in range(600))
    assert len(orders) == 6
    assert min(orders.values()) > 60, "100 expected of each"


def test_last_participants_are_accepted_after_others_left_unevenly():
    """Three images, two per participant, four participants: one place is left although two images have their share."""
    study = parse_study(
        'name = "x"\nsegments = 2\nparticipants = 4\nlayout = {grid = 3}\n'
        'assignment = {images = "within", per_participant = 2}\n'
        'images = [{name = "a", texture = "low"}, {name = "b", texture = "low"}, {name = "c", texture = "low"}]'
    )
    units = {"a": {0, 1, 2}, "b": {0, 1, 2}, "c": set()}
    held = Occupancy(3, units, Counter(a=3, b=3), Counter())
    chosen = {unit.image for unit in assignment.assign_units(study, held, 5)}
    assert "c" in chosen
    assert len(chosen) == 2
