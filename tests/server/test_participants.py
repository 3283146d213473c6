"""One participant's way over real HTTP, on SQLite and on PostgreSQL."""

import httpx
import pytest

from servers import STUDY, ParticipantClient, event, response, run_server
from vseg import store
from vseg.store.snapshot import take_snapshot


@pytest.fixture
def server(database_url):
    with run_server(database_url) as running:
        yield running


def test_from_the_first_look_to_the_code(server):
    """What was asked comes from the server's own trials, and the code after everything has arrived."""
    person = server.begin(prolific_pid="a1", prolific_study="b2", prolific_session="c3")
    count = person.answer_all()
    assert person.send(event(count, "comment", text="Fun!")).json() == {"stored": [count]}
    answer = person.post("complete", {"count": count + 1})
    assert answer.status_code == 200
    assert answer.json() == {
        "completion_code": "THANKS42",
        "return_url": "https://app.prolific.com/submissions/complete?cc=THANKS42",
    }
    rows = server.responses()
    trials = person.state["trials"]
    for name in ("image", "block", "trial", "i", "j", "practice", "catch"):
        assert [row[name] for row in rows] == trials[name]
    assert [row["same"] for row in rows] == [item % 2 == 0 for item in range(count)]
    assert {row["status"] for row in rows} == {"completed"}


def test_what_the_page_knows_before_consent(server):
    before = server.client.get("s/tiny/study.json")
    known = before.json()
    assert (known["open"], known["reason"], known["blocks"], known["segments"]) == (True, None, 2, 2)
    assert (known["prolific"], known["prolific_required"]) == (True, False)
    assert known["texts"]["continue"]
    assert known["tries"] == 3
    assert "THANKS42" not in before.text


def test_the_code_is_nowhere_before_completion(server):
    person = server.begin()
    person.answer_all()
    seen = [person.get_state(), person.post("complete", {"count": 900}), person.send(event(100))]
    assert all("THANKS42" not in answer.text for answer in seen)


def test_the_page_is_found_with_and_without_its_slash(server):
    """Prolific's ids survive the redirect, which is relative so that any prefix works."""
    answer = server.client.get("s/tiny?PROLIFIC_PID=a1&STUDY_ID=b")
    assert (answer.status_code, answer.headers["location"]) == (307, "./tiny/?PROLIFIC_PID=a1&STUDY_ID=b")


def test_images_are_kept_for_ever_and_named_by_content(server):
    person = server.begin()
    for image in person.state["images"].values():
        answer = server.client.get(f"s/tiny/{image['url']}")
        assert answer.content.startswith(b"\x89PNG")
        assert "immutable" in answer.headers["cache-control"]
    missing = server.client.get(f"s/tiny/images/{'0' * 64}.png")
    assert (missing.status_code, missing.json()["error"]) == (404, "NotFound")


def test_catch_trials_keep_their_answers_to_themselves(server):
    trials = server.begin().state["trials"]
    told = [item for item, answer in enumerate(trials["answer"]) if answer is not None]
    assert told == [item for item, practice in enumerate(trials["practice"]) if practice] == [0, 1]


def test_a_resend_is_answered_alike_and_stored_once(server):
    person = server.begin()
    for _ in range(3):
        answer = person.send(response(0, 0), event(1), response(2, 1))
        assert (answer.status_code, answer.json()) == (200, {"stored": [0, 1, 2]})
    assert [row["seq"] for row in server.responses()] == [0, 2]


def test_a_resend_changes_nothing(server):
    person = server.begin()
    assert person.send(response(0, 0, rt_ms=400.0)).status_code == 200
    assert person.send(response(0, 0, rt_ms=500.0)).json() == {"stored": [0]}
    assert [row["rt_ms"] for row in server.responses()] == [400.0]


def test_two_tabs_of_one_page_do_not_overwrite_each_other(server):
    """They share what their browser keeps, so their token is one; whoever comes second is told to close."""
    first = server.begin(entry="an-entry-of-24-letters--")
    second = server.begin(entry="an-entry-of-24-letters--")
    assert first.state["token"] == second.state["token"]
    assert first.send(event(0), response(1, 0, same=True)).status_code == 200
    late = second.send(response(1, 0, same=False), response(2, 1))
    assert (late.status_code, late.json()["reason"]) == (409, "elsewhere")
    assert "another tab" in late.json()["message"]
    assert first.send(response(2, 1, same=True)).status_code == 200
    assert [(row["seq"], row["same"]) for row in server.responses()] == [(1, True), (2, True)]


