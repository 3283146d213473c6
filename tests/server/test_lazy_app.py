"""The researchers' part of the app is loaded after the start, or by the first request for it."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import httpx
from starlette.responses import PlainTextResponse

from vseg import store
from vseg.server import lazy_app
from vseg.server.app import create_app
from vseg.server.lazy_app import LazyApp

PARTICIPANT_REQUESTS = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
import httpx
from servers import STUDY, register_studies
from vseg import store
from vseg.server import runner
from vseg.server.app import create_app

async def send_requests(app):
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://x/s/tiny/") as client:
        begun = await client.post("sessions", json={"consented": True})
        answers = [await client.get(path) for path in ("", "study.json", "nowhere")]
        event = {"seq": 0, "kind": "device", "at_ms": 1, "data": {}}
        token = {"Authorization": "Bearer " + begun.json()["token"]}
        stored = await client.post("records", json={"records": [event]}, headers=token)
        return [response.status_code for response in (begun, *answers, stored)]

with store.open(sys.argv[2]) as db:
    register_studies(db, STUDY)
    app = create_app(db)
    app.app.app.router.default = app.app.app.router.not_found
    print(asyncio.run(send_requests(app)))
print(*sys.modules)
"""


def test_participants_requests_load_no_module_of_the_researchers(tmp_path):
    """Beginning, answering or a wrong address load nothing heavy: what they load is what a restart takes."""
    arguments = [str(Path(__file__).parents[1]), f"sqlite:///{tmp_path}/vseg.db"]
    command = [sys.executable, "-c", PARTICIPANT_REQUESTS, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    statuses, loaded = done.stdout.splitlines()
    assert statuses == "[201, 200, 200, 404, 200]"
    heavy = {"fastapi", "argon2", "scipy", "matplotlib", "vseg.monitor", "vseg.server.dashboard"}
    assert not heavy & set(loaded.split())


def test_a_command_does_not_load_other_commands():
    program = "import sys; from vseg.cli import app; app(['serve']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"vseg.cli.serve", "vseg.cli.fit"} & set(done.stdout.split()) == {"vseg.cli.serve"}


def test_participants_are_answered_while_the_researchers_part_loads(tmp_path):
    may_continue, has_begun = threading.Event(), threading.Event()

    def load():
        has_begun.set()
        may_continue.wait()
        return PlainTextResponse("researchers")

    async def send_requests(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            # More requests than threads.
            waiting = [asyncio.create_task(client.get("/studies/tiny")) for _ in range(50)]
            assert await asyncio.to_thread(has_begun.wait, 20)
            health = await client.get("/health")
            assert not any(request.done() for request in waiting)
            may_continue.set()
            return health, await asyncio.gather(*waiting)

    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        app = create_app(db)
        app.app.app.router.default = LazyApp(load)
        health, pages = asyncio.run(send_requests(app))
    assert health.status_code == 200
    assert {page.text for page in pages} == {"researchers"}


def request_at_once(app, count):
    """Send this number of requests at once and return the texts of the replies."""

    async def send_requests():
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with app.load_in_background(), httpx.AsyncClient(transport=transport) as client:
            return await asyncio.gather(*(client.get("http://x/") for _ in range(count)))

    return [answer.text for answer in asyncio.run(send_requests())]


def test_the_app_is_loaded_once_for_all_requests_and_the_background_task(monkeypatch):
    monkeypatch.setattr(lazy_app, "LOAD_DELAY_S", 0.0)
    threads = []

    def load():
        threads.append(threading.get_ident())
        return PlainTextResponse("here")

    assert request_at_once(LazyApp(load), 5) == ["here"] * 5
    assert len(threads) == 1
    assert threads[0] != threading.get_ident(), "the event loop must stay free"


def test_the_app_is_loaded_without_any_request(monkeypatch):
    monkeypatch.setattr(lazy_app, "LOAD_DELAY_S", 0.01)
    loaded = threading.Event()

    def load():
        loaded.set()
        return PlainTextResponse("here")

    async def wait():
        async with LazyApp(load).load_in_background():
            return await asyncio.to_thread(loaded.wait, 20)

    assert asyncio.run(wait())


def test_a_failed_load_is_logged_and_tried_again(monkeypatch, caplog):
    monkeypatch.setattr(lazy_app, "LOAD_DELAY_S", 0.0)
    attempts = []

    def load():
        attempts.append(None)
        if len(attempts) == 1:
            raise ImportError("half an installation")
        return PlainTextResponse("here")

    app = LazyApp(load)
    assert request_at_once(app, 0) == []
    assert "half an installation" in caplog.text
    assert request_at_once(app, 2) == ["here"] * 2
    assert len(attempts) == 2


def test_a_stop_waits_for_a_load_in_progress(monkeypatch):
    monkeypatch.setattr(lazy_app, "LOAD_DELAY_S", 0.0)
    has_begun, may_continue, order = threading.Event(), threading.Event(), []

    def load():
        has_begun.set()
        may_continue.wait()
        order.append("loaded")
        return PlainTextResponse("here")

    async def load_and_stop():
        async with LazyApp(load).load_in_background():
            assert await asyncio.to_thread(has_begun.wait, 20)
            asyncio.get_running_loop().call_later(0.05, may_continue.set)
        order.append("stopped")

    asyncio.run(load_and_stop())
    assert order == ["loaded", "stopped"]
