import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event as sql, func, select

from stored_sessions import (
    MINUTE,
    NOW,
    answer_all,
    begin_session,
    complete_session,
    event,
    register_study,
    response,
)
from vseg import store
from vseg.errors import Conflict, InvalidInput, NotAllowed
from vseg.store.schema import events, identities, participants, responses, sessions
from vseg.store.sessions import Identity, assignment
from vseg.store.snapshot import take_snapshot
from vseg.store.tokens import hash_token
from vseg.study.trials import Unit


def expect_conflict(db, study, *arguments, **options) -> str:
    with pytest.raises(Conflict) as caught:
        begin_session(db, study, *arguments, **options)
    return caught.value.reason


def read_identities(db, study) -> dict[str, Identity]:
    with take_snapshot(db, study) as found:
        return found.identities()


def count(db, table) -> int:
    with db.reading() as connection:
        return connection.scalar(select(func.count()).select_from(table))


def test_begin_returns_a_token_and_stores_only_its_hash(db):
    study = register_study(db)
    begun = begin_session(db, study)
    assert not begun.resumed
    assert begun.session.status == "active"
    assert begun.session.units == [Unit(begun.session.trials.image[0], 0)]
    assert store.sessions.get_by_token(db, begun.token) == begun.session
    assert set(begun.session.software) == {"vseg", "python", "numpy"}
    with db.reading() as connection:
        assert begun.token not in str(connection.execute(select(sessions)).all())


def test_unknown_token_is_refused(db):
    begin_session(db, register_study(db))
    with pytest.raises(NotAllowed, match="no session"):
        store.sessions.get_by_token(db, "' OR 1=1 --")


def test_same_prolific_participant_resumes_with_a_new_token(db):
    study = register_study(db)
    first, second = begin_session(db, study, "pid"), begin_session(db, study, "pid")
    assert second.resumed
    assert second.session == first.session
    with pytest.raises(NotAllowed):
        store.sessions.get_by_token(db, first.token)
    assert store.sessions.get_by_token(db, second.token).id == first.session.id


@pytest.mark.parametrize(
    ("ended", "reason"), [("complete", "already"), ("left", "already"), ("ended", "ended")]
)
def test_taking_part_twice_is_refused(db, ended, reason):
    study = register_study(db)
    begun = begin_session(db, study, "pid")
    if ended == "complete":
        complete_session(db, begun)
    elif ended == "left":
        store.sessions.leave(db, begun.session, keep=True)
    else:
        store.sessions.end(db, begun.session)
    assert expect_conflict(db, study, "pid") == reason


def test_study_is_full_when_completed_and_alive_sessions_reach_the_target(db):
    study = register_study(db, participants=2)
    begin_session(db, study)
    assert store.sessions.get_refusal_reason(db, study, now_ms=NOW) is None
    begin_session(db, study)
    assert expect_conflict(db, study) == "full"
    assert store.sessions.get_refusal_reason(db, study, now_ms=NOW) == "full"


def test_silent_session_frees_its_place_and_can_be_resumed(db):
    study = register_study(db, "a", participants=1)
    silent = begin_session(db, study, "silent")
    answer_all(db, silent, now_ms=NOW + 30 * MINUTE)
    assert expect_conflict(db, study, now_ms=NOW + 89 * MINUTE) == "full"
    heir = begin_session(db, study, now_ms=NOW + 91 * MINUTE)
    assert heir.session.units == silent.session.units
    assert begin_session(db, study, "silent", now_ms=NOW + 95 * MINUTE).resumed


def test_longer_interruptions_can_be_allowed(db):
    study = register_study(db, "a", participants=1, more="interruption = {after_minutes = 600}")
    answer_all(db, begin_session(db, study), now_ms=NOW)
    assert expect_conflict(db, study, now_ms=NOW + 599 * MINUTE) == "full"
    begin_session(db, study, now_ms=NOW + 601 * MINUTE)


