import numpy as np
import pytest

import vseg
from vseg import Grid
from vseg.errors import InvalidInput
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.online import OnlineReconstruction


def answers(layout, *, segments=3, blocks=3, seed=0):
    truth = vseg.stimuli.random_maps(layout, segments=segments, entropy=0.2, seed=seed)
    pairs = vseg.designs.covering(layout, segments=segments, seed=seed)
    return truth, vseg.simulate(truth, pairs, blocks=blocks, seed=seed)


@pytest.mark.parametrize("layout", [Grid(9), vseg.Scatter(np.random.default_rng(0).random((80, 2)))], ids=str)
@pytest.mark.parametrize("weights", ["trials", "pairs"])
def test_one_by_one_ends_where_all_at_once_does(layout, weights):
    """Counts, shares and weights are those of a tally, whatever the order and however rows grew."""
    _, responses = answers(layout)
    live = OnlineReconstruction(layout, segments=3, smoothness=2.0, weights=weights, seed=0)
    for i, j, same in zip(responses.i, responses.j, responses.same, strict=True):
        live.add(i, j, same)
    live.settle(start_over=True)
    whole = build_objective(responses.tally(), 3, strength=2.0, weights=weights)
    reference = vseg.reconstruction.solvers.coordinate_descent(whole, seed=0)
    assert live.trials == len(responses)
    assert whole.value(live.maps.probabilities) == pytest.approx(reference.trace[-1], rel=1e-3)


def test_weak_smoothness_ends_where_reconstruct_does():
    """The solver approaches a weak λ step by step; with λ and weights multiplied by counts it would not (5.30)."""
    _, responses = answers(Grid(9))
    live = OnlineReconstruction(Grid(9), segments=3, smoothness=0.1, responses=responses, seed=0)
    live.settle(start_over=True)
    whole = build_objective(responses.tally(), 3, strength=0.1)
    reference = vseg.reconstruct(responses, segments=3, smoothness=0.1, seed=0)
    expected = whole.value(reference.maps.probabilities)
    assert expected == pytest.approx(4.974, rel=1e-3)
    assert whole.value(live.maps.probabilities) == pytest.approx(expected, rel=1e-3)
    assert vseg.metrics.mae(live.maps, reference.maps) < 0.01


def test_a_new_answer_is_followed_closely():
    """After each answer the maps lie within 1 % of the objective that a full fit would reach."""
    layout = Grid(12)
    _, responses = answers(layout)
    known, new = responses.take(np.arange(1000)), responses.take(np.arange(1000, 1040))
    live = OnlineReconstruction(layout, segments=3, smoothness=1.0, responses=known, seed=0)
    for t in range(len(new)):
        live.add(new.i[t], new.j[t], new.same[t])
        target = build_objective(responses.take(np.arange(1001 + t)).tally(), 3, strength=1.0)
        p = live.maps.probabilities
        settled = vseg.reconstruction.solvers.coordinate_descent(target, p, seed=0).trace[-1]
        assert target.value(p) <= 1.01 * settled


def test_the_maps_grow_towards_the_truth():
    truth, responses = answers(Grid(10))
    live = OnlineReconstruction(truth.layout, segments=3, smoothness=1.0, seed=0)
    accuracy = []
    for part in np.array_split(np.arange(len(responses)), 6):
        chosen = responses.take(part)
        live.add(chosen.i, chosen.j, chosen.same)
        accuracy.append(vseg.metrics.label_accuracy(live.maps, truth))
    assert accuracy[-1] > 0.9
    assert accuracy[-1] > accuracy[0]


def test_bad_answers_change_nothing():
    _, responses = answers(Grid(6))
    live = OnlineReconstruction(Grid(6), segments=3, responses=responses, seed=0)
    before = live.maps
    for arguments, sentence in [
        ((0, 36, True), r"locations 0\.\.36"),
        ((3, 3, True), "with itself"),
        ((0, 1, 2), "0 or 1"),
        (([0, 1], [2, 3], [1]), "an answer for each of 2 pairs, got 1"),
    ]:
        with pytest.raises(InvalidInput, match=sentence):
            live.add(*arguments)
    assert live.maps == before
    assert live.trials == len(responses)
    live.add([], [], [])
    OnlineReconstruction(Grid(6), segments=3, seed=0).settle()
    with pytest.raises(InvalidInput, match="λ is a number from 0 up to 1e\\+12, got 'auto'"):
        OnlineReconstruction(Grid(6), segments=3, smoothness="auto", seed=0)
    with pytest.raises(InvalidInput, match="responses lie on a 6x6 grid, expected a 7x7 grid"):
        OnlineReconstruction(Grid(7), segments=3, responses=responses, seed=0)
