"""Test that online maps stay valid for any answers, and agree with a fit to all answers."""

import numpy as np
from hypothesis import given, settings, strategies as st

import vseg
from degenerate import MILLION, STRENGTHS, check, outcome, rows, tallies
from vseg import Grid
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.online import OnlineReconstruction


@given(
    tallies(4),
    st.integers(2, 12),
    st.sampled_from(STRENGTHS),
    st.sampled_from(["squared_error", "cross_entropy"]),
    st.integers(1, 40),
)
def test_any_answers_in_any_batches(tally, segments, smoothness, loss, size):
    answers = rows(tally)
    live = OnlineReconstruction(tally.layout, segments=segments, smoothness=smoothness, loss=loss, seed=0)
    for first in range(0, len(answers), size):
        part = slice(first, first + size)
        outcome(lambda part=part: live.add(answers.i[part], answers.j[part], answers.same[part]))
        check(live.maps, tally, segments)
    assert live.trials == len(answers)


@settings(max_examples=20)
@given(tallies(4), st.integers(2, 4), st.sampled_from([0.1, 1.0, 10.0]))
def test_starting_over_agrees_with_a_fit_to_all_answers(tally, segments, smoothness):
    """The objectives agree to 1 %: online means are rounded differently, which may lead to another minimum."""
    answers = rows(tally)
    live = OnlineReconstruction(tally.layout, segments=segments, smoothness=smoothness, seed=0)
    live.add(answers.i, answers.j, answers.same)
    live.settle(start_over=True)
    target = build_objective(answers.tally(), segments, strength=smoothness)
    cold = outcome(lambda: vseg.reconstruct(answers, segments=segments, smoothness=smoothness, seed=0))
    assert abs(target.value(live.maps.probabilities) - cold.objective) <= 1e-2 * cold.objective + 1e-6


def test_a_million_answers_to_one_pair():
    live = OnlineReconstruction(Grid(4), segments=3, smoothness=1.0, seed=0)
    same = np.arange(MILLION) % 4 != 0
    live.add(np.zeros(MILLION, int), np.full(MILLION, 15), same)
    live.add([3, 4], [7, 9], [True, False])
    p = live.maps.probabilities
    assert np.isfinite(p).all()
    assert abs(p[0] @ p[15] - 0.75) < 0.01
