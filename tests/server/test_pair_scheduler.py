"""Adaptive studies over real HTTP, on SQLite and on PostgreSQL: choices come with the replies, and are kept."""

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
    """The items of a session's last batch."""
    with server.db.reading() as connection:
        rows = store.choices.list_choices(connection, session)
    return [row["item"] for row in rows if row["batch"] == rows[-1]["batch"]]


@pytest.fixture
def server(database_url):
    with run_server(database_url, ADAPTIVE_STUDY) as running:
        yield running


def test_a_session_is_asked_what_was_chosen_from_its_answers(server):
    """The first pairs are fixed, all later ones chosen; what is stored is what was shown."""
    one = begin_adaptive_session(server)
    one.answer_patiently(range(64))
    rows = server.responses("ada")
    assert [(row["i"], row["j"]) for row in rows] == [one.shown[item] for item in range(64)]
    trials = one.person.state["trials"]
    real = [item for item in range(64) if not (trials["practice"][item] or trials["catch"][item])]
    chosen = {row["item"] for row in rows if row["chosen"]}
    assert chosen == set(real[6:])
    assert one.person.post("complete", {"count": 64}).status_code == 200
    for item, choice in one.choices.items():
        here = [choice[name] for name in ("x1", "y1", "x2", "y2")]
        places = {trials["i"][at]: [trials["x1"][at], trials["y1"][at]] for at in real}
        places |= {trials["j"][at]: [trials["x2"][at], trials["y2"][at]] for at in real}
        assert here == places[choice["i"]] + places[choice["j"]], item


def test_choices_are_never_changed_and_come_again_to_a_page_that_was_reloaded(server):
    one = begin_adaptive_session(server)
    one.answer_patiently(range(30))
    number = store.sessions.get_by_token(server.db, one.person.state["token"]).id
    stored = store.choices.get_chosen_pairs(server.db, number)
    again = one.person.get_state().json()
    columns = again["choices"]
    told = dict(zip(columns["item"], zip(columns["i"], columns["j"], strict=True), strict=True))
    assert told == {item: pair for item, pair in stored.items() if item >= 30}
    assert len(told) >= 2
    one.answer_patiently(range(30, 64))
    assert store.choices.get_chosen_pairs(server.db, number).items() >= stored.items()


def test_who_says_that_it_showed_a_choice_must_have_got_one(server):
    one = begin_adaptive_session(server)
    refused = one.person.send(response(0, 5, chosen=True))
    assert refused.status_code == 422
    assert "No pair was chosen for item 5" in refused.json()["message"]
    assert one.person.send(response(0, 5, chosen=False)).status_code == 200


def test_a_page_that_heard_of_nothing_in_time_shows_the_fixed_pairs(server):
    """As if every reply had been lost: all is answered from the trials, and the session is complete."""
    person = server.begin("ada")
    for item in range(64):
        assert person.send(response(item, item)).status_code == 200
    rows = server.responses("ada")
    assert not any(row["chosen"] for row in rows)
    assert [row["i"] for row in rows] == person.state["trials"]["i"]
    assert person.post("complete", {"count": 64}).status_code == 200


def test_flagged_answers_teach_nothing_and_keep_their_pair(server):
    one = begin_adaptive_session(server)
    one.answer_patiently(range(20))
    before = one.choices[20]
    one.answer(20, flags="late")
    one.answer_patiently(range(21, 60))
    assert one.choices[20] == before
    one.answer(20)
    mine = [row for row in server.responses("ada") if row["item"] == 20]
    assert [(row["i"], row["j"], row["chosen"]) for row in mine] == [(before["i"], before["j"], True)] * 2
    number = store.sessions.get_by_token(server.db, one.person.state["token"]).id
    with server.db.reading() as connection:
        batch = store.choices.list_choices(connection, number)[-1]
        heard = store.choices.read_answers(connection, number)
    ((name, records, ahead),) = batch["taken"]
    assert (name, ahead) == (one.person.state["session"], min(batch_items(server, number)))
    good = [each for each in heard.answers if each.seq < records and each.good]
    assert batch["answers"] == len(good) < len([each for each in heard.answers if each.seq < records])


def test_what_was_asked_with_its_fixed_pair_keeps_that_after_a_reload(server):
    one = begin_adaptive_session(server)
    one.answer_patiently(range(20))
    del one.choices[20]  # it came too late
    one.answer(20, flags="late")
    told = one.person.get_state().json()
    assert 20 in told["asked_again"]
    assert 20 not in told["choices"]["item"]


def test_a_record_that_is_missing_is_waited_for(server):
    """The state knows an unbroken beginning of the records, so that any replay can know the same."""
    one = begin_adaptive_session(server)
    one.seq = 1
    one.answer_patiently(range(1, 30))
    assert not one.choices
    one.seq = 0
    one.answer_patiently([0])
    one.seq = 30
    one.answer_patiently(range(30, 64))
    number = store.sessions.get_by_token(server.db, one.person.state["token"]).id
    with server.db.reading() as connection:
        assert [each["answers"] for each in store.choices.list_choices(connection, number)][-1] > 30


def test_a_restarted_server_goes_on_with_the_same_state(database_url):
    with run_server(database_url, ADAPTIVE_STUDY) as first:
        one = begin_adaptive_session(first)
        one.answer_patiently(range(30))
        headers, state = one.person.headers, one.person.state
        known = dict(one.choices)
    with run_server(database_url, ADAPTIVE_STUDY) as second:
        person = ParticipantClient(second.client, "ada", state)
        assert person.headers == headers
        other = AdaptiveParticipant(person)
        other.seq, other.choices = 30, known
        other.answer_patiently(range(30, 64))
        rows = second.responses("ada")
        assert [(row["i"], row["j"]) for row in rows[30:]] == [other.shown[item] for item in range(30, 64)]
        assert sum(row["chosen"] for row in rows) == 54


