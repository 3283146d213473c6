"""plan_study(): the same files, table and advice as `vseg plan`."""

import warnings

import pytest

import vseg
from vseg.errors import InvalidInput, VsegWarning
from vseg.study.schema import load_study
from workflows.folders import read_folder

pytestmark = pytest.mark.slow

STUDY = """
name = "s"
segments = 2
participants = 14
layout = {grid = 4}
design = {name = "adaptive", shared = true, rule = "bald", trials = 32}
images = [{name = "a", texture = "low"}]
"""


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (
            "--grid 4 --against 0.5 --trials 16,32 --participants 5,20 --repeats 10 --seed 3",
            {"grid": 4, "against": 0.5, "trials": [16, 32], "participants": [5, 20], "repeats": 10, "seed": 3},
        ),
        (
            "--grid 4 --segments 3 --entropy 0.3 --spread 0.05 --lapse 0 --smoothness 1 --methods paper --repeats 10",
            {
                "grid": 4, "segments": 3, "entropy": 0.3, "spread": 0.05, "lapse": 0.0, "smoothness": 1.0,
                "methods": ["paper"], "repeats": 10,
            },
        ),
        ("s.toml --trials 16 --repeats 10", {"study": "s.toml", "trials": [16], "repeats": 10}),
    ],
)  # fmt: skip
def test_python_and_the_command_write_the_same(command, here, options, settings):
    (here / "s.toml").write_text(STUDY)
    printed, shown = command(f"plan {options} --executor threads:1 --out command")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VsegWarning)
        plan = vseg.plan_study(**{"seed": 0, **settings})
    plan.save("python")
    assert read_folder(here / "python") == read_folder(here / "command")
    assert printed == f"{plan}\ncommand: people.csv, plan.png, summary.json, table.csv.\n"
    assert shown.splitlines() == [f"vseg: warning: {warning.message}" for warning in caught]


def test_a_study_brings_grid_segments_trials_participants_and_methods(here):
    (here / "s.toml").write_text(STUDY)
    study = load_study("s.toml")
    with pytest.warns(VsegWarning, match="variance_reduction|everyone's answers") as caught:
        plan = vseg.plan_study(study, methods=["paper"], repeats=10, seed=0)
    assert len(caught) == 2
    assert (plan.forecast.assumptions.grid, plan.forecast.assumptions.design) == (4, "covering")
    assert plan.forecast.trials == [10, 16, 32]
    assert plan.forecast.participants == (5, 10, 14, 15, 30)


def test_an_assumed_number_of_segments_is_named(here):
    (here / "s.toml").write_text(
        STUDY.replace("segments = 2", 'segments = "free"').replace("shared = true, ", "")
    )
    with pytest.warns(VsegWarning) as caught:
        plan = vseg.plan_study("s.toml", methods=["paper"], trials=[16], repeats=10, seed=0)
    assert str(caught[0].message) == ("s.toml leaves the number of segments free; here participants see 5.")
    assert plan.forecast.assumptions.segments == 5


def test_a_study_fixes_its_grid(here):
    (here / "s.toml").write_text(STUDY)
    with pytest.raises(InvalidInput, match=r"s.toml fixes grid; leave out grid, or the study"):
        vseg.plan_study("s.toml", grid=5, seed=0)
    points = STUDY.replace("trials = 32", "trials = 4").replace(
        "{grid = 4}", "{points = [[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]]}"
    )
    (here / "points.toml").write_text(points)
    with pytest.raises(InvalidInput, match="only grids can be planned"):
        vseg.plan_study("points.toml", seed=0)
