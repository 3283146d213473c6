"""A few begin at a time, so that a crowd at the door holds up nobody who answers."""

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx

from servers import STUDY, register_studies, run_server
from vseg import store
from vseg.server import participants
from vseg.server.app import create_app

CROWDED = STUDY.replace("participants = 3", "participants = 50")
AT_ONCE = participants.MAX_CONCURRENT_BEGINS


async def post_all(client, count):
    return await asyncio.gather(
        *(client.post("/s/tiny/sessions", json={"consented": True}) for _ in range(count))
    )


def test_the_others_wait_and_a_failure_frees_a_place(tmp_path, monkeypatch):
    inside, goes_on, enough = [], threading.Event(), threading.Event()
    real = participants.make_trial_drawer

    def slow(study):
        inside.append(None)
        if len(inside) == AT_ONCE:
            enough.set()
        assert goes_on.wait(20)
        return real(study)

    def broken(study):
        raise RuntimeError("nothing can be drawn")

    async def crowd(whole):
        transport = httpx.ASGITransport(app=whole, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            monkeypatch.setattr(participants, "study_draw", broken)
            failed = await post_all(client, 2 * AT_ONCE)
            monkeypatch.setattr(participants, "study_draw", slow)
            coming = asyncio.create_task(post_all(client, 3 * AT_ONCE))
            assert await asyncio.to_thread(enough.wait, 20)
            assert (await client.get("/health")).status_code == 200, "the others are served meanwhile"
            at_first = len(inside)
            goes_on.set()
            return failed, at_first, await coming

    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        register_studies(db, CROWDED)
        failed, at_first, begun = asyncio.run(crowd(create_app(db)))
    assert {answer.status_code for answer in failed} == {500}
    assert at_first == AT_ONCE
    assert {answer.status_code for answer in begun} == {201}


def test_who_hung_up_before_their_turn_is_not_begun(tmp_path, monkeypatch):
    """Otherwise a server that fell behind would begin only for people who have given up waiting, for ever."""
    goes_on, full = threading.Event(), threading.Semaphore(0)
    real = participants.make_trial_drawer

    def slow(study):
        full.release()
        assert goes_on.wait(20)
        return real(study)

    with run_server(f"sqlite:///{tmp_path}/vseg.db", CROWDED) as server, ThreadPoolExecutor(AT_ONCE) as pool:
        monkeypatch.setattr(participants, "study_draw", slow)
        inside = [pool.submit(server.begin) for _ in range(AT_ONCE)]
        assert all(full.acquire(timeout=20) for _ in inside)
        body = b'{"consented": true}'
        head = f"POST /s/tiny/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        with socket.create_connection(urlsplit(server.base).netloc.split(":")) as connection:
            connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
            assert server.client.get("health").status_code == 200, "what came before has been read"
        assert server.client.get("health").status_code == 200, "and that the connection has ended"
        goes_on.set()
        assert all(begun.result().state["session"] for begun in inside)
        server.begin()
        study = store.studies.get_study(server.db, "tiny")
        assert len(store.sessions.list_sessions(server.db, study)) == AT_ONCE + 1
