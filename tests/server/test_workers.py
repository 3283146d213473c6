"""Workers while the database refuses connections or hangs: they are replaced, and they stop."""

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


def list_children(process: int) -> set[int]:
    file = Path(f"/proc/{process}/task/{process}/children")
    if not file.exists():
        pytest.skip("The children of a process are read from /proc.")
    return {int(number) for number in file.read_text().split()}


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():  # the time limit of a test ends it if that never happens
        threading.Event().wait(0.05)


def wait_for_both_workers(server: ServerProcess) -> set[int]:
    """Return both workers after each has answered while the other was suspended."""
    page = server.link("participants")
    assert httpx.get(page, trust_env=False, timeout=60).status_code == 200
    workers = list_children(server.process.pid)
    assert len(workers) == 2
    for other in workers:
        os.kill(other, signal.SIGSTOP)
        try:
            assert httpx.get(page, trust_env=False, timeout=60).status_code == 200
        finally:
            os.kill(other, signal.SIGCONT)
    return workers


@pytest.mark.chaos  # takes a minute, and needs an idle machine
def test_a_worker_that_cannot_start_is_started_again_later(tmp_path, postgres_server):
    """The other worker continues meanwhile; once the whole server stopped."""
    (tmp_path / "study.toml").write_text(STUDY)
    url = postgres_server.fresh()
    allow = f"ALTER DATABASE {postgres_server._name(url)} ALLOW_CONNECTIONS"
    with run_server_process(tmp_path / "study.toml", "--db", url, "--workers", "2") as server:
        page, first = server.link("participants"), wait_for_both_workers(server)
        seen = set(first)
        postgres_server.execute(f"{allow} false")
        os.kill(min(first), signal.SIGKILL)

        def failed_twice() -> bool:
            assert server.process.poll() is None, "the server has stopped"
            seen.update(list_children(server.process.pid))
            return len(seen) >= 4  # a second replacement: the first one could not start

        wait_until(failed_twice)
        style = f"{page.partition('/s/')[0]}/pages/researcher.css"
        assert httpx.get(style, trust_env=False, timeout=60).status_code == 200
        postgres_server.execute(f"{allow} true")
        os.kill(max(first), signal.SIGKILL)  # from here on only the replacements can answer

        def is_served() -> bool:
            try:
                return httpx.get(page, trust_env=False, timeout=60).status_code == 200
            except httpx.TransportError:
                return False  # the connection went to the killed worker

        wait_until(is_served)
        ended, _, err = server.stop()
    assert ended == 0
    messages = {line.partition(": The database postgresql://")[0] for line in err.splitlines()}
    messages.discard("Cannot load the sessions of other workers now")
    assert messages == {"vseg: a worker stopped"}, "no traceback"
    postgres_server.drop(url)


def test_the_restart_delay_grows_until_a_worker_has_started():
    startups = StartupPipe()
    assert not startups.has_any()
    assert [startups.next_delay_s() for _ in range(3)] == [0.5, 1.0, 2.0]
    assert max(startups.next_delay_s() for _ in range(20)) == MAX_RESTART_DELAY_S
    os.write(startups.write_end, b".")
    assert startups.has_any()
    assert startups.next_delay_s() == 0.5
    assert startups.has_any(), "once started, always True"
    assert startups.next_delay_s() == 1.0
    startups.close()


@contextmanager
def suspend_database(server, url):
    """Suspend the processes of a database while the block lasts."""
    with psycopg.connect(url.replace("/" + server._name(url), "/postgres")) as connection:
        rows = connection.execute("SELECT pid FROM pg_stat_activity WHERE datname = %s", [server._name(url)])
        suspended = [pid for (pid,) in rows]
    assert suspended
    for pid in suspended:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in suspended:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("workers", [2, pytest.param(1, marks=pytest.mark.chaos)])
def test_the_server_stops_although_the_database_hangs(tmp_path, postgres_server, workers):
    """Two workers query each other's sessions all the time; a single one has a request in progress.

    The single one is sent two signals: at the second one uvicorn no longer runs the app's shutdown.
    """
    (tmp_path / "study.toml").write_text(STUDY)
    url = postgres_server.fresh()
    with run_server_process(tmp_path / "study.toml", "--db", url, "--workers", workers) as server:
        page = server.link("participants")
        if workers == 2:
            wait_for_both_workers(server)
        with suspend_database(postgres_server, url):
            with suppress(httpx.TimeoutException):
                httpx.get(page, trust_env=False, timeout=2)
            if workers == 1:
                server.process.send_signal(signal.SIGINT)
            _, _, log = server.stop(signal.SIGINT)
    assert "Stopped without waiting any longer for what was in progress, such as a database" in log
    postgres_server.drop(url)


def test_workers_load_each_others_sessions(tmp_path, postgres_server):
    """If they cannot, each logs it."""
    (tmp_path / "study.toml").write_text(STUDY)
    with (
        postgres_server.borrowed() as url,
        run_server_process(tmp_path / "study.toml", "--db", url, "--workers", "2") as server,
    ):
        wait_for_both_workers(server)
        log: list[str] = []
        threading.Thread(target=lambda: log.extend(server.process.stderr), daemon=True).start()
        name = postgres_server._name(url)
        postgres_server.execute("ALTER TABLE sessions RENAME TO away", name)

        def both_have_logged() -> bool:
            return "".join(log).count("Cannot load the sessions of other workers now") == 2

        wait_until(both_have_logged)
        postgres_server.execute("ALTER TABLE away RENAME TO sessions", name)
