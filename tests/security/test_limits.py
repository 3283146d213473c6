"""Test the limits on what an anonymous visitor can store: sessions, records and bytes."""

from typing import Any

import pytest
from starlette.requests import Request

from researchers import log_in, post_form
from servers import STUDY, ParticipantClient, event, response, run_server
from vseg import store
from vseg.server import session_cache
from vseg.server.record_validation import MAX_CONTOUR_BYTES, MAX_EVENT_BYTES
from vseg.server.source_limit import (
    DAY_S,
    EXTRA_SESSIONS,
    SESSIONS_PER_PLACE,
    SourceLimit,
    SourceRefused,
    get_source,
)
from vseg.store.conflicts import MAX_STAND_IN_BYTES
from vseg.store.sessions.assignment import DAILY_SESSIONS_PER_PLACE, EXTRA_DAILY_SESSIONS

STRANGERS = STUDY + "[contours]\ndraw = true\n"


@pytest.fixture
def server(database_url):
    with run_server(database_url, STRANGERS) as running:
        yield running


def refused(server, **entry) -> str:
    answer = server.client.post("s/tiny/sessions", json={"consented": True, **entry})
    assert answer.status_code == 409, answer.text
    return str(answer.json()["reason"])


def test_open_sessions_have_a_limit(server):
    """The limit is the study's number of participants; a fourth waits until one of the three is inactive."""
    for _ in range(3):
        server.begin()
    assert refused(server) == refused(server, prolific_pid="someone-new") == "full"
    assert len(store.sessions.list_sessions(server.db, store.studies.get_study(server.db, "tiny"))) == 3


def leave_again_and_again(server, times: int, **headers: str) -> None:
    """Begin, answer one trial and leave, as a script could."""
    for _ in range(times):
        reply = server.client.post("s/tiny/sessions", json={"consented": True}, headers=headers)
        assert reply.status_code == 201, reply.text
        person = ParticipantClient(server.client, "tiny", reply.json())
        assert person.send(response(0, 0)).status_code == 200
        assert person.post("leave", {"data": "keep"}).status_code == 200


def test_sessions_that_are_left_again_and_again_have_a_limit(server, monkeypatch):
    """Each leaves a row, so their number is limited; the researcher sees it and can lift it."""
    monkeypatch.setattr(
        "vseg.store.sessions.assignment.EXTRA_DAILY_SESSIONS", 4 - 3 * DAILY_SESSIONS_PER_PLACE
    )
    leave_again_and_again(server, 4)
    assert refused(server) == "paused"
    assert server.client.get("s/tiny/study.json").json()["reason"] == "paused"
    log_in(server)
    assert "New participants are refused" in server.client.get("studies/tiny").text
    assert post_form(server.client, "studies/tiny/reopen").status_code == 303
    assert "New participants are refused" not in server.client.get("studies/tiny").text
    leave_again_and_again(server, 4)
    assert refused(server) == "paused"
    assert EXTRA_DAILY_SESSIONS + DAILY_SESSIONS_PER_PLACE * 3 == 160, "what SECURITY.md says"


def test_sessions_that_are_left_without_an_answer_have_none(server):
    """One script must not shut a study."""
    for _ in range(EXTRA_DAILY_SESSIONS + DAILY_SESSIONS_PER_PLACE * 3 + 1):
        assert server.begin().post("leave", {"data": "withdraw"}).status_code == 200
    server.begin()


def test_one_address_does_not_use_up_the_sessions_of_others(server):
    """A trusted proxy reports addresses; one that begins too many sessions is refused, others are not."""
    most = 3 * SESSIONS_PER_PLACE + EXTRA_SESSIONS
    script, other = {"X-Forwarded-For": "9.9.9.9"}, {"X-Forwarded-For": "8.8.8.8"}
    leave_again_and_again(server, most, **script)
    reply = server.client.post("s/tiny/sessions", json={"consented": True}, headers=script)
    assert (reply.status_code, reply.json()["reason"]) == (409, "paused")
    invented = {"X-Forwarded-For": "1.1.1.1, 9.9.9.9"}
    reply = server.client.post("s/tiny/sessions", json={"consented": True}, headers=invented)
    assert reply.status_code == 409, "the proxy appends the true address to what the client sent"
    leave_again_and_again(server, 2, **other)
    leave_again_and_again(server, 1)
    log_in(server)
    page = server.client.get("studies/tiny").text
    assert "at least one address" in page
    assert "9.9.9.9" not in page
    assert post_form(server.client, "studies/tiny/reopen").status_code == 303
    assert "at least one address" not in server.client.get("studies/tiny").text
    leave_again_and_again(server, 1, **script)