def test_session_without_records_keeps_its_place_for_minutes(db):
    """Requests for sessions alone do not fill a study; events keep a place for longer, but not without an answer."""
    study = register_study(db, "a", participants=2)
    silent, real = begin_session(db, study, "silent"), begin_session(db, study)
    for seq in range(7):
        send(db, real, [event(seq)], now_ms=NOW + 4 * seq * MINUTE)
    assert expect_conflict(db, study, now_ms=NOW + 4 * MINUTE) == "full"
    heir = begin_session(db, study, now_ms=NOW + 16 * MINUTE)
    assert heir.session.units == silent.session.units
    assert expect_conflict(db, study, now_ms=NOW + 20 * MINUTE) == "full"
    assert store.sessions.count_sessions(db, study, now_ms=NOW + 26 * MINUTE).alive == 0
    assert begin_session(db, study, "silent", now_ms=NOW + 17 * MINUTE).resumed
    send(db, real, [], [response(7)], now_ms=NOW + 26 * MINUTE)
    assert store.sessions.count_sessions(db, study, now_ms=NOW + 85 * MINUTE).alive == 1


def send(db, begun, events, responses=(), now_ms=NOW) -> None:
    store.responses.append(db, begun.session.id, responses, events, now_ms=now_ms).result()


def test_daily_sessions_are_limited_except_with_personal_links(db):
    """Someone who begins, answers and leaves repeatedly does not stop anybody with a personal link."""
    study = register_study(db, "a", participants=1)
    for _ in range(119):
        begun = begin_session(db, study)
        send(db, begun, [], [response(0)])
        store.sessions.leave(db, begun.session, keep=True)
    assert not store.sessions.get_start_limits(db, study, now_ms=NOW).all_refused
    send(db, begin_session(db, study, "pid"), [], [response(0)])
    later, tomorrow = NOW + 90 * MINUTE, NOW + 24 * 60 * MINUTE
    assert (
        expect_conflict(db, study, now_ms=later)
        == expect_conflict(db, study, "someone-new", now_ms=later)
        == store.sessions.get_refusal_reason(db, study, now_ms=later)
        == "paused"
    )
    assert store.sessions.get_start_limits(db, study, now_ms=later).all_refused
    assert store.sessions.get_refusal_reason(db, study, has_link=True, now_ms=later) is None
    assert begin_session(db, study, "pid", now_ms=later).resumed
    link = store.sessions.create_links(db, study, 1)[0]
    store.sessions.leave(db, begin_session(db, study, link=link, now_ms=later).session, keep=False)
    assert not begin_session(db, study, now_ms=tomorrow).resumed


@pytest.mark.parametrize("end", ["keep", "withdraw", "idle"])
def test_sessions_without_an_answer_do_not_close_a_study(db, end, monkeypatch):
    """They do not count, and only the newest are kept, so that they do not fill the disk either."""
    monkeypatch.setattr(assignment, "EXTRA_DAILY_SESSIONS", -15)
    study = register_study(db, "a", participants=1)
    (link,) = store.sessions.create_links(db, study, 1)
    by_link = begin_session(db, study, "linked", link=link).session
    store.sessions.leave(db, by_link, keep=True)
    begun = []
    for number in range(20):
        now_ms = NOW + 6 * number * MINUTE
        begun.append(begin_session(db, study, f"pid{number}", now_ms=now_ms).session)
        if end != "idle":
            store.sessions.leave(db, begun[-1], keep=end == "keep")
    stored = {session["name"] for session in store.sessions.list_sessions(db, study)}
    assert stored == {by_link.name, *(session.name for session in begun[-6:])}
    assert count(db, participants) == 7
    assert store.sessions.get_refusal_reason(db, study, now_ms=NOW + 300 * MINUTE) is None


def test_same_entry_resumes_the_session(db):
    study, other = register_study(db), register_study(db, name="other")
    first, second = begin_session(db, study, entry="e" * 16), begin_session(db, study, entry="e" * 16)
    assert (first.resumed, second.resumed) == (False, True)
    assert second.session == first.session
    assert second.token == first.token, (
        "a request to begin may arrive twice, and either reply may be the one heard"
    )
    assert begin_session(db, study, entry="f" * 16).session.id != first.session.id
    assert not begin_session(db, other, entry="e" * 16).resumed
    with db.reading() as connection:
        assert "e" * 16 not in str(connection.execute(select(sessions)).all())
    complete_session(db, second)
    assert expect_conflict(db, study, entry="e" * 16) == "already"


def test_entry_is_ignored_with_a_link_or_an_identity(db):
    """Several people may share a browser; a Prolific identity or a link says who it is."""
    study = register_study(db, participants=6)
    (link,) = store.sessions.create_links(db, study, 1)
    entry = "e" * 16
    people = [
        begin_session(db, study, entry=entry),
        begin_session(db, study, "pid", entry=entry),
        begin_session(db, study, "other", entry=entry),
        begin_session(db, study, link=link, entry=entry),
    ]
    assert not any(each.resumed for each in people)
    assert begin_session(db, study, "pid", entry=entry).session == people[1].session
    assert begin_session(db, study, entry=entry).session == people[0].session


