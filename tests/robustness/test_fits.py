"""Test that any tally, K and λ gives valid maps or an error message."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import vseg
from degenerate import IMPOSSIBLE, KERNELS, MILLION, STRENGTHS, check, outcome, rows, tallies
from vseg import Grid, Pairs
from vseg.data.responses import Tally
from vseg.errors import InvalidInput
from vseg.reconstruction.online import OnlineReconstruction

SETTINGS = {
    "segments": st.integers(2, 12),  # a 3x3 grid has 9 locations
    "smoothness": st.sampled_from(STRENGTHS),
    "loss": st.sampled_from(["squared_error", "cross_entropy"]),
    "weights": st.sampled_from(["trials", "pairs"]),
    "kernel": st.sampled_from(KERNELS),
    "seed": st.sampled_from([0, 1, 2**64 - 1]),
}


def fits(tally, options):
    result = outcome(lambda: vseg.reconstruct(tally, threads=1, max_iterations=500, **options))
    assert result is not None  # these settings are all allowed
    check(result.maps, tally, options["segments"])
    assert np.isfinite([result.objective, result.data_term, result.penalty]).all()
    assert result.message


@given(tallies(), st.fixed_dictionaries(SETTINGS))
def test_any_fit(tally, options):
    fits(tally, options)


@pytest.mark.chaos
@settings(max_examples=3000)
@given(tallies(8), st.fixed_dictionaries(SETTINGS))
def test_any_fit_at_length(tally, options):
    fits(tally, options)


@settings(max_examples=25)
@given(tallies(), st.fixed_dictionaries(SETTINGS))
def test_the_papers_algorithm(tally, options):
    result = outcome(
        lambda: vseg.reconstruct(tally, solver="exponentiated_gradient", max_iterations=60, **options)
    )
    assert result is not None
    check(result.maps, tally, options["segments"])


@settings(max_examples=15)
@given(tallies(), st.integers(2, 5), st.sampled_from(["squared_error", "cross_entropy"]))
def test_a_smoothness_from_the_data(tally, segments, loss):
    """With too few pairs to hold any out there is an error message; otherwise λ is chosen."""
    result = outcome(lambda: vseg.reconstruct(tally, segments=segments, loss=loss, threads=1, seed=0))
    assert (result is None) == (len(tally) < 10)
    if result is not None:
        check(result.maps, tally, segments)
        assert np.isfinite(result.path.held_out).all()


@pytest.mark.parametrize("strength", IMPOSSIBLE, ids=repr)
def test_an_invalid_smoothness_is_refused(strength):
    """Above 1e12 rounding errors exceed the answers; 1e300 once gave NaN."""
    tally = Tally(Pairs(Grid(4), [0, 1, 2], [5, 6, 7]), [1, 0, 1], [1, 1, 1])
    for segments in (2, 3, 4):
        with (
            pytest.raises(InvalidInput, match=r"[Ss]moothness.*(number)"),
            pytest.warns(vseg.errors.VsegWarning),
        ):
            vseg.reconstruct(tally, segments=segments, smoothness=strength, seed=0)
    with pytest.raises(InvalidInput, match=r"smoothness λ is a number from 0 up to 1e\+12"):
        OnlineReconstruction(Grid(4), segments=2, smoothness=strength, seed=0)


@pytest.mark.parametrize("smoothness", [0.0, 1e-12, 1e12])
def test_a_grid_of_66049_locations_with_three_pairs(smoothness):
    tally = Tally(Pairs(Grid(257), [0, 100, 66000], [66048, 5000, 3]), [1, 0, 1], [1, 1, MILLION])
    options = {"segments": 3, "smoothness": smoothness, "seed": 0, "max_iterations": 20}
    check(outcome(lambda: vseg.reconstruct(tally, **options)).maps, tally, 3)


@settings(max_examples=12)
@given(tallies(4), st.booleans())
def test_choosing_the_number_of_segments(tally, given_smoothness):
    options = {"smoothness": 1.0} if given_smoothness else {}
    choice = outcome(
        lambda: vseg.choose_segments(
            tally, segments=(2, 3, 10), threads=1, seed=0, max_iterations=300, **options
        )
    )
    assert (choice is None) == (len(tally) < 10)
    if choice is not None:
        for candidate in choice.candidates:
            check(candidate.result.maps, tally, candidate.segments)
            assert np.isfinite([candidate.held_out, candidate.standard_error]).all()
        assert choice.by_likelihood in (2, 3, 10)


@settings(max_examples=12)
@given(tallies(4), st.integers(2, 5), st.sampled_from(STRENGTHS))
def test_resampled_fits(tally, segments, smoothness):
    responses = rows(tally)
    result = outcome(
        lambda: vseg.reconstruct(
            responses, segments=segments, smoothness=smoothness, max_iterations=300, seed=0
        )
    )
    found = outcome(
        lambda: vseg.bootstrap(responses, result, resamples=3, threads=1, max_iterations=300, seed=1)
    )
    low, high = found.interval()
    assert np.isfinite(found.probabilities).all()
    assert (low <= high).all()
    assert low.min() >= 0
    assert high.max() <= 1


@settings(max_examples=20)
@given(tallies(4), st.integers(2, 3))
def test_the_posterior(tally, segments):
    result = outcome(
        lambda: vseg.posterior(tally, segments=segments, draws=40, budget=100, threads=1, seed=0)
    )
    assert result is not None
    check(result.maps, tally, segments)
