"""Test score_models() and fit_model() from Python."""

import json

import numpy as np
import pytest

import vseg
from vseg.data.responses import concatenate
from vseg.errors import Conflict, InvalidInput, VsegWarning
from vseg.evaluation.leaderboard import Leaderboard
from vseg.evaluation.model_comparison import compare
from vseg.models import Task, chance, get_model
from vseg.workflows.fit_model import fit_model

pytestmark = pytest.mark.slow

HALVES = """import numpy as np


def model(image):
    return (np.arange(image.shape[1]) >= image.shape[1] // 2) * np.ones(image.shape[:2], int)
"""
SETTINGS = {"per": "all", "folds": 2, "seed": 0}


@pytest.fixture(scope="module")
def task():
    truth = vseg.stimuli.random_maps(vseg.Grid(6), segments=2, entropy=0.2, seed=0)
    pairs = vseg.designs.scattered(truth.layout, segments=2, seed=1)
    parts = [vseg.simulate(truth, pairs, blocks=2, participant=f"p{k}", image="a", seed=k) for k in range(2)]
    pixels = np.random.default_rng(0).integers(0, 256, (24, 24, 3)).astype(np.uint8)
    return Task(concatenate(parts), {"a": pixels}, 2)


def test_scores_are_those_of_compare(task):
    result = vseg.score_models(task, ["chance", "logistic"], **SETTINGS)
    models = {name: get_model(name) for name in ("chance", "logistic")}
    assert result.json() == compare(task, models, **SETTINGS).json()


def test_models_may_be_families(task):
    result = vseg.score_models(task, {"coin": chance(), "rate": "base_rate"}, **SETTINGS)
    assert set(result.predictions) == {"coin", "rate"}


def test_results_are_written_and_not_replaced_unless_forced(task, tmp_path):
    vseg.score_models(task, ["chance"], **SETTINGS, out=tmp_path / "scores")
    assert {file.name for file in (tmp_path / "scores").iterdir()} == {
        "table.md", "table.csv", "scores.json", "forest.png", "calibration.png",
    }  # fmt: skip
    with pytest.raises(Conflict, match="holds the results of an earlier run"):
        vseg.score_models(task, ["chance"], **SETTINGS, out=tmp_path / "scores")
    for name in ("maps.png", "notes.txt"):
        (tmp_path / "scores" / name).write_text("of an earlier run")
    vseg.score_models(task, ["base_rate"], **SETTINGS, out=tmp_path / "scores", force=True)
    assert not (tmp_path / "scores/maps.png").exists()  # base_rate predicts no maps
    assert (tmp_path / "scores/notes.txt").exists()
    assert json.loads((tmp_path / "scores/scores.json").read_text())["models"][0]["model"] == "base_rate"


