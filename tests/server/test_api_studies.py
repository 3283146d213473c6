"""Test the API routes for studies and personal tokens."""

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest

from researchers import log_in, run_server_with_api_client
from servers import STUDY, run_server
from vseg import store
from vseg.errors import Conflict
from vseg.server import http
from vseg.server.api.studies import MAX_DRAWN_IMAGES
from vseg.server.app import create_app
from vseg.server.runner import create_uvicorn_server
from vseg.server.simulated_participants import Simulations


@pytest.fixture
def api(database_url):
    with run_server_with_api_client(database_url) as client:
        yield client


@pytest.fixture
def sqlite_api(tmp_path):
    """Return a client of a server on SQLite, for what does not depend on the database."""
    with run_server_with_api_client(f"sqlite:///{tmp_path}/vseg.db") as client:
        yield client


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
    ("body", "status", "message"),
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
def test_invalid_studies_are_rejected(sqlite_api, body, status, message):
    answer = sqlite_api.post("studies", json=body)
    assert (answer.status_code, message in answer.json()["message"]) == (status, True), answer.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"a{12_000 * '.a'} = 1", "The study file, line 1: this is nested too deeply"),
        ("".join(f"k{n} = 1\n" for n in range(90_000)), "The study file has more than 30000 settings"),
    ],
)
def test_study_files_that_would_fill_the_memory_are_rejected(sqlite_api, text, message):
    reply = sqlite_api.client.post("api/studies", json={"text": text})
    assert reply.status_code == 422
    assert reply.json()["message"].startswith(message)


def test_studies_are_read_one_at_a_time():
    """Each thread that computes delays participants."""
    begun, released = [], threading.Event()

    def compute(number: int, _: object) -> int:
        begun.append(number)
        released.wait()
        return number

    async def compute_together() -> list[int]:
        calls = asyncio.gather(*(http.run_one_at_a_time(partial(compute, number)) for number in range(2)))
        limiter = http._get_limiter(http._COMPUTING_LIMITER, 1)
        while len(begun) < 2 and not (begun and limiter.statistics().tasks_waiting):
            await asyncio.sleep(0)
        assert begun == [0]
        released.set()
        return await calls

    assert asyncio.run(compute_together()) == [0, 1]


def test_one_of_two_servers_creates_a_study(database_url):
    """Both see that the name is free, then draw its images."""
    with run_server_with_api_client(database_url) as first, run_server(database_url) as second:
        token = {"Authorization": first.client.headers["Authorization"]}

        def create(number: int) -> httpx.Response:
            text = STUDY.replace('"tiny"', '"twice"').replace("A tiny study", f"Title {number}")
            base = (first.server.base, second.base)[number % 2]
            return httpx.post(
                f"{base}api/studies", json={"text": text}, headers=token, timeout=60, trust_env=False
            )

        with ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(create, range(4)))
        assert sorted(reply.status_code for reply in replies) == [201, 409, 409, 409]
        (created,) = [reply.json()["title"] for reply in replies if reply.status_code == 201]
        assert first.get("studies/twice").json()["title"] == created


def make_large_study(images: int) -> str:
    """Return a study with this number of textures, each of which takes a third of a second."""
    textures = ", ".join(f'{{name = "i{k}", texture = "high", seed = {k}}}' for k in range(images))
    return STUDY.replace('"tiny"', '"large"').replace('{name = "patches", colours = 2}', textures)


def test_the_server_draws_few_images_for_a_study(sqlite_api):
    refused = sqlite_api.post("studies", json={"text": make_large_study(MAX_DRAWN_IMAGES + 1)})
    assert refused.status_code == 422
    assert refused.json()["message"].startswith(f"A study created here has at most {MAX_DRAWN_IMAGES} images")


def test_a_server_that_is_stopped_does_not_wait_for_images(tmp_path, caplog):
    text, has_arrived, replies = make_large_study(MAX_DRAWN_IMAGES), threading.Event(), []
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        store.researchers.set_password(db, "Ann", "no password at all")
        token = store.tokens.create(db, "Ann", "tests")
        app = create_app(db)

        async def app_that_tells(scope, receive, send):
            async def receive_and_tell():
                message = await receive()
                if message["type"] == "http.request" and not message.get("more_body"):
                    has_arrived.set()
                return message

            await app(scope, receive_and_tell, send)

        with socket.create_server(("127.0.0.1", 0)) as listening:
            server = create_uvicorn_server(app_that_tells)
            serving = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
            serving.start()
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/api/studies"

            def create() -> None:
                headers = {"Authorization": f"Bearer {token}"}
                replies.append(
                    httpx.post(url, json={"text": text}, headers=headers, timeout=60, trust_env=False)
                )

            creating = threading.Thread(target=create)
            creating.start()
            assert has_arrived.wait(60)
            server.should_exit = True
            creating.join()
            serving.join()
        assert [(reply.status_code, reply.json()["message"]) for reply in replies] == [(503, http.STOPPING)]
        assert store.studies.list_studies(db) == []
    assert "CancelledError" not in caplog.text


