"""A script creates, previews, pauses, closes and reopens studies, with a personal token."""

import httpx
import pytest

from researchers import run_server_with_api_client
from servers import STUDY
from vseg import store
from vseg.errors import Conflict
from vseg.server.simulated_participants import Simulations


@pytest.fixture
def api(database_url):
    with run_server_with_api_client(database_url) as script:
        yield script


@pytest.fixture
def small(tmp_path):
    """On SQLite alone: for what is the same on every database."""
    with run_server_with_api_client(f"sqlite:///{tmp_path}/vseg.db") as script:
        yield script


def test_creating_a_study(api):
    text = STUDY.replace('"tiny"', '"second"')
    made = api.post("studies", json={"text": text})
    assert (made.status_code, made.json()["name"], made.json()["status"]) == (201, "second", "open")
    assert api.get("studies/second").json()["text"] == text
    assert [study["name"] for study in api.get("studies").json()] == ["second", "tiny"]
    assert api.server.begin("second").items == 28
    again = api.post("studies", json={"text": text})
    assert (again.status_code, again.json()["reason"]) == (409, "exists")


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (
            {"text": STUDY.replace("colours = 2", 'file = "cat.png"')},
            422,
            "which this server cannot read from here",
        ),
        ({"text": STUDY.replace("segments = 2", "segments = 1")}, 422, "line 4"),
        ({"text": "name ="}, 422, "line 1"),
        ({"text": 3}, 422, "text should be a valid string, got 3"),
        ({}, 422, "text: Field required"),
        ({"text": "x", "more": 1}, 422, "more"),
    ],
)
def test_studies_that_cannot_be_created(small, body, status, said):
    answer = small.post("studies", json=body)
    assert (answer.status_code, said in answer.json()["message"]) == (status, True), answer.text


def test_bodies_are_looked_at_once_it_is_clear_who_sends_them(small):
    with httpx.Client(base_url=small.server.base, trust_env=False) as stranger:
        assert stranger.post("api/studies", json={"text": STUDY}).status_code == 401
        assert (
            stranger.post(
                "api/studies", content=b"x" * 100, headers={"Content-Type": "text/plain"}
            ).status_code
            == 401
        )
    assert small.post("studies", content=b"{}").status_code == 415
    assert small.post("studies", json={"text": "x" * 7_000_000}).status_code == 413


def test_pausing_closing_and_reopening(api):
    inside = api.server.begin(prolific_pid="one")
    assert api.post("studies/tiny/pause").json()["status"] == "paused"
    assert api.client.get("s/tiny/study.json").json()["reason"] == "paused"
    refused = api.client.post("s/tiny/sessions", json={"consented": True})
    assert (refused.status_code, refused.json()["reason"]) == (409, "paused")
    assert inside.answer_all() == 28
    assert api.server.begin(prolific_pid="one").state["session"] == inside.state["session"]
    assert api.post("studies/tiny/close").json()["status"] == "closed"
    assert api.post("studies/tiny/reopen").json()["status"] == "open"
    assert api.server.begin().items == 28


def test_a_preview_is_what_a_participant_gets_and_leaves_nothing(api):
    shown = api.get("studies/tiny/preview").json()
    assert shown["token"] == ""
    assert not store.sessions.list_sessions(api.server.db, store.studies.get_study(api.server.db, "tiny"))
    begun = api.server.begin().state
    assert set(shown) == set(begun)
    assert set(shown["trials"]) == set(begun["trials"])
    assert len(shown["trials"]["image"]) == 28
    assert (shown["next_seq"], shown["next_item"], shown["answered"]) == (0, 0, [])
    for image in shown["images"].values():
        assert api.client.get(f"s/tiny/{image['url']}").status_code == 200
    api.post("studies/tiny/close")
    assert api.get("studies/tiny/preview").status_code == 200, "closed, but one can look"


def test_tokens_open_the_api_and_nothing_else(api):
    assert api.get("me").json() == {"name": "Ann", "csrf_token": ""}
    made = api.post("tokens", json={"label": "second"})
    assert made.status_code == 201
    listed = api.get("tokens").json()
    assert [each["label"] for each in listed] == ["tests", "second"]
    assert listed[0]["last_used_at_ms"] is not None
    assert made.json()["token"] not in api.get("tokens").text
    with httpx.Client(base_url=api.server.base, trust_env=False) as other:
        other.headers["Authorization"] = f"Bearer {made.json()['token']}"
        assert other.get("api/me").json()["name"] == "Ann"
        assert other.get("").headers["location"].endswith("/login"), "pages need the login"
        assert other.get("s/tiny/session").status_code == 401
        assert api.delete(f"tokens/{listed[1]['id']}").status_code == 204
        gone = other.get("api/me")
        assert (gone.status_code, "revoked" in gone.json()["message"]) == (401, True)
    assert api.delete(f"tokens/{listed[1]['id']}").status_code == 404
    assert api.post("tokens", json={"label": " "}).status_code == 422


def test_a_token_needs_no_other_proof_but_has_to_be_one(small):
    for wrong in ("vseg_", "vseg_wrong", "x"):
        answer = small.get("studies", headers={"Authorization": f"Bearer {wrong}"})
        assert (answer.status_code, answer.json()["error"]) == (401, "NotAllowed")
    assert small.get("studies", headers={"Authorization": "Basic eDp5"}).status_code == 401


def test_everything_is_described(small):
    """Each operation has a summary and a description, each parameter a description, each body an example."""
    described = small.get("openapi.json").json()
    assert described["info"]["description"].count("Authorization: Bearer") == 2
    operations = [
        (f"{method} {path}", operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    assert len(operations) >= 25
    for name, operation in operations:
        assert operation["summary"], name
        assert operation["description"], name
        assert operation["tags"], name
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), (name, parameter["name"])
        for body in operation.get("requestBody", {}).get("content", {}).values():
            assert body["example"], name
    assert described["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_all_workers_know_of_simulated_people(tmp_path):
    """Whichever worker a request reaches, the group is there, and another one has to wait for it."""
    with run_server_with_api_client(f"sqlite:///{tmp_path}/vseg.db") as api:
        one, other = Simulations(), Simulations()
        for worker in (one, other):
            worker.share_through(api.server.db)
        study = store.studies.get_study(api.server.db, "tiny")
        job = one.start(api.server.base, study, count=2, pace=1.0, seed=0)
        assert other.find_job("tiny").to_json() == job.to_json()
        assert api.get("studies/tiny/simulate").json()["running"]
        with pytest.raises(Conflict, match="still taking part"):
            other.start(api.server.base, study, count=1)
        one.stop()
        assert job.finished.wait(60)
        assert other.find_job("tiny").to_json() == job.to_json()
        assert not job.running
