import json

import numpy as np
import pytest

from vseg import Grid
from vseg.adaptive import next_pairs
from vseg.adaptive.chooser import BATCH, BATCH_SHARE, LAPSES
from vseg.errors import InvalidInput
from vseg.planning import METHODS, Guess, forecast
from vseg.planning.methods import Person, estimated
from vseg.planning.minutes import minutes, study_of
from vseg.planning.simulation import default_trials
from vseg.stimuli import random_maps
from vseg.study.cost import cost
from vseg.study.schema import parsed

GUESS = Guess(grid=6, segments=2, entropy=0.1, against=0.45)


@pytest.fixture(scope="module")
def found():
    return forecast(GUESS, trials=[36, 144], participants=[3, 30], repeats=10, seed=0)


def test_more_trials_and_people_tell_more(found):
    """A direction each, of effects far larger than what ten people leave open."""
    for method in ("paper", "posterior"):
        few, many = (found.table.where(method=method, trials=trials).rows for trials in (36, 144))
        assert many[0]["error"] < few[0]["error"]
        assert few[0]["power"] <= few[1]["power"]
        assert few[1]["power"] > 0.95
        assert few[0]["error_low"] < few[0]["error"] < few[0]["error_high"]
        assert few[1]["mean_error"] < few[0]["mean_error"]
        assert few[1]["hours"] == pytest.approx(2 * 30 * few[1]["minutes_each"] / 60)


def test_methods_are_asked_of_the_same_people(found):
    one, other = (
        found.people.column("true_entropy", method=name, trials=36) for name in ("paper", "posterior")
    )
    assert (one == other).all()
    own = found.people.where(method="paper", trials=36)
    first, second = (own.column("true_entropy", condition=name) for name in GUESS.conditions)
    assert np.argsort(first).tolist() == np.argsort(second).tolist()


def test_the_posterior_comes_with_its_spread(found):
    assert (found.people.column("entropy_spread", method="posterior") > 0).all()
    assert np.isnan(found.people.column("entropy_spread", method="paper").astype(float)).all()


def test_where_the_work_is_done_changes_nothing(found):
    again = forecast(GUESS, trials=[36, 144], participants=[3, 30], repeats=10, seed=0, executor="threads:2")
    assert again.table == found.table
    assert again.people == found.people


def test_advice_names_the_smallest_study(found):
    row = found.smallest("posterior")
    assert (
        f"the posterior needs {row['trials']} trials from each of {row['participants']} people"
        in found.advice
    )
    assert found.advice.startswith("To tell 0.1 from 0.45 nats with power 0.8, the paper's method needs ")
    assert f"{found.participants_if_exact} people would be needed even if" in found.advice


def test_what_is_not_reached_is_said():
    close = Guess(grid=4, segments=2, entropy=0.3, against=0.31, spread=0.15)
    found = forecast(close, trials=[16], participants=[2, 4], methods=["paper"], repeats=10, seed=0)
    assert found.smallest("paper") is None
    assert "the paper's method would need more than was looked at (power 0." in found.advice


def test_one_condition_has_errors_and_no_power():
    found = forecast(
        Guess(grid=5, segments=2, entropy=0.1), trials=[25, 75], participants=[5], repeats=10, seed=0
    )
    assert {row["power"] for row in found.table.rows} == {None}
    assert found.advice.startswith("The paper's method errs by 0.")
    assert found.summary()["participants_if_exact"] is None


def test_save_writes_what_it_says(found, tmp_path):
    found.save(tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["guess"]["spreads"] == pytest.approx({"first": 0.1 / 3, "second": (np.log(2) - 0.45) / 3})
    assert summary["table"] == found.table.rows
    assert len((tmp_path / "people.csv").read_text().splitlines()) == 1 + 10 * 2 * 2 * 2


def test_trials_unless_told():
    """Half, one and two and a half times KN²; on a tiny grid not more than its pairs, nor fewer than λ needs."""
    assert default_trials(Guess(grid=11, segments=2, entropy=0.2)) == (121, 242, 605)
    assert default_trials(Guess(grid=3, segments=2, entropy=0.2)) == (10, 18, 36)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("trials", [18, 45, 700])
def test_methods_use_every_trial(method, trials):
    """Also more trials than the 630 pairs of this grid; with so many, every method knows the maps to 0.08."""
    truth = random_maps(Grid(6), segments=2, entropy=0.1, seed=1)
    asked = []

    class Counting(Person):
        def answer(self, pairs, seed):
            asked.append(sum(map(len, pairs)))
            return super().answer(pairs, seed)

    found = estimated(method, Counting(truth, 0.02, "covering", "auto"), trials, seed=0)
    assert sum(asked) == trials
    assert trials < 700 or found.maps.distance_to(truth) / 2 < 0.08


def test_adaptive_pairs_are_chosen_as_the_server_would(monkeypatch):
    """With its lapses, and in batches that grow with the answers: 16, then 8 % of them."""
    asked, states = [], []

    def watched(state, count, *, seed):
        asked.append((state.trials, count))
        states.append(state.lapses)
        return next_pairs(state, count, seed=seed)

    monkeypatch.setattr("vseg.planning.methods.next_pairs", watched)
    truth = random_maps(Grid(6), segments=2, entropy=0.1, seed=1)
    estimated("adaptive", Person(truth, 0.02, "covering", "auto"), 300, seed=0)
    assert set(states) == {LAPSES}
    assert asked[0] == (0, BATCH)
    assert all(count == min(max(BATCH, int(BATCH_SHARE * known)), 300 - known) for known, count in asked)
    assert max(count for _, count in asked) > BATCH


def test_minutes_are_those_of_the_study_check():
    """KN² pairs in five blocks are what a study asks unless told."""
    study = study_of(Guess(grid=11, segments=2, entropy=0.2))
    assert minutes(study, 5 * 242) == pytest.approx(cost(study).minutes_each)
    slow = parsed(study_file("timing = {image_ms = 2000}"))
    assert minutes(slow, 242) - minutes(parsed(study_file("")), 242) == pytest.approx(
        1.7 * (242 + 10 + 10) / 60, abs=0.3
    )


def study_file(more):
    return (
        'name = "a"\nsegments = 2\nparticipants = 4\nlayout = {grid = 11}\nimages = [{name = "x", texture = "low"}]\n'
        + more
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
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
        ({"repeats": 3}, "10 people a condition or more, got 3"),
    ],
)
def test_bad_input_is_refused(wrong, said):
    with pytest.raises(InvalidInput, match=said):
        forecast(GUESS, **{"seed": 0, **wrong})
