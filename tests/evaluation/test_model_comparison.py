"""Test compare(): scores, failures, checkpoints and progress."""

import json

import numpy as np
import pytest

from vseg.errors import InvalidInput, VsegWarning
from vseg.evaluation.model_comparison import compare
from vseg.models import Task, base_rate, chance, discrimination, distance_only, free_maps, logistic

MODELS = {
    "colour": logistic("lab", starts=2),
    "free": free_maps(1.0),
    "alike": discrimination("lab"),
    "near": distance_only(),
    "rate": base_rate(),
    "coin": chance(),
}


class CountingModel:
    """A model that counts its fits, and fails if `fails` is a message."""

    def __init__(self, family, *, fails=""):
        self.family, self.fails, self.fits = family, fails, 0

    def __call__(self, task, *, seed):
        self.fits += 1
        if self.fails:
            raise ValueError(self.fails)
        return self.family(task, seed=seed)


@pytest.mark.slow
def test_better_models_have_higher_scores(task):
    result = compare(task, MODELS, per="all", seed=0, resamples=200)
    rows = {row["model"]: row for row in result.table()}
    assert rows["coin"]["bits"] == -1
    assert rows["colour"]["normalised_low"] < rows["colour"]["normalised"] < rows["colour"]["normalised_high"]
    assert rows["colour"]["bits"] > max(rows[each]["bits"] for each in ("near", "rate", "coin"))
    assert rows["alike"]["bits"] > rows["near"]["bits"] > -1
    assert all(row["low"] < row["bits"] < row["high"] for name, row in rows.items() if name != "coin")
    best = next(each for each in result.differences() if each["worse"] == "coin")
    assert best["probability"] > 0.99
    assert 0 < rows["colour"]["entropy_r"] < 1
    assert rows["rate"]["entropy_r"] is rows["rate"]["mae"] is None  # it has no maps


def test_a_failing_model_does_not_affect_the_others(task):
    bad = {
        "bad": CountingModel(None, fails="out of ideas"),
        "nan": lambda task, *, seed: FixedPrediction(np.nan),
    }
    bad |= {
        "far": lambda task, *, seed: FixedPrediction(1.5),
        "short": lambda task, *, seed: FixedPrediction([0.5]),
    }
    result = compare(task, {**bad, "coin": chance()}, per="all", seed=0, resamples=20)
    assert list(result.predictions) == ["coin"]
    assert result.failures == {
        "bad": result.failures["bad"],
        "nan": result.failures["nan"],
        "far": "P(same) is a number from 0 to 1, got values from 1.5 to 1.5.",
        "short": result.failures["short"],
    }
    assert result.failures["bad"].startswith("ValueError: out of ideas (test_model_comparison.py, line ")
    assert "pairs, got an array of shape (1,)" in result.failures["short"]
    assert "are not finite" in result.failures["nan"]
    assert "- bad was not scored: ValueError: out of ideas" in result.markdown()


class FixedPrediction:
    """A fitted model that predicts `q` for all pairs."""

    def __init__(self, q):
        self.q = q

    def same_probability(self, image, pairs):
        return np.asarray(self.q) if np.ndim(self.q) else np.full(len(pairs), self.q)


def test_a_failure_of_maps_is_a_warning_and_does_not_affect_the_score(task):
    def broken_maps(task, *, seed):
        fitted = FixedPrediction(0.4)
        fitted.maps = lambda image: 1 / 0
        return fitted

    with pytest.warns(VsegWarning, match="no maps by half of all: ZeroDivisionError"):
        result = compare(task, {"half": broken_maps}, per="all", seed=0, resamples=20)
    assert list(result.predictions) == ["half"]
    assert result.maps == {}


def test_an_interrupted_run_resumes_from_its_checkpoints(task, tmp_path):
    """Finished fits are not repeated; a damaged file is fitted again."""
    models = {name: CountingModel(MODELS[name]) for name in ("colour", "alike")}
    first = compare(
        task, models, per="all", folds=3, seed=0, resamples=20, checkpoint=tmp_path / "checkpoints"
    )
    assert {name: each.fits for name, each in models.items()} == {"colour": 4, "alike": 4}
    again = compare(
        task, models, per="all", folds=3, seed=0, resamples=20, checkpoint=tmp_path / "checkpoints"
    )
    assert {name: each.fits for name, each in models.items()} == {"colour": 4, "alike": 4}
    assert again.json() == first.json()
    assert again.maps == first.maps
    for victim in (tmp_path / "checkpoints").iterdir():
        victim.write_bytes(victim.read_bytes()[:40])
    mended = compare(
        task, models, per="all", folds=3, seed=0, resamples=20, checkpoint=tmp_path / "checkpoints"
    )
    assert {name: each.fits for name, each in models.items()} == {"colour": 8, "alike": 8}
    assert mended.json() == first.json()


