"""Large layouts: fields interpolated from a coarse grid."""

import numpy as np
import pytest
from scipy.interpolate import RectBivariateSpline

import vseg
from vseg import Grid, Maps, Responses, Scatter
from vseg.bayes import coarse_grid
from vseg.bayes.coarse_grid import (
    COARSE,
    choose_layout,
    coarsen,
    interpolate,
    interpolate_back,
    make_interpolation,
    softmax_columns,
    spline_coefficients,
)
from vseg.bayes.draw_summaries import mean_entropies
from vseg.bayes.joint_model import joint_cost
from vseg.bayes.joint_sampling import prepare_starts
from vseg.bayes.lapses import CatchCounts
from vseg.bayes.model import count_answers, helmert_contrasts, softmax_fields
from vseg.bayes.posterior import search_segments
from vseg.bayes.priors import make_prior, spatial
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput


def simulate(layout, trials, *, seed, entropy=0.3):
    """Return true maps of three segments on a layout, and answers to random pairs."""
    truth = vseg.stimuli.random_maps(Grid(32), segments=3, entropy=entropy, seed=seed).resample(layout)
    return truth, vseg.simulate(truth, random_pairs(layout, trials, seed), seed=seed)


def random_pairs(layout, count, seed):
    ends = np.random.default_rng(seed).integers(0, len(layout), (2 * count, 2))
    i, j = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0).T
    kept = np.random.default_rng(seed).permutation(len(i))[:count]
    return Pairs(layout, i[kept], j[kept])


def test_only_large_layouts_are_fitted_on_the_coarse_grid():
    assert choose_layout(Grid(24)) == Grid(24)
    assert choose_layout(Grid(25)) == COARSE
    assert make_prior("spatial", Grid(30), coarse=True).layout == COARSE
    assert make_prior("spatial", Grid(30)).layout == Grid(30)  # as adaptive studies make it


@pytest.mark.parametrize("layout", [Grid(20), Grid(64), Scatter(np.random.default_rng(0).random((50, 2)))])
def test_the_interpolation_reproduces_cubic_functions_up_to_the_edge(layout):
    def function(positions):
        x, y = positions.T
        return np.stack([1 + x - 2 * y**2 + x**3 * y**2, (x - 0.3) ** 2 * (y + y**3)])

    fields = interpolate(spline_coefficients(function(COARSE.positions)), make_interpolation(layout))
    # A scatter is rounded to 128 rows and columns.
    at = layout.positions if isinstance(layout, Grid) else (np.floor(layout.positions * 128) + 0.5) / 128
    np.testing.assert_allclose(fields, function(at), atol=1e-12)


def test_the_interpolation_is_that_of_scipy_between_the_centres():
    values = np.random.default_rng(1).standard_normal((1, len(COARSE)))
    axis = (np.arange(COARSE.size) + 0.5) / COARSE.size
    fine = Grid(64)
    expected = RectBivariateSpline(axis, axis, values.reshape(COARSE.size, -1)).ev(*fine.positions.T[::-1])
    inside = ((fine.positions > axis[0]) & (fine.positions < axis[-1])).all(axis=1)
    found = interpolate(spline_coefficients(values), make_interpolation(fine))[0]
    np.testing.assert_allclose(found[inside], expected[inside], atol=1e-12)


def test_the_way_back_is_the_transpose():
    rng, to = np.random.default_rng(2), make_interpolation(Grid(40)).take(np.arange(0, 1600, 7))
    coefficients, slopes = rng.standard_normal((2, len(COARSE))), rng.standard_normal((2, len(to.row)))
    forth, back = (
        np.sum(interpolate(coefficients, to) * slopes),
        np.sum(coefficients * interpolate_back(slopes, to)),
    )
    assert forth == pytest.approx(back, rel=1e-12)


@pytest.mark.parametrize("size", [0.1, 5.0, 300.0, 5000.0])
def test_the_fast_softmax_is_the_softmax(size):
    fields = size * np.random.default_rng(3).standard_normal((3, 1001))
    contrasts = helmert_contrasts(4)
    found = softmax_columns(fields, contrasts)
    np.testing.assert_allclose(found, softmax_fields(fields, contrasts), rtol=1e-12, atol=1e-300)


def test_fast_exponentials_on_both_sides_of_zero():
    x = np.concatenate([np.linspace(-600, 600, 1001), [-1e-9, 0.0, 1e-9]])
    found = x.copy()
    coarse_grid.exponentials(found)
    np.testing.assert_allclose(found, np.exp(x), rtol=1e-14)


def test_coarse_answers_keep_every_trial():
    tally = Responses(Grid(40), [0, 0, 0, 41, 1599, 5], [1, 79, 1599, 1598, 1, 1], [1, 1, 0, 0, 1, 0]).tally()
    apart, counts = coarsen(tally)
    assert counts.trials.sum() == 6
    assert counts.same.sum() == 3
    together = counts.i == counts.j
    assert counts.trials[together].tolist() == [1]  # locations 0 and 1
    np.testing.assert_array_equal(apart.n, counts.trials[~together])
    assert (0, 399) in list(apart.pairs)
    assert apart.n[list(apart.pairs).index((0, 399))] == 3


