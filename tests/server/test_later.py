"""The researchers' part is loaded after the participants are served, or by the first who asks for it."""

import asyncio
import subprocess
import sys
import threading
import time

import httpx
from starlette.responses import PlainTextResponse

from vseg import store
from vseg.server import later
from vseg.server.app import app
from vseg.server.later import Later


def test_nobody_who_takes_part_waits_for_what_researchers_need():
    """What comes before the first answer is what a restart takes."""
    program = "import sys; from vseg.server import run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "vseg.server.participants" in loaded
    assert not loaded & {"fastapi", "argon2", "scipy", "matplotlib", "vseg.monitor", "vseg.server.dashboard"}


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
            waiting = asyncio.create_task(client.get("/studies/tiny"))
            while not begun.is_set():
                await asyncio.sleep(0.01)
            health = await client.get("/health")
            assert not waiting.done()
            goes_on.set()
            return health, await waiting

    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        whole = app(db)
        whole.app.app.router.default = Later(load)
        health, page = asyncio.run(asked(whole))
    assert (health.status_code, page.text) == (200, "researchers")


def test_it_is_loaded_once_by_whoever_comes_first(monkeypatch):
    monkeypatch.setattr(later, "AFTER_S", 0.0)
    times = []

    def load():
        times.append(threading.get_ident())
        time.sleep(0.1)  # long enough for the others to come
        return PlainTextResponse("here")

    async def asked():
        part = Later(load)
        async with part.loading(), httpx.AsyncClient(transport=httpx.ASGITransport(app=part)) as client:
            return await asyncio.gather(*(client.get("http://x/") for _ in range(5)))

    assert [answer.text for answer in asyncio.run(asked())] == ["here"] * 5
    assert len(times) == 1
    assert times[0] != threading.get_ident(), "the loop serves others meanwhile"


def test_it_is_loaded_without_anybody_asking(monkeypatch):
    monkeypatch.setattr(later, "AFTER_S", 0.01)
    loaded = threading.Event()

    def load():
        loaded.set()
        return PlainTextResponse("here")

    async def waited():
        async with Later(load).loading():
            return await asyncio.to_thread(loaded.wait, 20)

    assert asyncio.run(waited())
