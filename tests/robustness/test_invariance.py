"""The same answers give the same bits, in whatever order they stand and on however many threads they are worked on."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import vseg
from degenerate import outcome, rows, tallies
from vseg import Responses


@st.composite
def shuffled(draw):
    """Answers, and the same ones in another order, some of their pairs turned round."""
    answers = rows(draw(tallies(4)))
    chance = np.random.default_rng(draw(st.integers(0, 999)))
    order, turned = chance.permutation(len(answers)), chance.integers(0, 2, len(answers)).astype(bool)
    i, j = np.where(turned, answers.j, answers.i), np.where(turned, answers.i, answers.j)
    return answers, Responses(answers.layout, i[order], j[order], answers.same[order])


def bits(fit):
    """All of a fit that can be compared bit by bit, or None for a sentence."""
    found = outcome(fit)
    return None if found is None else found.maps.probabilities.tobytes()


@settings(max_examples=15)
@given(shuffled(), st.integers(2, 5), st.sampled_from(["auto", 0.0, 1e-12, 1.0, 1e6]), st.integers(1, 3))
def test_of_a_fit(two, segments, smoothness, threads):
    settings = {"segments": segments, "smoothness": smoothness, "max_iterations": 300, "seed": 3}
    first, second = two
    expected = bits(lambda: vseg.reconstruct(first, threads=1, **settings))
    assert bits(lambda: vseg.reconstruct(second, threads=threads, **settings)) == expected


@settings(max_examples=8)
@given(shuffled(), st.integers(2, 3))
def test_of_a_posterior(two, threads):
    first, second = two
    settings = {"segments": 2, "draws": 40, "seed": 3}
    expected = bits(lambda: vseg.posterior(first, threads=1, **settings))
    assert expected is not None
    assert bits(lambda: vseg.posterior(second, threads=threads, **settings)) == expected


@settings(max_examples=6)
@given(shuffled(), st.integers(2, 3))
def test_of_a_choice_of_segments(two, threads):
    first, second = two
    settings = {"segments": (2, 3, 4), "max_iterations": 300, "seed": 3}
    one = outcome(lambda: vseg.choose_segments(first, threads=1, **settings))
    other = outcome(lambda: vseg.choose_segments(second, threads=threads, **settings))
    assert (one is None) == (other is None)
    assert one is None or one.table() == other.table()


@pytest.mark.parametrize("threads", [2, 3])
def test_of_resampled_fits_on_any_number_of_threads(threads):
    truth = vseg.stimuli.random_maps(vseg.Grid(6), segments=3, seed=0)
    answers = vseg.simulate(truth, vseg.designs.covering(truth.layout, segments=3, seed=1), blocks=3, seed=2)
    result = vseg.reconstruct(answers, segments=3, smoothness=1.0, seed=3)
    one, several = (
        vseg.bootstrap(answers, result, resamples=8, seed=4, threads=count) for count in (1, threads)
    )
    assert one.probabilities.tobytes() == several.probabilities.tobytes()
