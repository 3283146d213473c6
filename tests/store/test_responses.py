import ctypes
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import nullcontext
from itertools import compress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sqlalchemy import insert, literal, select, text

from stored_sessions import NOW, answer_all, begin_session, event, register_study, response
from vseg import store
from vseg.errors import Conflict, InvalidInput, NotFound, VsegError
from vseg.store import schema, writer
from vseg.store.conflicts import EventLimits
from vseg.store.tokens import hash_token


def read_stored(db, table=schema.responses) -> list[tuple[int, int]]:
    with db.reading() as connection:
        return [
            tuple(row)
            for row in connection.execute(select(table.c.session, table.c.seq).order_by(*table.primary_key))
        ]


def test_appended_records_are_read_back(db):
    study = register_study(db)
    session = begin_session(db, study).session
    extreme = {"rt_ms": 0.1 + 0.2, "cue_ms": 5e-324, "image_onset_ms": 1e13 - 0.001, "shown_at_ms": 10**13}
    first, text = response(0, 0, flags="late hidden", same=False, **extreme), "é 'quoted'; -- \\ \0 \n 🙂"
    store.responses.append(db, session.id, [first], [event(1, "comment", said=text)], now_ms=NOW).result()
    ((row,),) = store.responses.stream_responses(db, study.id)
    assert dict(row) == first | {
        "session": session.name, "participant": session.participant, "status": "active", "received_at_ms": NOW,
    }  # fmt: skip
    ((told,),) = store.responses.stream_events(db, study.id)
    assert json.loads(told["data"]) == {"said": text}
    assert (told["kind"], told["seq"], told["at_ms"]) == ("comment", 1, NOW)


def get_refusal(db, session, answers, others=()) -> str | None:
    """Return why records are refused, or None if they are acknowledged."""
    try:
        return store.responses.append(db, session.id, answers, list(others)).result()
    except Conflict as error:
        return error.reason


def test_sending_again_changes_nothing(db):
    study = register_study(db)
    session = begin_session(db, study).session
    for later in range(3):
        records = [response(0, rt_ms=1000 / 3, refresh_hz=59.94)], [event(1, note="ä", value=0.1)]
        store.responses.append(db, session.id, *records, now_ms=NOW + later).result()
    ((row,),) = store.responses.stream_responses(db, study.id)
    assert (row["rt_ms"], row["received_at_ms"]) == (1000 / 3, NOW)


@pytest.mark.parametrize(
    "other",
    [
        {"item": 1},
        {"same": False},
        {"shown_at_ms": NOW + 1},
        {"rt_ms": 412.6},
        {"key": "j"},
        {"flags": "late"},
    ],
)
def test_request_with_a_conflicting_record_is_refused_as_a_whole(db, other):
    """Two pages continue the same session: the second is told, and the first continues undisturbed."""
    session = begin_session(db, register_study(db)).session
    assert get_refusal(db, session, [response(0)], [event(1)]) is None
    assert get_refusal(db, session, [response(0, **other), response(2, 1)], [event(3)]) == "elsewhere"
    assert get_refusal(db, session, [response(2)], [{**event(1), "at_ms": NOW + 1}]) == "elsewhere"
    assert get_refusal(db, session, [response(2)], [event(1, "comment")]) == "elsewhere"
    assert get_refusal(db, session, [response(2)], [event(1, note="other")]) == "elsewhere"
    assert (read_stored(db), read_stored(db, schema.events)) == ([(session.id, 0)], [(session.id, 1)])
    assert get_refusal(db, session, [response(0), response(2)], [event(1), event(3)]) is None


def test_conflicting_pages_in_one_commit_affect_nobody_else(db):
    """This includes requests that conflict only with a refused one."""
    study = register_study(db)
    session, bystander = begin_session(db, study).session, begin_session(db, study).session
    with (
        db.writing() if db.is_sqlite else db.reading()
    ):  # on SQLite the writer waits meanwhile, so that all requests are in one batch
        futures = [
            store.responses.append(db, number, [response(seq, same=same) for seq in seqs], [])
            for number, seqs, same in (
                (session.id, (0, 1), True), (session.id, (1, 2), False), (session.id, (2, 3), True),
                (bystander.id, (0, 1), False),
            )
        ]  # fmt: skip
    with pytest.raises(Conflict, match="another tab"):
        futures.pop(1).result()
    assert [future.result() for future in futures] == [None, None, None]
    kept = [(session.id, seq) for seq in range(4)] + [(bystander.id, seq) for seq in (0, 1)]
    assert read_stored(db) == sorted(kept)