def test_completion_counts(server):
    """The code comes only when every record and every item is there; then it comes again and again."""
    person = server.begin()
    person.send(*(response(seq, seq) for seq in range(person.items) if seq not in (3, 7)))
    missing = person.post("complete", {"count": person.items})
    assert missing.status_code == 409
    assert (missing.json()["reason"], missing.json()["missing"]) == ("missing", [3, 7])
    person.send(event(3), event(7))
    unanswered = person.post("complete", {"count": person.items})
    assert (unanswered.status_code, unanswered.json()["reason"]) == (409, "unanswered")
    person.send(response(person.items, 3), response(person.items + 1, 7))
    codes = [person.post("complete", {"count": person.items + 2}).json() for _ in range(2)]
    assert codes[0] == codes[1]
    assert codes[0]["completion_code"] == "THANKS42"


def test_a_late_post_is_refused_but_a_resend_is_not(server):
    person = server.begin()
    count = person.answer_all()
    person.post("complete", {"count": count})
    late = person.send(response(count, 0))
    assert (late.status_code, late.json()["error"]) == (409, "Conflict")
    assert "completed" in late.json()["message"]
    assert person.send(response(0, 0)).status_code == 200
    assert len(server.responses()) == count


def test_leaving_with_the_data_kept(server):
    person = server.begin(prolific_pid="a1")
    person.send(response(0, 0))
    assert person.post("leave", {"data": "keep"}).json() == {}
    assert person.send(response(1, 1)).status_code == 409
    assert (person.get_state().status_code, person.get_state().json()["reason"]) == (409, "already")
    assert person.post("complete", {"count": 1}).status_code == 409
    assert [row["status"] for row in server.responses()] == ["left"]


def test_withdrawing_erases_answers_and_identity(server):
    person = server.begin(prolific_pid="a1")
    person.send(response(0, 0), event(1))
    assert person.post("leave", {"data": "withdraw"}).status_code == 200
    with take_snapshot(server.db, store.studies.get_study(server.db, "tiny")) as found:
        assert (server.responses(), found.identities()) == ([], {})
    assert person.send(response(0, 0)).status_code == 409
    assert server.responses() == []


@pytest.mark.parametrize("entry", [{}, {"entry": "an-entry-of-24-letters--"}])
def test_whoever_withdrew_and_comes_back_is_new(server, entry):
    """The session of before still has its token; the new one has another, though the page is the same."""
    first = server.begin(prolific_pid="a1", **entry)
    assert first.post("leave", {"data": "withdraw"}).status_code == 200
    second = server.begin(prolific_pid="a1", **entry)
    assert second.state["session"] != first.state["session"]
    assert second.send(response(0, 0)).status_code == 200
    assert first.send(response(1, 1)).status_code == 409


def test_the_same_prolific_participant_goes_on(server):
    """A new token for the same session; the old one opens nothing any more."""
    first = server.begin(prolific_pid="a1")
    first.send(response(0, 0), response(1, 1))
    second = server.begin(prolific_pid="a1")
    assert second.state["session"] == first.state["session"]
    assert (second.state["next_seq"], second.state["next_item"]) == (2, 2)
    assert second.state["answered"] == [0, 1]
    assert first.send(response(2, 2)).status_code == 401
    assert second.send(response(2, 2)).status_code == 200


def test_the_same_page_goes_on(server):
    """A page whose first post was cut off asks again, with the same secret."""
    first = server.begin(entry="an-entry-of-24-letters--")
    first.send(event(0, "consent"))
    second = server.begin(entry="an-entry-of-24-letters--")
    assert second.state["session"] == first.state["session"]
    assert second.state["next_seq"] == 1
    assert second.state["token"] == first.state["token"], "whichever reply arrives, it is good"
    assert second.send(event(1)).status_code == 200
    assert server.begin(entry="another-entry-24-letters").state["session"] != first.state["session"]


def test_a_link_from_prolifics_form_that_was_not_filled_in_is_somebody_without_ids(server):
    """The researcher opens the very template, to try the study: again and again, and not as one person."""
    template = {f"prolific_{name}": "{{%PROLIFIC_PID%}}" for name in ("pid", "study", "session")}
    first, second = server.begin(**template), server.begin(**template)
    assert first.state["session"] != second.state["session"]
    third = server.begin(**template | {"prolific_pid": "a1"})
    with take_snapshot(server.db, store.studies.get_study(server.db, "tiny")) as found:
        assert [(who.prolific_pid, who.prolific_study) for who in found.identities().values()] == [("a1", "")]
    assert third.state["participant"]