def test_each_session_of_a_page_has_its_own_token(db):
    """Withdrawn sessions, and those whose identity was forgotten, keep their tokens."""
    study = register_study(db, participants=9)
    here = {"entry": "e" * 16}
    begun = [begin_session(db, study, "pid", **here)]
    store.sessions.leave(db, begun[-1].session, keep=False)
    begun.append(begin_session(db, study, "pid", **here))
    store.sessions.forget_identities(db, study, now_ms=NOW + 61 * MINUTE)
    begun.append(begin_session(db, study, "pid", **here))
    assert not any(each.resumed for each in begun)
    assert len({each.token for each in begun}) == len({each.session.id for each in begun}) == 3
    assert begin_session(db, study, "pid", **here).token == begun[-1].token
    assert store.sessions.rows.get_by_token(db, begun[1].token).id == begun[1].session.id


def test_revoking_unused_links(db):
    study, other = register_study(db, participants=3), register_study(db, name="other")
    used, unused = store.sessions.create_links(db, study, 2)
    (elsewhere,) = store.sessions.create_links(db, other, 1)
    mine = begin_session(db, study, link=used)
    assert store.sessions.count_unused_links(db, study) == 1
    assert store.sessions.revoke_links(db, study) == 1
    assert store.sessions.count_unused_links(db, study) == 0
    assert expect_conflict(db, study, link=unused) == "link"
    assert begin_session(db, study, link=used).session == mine.session
    assert not begin_session(db, other, link=elsewhere).resumed


def test_link_and_identity_of_different_participants(db):
    """First recognised by their identity, then by a link in the same address: two sessions with two tokens."""
    study = register_study(db)
    (link,) = store.sessions.create_links(db, study, 1)
    mine = begin_session(db, study, "mine", entry="e" * 16)
    again = begin_session(db, study, "mine", link=link, entry="e" * 16)
    other = begin_session(db, study, "other", link=link, entry="f" * 16)
    now = begin_session(db, study, "mine", link=link, entry="e" * 16)
    assert (again.session.id, now.session.id) == (mine.session.id, other.session.id)
    assert len({mine.token, other.token, now.token}) == 3
    assert again.token == mine.token


def test_failed_draw_keeps_the_session_of_a_repeated_request(db):
    study = register_study(db)

    def fails(units):
        twin.append(begin_session(db, study, entry="e" * 16))
        raise RuntimeError("no memory")

    twin: list = []
    with pytest.raises(RuntimeError):
        store.sessions.begin(db, study, fails, entry="e" * 16, now_ms=NOW)
    complete_session(db, twin[0])
    assert count(db, participants) == count(db, sessions) == 1


@pytest.mark.parametrize("round_", range(3))
def test_simultaneous_requests_with_one_entry_are_one_participant(db, round_):
    study = register_study(db)
    run_simultaneously(8, lambda _: begin_session(db, study, entry=f"entry-of-sixteen-{round_}"))
    assert count(db, sessions) == count(db, participants) == 1


def test_closed_study_accepts_only_sessions_that_have_begun(db):
    study = register_study(db)
    begin_session(db, study, "pid")
    store.studies.close(db, study.name)
    assert expect_conflict(db, study, "another") == "closed"
    assert store.sessions.get_refusal_reason(db, study, now_ms=NOW) == "closed"
    assert begin_session(db, study, "pid").resumed
    store.studies.reopen(db, study.name)
    begin_session(db, study, "another")


def test_a_personal_link_is_for_one_participant(db):
    study = register_study(db, more="personal_links_only = true")
    mine, other = store.sessions.create_links(db, study, 2)
    assert expect_conflict(db, study) == "link"
    assert expect_conflict(db, study, link="invented") == "link"
    first = begin_session(db, study, link=mine)
    assert begin_session(db, study, link=mine).session == first.session
    assert begin_session(db, study, link=other).session.participant != first.session.participant
    complete_session(db, first)
    assert expect_conflict(db, study, link=mine) == "already"