def test_the_gradient_is_that_of_the_cost():
    _, answers = simulate(Grid(30), 300, seed=0)
    tally, prior = answers.tally(), spatial(COARSE)
    _, _, best = search_segments(tally, prior, [3], seeds=np.random.SeedSequence(0))
    start = prepare_starts(
        count_answers(tally), best, prior, estimate_lapses=True, catch=CatchCounts(9, 10), layout=tally.layout
    )[0]
    x = start.centre + 0.3 * np.random.default_rng(0).standard_normal(len(start.centre))
    _, gradient = joint_cost(x, start.model)
    for k in [0, 11, *range(len(x) - 6, len(x))]:
        step = np.zeros(len(x))
        step[k] = 1e-5
        slope = (joint_cost(x + step, start.model)[0] - joint_cost(x - step, start.model)[0]) / 2e-5
        assert gradient[k] == pytest.approx(slope, rel=1e-4, abs=1e-4)


def test_results_agree_with_those_on_all_locations(monkeypatch):
    truth, answers = simulate(Grid(24), 1500, seed=4)
    pairs = random_pairs(truth.layout, 3000, seed=9)
    exact = vseg.posterior(answers, segments=3, seed=0)
    monkeypatch.setattr(coarse_grid, "MANY_LOCATIONS", 100)
    coarse = vseg.posterior(answers, segments=3, seed=0)
    assert coarse.converged
    assert coarse.maps.layout == exact.maps.layout == truth.layout
    true = truth.same_probability(pairs)
    errors = [np.abs(each.same_probability(pairs) - true).mean() for each in (exact, coarse)]
    assert errors[1] < 1.05 * errors[0]
    difference = np.abs(exact.same_probability(pairs) - coarse.same_probability(pairs)).mean()
    assert difference < 0.3 * errors[0]
    width = np.diff(exact.entropy_interval)[0]
    assert abs(exact.entropy - coarse.entropy) < 0.25 * width
    assert np.diff(coarse.entropy_interval)[0] == pytest.approx(width, rel=0.25)
    assert coarse.mode.distance_to(exact.mode) < 0.1
    assert coarse.length == pytest.approx(exact.length, rel=0.2)  # in cells of the layout of the answers


@pytest.mark.filterwarnings("ignore:The chains do not agree")
def test_a_large_grid_has_maps_and_draws_at_all_its_locations():
    truth, answers = simulate(Grid(64), 1000, seed=1, entropy=0.4)
    result = vseg.posterior(answers, segments=3, draws=40, budget=100, seed=0, threads=1)
    assert result.draws.shape == (40, 4096, 3)
    assert result.maps.layout == result.mode.layout == Grid(64)
    assert result.lower.shape == result.upper.shape == (4096, 3)
    assert np.isin(mean_entropies(result.draws).round(9), result.entropies.round(9)).all()
    assert vseg.metrics.label_accuracy(result.maps, truth) > 0.75
    assert result.trials == 1000
    assert result.locations_tested > 1500


@pytest.mark.filterwarnings("ignore:The chains do not agree")
def test_many_free_points_are_fitted():
    layout = Scatter(np.random.default_rng(0).random((900, 2)))
    truth, answers = simulate(layout, 1200, seed=2)
    result = vseg.posterior(answers, segments=3, budget=100, seed=0)
    assert result.draws.shape == (200, 900, 3)
    assert vseg.metrics.label_accuracy(result.maps, truth) > 0.8


@pytest.mark.filterwarnings("ignore:The chains do not agree")
def test_answers_about_one_cell_are_enough():
    answers = Responses(Grid(64), [0, 130], [1, 131], [1, 0])
    result = vseg.posterior(answers, segments=2, budget=20, draws=8, seed=0)
    assert result.draws.shape == (8, 4096, 2)


@pytest.mark.filterwarnings("ignore:.*chains do not agree")
def test_groups_are_fitted_on_large_layouts():
    truth, _ = simulate(Grid(30), 10, seed=5)
    pairs = random_pairs(truth.layout, 400, seed=5)
    answers = [vseg.simulate(truth, pairs, seed=seed, participant=f"P{seed}") for seed in (0, 1)]
    results = vseg.posteriors(
        vseg.data.responses.concatenate(answers), segments=3, budget=20, draws=8, seed=0
    )
    assert [result.prior for result in results.values()] == ["group", "group"]
    assert all(result.maps.layout == truth.layout for result in results.values())
    named = vseg.posterior(answers[0], segments=3, prior="group", group=truth, budget=20, draws=8, seed=0)
    assert named.prior == "group"
    assert named.draws.shape == (8, 900, 3)
    with pytest.raises(InvalidInput, match="must lie on a 30x30 grid"):
        vseg.posterior(
            answers[0], segments=3, prior="group", group=Maps.one_hot(Grid(20), np.arange(400) % 3), seed=0
        )


@pytest.mark.parametrize(
    ("size", "options", "most"),
    [(101, {}, 10_000), (68, {"prior": "image", "image": np.zeros((68, 68), np.uint8)}, 4500)],
)
def test_too_many_locations_are_refused(size, options, most):
    answers = Responses(Grid(size), [0, 5], [1, 600], [1, 0])
    with pytest.raises(InvalidInput, match=f"takes up to {most} locations, got {size**2}"):
        vseg.posterior(answers, segments=2, seed=0, **options)
