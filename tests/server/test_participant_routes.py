"""The participants' routes over real HTTP, on SQLite and on PostgreSQL."""

from contextlib import closing

import httpx
import pytest

from servers import STUDY, ParticipantClient, event, response, run_server
from vseg import monitor, store
from vseg.monitor.participants import TOO_FAST
from vseg.store.snapshot import take_snapshot


@pytest.fixture
def server(database_url):
    with run_server(database_url) as running:
        yield running


def test_a_whole_session(server):
    """Image and pair of a response come from the server's trials; the code comes after everything has arrived."""
    participant = server.begin(prolific_pid="a1", prolific_study="b2", prolific_session="c3")
    count = participant.answer_all()
    assert participant.send(event(count, "comment", text="Fun!")).json() == {"stored": [count]}
    server.let_time_pass()
    reply = participant.post("complete", {"count": count + 1})
    assert reply.status_code == 200
    assert reply.json() == {
        "completion_code": "THANKS42",
        "return_url": "https://app.prolific.com/submissions/complete?cc=THANKS42",
    }
    rows = server.responses()
    trials = participant.state["trials"]
    for name in ("image", "block", "trial", "i", "j", "practice"):
        assert [row[name] for row in rows] == trials[name]
    assert [row["item"] for row in rows if row["catch"]] == [
        item for item, image in enumerate(trials["image"]) if image == "practice" and item >= 2
    ]
    assert [row["same"] for row in rows] == [item % 2 == 0 for item in range(count)]
    assert {row["status"] for row in rows} == {"completed"}


def test_the_public_description_of_a_study(server):
    reply = server.client.get("s/tiny/study.json")
    study = reply.json()
    assert (study["open"], study["reason"], study["blocks"], study["segments"]) == (True, None, 2, 2)
    assert (study["prolific"], study["prolific_required"]) == (True, False)
    assert study["texts"]["continue"]
    assert study["tries"] == 3
    assert "THANKS42" not in reply.text


def test_the_completion_code_is_not_sent_before_completion(server):
    participant = server.begin()
    participant.answer_all()
    replies = [
        participant.get_state(),
        participant.post("complete", {"count": 900}),
        participant.send(event(100)),
    ]
    assert all("THANKS42" not in reply.text for reply in replies)


def reasons_to_check(server) -> list[str]:
    """Return what the dashboard says about the one session."""
    study = store.studies.get_study(server.db, "tiny")
    with closing(monitor.LiveData(server.db)) as live_data:
        answers = live_data.answers(study, 30)
        assert answers is not None
        (summary,) = monitor.summarise_participants(study, answers)
    return summary.reasons


def test_answers_that_arrive_faster_than_trials_are_shown_earn_no_code(server):
    """The server's clock is judged, whatever the records say, and the researcher is told why there is no code."""
    participant = server.begin()
    count = participant.answer_all()
    reply = participant.post("complete", {"count": count})
    assert (reply.status_code, reply.json()) == (200, {"completion_code": None, "return_url": None})
    assert participant.post("complete", {"count": count}).json() == reply.json()
    assert TOO_FAST in reasons_to_check(server)


def test_stored_answers_may_arrive_at_once(server):
    """A page that was offline sends all its answers at its end."""
    participant = server.begin()
    server.let_time_pass()
    count = participant.answer_all()
    assert participant.post("complete", {"count": count}).json()["completion_code"] == "THANKS42"
    assert TOO_FAST not in reasons_to_check(server)


def test_the_page_is_not_told_which_trials_are_catch_trials(server):
    state = server.begin().state
    assert "catch" not in state["trials"]
    assert set(state["trials"]["answer"][2:]) == {None}


def test_an_address_without_a_slash_is_redirected(server):
    """The redirect keeps Prolific's ids, and is relative so that any prefix works."""
    reply = server.client.get("s/tiny?PROLIFIC_PID=a1&STUDY_ID=b")
    assert (reply.status_code, reply.headers["location"]) == (307, "./tiny/?PROLIFIC_PID=a1&STUDY_ID=b")


def test_images_are_immutable_and_named_by_their_digest(server):
    participant = server.begin()
    for image in participant.state["images"].values():
        reply = server.client.get(f"s/tiny/{image['url']}")
        assert reply.content.startswith(b"\x89PNG")
        assert "immutable" in reply.headers["cache-control"]
    missing = server.client.get(f"s/tiny/images/{'0' * 64}.png")
    assert (missing.status_code, missing.json()["error"]) == (404, "NotFound")


