"""Answers in memory are those in the database, however they arrived and whoever is gone."""

import itertools
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from stored_sessions import begin_session, complete_session, event, register_study, response
from vseg import monitor, store
from vseg.errors import Conflict, VsegError
from vseg.monitor.buffer import TYPES, Held
from vseg.store.changes import StudyReader

LONG_S = 60  # a look takes milliseconds; this is no time that anything is measured by
numbers = itertools.count()


def look(watch, db, study) -> monitor.Answers:
    answers = watch.answers(store.studies.get_study(db, study.name), LONG_S)
    assert answers is not None
    return answers


def rows_of(answers: monitor.Answers) -> list[tuple]:
    """Every row with names in place of numbers, in an order of its own."""
    names = [head.name for head in answers.sessions]
    columns = [
        getattr(answers, name).tolist() for name in (*TYPES, "used") if name not in ("session", "image")
    ]
    whose = [names[place] for place in answers.session]
    images = [answers.images[place] for place in answers.image]
    return sorted(zip(whose, answers.seq.tolist(), images, *columns, strict=True))


def session_of(person: monitor.Person) -> str:
    return person.session


def send(db, begun, rows, events=()) -> None:
    store.responses.append(db, begun.session.id, rows, list(events)).result()


def answer(seq: int, **other):
    return response(seq, seq % 4, image="ab"[seq % 2], i=seq % 3, j=8 - seq % 2, same=seq % 5 < 2) | other


# One step of a study's life: someone begins, sends records in any order, ends or is gone, or somebody looks.
steps = st.lists(
    st.one_of(
        st.just(("begin",)),
        st.tuples(st.just("send"), st.integers(0, 3), st.lists(st.integers(0, 14), min_size=1, max_size=4)),
        st.tuples(st.just("leave"), st.integers(0, 3), st.booleans()),
        st.tuples(st.just("end"), st.integers(0, 3)),
        st.tuples(st.just("erase"), st.integers(0, 3)),
        st.just(("look",)),
    ),
    max_size=25,
)


def take(db, study, people, step) -> None:
    if step[0] == "begin":
        people.append(begin_session(db, study))
        return
    if len(people) <= step[1]:
        return
    one = people[step[1]]
    if step[0] == "erase":
        store.sessions.erase(db, study, people.pop(step[1]).session.participant)
    elif step[0] == "leave":
        store.sessions.leave(db, one.session, keep=step[2])
    elif step[0] == "end":
        store.sessions.end(db, one.session)
    else:
        flagged = {seq: "late" if seq % 4 == 3 else "" for seq in step[2]}
        with suppress(Conflict):  # who has ended takes nothing more
            send(db, one, [answer(seq, flags=flagged[seq], practice=seq == 7) for seq in set(step[2])])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(steps=steps)
def test_reading_bit_by_bit_equals_reading_all_at_once(db, steps):
    """Records may arrive late, under lower numbers, and people may go at any time."""
    study = register_study(db, name=f"small-{next(numbers)}", participants=20)
    watch, people = monitor.Watch(db), []
    for step in steps:
        if step == ("look",):
            monitor.people(study, look(watch, db, study))
        else:
            take(db, study, people, step)
    bit_by_bit, at_once = look(watch, db, study), look(monitor.Watch(db), db, study)
    assert rows_of(bit_by_bit) == rows_of(at_once)
    assert bit_by_bit.version == at_once.version
    by_session = [sorted(monitor.people(study, each), key=session_of) for each in (bit_by_bit, at_once)]
    assert by_session[0] == by_session[1]
    assert sorted(head.name for head in bit_by_bit.sessions) == sorted(head.name for head in at_once.sessions)
    stored = [
        (row["session"], row["seq"], used)
        for rows in store.responses.stream_responses(db, study.id)
        for row, used in zip(
            rows,
            store.responses.find_used({name: [row[name] for row in rows] for name in rows[0]}),
            strict=True,
        )
    ]
    assert sorted(stored) == [(row[0], row[1], row[-1]) for row in rows_of(bit_by_bit)]
    for image in "ab":
        counted, tally = bit_by_bit.tally(image), store.responses.load_responses(db, study, image).tally()
        assert (counted.pairs.i.tolist(), counted.pairs.j.tolist()) == (
            tally.pairs.i.tolist(),
            tally.pairs.j.tolist(),
        )
        assert (counted.k.tolist(), counted.n.tolist()) == (tally.k.tolist(), tally.n.tolist())


class Noted(StudyReader):
    """Writes down which rows are asked for."""

    asked: list[tuple[int, int]]

    def responses(self, session: int, after: int = -1):
        self.asked.append((session, after))
        return super().responses(session, after)


