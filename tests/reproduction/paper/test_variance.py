"""The differential variance: the paper's fit, scores of a curve, and the null control."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import check_grad

from reproduction.paper import parametric, participants, variance
from vseg.models.differential_variance import PARAMETRISATIONS
from vseg.reconstruction.objective import build_objective
from vseg.stimuli.random_maps import softmax
from vseg.sweeps import Table, sweep


@pytest.fixture(scope="module")
def table():
    return sweep(variance.trial, variance.SETTINGS, repeats=4, seed=0)


def simulate_tally(seed):
    rng = np.random.default_rng(seed)
    return participants.simulate_answers(
        participants.simulate_belief(participants.make_texture_image("low"), rng), rng
    )


@pytest.mark.parametrize("parameter", PARAMETRISATIONS)
def test_each_way_lowers_the_loss_from_any_start(parameter):
    shown, tally = participants.make_texture_image("low"), simulate_tally(0)
    problem = build_objective(tally, 2, weights="pairs")
    for start in (np.ones(36), shown.energies.mean(axis=0) + 0.02):
        begin = softmax(-shown.energies @ np.stack([1 / start, 1 / start], axis=1))
        found = parametric.fit_variances(shown.energies, tally, start, parameter=parameter, seed=1)
        assert problem.value(found.maps.probabilities.copy()) < 0.5 * problem.value(begin)


def test_only_the_difference_of_weights_is_identified():
    """Two σ² with one ω₁ - ω₂ have the same maps and different σ₁² - σ₂²."""
    energies, rng = participants.make_texture_image("low").energies, np.random.default_rng(0)
    first = rng.uniform(0.5, 2, (2, 36))
    weights = -1 / first - 0.3  # the same shift in both segments
    second = -1 / weights
    maps = [softmax(-energies @ (1 / each).T) for each in (first, second)]
    assert maps[0] == pytest.approx(maps[1], abs=1e-9)
    one, two = (parametric.VarianceFit(each, None) for each in (first, second))
    assert one.identified == pytest.approx(two.identified)
    assert np.abs(one.difference - two.difference).max() > 0.05


def test_logistic_finds_separable_classes_whatever_the_seed():
    """Also a check of slopes: L-BFGS does not get there with wrong ones."""
    shown = participants.make_texture_image("low")
    for seed in range(3):
        found = parametric.fit_logistic(
            shown.truth.probabilities[:, :1], simulate_tally(seed), 2, strength=0.0, seed=seed
        )
        assert found.maps.align_to(shown.truth).labels == pytest.approx(shown.truth.labels)


def test_slopes_are_finite_differences(monkeypatch):
    """Of both ways to move σ."""
    import scipy.optimize

    off = []

    def checked(cost, start, **_):
        moved = start + 0.01 * np.random.default_rng(0).standard_normal(len(start))
        size = np.linalg.norm(cost(moved)[1])
        off.append(check_grad(lambda x: cost(x)[0], lambda x: cost(x)[1], moved) / size)
        return scipy.optimize.OptimizeResult(x=start)

    monkeypatch.setattr(scipy.optimize, "minimize", checked)
    for parameter in PARAMETRISATIONS:
        parametric.fit_variances(
            participants.make_texture_image("low").energies,
            simulate_tally(0),
            np.ones(36),
            parameter=parameter,
            seed=0,
        )
    assert len(off) == 2
    assert max(off) < 1e-4


curves = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).standard_normal((2, 36)))


@given(curves, st.floats(0.01, 100))
def test_scores_of_a_curve_do_not_depend_on_its_scale_or_sign(found, scale):
    for read in (variance.share_near_vertical, variance.bump_width, variance.lobe_distance):
        assert read(-scale * found) == pytest.approx(read(found), rel=1e-6)


def test_two_lobes_are_found_where_they_are():
    curve = np.zeros((1, 36))
    curve[0, [16, 20]] = 1, -1  # at 80 and 100 degrees
    assert variance.lobe_distance(curve) == pytest.approx([10])
    assert variance.bump_width(curve) == pytest.approx([10])
    assert variance.share_near_vertical(curve) == pytest.approx([1])


def test_intervals_distinguish_given_from_shuffled_answers(table):
    """0.24 of the orientations against 0.03, over 40 people a cell."""
    given_answers, null = (table.column("nonzero", answers=answers).mean() for answers in variance.ANSWERS)
    assert given_answers > 0.15
    assert null < 0.1


def test_the_start_brings_the_bump(table):
    """Within 20° of 90°, of shuffled answers: 0.45 of the curve from σ² = 1, 0.83 from the energies; flat 0.25."""
    near = {
        fit: variance.share_near_vertical(variance.group_curves(table, fit, "low", "shuffled")).mean()
        for fit in ("ones", "energies")
    }
    assert near["energies"] > near["ones"] + 0.15
    assert near["energies"] > 2 * variance.FLAT_SHARE


def test_nothing_is_shown_by_shuffled_answers(table):
    """The null control itself: with the shuffled rows in place of the given ones, nothing is left."""
    null = [row for row in table.rows if row["answers"] == "shuffled"]
    both = Table([*({**row, "answers": "given"} for row in null), *null])
    for claim in variance.claims(both):
        assert claim.verdict == "not testable without the data"
        assert claim.why.startswith("Simulated participants do not show it")


def test_a_way_of_fitting_fails_for_the_reason_that_is_given():
    """Apart from shuffled answers, but the other way round, is not 'not distinguishable from shuffled answers'."""
    some = np.linspace(-0.1, 0.1, 50)
    scores = {
        (fit, answers): some + (answers == "given") for fit in variance.WAYS for answers in variance.ANSWERS
    }
    claim = {"claim": "It is.", "scores": scores, "unit": "degrees", "ours": "1"}
    assert variance._judge_against_shuffled(**claim, least=0).why == "Simulated participants show it."
    low = variance._judge_against_shuffled(**claim, least=2)
    assert low.why.startswith("Simulated participants do not show it")
    assert "not above 2" in low.why
    assert "shuffled" not in low.why
    scores["ones", "given"] = some
    mixed = variance._judge_against_shuffled(**claim, least=-1)
    assert mixed.why.startswith("Simulated participants show it only if")
    assert "σ from 1: not distinguishable from shuffled answers" in mixed.why


def test_the_figure_has_a_panel_for_every_way_to_fit(table):
    drawn = variance.draw(table, variance.example(seed=0))
    charts = [axes for axes in drawn.axes if axes.lines]
    assert len(charts) == 2 * len(variance.FITS) + 3
    for axes in drawn.axes:
        left, below, wide, high = axes.get_position().bounds
        assert min(left, below) >= 0
        assert max(left + wide, below + high) <= 1