def test_checkpoints_depend_on_images_and_seed(task, tmp_path):
    model = CountingModel(chance())
    darker = {name: picture // 2 for name, picture in task.images.items()}
    for each, seed in ((task, 0), (Task(task.responses, darker, 2), 0), (task, 1)):
        compare(each, {"coin": model}, per="all", folds=2, seed=seed, resamples=20, checkpoint=tmp_path)
    assert model.fits == 9


@pytest.mark.parametrize(
    ("by", "per"), [("blocks", "participant"), ("participants", "all"), ("images", "all")]
)
def test_blocks_participants_and_images_can_be_held_out(task, by, per):
    result = compare(
        task, {"colour": MODELS["colour"], "free": MODELS["free"]}, by=by, per=per, seed=0, resamples=20
    )
    assert np.isfinite(result.predictions["colour"]).all()
    assert ("free" in result.failures) == (by == "images")
    if by == "images":
        assert "had no answers" in result.failures["free"]


def test_an_unwritable_checkpoint_folder_raises_an_os_error(task, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match="file"):
        compare(
            task,
            {"coin": chance()},
            per="all",
            folds=2,
            seed=0,
            checkpoint=tmp_path / "file" / "checkpoints",
        )


def test_progress_counts_every_fit(task):
    done = []
    compare(task, {"a": chance(), "b": chance()}, folds=3, seed=0, resamples=20, progress=done.append)
    # Two models, three folds and one fit to all answers, four participants; and the human maps of each.
    assert done == [1] * (2 * (3 + 1) * 4 + 4)


def test_csv_json_and_repr(task):
    result = compare(task, {"rate": base_rate(), "coin": chance()}, per="all", seed=0, resamples=20)
    lines = result.csv().splitlines()
    assert lines[0].split(",")[:8] == [
        "model", "bits", "low", "high", "normalised", "normalised_low", "normalised_high", "brier"
    ]  # fmt: skip
    assert len(lines) == 3
    whole = json.loads(result.json())
    assert [each["name"] for each in whole["references"]] == ["floor", "within", "between", "entropy"]
    assert sum(whole["calibration"]["coin"]["count"]) == len(task.responses)
    assert repr(result) == "<ModelComparison of rate, coin by pairs, 5 folds>"


def test_normalised_scores_are_not_clipped(task):
    """A model worse than the floor scores below 0."""
    wrong = compare(
        task, {"wrong": lambda task, *, seed: FixedPrediction(0.01)}, per="all", seed=0, resamples=20
    ).table()[0]
    assert wrong["normalised"] < 0


def test_ceilings_are_not_available_without_repeated_answers(task):
    once = task.responses.take((task.responses.block == 0) & (task.responses.participant == "p0"))
    result = compare(Task(once, task.images, 2), {"coin": chance()}, seed=0, resamples=20)
    assert "within: (not available: nobody answered a pair twice)" in result.markdown()
    assert "between: (not available: no two participants answered the same pair)" in result.markdown()
    assert result.table()[0]["normalised"] is None
    assert json.loads(result.json())["references"][1]["bits"] is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"by": "days"}, "Answers are held out by pairs, blocks, participants, images, got 'days'"),
        ({"per": "day"}, "Models are fitted per participant, image, all, got 'day'"),
        (
            {"by": "participants"},
            "A model fitted per participant cannot be held out by participants; fit one model to all answers instead",
        ),
        ({"folds": 1}, "Cross-validation has 2 or more folds, got 1"),
        ({"models": {}}, "There are no models to compare"),
        ({"models": {"floor": chance()}}, "floor is the name of a reference; give the model another name"),
    ],
)
def test_invalid_arguments_are_refused(task, settings, message):
    with pytest.raises(InvalidInput, match=message):
        compare(task, settings.pop("models", {"coin": chance()}), seed=0, **settings)
