import json

import numpy as np
import pytest

from vseg import Grid
from vseg.adaptive import next_pairs
from vseg.adaptive.chooser import BATCH, BATCH_SHARE, LAPSES
from vseg.errors import InvalidInput
from vseg.planning import METHODS, Assumptions, forecast
from vseg.planning.forecasting import default_trials, make_study, minutes_per_participant
from vseg.planning.methods import SimulatedParticipant, estimate_with_method
from vseg.stimuli import random_maps
from vseg.study.cost import estimate_cost
from vseg.study.schema import parse_study

pytestmark = pytest.mark.slow

ASSUMPTIONS = Assumptions(grid=6, segments=2, entropy=0.1, against=0.45)


@pytest.fixture(scope="module")
def result():
    return forecast(ASSUMPTIONS, trials=[36, 144], participants=[3, 30], repeats=10, seed=0)


def test_more_trials_and_participants_tell_more(result):
    """Only directions, of effects far larger than the uncertainty of ten participants."""
    for method in ("paper", "posterior"):
        few, many = (result.table.where(method=method, trials=trials).rows for trials in (36, 144))
        assert many[0]["error"] < few[0]["error"]
        assert few[0]["power"] <= few[1]["power"]
        assert few[1]["power"] > 0.95
        assert few[0]["error_low"] < few[0]["error"] < few[0]["error_high"]
        assert few[1]["mean_error"] < few[0]["mean_error"]
        assert few[1]["hours"] == pytest.approx(2 * 30 * few[1]["minutes_each"] / 60)


def test_methods_are_compared_on_the_same_participants(result):
    one, other = (
        result.simulated.column("true_entropy", method=name, trials=36) for name in ("paper", "posterior")
    )
    assert (one == other).all()
    own = result.simulated.where(method="paper", trials=36)
    first, second = (own.column("true_entropy", condition=name) for name in ASSUMPTIONS.conditions)
    assert np.argsort(first).tolist() == np.argsort(second).tolist()


def test_only_the_posterior_has_a_spread(result):
    assert (result.simulated.column("entropy_spread", method="posterior") > 0).all()
    assert np.isnan(result.simulated.column("entropy_spread", method="paper").astype(float)).all()


def test_groups_are_compared_without_the_prior(result):
    shown, compared = (
        {
            name: result.simulated.column(name, method=method) for name in ("entropy", "compared_entropy")
        }.values()
        for method in ("paper", "posterior")
    )
    assert np.array_equal(*shown)
    assert not np.isclose(*compared).any()


def test_the_executor_does_not_change_the_numbers(result):
    again = forecast(
        ASSUMPTIONS, trials=[36, 144], participants=[3, 30], repeats=10, seed=0, executor="threads:2"
    )
    assert again.table == result.table
    assert again.simulated == result.simulated


def test_advice_describes_the_smallest_study(result):
    size = result.smallest_study("posterior")
    assert (
        f"the posterior needs {size['trials']} trials from each of {size['participants']} participants"
        in result.advice
    )
    assert result.advice.startswith("To tell 0.1 from 0.45 nats with power 0.8, the paper's method needs ")
    assert (
        f"because participants differ, {result.participants_if_exact} would be needed even if"
        in result.advice
    )


def test_advice_says_when_the_power_is_not_reached():
    close = Assumptions(grid=4, segments=2, entropy=0.3, against=0.31, spread=0.15)
    result = forecast(close, trials=[16], participants=[2, 4], methods=["paper"], repeats=10, seed=0)
    assert result.smallest_study("paper") is None
    assert "the paper's method would need more than was looked at (power 0." in result.advice


def test_one_condition_has_errors_and_no_power():
    result = forecast(
        Assumptions(grid=5, segments=2, entropy=0.1), trials=[25, 75], participants=[5], repeats=10, seed=0
    )
    assert {row["power"] for row in result.table.rows} == {None}
    assert result.advice.startswith("The paper's method errs by 0.")
    assert result.summary()["participants_if_exact"] is None


