"""Simulated observers answer with the probabilities of Eq. 2, with lapses and reaction times."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from vseg.data.layout import Grid
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput
from vseg.evaluation.contours import score_contours_on_maps
from vseg.observers import LapsingObserver, ReactionTimes, draw_contours, ideal_observer, simulate
from vseg.stimuli import random_maps

GRID = Grid(6)
TRUTH = random_maps(GRID, segments=3, seed=0)
CERTAIN = random_maps(GRID, segments=3, entropy=0, seed=0)
ALL = Pairs(GRID, *np.triu_indices(36, 1))
shares = st.floats(0, 1)


def test_frequencies_match_the_probabilities():
    """630 pairs of 400 answers: z-scores have mean 0 and s.d. 1 (margins 0.15 and 0.1), none beyond 5."""
    tally = simulate(TRUTH, ALL, blocks=400, seed=1).tally()
    q = TRUTH.same_probability(tally.pairs)
    certain = np.minimum(q, 1 - q) < 0.01
    z = (tally.share - q)[~certain] / np.sqrt(q * (1 - q) / 400)[~certain]
    assert abs(z.mean()) < 0.15
    assert z.std() == pytest.approx(1, abs=0.1)
    assert np.abs(z).max() < 5


def test_certain_maps_are_answered_without_error():
    responses = simulate(CERTAIN, ALL, seed=0)
    np.testing.assert_array_equal(responses.same, CERTAIN.labels[responses.i] == CERTAIN.labels[responses.j])


@given(lapse=shares, bias=shares)
def test_lapses_in_both_notations(lapse, bias):
    """(1 - lapse) q + lapse · bias = γ0 + (1 - γ0 - γ1) q."""
    observer = LapsingObserver(lapse, bias)
    q = ideal_observer(TRUTH, ALL)
    np.testing.assert_allclose(observer(TRUTH, ALL), (1 - lapse) * q + lapse * bias)
    g0, g1 = observer.gamma0, observer.gamma1
    np.testing.assert_allclose(observer(TRUTH, ALL), g0 + (1 - g0 - g1) * q, atol=1e-12)
    again = LapsingObserver.from_errors(g0, g1)
    np.testing.assert_allclose(again(TRUTH, ALL), observer(TRUTH, ALL), atol=1e-12)


def test_a_lapsing_observer_makes_the_expected_share_of_errors():
    """63000 trials: standard error below 0.002, margin 0.008."""
    responses = simulate(CERTAIN, ALL, blocks=100, observer=LapsingObserver(0.1, bias=0.8), seed=0)
    same = CERTAIN.labels[responses.i] == CERTAIN.labels[responses.j]
    assert np.mean(responses.same[~same]) == pytest.approx(0.08, abs=0.008)
    assert np.mean(~responses.same[same]) == pytest.approx(0.02, abs=0.008)


def test_several_annotators_are_drawn_trial_by_trial():
    """Two annotators who disagree: 'same' in half of the trials (400 answers, standard error 0.025, margin 0.12)."""
    halves = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    whole = Maps.one_hot(Grid(3), [0] * 9)
    tally = simulate([halves, whole], Pairs(Grid(3), [0, 0], [1, 8]), blocks=400, seed=0).tally()
    assert tally.share[0] == 1
    assert tally.share[1] == pytest.approx(0.5, abs=0.12)
    assert simulate(halves, Pairs(Grid(3), [0], [8]), blocks=50, seed=0).same.sum() == 0


def test_an_observer_is_any_function():
    responses = simulate(TRUTH, ALL, observer=lambda maps, pairs: np.ones(len(pairs)), seed=0)
    assert responses.same.all()


@settings(max_examples=20, deadline=None)
@given(blocks=st.integers(1, 5), seed=st.integers(0, 2**32))
def test_each_block_tests_every_pair_once_in_its_own_order(blocks, seed):
    responses = simulate(TRUTH, ALL, blocks=blocks, seed=seed)
    assert (responses.tally().n == blocks).all()
    assert responses.trial.tolist() == list(range(630 * blocks))
    orders = [tuple(responses.i[responses.block == b]) for b in range(blocks)]
    assert len(set(orders)) == blocks
    assert [len(order) for order in orders] == [630] * blocks


def test_pairs_may_differ_by_block():
    parts = [ALL.take(np.arange(100)), ALL.take(np.arange(100, 150))]
    responses = simulate(TRUTH, parts, seed=0, participant="p", image="texture")
    assert np.bincount(responses.block).tolist() == [100, 50]
    assert (responses.tally().n == 1).all()
    assert responses.participants == ["p"]
    assert responses.images == ["texture"]
    assert len(simulate(TRUTH, parts, blocks=2, seed=0)) == 150


def test_the_seed_determines_the_answers_whatever_the_reaction_times():
    first, again, other = (simulate(TRUTH, ALL, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.same, again.same)
    np.testing.assert_array_equal(first.rt_ms, again.rt_ms)
    assert (first.i != other.i).any()
    slow = simulate(TRUTH, ALL, seed=1, reaction_times=ReactionTimes(mean_ms=2000))
    np.testing.assert_array_equal(first.same, slow.same)
    assert np.median(slow.rt_ms) > 2000


def test_uncertain_pairs_take_longer():
    """The paper's median is 730 ms after the presentation; ours for moderately uncertain maps is within 80 ms."""
    responses = simulate(TRUTH, ALL, blocks=20, seed=0)
    q = np.einsum("tk,tk->t", TRUTH.probabilities[responses.i], TRUTH.probabilities[responses.j])
    uncertain = np.abs(q - 0.5) < 0.15
    certain = np.abs(q - 0.5) > 0.45
    gap = np.median(responses.rt_ms[uncertain]) - np.median(responses.rt_ms[certain])
    assert gap == pytest.approx(200, abs=50)
    assert np.median(responses.rt_ms) == pytest.approx(730, abs=80)
    assert responses.rt_ms.min() >= 150