def test_the_right_answers_of_catch_trials_are_not_sent(server):
    trials = server.begin().state["trials"]
    sent = [item for item, answer in enumerate(trials["answer"]) if answer is not None]
    assert sent == [item for item, practice in enumerate(trials["practice"]) if practice] == [0, 1]


def test_records_that_are_sent_again_are_stored_once(server):
    participant = server.begin()
    for _ in range(3):
        reply = participant.send(response(0, 0), event(1), response(2, 1))
        assert (reply.status_code, reply.json()) == (200, {"stored": [0, 1, 2]})
    assert [row["seq"] for row in server.responses()] == [0, 2]


def test_records_that_are_sent_again_do_not_change(server):
    participant = server.begin()
    for _ in range(2):
        assert participant.send(response(0, 0, rt_ms=400.0)).json() == {"stored": [0]}
    refused = participant.send(response(0, 0, rt_ms=500.0))
    assert (refused.status_code, refused.json()["reason"]) == (409, "elsewhere"), (
        "what is not stored is not acknowledged"
    )
    assert [row["rt_ms"] for row in server.responses()] == [400.0]


def test_two_tabs_do_not_overwrite_each_other(server):
    """Tabs share the browser's storage and so the token; the second one is told to close."""
    first = server.begin(entry="an-entry-of-24-letters--")
    second = server.begin(entry="an-entry-of-24-letters--")
    assert first.state["token"] == second.state["token"]
    assert first.send(event(0), response(1, 0, same=True)).status_code == 200
    late = second.send(response(1, 0, same=False), response(2, 1))
    assert (late.status_code, late.json()["reason"]) == (409, "elsewhere")
    assert "another tab" in late.json()["message"]
    assert first.send(response(2, 1, same=True)).status_code == 200
    assert [(row["seq"], row["same"]) for row in server.responses()] == [(1, True), (2, True)]


def test_completion_needs_all_records_and_items(server):
    """The code is sent once every record and every item has arrived, and again for every later request."""
    participant = server.begin()
    participant.send(*(response(seq, seq) for seq in range(participant.items) if seq not in (3, 7)))
    missing = participant.post("complete", {"count": participant.items})
    assert missing.status_code == 409
    assert (missing.json()["reason"], missing.json()["missing"]) == ("missing", [3, 7])
    participant.send(event(3), event(7))
    unanswered = participant.post("complete", {"count": participant.items})
    assert (unanswered.status_code, unanswered.json()["reason"]) == (409, "unanswered")
    participant.send(response(participant.items, 3), response(participant.items + 1, 7))
    server.let_time_pass()
    codes = [participant.post("complete", {"count": participant.items + 2}).json() for _ in range(2)]
    assert codes[0] == codes[1]
    assert codes[0]["completion_code"] == "THANKS42"


def test_completion_needs_the_repeats_of_flagged_trials(server):
    """As the page asks them: until one is shown right, three times at most."""
    participant, seq = server.begin(), 0
    server.let_time_pass()
    for flags in ("late", "late hidden"):
        items = range(participant.items)
        assert participant.send(*(response(seq + n, n, flags=flags) for n in items)).status_code == 200
        seq += participant.items
        refused = participant.post("complete", {"count": seq})
        assert (refused.status_code, refused.json()["reason"]) == (409, "unanswered")
        assert refused.json()["message"].startswith(f"{participant.items} of {participant.items} trials")
    half = participant.items // 2
    participant.send(*(response(seq + n, n) for n in range(half)))
    participant.send(*(response(seq + n, n, flags="late") for n in range(half, participant.items)))
    completed = participant.post("complete", {"count": seq + participant.items})
    assert completed.json()["completion_code"] == "THANKS42"


def test_a_completed_session_refuses_new_records_only(server):
    participant = server.begin()
    count = participant.answer_all()
    participant.post("complete", {"count": count})
    late = participant.send(response(count, 0))
    assert (late.status_code, late.json()["error"]) == (409, "Conflict")
    assert "completed" in late.json()["message"]
    assert participant.send(response(0, 0)).status_code == 200
    assert len(server.responses()) == count


