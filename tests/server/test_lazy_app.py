"""The researchers' part is loaded after the participants are served, or by the first who asks for it."""

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

TAKING_PART = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
import httpx
from servers import STUDY, register
from vseg import store
from vseg.server import runner
from vseg.server.app import app

async def asked(whole):
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=whole), base_url="http://x/s/tiny/") as client:
        begun = await client.post("sessions", json={"consented": True})
        answers = [await client.get(path) for path in ("", "study.json", "nowhere")]
        event = {"seq": 0, "kind": "device", "at_ms": 1, "data": {}}
        token = {"Authorization": "Bearer " + begun.json()["token"]}
        stored = await client.post("records", json={"records": [event]}, headers=token)
        return [each.status_code for each in (begun, *answers, stored)]

with store.open(sys.argv[2]) as db:
    register(db, STUDY)
    whole = app(db)
    whole.app.app.router.default = whole.app.app.router.not_found
    print(asyncio.run(asked(whole)))
print(*sys.modules)
"""


def test_nobody_who_takes_part_waits_for_what_researchers_need(tmp_path):
    """Neither to begin, nor to answer, nor by a wrong address: what is loaded until then is what a restart takes."""
    given = [str(Path(__file__).parents[1]), f"sqlite:///{tmp_path}/vseg.db"]
    command = [sys.executable, "-c", TAKING_PART, *given]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    statuses, loaded = done.stdout.splitlines()
    assert statuses == "[201, 200, 200, 404, 200]"
    heavy = {"fastapi", "argon2", "scipy", "matplotlib", "vseg.monitor", "vseg.server.dashboard"}
    assert not heavy & set(loaded.split())


def test_a_command_loads_no_other():
    program = "import sys; from vseg.cli import app; app(['serve']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"vseg.cli.serve", "vseg.cli.fit"} & set(done.stdout.split()) == {"vseg.cli.serve"}


def test_participants_are_answered_while_it_is_being_loaded(tmp_path):
    goes_on, begun = threading.Event(), threading.Event()

    def load():
        begun.set()
        assert goes_on.wait(20)
        return PlainTextResponse("researchers")

    async def asked(whole):
        transport = httpx.ASGITransport(app=whole)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            # More than there are threads.
            waiting = [asyncio.create_task(client.get("/studies/tiny")) for _ in range(50)]
            assert await asyncio.to_thread(begun.wait, 20)
            health = await client.get("/health")
            assert not any(each.done() for each in waiting)
            goes_on.set()
            return health, await asyncio.gather(*waiting)

    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        whole = create_app(db)
        whole.app.app.router.default = LazyApp(load)
        health, pages = asyncio.run(asked(whole))
    assert health.status_code == 200
    assert {page.text for page in pages} == {"researchers"}


def asking(part, count):
    """So many who ask at once."""

    async def asked():
        transport = httpx.ASGITransport(app=part, raise_app_exceptions=False)
        async with part.load_in_background(), httpx.AsyncClient(transport=transport) as client:
            return await asyncio.gather(*(client.get("http://x/") for _ in range(count)))

    return [answer.text for answer in asyncio.run(asked())]


def test_it_is_loaded_once_for_all_who_ask_and_by_itself(monkeypatch):
    monkeypatch.setattr(lazy_app, "AFTER_S", 0.0)
    threads = []

    def load():
        threads.append(threading.get_ident())
        return PlainTextResponse("here")

    assert asking(LazyApp(load), 5) == ["here"] * 5
    assert len(threads) == 1
    assert threads[0] != threading.get_ident(), "the loop serves others meanwhile"


def test_it_is_loaded_without_anybody_asking(monkeypatch):
    monkeypatch.setattr(lazy_app, "AFTER_S", 0.01)
    loaded = threading.Event()

    def load():
        loaded.set()
        return PlainTextResponse("here")

    async def waited():
        async with LazyApp(load).load_in_background():
            return await asyncio.to_thread(loaded.wait, 20)

    assert asyncio.run(waited())


def test_a_load_that_failed_is_tried_again_and_stops_nobody(monkeypatch, caplog):
    monkeypatch.setattr(lazy_app, "AFTER_S", 0.0)
    tries = []

    def load():
        tries.append(None)
        if len(tries) == 1:
            raise ImportError("half an installation")
        return PlainTextResponse("here")

    part = LazyApp(load)
    assert asking(part, 0) == []
    assert "half an installation" in caplog.text
    assert asking(part, 2) == ["here"] * 2
    assert len(tries) == 2


def test_a_server_that_stops_waits_for_what_is_being_loaded(monkeypatch):
    monkeypatch.setattr(lazy_app, "AFTER_S", 0.0)
    begun, goes_on, order = threading.Event(), threading.Event(), []

    def load():
        begun.set()
        assert goes_on.wait(20)
        order.append("loaded")
        return PlainTextResponse("here")

    async def stopped():
        async with LazyApp(load).load_in_background():
            assert await asyncio.to_thread(begun.wait, 20)
            asyncio.get_running_loop().call_later(0.05, goes_on.set)
        order.append("stopped")

    asyncio.run(stopped())
    assert order == ["loaded", "stopped"]