def test_a_session_cannot_send_events_without_end(server):
    """28 items and one image: 228 events, of which 3 with contours. Answers are taken all the same."""
    person = server.begin()
    drawn = [person.send(event(seq, "contours", lines="x" * 60_000)).status_code for seq in range(4)]
    assert drawn == [200, 200, 200, 422]
    for start in (3, 78, 153):
        assert person.send(*(event(seq, "break") for seq in range(start, start + 75))).status_code == 200
    many = person.send(event(228, "break"))
    assert many.json()["message"] == "A session like this one sends at most 228 events, got 229."
    assert person.send(event(227, "break"), response(228, 0)).status_code == 200


def test_who_is_done_does_not_begin_again(server):
    person = server.begin(prolific_pid="a1")
    person.post("complete", {"count": person.answer_all()})
    again = server.client.post("s/tiny/sessions", json={"consented": True, "prolific_pid": "a1"})
    assert (again.status_code, again.json()["reason"]) == (409, "already")


def test_a_reload_learns_what_is_asked_again(server):
    person = server.begin()
    person.send(
        response(0, 0),
        response(1, 1, flags="late blurred"),
        *(response(2 + n, 2, flags="late") for n in range(3)),
    )
    state = person.get_state().json()
    assert (state["answered"], state["asked_again"], state["next_item"]) == ([0, 2], [1], 3)
    assert state["next_seq"] == 5


@pytest.mark.parametrize("policy", ["resume", "repeat-block", "end"])
def test_after_a_long_pause(database_url, policy):
    """With after_minutes = 0 every pause is a long one. Item 2 begins the first block."""
    text = f'{STUDY}\n[interruption]\npolicy = "{policy}"\nafter_minutes = 0\n'
    with run_server(database_url, text) as server:
        person = server.begin()
        person.send(*(response(seq, seq) for seq in range(5)))
        person.send(event(5, "resumed"))  # what a page sends by itself changes nothing
        while (state := person.get_state()).status_code == 200 and policy != "resume":
            if policy == "repeat-block" and state.json()["answered"] == [0, 1]:
                break  # a millisecond has passed
        if policy == "end":
            assert (state.status_code, state.json()["reason"]) == (409, "ended")
            assert person.send(response(6, 5)).status_code == 409
            assert len(server.responses()) == 5
            return
        assert "missing" not in state.json()
        expected = {"resume": ([0, 1, 2, 3, 4], 5), "repeat-block": ([0, 1], 2)}[policy]
        assert (state.json()["answered"], state.json()["next_item"]) == expected
        assert state.json()["next_seq"] == 6


def test_a_block_that_begins_again(database_url):
    """The page says so; from then on what it answers counts, however often it is loaded anew."""
    text = f'{STUDY}\n[interruption]\npolicy = "repeat-block"\nafter_minutes = 5\n'
    with run_server(database_url, text) as server:
        person = server.begin()
        first = [response(0, 0), response(1, 1), response(2, 2, flags="late"), response(3, 3), response(4, 4)]
        person.send(*first)
        person.send(event(5, "resumed", away_ms=400_000, repeat=2))
        state = person.get_state().json()
        assert (state["answered"], state["asked_again"], state["next_item"]) == ([0, 1], [], 2)
        person.send(*(response(4 + item, item) for item in range(2, 6)))
        person.send(event(10, "resumed", away_ms=1000, repeat=None))
        person.send(*(response(5 + item, item) for item in range(6, 8)))
        state = person.get_state().json()
        assert (state["answered"], state["asked_again"], state["next_item"]) == (list(range(8)), [], 8)
        assert not state["repeat_block"]


def test_what_is_large_is_packed_for_those_who_can_unpack(server):
    plain, packed = {"Accept-Encoding": "identity"}, {"Accept-Encoding": "br, gzip;q=0.8"}
    person = server.begin()
    asked = [
        ("GET", "s/tiny/study.json", None), ("GET", "s/tiny/session", None), ("GET", "s/tiny/", None),
        ("POST", "s/tiny/sessions", {"consented": True, "prolific_pid": "a1"}), ("GET", "static/experiment.js", None),
        ("GET", "static/experiment.css", None), ("GET", "static/swagger/swagger-ui.css", None),
    ]  # fmt: skip
    for method, path, body in asked:
        answers = [
            server.client.request(method, path, json=body, headers={**person.headers, **accepting})
            for accepting in (packed, plain, {"Accept-Encoding": "gzip;q=0"})
        ]
        assert [answer.headers.get("content-encoding") for answer in answers] == ["gzip", None, None], path
        assert {answer.headers["vary"] for answer in answers} == {"Accept-Encoding"}
        assert len({answer.headers["content-type"] for answer in answers}) == 1
        assert int(answers[0].headers["content-length"]) < int(answers[1].headers["content-length"])
        if method == "GET":
            assert answers[0].content == answers[1].content
    stored = person.post("records", {"records": [event(seq) for seq in range(100)]})
    assert "content-encoding" not in stored.headers, "the hot route has no time for it"


