"""`vseg import` and `vseg import-jspsych` as people type them."""

import json
import os
import zipfile
from pathlib import Path

import pytest

from commands import vseg
from vseg import Grid, Maps, load
from vseg.data import dataset

SIZE, WIDTH = 6, 300


def run(subject: str) -> list[dict]:
    """One person's data as jsPsych stores them: left and right half of the image are the segments."""
    centres = Grid(SIZE).pixels(WIDTH, WIDTH).tolist()
    trials: list[dict] = [{"trial_type": "html-button-response", "stimulus": "<p>Begin</p>", "response": 0}]
    for i in range(SIZE**2):
        for j in ((i + 1) % SIZE**2, (i + 7) % SIZE**2, (i + 15) % SIZE**2):
            same = (i % SIZE < SIZE // 2) == (j % SIZE < SIZE // 2)
            (a, b), (c, d) = centres[i], centres[j]
            dots = [{"x": a, "y": b}, {"x": c, "y": d}]
            trials.append(
                {"stimulus": "img/halves.png", "dots": dots, "response": "f" if same else "j", "rt": 640}
            )
    return [trial | {"subject": subject, "trial_index": index} for index, trial in enumerate(trials)]


@pytest.fixture(autouse=True)
def files(here) -> None:
    runs = [run("ann"), run("bo")]
    Path("data.json").write_text(json.dumps(runs))
    with zipfile.ZipFile("results.jrzip", "w") as archive:
        for number, each in enumerate(runs, 1):
            archive.writestr(f"study_result_{number}/comp-result_{number}/data.txt", json.dumps(each))
    lines = ["participant,image,x1,y1,x2,y2,same,rt_ms"]
    for trial in (trial for each in runs for trial in each if "dots" in trial):
        (first, second), same = trial["dots"], int(trial["response"] == "f")
        lines.append(
            f"{trial['subject']},halves,{first['x']},{first['y']},{second['x']},{second['y']},{same},640"
        )
    Path("trials.csv").write_text("\n".join(lines))


PLACE = f"--grid {SIZE} --image-size {WIDTH}x{WIDTH}"


def test_jspsych_then_fit(capsys):
    code, out, err = vseg(f"import-jspsych data.json --map same=response:f {PLACE} --out imported", capsys)
    assert (code, err) == (0, "")
    assert out == (
        "Columns guessed: participant from subject, image from stimulus, trial from trial_index, x1 from dots[0].x, "
        "y1 from dots[0].y, x2 from dots[1].x, y2 from dots[1].y, rt_ms from rt.\n"
        "Answers read as same: f (96); as different: j (120).\n"
        "Images: halves is img/halves.png.\n"
        "Dots lie at most 0.00 of the distance between locations (0.0 px) from the locations of a 6x6 grid.\n"
        "2 rows skipped: 2 without dots.\n"
        "imported: 2 participants gave 216 answers in 2 sessions about 1 image, of which 216 count.\n"
        "Next: vseg fit imported --out fit\n"
    )
    assert vseg("fit imported --segments 2 --smoothness 1", capsys)[0] == 0
    labels = Maps.load("fit/maps.npz").labels.reshape(SIZE, SIZE)
    assert len(set(labels[:, :3].ravel().tolist())) == 1
    assert (labels[:, :3] != labels[:, 3:]).all()


@pytest.mark.parametrize(
    "arguments",
    [
        f"import-jspsych results.jrzip --map same=response:f {PLACE}",
        f"import trials.csv {PLACE}",
        "import trials.csv --image-size 300x300",
        f"import trials.csv --map participant=participant --map image=:halves {PLACE} --segments 2",
    ],
)
def test_the_same_answers_from_every_format(arguments, capsys):
    assert vseg(f"import data.json --map same=response:f {PLACE} --out first", capsys)[0] == 0
    assert vseg(f"{arguments} --out second", capsys)[0] == 0
    first, second = load("first"), load("second")
    assert second.images == ["halves"]
    assert second.participants == ["ann", "bo"]
    for name in ("participant", "i", "j", "same", "rt_ms"):
        assert getattr(first, name).tolist() == getattr(second, name).tolist()


def test_a_number_of_segments_that_was_asked_for(capsys):
    code, out, _ = vseg(f"import trials.csv {PLACE} --segments 2 --name halves --out imported", capsys)
    assert code == 0
    assert out.endswith("Next: vseg fit imported --out fit\n")
    study = dataset.Dataset("imported").study
    assert (study.segments, study.name) == (2, "halves")
    assert vseg("fit imported --smoothness 1", capsys)[0] == 0


def test_points_of_ones_own(capsys):
    points = "\n".join(f"{x},{y}" for x, y in Grid(SIZE).positions.tolist())
    Path("points.csv").write_text(f"x,y\n{points}\n")
    assert vseg("import trials.csv --points points.csv --image-size 300x300 --out imported", capsys)[0] == 0
    assert load("imported").i.max() == 35


def test_dots_of_any_place_can_be_fitted(capsys):
    assert vseg("import trials.csv --image-size 310x310 --out imported", capsys)[0] == 0
    code, _, err = vseg("fit imported --segments 2 --smoothness 1", capsys)
    assert (code, err) == (0, "")


def test_practice_alone_leaves_nothing_to_fit(capsys):
    Path("practice.csv").write_text("i,j,same,practice\n0,1,yes,yes\n")
    code, out, _ = vseg("import practice.csv --grid 6 --out imported", capsys)
    assert code == 0
    assert out.endswith(
        "imported: 1 participant gave 1 answer in 1 session about 1 image, of which 0 count.\n"
    )


def test_force_replaces_an_import_and_nothing_else(capsys):
    command = f"import trials.csv {PLACE} --out imported"
    assert vseg(command, capsys)[0] == 0
    assert vseg(command, capsys)[0] == 1
    assert vseg(f"{command} --force", capsys)[0] == 0
    Path("imported/notes.txt").write_text("mine")
    assert vseg(f"{command} --force", capsys)[0] == 1
    Path("imported/notes.txt").unlink()
    Path("imported/data/own.csv").write_bytes(Path("trials.csv").read_bytes())
    code, _, err = vseg(f"import imported/data/own.csv {PLACE} --out imported --force", capsys)
    assert (code, "--force would delete imported/data/own.csv" in err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("none.json --grid 6", "No file none.json; expected jsPsych's JSON or CSV, or a JATOS archive."),
        (f"data.json {PLACE}", "Which answer means 'same'? The column response holds j (120), f (96): map it "
                               "as same=response:VALUE with the value that means 'same'."),
        (f"data.json {PLACE} --map same=key:f",
         "Column mapping same=key: there is no column 'key'; found trial_type, stimulus, response, subject, "
         "trial_index, dots, rt."),
        ("data.json --grid 6 --map same=response:f", "data.json, trial 2: the dots are in pixels, but the size of "
                                                     "the image 'img/halves.png' is unknown; give --image-size"),
        ("trials.csv --grid 7 --image-size 300x300", "of the distance between locations"),
        ("trials.csv --grid 6 --image-size 300",
         "--image-size: expected WIDTHxHEIGHT in pixels, such as 512x512, got '300'."),
        ("trials.csv --grid 6 --points p.csv", "--grid and --points both define the locations; give one of them."),
        ("trials.csv --grid 2", "--grid: expected 3 or more, got '2'."),
        (f"trials.csv {PLACE} --units miles", "--units: 'miles' is not one of 'px', 'fraction'."),
        (f"trials.csv {PLACE} --count-from 2", "--count-from: expected 1 or less, got '2'."),
        (f"trials.csv {PLACE} --segments 13", "segments"),
        (f"trials.csv {PLACE} --name My_Study", "name should be lower-case letters, digits and hyphens"),
        (f"trials.csv {PLACE} --images none", "No folder none; expected the folder of the pictures"),
        (f"trials.csv {PLACE} --map smae=x", "unknown target 'smae'; did you mean same?"),
    ],
)  # fmt: skip
def test_what_cannot_be_imported(arguments, message, capsys):
    """One sentence, exit code 1, no traceback, and nothing written."""
    before = sorted(os.listdir())
    code, out, err = vseg(f"import {arguments} --out new", capsys)
    assert (code, out) == (1, "")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("command", ["import", "import-jspsych"])
def test_help_shows_an_example(command, capsys):
    code, out, _ = vseg(f"{command} --help", capsys)
    assert code == 0
    assert f"vseg {command} data.json" in out.split("Example")[1]


@pytest.mark.parametrize(
    ("times", "option", "warned"), [((0.4, 0.5, 0.9), "", True), ((0.4, 0.5, 0.9), "--map rt_ms=rt:s", False),
                                    ((400, 500, 900), "", False)],
)  # fmt: skip
def test_reaction_times_in_seconds(times, option, warned, capsys):
    Path("timed.csv").write_text(
        "i,j,same,rt\n" + "".join(f"0,{n},1,{rt}\n" for n, rt in enumerate(times, 1))
    )
    code, _, err = vseg(f"import timed.csv --grid 6 --out new {option}", capsys)
    assert code == 0
    assert err == (
        "vseg: warning: The median reaction time is 0.5 ms, which looks like seconds; to convert the times, import "
        "again with --map rt_ms=rt:s.\n"
        if warned
        else ""
    )
