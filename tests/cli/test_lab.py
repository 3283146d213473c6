"""`vseg lab`: one participant on this computer; it ends with their session, and says where the answers are."""

import csv
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from commands import vseg
from servers import ParticipantClient, response
from vseg.cli import main

STUDY = """\
name = "lab-study"
segments = 2
participants = 2
layout = {grid = 4}
images = [{name = "patches", colours = 2}]
design = {trials = 8, blocks = 1}
practice = {trials = 0}
catch = {per_block = 0}
"""


@pytest.fixture
def study(here) -> Path:
    path = here / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


class Lab:
    """A running `vseg lab`, up to where it waits for the participant."""

    def __init__(self, *arguments: object, **environment: str):
        command = [sys.executable, "-m", "vseg", "lab", *map(str, arguments)]
        settings = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=settings, **pipes)
        self.printed = ""
        while "Ctrl+C" not in self.printed:
            line = self.process.stdout.readline()
            assert line, self.process.communicate()[1]
            self.printed += line

    @property
    def address(self) -> str:
        return re.search(r"^ *address +(\S+)", self.printed, re.MULTILINE)[1]

    def begin(self, client: httpx.Client) -> ParticipantClient:
        """Whoever opens the address and agrees."""
        url = httpx.URL(self.address)
        names = {"link": "link", "prolific_pid": "PROLIFIC_PID"}
        entry = {name: url.params[key] for name, key in names.items() if key in url.params}
        client.base_url = url.copy_with(path="/", query=None)
        answer = client.post("s/lab-study/sessions", json={"consented": True, **entry})
        assert answer.status_code == 201, answer.text
        return ParticipantClient(client, "lab-study", answer.json())

    def end(self) -> tuple[int, str]:
        out, err = self.process.communicate(timeout=60)
        assert err == ""
        return self.process.returncode, out


@contextmanager
def lab(*arguments: object, **environment: str) -> Iterator[Lab]:
    running = Lab(*arguments, **environment)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=30, trust_env=False) as opened:
        yield opened


def complete(study: Path, client: httpx.Client, *arguments: str) -> tuple[int, str]:
    """A whole session; how the command ended and what it said."""
    with lab(study, "--no-browser", *arguments) as running:
        person = running.begin(client)
        assert person.post("complete", {"count": person.answer_all()}).status_code == 200
        return running.end()


def test_it_ends_with_the_session_and_says_how_to_export(study, here, client, capsys):
    code, said = complete(study, client, "--participant", "eeg-07")
    assert code == 0
    assert "The session is complete." in said
    assert f"{here}/lab-study-lab.db (8 answers of all participants so far)" in said
    command = shlex.split(re.search(r"^Next: +(vseg .*)$", said, re.MULTILINE)[1])
    with pytest.raises(SystemExit) as ended:
        main(command[1:])
    assert ended.value.code == 0
    with open("lab-study-data/identities.csv", encoding="utf-8", newline="") as file:
        assert [row["prolific_pid"] for row in csv.DictReader(file)] == ["eeg-07"]
    assert "8 answers" in capsys.readouterr().out


def test_it_listens_to_this_computer_alone(study, client):
    with lab(study, "--no-browser") as running:
        assert running.address.startswith("http://127.0.0.1:")
        running.begin(client)
        running.process.send_signal(signal.SIGINT)
        assert running.end()[0] == 0


def test_whoever_was_interrupted_goes_on_with_the_same_code(study, client):
    with lab(study, "--no-browser", "--participant", "07") as running:
        first = running.begin(client)
        assert first.send(response(0, 3)).status_code == 200
        running.process.send_signal(signal.SIGINT)
        code, said = running.end()
    assert code == 0
    assert "Stopped before the session was complete; with --participant 07 it can be resumed." in said
    assert "(1 answer of" in said
    with lab(study, "--no-browser", "--participant", "07") as running:
        again = running.begin(client)
        assert again.state["session"] == first.state["session"]
        assert again.state["answered"] == [3]


def test_someone_who_leaves(study, client):
    with lab(study, "--no-browser") as running:
        assert running.begin(client).post("leave", {"data": "withdraw"}).status_code == 200
        code, said = running.end()
    assert (code, "The participant has withdrawn; the answers given are deleted." in said) == (0, True)


