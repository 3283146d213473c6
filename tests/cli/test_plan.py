"""`vseg plan` from the command line."""

import json

from PIL import Image

from commands import files, vseg

QUICK = "--grid 5 --entropy 0.1 --trials 25,50 --participants 5,20 --repeats 10 --executor threads:1"


def test_plan_prints_a_table_and_advice(here, capsys):
    code, out, error = vseg(f"plan {QUICK} --against 0.4 --out p", capsys)
    assert (code, error) == (0, "")
    lines = out.splitlines()
    assert lines[0].strip() == "power with … participants"
    assert [line.split()[:2] for line in lines[2:6]] == [
        ["paper", "25"], ["paper", "50"], ["posterior", "25"], ["posterior", "50"],
    ]  # fmt: skip
    assert lines[7].startswith("To tell 0.1 from 0.4 nats with power 0.8, the paper's method needs ")
    assert lines[-1] == "p: people.csv, plan.png, summary.json, table.csv."
    assert files(here / "p") == {"people.csv", "plan.png", "summary.json", "table.csv"}
    with Image.open(here / "p" / "plan.png") as picture:
        assert min(picture.size) > 500


def test_a_plan_is_only_overwritten_with_force(here, capsys):
    quick = QUICK.replace("--trials 25,50", "--trials 25 --methods posterior --out p")
    assert vseg(f"plan {quick}", capsys)[0] == 0
    code, _, error = vseg(f"plan {quick}", capsys)
    assert (code, "p exists" in error) == (1, True)
    code, out, _ = vseg(f"plan {quick} --force --seed 1", capsys)
    assert code == 0
    assert "The posterior errs by 0." in out


def test_a_study_file_brings_grid_segments_and_trials(here, capsys):
    (here / "s.toml").write_text(
        'name = "s"\nsegments = 3\nparticipants = 14\nlayout = {grid = 5}\ndesign = {trials = 40, blocks = 2}\n'
        'images = [{name = "a", texture = "low"}, {name = "b", texture = "high"}]\n'
    )
    code, _, error = vseg(
        "plan s.toml --entropy 0.3 --repeats 10 --methods paper --executor threads:1", capsys
    )
    assert (code, error) == (0, "")
    summary = json.loads((here / "plan" / "summary.json").read_text())
    assert (summary["guess"]["grid"], summary["guess"]["segments"]) == (5, 3)
    assert summary["guess"]["design"] == "scattered"
    assert sorted({row["trials"] for row in summary["table"]}) == [20, 40, 80]
    assert sorted({row["participants"] for row in summary["table"]}) == [5, 7, 10, 15, 30]


def test_a_study_with_several_images_per_participant_is_planned_for_one(here, capsys):
    (here / "s.toml").write_text(
        'name = "s"\nsegments = 2\nparticipants = 4\nlayout = {grid = 4}\nassignment = {images = "within"}\n'
        'images = [{name = "a", texture = "low"}, {name = "b", texture = "high"}]\n'
    )
    code, _, error = vseg("plan s.toml --repeats 10 --methods paper --executor threads:1", capsys)
    assert code == 0
    assert "shows each participant 2 images; trials and minutes here are those of one image" in error


def test_an_adaptive_study_is_planned_with_the_adaptive_method(here, capsys):
    text = 'name = "s"\nsegments = 2\nparticipants = 4\nlayout = {grid = 4}\n'
    text += 'images = [{name = "a", texture = "low"}]\n'
    (here / "s.toml").write_text(text + 'design = {name = "adaptive", trials = 32}\n')
    code, _, error = vseg("plan s.toml --repeats 10 --trials 16 --executor threads:1", capsys)
    assert (code, error) == (0, "")
    summary = json.loads((here / "plan" / "summary.json").read_text())
    assert summary["guess"]["design"] == "covering"
    assert {row["method"] for row in summary["table"]} == {"paper", "posterior", "adaptive"}

    (here / "s.toml").write_text(text + 'design = {name = "adaptive", shared = true, rule = "bald"}\n')
    quick = "--repeats 10 --methods posterior --executor threads:1 --force"
    code, out, error = vseg(f"plan s.toml {quick}", capsys)
    assert (code, "adaptive" in out) == (0, False)
    assert "chooses pairs from everyone's answers together; here" in error
    assert "chooses pairs by the rule bald; here they are chosen by variance_reduction" in error


def test_bad_input_is_one_sentence(here, capsys):
    (here / "points.toml").write_text(
        'name = "s"\nsegments = 2\nparticipants = 4\nimages = [{name = "a", texture = "low"}]\n'
        "layout = {points = [[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]]}\n"
    )
    for arguments, message in {
        "plan --grid 2": "--grid: expected 3 or more, got '2'.",
        "plan --entropy 0.8": "lies from 0 to below log 2 = 0.693 nats, got 0.8",
        "plan --entropy much": "--entropy: expected a number, got 'much'.",
        "plan --against 0.2": "nothing to tell apart",
        "plan --trials 10": "--trials: a participant on an 11x11 grid answers 61 trials (every location once)",
        "plan --trials few": "--trials: expected whole numbers of 1 or more separated by commas, such as 10,20,30, "
        "got 'few'",
        "plan --participants 1": "--participants: a condition has 2 to 1000 participants",
        "plan --methods magic": "--methods: unknown method 'magic'",
        "plan --repeats 2": "--repeats: expected 10 or more, got '2'.",
        "plan --executor cloud": "An executor is",
        "plan --spread 3": "got a spread of 3",
        "plan nowhere.toml": "No study file nowhere.toml",
        "plan points.toml": "only grids can be planned",
        "plan points.toml --grid 5": "points.toml determines --grid; leave out --grid, or the study file.",
    }.items():
        code, out, error = vseg(arguments, capsys)
        assert (code, out) == (1, ""), arguments
        assert message in error, (arguments, error)
        assert len(error.splitlines()) == 1
    assert not (here / "plan").exists()
