"""Progress, one participant, and erasing one, by a script."""

import threading

import pytest

from researchers import run_server_with_api_client
from servers import STUDY, event, response


@pytest.fixture
def api(database_url):
    with run_server_with_api_client(database_url) as script:
        yield script


def test_progress_rises(api):
    empty = api.get("studies/tiny/progress")
    assert (empty.json()["progress"]["started"], empty.json()["people"]) == (0, [])
    person = api.take_part(prolific_pid="secret-pid")
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
    assert people[0]["participant"] == person.state["participant"]
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
        "practice: the answer is known"
    )
    assert [(each["kind"], each["data"]) for each in found["events"]] == [("consent", {"agreed": True})]
    nobody = api.get("studies/tiny/participants/pnobody")
    assert (nobody.status_code, nobody.json()["error"]) == (404, "NotFound")


def test_erasing_a_participant(api):
    person, other = api.take_part(prolific_pid="secret-pid"), api.take_part(complete=False)
    who = person.state["participant"]
    erased = api.delete(f"studies/tiny/participants/{who}").json()
    assert erased.pop("traces")
    assert {table: count for table, count in erased.items() if count} == {
        "participants": 1, "identities": 1, "sessions": 1, "assignments": 1, "responses": 28, "events": 1,
    }  # fmt: skip
    left = api.get("studies/tiny/progress").json()
    assert [each["participant"] for each in left["people"]] == [other.state["participant"]]
    assert (left["progress"]["started"], left["progress"]["answers"]) == (1, 28)
    assert api.get(f"studies/tiny/participants/{who}").status_code == 404
    assert api.delete(f"studies/tiny/participants/{who}").status_code == 404
    assert person.send(response(99, 0)).status_code in (401, 404)


def test_two_researchers_erase_the_same_person_at_once(api):
    who, answers, start = api.take_part().state["participant"], [], threading.Barrier(4)

    def erase() -> None:
        start.wait()
        answers.append(api.delete(f"studies/tiny/participants/{who}").status_code)

    threads = [threading.Thread(target=erase) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 404, 404, 404]


def test_other_studies_are_left_alone(tmp_path):
    with run_server_with_api_client(
        f"sqlite:///{tmp_path}/vseg.db", STUDY, STUDY.replace('"tiny"', '"other"')
    ) as api:
        who = api.take_part().state["participant"]
        assert api.delete(f"studies/other/participants/{who}").status_code == 404
        assert api.get("studies/other/progress").json()["people"] == []
        assert api.get("studies/nope/progress").status_code == 404
