"""`vseg export`, `vseg fit FOLDER` and `vseg simulate-participants` as people type them."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from commands import files, vseg
from servers import run_server
from vseg import Maps, load
from vseg.data import dataset
from vseg.data.catch_trials import count_catch_trials

STUDY = """
name = "two-images"
segments = {segments}
participants = 4
layout = {{grid = 4}}
images = [{{name = "warm", colours = 2}}, {{name = "cold", colours = 2, seed = 3}}]
design = {{blocks = 2}}
practice = {{trials = 2}}
catch = {{per_block = 1}}
"""
DB = "sqlite:///vseg.db"


@pytest.fixture(scope="module")
def collected(tmp_path_factory) -> Path:
    """A database in which two people have seen each image."""
    from vseg import bots

    folder = tmp_path_factory.mktemp("collected")
    with run_server(f"sqlite:///{folder}/vseg.db", STUDY.format(segments=2)) as running:
        bots.run_bots(f"{running.base}s/two-images/", count=4, observer="ideal", seed=0)
    (folder / "study.toml").write_text(STUDY.format(segments=2))
    return folder


@pytest.fixture
def there(here, collected) -> Path:
    shutil.copytree(collected, here, dirs_exist_ok=True)
    return here


def test_export_then_fit_each_image(there, capsys):
    code, out, err = vseg("export two-images --out exported", capsys)
    assert (code, err) == (0, "")
    assert out.startswith("exported: 4 sessions (4 completed) gave ")
    assert out.endswith("Next: vseg fit exported --out fit\n")
    code, out, err = vseg("fit exported --smoothness 1", capsys)
    assert (code, err) == (0, "")
    assert out.startswith("fit: 2 images fitted separately, in images.csv.\n")
    for image in ("warm", "cold"):
        own = {"maps.npz", "summary.json", "maps.png", "boundaries.png"}
        assert files(Path("fit/images", image)) == own  # the folder brings the pictures
        assert Maps.load(f"fit/images/{image}/maps.npz").segments == 2


def test_one_image_or_everyone(there, capsys):
    assert vseg("export study.toml --out exported", capsys)[0] == 0
    code, _, _ = vseg("fit exported --image warm --by participant --smoothness 1 --out warm", capsys)
    assert code == 0
    assert len(list(Path("warm/participants").iterdir())) == 2
    code, _, err = vseg("fit exported --by all --out all", capsys)
    assert code == 1
    assert "The responses are about 2 images (cold, warm); choose one with --image NAME" in err
    assert vseg("fit exported --image cold --segments 2-3 --smoothness 1 --out cold", capsys)[0] == 0
    assert "segments_table" in json.loads(Path("cold/summary.json").read_text("utf-8"))


def test_catch_trials_tell_the_posterior_of_lapses(there, capsys):
    """Four blocks of a person have a catch trial each; an ideal observer answers them right."""
    assert vseg("export two-images --out exported", capsys)[0] == 0
    caught = count_catch_trials("exported")
    assert len(caught) == 4
    assert all(right == asked > 0 for right, asked in caught.values())
    command = "fit exported --image warm --method posterior --by participant --prior group --out warm"
    code, out, _ = vseg(command, capsys)
    assert code == 0
    with open("warm/participants.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert (int(row["catch_right"]), int(row["catch_asked"])) == caught[row["participant"]]
        own = json.loads(Path("warm", row["folder"], "summary.json").read_text("utf-8"))
        assert own["catch_asked"] == int(row["catch_asked"])
    asked = sum(int(row["catch_asked"]) for row in rows)
    assert f"{asked} of {asked} catch trials were right." in out
    assert vseg("fit exported --image warm --method posterior --lapses none --out plain", capsys)[0] == 0
    assert "catch_asked" not in json.loads(Path("plain/summary.json").read_text("utf-8"))


def test_grid_may_be_said_but_not_contradicted(there, capsys):
    vseg("export two-images --out exported", capsys)
    assert vseg("fit exported --grid 4 --image warm --smoothness 1", capsys)[0] == 0
    code, _, err = vseg("fit exported --grid 5 --out other", capsys)
    assert (code, err) == (
        1, "vseg: exported holds answers on a 4x4 grid, not on a 5x5 grid; leave the layout out.\n",
    )  # fmt: skip


@pytest.mark.parametrize("options", ["", "--smoothness 1"])
def test_a_free_number_of_segments_is_chosen_by_evidence(there, capsys, options):
    vseg("export two-images --out exported", capsys)
    Path("exported", dataset.STUDY).write_text(STUDY.format(segments='"free"'))
    code, out, _ = vseg(f"fit exported --image warm {options}", capsys)
    found = json.loads(Path("fit/summary.json").read_text("utf-8"))
    assert code == 0
    assert [row["segments"] for row in found["segments_table"]][:2] == [2, 3]
    assert (found["segments"], found["segments_plausible"][0]) == (2, 2)
    assert "(plausible: 2" in out


def test_force_replaces_an_export_and_nothing_else(there, capsys):
    assert vseg("export two-images --out exported", capsys)[0] == 0
    code, _, err = vseg("export two-images --out exported", capsys)
    assert (code, "exported exists" in err) == (1, True)
    assert vseg("export two-images --out exported --force", capsys)[0] == 0
    Path("exported/notes.txt").write_text("mine")
    assert vseg("export two-images --out exported --force", capsys)[0] == 1
    Path("project/data").mkdir(parents=True)
    Path("project/README.md").write_text("mine")
    code, _, err = vseg("export two-images --out project --force", capsys)
    assert code == 1
    assert "which vseg did not write" in err
    assert Path("project/README.md").read_text() == "mine"


def test_a_folder_called_like_the_study_can_be_replaced(there, capsys):
    assert vseg("export two-images --out two-images", capsys)[0] == 0
    assert vseg("export two-images --out two-images --force", capsys)[0] == 0


def test_a_database_in_the_folder_outlives_it(there, capsys):
    vseg("export two-images --out exported", capsys)
    shutil.copy("vseg.db", "exported/study/vseg.db")
    code, _, err = vseg(
        "export two-images --out exported --force --db sqlite:///exported/study/vseg.db", capsys
    )
    assert code == 1
    assert "--force would delete exported/study/vseg.db" in err


@pytest.mark.parametrize("command", ["export", "simulate-participants"])
def test_help_shows_an_example(command, capsys):
    code, out, _ = vseg(f"{command} --help", capsys)
    assert code == 0
    assert f"vseg {command}" in out.split("Example")[1]


def test_a_failed_export_leaves_nothing(there, capsys):
    for arguments, message in (
        ("export other --out new", "There is no study 'other' in this database; it has: two-images."),
        ("export none.toml --out new", "No study file none.toml"),
        (
            "export two-images --out new --db sqlite:///none.db",
            "There is no database none.db; give the database that the server uses with --db URL.",
        ),
        ("export two-images --out new --db mysql://x/y", "Databases of type 'mysql' are not supported"),
    ):
        code, _, err = vseg(arguments, capsys)
        assert code == 1
        assert message in err
    assert {path.name for path in there.iterdir()} <= {"vseg.db", "vseg.db-wal", "vseg.db-shm", "study.toml"}


def test_participants_from_the_command_line(here, capsys):
    with run_server(f"sqlite:///{here}/vseg.db", STUDY.format(segments=2)) as running:
        url = f"{running.base}s/two-images/"
        code, out, err = vseg(f"simulate-participants {url} --count 2 --flagged 0 --observer random", capsys)
        assert (code, err) == (0, "")
        assert out.startswith("2 participants gave 136 answers (0 flagged) in ")
        vseg("export two-images --out exported", capsys)
        truth = "exported/study/truth"
        code, _, err = vseg(f"simulate-participants {url} --count 3 --observer ideal --truth {truth}", capsys)
        assert code == 0
        assert err.startswith("vseg: warning: 1 participant could not take part: ")
    assert len(load("exported")) == 2 * 2 * 32


def test_cutting_participants_short_says_how_far_they_were(here, capsys):
    Path("cut.py").write_text(
        "import signal\n\ndef see(image):\n    signal.raise_signal(signal.SIGINT)\n    return image[..., 0] > 127\n"
    )
    with run_server(f"sqlite:///{here}/vseg.db", STUDY.format(segments=2)) as running:
        url = f"{running.base}s/two-images/"
        code, _, err = vseg(f"simulate-participants {url} --count 2 --model cut.py:see", capsys)
    assert code == 130
    assert "Interrupted. 0 of 2 participants came to the end; 0 answers are stored.\n" in err


def test_participants_with_wrong_options(here, capsys):
    for arguments, message in (
        ("--count 0", "--count: expected 1 or more, got '0'."),
        ("--observer sleepy", "An observer is ideal, lapsing:RATE"),
        ("--truth nothing.npz", "No maps at nothing.npz"),
        ("--truth .", ". holds no .npz files; expected maps called after the images"),
        ("--flagged 2", "--flagged: expected 0.5 or less, got '2'."),
    ):
        code, _, err = vseg(f"simulate-participants http://127.0.0.1:1/s/x/ {arguments}", capsys)
        assert code == 1
        assert message in err


def test_who_people_are_is_their_researchers_alone(there, capsys):
    """Also where everyone may read what this user writes."""
    assert vseg("export two-images --out exported --identities", capsys)[0] == 0
    assert Path("exported/identities.csv").stat().st_mode & 0o777 == 0o600