def test_a_second_worker_knows_what_the_first_has_chosen(database_url):
    """Two servers over one database, asked in turn; nothing is chosen twice."""
    with (
        run_server(database_url, ADAPTIVE_STUDY) as first,
        run_server(database_url, ADAPTIVE_STUDY) as second,
    ):
        one = begin_adaptive_session(first)
        other = ParticipantClient(second.client, "ada", one.person.state)
        own = one.person
        for item in range(64):
            one.person = (own, other)[item % 2]
            one.answer_patiently([item])
        rows = first.responses("ada")
        assert [(row["i"], row["j"]) for row in rows] == [one.shown[item] for item in range(64)]
        assert sum(row["chosen"] for row in rows) == 54
        assert own.post("complete", {"count": 64}).status_code == 200


def test_a_crowd_feeds_one_map(database_url):
    """Who comes later is asked chosen pairs from the first trial on, and they follow from everybody's answers."""
    with run_server(database_url, SHARED_STUDY) as server:
        first = begin_adaptive_session(server)
        first.answer_patiently(range(40))
        second = begin_adaptive_session(server)
        second.answer_patiently(range(20))
        first.answer_patiently(range(40, 64))
        number = store.sessions.get_by_token(server.db, first.person.state["token"]).id
        with server.db.reading() as connection:
            last = store.choices.list_choices(connection, number)[-1]
        names = {one.person.state["session"] for one in (first, second)}
        assert {name for name, _, _ in last["taken"]} == names
        rows = [row for row in server.responses("ada") if row["session"] == second.person.state["session"]]
        real = [row for row in rows if not (row["practice"] or row["catch"])]
        assert all(row["chosen"] for row in real)


def test_a_crowd_forgets_whoever_withdraws(database_url):
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


def test_a_session_ends_when_its_map_is_known_well_enough(database_url):
    with run_server(database_url, STOPPING_STUDY) as server:
        one = begin_adaptive_session(server)
        item = 0
        while not one.stops:
            one.answer_patiently([item])
            item += 1
        assert one.stops == [item]
        assert 22 <= item < 50
        assert one.person.get_state().json()["stops"] == [item]
        assert one.person.post("complete", {"count": item}).status_code == 200
        assert server.begin("ada").post("complete", {"count": 0}).status_code == 409


def test_answers_that_were_given_before_the_stop_was_known_are_kept(database_url):
    with run_server(database_url, STOPPING_STUDY) as server:
        one = begin_adaptive_session(server)
        one.answer_patiently(range(60))
        assert one.stops
        assert one.stops[0] < 60
        assert len(server.responses("ada")) == 60
        assert one.person.post("complete", {"count": 60}).status_code == 200


def test_a_second_image_is_asked_after_the_first_has_stopped(database_url):
    with run_server(database_url, TWO_IMAGE_STUDY) as server:
        one = begin_adaptive_session(server)
        trials = one.person.state["trials"]
        second = 2 + 42  # practice, then forty pairs and two catch trials
        item = 0
        while not one.stops:
            one.answer_patiently([item])
            item += 1
        told = one.person.get_state().json()
        assert told["next_item"] == second
        refused = one.person.post("complete", {"count": item})
        assert refused.json()["reason"] == "unanswered"
        assert f"the first is item {second};" in refused.json()["message"]
        one.answer_patiently(range(second, len(trials["image"])))
        assert len(one.stops) == 2
        assert one.person.post("complete", {"count": one.seq}).status_code == 200


def test_leaving_takes_the_choices_along(server):
    one = begin_adaptive_session(server)
    one.answer_patiently(range(40))
    number = store.sessions.get_by_token(server.db, one.person.state["token"]).id
    assert store.choices.get_chosen_pairs(server.db, number)
    assert one.person.post("leave", {"data": "withdraw"}).status_code == 200
    assert store.choices.get_chosen_pairs(server.db, number) == {}


def test_many_at_once_are_all_served(server):
    """Eight who answer as fast as they can while others do: every choice that was shown is stored as shown."""
    takers = [begin_adaptive_session(server) for _ in range(8)]

    def go(one: AdaptiveParticipant) -> None:
        one.answer_patiently(range(64))

    threads = [threading.Thread(target=go, args=(one,)) for one in takers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in takers:
        mine = [row for row in server.responses("ada") if row["session"] == one.person.state["session"]]
        assert [(row["i"], row["j"]) for row in mine] == [one.shown[item] for item in range(64)]


def test_an_event_hears_of_choices_too(server):
    one = begin_adaptive_session(server)
    one.answer_patiently(range(20))
    said = one.person.send(event(one.seq, "break", ms=1)).json()
    assert set(said) == {"stored", "choices", "stops", "choosing"}
    assert said["choices"]["item"]


def test_a_crowd_goes_on_when_few_pairs_are_left_that_nobody_was_asked(tmp_path, caplog):
    """On 16 locations there are 120 pairs; three people are asked for 150."""
    small = SHARED_STUDY.replace("trials = 60", "trials = 50")
    assert small != SHARED_STUDY
    with run_server(f"sqlite:///{tmp_path}/vseg.db", small) as server:
        for _ in range(3):
            one = begin_adaptive_session(server)
            one.answer_patiently(range(len(one.person.state["trials"]["i"])))
            asked = [row for row in server.responses("ada") if row["chosen"]]
    assert asked
    assert "failed" not in caplog.text
