"""Test that a stopped `make chaos` ends its processes, deletes its folders and prints one line."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from chaos.stopping import SIGNALS, STOPPED

RUN = Path(__file__).with_name("run.py")
COMMAND = [sys.executable, RUN, "--quick", "--only", "network cut"]


def children(process: "subprocess.Popen[str]") -> dict[Path, list[str]]:
    """Return the command of each child process, by its folder in /proc."""
    found = {}
    for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        with suppress(OSError):  # it just ended
            found[Path("/proc", pid)] = Path("/proc", pid, "cmdline").read_text().split("\0")
    return found


def is_running(place: Path) -> bool:
    """Return whether a process is running; an ended one may stay in /proc as a zombie for a while."""
    try:
        return place.joinpath("stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux lists processes in /proc.")
@pytest.mark.parametrize("number", SIGNALS)
def test_a_stopped_run_leaves_nothing_behind(number, tmp_path):
    """This also holds if a second signal comes before or during the clean-up."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    with subprocess.Popen(COMMAND, **pipes) as run:
        assert "none, SQLite" in run.stdout.readline()
        started = children(run)
        (postgres,) = (command for command in started.values() if command[0].endswith("postgres"))
        for _ in range(2):
            run.send_signal(number)
        _, said = run.communicate(timeout=60)
    assert (run.returncode, said) == (128 + number, f"{STOPPED}\n")
    assert not any(map(is_running, started))
    assert not Path(postgres[postgres.index("-k") + 1]).exists()
    assert list(tmp_path.iterdir()) == []
