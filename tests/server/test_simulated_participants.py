"""Test simulated participants that the server runs, and the demo that shows them."""

import os
import select
import signal
import subprocess
import sys

import httpx
import pytest

from servers import STUDY, pause, run_server
from vseg import store
from vseg.errors import Conflict, InvalidInput
from vseg.server import auth
from vseg.server.simulated_participants import Simulations

OPEN = STUDY.replace("participants = 3", "participants = 20")


@pytest.fixture
def running(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db", OPEN) as server:
        yield server


@pytest.mark.parametrize("source", ["truth", "picture", "model"])
def test_they_complete_the_study(running, tmp_path, source):
    (tmp_path / "mine.py").write_text(
        "def model(image):\n    print('seen')\n    return image.sum(axis=2) > 300\n"
    )
    groups, study = Simulations(f"{tmp_path}/mine.py"), store.studies.get_study(running.db, "tiny")
    job = groups.start(running.base, study, count=3, source=source, seed=0)
    job.finished.wait()
    assert job.to_json() == {"wanted": 3, "done": 3, "running": False, "failed": False, "said": job.said}
    assert job.said.startswith("3 participants gave ")
    assert groups.find_job("tiny") is job
    assert store.sessions.count_sessions(running.db, study).completed == 3


def test_one_group_at_a_time_and_invalid_settings(running):
    groups, study = Simulations(), store.studies.get_study(running.db, "tiny")
    job = groups.start(running.base, study, count=2, pace=1.0, seed=0)
    with pytest.raises(Conflict, match="2 simulated participants are still taking part"):
        groups.start(running.base, study, count=1)
    for settings, message in (
        ({"count": 0}, "Expected 1 to 500 simulated participants"),
        ({"count": 1, "observer": "sleepy"}, "An observer is ideal"),
        ({"count": 1, "source": "model"}, "Unknown source 'model'; expected 'truth' or 'picture'"),
    ):
        with pytest.raises(InvalidInput, match=message):
            groups.start(running.base, study, **settings)
    groups.stop()
    job.finished.wait()
    assert job.failed
    assert job.said == "The simulated participants stopped before the end."


def test_an_error_of_the_study_is_the_jobs_message(running):
    store.studies.close(running.db, "tiny")
    job = Simulations().start(running.base, store.studies.get_study(running.db, "tiny"), count=1, seed=0)
    job.finished.wait()
    assert job.failed
    assert "closed" in job.said


def test_simulating_through_the_api(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db", OPEN) as server:
        token = store.tokens.create(server.db, researcher(server.db), "script")
        server.client.headers["Authorization"] = f"Bearer {token}"
        assert server.client.get("api/studies/tiny/simulate").json()["wanted"] == 0
        begun = server.client.post(
            "api/studies/tiny/simulate", json={"count": 2, "source": "truth", "seed": 1}
        )
        assert (begun.status_code, begun.json()["wanted"]) == (202, 2)
        while (group := server.client.get("api/studies/tiny/simulate").json())["running"]:
            pause()
        assert (group["done"], group["failed"]) == (2, False)
        refused = server.client.post("api/studies/tiny/simulate", json={"count": 1, "source": "model"})
        assert (refused.status_code, refused.json()["error"]) == (422, "InvalidInput")


def researcher(db) -> str:
    auth.set_password(db, "ann", "a long password")
    return "ann"


def count_completed(answer: httpx.Response) -> int:
    """Return how many have completed; 0 while the server reads the answers for the first time."""
    return 0 if answer.status_code == 503 else answer.json()["progress"]["completed"]


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux to watch other processes")
def test_stopping_ends_what_a_child_has_started():
    groups = Simulations()
    code = "import subprocess; child = subprocess.Popen(['sleep', '600']); print(child.pid, flush=True); child.wait()"
    with groups.child_process(["-c", code]) as process:
        grandchild = os.pidfd_open(int(process.stdout.readline()))
        groups.stop()
        assert process.returncode == -signal.SIGKILL
        assert select.select([grandchild], [], [], 30)[0]  # readable once it has ended
    with groups.child_process(["-c", "import time; time.sleep(600)"]) as process:
        assert process.returncode == -signal.SIGKILL


def test_the_report_is_not_written_for_a_server_that_was_killed(tmp_path):
    """The process exits as soon as its standard input ends, long before the report is written."""
    command = ["-m", "vseg.demo", str(tmp_path / "report"), "0"]
    ended = subprocess.run([sys.executable, *command], stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert ended.returncode == 1
    assert not (tmp_path / "report" / "report.html").exists()


def test_the_demo_command(tmp_path):
    """Test `vseg demo`: fifteen participants complete, a map can be fetched, and Ctrl+C ends all processes."""
    command = [sys.executable, "-m", "vseg", "demo", "--no-browser", "--out", str(tmp_path / "shown")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(5)]
    links = {line.split()[0]: line.split()[1] for line in lines if "http" in line}
    try:
        with httpx.Client(trust_env=False, timeout=60, follow_redirects=True) as client:
            signed_in = client.get(links["Dashboard"])
            assert signed_in.status_code == 200
            api = f"{links['Participant'].partition('/s/')[0]}/api/studies/demo"
            while count_completed(client.get(f"{api}/progress")) < 15:
                assert process.poll() is None
                pause(0.5)  # they take half a minute
            maps = client.get(f"{api}/images/coffee/maps.json", params={"segments": 3, "smoothness": 1})
            assert maps.status_code == 200, maps.text
            assert client.get(links["Participant"]).status_code == 200
            assert client.get(links["Report"]).status_code in (200, 503)
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    if (tmp_path / "shown" / "report" / "report.html").exists():
        assert out.startswith("Stopped; the study, its database and the report are in ")
    else:  # stopped before it was written
        assert out.startswith("Stopped; the study and its database are in ")