@pytest.mark.parametrize(("name", "kind"), [("js", "text/javascript"), ("css", "text/css")])
def test_what_the_browser_has_is_not_sent_again(server, name, kind):
    seen = set()
    for accepting in ("gzip", "identity"):
        path, headers = f"static/experiment.{name}", {"Accept-Encoding": accepting}
        answer = server.client.get(path, headers=headers)
        assert answer.headers["content-type"].startswith(kind)
        seen.add(answer.headers["etag"])
        again = server.client.get(path, headers={**headers, "If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.headers["vary"]) == (304, "Accept-Encoding")
    assert len(seen) == 2
    page = server.client.get("s/tiny/")
    assert (page.headers["content-type"], page.headers["cache-control"]) == (
        "text/html; charset=utf-8",
        "no-cache",
    )
    assert server.client.get("s/tiny/", headers={"If-None-Match": page.headers["etag"]}).status_code == 304


def test_a_full_study(database_url):
    with run_server(database_url) as server:
        for _ in range(3):
            person = server.begin()
        full = server.client.post("s/tiny/sessions", json={"consented": True})
        assert (full.status_code, full.json()["reason"]) == (409, "full")
        assert server.client.get("s/tiny/study.json").json()["reason"] == "full"
        person.post("leave", {"data": "keep"})
        assert server.client.get("s/tiny/study.json").json()["open"]
        server.begin()


def test_a_closed_study(server):
    """Nobody begins; who has begun goes on."""
    person = server.begin()
    store.studies.close(server.db, "tiny")
    closed = server.client.post("s/tiny/sessions", json={"consented": True})
    assert (closed.status_code, closed.json()["reason"]) == (409, "closed")
    assert server.client.get("s/tiny/study.json").json()["reason"] == "closed"
    assert person.post("complete", {"count": person.answer_all()}).status_code == 200


def test_personal_links_and_prolific_only(database_url):
    links = STUDY.replace("segments", "personal_links_only = true\nsegments")
    prolific = f"{STUDY}required = true\n".replace('"tiny"', '"sent"')
    with run_server(database_url, links, prolific) as server:
        token = store.sessions.create_links(server.db, store.studies.get_study(server.db, "tiny"), 1)[0]

        def refused(study: str, **entry: str) -> str:
            answer = server.client.post(f"s/{study}/sessions", json={"consented": True, **entry})
            assert answer.status_code == 409
            return answer.json()["reason"]

        assert refused("tiny") == refused("tiny", link="wrong") == "link"
        assert refused("sent") == "prolific"
        first, second = server.begin(link=token), server.begin(link=token)
        assert first.state["session"] == second.state["session"]
        second.post("complete", {"count": second.answer_all()})
        assert refused("tiny", link=token) == "already"


def test_headers_of_every_answer(server):
    """Also of errors: no scripts from elsewhere, no referrer with Prolific's ids, nothing of ours in a frame."""
    for path in ("s/tiny/study.json", "s/nope/", "nope", "login", "api/me", "pages/researcher.css"):
        answer = server.client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == ("no-cache" if path.endswith(".css") else "no-store")


def test_nobody_is_told_apart_by_address_or_browser(server, tmp_path):
    """No column of any table can hold an IP address or a user agent string."""
    agent = "Mozilla/5.0 (a very special browser)"
    with httpx.Client(base_url=server.base, headers={"User-Agent": agent}, trust_env=False) as client:
        answer = client.post("s/tiny/sessions", json={"consented": True})
        ParticipantClient(client, "tiny", answer.json()).answer_all()
    with server.db.reading() as connection:
        from vseg.store.schema import metadata

        for table in metadata.sorted_tables:
            stored = str(connection.execute(table.select()).all())
            assert agent not in stored
            assert "127.0.0.1" not in stored


def test_a_database_that_does_not_answer(server):
    """503 says: keep it and send it again."""
    person = server.begin()
    assert person.send(response(0, 0)).status_code == 200
    server.db.writer.close()
    answer = person.send(response(1, 1))
    assert (answer.status_code, answer.json()["error"]) == (503, "VsegError")
    assert answer.headers["retry-after"] == "5"
    assert len(server.responses()) == 1