def test_reaction_times_are_ex_gaussian():
    """Mean μ + τ, variance σ² + τ², third central moment 2τ³; 200 000 draws, margins 1, 2 and 8 %."""
    rt = ReactionTimes(fastest_ms=0).draw(np.ones(200_000), np.random.default_rng(0))
    assert rt.mean() == pytest.approx(500 + 180, rel=0.01)
    assert rt.var() == pytest.approx(60**2 + 180**2, rel=0.02)
    assert np.mean((rt - rt.mean()) ** 3) == pytest.approx(2 * 180**3, rel=0.08)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate(TRUTH, ALL, blocks=0, seed=0), "whole number of blocks from 1 up"),
        (lambda: simulate(TRUTH, [ALL, ALL], blocks=3, seed=0), "2 entries and blocks=3"),
        (lambda: simulate(TRUTH, ALL, blocks=1.5, seed=0), "from 1 up, got blocks=1.5"),
        (lambda: simulate(TRUTH, ALL, seed=-1), "A seed is a whole number from 0 up, got -1"),
        (lambda: simulate(TRUTH, ALL, seed=None), "A seed is a whole number from 0 up, got None"),
        (lambda: simulate(TRUTH, [], seed=0), "0 entries"),
        (lambda: simulate([], ALL, seed=0), "empty list"),
        (lambda: simulate(TRUTH, Pairs(Grid(4), [0], [1]), seed=0), "4x4 grid"),
        (lambda: simulate(TRUTH, ALL, observer=lambda m, p: np.full(len(p), 1.2), seed=0), "to 1.2"),
        (lambda: simulate(TRUTH, ALL, observer=lambda m, p: np.zeros(3), seed=0), "630 pairs, got shape"),
        (lambda: LapsingObserver(1.2), "a lapse from 0 to 1"),
        (lambda: LapsingObserver.from_errors(0.6, 0.6), "a sum of at most 1"),
        (lambda: ReactionTimes(tail_ms=-1), "tail_ms"),
    ],
)
def test_invalid_input(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()


def test_seed_is_required():
    with pytest.raises(TypeError, match="seed"):
        simulate(TRUTH, ALL)


FINE = random_maps(Grid(64), segments=3, entropy=0, seed=0)


def test_without_noise_the_borders_are_drawn_once():
    """Lines drawn twice would halve the precision. The border of 64 cells a side has steps, so it is the longer one."""
    scores = score_contours_on_maps(draw_contours(FINE, noise=0, seed=0), FINE)
    assert scores.precision > 0.99
    assert scores.recall > 0.9


def test_noise_of_the_hand_has_the_given_size():
    """A straight border of 512 pixels, 200 times: the s.d. is 0.01 · 724 pixels, with a standard error of 2 %."""
    halves = Maps.one_hot(Grid(8), [0] * 32 + [1] * 32)
    offs = [np.interp(256, *draw_contours(halves, noise=0.01, seed=seed).lines[0].T) for seed in range(200)]
    assert np.mean(offs) == pytest.approx(256, abs=2)
    assert np.std(offs) == pytest.approx(0.01 * np.hypot(512, 512), rel=0.15)


def test_more_noise_lowers_f():
    by_noise = [
        np.mean(
            [score_contours_on_maps(draw_contours(FINE, noise=noise, seed=seed), FINE).f for seed in range(5)]
        )
        for noise in (0, 0.004, 0.01)
    ]
    assert by_noise[0] > by_noise[1] > by_noise[2]


def test_one_segment_has_no_contours():
    assert draw_contours(Maps.one_hot(Grid(3), [0] * 9), seed=0).lines == ()


def test_a_wrong_noise_is_refused():
    with pytest.raises(InvalidInput, match=r"noise from 0 to less than 1"):
        draw_contours(FINE, noise=-1, seed=0)