def test_save_writes_table_summary_and_simulated_participants(result, tmp_path):
    result.save(tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["guess"]["spreads"] == pytest.approx({"first": 0.1 / 3, "second": (np.log(2) - 0.45) / 3})
    assert summary["table"] == result.table.rows
    assert len((tmp_path / "people.csv").read_text().splitlines()) == 1 + 10 * 2 * 2 * 2


def test_default_trials():
    """Half, one and two and a half times the advised answers; on a large grid not fewer than cover every location."""
    assert default_trials(Assumptions(grid=11, segments=2, entropy=0.2)) == (100, 200, 500)
    assert default_trials(Assumptions(grid=32, segments=2, entropy=0.2)) == (512, 1024, 2560)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("trials", [18, 45, 700])
def test_methods_use_every_trial(method, trials):
    """Also more trials than the 630 pairs of this grid; with so many, every method finds the maps to 0.08."""
    truth = random_maps(Grid(6), segments=2, entropy=0.1, seed=1)
    counts = []

    class Counting(SimulatedParticipant):
        def answer(self, pairs, seed):
            counts.append(sum(map(len, pairs)))
            return super().answer(pairs, seed)

    estimated = estimate_with_method(method, Counting(truth, 0.02, "covering", "auto"), trials, seed=0)
    assert sum(counts) == trials
    assert trials < 700 or estimated.maps.distance_to(truth) / 2 < 0.08


def test_adaptive_pairs_are_chosen_as_on_the_server(monkeypatch):
    """With its lapses, and in batches that grow with the answers: 16, then 8 % of them."""
    requests, lapses = [], []

    def watched_next_pairs(state, count, *, seed):
        requests.append((state.trials, count))
        lapses.append(state.lapses)
        return next_pairs(state, count, seed=seed)

    monkeypatch.setattr("vseg.planning.methods.next_pairs", watched_next_pairs)
    truth = random_maps(Grid(6), segments=2, entropy=0.1, seed=1)
    estimate_with_method("adaptive", SimulatedParticipant(truth, 0.02, "covering", "auto"), 300, seed=0)
    assert set(lapses) == {LAPSES}
    assert requests[0] == (0, BATCH)
    assert all(
        count == min(max(BATCH, int(BATCH_SHARE * trials)), 300 - trials) for trials, count in requests
    )
    assert max(count for _, count in requests) > BATCH


def test_minutes_agree_with_the_cost_of_a_study():
    """By default a study asks KN² pairs in five blocks."""
    study = make_study(Assumptions(grid=11, segments=2, entropy=0.2))
    assert minutes_per_participant(study, 5 * 242) == pytest.approx(estimate_cost(study).minutes_each)
    slow = parse_study(study_file("timing = {image_ms = 2000}"))
    assert minutes_per_participant(slow, 242) - minutes_per_participant(
        parse_study(study_file("")), 242
    ) == pytest.approx(1.7 * (242 + 10 + 10) / 60, abs=0.3)


def study_file(more):
    return (
        'name = "a"\nsegments = 2\nparticipants = 4\nlayout = {grid = 11}\nimages = [{name = "x", texture = "low"}]\n'
        + more
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trials": [5]}, r"answers 18 trials \(every location once\) to 7200, got 5"),
        ({"trials": []}, "one number of trials"),
        ({"trials": 32}, r"whole numbers as trials, such as \[121, 242\], got 32"),
        ({"trials": [36, "72"]}, "whole numbers as trials"),
        ({"participants": 5}, r"whole numbers as participants, such as \[5, 10, 15, 30\], got 5"),
        ({"participants": [5.5]}, "whole numbers as participants"),
        ({"participants": [1]}, "2 to 1000 participants"),
        ({"participants": []}, "one number of participants"),
        ({"methods": ["oracle"]}, "Unknown method 'oracle'; choose some of paper, posterior, adaptive"),
        ({"methods": []}, "one method or more"),
        ({"methods": "paper"}, "a list of methods"),
        ({"methods": 3}, "a list of methods"),
        ({"methods": [["paper"]]}, "Unknown method"),
        ({"repeats": 3}, "10 participants a condition or more, got 3"),
    ],
)
def test_bad_input_is_refused(wrong, message):
    with pytest.raises(InvalidInput, match=message):
        forecast(ASSUMPTIONS, **{"seed": 0, **wrong})
