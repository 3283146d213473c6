"""Test that the answers in memory equal those in the database, in whatever order records arrive or are removed."""

import itertools
import threading
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from stored_sessions import begin_session, complete_session, event, register_study, response
from vseg import monitor, store
from vseg.errors import Conflict, VsegError
from vseg.monitor.buffer import TYPES, StudyBuffer
from vseg.store.changes import StudyReader

LONG_S = 60  # a refresh takes milliseconds; nothing is measured by this limit
numbers = itertools.count()


def refresh(live, db, study) -> monitor.Answers:
    answers = live.answers(store.studies.get_study(db, study.name), LONG_S)
    assert answers is not None
    return answers


def named_rows(answers: monitor.Answers) -> list[tuple]:
    """Return every row with names instead of indices, sorted."""
    names = [session.name for session in answers.sessions]
    columns = [
        getattr(answers, name).tolist() for name in (*TYPES, "used") if name not in ("session", "image")
    ]
    sessions = [names[index] for index in answers.session]
    images = [answers.images[index] for index in answers.image]
    return sorted(zip(sessions, answers.seq.tolist(), images, *columns, strict=True))


def session_name(summary: monitor.ParticipantSummary) -> str:
    return summary.session


def send(db, begun, rows, events=()) -> None:
    store.responses.append(db, begun.session.id, rows, list(events)).result()


def answer(seq: int, **other):
    return response(seq, seq % 4, image="ab"[seq % 2], i=seq % 3, j=8 - seq % 2, same=seq % 5 < 2) | other


# Steps of a study: a session begins, sends records in any order, ends or is erased, or the answers are refreshed.
steps = st.lists(
    st.one_of(
        st.just(("begin",)),
        st.tuples(st.just("send"), st.integers(0, 3), st.lists(st.integers(0, 14), min_size=1, max_size=4)),
        st.tuples(st.just("leave"), st.integers(0, 3), st.booleans()),
        st.tuples(st.just("end"), st.integers(0, 3)),
        st.tuples(st.just("erase"), st.integers(0, 3)),
        st.just(("refresh",)),
    ),
    max_size=25,
)


def apply_step(db, study, begun, step) -> None:
    if step[0] == "begin":
        begun.append(begin_session(db, study))
        return
    if len(begun) <= step[1]:
        return
    one = begun[step[1]]
    if step[0] == "erase":
        store.sessions.erase(db, study, begun.pop(step[1]).session.participant)
    elif step[0] == "leave":
        store.sessions.leave(db, one.session, keep=step[2])
    elif step[0] == "end":
        store.sessions.end(db, one.session)
    else:
        flagged = {seq: "late" if seq % 4 == 3 else "" for seq in step[2]}
        with suppress(Conflict):  # an ended session accepts no records
            send(db, one, [answer(seq, flags=flagged[seq], practice=seq == 7) for seq in set(step[2])])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(steps=steps)
def test_incremental_reading_equals_reading_everything(db, steps):
    """Test records that arrive late, with lower numbers, and sessions that are removed at any time."""
    study = register_study(db, name=f"small-{next(numbers)}", participants=20)
    live, begun = monitor.LiveData(db), []
    for step in steps:
        if step == ("refresh",):
            monitor.summarise_participants(study, refresh(live, db, study))
        else:
            apply_step(db, study, begun, step)
    incremental, complete = refresh(live, db, study), refresh(monitor.LiveData(db), db, study)
    assert named_rows(incremental) == named_rows(complete)
    assert incremental.version == complete.version
    by_session = [
        sorted(monitor.summarise_participants(study, each), key=session_name)
        for each in (incremental, complete)
    ]
    assert by_session[0] == by_session[1]
    assert sorted(session.name for session in incremental.sessions) == sorted(
        session.name for session in complete.sessions
    )
    stored = [
        (row["session"], row["seq"], used)
        for rows in store.responses.stream_responses(db, study.id)
        for row, used in zip(
            rows,
            store.responses.find_used({name: [row[name] for row in rows] for name in rows[0]}),
            strict=True,
        )
    ]
    assert sorted(stored) == [(row[0], row[1], row[-1]) for row in named_rows(incremental)]
    for image in "ab":
        counted, tally = incremental.tally(image), store.responses.load_responses(db, study, image).tally()
        assert (counted.pairs.i.tolist(), counted.pairs.j.tolist()) == (
            tally.pairs.i.tolist(),
            tally.pairs.j.tolist(),
        )
        assert (counted.k.tolist(), counted.n.tolist()) == (tally.k.tolist(), tally.n.tolist())


class RecordingReader(StudyReader):
    """Record which rows are read."""

    calls: list[tuple[int, int]]

    def read_responses(self, session_id: int, after: int = -1):
        self.calls.append((session_id, after))
        return super().read_responses(session_id, after)


def test_only_new_rows_are_read(db):
    """Test that ended sessions are not read again, and others from their last row."""
    study = register_study(db, participants=10)
    done, active = begin_session(db, study), begin_session(db, study)
    complete_session(db, done)
    send(db, active, [answer(0), answer(1)])
    buffer, number = StudyBuffer(study), active.session.id

    def refresh_calls() -> list[tuple[int, int]]:
        with db.reading() as connection:
            reader = RecordingReader(connection, study.id)
            reader.calls = []
            buffer.refresh(reader, study, lambda fraction: None)
        return reader.calls

    assert len(refresh_calls()) == 2
    before = buffer.answers
    assert refresh_calls() == []
    send(db, active, [answer(2)])
    assert refresh_calls() == [(number, 1)]
    assert (len(before), len(buffer.answers)) == (4, 5), "earlier answers do not change"
    send(db, active, [answer(5)])
    assert refresh_calls() == [(number, 2)]
    send(db, active, [answer(3)])
    assert refresh_calls() == [(number, 5), (number, -1)], (
        "after a late record the whole session is read again"
    )


