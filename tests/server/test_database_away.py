"""A database that is gone, damaged or locked while the server runs: that is told, and what is not stored is not
acknowledged.
"""

import threading
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import psycopg

from servers import STUDY, ParticipantClient, response, run_server, run_server_process
from vseg.server.http import DATABASE_THREADS
from vseg.store.database import LOCK_TIMEOUT_S, READ_CONNECTIONS

PATIENT = {"timeout": 60, "trust_env": False}


def test_a_database_file_that_is_deleted_or_put_back(tmp_path):
    study, file, away = (Path(tmp_path, name) for name in ("study.toml", "vseg.db", "away.db"))
    study.write_text(STUDY)
    with run_server_process(study, "--db", f"sqlite:///{file}") as server, ExitStack() as stack:
        base = server.link("participants").partition("s/")[0]
        client = stack.enter_context(httpx.Client(base_url=base, timeout=30, trust_env=False))
        person = ParticipantClient(
            client, "tiny", client.post("s/tiny/sessions", json={"consented": True}).json()
        )
        assert person.send(response(0, 0)).status_code == 200
        file.rename(away)
        assert client.get("health").status_code == person.send(response(1, 1)).status_code == 503
        away.rename(file)
        assert client.get("health").status_code == person.send(response(1, 1)).status_code == 200
        file.unlink()
        assert client.get("health").status_code == 503
        code, out, err = server.stop()
        assert (code, out) == (1, "")
        assert f"{file} was moved, replaced or deleted while it was in use" in err


def test_a_damaged_file_is_not_healthy(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as server:
        server.complete_session()
        ((page,),) = server.db.run_outside_transaction(
            "SELECT rootpage FROM sqlite_master WHERE name = 'responses'"
        )
        ((size,),) = server.db.run_outside_transaction("PRAGMA page_size")
        server.db.run_outside_transaction("PRAGMA wal_checkpoint(TRUNCATE)")
        assert server.client.get("health").status_code == 200
        with open(server.db.address, "r+b") as file:
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)
        with server.db.writing() as connection:  # so that nobody goes on with pages in memory
            connection.exec_driver_sql("INSERT INTO settings (name, value) VALUES ('a', 'b')")
        assert server.client.get("health").status_code == 503


def test_while_nobody_gets_at_the_data_files_still_leave(postgres_server):
    """More people wait for a locked table than there are threads for those who wait."""
    with postgres_server.borrowed() as url, run_server(url) as server, closing(psycopg.connect(url)) as other:
        other.execute("LOCK TABLE studies IN ACCESS EXCLUSIVE MODE")
        people = [
            threading.Thread(target=httpx.get, args=(f"{server.base}s/tiny/study.json",), kwargs=PATIENT)
            for _ in range(DATABASE_THREADS + 5)
        ]
        for each in people:
            each.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        with closing(psycopg.connect(url, autocommit=True)) as watching:
            while watching.execute(waiting).fetchone()[0] < READ_CONNECTIONS:
                pass
        told = server.client.get("static/experiment.js", timeout=LOCK_TIMEOUT_S / 2)  # before anyone gives up
        assert told.status_code == 200
        other.rollback()
        for each in people:
            each.join()
