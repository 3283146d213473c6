"""Workers while the database lets nobody in, or hangs: they are replaced, and they stop."""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psycopg
import pytest

from servers import STUDY, ServerProcess, run_server_process
from vseg.server.runner import MAX_RESTART_DELAY_S, StartupPipe


def children(process: int) -> set[int]:
    found = Path(f"/proc/{process}/task/{process}/children")
    if not found.exists():
        pytest.skip("The children of a process are read from /proc.")
    return {int(number) for number in found.read_text().split()}


def wait_until(wanted: Callable[[], bool]) -> None:
    for _ in range(1200):
        if wanted():
            return
        threading.Event().wait(0.05)
    raise AssertionError(f"not within a minute: {wanted.__name__}")


def workers_that_serve(server: ServerProcess) -> set[int]:
    """Both of them, each of which has answered while the other could not: one answer alone tells of one."""
    page = server.link("participants")
    assert httpx.get(page, trust_env=False, timeout=60).status_code == 200
    found = children(server.process.pid)
    assert len(found) == 2
    for other in found:
        os.kill(other, signal.SIGSTOP)
        try:
            assert httpx.get(page, trust_env=False, timeout=60).status_code == 200
        finally:
            os.kill(other, signal.SIGCONT)
    return found


@pytest.mark.chaos  # a minute, and a machine that has time for it
def test_a_worker_that_cannot_begin_now_is_tried_again(tmp_path, postgres_server):
    """The others go on meanwhile, where the whole server once stopped; then it is replaced after all."""
    (tmp_path / "study.toml").write_text(STUDY)
    url = postgres_server.fresh()
    allow = f"ALTER DATABASE {postgres_server._name(url)} ALLOW_CONNECTIONS"
    with run_server_process(tmp_path / "study.toml", "--db", url, "--workers", "2") as server:
        page, first = server.link("participants"), workers_that_serve(server)
        seen = set(first)
        postgres_server.execute(f"{allow} false")
        os.kill(min(first), signal.SIGKILL)

        def failed_twice() -> bool:
            assert server.process.poll() is None, "it has stopped"
            seen.update(children(server.process.pid))
            return len(seen) >= 4  # a second replacement: the first one could not begin

        wait_until(failed_twice)
        style = f"{page.partition('/s/')[0]}/pages/researcher.css"
        assert httpx.get(style, trust_env=False, timeout=60).status_code == 200
        postgres_server.execute(f"{allow} true")
        os.kill(max(first), signal.SIGKILL)  # from here on others answer, or nobody

        def is_served() -> bool:
            try:
                return httpx.get(page, trust_env=False, timeout=60).status_code == 200
            except httpx.TransportError:
                return False  # its connection went to the one that was killed

        wait_until(is_served)
        ended, _, err = server.stop()
    assert ended == 0
    said = {line.partition(": The database postgresql://")[0] for line in err.splitlines()}
    said.discard("Cannot load the sessions of other workers now")
    assert said == {"vseg: a worker stopped"}, "no traceback"
    postgres_server.drop(url)


def test_the_pause_grows_until_one_has_begun():
    startups = StartupPipe()
    assert not startups.has_any()
    assert [startups.next_delay_s() for _ in range(3)] == [0.5, 1.0, 2.0]
    assert max(startups.next_delay_s() for _ in range(20)) == MAX_RESTART_DELAY_S
    os.write(startups.write_end, b".")
    assert startups.has_any()
    assert startups.next_delay_s() == 0.5
    assert startups.has_any(), "it stays so"
    assert startups.next_delay_s() == 1.0
    startups.close()


@contextmanager
def hanging(server, url):
    """A database whose processes answer nobody while the block lasts."""
    with psycopg.connect(url.replace("/" + server._name(url), "/postgres")) as connection:
        mine = connection.execute("SELECT pid FROM pg_stat_activity WHERE datname = %s", [server._name(url)])
        frozen = [pid for (pid,) in mine]
    assert frozen
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in frozen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("workers", [2, pytest.param(1, marks=pytest.mark.chaos)])
def test_a_stop_has_an_end_where_the_database_hangs(tmp_path, postgres_server, workers):
    """Several look for each other's people all the time; of one alone somebody has just asked for something.

    Whoever stops it is impatient: at the second Ctrl+C uvicorn no longer tells the app that all is over.
    """
    (tmp_path / "study.toml").write_text(STUDY)
    url = postgres_server.fresh()
    with run_server_process(tmp_path / "study.toml", "--db", url, "--workers", workers) as server:
        page = server.link("participants")
        if workers == 2:
            workers_that_serve(server)
        with hanging(postgres_server, url):
            with suppress(httpx.TimeoutException):
                httpx.get(page, trust_env=False, timeout=2)
            if workers == 1:
                server.process.send_signal(signal.SIGINT)
            _, _, said = server.stop(signal.SIGINT)
    assert "Stopped without waiting any longer for the database, which does not answer" in said
    postgres_server.drop(url)


def test_workers_look_for_each_others_people(tmp_path, postgres_server):
    """Where they cannot, each says so."""
    (tmp_path / "study.toml").write_text(STUDY)
    with (
        postgres_server.borrowed() as url,
        run_server_process(tmp_path / "study.toml", "--db", url, "--workers", "2") as server,
    ):
        workers_that_serve(server)
        said: list[str] = []
        threading.Thread(target=lambda: said.extend(server.process.stderr), daemon=True).start()
        name = postgres_server._name(url)
        postgres_server.execute("ALTER TABLE sessions RENAME TO away", name)

        def both_say_so() -> bool:
            return "".join(said).count("Cannot load the sessions of other workers now") == 2

        wait_until(both_say_so)
        postgres_server.execute("ALTER TABLE away RENAME TO sessions", name)
