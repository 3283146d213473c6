import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import vseg
from strategies import seeds, some_responses
from vseg import Grid, Maps, Pairs, Responses, Scatter
from vseg.bayes import lapses, posterior, priors
from vseg.bayes.draw_summaries import interval
from vseg.bayes.evidence import allocate_chains, initial_fields
from vseg.bayes.model import count_answers
from vseg.errors import InvalidInput, VsegWarning


def fit_quietly(*arguments, **settings):
    """Call posterior() with short chains, and without the warning that they do not agree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)
        return posterior(*arguments, **{"budget": 20, **settings})


def check_result(result, segments):
    """Assert that all numbers are finite, on the simplex, and in order."""
    n = len(result.maps.layout)
    assert result.maps.probabilities.shape == result.mode.probabilities.shape == (n, segments)
    assert result.draws.shape[1:] == (n, segments)
    assert np.isfinite(result.draws).all()
    assert (result.draws >= 0).all()
    np.testing.assert_allclose(result.draws.sum(axis=2), 1, atol=1e-9)
    assert (result.lower <= result.upper).all()
    assert result.lower.min() >= 0
    assert result.upper.max() <= 1
    np.testing.assert_allclose(result.argmax_probability.sum(axis=1), 1)
    low, high = result.entropy_interval
    assert 0 <= low <= result.entropy <= high <= np.log(segments) + 1e-9
    assert np.isfinite(result.evidence)
    assert 0 <= result.expected_error <= 1
    json.dumps(result.summary(), allow_nan=False)


@settings(max_examples=25, deadline=None)
@given(responses=some_responses(), segments=st.integers(2, 4), seed=seeds)
def test_any_answers_give_finite_maps(responses, segments, seed):
    """Contradictory, disconnected or few answers give wide intervals, never NaN."""
    one = responses.select(image=responses.images[0])
    check_result(fit_quietly(one, segments=segments, draws=8, seed=seed, threads=1), segments)


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("lapses", [None, "estimate", (0.02, 0.05)])
def test_the_same_answer_to_every_pair(answer, lapses):
    pairs = vseg.designs.covering(Grid(5), segments=3, seed=0)
    responses = Responses(Grid(5), pairs.i, pairs.j, np.full(len(pairs), answer))
    result = fit_quietly(responses, segments=3, lapses=lapses, draws=16, seed=0, threads=1)
    check_result(result, 3)
    assert (result.same_probability(pairs).mean() > 0.5) == answer


def test_one_pair_leaves_wide_intervals():
    result = fit_quietly(Responses(Grid(4), [0], [1], [1]), segments=2, seed=0, threads=1)
    check_result(result, 2)
    assert np.mean(result.upper - result.lower) > 0.3


def test_contradictory_answers():
    pairs = vseg.designs.covering(Grid(4), segments=2, seed=0)
    both = Responses(Grid(4), [*pairs.i, *pairs.i], [*pairs.j, *pairs.j], [1] * len(pairs) + [0] * len(pairs))
    result = fit_quietly(both, segments=2, lapses="estimate", draws=16, seed=0, threads=1)
    check_result(result, 2)
    assert result.same_probability(pairs).mean() == pytest.approx(0.5, abs=0.1)


def test_as_many_segments_as_locations():
    pairs = vseg.designs.covering(Grid(3), segments=2, seed=0)
    responses = Responses(Grid(3), pairs.i, pairs.j, np.arange(len(pairs)) % 2)
    check_result(fit_quietly(responses, segments=9, draws=8, seed=0, threads=1), 9)
    with pytest.raises(InvalidInput, match="from 2 to 9 on a 3x3 grid, got 10"):
        posterior(responses, segments=10, seed=0)


def test_the_truth_is_found(observed):
    """Fixed seed; the margin is twice the measured error (0.052)."""
    truth, responses = observed
    result = fit_quietly(responses, segments=3, seed=0, threads=1)
    check_result(result, 3)
    assert vseg.metrics.mae_per_entry(result.maps, truth) < 0.1
    inside = truth.align_to(result.maps).probabilities
    assert 0.75 < np.mean((result.lower <= inside) & (inside <= result.upper)) <= 1
    assert result.entropy == pytest.approx(truth.mean_entropy, abs=0.12)


def test_threads_and_repetition_change_nothing(observed):
    _, responses = observed
    once, again = (
        fit_quietly(responses, segments=3, draws=16, seed=7, threads=threads) for threads in (1, 3)
    )
    np.testing.assert_array_equal(once.draws, again.draws)
    assert once.evidence == again.evidence
    other = fit_quietly(responses, segments=3, draws=16, seed=8, threads=1)
    assert not np.array_equal(once.draws, other.draws)
    assert once.maps.distance_to(other.maps) < 0.15
    sequence = np.random.SeedSequence(7)
    first, second = (fit_quietly(responses, segments=3, draws=16, seed=sequence, threads=1) for _ in range(2))
    np.testing.assert_array_equal(first.draws, second.draws)


def test_chains_go_on_until_they_agree_or_the_budget_ends(observed):
    _, responses = observed
    result = posterior(responses, segments=3, seed=0, threads=1)
    assert result.converged
    assert result.diagnostics.rhat <= 1.05
    assert min(result.diagnostics.ess, result.diagnostics.tail_ess) >= 100
    assert result.entropies.size == result.diagnostics.draws
    with pytest.warns(VsegWarning, match="The chains do not agree .* do not publish the intervals"):
        short = posterior(responses, segments=3, budget=10, seed=0, threads=1)
    assert short.diagnostics.draws == 40


def test_a_near_certain_observer_gets_a_large_scale():
    """Scales above 11 were not tried before, which inflated the entropy of near-certain maps."""
    truth = Maps.one_hot(Grid(8), np.repeat([0, 1], 32))
    pairs = [vseg.designs.covering(truth.layout, segments=2, seed=seed) for seed in range(5)]
    result = fit_quietly(vseg.simulate(truth, pairs, seed=0), segments=2, budget=100, seed=0, threads=1)
    assert result.scale > 11
    assert result.entropy < 0.02


def test_draws_have_the_labels_of_the_mode(observed):
    _, responses = observed
    result = fit_quietly(responses, segments=3, seed=1, threads=1)
    for p in result.draws[::8]:
        maps = Maps(result.maps.layout, p)
        aligned = maps.align_to(result.mode)
        assert np.abs(aligned.probabilities - maps.probabilities).max() < 1e-9


def test_more_answers_reduce_the_expected_error():
    """The expected error falls with the answers and is close to the true error (up to 20 % too small)."""
    truth = vseg.stimuli.random_maps(Grid(8), segments=2, entropy=0.2, seed=1)
    blocks = [vseg.designs.covering(truth.layout, segments=2, seed=seed) for seed in range(10)]
    few, many = (
        fit_quietly(vseg.simulate(truth, blocks[:count], seed=0), segments=2, seed=0, threads=1)
        for count in (1, 10)
    )
    assert many.expected_error < 0.7 * few.expected_error
    for result in (few, many):
        assert 0.4 < result.expected_error / vseg.metrics.mae_per_entry(result.maps, truth) < 2.5


def test_segments_by_evidence():
    truth = vseg.stimuli.random_maps(Grid(9), segments=3, entropy=0.1, seed=2)
    pairs = [vseg.designs.covering(truth.layout, segments=3, seed=seed) for seed in range(5)]
    steps = []
    result = fit_quietly(
        vseg.simulate(truth, pairs, seed=0),
        segments="auto",
        draws=16,
        seed=0,
        threads=1,
        progress=steps.append,
    )
    assert result.segments == 3
    assert result.table is not None
    assert 3 in result.table.plausible
    assert sum(steps) == 7 + 1
    rows = result.summary()["segments_table"]
    assert [row["segments"] for row in rows][:3] == [2, 3, 4]
    assert min(row["below_best"] for row in rows) == 0
    assert "plausible: 3" in result.message


def test_progress_is_complete_if_the_search_for_segments_ends_early():
    """K = 3 and 4 lie 6 and 9 nats below K = 2, so 5 to 8 are not tried; they count as finished."""
    truth = vseg.stimuli.random_maps(Grid(6), segments=2, entropy=0.6, seed=1)
    pairs = [vseg.designs.covering(truth.layout, segments=2, seed=seed) for seed in range(12)]
    steps = []
    responses = vseg.simulate(truth, pairs, seed=0)
    result = fit_quietly(responses, segments="auto", draws=8, seed=0, threads=1, progress=steps.append)
    assert [fit.segments for fit in result.table.fits] == [2, 3, 4]
    assert steps == [1, 1, 1, 4, 1]


def test_lapses_are_distinguished_from_uncertainty():
    """A certain observer with 10 % lapses: ignored, they look like entropy; estimated, they do not."""
    truth = Maps.one_hot(Grid(8), np.repeat([0, 1], 32))
    pairs = [vseg.designs.covering(truth.layout, segments=2, seed=seed) for seed in range(4)]
    responses = vseg.simulate(truth, pairs, observer=vseg.observers.LapsingObserver(0.1), seed=0)
    plain = fit_quietly(responses, segments=2, draws=16, seed=0, threads=1)
    estimated = fit_quietly(
        responses, segments=2, draws=16, lapses="estimate", catch=(38, 40), seed=0, threads=1
    )
    assert sum(estimated.lapses) == pytest.approx(0.1, abs=0.05)
    assert estimated.entropy < 0.5 * plain.entropy
    assert estimated.evidence > plain.evidence


def test_chains_vary_with_the_uncertainty_of_lapses():
    """Chains run with several shares of lapses around the most probable one, with fewer after many catch trials."""
    truth = Maps.one_hot(Grid(6), np.repeat([0, 1], 18))
    pairs = [vseg.designs.covering(truth.layout, segments=2, seed=seed) for seed in range(4)]
    tally = vseg.simulate(truth, pairs, observer=vseg.observers.LapsingObserver(0.1), seed=0).tally()
    prior = priors.spatial(truth.layout)
    first = initial_fields(tally, 2, np.random.default_rng(0))
    uncertain, certain = (
        lapses.estimate_lapses(count_answers(tally), prior, first, catch=lapses.check_catch_counts(catch))
        for catch in (None, (1900, 2000))
    )
    for answers, fits in (uncertain, certain):
        assert fits[0].lapses == (answers.gamma0, answers.gamma1)
    wide, narrow = (
        np.std([sum(fit.lapses) for fit in allocate_chains(fits, 8)]) for _, fits in (uncertain, certain)
    )
    assert wide > 0.01
    assert narrow < wide


def test_intervals_reach_the_bounds_where_draws_pile_up():
    """A further draw falls into 90 % of the intervals, which reach 0 or 1 where the draws pile up there."""
    rng = np.random.default_rng(0)
    draws = np.stack([rng.beta(0.2, 9, 2000), rng.beta(9, 0.2, 2000), rng.beta(40, 60, 2000)], axis=1)
    low, high = interval(draws[:1000])
    assert low[0] == 0
    assert high[1] == 1
    np.testing.assert_allclose([low[2], high[2]], np.quantile(draws[:1000, 2], [0.05, 0.95]), atol=2e-3)
    inside = np.mean((low <= draws[1000:]) & (draws[1000:] <= high), axis=0)
    np.testing.assert_allclose(inside, 0.9, atol=0.04)


@given(seed=seeds, count=st.integers(8, 40))
def test_intervals_do_not_depend_on_which_segment_is_which(seed, count):
    """p and 1 - p of two segments have mirrored intervals."""
    p = np.random.default_rng(seed).beta(0.5, 2, (count, 5))
    low, high = interval(p)
    again = interval(1 - p)
    np.testing.assert_allclose([1 - again[1], 1 - again[0]], [low, high], atol=1e-12)


def test_other_layouts_and_priors(observed):
    truth, responses = observed
    scatter = Scatter(np.random.default_rng(0).random((40, 2)))
    pairs = vseg.designs.covering(scatter, segments=2, seed=0)
    check_result(
        fit_quietly(
            Responses(scatter, pairs.i, pairs.j, pairs.i < 20), segments=2, draws=16, seed=0, threads=1
        ),
        2,
    )
    few = responses.take(np.arange(60))
    picture = np.repeat((255 * truth.image[:, :, :1]).astype(np.uint8), 8, axis=0).repeat(8, axis=1)[:, :, 0]
    longer = {"segments": 3, "budget": 1000, "seed": 1, "threads": 1}  # their medians are compared
    by_image = fit_quietly(few, prior="image", image=picture, **longer)
    check_result(by_image, 3)
    assert by_image.spatial is not None
    assert by_image.spatial.prior == "spatial"
    by_group = fit_quietly(few, prior="group", group=[truth], **longer)
    assert by_group.maps.distance_to(truth) < 0.8 * by_image.spatial.maps.distance_to(truth)
    own = fit_quietly(few, segments=3, prior=np.eye(81), draws=16, seed=0, threads=1)
    check_result(own, 3)


def test_a_saved_posterior_can_be_read(observed, tmp_path):
    _, responses = observed
    result = fit_quietly(responses, segments=3, draws=16, seed=0, threads=1)
    result.save(tmp_path, {"image": "cat"})
    assert Maps.load(tmp_path / "maps.npz").distance_to(result.maps) < 1e-12
    with np.load(tmp_path / "maps.npz") as stored:
        assert stored["draws"].shape == (16, 9, 9, 3)
        np.testing.assert_array_equal(stored["lower"].reshape(81, 3), result.lower)
        assert (stored["upper"] >= stored["lower"]).all()
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert summary["image"] == "cat"
    classic = vseg.reconstruct(responses, segments=3, smoothness=1.0, seed=0).summary()
    assert set(classic) - {"solver_options"} <= set(summary)
    assert (summary["entropy_low"], summary["entropy_high"]) == result.entropy_interval


def test_align_to_permutes_maps_draws_and_intervals(observed):
    _, responses = observed
    result = fit_quietly(responses, segments=3, draws=16, seed=0, threads=1)
    permuted = result.align_to(result.maps.permute([2, 0, 1]))
    expected = result.maps.probabilities[:, [2, 0, 1]]
    np.testing.assert_allclose(permuted.maps.probabilities, expected, rtol=1e-14)  # Maps normalises again
    np.testing.assert_array_equal(permuted.draws, result.draws[:, :, [2, 0, 1]])
    np.testing.assert_array_equal(permuted.upper, result.upper[:, [2, 0, 1]])
    with pytest.raises(InvalidInput, match="3 segments, the maps 2"):
        result.align_to(Maps(Grid(9), np.full((81, 2), 0.5)))


def test_same_probability_is_the_mean_over_draws(observed):
    _, responses = observed
    result = fit_quietly(responses, segments=3, draws=16, seed=0, threads=1)
    pairs = Pairs(Grid(9), [0, 5], [80, 6])
    expected = np.mean([Maps(Grid(9), p).same_probability(pairs) for p in result.draws], axis=0)
    np.testing.assert_allclose(result.same_probability(pairs), expected, atol=1e-12)
    with pytest.raises(InvalidInput, match="got pairs on a 4x4 grid"):
        result.same_probability(Pairs(Grid(4), [0], [1]))


def test_lapses_are_estimated_if_there_are_catch_trials(observed):
    few = observed[1].take(np.arange(60))
    results = [
        fit_quietly(few, segments=2, draws=8, seed=0, threads=1, **lapses)
        for lapses in ({}, {"lapses": None}, {"catch": (9, 10)}, {"lapses": "estimate", "catch": (9, 10)})
    ]
    assert [sum(result.lapses) > 0 for result in results] == [False, False, True, True]
    assert results[0].entropy == results[1].entropy
    assert results[2].entropy == results[3].entropy


def test_a_chosen_number_of_segments_gives_the_same_as_a_given_one(observed):
    chosen = fit_quietly(observed[1], segments=(2, 3), draws=8, seed=0, threads=1)
    given = fit_quietly(observed[1], segments=chosen.segments, draws=8, seed=0, threads=1)
    np.testing.assert_array_equal(chosen.draws, given.draws)
    assert chosen.entropy_interval == given.entropy_interval


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"segments": 1}, "from 2 to 81 on a 9x9 grid, got 1"),
        ({"segments": "many"}, "got 'many'"),
        ({"segments": []}, "got none"),
        ({"draws": 4}, "number of draws is a whole number from 8 up, got 4"),
        ({"budget": 2.5}, "budget of draws of each chain is a whole number from 8 up, got 2.5"),
        ({"lapses": "some"}, "Lapses are 'auto', None, 'estimate' or two shares"),
        ({"lapses": (0.6, 0.5)}, "add up to less than 1"),
        ({"lapses": "estimate", "catch": (5, 4)}, "got 5 of 4"),
        ({"lapses": "estimate", "catch": 3}, r"given as \(right, asked\)"),
        ({"lapses": None, "catch": (9, 10)}, "help to estimate lapses, and lapses are None"),
        ({"lapses": (0.1, 0.1), "catch": (9, 10)}, "expected lapses='estimate', or no catch trials"),
        ({"threads": 0}, "threads is a whole number from 1 up, got 0"),
        ({"prior": "image"}, "needs the picture"),
        ({"seed": -1}, "A seed is a whole number"),
    ],
)
def test_invalid_input_is_reported(observed, settings, message):
    with pytest.raises(InvalidInput, match=message):
        posterior(observed[1], **{"segments": 3, "seed": 0, **settings})


def test_no_answers_are_reported():
    with pytest.raises(InvalidInput, match="no responses"):
        posterior(Responses(Grid(4), [], [], []), segments=2, seed=0)
