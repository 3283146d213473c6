"""Test that results are bit-identical for any order of the answers and any number of threads."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import vseg
from degenerate import outcome, rows, tallies
from vseg import Responses


@st.composite
def shuffled(draw):
    """Draw answers, and the same answers in another order with some pairs swapped."""
    answers = rows(draw(tallies(4)))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    order, turned = rng.permutation(len(answers)), rng.integers(0, 2, len(answers)).astype(bool)
    i, j = np.where(turned, answers.j, answers.i), np.where(turned, answers.i, answers.j)
    return answers, Responses(answers.layout, i[order], j[order], answers.same[order])


def bits(fit):
    """Return the bytes of the maps, or None after an error message."""
    found = outcome(fit)
    return None if found is None else found.maps.probabilities.tobytes()


@settings(max_examples=15)
@given(shuffled(), st.integers(2, 5), st.sampled_from(["auto", 0.0, 1e-12, 1.0, 1e6]), st.integers(1, 3))
def test_fits_are_invariant(two, segments, smoothness, threads):
    settings = {"segments": segments, "smoothness": smoothness, "max_iterations": 300, "seed": 3}
    first, second = two
    expected = bits(lambda: vseg.reconstruct(first, threads=1, **settings))
    assert bits(lambda: vseg.reconstruct(second, threads=threads, **settings)) == expected


@settings(max_examples=8)
@given(shuffled(), st.integers(2, 3))
def test_posteriors_are_invariant(two, threads):
    first, second = two
    settings = {"segments": 2, "draws": 40, "budget": 100, "seed": 3}  # two rounds of draws
    expected = bits(lambda: vseg.posterior(first, threads=1, **settings))
    assert expected is not None
    assert bits(lambda: vseg.posterior(second, threads=threads, **settings)) == expected


@settings(max_examples=6)
@given(shuffled(), st.integers(2, 3))
def test_the_choice_of_segments_is_invariant(two, threads):
    first, second = two
    settings = {"segments": (2, 3, 4), "max_iterations": 300, "seed": 3}
    one = outcome(lambda: vseg.choose_segments(first, threads=1, **settings))
    other = outcome(lambda: vseg.choose_segments(second, threads=threads, **settings))
    assert (one is None) == (other is None)
    assert one is None or one.table() == other.table()


@pytest.mark.parametrize("threads", [2, 3])
def test_bootstraps_do_not_depend_on_the_number_of_threads(threads):
    truth = vseg.stimuli.random_maps(vseg.Grid(6), segments=3, seed=0)
    answers = vseg.simulate(truth, vseg.designs.covering(truth.layout, segments=3, seed=1), blocks=3, seed=2)
    result = vseg.reconstruct(answers, segments=3, smoothness=1.0, seed=3)
    one, several = (
        vseg.bootstrap(answers, result, resamples=8, seed=4, threads=count) for count in (1, threads)
    )
    assert one.probabilities.tobytes() == several.probabilities.tobytes()