def test_a_prolific_id_does_not_replace_a_personal_link(db):
    """A session with both is resumed by its link alone, also if somebody has another link of the study."""
    study = register_study(db, more="personal_links_only = true")
    mine, other = store.sessions.create_links(db, study, 2)
    first = begin_session(db, study, "pid", link=mine)
    assert expect_conflict(db, study, "pid") == "link"
    assert expect_conflict(db, study, "pid", entry="e" * 22) == "link"
    assert expect_conflict(db, study, "pid", link=other) == "link"
    assert store.sessions.get_by_token(db, first.token) == first.session, "its token is still valid"
    assert begin_session(db, study, link=mine).resumed
    (again,) = store.sessions.create_links(db, study, 1, prolific_pid="pid")
    assert begin_session(db, study, "pid", link=again).session == first.session, "as `vseg lab` resumes it"
    (new,) = store.sessions.create_links(db, study, 1, prolific_pid="new")
    assert not begin_session(db, study, "new", link=new).resumed


def test_link_of_another_study_is_refused(db):
    other, study = register_study(db, name="other"), register_study(db)
    (link,) = store.sessions.create_links(db, other, 1)
    assert expect_conflict(db, study, link=link) == "link"


@pytest.mark.parametrize("count", [0, 10_001])
def test_number_of_links_is_limited(db, count):
    with pytest.raises(InvalidInput, match="1 to 10000"):
        store.sessions.create_links(db, register_study(db), count)


def test_study_open_to_prolific_only(db):
    study = register_study(db, more='prolific = {completion_code = "C0DE", required = true}')
    assert expect_conflict(db, study) == "prolific"
    begin_session(db, study, "pid")


def test_identities_are_stored_separately_and_have_limited_length(db):
    study = register_study(db)
    name = begin_session(db, study, "pid").session.participant
    begin_session(db, study)
    assert read_identities(db, study) == {name: Identity("pid", "a-study", "a-session")}
    for odd in ("", "x" * 65, "a\x00b"):
        with pytest.raises(InvalidInput, match="prolific_pid"):
            begin_session(db, study, odd)


def test_begin_refuses_a_study_that_was_changed_meanwhile(db):
    study = register_study(db)
    register_study(db, participants=5)
    assert expect_conflict(db, study) == "changed"


def test_failed_draw_leaves_no_session(db):
    study = register_study(db, participants=1)

    def fails(units):
        raise InvalidInput("no pairs")

    with pytest.raises(InvalidInput, match="no pairs"):
        store.sessions.begin(db, study, fails, identity=Identity("pid"), now_ms=NOW)
    assert count(db, sessions) == count(db, participants) == count(db, identities) == 0
    assert not begin_session(db, study, "pid").resumed


@pytest.mark.parametrize("round_", range(3))
def test_simultaneous_requests_with_one_identity_are_one_participant(db, round_):
    study = register_study(db)
    run_simultaneously(8, lambda _: begin_session(db, study, f"pid{round_}"))
    assert count(db, sessions) == count(db, participants) == count(db, identities) == 1


def test_the_last_place_is_assigned_once(db):
    study = register_study(db, participants=3)

    def attempt(_):
        try:
            return begin_session(db, study).session
        except Conflict as full:
            return full.reason

    found = run_simultaneously(10, attempt)
    given = [session for session in found if session != "full"]
    assert len(given) == count(db, sessions) == 3
    units = [(unit.image, unit.unit) for session in given for unit in session.units]
    assert len(set(units)) == 3


def test_progress_reports_what_has_arrived(db):
    begun = begin_session(db, register_study(db))
    empty = store.sessions.get_progress(db, begun.session)
    assert (empty.next_seq, empty.last_at_ms, empty.answers, empty.restarts) == (0, NOW, [], [])
    rows = [response(1, 0, flags="late"), response(4, 0)]
    store.responses.append(db, begun.session.id, rows, [event(0)], now_ms=NOW + 5).result()
    found = store.sessions.get_progress(db, begun.session)
    assert (found.next_seq, found.last_at_ms, found.answered_at_ms) == (5, NOW + 5, NOW + 5)
    assert found.answers == [(1, 0, "late"), (4, 0, "")]


