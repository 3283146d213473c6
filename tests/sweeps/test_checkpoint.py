"""Test that an interrupted sweep continues, and that the folder of another sweep is left alone."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import vseg
from sweeps.studies import counted, noisy, raising
from vseg.errors import Conflict, InvalidInput, VsegError
from vseg.sweeps import sweep

TESTS = Path(__file__).parent.parent
BLOCKS = {"blocks": [1, 2, 4]}
RUN = """
import sys
from sweeps.studies import noisy
from vseg.sweeps import sweep

if __name__ == "__main__":
    report = lambda count: print(count, flush=True)
    settings = {"blocks": [1, 2, 4]}
    sweep(noisy, settings, repeats=10_000, seed=5, executor=sys.argv[1], checkpoint="saved", progress=report)
"""


@pytest.fixture
def lines(tmp_path):
    """Return a function that counts the repetitions in the folder `saved`."""
    return lambda: (tmp_path / "saved" / "trials.jsonl").read_bytes().count(b"\n")


@pytest.mark.parametrize("executor", ["threads:1", "processes:2"])
def test_a_killed_sweep_continues_where_it_stopped(executor, tmp_path, lines):
    (tmp_path / "run.py").write_text(RUN)
    process = subprocess.Popen(
        [sys.executable, "run.py", executor],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(2):
        assert process.stdout.readline()
    process.kill()
    process.communicate(timeout=30)  # returns when no process holds the pipe, so the workers have ended too
    assert process.returncode == -signal.SIGKILL
    before = lines()
    assert before >= 2
    with open(tmp_path / "saved" / "trials.jsonl", "a") as file:
        file.write('[2, 9, [{"err')  # as a power cut would leave it
    calls = []
    repeats = before // 3 + 2
    table = sweep(
        noisy, BLOCKS, repeats=repeats, seed=5, checkpoint=tmp_path / "saved", progress=calls.append
    )
    assert table == sweep(noisy, BLOCKS, repeats=repeats, seed=5)
    assert calls[0] == before
    assert sum(calls) == 3 * repeats == lines()


def test_finished_repetitions_are_not_repeated_and_more_repeats_are_added(tmp_path):
    settings = {"blocks": [1, 2], "where": [str(tmp_path)]}
    for repeats, calls in ((3, 6), (3, 6), (5, 10), (2, 10)):
        table = sweep(counted, settings, repeats=repeats, seed=0, checkpoint=tmp_path / "saved")
        assert len((tmp_path / "calls").read_text().split()) == calls
        assert len(table) == 2 * repeats


def test_repetitions_finished_before_a_failure_are_saved(tmp_path, lines):
    # Two threads run both repeats of the third setting at once: either may fail first.
    for executor, failed in ((None, "repeat 0"), ("threads:2", "repeat [01]")):
        with pytest.raises(VsegError, match=f"blocks=3, {failed}"):
            sweep(
                raising,
                {"blocks": [1, 2, 3]},
                repeats=2,
                seed=0,
                executor=executor,
                checkpoint=tmp_path / "saved",
            )
        assert lines() >= 2


OTHERS = {
    "another function": {"function": raising},
    "an earlier version of this function": {"function": partial(noisy, where="")},
    "other settings": {"settings": {"blocks": [1, 2]}},
    r"another seed \(5, not 6\)": {"seed": 6},
}


@pytest.mark.parametrize("difference", OTHERS)
def test_the_folder_of_another_sweep_is_not_changed(difference, tmp_path):
    usual = {"function": noisy, "settings": BLOCKS, "repeats": 1, "seed": 5, "checkpoint": tmp_path}
    sweep(**usual)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(Conflict, match=f"{difference}.*choose another folder"):
        sweep(**{**usual, **OTHERS[difference]})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_folder_of_another_version_of_vseg_is_refused(tmp_path):
    sweep(noisy, BLOCKS, repeats=1, seed=5, checkpoint=tmp_path)
    description = tmp_path / "sweep.json"
    description.write_text(json.dumps({**json.loads(description.read_text()), "version": "0.0.1"}))
    with pytest.raises(Conflict, match=rf"another version of vseg \(0.0.1, not {vseg.__version__}\)"):
        sweep(noisy, BLOCKS, repeats=1, seed=5, checkpoint=tmp_path)


def test_the_folder_of_an_edited_function_is_refused(tmp_path, monkeypatch):
    """Test that results of the old function are not returned for the new one; a comment makes no difference."""
    monkeypatch.syspath_prepend(tmp_path)

    def sweep_source(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        function = __import__(name).repetition
        function.__module__ = "study"
        return (
            sweep(function, {"x": [1]}, repeats=1, seed=0, checkpoint=tmp_path / "saved").column("y").tolist()
        )

    assert sweep_source("study_one", "def repetition(x, seed):\n    return {'y': x}\n") == [1]
    assert sweep_source("study_two", "def repetition(x, seed):\n    # as it is\n    return {'y': x}\n") == [1]
    with pytest.raises(Conflict, match="earlier version of this function"):
        sweep_source("study_three", "def repetition(x, seed):\n    return {'y': x + 1}\n")


def test_settings_that_are_not_numbers(tmp_path):
    settings = {"x": [float("nan"), (1, "a"), None]}
    calls = []
    for _ in range(2):
        sweep(
            lambda x, seed: {"y": 1}, settings, repeats=1, seed=0, checkpoint=tmp_path, progress=calls.append
        )
    assert sum(calls) == 6
    assert calls[-1] == 3


def test_one_sweep_at_a_time_writes_to_a_folder(tmp_path):
    def again(_):
        sweep(noisy, BLOCKS, repeats=1, seed=5, checkpoint=tmp_path)

    with pytest.raises(Conflict, match="Another run is writing"):
        sweep(noisy, BLOCKS, repeats=1, seed=5, checkpoint=tmp_path, progress=again)


def test_a_damaged_line_is_reported(tmp_path):
    sweep(noisy, BLOCKS, repeats=1, seed=5, checkpoint=tmp_path)
    repetitions = tmp_path / "trials.jsonl"
    first, *others = repetitions.read_text().splitlines()
    repetitions.write_text("\n".join([first[:-4], *others, ""]))
    with pytest.raises(InvalidInput, match="line 1 is damaged"):
        sweep(noisy, BLOCKS, repeats=1, seed=5, checkpoint=tmp_path)


def test_a_file_or_the_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(Conflict, match="is a file"):
        sweep(noisy, BLOCKS, repeats=1, seed=5, checkpoint=tmp_path / "file")
    (tmp_path / "trials.jsonl").write_text("mine\n")
    with pytest.raises(Conflict, match=r"no sweep\.json to say what they are of"):
        sweep(noisy, BLOCKS, repeats=1, seed=5, checkpoint=tmp_path)
    assert (tmp_path / "trials.jsonl").read_text() == "mine\n"
