"""A database that is moved, damaged or locked while the server runs: /health reports it, and no record is acknowledged
that is not stored.
"""

import os
import shutil
import sqlite3
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import psycopg
import pytest

from servers import STUDY, ParticipantClient, response, run_server, run_server_process
from vseg.server.http import DATABASE_THREADS
from vseg.store.database import LOCK_TIMEOUT_S, READ_CONNECTIONS

LONG_TIMEOUT = {"timeout": 60, "trust_env": False}


def test_a_database_file_that_is_moved_back_or_deleted(tmp_path):
    study, file, away = (Path(tmp_path, name) for name in ("study.toml", "vseg.db", "away.db"))
    study.write_text(STUDY)
    with run_server_process(study, "--db", f"sqlite:///{file}") as server, ExitStack() as stack:
        base = server.link("participants").partition("s/")[0]
        client = stack.enter_context(httpx.Client(base_url=base, timeout=30, trust_env=False))
        participant = ParticipantClient(
            client, "tiny", client.post("s/tiny/sessions", json={"consented": True}).json()
        )
        assert participant.send(response(0, 0)).status_code == 200
        file.rename(away)
        assert client.get("health").status_code == participant.send(response(1, 1)).status_code == 503
        away.rename(file)
        assert client.get("health").status_code == participant.send(response(1, 1)).status_code == 200
        file.unlink()
        assert client.get("health").status_code == 503
        code, out, err = server.stop()
        assert (code, out) == (1, "")
        assert f"{file} was moved, replaced or deleted while it was in use" in err


@pytest.mark.parametrize("how", ["log deleted", "copied over"])
def test_files_that_are_deleted_or_overwritten_while_the_server_runs(tmp_path, how):
    """No record is acknowledged any more, and the server does not say that everything is stored when it stops."""
    study, file, copy = (Path(tmp_path, name) for name in ("study.toml", "vseg.db", "copy.db"))
    study.write_text(STUDY)
    with run_server_process(study, "--db", f"sqlite:///{file}") as server, ExitStack() as stack:
        base = server.link("participants").partition("s/")[0]
        client = stack.enter_context(httpx.Client(base_url=base, timeout=30, trust_env=False))
        _checkpoint(file)
        shutil.copyfile(file, copy)
        participant = ParticipantClient(
            client, "tiny", client.post("s/tiny/sessions", json={"consented": True}).json()
        )
        assert participant.send(response(0, 0)).status_code == client.get("health").status_code == 200
        if how == "copied over":
            _checkpoint(file)  # so that the file has changed since it was copied
            shutil.copyfile(copy, file)
        else:
            for name in ("-wal", "-shm"):
                Path(f"{file}{name}").unlink()
        refused = participant.send(response(1, 1))
        assert client.get("health").status_code == refused.status_code == 503
        assert str(file) not in refused.text
        code, out, err = server.stop()
        assert (code, out) == (1, "")
        assert "while it was in use" in err.splitlines()[-1]


def _checkpoint(file: Path) -> None:
    """Write the log to the database file."""
    with closing(sqlite3.connect(file)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def test_a_damaged_database_file_is_unhealthy(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as server:
        server.complete_session()
        ((page,),) = server.db.run_outside_transaction(
            "SELECT rootpage FROM sqlite_master WHERE name = 'responses'"
        )
        ((size,),) = server.db.run_outside_transaction("PRAGMA page_size")
        server.db.run_outside_transaction("PRAGMA wal_checkpoint(TRUNCATE)")
        assert server.client.get("health").status_code == 200
        written = Path(server.db.address).stat().st_mtime_ns
        with open(server.db.address, "r+b") as file:
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)
        os.utime(
            server.db.address, ns=(written, written)
        )  # like a disk that fails, not a program that writes
        with server.db.writing() as connection:  # so that no connection uses its cached pages
            connection.exec_driver_sql("INSERT INTO settings (name, value) VALUES ('a', 'b')")
        assert server.client.get("health").status_code == 503


def test_static_files_are_served_while_the_database_is_locked(postgres_server):
    """More requests wait for a locked table than there are threads for the database."""
    with postgres_server.borrowed() as url, run_server(url) as server, closing(psycopg.connect(url)) as other:
        other.execute("LOCK TABLE studies IN ACCESS EXCLUSIVE MODE")
        requests = [
            threading.Thread(target=httpx.get, args=(f"{server.base}s/tiny/study.json",), kwargs=LONG_TIMEOUT)
            for _ in range(DATABASE_THREADS + 5)
        ]
        for request in requests:
            request.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        with closing(psycopg.connect(url, autocommit=True)) as monitor:
            while monitor.execute(waiting).fetchone()[0] < READ_CONNECTIONS:
                pass
        reply = server.client.get(
            "static/experiment.js", timeout=LOCK_TIMEOUT_S / 2
        )  # before any request gives up
        assert reply.status_code == 200
        other.rollback()
        for request in requests:
            request.join()
