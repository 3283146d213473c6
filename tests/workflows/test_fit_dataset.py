"""fit_dataset(): the same files and numbers as `vseg fit`, and what only Python can ask for."""

import csv
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import vseg
from vseg import Grid, Maps
from vseg.bayes import Posterior
from vseg.cli.option_names import name_options
from vseg.data.catch_trials import count_catch_trials
from vseg.data.durations import measure_durations
from vseg.data.responses import concatenate
from vseg.errors import Conflict, InvalidInput, VsegWarning
from vseg.reconstruction.reconstruct import Reconstruction
from vseg.workflows.fit_dataset import prepare_fit
from vseg.workflows.fits import Fit
from workflows.conftest import relabel, simulate_participants
from workflows.folders import read_folder

pytestmark = pytest.mark.slow

GRID = Grid(5)


def fit_quietly(*arguments, **settings):
    """fit_dataset, and the sentences it warned with."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VsegWarning)
        result = vseg.fit_dataset(*arguments, **settings)
    return result, [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("options", "table", "settings"),
    [
        ("--segments 2", "responses", {"segments": 2}),
        ("--segments 2 --method penalised", "responses", {"segments": 2, "method": "penalised"}),
        (
            "--segments 2 --by participant --budget 50",
            "responses",
            {"segments": 2, "by": "participant", "budget": 50},
        ),
        (
            "--segments 2..3 --by participant --smoothness 1 --picture picture.png",
            "responses",
            {"segments": [2, 3], "by": "participant", "smoothness": 1.0, "picture": "picture.png"},
        ),
        ("--segments auto --smoothness 1", "responses", {"segments": "auto", "smoothness": 1.0}),
        (
            "--segments 2 --by participant --method penalised --seed 3",
            "drop_out",
            {"segments": 2, "by": "participant", "method": "penalised", "seed": 3},
        ),
        (
            "--segments 2 --by participant --smoothness 1 --loss cross_entropy --kernel gaussian:1 --weights pairs",
            "drop_out",
            {
                "segments": 2, "by": "participant", "smoothness": 1.0, "loss": "cross_entropy",
                "kernel": "gaussian:1", "weights": "pairs",
            },
        ),
        (
            "--segments 2..3 --by participant --segments-by participant --budget 50",
            "responses",
            {"segments": [2, 3], "by": "participant", "segments_by": "participant", "budget": 50},
        ),
        (
            "--segments 2 --smoothness 1 --solver exponentiated_gradient --learning-rate 0.1 --epsilon 0.001",
            "responses",
            {
                "segments": 2, "smoothness": 1.0, "solver": "exponentiated_gradient", "learning_rate": 0.1,
                "epsilon": 0.001,
            },
        ),
        ("--segments 2..3 --kernel auto", "responses", {"segments": [2, 3], "kernel": "auto"}),
        (
            "--segments 2 --by image --budget 100",
            "two_images",
            {"segments": 2, "by": "image", "budget": 100},
        ),
        (
            "--segments 2 --image tree --method penalised",
            "two_images",
            {"segments": 2, "image": "tree", "method": "penalised"},
        ),
        (
            "--segments 2..3 --by participant --method posterior --prior group --lapses estimate --budget 50",
            "responses",
            {
                "segments": range(2, 4), "by": "participant", "method": "posterior", "prior": "group",
                "lapses": "estimate", "budget": 50,
            },
        ),
        (
            "--segments 2 --by participant --lapses 0.02,0.05 --draws 16 --budget 50",
            "drop_out",
            {"segments": 2, "by": "participant", "lapses": (0.02, 0.05), "draws": 16, "budget": 50},
        ),
        (
            "--segments 2 --method posterior --prior image --picture picture.png --budget 50",
            "responses",
            {"segments": 2, "method": "posterior", "prior": "image", "picture": "picture.png", "budget": 50},
        ),
    ],
)  # fmt: skip
def test_python_and_the_command_write_the_same(data, command, monkeypatch, here, options, table, settings):
    monkeypatch.chdir(data)
    printed, shown = command(f"fit {table}.csv --grid 5 {options} --out {here}/command")
    result, messages = fit_quietly(f"{table}.csv", layout=GRID, **{"seed": 0, **settings})
    result.save(here / "python")
    assert read_folder(here / "python") == read_folder(here / "command")
    assert printed == f"{here}/command: {result.message}\n"
    assert shown.splitlines() == [f"vseg: warning: {name_options(message, 'fit')}" for message in messages]


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("--smoothness 1", {"smoothness": 1.0}),
        (
            "--image cold --by participant --smoothness 1",
            {"image": "cold", "by": "participant", "smoothness": 1.0},
        ),
        (
            "--image warm --by participant --method posterior --prior group --budget 50",
            {"image": "warm", "by": "participant", "method": "posterior", "prior": "group", "budget": 50},
        ),
    ],
)
def test_an_exported_folder_by_python_and_by_the_command(exported, command, here, options, settings):
    command(f"fit {exported} {options} --out command")
    result, _ = fit_quietly(exported, seed=0, **settings)
    result.save("python")
    assert read_folder(here / "python") == read_folder(here / "command")


def test_a_folder_brings_images_segments_and_catch_trials(exported):
    result = vseg.fit_dataset(exported, seed=0)
    assert (result.by, list(result.each)) == ("image", ["cold", "warm"])
    catch = count_catch_trials(exported)
    assert sum(fit.details["catch_asked"] for fit in result.each.values()) == sum(
        asked for _, asked in catch.values()
    )
    for name, fit in result.each.items():
        assert fit.maps.segments == 2
        assert sum(fit.result.lapses) > 0  # estimated, since there are catch trials
        assert result.read_image(name).ndim == 3


def test_participants_with_too_few_answers_are_skipped(data):
    result, messages = fit_quietly(
        data / "drop_out.csv", layout=GRID, segments=2, by="participant", method="penalised", seed=0
    )
    assert list(result.each) == ["a", "b", "c"]
    assert list(result.skipped) == ["left"]
    assert result.skipped["left"].startswith(
        "Choosing the smoothness needs at least 10 distinct pairs, got 5"
    )
    assert messages == [f"participant left is left out: {result.skipped['left']}"]
    assert [row.get("note") for row in result.rows] == ["", "", "", result.skipped["left"]]


def test_reconstruct_each_raises_and_names_fit_dataset(data):
    """It returns nothing but reconstructions, so that it cannot report who was skipped."""
    responses = vseg.load(data / "drop_out.csv", GRID)
    message = r"participant 'left'.*at least 10 distinct pairs.*vseg\.fit_dataset"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)
        with pytest.raises(InvalidInput, match=message):
            vseg.reconstruct_each(responses, segments=2, seed=0)


def test_participants_have_one_k_and_the_labels_of_all(data):
    result = vseg.fit_dataset(
        data / "responses.csv", layout=GRID, segments=[2, 3], by="participant", method="penalised", seed=0
    )
    assert result.together.choice.by_likelihood == result.segments
    for fit in result.each.values():
        assert fit.maps.segments == result.segments
        assert fit.maps.align_to(result.maps) == fit.maps
        assert np.mean(fit.maps.labels == result.maps.labels) > 0.7


@pytest.fixture(scope="module")
def halves_and_quarters():
    """Answers of two participants who see two halves and four quarters, without uncertainty."""
    layout = Grid(8)
    row, column = np.divmod(np.arange(64), 8)
    seen = {
        "halves": (column >= 4) * 1,
        "quarters": (column >= 4) * (1 + (row >= 4)) + (column < 4) * (row >= 4) * 3,
    }
    return concatenate(
        vseg.simulate(
            Maps.one_hot(layout, labels),
            vseg.designs.covering(layout, trials=400, seed=at),
            seed=at,
            participant=name,
        )
        for at, (name, labels) in enumerate(seen.items())
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"budget": 50},
        {"budget": 50, "prior": "group"},
        {"method": "penalised", "smoothness": 0.5},
        {"method": "penalised", "smoothness": 0.5, "segments": "auto"},
    ],
)
def test_each_participant_may_have_a_k_of_their_own(halves_and_quarters, settings, tmp_path):
    given = {
        "segments": [2, 3, 4],
        "by": "participant",
        "segments_by": "participant",
        "seed": 0,
        **settings,
    }
    result, _ = fit_quietly(halves_and_quarters, **given)
    assert {name: fit.maps.segments for name, fit in result.each.items()} == {"halves": 2, "quarters": 4}
    assert [row["segments"] for row in result.rows] == [2, 4]
    assert "Segments: 2 (1 participant), 4 (1 participant)." in result.message
    result.save(tmp_path / "fit")
    assert json.loads((tmp_path / "fit/summary.json").read_text("utf-8"))["segments_by"] == "participant"
    for name, fit in result.each.items():
        folder = tmp_path / "fit" / "participants" / name
        summary = json.loads((folder / "summary.json").read_text("utf-8"))
        assert summary["segments"] == fit.maps.segments
        assert {row["segments"] for row in summary["segments_table"]} >= {2, 3, 4}
        assert (folder / "segments.png").is_file()
        _check_order(fit, result.maps, summary)
    assert (tmp_path / "fit/participants.png").is_file()


def test_segments_without_a_counterpart_come_last(halves_and_quarters):
    quarters = halves_and_quarters.select(participant="quarters")
    fit = Fit(vseg.reconstruct(quarters, segments=4, smoothness=0.5, seed=0))
    left = np.arange(64) % 8 < 4
    aligned = fit.align_to(Maps.one_hot(Grid(8), np.where(left, 1, 0)))
    assert aligned.details["matching_segments"] == [0, 1, None, None]
    won_left = [left[aligned.maps.labels == segment].mean() for segment in range(4)]
    assert (won_left[0], won_left[1], sorted(won_left[2:])) == (0, 1, [0, 1])
    assert sorted(np.bincount(aligned.maps.labels)) == [16] * 4


def _check_order(fit, everyone, summary):
    """Each segment overlaps most with the segment of all that it is said to match; those without one come last."""
    if fit.maps.segments == everyone.segments:
        assert fit.maps.matching_order(everyone).tolist() == list(range(everyone.segments))
        return
    matching = summary["matching_segments"]
    assert len(matching) == fit.maps.segments
    named = [other for other in matching if other is not None]
    assert named == sorted(set(named)) == matching[: len(named)]
    overlap = fit.maps.probabilities.T @ everyone.probabilities
    for own, other in enumerate(named):
        assert overlap[own, other] > 0.5 * overlap[own].max()


@pytest.mark.parametrize(("method", "kind"), [("penalised", Reconstruction), ("posterior", Posterior)])
def test_responses_in_memory_are_fitted_like_their_table(data, method, kind):
    responses = vseg.load(data / "responses.csv", GRID)
    one = vseg.fit_dataset(responses, segments=2, method=method, seed=0)
    other = vseg.fit_dataset(data / "responses.csv", layout=GRID, segments=2, method=method, seed=0)
    assert isinstance(one.together.result, kind)
    assert one.maps == other.maps


def test_catch_trials_of_responses_in_memory(data):
    responses = vseg.load(data / "responses.csv", GRID)
    catch = {"a": (4, 5), "b": (5, 5)}
    result = vseg.fit_dataset(responses, segments=2, method="posterior", catch=catch, seed=0)
    assert (result.together.details["catch_right"], result.together.details["catch_asked"]) == (9, 10)
    assert "9 of 10 catch trials were right." in result.message
    assert vseg.fit_dataset(responses, segments=2, method="posterior", seed=0).together.result.lapses == (
        0,
        0,
    )


def test_an_image_that_cannot_be_fitted_is_skipped(data):
    both = vseg.load(data / "two_images.csv", GRID)
    answers = concatenate([both.select(image="tree"), both.select(image="../boat").take(range(5))])
    result, messages = fit_quietly(answers, segments=2, by="image", method="penalised", seed=0)
    assert (list(result.each), list(result.skipped)) == (["tree"], ["../boat"])
    assert messages[0].startswith("image ../boat is left out: ")
    with pytest.raises(InvalidInput, match="fitted separately"):
        _ = result.maps


def test_each_image_has_a_line_of_its_own(data):
    result = vseg.fit_dataset(
        data / "two_images.csv", layout=GRID, segments=2, by="image", smoothness=1.0, seed=0
    )
    first, *lines = result.message.splitlines()
    assert first == "2 images fitted separately, in images.csv."
    assert lines == [f"{name}: {fit.message}" for name, fit in result.each.items()]
    assert all("mean entropy" in line for line in lines)


def test_durations_of_an_export_are_printed_and_saved(exported, tmp_path):
    """Those of the participants who saw the image, also if it is only one of two; from the sessions' own answers."""
    result, _ = fit_quietly(exported, image="warm", smoothness=1.0, seed=0)
    saw = vseg.load(exported).select(image="warm").participants
    assert len(saw) == 2
    everybody = measure_durations(exported)
    assert result.durations.rows() == [row for row in everybody.rows() if row["participant"] in saw]
    assert result.durations.study.participants == 2
    assert str(result.durations) in result.message
    assert result.durations.study.trial_ms.median > result.durations.study.rt_ms.median
    result.save(tmp_path / "fit")
    with open(tmp_path / "fit/durations.csv", newline="", encoding="utf-8") as file:
        assert [row["participant"] for row in csv.DictReader(file)] == list(result.durations.participants)


