"""run_study(): every method is run, and results do not depend on interruptions or threads."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bsds import write_bsds
from reproduction.annotators import METHODS, StudyResult, run_study
from reproduction.annotators.figure import draw_errors
from reproduction.annotators.methods import Case, median_same, run_method
from reproduction.annotators.observers import AnnotatorObserver, load_scene
from vseg.errors import InvalidInput, NotFound
from vseg.sweeps import Table

SMALL = {"grid": 5, "trials": (13, 39)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_bsds(tmp_path_factory.mktemp("bsds"))


@pytest.fixture(scope="module")
def found(folder):
    return run_study(folder, **SMALL, seed=0)


def test_every_method_is_judged_at_every_number_of_trials(found):
    assert found.images == ["12", "7"]
    for observer, count in (("aggregate", 5), ("individual", 6)):
        assert len(found.methods(observer)) == count
        for method in found.methods(observer):
            assert found.table.column("trials", observer=observer, method=method).tolist() == [13, 39]
    errors = found.errors.column("error")
    assert ((errors >= 0) & (errors <= 1)).all()


def test_more_trials_help(found):
    """Two grey halves, which two of three annotators see; three times the trials lower every mean error."""
    for observer in found.observers:
        for method in found.methods(observer):
            first, last = found.table.column("error", observer=observer, method=method)
            assert last < first, (observer, method)


def test_resuming_and_threads_do_not_change_the_result(folder, tmp_path):
    asked = {"images": 1, "grid": 4, "trials": (10, 20), "observers": ["individual"], "seed": 0}
    here = run_study(folder, **asked, checkpoint=tmp_path / "checkpoints")
    steps = []
    resumed = run_study(
        folder, **asked, executor="threads:2", checkpoint=tmp_path / "checkpoints", progress=steps.append
    )
    assert (resumed.errors, steps) == (here.errors, [1])
    assert run_study(folder, **asked, executor="threads:2").errors == here.errors


def test_adaptive_pairs_are_not_repeated(folder):
    """The observer records the pairs."""
    seen, asked = load_scene(folder, "7", 4), []

    class RecordingObserver(AnnotatorObserver):
        def answer(self, pairs, rng):
            asked.extend(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True))
            return super().answer(pairs, rng)

    case = Case(seen, RecordingObserver(seen.layout, seen.labels), (10, 40), 3)
    found = run_method(METHODS["image_adaptive"], case)
    assert [trials for trials, _ in found] == [10, 40]
    assert len(asked) == len(set(asked)) == 40
    for _, q in found:
        assert q == pytest.approx(q.T)
        assert ((q >= 0) & (q <= 1 + 1e-12)).all()


@given(seed=st.integers(0, 99))
def test_a_median_is_closer_to_the_draws_than_their_mean(seed):
    """Of all estimates the median has the least mean |q̂ - q| over the draws."""
    draws = np.random.default_rng(seed).dirichlet([0.3] * 3, (9, 5))
    q = draws @ draws.swapaxes(1, 2)
    at_median, at_mean = (np.abs(q - centre).mean() for centre in (median_same(draws), q.mean(axis=0)))
    assert at_median <= at_mean + 1e-12


def test_the_headline_and_the_files(found, tmp_path):
    found.save(tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["observers"]["individual"]["headline"] in (tmp_path / "table.txt").read_text()
    assert Table.load(tmp_path / "errors.csv") == found.errors
    assert Table.load(tmp_path / "table.csv") == found.table
    needed = summary["observers"]["aggregate"]["needed"]
    assert set(needed) == set(found.methods("aggregate"))
    assert needed["paper"]["trials"] == pytest.approx(39)


def made_up(level, ours=1):
    """Errors that fall as 1/√trials, the paper's four times as large: it is matched with a sixteenth of the trials."""
    return StudyResult(
        Table(
            {
                "image": image,
                "observer": "aggregate",
                "repeat": 0,
                "method": method,
                "trials": trials,
                "error": error,
            }
            for image in ("a", "b", "c")
            for method, factor in (("paper", 4), ("image", ours))
            for trials in (64, 256, 1024)
            for error in [factor * level / trials**0.5]
        ),
        16,
        0,
    )


def test_a_headline_is_read_off_the_table():
    assert made_up(0.8).headline("aggregate") == (
        "Aggregate (a random annotator at each trial): the error of the paper's settings at 1024 trials, 0.100, is "
        "reached with 64 or fewer (64 to 64) trials by posterior, image-guided: 16.0 times fewer."
    )
    assert (
        made_up(0.8, ours=10).headline("aggregate").endswith("is not reached by another method within 1024.")
    )


def test_the_figure_has_a_panel_per_observer(found):
    figure = draw_errors(found)
    assert [axes.get_xscale() for axes in figure.axes] == ["log", "log"]
    assert len(draw_errors(made_up(0.8)).axes) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"images": 3},
            "The folder holds 2 photographs with their annotators; expected a number from 1 to 2, got 3",
        ),
        ({"grid": 2}, "Expected a grid of 4 to 32 locations along a side, got 2"),
        ({"trials": (9, 20)}, "Expected 10 to 150 trials"),
        ({"trials": (20,)}, "two or more numbers of trials"),
        ({"observers": ["crowd"]}, "Unknown observer 'crowd'; choose one of aggregate, individual"),
        ({"observers": []}, "Expected one or both"),
    ],
)
def test_invalid_arguments_are_rejected(folder, wrong, message):
    with pytest.raises(InvalidInput, match=f"(?i){message}"):
        run_study(folder, **{**SMALL, **wrong}, seed=0)


def test_a_folder_without_photographs_is_rejected(tmp_path):
    with pytest.raises(NotFound, match=r"holds no \.jpg with its \.mat"):
        run_study(tmp_path, seed=0)
