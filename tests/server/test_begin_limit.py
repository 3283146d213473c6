"""Only a few sessions begin at the same time, so that the others' responses are stored without delay."""

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx

from servers import STUDY, register_studies, run_server
from vseg import store
from vseg.server import participant_routes
from vseg.server.app import create_app

LARGE_STUDY = STUDY.replace("participants = 3", "participants = 50")
LIMIT = participant_routes.MAX_CONCURRENT_BEGINS


async def begin_many(client, count):
    return await asyncio.gather(
        *(client.post("/s/tiny/sessions", json={"consented": True}) for _ in range(count))
    )


def test_other_requests_wait_and_failures_free_a_place(tmp_path, monkeypatch):
    started, may_continue, limit_reached = [], threading.Event(), threading.Event()
    real = participant_routes.make_trial_drawer

    def slow(study):
        started.append(None)
        if len(started) == LIMIT:
            limit_reached.set()
        may_continue.wait()
        return real(study)

    def broken(study):
        raise RuntimeError("cannot draw trials")

    async def send_requests(app):
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            monkeypatch.setattr(participant_routes, "make_trial_drawer", broken)
            failed = await begin_many(client, 2 * LIMIT)
            monkeypatch.setattr(participant_routes, "make_trial_drawer", slow)
            waiting = asyncio.create_task(begin_many(client, 3 * LIMIT))
            await asyncio.to_thread(limit_reached.wait)
            assert (await client.get("/health")).status_code == 200, "other routes must be served meanwhile"
            at_first = len(started)
            may_continue.set()
            return failed, at_first, await waiting

    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        register_studies(db, LARGE_STUDY)
        failed, at_first, begun = asyncio.run(send_requests(create_app(db)))
    assert {answer.status_code for answer in failed} == {500}
    assert at_first == LIMIT
    assert {answer.status_code for answer in begun} == {201}


def test_a_request_is_dropped_if_its_client_disconnected_while_waiting(tmp_path, monkeypatch):
    """Otherwise a server that fell behind would begin sessions only for clients that have given up."""
    may_continue, started = threading.Event(), threading.Semaphore(0)
    real = participant_routes.make_trial_drawer

    def slow(study):
        started.release()
        may_continue.wait()
        return real(study)

    with (
        run_server(f"sqlite:///{tmp_path}/vseg.db", LARGE_STUDY) as server,
        ThreadPoolExecutor(LIMIT) as pool,
    ):
        monkeypatch.setattr(participant_routes, "make_trial_drawer", slow)
        beginning = [pool.submit(server.begin) for _ in range(LIMIT)]
        for _ in beginning:
            started.acquire()
        body = b'{"consented": true}'
        head = f"POST /s/tiny/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        with socket.create_connection(urlsplit(server.base).netloc.split(":")) as connection:
            connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
            assert server.client.get("health").status_code == 200, "so the request before has been read"
        assert server.client.get("health").status_code == 200, "so the end of the connection has been noticed"
        may_continue.set()
        assert all(begun.result().state["session"] for begun in beginning)
        server.begin()
        study = store.studies.get_study(server.db, "tiny")
        assert len(store.sessions.list_sessions(server.db, study)) == LIMIT + 1
