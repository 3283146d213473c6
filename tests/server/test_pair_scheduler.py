"""Adaptive studies over real HTTP, on SQLite and on PostgreSQL: choices come with the replies and are stored."""

import threading

import pytest

from adaptive_participants import (
    ADAPTIVE_STUDY,
    SHARED_STUDY,
    STOPPING_STUDY,
    TWO_IMAGE_STUDY,
    AdaptiveParticipant,
    begin_adaptive_session,
)
from servers import ParticipantClient, event, response, run_server
from vseg import store


def batch_items(server, session: int) -> list[int]:
    """Return the items of a session's last batch."""
    with server.db.reading() as connection:
        rows = store.choices.list_choices(connection, session)
    return [row["item"] for row in rows if row["batch"] == rows[-1]["batch"]]


@pytest.fixture
def server(database_url):
    with run_server(database_url, ADAPTIVE_STUDY) as running:
        yield running


def test_a_session_is_asked_the_pairs_chosen_from_its_answers(server):
    """The first pairs are fixed, all later ones chosen; what is stored is what was shown."""
    participant = begin_adaptive_session(server)
    participant.answer_patiently(range(64))
    rows = server.responses("ada")
    assert [(row["i"], row["j"]) for row in rows] == [participant.shown[item] for item in range(64)]
    trials = participant.person.state["trials"]
    real = [item for item in range(64) if trials["image"][item] != "practice"]
    chosen = {row["item"] for row in rows if row["chosen"]}
    assert chosen == set(real[6:])
    assert participant.person.post("complete", {"count": 64}).status_code == 200
    for item, choice in participant.choices.items():
        here = [choice[name] for name in ("x1", "y1", "x2", "y2")]
        places = {trials["i"][at]: [trials["x1"][at], trials["y1"][at]] for at in real}
        places |= {trials["j"][at]: [trials["x2"][at], trials["y2"][at]] for at in real}
        assert here == places[choice["i"]] + places[choice["j"]], item


def test_choices_never_change_and_are_sent_again_to_a_reloaded_page(server):
    participant = begin_adaptive_session(server)
    participant.answer_patiently(range(30))
    number = store.sessions.get_by_token(server.db, participant.person.state["token"]).id
    stored = store.choices.get_chosen_pairs(server.db, number)
    columns = participant.person.get_state().json()["choices"]
    sent = dict(zip(columns["item"], zip(columns["i"], columns["j"], strict=True), strict=True))
    assert sent == {item: pair for item, pair in stored.items() if item >= 30}
    assert len(sent) >= 2
    participant.answer_patiently(range(30, 64))
    assert store.choices.get_chosen_pairs(server.db, number).items() >= stored.items()


def test_a_response_to_a_choice_that_was_never_made_is_refused(server):
    participant = begin_adaptive_session(server)
    refused = participant.person.send(response(0, 5, chosen=True))
    assert refused.status_code == 422
    assert "No pair was chosen for item 5" in refused.json()["message"]
    assert participant.person.send(response(0, 5, chosen=False)).status_code == 200


def test_a_page_that_gets_no_choice_in_time_shows_the_fixed_pairs(server):
    """As if every reply had been lost: the page shows the pairs of its trials, and the session can be completed."""
    person = server.begin("ada")
    for item in range(64):
        assert person.send(response(item, item)).status_code == 200
    rows = server.responses("ada")
    assert not any(row["chosen"] for row in rows)
    assert [row["i"] for row in rows] == person.state["trials"]["i"]
    assert person.post("complete", {"count": 64}).status_code == 200


def test_flagged_answers_are_not_learnt_from_and_keep_their_pair(server):
    participant = begin_adaptive_session(server)
    participant.answer_patiently(range(20))
    before = participant.choices[20]
    participant.answer(20, flags="late")
    participant.answer_patiently(range(21, 60))
    assert participant.choices[20] == before
    participant.answer(20)
    mine = [row for row in server.responses("ada") if row["item"] == 20]
    assert [(row["i"], row["j"], row["chosen"]) for row in mine] == [(before["i"], before["j"], True)] * 2
    number = store.sessions.get_by_token(server.db, participant.person.state["token"]).id
    with server.db.reading() as connection:
        batch = store.choices.list_choices(connection, number)[-1]
        answers = store.choices.read_answers(connection, number).answers
    ((name, records, ahead),) = batch["taken"]
    assert (name, ahead) == (participant.person.state["session"], min(batch_items(server, number)))
    taken = [answer for answer in answers if answer.seq < records]
    assert batch["answers"] == sum(answer.good for answer in taken) < len(taken)