def test_a_new_session_with_the_number_of_an_erased_one(db):
    """Test that it does not get the answers of the erased session, whose number SQLite uses again."""
    study, live = register_study(db), monitor.LiveData(db)
    erased = begin_session(db, study)
    send(db, erased, [answer(seq) for seq in range(3)])
    refresh(live, db, study)
    store.sessions.erase(db, study, erased.session.participant)
    send(db, begin_session(db, study), [answer(0)])
    assert named_rows(refresh(live, db, study)) == named_rows(refresh(monitor.LiveData(db), db, study))


class FailingReader(StudyReader):
    """Fail before the rows are read."""

    def read_responses(self, session_id: int, after: int = -1):
        raise VsegError("The database does not answer.")


def test_a_failed_refresh_is_made_up_for_by_the_next(db):
    """Test it with an ended session, which has no new records to show that something is missing."""
    study = register_study(db)
    complete_session(db, begin_session(db, study))
    buffer = StudyBuffer(study)
    with db.reading() as connection:
        with pytest.raises(VsegError):
            buffer.refresh(FailingReader(connection, study.id), study, lambda fraction: None)
        assert len(buffer.refresh(StudyReader(connection, study.id), study, lambda fraction: None)) == 2


def test_columns_of_a_response(db):
    study = register_study(db)
    one = begin_session(db, study)
    send(db, one, [answer(0, cue_ms=310.0, image_ms=298.5, frames_dropped=2, refresh_hz=75.0, flags="late")])
    answers = refresh(monitor.LiveData(db), db, study)
    assert (answers.cue_off_ms[0], answers.image_off_ms[0]) == (10.0, -1.5)
    assert (answers.frames_dropped[0], answers.refresh_hz[0], bool(answers.flagged[0])) == (2, 75.0, True)
    assert answers.correct.tolist() == [-1]
    assert answers.images[:2] == ["a", "b"]
    assert not answers.used.any()


def test_every_change_gives_another_version(db):
    study, live = register_study(db), monitor.LiveData(db)
    versions = [refresh(live, db, study).version]

    def check_new_version(change) -> None:
        change()
        versions.append(refresh(live, db, study).version)
        assert refresh(live, db, study).version == versions[-1]

    one = begin_session(db, study)
    check_new_version(lambda: None)
    check_new_version(lambda: send(db, one, [answer(0)]))
    check_new_version(lambda: store.studies.pause(db, study.name))
    check_new_version(lambda: store.sessions.leave(db, one.session, keep=True))
    check_new_version(lambda: store.sessions.erase(db, study, one.session.participant))
    assert len(set(versions)) == len(versions)


def test_simulated_participants_are_marked(db):
    study = register_study(db)
    bot, human = begin_session(db, study), begin_session(db, study)
    send(db, bot, [answer(1)], [event(0, "consent", simulated=True)])
    send(db, human, [answer(1)], [event(0, "consent", agreed=True)])
    simulated = {
        session.name: session.simulated for session in refresh(monitor.LiveData(db), db, study).sessions
    }
    assert simulated == {bot.session.name: True, human.session.name: False}


def test_database_errors_are_raised_in_the_caller(tmp_path):
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        study = register_study(db)
        live = monitor.LiveData(db)
        refresh(live, db, study)
        with db.writing() as connection:
            connection.exec_driver_sql("DROP TABLE responses")
        with pytest.raises(Exception, match="responses"):
            live.answers(study, LONG_S)


def test_answers_while_the_first_refresh_runs(tmp_path):
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        study, live = register_study(db), monitor.LiveData(db)
        answers = live.answers(study, 0)  # may be None, since it does not wait
        assert answers is None or len(answers) == 0
        assert live.answers(study, LONG_S) is not None
        assert live.loading_progress(study) == 1.0


def test_answers_of_one_participant(db):
    study = register_study(db, participants=10)
    begun = [begin_session(db, study) for _ in range(3)]
    for shift, one in enumerate(begun):
        send(db, one, [answer(seq, image="a", i=shift, j=8, item=seq) for seq in range(4)])
    answers = refresh(monitor.LiveData(db), db, study)
    responses = answers.responses("a", begun[1].session.participant)
    assert responses.participants == [begun[1].session.participant]
    assert responses.i.tolist() == [1] * 4
    assert answers.tally("a", begun[1].session.participant).trials == 4
    assert np.array_equal(answers.responses("a").rt_ms, store.responses.load_responses(db, study, "a").rt_ms)
    for wrong in ({"image": "z"}, {"image": "a", "participant": "nobody"}):
        with pytest.raises(LookupError, match=r"no image|no participant"):
            answers.tally(**wrong)


def test_a_thread_that_has_died_is_replaced(db):
    study = register_study(db)
    live = monitor.LiveData(db)
    dead = threading.Thread(target=lambda: None)
    dead.start()
    dead.join()
    live._reader(study)._thread = dead
    assert live.answers(study, LONG_S) is not None