def test_without_reaction_times_there_are_no_durations(data, tmp_path):
    result, _ = fit_quietly(
        relabel(vseg.load(data / "responses.csv", GRID)), segments=2, smoothness=1.0, seed=0
    )
    assert result.durations is None
    result.save(tmp_path / "fit")
    assert not (tmp_path / "fit/durations.csv").exists()


def test_a_single_image_is_also_saved_at_the_top(data, tmp_path):
    responses = vseg.load(data / "responses.csv", GRID)
    vseg.fit_dataset(responses, segments=2, by="image", smoothness=1.0, seed=0).save(tmp_path / "fit")
    assert Maps.load(tmp_path / "fit/maps.npz") == Maps.load(tmp_path / "fit/images/image/maps.npz")


def test_nobody_can_be_fitted(data):
    responses = vseg.load(data / "responses.csv", GRID)
    few = concatenate(
        relabel(responses.take(range(at, at + 4)), participant=f"P{at}") for at in range(0, 80, 4)
    )
    with pytest.raises(
        InvalidInput, match="No participant could be fitted; P0: Choosing the smoothness needs"
    ):
        vseg.fit_dataset(few, segments=2, by="participant", method="penalised", seed=0)


@pytest.mark.parametrize(
    "settings",
    [
        {"segments": 2, "method": "penalised"},
        {"segments": 2, "smoothness": 1.0},
        {"segments": [2, 3], "by": "participant", "method": "penalised"},
        {"segments": [2, 3], "by": "participant", "smoothness": 1.0},
        {"segments": "auto", "smoothness": 1.0},
        {"segments": [2, 3], "by": "participant", "kernel": "auto"},
        {"segments": [2, 3], "by": "participant", "segments_by": "participant", "smoothness": 1.0},
        {"segments": [2, 3], "by": "participant", "segments_by": "participant", "budget": 50},
        {"segments": [2, 3], "by": "participant", "budget": 8},
    ],
)
def test_progress_ends_at_the_announced_total(data, settings):
    """Also where a participant is skipped on the way."""
    job, done = prepare_fit(data / "drop_out.csv", layout=GRID, seed=0, **settings), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)
        job.run(done.append)
    assert sum(done) == job.steps


