"""`python -m reproduction annotators`, run from the command line."""

import json

from PIL import Image

from bsds import write_bsds
from commands import files, reproduction

QUICK = "--grid 4 --trials 10,20 --observers aggregate --executor threads:1"
OURS = {"errors.csv", "summary.json", "table.csv", "table.txt", "trials.png"}


def test_a_run_writes_its_files_and_a_second_run_resumes(here, capsys):
    write_bsds(here / "b")
    code, out, error = reproduction(f"annotators b {QUICK} --out o", capsys)
    assert (code, error) == (0, "")
    assert out.splitlines()[0] == "aggregate: error by trials, mean over 2 images"
    assert "the error of the paper's settings at 20 trials" in out
    assert out.splitlines()[-1].startswith("o: 2 photographs; errors.csv")
    assert files(here / "o") >= OURS
    assert json.loads((here / "o" / "summary.json").read_text())["images"] == ["12", "7"]
    with Image.open(here / "o" / "trials.png") as picture:
        assert min(picture.size) > 500
    finished = (here / "o" / "checkpoints" / "trials.jsonl").read_bytes()
    assert reproduction(f"annotators b {QUICK} --out o", capsys)[1] == out
    assert (here / "o" / "checkpoints" / "trials.jsonl").read_bytes() == finished


def test_bad_input_gives_a_one_line_error(here, capsys):
    write_bsds(here / "b")
    (here / "other").mkdir()
    (here / "other" / "mine.txt").write_text("mine")
    for arguments, message in {
        "annotators nowhere": "No folder nowhere; expected one with the .jpg and .mat files of BSDS500",
        "annotators other": "other holds no .jpg with its .mat",
        "annotators b --images 0": "--images: expected 1 or more, got '0'",
        "annotators b --images 9": "The folder holds 2 photographs",
        "annotators b --trials 9,x": "--trials: expected whole numbers of 1 or more separated by commas",
        "annotators b --observers me": "Unknown observer 'me'",
        "annotators b --out other": "other holds other files; choose another --out",
        "annotators b --executor cloud": "An executor is",
    }.items():
        code, out, error = reproduction(arguments, capsys)
        assert (code, out) == (1, "")
        assert message in error
        assert len(error.splitlines()) == 1
    assert files(here / "other") == {"mine.txt"}
    assert not (here / "annotators").exists()