def test_a_study_that_is_full_and_a_person_who_was_there(study, client, capsys):
    complete(study, client, "--participant", "a")
    assert vseg(f"lab {study} --no-browser --participant a", capsys) == (
        1,
        "",
        "vseg: Participant a has already taken part (the session is completed); use another participant code or "
        "another database.\n",
    )
    complete(study, client)
    code, _, err = vseg(f"lab {study} --no-browser", capsys)
    assert (code, err) == (
        1,
        f"vseg: Study lab-study has all the participants it needs (2) in {study.parent}/lab-study-lab.db; use another "
        "database, or a study with another name and more participants.\n",
    )
    assert complete(study, client, "--db", "other.db")[0] == 0
    assert Path("other.db").is_file()


def test_a_port_in_use(study, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = vseg(f"lab {study} --no-browser --port {port}", capsys)
    assert (code, out) == (1, "")
    assert (
        err
        == f"vseg: Port {port} of 127.0.0.1 is in use; stop the program that uses it, or choose another port.\n"
    )


def test_no_browser_is_found(study):
    nowhere = dict.fromkeys(("PATH", "PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA"), "/nowhere")
    with lab(study, **nowhere) as running:
        assert "No Chromium, Chrome or Edge was found: open the address yourself" in running.printed


def test_a_browser_that_closes_at_once(study):
    """The answers are there, and the exit code says that the session is not complete."""
    with lab(study, "--browser", shutil.which("true")) as running:
        code, said = running.end()
    assert code == 1
    assert "The browser was closed before the session was complete" in said
    assert "vseg export lab-study" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--browser no-such-browser", "Expected the path of a Chromium, Chrome or Edge browser, got 'no-such-browser'"),
        ("--no-browser --participant a/b", "--participant: expected a code of at most 64 letters, digits, - and _"),
        ("--no-browser --port x", "--port: expected a whole number, got 'x'."),
    ],
)  # fmt: skip
def test_options_that_are_refused(options, message, study, here, capsys):
    code, out, err = vseg(f"lab {study} {options}", capsys)
    assert (code, out) == (1, "")
    assert err.startswith(f"vseg: {message}")
    assert err.count("\n") == 1
    assert not list(here.glob("*.db"))


@pytest.mark.parametrize("table", ["", "[lab]  # in the lab\nmarkers = true\n[timing]\ncue_ms = 100\n"])
def test_a_photodiode_for_a_file_without_one(table, study, client):
    study.write_text(STUDY + table, encoding="utf-8")
    with lab(study, "--no-browser", "--photodiode") as running:
        running.begin(client)
        told = client.get("s/lab-study/study.json").json()["lab"]
    assert told["photodiode"] == {"corner": "bottom-left", "size_px": 80, "phase": "image"}
    assert told["markers"] == bool(table)
    assert study.read_text("utf-8") == STUDY + table


def test_a_photodiode_for_a_table_on_one_line(study, capsys):
    study.write_text(f"{STUDY}lab = {{markers = true}}\n", encoding="utf-8")
    code, _, err = vseg(f"lab {study} --no-browser --photodiode", capsys)
    assert (code, err) == (
        1,
        f"vseg: {study} has a lab table without a photodiode; write photodiode = {{}} into it.\n",
    )


def test_a_study_for_people_of_prolific_needs_a_code(study, client, capsys):
    study.write_text(f'{STUDY}prolific = {{completion_code = "A", required = true}}\n', encoding="utf-8")
    code, _, err = vseg(f"lab {study} --no-browser", capsys)
    assert (code, err) == (1, "vseg: This study requires a participant code; give one.\n")
    assert complete(study, client, "--participant", "1")[0] == 0


def test_a_study_for_those_with_personal_links(study, client):
    study.write_text(f"personal_links_only = true\n{STUDY}", encoding="utf-8")
    assert complete(study, client)[0] == 0


def test_the_documented_codes_are_those_of_an_export():
    from vseg.export.markers import CODES

    page = (Path(__file__).parents[2] / "docs/lab.md").read_text("utf-8")
    assert {
        name: int(code) for name, code in re.findall(r"^\| `(\w+)` \| (\d+) \|", page, re.MULTILINE)
    } == CODES