def test_an_item_asked_with_its_fixed_pair_keeps_it_after_a_reload(server):
    participant = begin_adaptive_session(server)
    participant.answer_patiently(range(20))
    del participant.choices[20]  # it came too late
    participant.answer(20, flags="late")
    state = participant.person.get_state().json()
    assert 20 in state["asked_again"]
    assert 20 not in state["choices"]["item"]


def test_answers_after_a_missing_record_are_not_taken_yet(server):
    """The chooser takes records without gaps, so that a replay can take the same ones."""
    participant = begin_adaptive_session(server)
    participant.seq = 1
    participant.answer_patiently(range(1, 30))
    assert not participant.choices
    participant.seq = 0
    participant.answer_patiently([0])
    participant.seq = 30
    participant.answer_patiently(range(30, 64))
    number = store.sessions.get_by_token(server.db, participant.person.state["token"]).id
    with server.db.reading() as connection:
        assert store.choices.list_choices(connection, number)[-1]["answers"] > 30


def test_a_restarted_server_continues_with_the_same_state(database_url):
    with run_server(database_url, ADAPTIVE_STUDY) as first:
        participant = begin_adaptive_session(first)
        participant.answer_patiently(range(30))
        headers, state = participant.person.headers, participant.person.state
        known = dict(participant.choices)
    with run_server(database_url, ADAPTIVE_STUDY) as second:
        person = ParticipantClient(second.client, "ada", state)
        assert person.headers == headers
        other = AdaptiveParticipant(person)
        other.seq, other.choices = 30, known
        other.answer_patiently(range(30, 64))
        rows = second.responses("ada")
        assert [(row["i"], row["j"]) for row in rows[30:]] == [other.shown[item] for item in range(30, 64)]
        assert sum(row["chosen"] for row in rows) == 54


def test_two_workers_never_choose_for_the_same_item(database_url):
    """Two servers over participant database, used in turn."""
    with (
        run_server(database_url, ADAPTIVE_STUDY) as first,
        run_server(database_url, ADAPTIVE_STUDY) as second,
    ):
        participant = begin_adaptive_session(first)
        other = ParticipantClient(second.client, "ada", participant.person.state)
        own = participant.person
        for item in range(64):
            participant.person = (own, other)[item % 2]
            participant.answer_patiently([item])
        rows = first.responses("ada")
        assert [(row["i"], row["j"]) for row in rows] == [participant.shown[item] for item in range(64)]
        assert sum(row["chosen"] for row in rows) == 54
        assert own.post("complete", {"count": 64}).status_code == 200


def test_sessions_that_share_their_answers_learn_from_each_other(database_url):
    """A later session is asked chosen pairs from its first trial on, chosen from everyone's answers."""
    with run_server(database_url, SHARED_STUDY) as server:
        first = begin_adaptive_session(server)
        first.answer_patiently(range(40))
        second = begin_adaptive_session(server)
        second.answer_patiently(range(20))
        first.answer_patiently(range(40, 64))
        number = store.sessions.get_by_token(server.db, first.person.state["token"]).id
        with server.db.reading() as connection:
            last = store.choices.list_choices(connection, number)[-1]
        names = {participant.person.state["session"] for participant in (first, second)}
        assert {name for name, _, _ in last["taken"]} == names
        rows = [row for row in server.responses("ada") if row["session"] == second.person.state["session"]]
        real = [row for row in rows if not (row["practice"] or row["catch"])]
        assert all(row["chosen"] for row in real)