def test_what_was_read_is_not_read_again(db):
    """The cost of a look follows from what is new: ended sessions are left alone, others read from their last row."""
    study = register_study(db, participants=10)
    done, active = begin_session(db, study), begin_session(db, study)
    complete_session(db, done)
    send(db, active, [answer(0), answer(1)])
    held, number = Held(study), active.session.id

    def asked_by_a_look() -> list[tuple[int, int]]:
        with db.reading() as connection:
            now = Noted(connection, study.id)
            now.asked = []
            held.refresh(now, study, lambda share: None)
        return now.asked

    assert len(asked_by_a_look()) == 2
    before = held.answers
    assert asked_by_a_look() == []
    send(db, active, [answer(2)])
    assert asked_by_a_look() == [(number, 1)]
    assert (len(before), len(held.answers)) == (4, 5), "who looks at an earlier state keeps it"
    send(db, active, [answer(5)])
    assert asked_by_a_look() == [(number, 2)]
    send(db, active, [answer(3)])
    assert asked_by_a_look() == [(number, 5), (number, -1)], "a late one: the session is read anew"


def test_whoever_comes_after_someone_who_was_erased_is_someone_else(db):
    """SQLite gives the number of the last session to the next one once it is free: no answer goes with it."""
    study, watch = register_study(db), monitor.Watch(db)
    gone = begin_session(db, study)
    send(db, gone, [answer(seq) for seq in range(3)])
    look(watch, db, study)
    store.sessions.erase(db, study, gone.session.participant)
    send(db, begin_session(db, study), [answer(0)])
    assert rows_of(look(watch, db, study)) == rows_of(look(monitor.Watch(db), db, study))


class Failing(StudyReader):
    """The database goes away before the rows are read."""

    def responses(self, session: int, after: int = -1):
        raise VsegError("The database does not answer.")


def test_what_a_failed_look_has_missed_is_read_by_the_next(db):
    """Also of those who have ended: there will be nothing new of them that would tell."""
    study = register_study(db)
    complete_session(db, begin_session(db, study))
    held = Held(study)
    with db.reading() as connection:
        with pytest.raises(VsegError):
            held.refresh(Failing(connection, study.id), study, lambda share: None)
        assert len(held.refresh(StudyReader(connection, study.id), study, lambda share: None)) == 2


def test_columns_say_what_was_shown(db):
    study = register_study(db)
    one = begin_session(db, study)
    send(db, one, [answer(0, cue_ms=310.0, image_ms=298.5, frames_dropped=2, refresh_hz=75.0, flags="late")])
    found = look(monitor.Watch(db), db, study)
    assert (found.cue_off_ms[0], found.image_off_ms[0]) == (10.0, -1.5)
    assert (found.frames_dropped[0], found.refresh_hz[0], bool(found.flagged[0])) == (2, 75.0, True)
    assert found.correct.tolist() == [-1]
    assert found.images[:2] == ["a", "b"]
    assert not found.used.any()


def test_a_version_changes_with_what_there_is_to_see(db):
    study, watch = register_study(db), monitor.Watch(db)
    seen = [look(watch, db, study).version]

    def then(change) -> None:
        change()
        seen.append(look(watch, db, study).version)
        assert look(watch, db, study).version == seen[-1]

    one = begin_session(db, study)
    then(lambda: None)
    then(lambda: send(db, one, [answer(0)]))
    then(lambda: store.studies.pause(db, study.name))
    then(lambda: store.sessions.leave(db, one.session, keep=True))
    then(lambda: store.sessions.erase(db, study, one.session.participant))
    assert len(set(seen)) == len(seen)


def test_simulated_people_say_so(db):
    study = register_study(db)
    bot, human = begin_session(db, study), begin_session(db, study)
    send(db, bot, [answer(1)], [event(0, "consent", simulated=True)])
    send(db, human, [answer(1)], [event(0, "consent", agreed=True)])
    simulated = {head.name: head.simulated for head in look(monitor.Watch(db), db, study).sessions}
    assert simulated == {bot.session.name: True, human.session.name: False}


def test_a_database_that_is_gone_is_said_to_whoever_asks(tmp_path):
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        study = register_study(db)
        watch = monitor.Watch(db)
        look(watch, db, study)
        with db.writing() as connection:
            connection.exec_driver_sql("DROP TABLE responses")
        with pytest.raises(Exception, match="responses"):
            watch.answers(study, LONG_S)


def test_a_look_that_is_over_is_whole(tmp_path):
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        study, watch = register_study(db), monitor.Watch(db)
        found = watch.answers(study, 0)  # without any time there may be nothing yet
        assert found is None or len(found) == 0
        assert watch.answers(study, LONG_S) is not None
        assert watch.progress(study) == 1.0


def test_answers_of_one_participant(db):
    study = register_study(db, participants=10)
    people = [begin_session(db, study) for _ in range(3)]
    for shift, one in enumerate(people):
        send(db, one, [answer(seq, image="a", i=shift, j=8, item=seq) for seq in range(4)])
    answers = look(monitor.Watch(db), db, study)
    mine = answers.of("a", people[1].session.participant)
    assert mine.participants == [people[1].session.participant]
    assert mine.i.tolist() == [1] * 4
    assert answers.tally("a", people[1].session.participant).trials == 4
    assert np.array_equal(answers.of("a").rt_ms, store.responses.load_responses(db, study, "a").rt_ms)
    for wrong in ({"image": "z"}, {"image": "a", "participant": "nobody"}):
        with pytest.raises(LookupError, match=r"no image|no participant"):
            answers.tally(**wrong)