@pytest.mark.parametrize(
    ("host", "source"),
    [
        ("9.9.9.9", "9.9.9.9"),
        ("::ffff:9.9.9.9", "9.9.9.9"),
        ("2620:fe::9", "2620:fe::/64"),
        ("2620:fe::1:2:3:4", "2620:fe::/64"),
        ("127.0.0.1", None),
        ("::1", None),
        ("::ffff:10.0.0.1", None),
        ("192.168.1.5", None),
        ("172.17.0.1", None),
        ("fe80::1%eth0", None),
        ("unix", None),
        ("", None),
    ],
)
def test_an_address_counts_if_it_is_public(host, source):
    assert get_source(Request({"type": "http", "client": (host, 1), "headers": []})) == source
    assert get_source(Request({"type": "http", "client": None, "headers": []})) is None


def test_addresses_are_forgotten_after_a_day(server):
    now = 1_000_000.0
    study = store.studies.get_study(server.db, "tiny")
    limit = SourceLimit(lambda: now)
    for _ in range(3 * SESSIONS_PER_PLACE + EXTRA_SESSIONS):
        limit.admit(study, "9.9.9.9", 0)
    with pytest.raises(SourceRefused):
        limit.admit(study, "9.9.9.9", 0)
    assert "9.9.9.9" not in repr(vars(limit))
    limit.admit(study, "9.9.9.9", 1)
    now += DAY_S
    limit.admit(study, "9.9.9.9", 0)


def test_the_size_of_a_session_is_limited(server):
    """Send as many answers, events and drawings of the largest size as possible."""
    person = server.begin()
    most, items = session_cache.CachedSession.max_records(person.items), person.items
    stored = 0
    seq = 0
    for kind, size in (("comment", MAX_EVENT_BYTES), ("contours", MAX_CONTOUR_BYTES)):
        while True:
            answer = person.send(event(seq, kind, text="x" * (size - 11)))
            if answer.status_code != 200:
                assert answer.status_code in (409, 422), answer.text
                break
            stored, seq = stored + size, seq + 1
    assert (
        stored
        <= (session_cache.EXTRA_EVENTS + items) * MAX_EVENT_BYTES
        + (session_cache.EXTRA_CONTOURS + 1) * MAX_CONTOUR_BYTES
    )
    assert person.send(response(most, 0)).status_code == 422
    assert person.send(response(most - 1, 0)).status_code == 200
    assert stored < 1_200_000, "what SECURITY.md says, in bytes"
    assert stored + (most - seq) * MAX_STAND_IN_BYTES < 2_100_000, "with what stands in for refused ones"


def stand_in(seq: int, message: str) -> dict[str, Any]:
    data = {"reason": "refused", "kind": "comment", "item": None, "message": message}
    return event(seq, "interruption") | {"data": data}


def test_a_page_with_too_many_events_continues(server):
    """The page replaces refused events by small ones: all answers arrive, and the session completes."""
    person = server.begin()
    most = session_cache.EXTRA_EVENTS + person.items
    for start in range(0, most, 100):
        sent = person.send(*(event(seq, "comment") for seq in range(start, min(start + 100, most))))
        assert sent.status_code == 200, sent.text
    refused = person.send(event(most, "comment"))
    assert refused.status_code == 422
    why = refused.json()["message"]
    for _ in range(2):
        assert person.send(stand_in(most, why)).json()["stored"] == [most], "also once more"
    assert person.send(stand_in(most + 1, "x" * MAX_STAND_IN_BYTES)).status_code == 422
    assert person.send(event(most + 1, "comment", reason="refused")).status_code == 422
    assert person.send(event(most + 1, "interruption", reason="pause")).status_code == 422
    assert person.send(event(most + 1, "interruption", reason="lost")).status_code == 200
    assert person.send(stand_in(most + 2, why), event(most + 3, "comment")).status_code == 422
    count = most + 2 + person.items
    for item in range(person.items):
        assert person.send(response(most + 2 + item, item)).status_code == 200
    assert person.post("complete", {"count": count}).status_code == 200


def test_a_repeated_entry_returns_the_same_session(server):
    """A page that is reloaded, or a script that repeats its request, gets its existing session."""
    names = {server.begin(entry="the-entry-of-one-page-alone").state["session"] for _ in range(5)}
    assert len(names) == 1
