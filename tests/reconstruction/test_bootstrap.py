import numpy as np
import pytest

import vseg
from vseg import Grid
from vseg.errors import InvalidInput


@pytest.fixture(scope="module")
def study():
    truth = vseg.stimuli.random_maps(Grid(8), segments=2, entropy=0.3, seed=0)
    pairs = vseg.designs.balanced(truth.layout, segments=2, seed=1)
    people = [vseg.simulate(truth, pairs, blocks=4, participant=f"p{s}", seed=s) for s in range(5)]
    responses = vseg.data.responses.concatenate(people)
    return responses, vseg.reconstruct(responses, segments=2, smoothness=0.5, seed=0)


@pytest.mark.parametrize("over", ["trials", "blocks", "participants"])
def test_resamples_lie_around_the_maps(study, over):
    responses, result = study
    found = vseg.bootstrap(responses, result, over=over, resamples=100, seed=0)
    low, high = found.interval()
    assert (low <= high).all()
    inside = (low - 1e-9 <= result.maps.probabilities) & (result.maps.probabilities <= high + 1e-9)
    assert inside.mean() > 0.9
    assert found.entropy_interval()[0] < found.entropy_interval()[1]
    assert "Bootstrap of 100 resamples" in repr(found)


def test_fewer_answers_give_wider_intervals(study):
    responses, result = study
    few = responses.select(participant="p0")
    one = vseg.reconstruct(few, segments=2, smoothness=0.5, seed=0)
    widths = [
        np.mean(np.subtract(*vseg.bootstrap(r, fit, resamples=60, seed=0).interval()[::-1]))
        for r, fit in ((responses, result), (few, one))
    ]
    assert widths[1] > 1.3 * widths[0]  # five times fewer answers; √5 without smoothing


def test_threads_change_nothing(study):
    one, two = (vseg.bootstrap(*study, resamples=5, seed=0, threads=t).probabilities for t in (1, 2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"over": "pairs"}, "Cannot resample over 'pairs'; choose one of trials, blocks, participants"),
        ({"resamples": 1}, "whole number from 2 up, got 1"),
        ({"seed": -1}, "A seed is a whole number"),
    ],
)
def test_bad_settings(study, settings, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        vseg.bootstrap(*study, **{"seed": 0, **settings})


def test_one_block_cannot_be_resampled_over_blocks():
    responses = vseg.Responses(Grid(3), [0, 1, 2], [4, 5, 6], [1, 0, 1])
    with pytest.warns(vseg.errors.VsegWarning):
        result = vseg.reconstruct(responses, segments=2, smoothness=1.0, seed=0)
    with pytest.raises(InvalidInput, match="over blocks needs at least 2 of them, got 1; choose trials"):
        vseg.bootstrap(responses, result, over="blocks", seed=0)


def test_the_kernel_is_that_of_the_reconstruction(study):
    responses, _ = study
    wide = vseg.reconstruct(responses, segments=2, smoothness=20.0, kernel="gaussian:2", seed=0)
    own, given, other = (
        vseg.bootstrap(responses, wide, resamples=3, seed=0, **kernel).probabilities
        for kernel in ({}, {"kernel": "gaussian:2"}, {"kernel": "four"})
    )
    assert np.array_equal(own, given)
    assert not np.array_equal(own, other)


def test_a_matrix_has_to_be_given_again(study):
    responses, _ = study
    matrix = vseg.reconstruction.kernels.build_smoothness(responses.layout, "eight").weights
    result = vseg.reconstruct(responses, segments=2, smoothness=1.0, kernel=matrix, seed=0)
    with pytest.raises(InvalidInput, match="was a matrix; give it to bootstrap as kernel"):
        vseg.bootstrap(responses, result, resamples=3, seed=0)
    array = vseg.reconstruct(responses, segments=2, smoothness=1.0, kernel=np.ones((3, 3)), seed=0)
    with pytest.raises(InvalidInput, match="was an array; give it to bootstrap as kernel"):
        vseg.bootstrap(responses, array, resamples=3, seed=0)
    found = vseg.bootstrap(responses, result, resamples=3, kernel=matrix, seed=0)
    named = vseg.bootstrap(responses, result, resamples=3, kernel="eight", seed=0)
    assert found.probabilities == pytest.approx(named.probabilities)