def test_a_fit_is_saved_to_a_new_or_empty_folder(data, tmp_path):
    result = vseg.fit_dataset(data / "responses.csv", layout=GRID, segments=2, smoothness=1.0, seed=0)
    result.save(tmp_path / "new" / "fit")
    assert json.loads((tmp_path / "new/fit/summary.json").read_text("utf-8"))["segments"] == 2
    with pytest.raises(Conflict, match="is not empty"):
        result.save(tmp_path / "new" / "fit")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "magic"}, "Unknown method 'magic'; choose one of posterior, penalised"),
        ({"by": "block"}, "Cannot fit by 'block'; choose one of all, participant, image"),
        ({"segments": None}, "Give the number of segments"),
        ({"segments_by": "image"}, "Cannot choose K by 'image'; choose one of all, participant"),
        ({"segments": "auto", "segments_by": "participant"}, "only where each is fitted; fit by participant"),
        (
            {"by": "participant", "segments_by": "participant"},
            "The number of segments is 2, so there is none to choose for each participant; give several",
        ),
        ({"segments": "many"}, "several to choose from, or 'auto', got 'many'"),
        ({"segments": []}, "one or more numbers of segments, got none"),
        ({"layout": Grid(6)}, "are on a 5x5 grid, not on a 6x6 grid"),
        (
            {"method": "penalised", "prior": "group", "lapses": "none"},
            r"prior \(posterior\), lapses \(posterior\) cannot be used with the method penalised; leave them out",
        ),
        (
            {"method": "posterior", "smoothness": 1},
            r"smoothness \(penalised\) cannot be used with the method posterior; leave it out",
        ),
        (
            {"loss": "cross_entropy", "draws": 64},
            r"loss \(penalised\) and draws \(posterior\) are settings of two methods; give those of one only",
        ),
        (
            {"prior": "magic"},
            "Unknown prior 'magic'; choose one of spatial, image, group",
        ),
        ({"learning_rate": 0.1}, "The solver coordinate_descent has no option 'learning_rate'"),
        ({"prior": "group"}, "fit by participant to use it"),
        ({"prior": "image"}, "The image prior needs the image"),
        ({"lapses": "some"}, "Lapses are 'auto', 'none', 'estimate' or two rates"),
        ({"lapses": (0.6, 0.6)}, "add up to less than 1"),
        ({"image": "boat"}, "No responses with image 'boat'"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    responses = simulate_participants(0.2, "a")
    with pytest.raises(vseg.errors.VsegError, match=message):
        vseg.fit_dataset(responses, **{"segments": 2, "seed": 0, **settings})


def test_a_local_kernel_and_the_rule_of_algorithm_1():
    responses = simulate_participants(0.2, "ab")
    stencil = [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    fits = vseg.fit_dataset(responses, segments=2, by="participant", smoothness=1.0, kernel=stencil, seed=0)
    alone = vseg.reconstruct(
        responses.select(participant="a"), segments=2, smoothness=1.0, kernel=np.array(stencil), seed=0
    )
    assert fits.each["a"].maps == alone.maps.align_to(fits.maps)
    assert fits.each["a"].result.kernel == "array"
    paper = {"solver": "exponentiated_gradient", "learning_rate": 0.1, "smoothness": 1.0, "epsilon": 0.01}
    result = vseg.fit_dataset(responses, segments=2, seed=0, **paper).together.result
    assert result.summary()["solver_options"] == {"learning_rate": 0.1, "epsilon": 0.01}
    changes = np.abs(np.diff(result.solution.trace))
    assert changes[-1] < 0.01 <= changes[:-1].min()


def test_several_images_need_a_choice(data):
    with pytest.raises(
        InvalidInput, match=r"about 2 images \(../boat, tree\); choose one image, or fit each image"
    ):
        vseg.fit_dataset(data / "two_images.csv", layout=GRID, segments=2, seed=0)
    with pytest.raises(InvalidInput, match="One picture was given, but the responses are about 2 images"):
        vseg.fit_dataset(
            data / "two_images.csv", layout=GRID, segments=2, by="image", picture=data / "picture.png", seed=0
        )


def test_missing_data(tmp_path):
    with pytest.raises(vseg.errors.NotFound, match="No file or folder"):
        vseg.fit_dataset(tmp_path / "nothing.csv", layout=GRID, segments=2, seed=0)
    with pytest.raises(vseg.errors.NotFound, match="is a folder without"):
        vseg.fit_dataset(Path(tmp_path), segments=2, seed=0)
