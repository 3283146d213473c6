"""Progress and people: the numbers are those of the export, and each reason is given when it is one."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from servers import STUDY, register_studies
from stored_sessions import event, response
from vseg import monitor, store
from vseg.monitor.summaries import Distribution, median_of_each, rough_median_of_each
from vseg.study import pictures, trials as trials_module
from vseg.study.schema import parsed

LONG_S = 60
ASKED = STUDY.replace("participants = 3", "participants = 50").replace(
    "trials = 12, blocks = 2", "trials = 24, blocks = 4"
)


@pytest.fixture
def db(tmp_path):
    """The numbers come from memory, whatever the database; test_watch.py has both kinds."""
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as opened:
        register_studies(opened, ASKED)
        yield opened


def take_part(
    db, *, now_ms=1_800_000_000_000, same=None, known=True, complete=True, simulated=False, **shown
):
    """Someone who answers everything: by `same` of the pair and the item, and known ones right or not."""
    study = store.studies.get_study(db, "tiny")
    sizes = {name: (image.width_px, image.height_px) for name, image in study.images.items()}
    begun = store.sessions.begin(
        db, study, lambda units: trials_module.trials(study.study, units, sizes), now_ms=now_ms
    )
    trials, rows = begun.session.trials, []
    for item in range(len(trials)):
        right = trials.answer[item]
        said = (right == known) if right is not None else bool(same(trials.i[item], trials.j[item], item))
        asked = {
            name: getattr(trials, name)[item]
            for name in ("image", "block", "trial", "i", "j", "practice", "catch")
        }
        rows.append(response(item + 1, item, same=said, **asked) | shown)
    told = [event(0, "consent", simulated=simulated)]
    store.responses.append(db, begun.session.id, rows, told, now_ms=now_ms + 60_000).result()
    if complete:
        assert store.sessions.complete(db, begun.session, len(rows) + 1) == []
    return begun.session.participant


def seen(db):
    study = store.studies.get_study(db, "tiny")
    answers = monitor.Watch(db).answers(study, LONG_S)
    return study, answers, {person.participant: person for person in monitor.people(study, answers)}


def by_pair(i, j, item):
    """The same answer to a pair whenever it is asked."""
    return min(i, j) % 2 == 0


def test_someone_who_takes_care_is_fine(db):
    who = take_part(db, same=by_pair)
    _, _, people = seen(db)
    person = people[who]
    assert person.reasons == []
    assert (person.catch.right, person.catch.of, person.catch.value) == (4, 4, 1.0)
    assert (person.practice.right, person.practice.of) == (2, 2)
    assert (person.consistency.right, person.consistency.of) == (72, 72), "24 pairs, three times again"
    assert (person.answers, person.used, person.flagged) == (102, 96, 0)
    assert (person.median_rt_ms, person.timing.refresh_hz, person.timing.within_half_frame) == (
        412.5,
        60.0,
        1.0,
    )
    assert person.status == "completed"


def guessing(i, j, item):
    return np.random.default_rng(item).random() < 0.5


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            {"same": by_pair, "known": False},
            "Only 0 of 4 attention checks (catch trials) were answered right.",
        ),
        ({"same": by_pair, "rt_ms": 120.0}, "Half of the answers came within 120 ms"),
        ({"same": lambda *_: True}, "100% of the answers were “same”."),
        ({"same": lambda *_: False}, "100% of the answers were “different”."),
        ({"same": by_pair, "refresh_hz": 30.0}, "The screen showed only 30 pictures a second."),
        ({"same": guessing}, "no better than guessing"),
        ({"same": by_pair, "flags": "late", "complete": False}, "100% of the trials were not shown right"),
    ],
)
def test_reasons_for_a_second_look(db, how, said):
    fine, odd = take_part(db, same=by_pair), take_part(db, **how)
    people = seen(db)[2]
    assert people[fine].reasons == []
    assert [said in reason for reason in people[odd].reasons].count(True) == 1, people[odd].reasons


def test_always_the_same_answer_is_as_consistent_as_chance_has_it(db):
    """Two answers of someone who only says 'same' always agree: chance is 1, and nothing better can be asked."""
    who = take_part(db, same=lambda *_: True)
    person = seen(db)[2][who]
    assert (person.consistency.value, person.chance) == (1.0, 1.0)
    assert len(person.reasons) == 1


def test_progress_counts(db):
    take_part(db, same=by_pair)
    take_part(db, same=by_pair, simulated=True)
    take_part(db, same=by_pair, complete=False)
    study, answers, _ = seen(db)
    found = monitor.progress(db, study, answers)
    assert (found.started, found.completed, found.wanted, found.simulated) == (3, 2, 50, 1)
    assert found.active + found.silent == 1
    assert found.places_left == 50 - 2 - found.active
    assert (found.answers, found.used) == (306, 288)
    assert (found.catch.right, found.catch.of, found.practice.of) == (12, 12, 6)
    assert found.consistency.value == 1.0
    assert sum(found.rt_ms.counts) == 288
    assert found.rt_ms.median == 412.5
    assert len(found.per_hour) == 48
    image = found.images[0]
    assert (image.name, image.wanted, image.completed, image.answers) == ("patches", 50, 2, 288)
    assert (image.needed, image.advised) == (16, 32)
    assert image.distinct_pairs == len(answers.tally("patches"))
    assert json.loads(json.dumps(asdict(found)))["minutes"]["unit"] == "minutes"


def test_time_is_kept_to_the_second(db):
    """What a page shows as seconds was once rounded to tenths of a minute."""
    begun_ms = store.database.now_ms() - 4_000
    who = take_part(db, same=by_pair, now_ms=begun_ms)
    person = seen(db)[2][who]
    assert person.minutes * 60 == pytest.approx((person.finished_at_ms - begun_ms) / 1000, abs=0.01)


def test_nobody_yet(db):
    study, answers, people = seen(db)
    found = monitor.progress(db, study, answers)
    assert (people, found.started, found.used, found.rt_ms.counts) == ({}, 0, 0, [])
    assert (found.timing.median_off_ms, found.catch.value, found.consistency.value, found.chance) == (
        None,
    ) * 4


def test_someone_who_has_not_answered_yet(db):
    study = store.studies.get_study(db, "tiny")
    sizes = {name: (image.width_px, image.height_px) for name, image in study.images.items()}
    begun = store.sessions.begin(
        db, study, lambda units: trials_module.trials(study.study, units, sizes), now_ms=10**12
    )
    person = seen(db)[2][begun.session.participant]
    assert (person.answers, person.median_rt_ms, person.same_share, person.reasons) == (0, None, None, [])


def test_known_answers_are_those_of_the_trials(db):
    """They are worked out from the practice picture; the trials that were drawn say the same."""
    take_part(db, same=by_pair, known=True)
    take_part(db, same=by_pair, known=False)
    _, answers, _ = seen(db)
    known = answers.practice | answers.catch
    assert (answers.correct[known] == (answers.session[known] == 0)).all()
    assert (answers.correct[~known] == -1).all()


def test_medians_are_medians():
    rng = np.random.default_rng(1)
    session = rng.integers(0, 7, 500).astype(np.int32)
    values = rng.gamma(4, 180, 500).round(1)
    expected = [np.median(values[session == number]) for number in range(7)]
    assert np.allclose(median_of_each(session, values, 8)[:7], expected, atol=0.051)
    assert np.isnan(median_of_each(session, values, 8)[7])
    off = rng.exponential(3, 500).astype(np.float32)
    expected = [np.median(off[session == number]) for number in range(7)]
    assert np.allclose(rough_median_of_each(session, off, 8)[:7], expected, atol=0.4)


def test_distributions_hold_everything():
    values = np.random.default_rng(0).gamma(4, 180, 1000)
    found = Distribution.of(values, "ms")
    assert sum(found.counts) == 1000
    assert len(found.edges) == len(found.counts) + 1
    assert found.median == pytest.approx(np.median(values), abs=0.01)
    assert Distribution.of(np.zeros(3), "ms").counts == [3]


def test_a_study_file_with_no_practice_knows_no_answers(tmp_path):
    text = ASKED.replace("trials = 2}", "trials = 0}").replace("per_block = 1", "per_block = 0")
    study = parsed(text)
    with store.open(f"sqlite:///{tmp_path}/plain.db") as db:
        store.studies.register(db, text, study, pictures.shown(study, Path()))
        who = take_part(db, same=by_pair)
        person = seen(db)[2][who]
        assert (person.catch.of, person.practice.of, person.catch.value) == (0, 0, None)
