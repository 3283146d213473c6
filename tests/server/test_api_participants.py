"""Test the API routes for the progress of a study, its participants, and erasing one."""

import threading

import pytest

from researchers import run_server_with_api_client
from servers import STUDY, event, response


@pytest.fixture
def api(database_url):
    with run_server_with_api_client(database_url) as client:
        yield client


def test_progress_counts_sessions_and_answers(api):
    empty = api.get("studies/tiny/progress")
    assert (empty.json()["progress"]["started"], empty.json()["people"]) == (0, [])
    participant = api.take_part(prolific_pid="secret-pid")
    api.take_part(complete=False)
    full = api.get("studies/tiny/progress", headers={"If-None-Match": empty.headers["etag"]})
    progress, people = full.json()["progress"], full.json()["people"]
    assert (progress["started"], progress["completed"], progress["active"], progress["places_left"]) == (
        2,
        1,
        1,
        1,
    )
    assert (progress["answers"], progress["used"]) == (56, 48)
    assert people[0]["participant"] == participant.state["participant"]
    assert (people[0]["catch"]["of"], people[0]["timing"]["refresh_hz"]) == (2, 60.0)
    assert "secret-pid" not in full.text
    again = api.get("studies/tiny/progress", headers={"If-None-Match": full.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_one_participant(api):
    person = api.server.begin()
    person.send(
        event(0, "consent", agreed=True), response(1, 0), response(2, 1, flags="late"), response(3, 1)
    )
    found = api.get(f"studies/tiny/participants/{person.state['participant']}").json()
    assert found["person"]["answers"] == 3
    assert found["answers"]["seq"] == [1, 2, 3]
    assert found["answers"]["flagged"] == [False, True, False]
    assert all(answer in (True, False) for answer in found["answers"]["correct"]), (
        "practice trials have a known answer"
    )
    assert [(event["kind"], event["data"]) for event in found["events"]] == [("consent", {"agreed": True})]
    unknown = api.get("studies/tiny/participants/pnobody")
    assert (unknown.status_code, unknown.json()["error"]) == (404, "NotFound")


def test_erasing_a_participant(api):
    person, other = api.take_part(prolific_pid="secret-pid"), api.take_part(complete=False)
    name = person.state["participant"]
    erased = api.delete(f"studies/tiny/participants/{name}").json()
    assert erased.pop("traces")
    assert {table: count for table, count in erased.items() if count} == {
        "participants": 1, "identities": 1, "sessions": 1, "assignments": 1, "responses": 28, "events": 1,
    }  # fmt: skip
    remaining = api.get("studies/tiny/progress").json()
    assert [person["participant"] for person in remaining["people"]] == [other.state["participant"]]
    assert (remaining["progress"]["started"], remaining["progress"]["answers"]) == (1, 28)
    assert api.get(f"studies/tiny/participants/{name}").status_code == 404
    assert api.delete(f"studies/tiny/participants/{name}").status_code == 404
    assert person.send(response(99, 0)).status_code in (401, 404)


def test_concurrent_erasures_of_one_participant(api):
    name, statuses, start = api.take_part().state["participant"], [], threading.Barrier(4)

    def erase() -> None:
        start.wait()
        statuses.append(api.delete(f"studies/tiny/participants/{name}").status_code)

    threads = [threading.Thread(target=erase) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 404, 404, 404]


def test_participants_belong_to_one_study(tmp_path):
    with run_server_with_api_client(
        f"sqlite:///{tmp_path}/vseg.db", STUDY, STUDY.replace('"tiny"', '"other"')
    ) as api:
        name = api.take_part().state["participant"]
        assert api.delete(f"studies/other/participants/{name}").status_code == 404
        assert api.get("studies/other/progress").json()["people"] == []
        assert api.get("studies/nope/progress").status_code == 404
