"""`vseg serve` as a process: what it prints, how it stops, and what is stored when it is killed."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from servers import (
    STUDY,
    ParticipantClient,
    event,
    register_studies,
    response,
    run_server_process,
    start_server_process,
)
from vseg import store
from vseg.cli import main
from vseg.server import app

STOPPED = "Stopped; everything that was acknowledged is stored.\n"


@pytest.fixture
def study(tmp_path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace("participants = 3", "participants = 100"))
    return path


@pytest.fixture
def serve_error(capsys):
    """Run the command in-process and return its one-line error message."""

    def serve_error(*arguments: object) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["serve", *map(str, arguments)])
        out, err = capsys.readouterr()
        assert (ended.value.code, out, err.count("\n")) == (1, "", 1)
        return err.removeprefix("vseg: ").rstrip("\n")

    return serve_error


def begin_session(link: str, **entry: str) -> ParticipantClient:
    """Begin a session in which each request has a connection of its own, so that it may reach any worker."""
    client = httpx.Client(
        base_url=link.partition("s/")[0],
        timeout=60,
        trust_env=False,
        limits=httpx.Limits(max_keepalive_connections=0),
    )
    reply = client.post("s/tiny/sessions", json={"consented": True, **entry})
    assert reply.status_code == 201, reply.text
    return ParticipantClient(client, "tiny", reply.json())


def test_links_and_a_graceful_stop(study, tmp_path):
    url = f"sqlite:///{tmp_path}/vseg.db"
    with run_server_process(study, "--db", url, "--prefix", "/lab") as server:
        link = server.link("participants")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/lab/s/tiny/", link)
        assert server.link("Prolific").startswith(
            f"{link}?PROLIFIC_PID={{{{%PROLIFIC_PID%}}}}&STUDY_ID={{{{%"
        )
        assert server.link("Data") == f"{tmp_path}/vseg.db"
        setup = server.link("Researcher")
        assert httpx.get(setup, trust_env=False, timeout=60).status_code == 200
        page = httpx.get(link, trust_env=False, timeout=60)
        assert "<html" in page.text
        for relative in re.findall(r'(?:src|href)="([^"]+\.(?:js|css))"', page.text):
            assert httpx.get(httpx.URL(link).join(relative), trust_env=False, timeout=60).status_code == 200
        participant = begin_session(link)
        with closing(participant.client):
            assert participant.send(response(0, 0)).status_code == 200
        assert server.stop() == (0, STOPPED, "")
    with store.open(url) as db:
        assert (
            sum(map(len, store.responses.stream_responses(db, store.studies.get_study(db, "tiny").id))) == 1
        )


def test_a_terminal_shows_at_once_that_the_server_starts(tmp_path):
    """In a log or a pipe this line is not written."""
    read_end, terminal_end = os.openpty()
    command = [sys.executable, "-m", "vseg", "serve", str(tmp_path / "none.toml")]
    assert subprocess.run(command, stderr=terminal_end, stdout=subprocess.PIPE, check=False).returncode == 1
    os.close(terminal_end)
    with open(read_end, "rb", buffering=0) as terminal:
        assert terminal.read(4096).decode().startswith("Starting …\r\nvseg: No study file")


def test_ctrl_c_exits_with_0(study, tmp_path):
    with run_server_process(study, "--db", f"sqlite:///{tmp_path}/vseg.db") as server:
        assert httpx.get(server.link("participants"), trust_env=False, timeout=60).status_code == 200
        assert server.stop(signal.SIGINT) == (0, STOPPED, "")


def test_the_setup_link_is_printed_until_there_is_a_researcher(study, tmp_path):
    url = f"sqlite:///{tmp_path}/vseg.db"
    with run_server_process(study, "--db", url) as server:
        assert "/setup?token=" in server.link("Researcher")
        server.stop()
    with store.open(url) as db:
        store.researchers.set_password(db, "Ann", "a hash")
    with run_server_process(study, "--db", url) as server:
        assert server.link("Researcher").endswith("/")
        server.stop()
    with run_server_process(study, "--db", url, "--new-researcher-link") as server:
        assert "/setup?token=" in server.link("Researcher")


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(study, tmp_path):
    """After kill -9 under load, every acknowledged response is in the database exactly once."""
    url = f"sqlite:///{tmp_path}/vseg.db"
    acknowledged: list[tuple[str, int]] = []
    enough = threading.Semaphore(0)

    def send_responses(link: str) -> None:
        participant = begin_session(link)
        with closing(participant.client):
            for seq in range(1000):
                try:
                    reply = participant.send(response(seq, seq % participant.items))
                except httpx.TransportError:
                    return
                assert reply.status_code == 200
                acknowledged.append((participant.state["session"], seq))
                enough.release()

    with run_server_process(study, "--db", url) as server:
        threads = [
            threading.Thread(target=send_responses, args=[server.link("participants")]) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for _ in range(200):
            assert enough.acquire(timeout=60)
        server.process.kill()
        for thread in threads:
            thread.join()
    with store.open(url) as db:
        rows = [
            row
            for rows in store.responses.stream_responses(db, store.studies.get_study(db, "tiny").id)
            for row in rows
        ]
    stored = [(row["session"], row["seq"]) for row in rows]
    assert len(acknowledged) >= 200
    assert len(set(stored)) == len(stored)
    assert set(acknowledged) <= set(stored)


def test_two_workers_share_tokens(study, postgres_server):
    """Each connection may reach another worker, and each worker knows all sessions."""
    url = postgres_server.fresh()
    with run_server_process(study, "--db", url, "--workers", "2") as server:
        participant = begin_session(server.link("participants"))
        with closing(participant.client):
            for seq in range(40):
                reply = participant.send(event(seq))
                assert (reply.status_code, reply.json()) == (200, {"stored": [seq]})
        children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        if children.exists():
            assert len(children.read_text().split()) == 2
        assert server.stop() == (0, STOPPED, "")
    postgres_server.drop(url)


def test_an_old_token_is_refused_by_every_worker(study, postgres_server):
    """A worker that has cached the old token finds out in the transaction."""
    url = postgres_server.fresh()
    with run_server_process(study, "--db", url, "--workers", "2") as server:
        old = begin_session(server.link("participants"), prolific_pid="a1")
        assert {old.send(event(seq)).status_code for seq in range(20)} == {200}
        new = begin_session(server.link("participants"), prolific_pid="a1")
        assert {old.send(event(100 + seq)).status_code for seq in range(20)} == {401}
        assert {new.send(event(20 + seq)).status_code for seq in range(20)} == {200}
        old.client.close()
        new.client.close()
    postgres_server.drop(url)


def test_a_port_in_use(study, tmp_path, serve_error):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = serve_error(study, "--db", f"sqlite:///{tmp_path}/vseg.db", "--port", port)
    assert (
        message
        == f"Port {port} of 127.0.0.1 is in use; stop the program that uses it, or choose another port."
    )
    assert not (tmp_path / "vseg.db").exists()


def test_invalid_options_and_studies(study, tmp_path, serve_error):
    url = f"sqlite:///{tmp_path}/vseg.db"
    assert serve_error(study, "--db", url, "--workers", "2", "--port", "0").startswith(
        "--workers 2 needs PostgreSQL"
    )
    assert serve_error(study, "--db", url, "--prefix", "lab").startswith(
        "The path prefix should be a path such as /vseg"
    )
    assert serve_error(tmp_path / "none.toml", "--db", url).startswith(f"No study file {tmp_path}/none.toml")
    study.write_text(STUDY.replace("colours = 2", 'file = "none.png"'))
    assert "none.png" in serve_error(study, "--db", url, "--port", "0")


def test_without_a_study_file_the_studies_of_the_database_are_served(study, tmp_path, serve_error):
    """After a restore on another computer the study files are not needed."""
    url = f"sqlite:///{tmp_path}/vseg.db"
    assert re.fullmatch(
        rf"There is no database {tmp_path}/vseg\.db; .* name a study file as well\.",
        serve_error("--db", url, "--port", "0"),
    )
    with store.open(url) as db:
        assert serve_error("--db", url, "--port", "0").startswith(
            f"{tmp_path}/vseg.db has no study yet; name a"
        )
        register_studies(db, study.read_text(), STUDY.replace('"tiny"', '"over"'))
        store.studies.close(db, "over")
    study.unlink()
    with run_server_process("--db", url) as server:
        assert httpx.get(server.link("participants"), trust_env=False, timeout=60).status_code == 200
        assert re.findall(r"^Study (\w+)", server.printed, re.MULTILINE) == ["over", "tiny"]
        assert server.printed.count("It is closed: new participants cannot begin") == 1
        assert "Also open in" not in server.printed
        with closing(begin_session(server.link("participants").replace("/over/", "/tiny/")).client):
            assert server.stop() == (0, STOPPED, "")


def test_other_open_studies_of_the_database_are_listed(study, tmp_path):
    url = f"sqlite:///{tmp_path}/vseg.db"
    with store.open(url) as db:
        register_studies(
            db, *(STUDY.replace('"tiny"', f'"{name}"') for name in ("before", "earlier", "over"))
        )
        store.studies.close(db, "over")
    with run_server_process(study, "--db", url) as server:
        assert "Also open in this database: before, earlier\n" in server.printed
        assert re.findall(r"^Study (\w+)", server.printed, re.MULTILINE) == ["tiny"]


def test_two_servers_on_one_file_lose_nothing(study, tmp_path):
    """If vseg serve is started twice, SQLite lets both write in turn, and each knows the other's sessions."""
    url = f"sqlite:///{tmp_path}/vseg.db"
    with run_server_process(study, "--db", url) as first, run_server_process(study, "--db", url) as second:
        participants = [begin_session(server.link("participants")) for server in (first, second)]
        bases = [server.link("participants").partition("s/")[0] for server in (first, second)]
        for seq in range(20):
            for number, participant in enumerate(participants):
                participant.client.base_url = bases[(seq + number) % 2]
                assert participant.send(response(seq, seq % participant.items)).json() == {"stored": [seq]}
        for participant in participants:
            participant.client.close()
    with store.open(url) as db:
        assert (
            sum(map(len, store.responses.stream_responses(db, store.studies.get_study(db, "tiny").id))) == 40
        )