@pytest.mark.parametrize("clock_off_ms", [-7_200_000, 0, 90_000])
def test_progress_reports_when_answers_were_given_not_when_they_arrived(db, clock_off_ms):
    """Two answers were given offline and arrive an hour later, from a page whose clock may be wrong."""
    begun, hour_ms = begin_session(db, register_study(db)), 3_600_000
    at = {"at_ms": NOW + clock_off_ms}
    store.responses.append(db, begun.session.id, [], [event(0) | at], now_ms=NOW + 40).result()
    kept = [response(seq, 0, shown_at_ms=NOW + clock_off_ms + 1000 * seq) for seq in (1, 2)]
    back = event(3, "resumed") | {"at_ms": NOW + clock_off_ms + hour_ms}
    store.responses.append(db, begun.session.id, kept, [], now_ms=NOW + hour_ms + 900).result()
    before = store.sessions.get_progress(db, begun.session)
    assert before.answered_at_ms == NOW + 2040
    store.responses.append(db, begun.session.id, [], [back], now_ms=NOW + hour_ms + 900).result()
    assert store.sessions.get_progress(db, begun.session).last_at_ms == NOW + hour_ms + 900


def test_progress_uses_the_clock_of_the_current_device(db):
    """The clock of the second device is an hour behind that of the first; there was no interruption."""
    begun, hour_ms = begin_session(db, register_study(db)), 3_600_000
    first = [response(0, 0, shown_at_ms=NOW)]
    store.responses.append(db, begun.session.id, first, [], now_ms=NOW + 30).result()
    there = event(1, "resumed") | {"at_ms": NOW + 5000 - hour_ms}
    second = [response(2, 0, shown_at_ms=NOW + 6000 - hour_ms)]
    store.responses.append(db, begun.session.id, second, [there], now_ms=NOW + 6050).result()
    found = store.sessions.get_progress(db, begun.session)
    assert (found.answered_at_ms, found.last_at_ms) == (NOW + 6050, NOW + 6050)


@pytest.mark.parametrize("fast_ms", [86_400_000, 300_000])
def test_progress_handles_a_clock_that_was_set_back(db, fast_ms):
    """The clock was fast for the first two answers and then corrected; there was no interruption."""
    begun, at_ms = begin_session(db, register_study(db)), NOW
    for seq in range(20):
        at_ms = NOW + 2 * MINUTE * seq
        by_the_page = at_ms + (fast_ms if seq < 2 else 0)
        row = response(seq, 0, shown_at_ms=by_the_page)
        store.responses.append(db, begun.session.id, [row], [], now_ms=at_ms + 200).result()
    assert store.sessions.get_progress(db, begun.session).answered_at_ms == at_ms + 200


def test_progress_handles_a_clock_that_was_set_forward(db):
    """The clock of a computer without a battery was set right after an answer; there was no interruption."""
    begun, years_ms = begin_session(db, register_study(db)), 16 * 365 * 86_400_000
    first = [response(0, 0, shown_at_ms=NOW + MINUTE - years_ms)]
    store.responses.append(db, begun.session.id, first, [], now_ms=NOW + MINUTE + 200).result()
    then = event(1) | {"at_ms": NOW + 2 * MINUTE}
    store.responses.append(db, begun.session.id, [], [then], now_ms=NOW + 2 * MINUTE + 100).result()
    found = store.sessions.get_progress(db, begun.session)
    assert (found.answered_at_ms, found.last_at_ms) == (NOW + MINUTE + 200, NOW + 2 * MINUTE + 100)


def test_progress_reports_where_blocks_began_again(db):
    begun = begin_session(db, register_study(db))
    told = [1, None, 0, 2, -1, True, 1.0, "1", [1], {}]
    rows = [event(seq, "resumed", away_ms=5, repeat=repeat) for seq, repeat in enumerate(told)]
    more = [event(20, "break", repeat=1), event(21, "resumed")]
    store.responses.append(db, begun.session.id, [], [*rows, *more]).result()
    assert store.sessions.get_progress(db, begun.session).restarts == [(0, 1), (2, 0)], (
        "this session has two items"
    )


def test_replaced_token_stores_nothing(db):
    study = register_study(db)
    first, second = begin_session(db, study, "pid"), begin_session(db, study, "pid")
    with pytest.raises(NotAllowed, match="newer token"):
        store.responses.append(
            db, first.session.id, [response(0)], [], token_hash=hash_token(first.token)
        ).result()
    store.responses.append(
        db, first.session.id, [response(0)], [], token_hash=hash_token(second.token)
    ).result()
    assert count(db, responses) == 1