def test_a_number_is_used_by_a_response_or_an_event(db):
    """The second one is refused, also if both come together or after the end of the session."""
    session = begin_session(db, register_study(db)).session

    def send(answers, others):
        return get_refusal(db, session, [response(seq) for seq in answers], [event(seq) for seq in others])

    assert send([0, 1], [2, 3]) is None
    assert send([2, 4], [1, 5]) == send([3], []) == send([], [0]) == send([6], [6]) == "elsewhere"
    assert [seq for _, seq in read_stored(db)] == [0, 1]
    assert [seq for _, seq in read_stored(db, schema.events)] == [2, 3]
    store.sessions.leave(db, session, keep=True)
    assert (send([2, 0], []), send([1, 0], [2])) == ("elsewhere", None)


@pytest.mark.parametrize("reason", ["lost", "refused"])
def test_stand_in_is_acknowledged_if_the_record_arrived_after_all(db, reason):
    """The page asked for missing records while the last request of the previous page was still on its way."""
    session = begin_session(db, register_study(db)).session
    assert get_refusal(db, session, [response(0)], [event(1)]) is None
    assert get_refusal(db, session, [], [event(seq, "interruption", reason=reason) for seq in (0, 1)]) is None
    assert get_refusal(db, session, [], [event(1, "interruption", reason="hidden")]) == "elsewhere"
    assert (read_stored(db), read_stored(db, schema.events)) == ([(session.id, 0)], [(session.id, 1)])