def test_a_study_cannot_change_after_its_first_session(study, tmp_path, serve_error):
    url = f"sqlite:///{tmp_path}/vseg.db"
    with run_server_process(study, "--db", url) as server:
        begin_session(server.link("participants")).client.close()
        server.stop()
    study.write_text(study.read_text().replace("blocks = 2", "blocks = 3"))
    assert "frozen" in serve_error(study, "--db", url, "--port", "0")


def test_a_missing_build_of_the_page(monkeypatch, tmp_path):
    monkeypatch.setattr(app, "STATIC", tmp_path / "static")
    with pytest.raises(store.studies.NotFound, match="is not built"):
        app.check_page_is_built()


@pytest.mark.parametrize("by", ["name", "file"])
def test_personal_links(study, tmp_path, by):
    url = f"sqlite:///{tmp_path}/vseg.db"
    named = "tiny" if by == "name" else str(study)
    command = [sys.executable, "-m", "vseg", "links", named, "--count", "2", "--db", url]
    with run_server_process(study, "--db", url) as server:
        base = server.link("participants").partition("/s/")[0]
        done = subprocess.run([*command, "--url", base], capture_output=True, text=True, check=True)
        links = done.stdout.split()
        assert len(links) == 2
        token = links[0].removeprefix(f"{base}/s/tiny/?link=")
        entered = httpx.post(
            f"{base}/s/tiny/sessions", json={"consented": True, "link": token}, trust_env=False
        )
        assert entered.status_code == 201
        revoking = [sys.executable, "-m", "vseg", "links", named, "--revoke", "--db", url]
        output = subprocess.run(revoking, capture_output=True, text=True, check=True).stdout
        assert output == "Unused links revoked: 1.\n"


@pytest.mark.parametrize("command", ["links tiny", "export tiny --out exported"])
def test_a_missing_database_is_not_created(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main([*command.split(), "--db", "sqlite:///typo.db"])
    assert "There is no database typo.db" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_early_signal_is_handled(study, postgres_server, workers):
    """The links are printed before the server runs; a signal at that moment must stop it."""
    url = postgres_server.fresh()
    for _ in range(3):
        ended, _, _ = start_server_process(study, "--db", url, "--workers", workers).stop()
        assert ended in (0, 128 + signal.SIGTERM), "it must stop, whether or not it has served"
    postgres_server.drop(url)