def test_built_in_models_and_submissions_are_added_to_one_leaderboard(task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(HALVES)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/__init__.py").write_text(HALVES)
    with pytest.warns(VsegWarning, match=r"missing\.py was not scored: There is no file missing\.py"):
        result = vseg.score_models(
            task, ["base_rate", "mine.py", "theirs", "missing.py"], **SETTINGS, leaderboard="board"
        )
    entries = {entry.name: entry for entry in Leaderboard("board").entries()}
    assert set(entries) == {"base_rate", "mine", "theirs"}
    assert entries["mine"].scores == entries["theirs"].scores
    assert set(result.seconds) == {"mine.py", "theirs"}
    rows = {row["model"]: row for row in result.table()}
    assert entries["base_rate"].scores["bits"] == rows["base_rate"]["bits"]
    assert (entries["base_rate"].file, entries["base_rate"].seconds) == ("", None)
    assert len(entries["mine"].slips) == 2
    assert {entry.dataset for entry in entries.values()} == {task.digest}
    page = (tmp_path / "board/index.html").read_text()
    assert page.count("<table>") == 1
    assert page.count("data:image/png;base64,") == 2  # base_rate predicts no maps


def test_a_submission_scores_as_the_same_model_that_is_fitted(task, tmp_path, monkeypatch):
    """Without settings to search, only the lapse rates are fitted in both cases."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(HALVES)
    fitted = vseg.score_models(task, ["mine.py"], **SETTINGS)
    submitted = vseg.score_models(task, ["mine.py"], **SETTINGS, leaderboard="board")
    assert submitted.json() == fitted.json()


def test_progress_is_reported_for_every_fit(task):
    totals, steps = [], []

    class Bar:
        def __init__(self, total):
            totals.append(total)

        def __enter__(self):
            return steps.append

        def __exit__(self, *_):
            pass

    vseg.score_models(task, ["chance", "base_rate"], **SETTINGS, progress=Bar)
    assert totals == [sum(steps)] == [2 * 3 + 1]


@pytest.mark.parametrize(
    ("models", "settings", "message"),
    [
        ([], {}, "at least one model"),
        (["chance", "chance"], {}, "Expected each model once"),
        (["chance"], {"segments": 3}, "give segments and image with a folder only"),
        (["logistic"], {"features": "taste"}, "There are no features 'taste'"),
    ],
)
def test_invalid_arguments_are_refused(task, models, settings, message):
    with pytest.raises(InvalidInput, match=message):
        vseg.score_models(task, models, **SETTINGS, **settings)


def test_fit_model_saves_parameters_and_maps(task, tmp_path):
    result = fit_model(task, "logistic", seed=0)
    assert set(result.fits) == {"p0", "p1"}
    assert result.failures == {}
    result.save(tmp_path)
    assert json.loads((tmp_path / "parameters.json").read_text())["model"] == "logistic"
    assert (tmp_path / "maps/p0/a.npz").is_file()


def test_the_digest_does_not_depend_on_the_order_of_rows(task):
    order = np.random.default_rng(0).permutation(len(task.responses))
    assert task.take(order).digest == task.digest
    assert task.take(order[1:]).digest != task.digest


def test_checkpoints_of_rows_in_another_order_are_not_used(task, tmp_path):
    """Stored predictions belong to rows, so another order must not load them."""
    reordered = task.take(np.arange(len(task.responses))[::-1])
    models = {"colour": get_model("logistic")}
    compare(task, models, **SETTINGS, checkpoint=tmp_path)
    resumed = compare(reordered, models, **SETTINGS, checkpoint=tmp_path)
    assert resumed.json() == compare(reordered, models, **SETTINGS).json()


def constant(p):
    """A family that Python cannot tell apart from one with another p."""

    class Fitted:
        def same_probability(self, image, pairs):
            return np.full(len(pairs), p)

    return lambda task, *, seed: Fitted()


def interrupt(task, models, out, **settings):
    """Run score_models until it would write its results; return the names of the checkpoint folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vseg.workflows.score_models._write_results", raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            vseg.score_models(task, models, **SETTINGS, out=out, **settings)
    return {folder.name for folder in out.glob("unfinished/*")}


def raise_interrupt(*_):
    raise KeyboardInterrupt


def test_another_family_with_the_same_name_does_not_reuse_checkpoints(task, tmp_path):
    out = tmp_path / "scores"
    assert interrupt(task, {"mine": constant(0.25)}, out) == set()
    resumed = vseg.score_models(task, {"mine": constant(0.75)}, **SETTINGS, out=out)
    np.testing.assert_array_equal(resumed.predictions["mine"], 0.75)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("chance", "base_rate"),
        (chance(), get_model("base_rate")),
        (get_model("logistic", features="lab"), get_model("logistic", features="rgb")),
    ],
)
def test_checkpoints_are_reused_by_the_same_model_only(task, tmp_path, first, second):
    before = interrupt(task, {"mine": first}, tmp_path)
    assert len(before) == 1
    assert interrupt(task, {"mine": first}, tmp_path) == before
    assert len(interrupt(task, {"mine": second}, tmp_path)) == 2
    resumed = vseg.score_models(task, {"mine": second}, **SETTINGS, out=tmp_path)
    assert resumed.json() == vseg.score_models(task, {"mine": second}, **SETTINGS).json()


@pytest.mark.parametrize("source", ["mine/model.py", "theirs"])
def test_checkpoints_depend_on_all_files_of_a_model(task, tmp_path, monkeypatch, source):
    """A file may import its neighbours, and a package consists of many files."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / source.partition("/")[0]
    folder.mkdir()
    (folder / "helper.py").write_text(HALVES)
    (folder / "model.py").write_text("from helper import model\n")
    (folder / "__init__.py").write_text("from .helper import model\n")
    settings = {"leaderboard": "board"} if source == "theirs" else {}
    before = interrupt(task, [source], tmp_path / "out", **settings)
    assert interrupt(task, [source], tmp_path / "out", **settings) == before
    assert len(before) == 1
    (folder / "helper.py").write_text(HALVES.replace("shape[1] // 2", "shape[1] // 3"))
    assert len(interrupt(task, [source], tmp_path / "out", **settings)) == 2