def test_bodies_are_read_after_the_login_is_checked(sqlite_api):
    with httpx.Client(base_url=sqlite_api.server.base, trust_env=False) as stranger:
        assert stranger.post("api/studies", json={"text": STUDY}).status_code == 401
        assert (
            stranger.post(
                "api/studies", content=b"x" * 100, headers={"Content-Type": "text/plain"}
            ).status_code
            == 401
        )
    assert sqlite_api.post("studies", content=b"{}").status_code == 415
    assert sqlite_api.post("studies", json={"text": "x" * 7_000_000}).status_code == 413


def test_pausing_closing_and_reopening(api):
    participant = api.server.begin(prolific_pid="one")
    assert api.post("studies/tiny/pause").json()["status"] == "paused"
    assert api.client.get("s/tiny/study.json").json()["reason"] == "paused"
    refused = api.client.post("s/tiny/sessions", json={"consented": True})
    assert (refused.status_code, refused.json()["reason"]) == (409, "paused")
    assert participant.answer_all() == 28
    assert api.server.begin(prolific_pid="one").state["session"] == participant.state["session"]
    assert api.post("studies/tiny/close").json()["status"] == "closed"
    assert api.post("studies/tiny/reopen").json()["status"] == "open"
    assert api.server.begin().items == 28


def test_preview_matches_a_session_and_stores_nothing(api):
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
    assert api.get("studies/tiny/preview").status_code == 200, "closed studies can be previewed"


def test_tokens_give_access_to_the_api_only(api):
    assert api.get("me").json() == {"name": "Ann", "csrf_token": ""}
    second = store.tokens.create(api.server.db, "Ann", "second")
    listed = api.get("tokens").json()
    assert [token["label"] for token in listed] == ["tests", "second"]
    assert listed[0]["last_used_at_ms"] is not None
    assert second not in api.get("tokens").text
    with httpx.Client(base_url=api.server.base, trust_env=False) as other:
        other.headers["Authorization"] = f"Bearer {second}"
        assert other.get("api/me").json()["name"] == "Ann"
        assert other.get("").headers["location"].endswith("/login"), "pages need the login"
        assert other.get("s/tiny/session").status_code == 401
        assert api.delete(f"tokens/{listed[1]['id']}").status_code == 204
        revoked = other.get("api/me")
        assert (revoked.status_code, "revoked" in revoked.json()["message"]) == (401, True)
    assert api.delete(f"tokens/{listed[1]['id']}").status_code == 404


def test_tokens_are_created_by_login_only(api):
    """A stolen token must not make others, which would outlive it."""
    refused = api.post("tokens", json={"label": "third"})
    assert (refused.status_code, "log in" in refused.json()["message"]) == (403, True)
    assert [token["label"] for token in api.get("tokens").json()] == ["tests"]
    log_in(api.server)
    client = api.server.client
    headers = {"X-CSRF-Token": client.get("api/me").json()["csrf_token"]}
    assert client.post("api/tokens", json={"label": " "}, headers=headers).status_code == 422
    made = client.post("api/tokens", json={"label": "third"}, headers=headers)
    assert made.status_code == 201
    name = store.tokens.find_researcher(api.server.db, made.json()["token"])
    assert name == client.get("api/me").json()["name"]


def test_wrong_tokens_are_rejected(sqlite_api):
    for wrong in ("vseg_", "vseg_wrong", "x"):
        answer = sqlite_api.get("studies", headers={"Authorization": f"Bearer {wrong}"})
        assert (answer.status_code, answer.json()["error"]) == (401, "NotAllowed")
    assert sqlite_api.get("studies", headers={"Authorization": "Basic eDp5"}).status_code == 401


def test_schema_describes_everything(sqlite_api):
    """Check that operations have summaries and descriptions, parameters descriptions, and bodies examples."""
    schema = sqlite_api.get("openapi.json").json()
    assert schema["info"]["description"].count("Authorization: Bearer") == 2
    operations = [
        (f"{method} {path}", operation)
        for path, methods in schema["paths"].items()
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
    assert schema["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_all_workers_see_a_simulation(tmp_path):
    """Every worker reports the running group, and none starts another."""
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
        job.finished.wait()
        assert other.find_job("tiny").to_json() == job.to_json()
        assert not job.running