def test_leaving_and_keeping_the_answers(server):
    participant = server.begin(prolific_pid="a1")
    participant.send(response(0, 0))
    assert participant.post("leave", {"data": "keep"}).json() == {}
    assert participant.send(response(1, 1)).status_code == 409
    assert (participant.get_state().status_code, participant.get_state().json()["reason"]) == (409, "already")
    assert participant.post("complete", {"count": 1}).status_code == 409
    assert [row["status"] for row in server.responses()] == ["left"]


def test_withdrawing_erases_answers_and_identity(server):
    participant = server.begin(prolific_pid="a1")
    participant.send(response(0, 0), event(1))
    assert participant.post("leave", {"data": "withdraw"}).status_code == 200
    with take_snapshot(server.db, store.studies.get_study(server.db, "tiny")) as snapshot:
        assert (server.responses(), snapshot.identities()) == ([], {})
    assert participant.send(response(0, 0)).status_code == 409
    assert server.responses() == []


@pytest.mark.parametrize("entry", [{}, {"entry": "an-entry-of-24-letters--"}])
def test_a_participant_who_withdrew_can_begin_again(server, entry):
    """The new session has another token than the withdrawn one, even on the same page."""
    first = server.begin(prolific_pid="a1", **entry)
    assert first.post("leave", {"data": "withdraw"}).status_code == 200
    second = server.begin(prolific_pid="a1", **entry)
    assert second.state["session"] != first.state["session"]
    assert second.send(response(0, 0)).status_code == 200
    assert first.send(response(1, 1)).status_code == 409


def test_the_same_prolific_id_continues_its_session(server):
    """The session gets a new token, and the old one is no longer valid."""
    first = server.begin(prolific_pid="a1")
    first.send(response(0, 0), response(1, 1))
    second = server.begin(prolific_pid="a1")
    assert second.state["session"] == first.state["session"]
    assert (second.state["next_seq"], second.state["next_item"]) == (2, 2)
    assert second.state["answered"] == [0, 1]
    assert first.send(response(2, 2)).status_code == 401
    assert second.send(response(2, 2)).status_code == 200


def test_the_same_page_continues_its_session(server):
    """A page that got no reply to its first request sends it again, with the same secret."""
    first = server.begin(entry="an-entry-of-24-letters--")
    first.send(event(0, "consent"))
    second = server.begin(entry="an-entry-of-24-letters--")
    assert second.state["session"] == first.state["session"]
    assert second.state["next_seq"] == 1
    assert second.state["token"] == first.state["token"], "either reply can be used"
    assert second.send(event(1)).status_code == 200
    assert server.begin(entry="another-entry-24-letters").state["session"] != first.state["session"]


def test_prolific_placeholders_mean_no_prolific_id(server):
    """A researcher may open the link template several times to try the study: each time a new session begins."""
    template = {f"prolific_{name}": "{{%PROLIFIC_PID%}}" for name in ("pid", "study", "session")}
    first, second = server.begin(**template), server.begin(**template)
    assert first.state["session"] != second.state["session"]
    third = server.begin(**template | {"prolific_pid": "a1"})
    with take_snapshot(server.db, store.studies.get_study(server.db, "tiny")) as snapshot:
        assert [(each.prolific_pid, each.prolific_study) for each in snapshot.identities().values()] == [
            ("a1", "")
        ]
    assert third.state["participant"]


def test_the_number_of_events_is_limited(server):
    """28 items and one image allow 228 events, 3 of them with contours. Responses are accepted nevertheless."""
    participant = server.begin()
    statuses = [participant.send(event(seq, "contours", lines="x" * 60_000)).status_code for seq in range(4)]
    assert statuses == [200, 200, 200, 422]
    for start in (3, 78, 153):
        assert participant.send(*(event(seq, "break") for seq in range(start, start + 75))).status_code == 200
    refused = participant.send(event(228, "break"))
    assert refused.json()["message"] == "This session may send at most 228 events, got 229."
    assert participant.send(event(227, "break"), response(228, 0)).status_code == 200


def test_a_participant_who_completed_cannot_begin_again(server):
    participant = server.begin(prolific_pid="a1")
    participant.post("complete", {"count": participant.answer_all()})
    again = server.client.post("s/tiny/sessions", json={"consented": True, "prolific_pid": "a1"})
    assert (again.status_code, again.json()["reason"]) == (409, "already")


