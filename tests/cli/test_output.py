"""Where the commands write: whole or not at all, and never over what is not theirs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import SMALL, files, vseg
from vseg import Grid, Responses, load
from vseg._support.text import safe_folder_names
from vseg.cli.output import find_unused_folder, new_folder
from vseg.data.responses import concatenate
from vseg.errors import Conflict


def test_an_existing_folder_is_a_conflict_until_forced(simulated, capsys):
    before = (simulated / "truth.npz").read_bytes()
    code, _, err = vseg(f"simulate {SMALL} --seed 5 --out sim", capsys)
    assert (code, err) == (1, "vseg: sim exists; choose another --out, or use --force to replace it.\n")
    assert (simulated / "truth.npz").read_bytes() == before
    assert vseg(f"simulate {SMALL} --seed 5 --out sim --force", capsys)[0] == 0
    assert (simulated / "truth.npz").read_bytes() != before
    assert os.listdir() == ["sim"]


def test_force_replaces_nothing_when_the_fit_fails(simulated, capsys):
    vseg("fit sim/responses.csv --grid 6 --segments 2 --method penalised", capsys)
    before = files(Path("fit"))
    assert vseg("fit sim/responses.csv --grid 5 --segments 2 --force", capsys)[0] == 1
    assert files(Path("fit")) == before
    assert sorted(os.listdir()) == ["fit", "sim"]


@pytest.mark.parametrize("out", ["sim", ".", ".."])
def test_force_never_deletes_what_is_read_or_where_one_stands(simulated, capsys, out):
    code, _, err = vseg(f"fit sim/responses.csv --grid 6 --segments 2 --force --out {out}", capsys)
    assert code == 1
    assert "would delete" in err or "new folder" in err
    assert files(simulated) == {"truth.npz", "responses.csv", "maps.png"}


def test_force_deletes_nothing_that_vseg_did_not_write(simulated, capsys):
    (Path("sim") / "thesis.txt").write_text("years of work")
    code, _, err = vseg(f"simulate {SMALL} --force --out sim", capsys)
    assert code == 1
    assert err == "vseg: --force would delete thesis.txt, which vseg did not write; choose another --out.\n"
    assert (Path("sim") / "thesis.txt").read_text() == "years of work"


def test_force_does_not_replace_a_file(here, capsys):
    Path("notes.txt").write_text("mine")
    code, _, err = vseg(f"simulate {SMALL} --force --out notes.txt", capsys)
    assert (code, Path("notes.txt").read_text()) == (1, "mine")
    assert err == "vseg: notes.txt is a file, which --force does not replace; choose another --out.\n"


def test_missing_parents_are_made_and_taken_back_on_failure(here, capsys):
    assert vseg(f"simulate {SMALL} --design odd --out a/b/c", capsys)[0] == 1
    assert os.listdir() == []
    assert vseg(f"simulate {SMALL} --out a/b/c", capsys)[0] == 0
    assert "truth.npz" in files(Path("a/b/c"))


def test_an_interrupted_folder_is_removed(here):
    def interrupted() -> None:
        with new_folder(Path("out"), force=False) as folder:
            (folder / "half").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert os.listdir() == []


@pytest.mark.parametrize("started", ["", "trap '' INT TERM;"], ids=["as usual", "with signals ignored"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_command_leaves_nothing_and_says_nothing(here, number, code, started):
    """The child waits on a named pipe for its responses, so it is stopped in the middle at any speed.

    nohup and scripts start their children with signals ignored.
    """
    os.mkfifo("responses.csv")
    program = "import pathlib; pathlib.Path.is_file = lambda self: True; from vseg.cli import main; main()"
    child = subprocess.Popen(
        ["sh", "-c", f'{started} exec "$@"', "sh", sys.executable, "-c", program, "fit", "responses.csv",
         "--grid", "6", "--segments", "2"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        with open("responses.csv", "w"):  # opens when the child has opened its end
            child.send_signal(number)
            _, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert (child.returncode, err) == (code, "")
    assert os.listdir() == ["responses.csv"]


def test_a_folder_that_cannot_be_written_is_one_sentence(here, capsys):
    Path("file").write_text("x")
    code, _, err = vseg(f"simulate {SMALL} --out file/sim", capsys)
    assert code == 1
    assert err.startswith("vseg: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_unused_counts_up(here):
    assert find_unused_folder("demo") == Path("demo")
    Path("demo").mkdir()
    Path("demo-2").mkdir()
    assert find_unused_folder("demo") == Path("demo-3")


def test_conflict_is_found_before_anything_is_made(here):
    Path("out").mkdir()
    with pytest.raises(Conflict), new_folder(Path("out"), force=False):
        pass
    assert os.listdir() == ["out"]


# ── names ──

NASTY = [
    "../../etc", "..", ".", "", "/abs", "a/b", "a\\b", ".hidden", "CON", "nul.txt", "Ann", "ann", "ANN",
    "ann-2", "x" * 300, "x" * 301, "Zoë", "Zoe\u0308", "a\nb", "a:b", "名前", "\x1b[31m", "~", "- -",
]  # fmt: skip


def test_any_name_makes_a_folder_of_its_own(tmp_path):
    folders = safe_folder_names(NASTY)
    assert list(folders) == NASTY
    assert len({name.casefold() for name in folders.values()}) == len(NASTY)
    for name in folders.values():
        assert not name.startswith(".")
        assert (tmp_path / name).resolve().parent == tmp_path.resolve()
        (tmp_path / name).mkdir()


def test_participants_with_nasty_names_stay_in_their_folder(simulated, capsys):
    one = load("sim/responses.csv", Grid(6)).select(participant="P1")
    names = ["../../up", "A", "a"]
    concatenate(Responses(Grid(6), one.i, one.j, one.same, participant=name) for name in names).save(
        "nasty.csv"
    )
    assert vseg("fit nasty.csv --grid 6 --segments 2 --smoothness 1 --by participant", capsys)[0] == 0
    assert sorted(os.listdir("fit/participants")) == ["A", "a-2", "up"]
    assert sorted(os.listdir()) == ["fit", "nasty.csv", "sim"]