def test_a_number_is_used_once_across_workers(db, database_url):
    """One worker stores responses and another one events with the same numbers."""
    session = begin_session(db, register_study(db)).session
    gate, told = threading.Barrier(2), []

    def pour(database, kind):
        gate.wait()
        for seq in range(60):
            rows = ([response(seq)], []) if kind == "response" else ([], [event(seq)])
            told.append(get_refusal(database, session, *rows))

    with store.open(database_url) as other:
        threads = [threading.Thread(target=pour, args=each) for each in ((db, "response"), (other, "event"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    both = sorted(read_stored(db) + read_stored(db, schema.events))
    assert both == [(session.id, seq) for seq in range(60)]
    assert (told.count(None), told.count("elsewhere")) == (60, 60)


def test_number_of_events_is_limited(db):
    """Records sent again and responses do not count; refused events are not stored."""
    study = register_study(db)
    session, other = begin_session(db, study).session, begin_session(db, study).session
    limits = EventLimits(events=5, contours=2)

    def send(*seqs, kind="break", answers=(), to=session):
        rows = [event(seq, kind) for seq in seqs]
        future = store.responses.append(db, to.id, [response(seq) for seq in answers], rows, limits=limits)
        return future.exception()

    assert send(0, 1, 2) is None
    assert send(10, 11, kind="contours") is None
    assert send(0, 1, 2) is None
    assert send(10, 11, kind="contours", answers=[12, 13]) is None
    refused = send(2, 3, answers=[14])
    assert isinstance(refused, InvalidInput)
    assert str(refused) == "This session may send at most 5 events, got 6."
    assert send(*range(5), to=other) is None
    assert [seq for _, seq in read_stored(db)] == [12, 13]
    assert len(read_stored(db, schema.events)) == 10


def test_contours_have_their_own_limit(db):
    session = begin_session(db, register_study(db)).session
    limits = EventLimits(events=50, contours=2)
    futures = [
        store.responses.append(db, session.id, [], [event(seq, "contours")], limits=limits)
        for seq in range(4)
    ]
    told = [future.exception() for future in futures]
    assert told[:2] == [None, None]
    assert [str(each) for each in told[2:]] == [
        "This session may send at most 2 events with contours, got 3."
    ] * 2
    assert store.responses.append(db, session.id, [], [event(9, "break")], limits=limits).exception() is None


def test_simultaneous_identical_requests_are_stored_once(db):
    session = begin_session(db, register_study(db)).session
    futures = [
        store.responses.append(db, session.id, [response(seq)], []) for _ in range(20) for seq in range(50)
    ]
    assert {future.result() for future in futures} == {None}
    assert read_stored(db) == [(session.id, seq) for seq in range(50)]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_two_workers_with_the_same_rows_do_not_deadlock(db, database_url):
    """After a network failure, unconfirmed records are sent to the other worker, in any order."""
    session = begin_session(db, register_study(db)).session
    with store.open(database_url) as other:
        for first in range(0, 3000, 100):
            rows = [response(seq) for seq in range(first, first + 100)]
            futures = [
                store.responses.append(db, session.id, rows, []),
                store.responses.append(other, session.id, rows[::-1], []),
            ]
            assert [future.exception() for future in futures] == [None, None]
    assert len(read_stored(db)) == 3000


@pytest.mark.parametrize(
    "poison",
    [
        {"image": None},
        {"item": 2**70},
        {"key": "\ud800"},
        {"same": "perhaps"},
        {"rt_ms": "soon"},
    ],
)
def test_an_invalid_row_fails_alone(db, poison):
    study = register_study(db, participants=50)
    sessions = [begin_session(db, study).session.id for _ in range(20)]
    with (
        db.writing() if db.is_sqlite else db.reading()
    ):  # on SQLite the writer waits meanwhile, so that all rows are in one batch
        futures = [
            store.responses.append(db, session, [response(0, **(poison if place == 7 else {}))], [event(1)])
            for place, session in enumerate(sessions)
        ]
    with pytest.raises(InvalidInput, match="rejected a record"):
        futures.pop(7).result()
    assert {future.result() for future in futures} == {None}
    assert read_stored(db) == [(session, 0) for session in sessions if session != sessions[7]]
    assert read_stored(db, schema.events) == [(session, 1) for session in sessions if session != sessions[7]]


def test_a_record_without_a_column_is_refused_immediately(db):
    session = begin_session(db, register_study(db)).session
    incomplete = response(0)
    del incomplete["rt_ms"]
    with pytest.raises(InvalidInput, match="'rt_ms'"):
        store.responses.append(db, session.id, [incomplete], [])


def test_finished_session_refuses_new_records_and_confirms_stored_ones(db):
    session = begin_session(db, register_study(db)).session
    store.responses.append(db, session.id, [response(0)], [event(1)]).result()
    store.sessions.leave(db, session, keep=True)
    assert store.responses.append(db, session.id, [response(0)], [event(1)]).result() is None
    late = store.responses.append(db, session.id, [response(0), response(2)], [])
    with pytest.raises(Conflict, match="session is left") as caught:
        late.result()
    assert caught.value.reason == "ended"
    assert read_stored(db) == [(session.id, 0)]


def test_withdrawn_session_refuses_records(db):
    session = begin_session(db, register_study(db)).session
    store.responses.append(db, session.id, [response(0)], []).result()
    store.sessions.leave(db, session, keep=False)
    with pytest.raises(Conflict, match="withdrawn"):
        store.responses.append(db, session.id, [response(0)], []).result()
    assert read_stored(db) == []


def test_withdrawing_while_records_arrive_leaves_none(db, database_url):
    """One worker stores records while another withdraws the session; whatever the order, nothing is left."""
    session = begin_session(db, register_study(db)).session
    begun = threading.Event()

    def pour():
        for seq in range(300):
            store.responses.append(db, session.id, [response(seq)], []).exception()
            if seq == 20:
                begun.set()

    with store.open(database_url) as other:
        thread = threading.Thread(target=pour)
        thread.start()
        begun.wait()
        store.sessions.leave(other, session, keep=False)
        thread.join()
    assert read_stored(db) == []


def test_records_of_an_unknown_session(db):
    with pytest.raises(NotFound, match="no such session"):
        store.responses.append(db, 4711, [response(0)], []).result()


def test_closing_stores_queued_records_and_refuses_new_ones(database_url):
    with store.open(database_url) as db:
        session = begin_session(db, register_study(db)).session
        futures = [store.responses.append(db, session.id, [response(seq)], []) for seq in range(200)]
    assert {future.result(timeout=0) for future in futures} == {None}
    with pytest.raises(VsegError, match="being closed"):
        store.responses.append(db, session.id, [response(200)], [])
    with store.open(database_url) as db:
        assert len(read_stored(db)) == 200


def test_a_cancelled_request_does_not_disturb_the_others(db):
    session = begin_session(db, register_study(db)).session
    futures = [store.responses.append(db, session.id, [response(seq)], []) for seq in range(100)]
    cancelled = [future.cancel() for future in futures[::2]]
    assert {future.result() for future in futures[1::2]} == {None}
    kept = [seq for seq in range(100) if seq % 2 or not cancelled[seq // 2]]
    assert read_stored(db) == [(session.id, seq) for seq in kept]


def test_postgresql_restarts(postgres_server):
    url = postgres_server.fresh()
    name = url.split("/")[3].partition("?")[0]
    with store.open(url) as db:
        session = begin_session(db, register_study(db)).session
        store.responses.append(db, session.id, [response(0)], []).result()
        postgres_server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        hang_up = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        postgres_server.execute(hang_up)
        with pytest.raises(VsegError, match="does not answer") as caught:
            store.responses.append(db, session.id, [response(1)], []).result()
        assert not isinstance(caught.value, InvalidInput), "the browser may send it again"
        postgres_server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        store.responses.append(db, session.id, [response(1)], []).result()
        postgres_server.execute(hang_up)
        store.responses.append(db, session.id, [response(2)], []).result()
        assert len(read_stored(db)) == 3
    postgres_server.drop(url)


CHILD = """
import sys
from stored_sessions import begin_session, register_study, response
from vseg import store
db = store.open(sys.argv[1])
session = begin_session(db, register_study(db)).session.id
waiting = [store.responses.append(db, session, [response(seq)], []) for seq in range(100)]
seq = 100
while True:
    for future in waiting:
        future.result()
    for done in range(seq - len(waiting), seq):
        sys.stdout.write(f"{done}\\n")
    sys.stdout.flush()
    waiting = [store.responses.append(db, session, [response(seq + k)], []) for k in range(7)]
    seq += 7
"""


def test_acknowledged_records_survive_a_kill(tmp_path):
    url = f"sqlite:///{tmp_path}/vseg.db"
    path = os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, sys.path)])
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, url],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as child:
        acknowledged = [int(child.stdout.readline()) for _ in range(400)]
        child.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in child.stdout if line.endswith("\n")]
    with store.open(url) as db:
        assert {seq for _, seq in read_stored(db)} >= set(acknowledged)
    with sqlite3.connect(tmp_path / "vseg.db") as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_last_valid_answer_counts():
    rows = [
        response(0, 0, flags="late"), response(1, 0), response(2, 0), response(3, 1, flags="hidden"),
        response(4, 2, practice=True), response(5, 3, catch=True), response(6, 2), response(7, 2, flags="blurred"),
    ]  # fmt: skip
    rows = [row | {"session": "s"} for row in rows] + [response(0, 0) | {"session": "t"}]
    assert list_used(rows) == [2, 6, 0]