def test_the_state_lists_items_to_ask_again(server):
    participant = server.begin()
    participant.send(
        response(0, 0),
        response(1, 1, flags="late blurred"),
        *(response(2 + n, 2, flags="late") for n in range(3)),
    )
    state = participant.get_state().json()
    assert (state["answered"], state["asked_again"], state["next_item"]) == ([0, 2], [1], 3)
    assert state["next_seq"] == 5


@pytest.mark.parametrize("policy", ["resume", "repeat-block", "end"])
def test_the_policy_after_a_long_pause(database_url, policy):
    """With after_minutes = 0 every pause is long. Item 2 is the first of the first block."""
    text = f'{STUDY}\n[interruption]\npolicy = "{policy}"\nafter_minutes = 0\n'
    with run_server(database_url, text) as server:
        participant = server.begin()
        participant.send(*(response(seq, seq) for seq in range(5)))
        participant.send(event(5, "resumed"))  # events that a page sends by itself change nothing
        while (state := participant.get_state()).status_code == 200 and policy != "resume":
            if policy == "repeat-block" and state.json()["answered"] == [0, 1]:
                break  # a millisecond has passed
        if policy == "end":
            assert (state.status_code, state.json()["reason"]) == (409, "ended")
            assert participant.send(response(6, 5)).status_code == 409
            assert len(server.responses()) == 5
            return
        assert "missing" not in state.json()
        expected = {"resume": ([0, 1, 2, 3, 4], 5), "repeat-block": ([0, 1], 2)}[policy]
        assert (state.json()["answered"], state.json()["next_item"]) == expected
        assert state.json()["next_seq"] == 6


def test_a_restarted_block(database_url):
    """After the page reports a restart, only later answers count, however often it is reloaded."""
    text = f'{STUDY}\n[interruption]\npolicy = "repeat-block"\nafter_minutes = 5\n'
    with run_server(database_url, text) as server:
        participant = server.begin()
        first = [response(0, 0), response(1, 1), response(2, 2, flags="late"), response(3, 3), response(4, 4)]
        participant.send(*first)
        participant.send(event(5, "resumed", away_ms=400_000, repeat=2))
        state = participant.get_state().json()
        assert (state["answered"], state["asked_again"], state["next_item"]) == ([0, 1], [], 2)
        participant.send(*(response(4 + item, item) for item in range(2, 6)))
        participant.send(event(10, "resumed", away_ms=1000, repeat=None))
        participant.send(*(response(5 + item, item) for item in range(6, 8)))
        state = participant.get_state().json()
        assert (state["answered"], state["asked_again"], state["next_item"]) == (list(range(8)), [], 8)
        assert not state["repeat_block"]


def test_large_replies_are_compressed_if_the_client_accepts_gzip(server):
    plain, gzip = {"Accept-Encoding": "identity"}, {"Accept-Encoding": "br, gzip;q=0.8"}
    participant = server.begin()
    requests = [
        ("GET", "s/tiny/study.json", None), ("GET", "s/tiny/session", None), ("GET", "s/tiny/", None),
        ("POST", "s/tiny/sessions", {"consented": True, "prolific_pid": "a1"}), ("GET", "static/experiment.js", None),
        ("GET", "static/experiment.css", None), ("GET", "static/swagger/swagger-ui.css", None),
    ]  # fmt: skip
    for method, path, body in requests:
        replies = [
            server.client.request(method, path, json=body, headers={**participant.headers, **accepting})
            for accepting in (gzip, plain, {"Accept-Encoding": "gzip;q=0"})
        ]
        assert [reply.headers.get("content-encoding") for reply in replies] == ["gzip", None, None], path
        assert {reply.headers["vary"] for reply in replies} == {"Accept-Encoding"}
        assert len({reply.headers["content-type"] for reply in replies}) == 1
        assert int(replies[0].headers["content-length"]) < int(replies[1].headers["content-length"])
        if method == "GET":
            assert replies[0].content == replies[1].content
    stored = participant.post("records", {"records": [event(seq) for seq in range(100)]})
    assert "content-encoding" not in stored.headers, "these replies are small"