def test_complete_requires_every_record_and_every_trial(db):
    begun = begin_session(db, register_study(db))
    store.responses.append(db, begun.session.id, [response(1, 0)], []).result()
    assert store.sessions.complete(db, begun.session, 4) == [0, 2, 3]
    store.responses.append(db, begun.session.id, [], [event(0), event(2), event(3)]).result()
    with pytest.raises(Conflict, match="1 of 2 trials have no answer") as caught:
        store.sessions.complete(db, begun.session, 4)
    assert caught.value.reason == "unanswered"
    store.responses.append(db, begun.session.id, [response(4, 1)], []).result()
    assert store.sessions.complete(db, begun.session, 5) == []
    assert store.sessions.complete(db, begun.session, 5) == [], "a resend is answered like the first time"
    assert store.sessions.get_by_token(db, begun.token).status == "completed"


def test_session_that_was_left_cannot_be_completed(db):
    begun = begin_session(db, register_study(db))
    answer_all(db, begun)
    store.sessions.leave(db, begun.session, keep=True)
    with pytest.raises(Conflict, match="is left"):
        store.sessions.complete(db, begun.session, 2)


def test_leaving_and_keeping_the_data(db):
    study = register_study(db)
    begun = begin_session(db, study, "pid")
    answer_all(db, begun)
    store.sessions.leave(db, begun.session, keep=True)
    store.sessions.leave(db, begun.session, keep=True)
    assert store.sessions.get_by_token(db, begun.token).status == "left"
    assert count(db, responses) == 2
    assert list(read_identities(db, study)) == [begun.session.participant]


@pytest.mark.parametrize("before", ["active", "left", "completed"])
def test_withdrawing_deletes_data_and_identity_at_any_time(db, before):
    study = register_study(db)
    begun, other = begin_session(db, study, "pid"), begin_session(db, study, "other")
    answer_all(db, begun)
    answer_all(db, other)
    store.responses.append(db, begun.session.id, [], [event(2)]).result()
    if before == "left":
        store.sessions.leave(db, begun.session, keep=True)
    elif before == "completed":
        store.sessions.complete(db, begun.session, 3)
    store.sessions.leave(db, begun.session, keep=False)
    store.sessions.leave(db, begun.session, keep=True)
    assert store.sessions.get_by_token(db, begun.token).status == "withdrawn"
    assert count(db, responses) == 2
    assert count(db, events) == 0
    assert list(read_identities(db, study)) == [other.session.participant]


def test_counts_and_list_of_sessions(db):
    study = register_study(db, "a", participants=5)
    done, gone, here, silent = (begin_session(db, study, now_ms=NOW - ago) for ago in (0, 0, 0, 90 * MINUTE))
    complete_session(db, done)
    store.sessions.leave(db, gone.session, keep=True)
    found = store.sessions.count_sessions(db, study, now_ms=NOW)
    assert (found.completed, found.active, found.left, found.withdrawn, found.ended) == (1, 2, 1, 0, 0)
    assert found.alive == 1
    units = {0: "completed", 2: "alive"}
    assert found.images == {"a": {"wanted": 5, "completed": 1, "alive": 1, "units": units}}
    rows = store.sessions.list_sessions(db, study)
    assert [row["name"] for row in rows] == [each.session.name for each in (done, gone, here, silent)]
    assert [row["responses"] for row in rows] == [2, 0, 0, 0]


def run_simultaneously(many: int, work):
    """Call a function from several threads that start at the same time."""
    gate = threading.Barrier(many)

    def wait_and_work(number):
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(many) as pool:
        return list(pool.map(wait_and_work, range(many)))


def test_a_first_answer_that_arrives_while_empty_sessions_are_deleted_is_kept(postgres_url, monkeypatch):
    """On SQLite nobody else writes meanwhile."""
    with store.open(postgres_url) as db, store.open(postgres_url) as other_worker:
        study = register_study(db, participants=2)
        old, answering = (begin_session(db, study, now_ms=NOW - 60 * MINUTE).session for _ in range(2))

        def answer(connection, cursor, statement, *_) -> None:
            if "FOR UPDATE SKIP LOCKED" in statement and not count(db, responses):
                store.responses.append(other_worker, answering.id, [response(0)], []).result()

        sql.listen(db._writing, "before_cursor_execute", answer)
        monkeypatch.setattr(assignment, "EXTRA_DAILY_SESSIONS", -2 * assignment.DAILY_SESSIONS_PER_PLACE)
        with db.writing() as connection:
            assignment.delete_old_empty_sessions(connection, study.id, study.study, NOW)
        assert count(db, responses) == 1
        with db.reading() as connection:
            assert connection.scalars(select(sessions.c.id)).all() == [answering.id], f"{old.name} is deleted"