def list_used(rows) -> list[int]:
    columns = {name: [row[name] for row in rows] for name in store.responses.USED_COLUMNS}
    return list(compress(columns["seq"], store.responses.find_used(columns)))


@given(st.permutations(range(8)))
def test_used_answers_do_not_depend_on_the_order_of_rows(order):
    rows = [response(seq, seq % 3, flags="late" * (seq > 5)) | {"session": "s"} for seq in range(8)]
    assert sorted(list_used([rows[place] for place in order])) == sorted(list_used(rows)) == [3, 4, 5]


def test_responses_for_analysis(db):
    study = register_study(db)
    assert len(store.responses.load_responses(db, study)) == 0
    people = [begin_session(db, study) for _ in range(2)]
    for begun in people:
        answer_all(db, begun)
    number = people[0].session.id
    store.responses.append(
        db, number, [response(2, 0, same=False, image=people[0].session.trials.image[0])], []
    ).result()
    found = store.responses.load_responses(db, study)
    assert len(found) == 4
    assert found.participants == sorted(each.session.participant for each in people)
    assert found.images == ["a", "b"]
    assert found.select(participant=people[0].session.participant).same.tolist() == [True, False]
    assert store.responses.load_responses(db, study, "a").images == ["a"]
    assert np.isfinite(found.rt_ms).all()


STREAMING = """
import resource, sys
from vseg import store

def most_kb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)

with store.open(sys.argv[1]) as db:
    few, many = (store.studies.get_study(db, name).id for name in ("few", "many"))
    assert [len(rows) for rows in store.responses.stream_responses(db, few, batch=2000)] == [2000]
    before, seen = most_kb(), 0
    for rows in store.responses.stream_responses(db, many, batch=2000):
        assert len(rows) == 2000
        assert [rows[place]["seq"] for place in (0, 999, 1000, -1)] == [0, 999, 0, 999]
        seen += len(rows)
    print(seen, most_kb() - before)
"""