@pytest.mark.parametrize(("name", "kind"), [("js", "text/javascript"), ("css", "text/css")])
def test_unchanged_files_are_not_sent_again(server, name, kind):
    etags = set()
    for accepting in ("gzip", "identity"):
        path, headers = f"static/experiment.{name}", {"Accept-Encoding": accepting}
        reply = server.client.get(path, headers=headers)
        assert reply.headers["content-type"].startswith(kind)
        etags.add(reply.headers["etag"])
        again = server.client.get(path, headers={**headers, "If-None-Match": reply.headers["etag"]})
        assert (again.status_code, again.headers["vary"]) == (304, "Accept-Encoding")
    assert len(etags) == 2
    page = server.client.get("s/tiny/")
    assert (page.headers["content-type"], page.headers["cache-control"]) == (
        "text/html; charset=utf-8",
        "no-cache",
    )
    assert server.client.get("s/tiny/", headers={"If-None-Match": page.headers["etag"]}).status_code == 304


def test_a_full_study_refuses_participants(database_url):
    with run_server(database_url) as server:
        for _ in range(3):
            participant = server.begin()
        full = server.client.post("s/tiny/sessions", json={"consented": True})
        assert (full.status_code, full.json()["reason"]) == (409, "full")
        assert server.client.get("s/tiny/study.json").json()["reason"] == "full"
        participant.post("leave", {"data": "keep"})
        assert server.client.get("s/tiny/study.json").json()["open"]
        server.begin()


def test_a_closed_study(server):
    """No session can begin, but those that have begun continue."""
    participant = server.begin()
    store.studies.close(server.db, "tiny")
    closed = server.client.post("s/tiny/sessions", json={"consented": True})
    assert (closed.status_code, closed.json()["reason"]) == (409, "closed")
    assert server.client.get("s/tiny/study.json").json()["reason"] == "closed"
    assert participant.post("complete", {"count": participant.answer_all()}).status_code == 200


def test_personal_links_and_prolific_only(database_url):
    links = STUDY.replace("segments", "personal_links_only = true\nsegments")
    prolific = f"{STUDY}required = true\n".replace('"tiny"', '"sent"')
    with run_server(database_url, links, prolific) as server:
        token = store.sessions.create_links(server.db, store.studies.get_study(server.db, "tiny"), 1)[0]

        def get_refusal(study: str, **entry: str) -> str:
            reply = server.client.post(f"s/{study}/sessions", json={"consented": True, **entry})
            assert reply.status_code == 409
            return reply.json()["reason"]

        assert get_refusal("tiny") == get_refusal("tiny", link="wrong") == "link"
        assert get_refusal("sent") == "prolific"
        first, second = server.begin(link=token), server.begin(link=token)
        assert first.state["session"] == second.state["session"]
        second.post("complete", {"count": second.answer_all()})
        assert get_refusal("tiny", link=token) == "already"


def test_security_headers_of_every_reply(server):
    """Errors have them, too: no scripts of other sites, no referrer with Prolific's ids, no frames."""
    for path in ("s/tiny/study.json", "s/nope/", "nope", "login", "api/me", "pages/researcher.css"):
        reply = server.client.get(path)
        policy = reply.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["cache-control"] == ("no-cache" if path.endswith(".css") else "no-store")


def test_ip_address_and_browser_are_not_stored(server, tmp_path):
    """No column of any table holds an IP address or a user agent string."""
    agent = "Mozilla/5.0 (a very special browser)"
    with httpx.Client(base_url=server.base, headers={"User-Agent": agent}, trust_env=False) as client:
        reply = client.post("s/tiny/sessions", json={"consented": True})
        ParticipantClient(client, "tiny", reply.json()).answer_all()
    with server.db.reading() as connection:
        from vseg.store.schema import metadata

        for table in metadata.sorted_tables:
            stored = str(connection.execute(table.select()).all())
            assert agent not in stored
            assert "127.0.0.1" not in stored


def test_a_database_that_does_not_answer(server):
    """503 tells the page to keep its records and send them again."""
    participant = server.begin()
    assert participant.send(response(0, 0)).status_code == 200
    server.db.writer.close()
    reply = participant.send(response(1, 1))
    assert (reply.status_code, reply.json()["error"]) == (503, "VsegError")
    assert reply.headers["retry-after"] == "5"
    assert len(server.responses()) == 1