def test_shared_choices_do_not_rest_on_withdrawn_sessions(database_url):
    with run_server(database_url, SHARED_STUDY) as server:
        first, second = begin_adaptive_session(server), begin_adaptive_session(server)
        first.answer_patiently(range(30))
        second.answer_patiently(range(30))
        assert first.person.post("leave", {"data": "withdraw"}).status_code == 200
        second.answer_patiently(range(30, 64))
        number = store.sessions.get_by_token(server.db, second.person.state["token"]).id
        with server.db.reading() as connection:
            last = store.choices.list_choices(connection, number)[-1]
        assert [name for name, _, _ in last["taken"]] == [second.person.state["session"]]
        assert last["answers"] < 60


def test_a_session_stops_when_its_expected_error_is_low_enough(database_url):
    with run_server(database_url, STOPPING_STUDY) as server:
        participant = begin_adaptive_session(server)
        item = 0
        while not participant.stops:
            participant.answer_patiently([item])
            item += 1
        assert participant.stops == [item]
        assert 22 <= item < 50
        assert participant.person.get_state().json()["stops"] == [item]
        assert participant.person.post("complete", {"count": item}).status_code == 200
        assert server.begin("ada").post("complete", {"count": 0}).status_code == 409


def test_answers_given_before_the_stop_arrives_are_stored(database_url):
    with run_server(database_url, STOPPING_STUDY) as server:
        participant = begin_adaptive_session(server)
        participant.answer_patiently(range(60))
        assert participant.stops
        assert participant.stops[0] < 60
        assert len(server.responses("ada")) == 60
        assert participant.person.post("complete", {"count": 60}).status_code == 200


def test_a_second_image_is_asked_about_after_the_first_has_stopped(database_url):
    with run_server(database_url, TWO_IMAGE_STUDY) as server:
        participant = begin_adaptive_session(server)
        trials = participant.person.state["trials"]
        second = 2 + 42  # practice, then forty pairs and two catch trials
        item = 0
        while not participant.stops:
            participant.answer_patiently([item])
            item += 1
        assert participant.person.get_state().json()["next_item"] == second
        refused = participant.person.post("complete", {"count": item})
        assert refused.json()["reason"] == "unanswered"
        assert f"the first is item {second};" in refused.json()["message"]
        participant.answer_patiently(range(second, len(trials["image"])))
        assert len(participant.stops) == 2
        assert participant.person.post("complete", {"count": participant.seq}).status_code == 200


def test_withdrawing_deletes_the_choices(server):
    participant = begin_adaptive_session(server)
    participant.answer_patiently(range(40))
    number = store.sessions.get_by_token(server.db, participant.person.state["token"]).id
    assert store.choices.get_chosen_pairs(server.db, number)
    assert participant.person.post("leave", {"data": "withdraw"}).status_code == 200
    assert store.choices.get_chosen_pairs(server.db, number) == {}


def test_many_sessions_at_once_are_all_served(server):
    """Eight participants answer as fast as they can: every pair that was shown is stored as shown."""
    participants = [begin_adaptive_session(server) for _ in range(8)]

    def go(participant: AdaptiveParticipant) -> None:
        participant.answer_patiently(range(64))

    threads = [threading.Thread(target=go, args=(participant,)) for participant in participants]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for participant in participants:
        mine = [
            row for row in server.responses("ada") if row["session"] == participant.person.state["session"]
        ]
        assert [(row["i"], row["j"]) for row in mine] == [participant.shown[item] for item in range(64)]


def test_the_reply_to_an_event_has_choices_too(server):
    participant = begin_adaptive_session(server)
    participant.answer_patiently(range(20))
    reply = participant.person.send(event(participant.seq, "break", ms=1)).json()
    assert set(reply) == {"stored", "choices", "stops", "choosing"}
    assert reply["choices"]["item"]


def test_a_shared_study_goes_on_when_few_unasked_pairs_are_left(tmp_path, caplog):
    """On 16 locations there are 120 pairs; three participants are asked 150."""
    small = SHARED_STUDY.replace("trials = 60", "trials = 50")
    assert small != SHARED_STUDY
    with run_server(f"sqlite:///{tmp_path}/vseg.db", small) as server:
        for _ in range(3):
            participant = begin_adaptive_session(server)
            participant.answer_patiently(range(len(participant.person.state["trials"]["i"])))
            asked = [row for row in server.responses("ada") if row["chosen"]]
    assert asked
    assert "failed" not in caplog.text