def test_fifty_thousand_rows_stream_in_bounded_memory(db, database_url):
    """In whole sessions and in order; all at once they would take more than 9 MB."""
    few, many = (register_study(db, "a", participants=60, name=name) for name in ("few", "many"))
    numbers = [begin_session(db, few).session.id for _ in range(2)] + [
        begin_session(db, many).session.id for _ in range(50)
    ]
    store.responses.append(db, numbers[0], [response(seq) for seq in range(1000)], []).result()
    names = schema.responses.c.keys()
    with db.writing() as connection:
        for number in numbers[1:]:
            columns = [literal(number) if name == "session" else schema.responses.c[name] for name in names]
            copied = select(*columns).where(schema.responses.c.session == numbers[0])
            connection.execute(insert(schema.responses).from_select(names, copied))
    told = subprocess.run(
        [sys.executable, "-c", STREAMING, database_url], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    seen, grown_kb = map(int, told.stdout.split())
    assert seen == 50_000
    assert grown_kb < 4_000


def test_records_of_an_erased_participant_are_not_found(db):
    study = register_study(db)
    begun = begin_session(db, study)
    store.sessions.erase(db, study, begun.session.participant)
    for hashed in (None, hash_token(begun.token)):
        late = store.responses.append(db, begun.session.id, [response(0)], [], token_hash=hashed)
        with pytest.raises(NotFound, match="no such session"):
            late.result()


def test_postgresql_plans_inserts_for_the_current_table_size(postgres_url):
    """A cached plan from when the tables were empty would scan the whole other table."""
    with store.open(postgres_url) as db:
        session = begin_session(db, register_study(db)).session.id
        for seq in range(30):  # the driver prepares statements that it runs repeatedly
            store.responses.append(db, session, [], [event(seq)]).result()
        full = response(0) | {"session": session, "received_at_ms": NOW, "chosen": False}
        with db.writing() as connection:
            connection.execute(
                insert(schema.responses), [full | {"seq": 100 + more} for more in range(20_000)]
            )
        late = event(30) | {"session": session, "received_at_ms": NOW, "data": "{}"}
        with db.writing() as connection:
            assert writer._prepare_insert(db, schema.events, schema.responses)(connection, [late]) == 1
            read = text("SELECT seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'responses'")
            assert connection.scalar(read) == 0


# pytest reports every exception that ends a thread, also the one that the test itself has raised there.
ends_a_thread = pytest.mark.filterwarnings("ignore:Exception in thread vseg-writer")


def end_thread(thread: threading.Thread) -> None:
    """Let a thread end at its next instruction, as after a fault of the interpreter or a call of sys.exit()."""
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
    )


def get_writer_thread(db: store.Database) -> threading.Thread:
    (thread,) = (thread for thread in threading.enumerate() if thread is db.writer._thread)
    return thread


@ends_a_thread
def test_a_writer_that_dies_is_replaced_and_nobody_waits_for_ever(db, caplog):
    session = begin_session(db, register_study(db)).session
    assert store.responses.append(db, session.id, [response(0)], []).exception(60) is None
    for seq in range(1, 6):
        thread = get_writer_thread(db)
        end_thread(thread)
        # The thread notices when it has taken this request, so it has stored it or fails it.
        error = store.responses.append(db, session.id, [response(seq)], []).exception(60)
        assert error is None or type(error) is VsegError
        thread.join(60)
        assert not thread.is_alive()
        assert store.responses.append(db, session.id, [response(seq)], []).exception(60) is None
    assert "The thread that stores records has died; another one replaces it." in caplog.text
    with db.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM responses").scalar() == 6


@ends_a_thread
def test_a_check_of_health_replaces_a_writer_that_has_died(db):
    session = begin_session(db, register_study(db)).session
    assert store.responses.append(db, session.id, [response(0)], []).exception(60) is None
    thread = get_writer_thread(db)
    end_thread(thread)
    store.responses.append(db, session.id, [response(1)], []).exception(60)
    thread.join(60)
    db.check_health()
    assert get_writer_thread(db) is not thread


def test_a_writer_outlives_an_error_of_its_own(db, caplog):
    """Here, a request that was resolved before its records were stored."""
    session = begin_session(db, register_study(db)).session
    assert store.responses.append(db, session.id, [response(0)], []).exception(60) is None
    thread = get_writer_thread(db)
    with db.writing() if db.is_sqlite else nullcontext():  # on SQLite the writer waits meanwhile
        broken = writer.WriteRequest(session.id, [None], [])  # type: ignore[list-item]
        error = db.writer.append(broken)
        after = store.responses.append(db, session.id, [response(1)], [])
    assert isinstance(error.exception(60), VsegError)
    after.exception(60)
    assert store.responses.append(db, session.id, [response(1)], []).exception(60) is None
    assert get_writer_thread(db) is thread


@ends_a_thread
def test_requests_of_a_writer_that_has_died_fail_when_the_database_is_closed(tmp_path):
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        session = begin_session(db, register_study(db)).session
        assert store.responses.append(db, session.id, [response(0)], []).exception(60) is None
        thread = get_writer_thread(db)
        with db.writing():
            waiting = [store.responses.append(db, session.id, [response(seq)], []) for seq in range(1, 4)]
            end_thread(thread)
    assert all(request.done() for request in waiting)
