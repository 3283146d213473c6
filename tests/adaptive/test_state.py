import numpy as np
import pytest

import vseg
from vseg import Grid
from vseg.adaptive import State, next_pairs, stop_reason
from vseg.adaptive.state import DISAGREEMENT
from vseg.bayes.draw_summaries import mean_entropies
from vseg.errors import InvalidInput

LAYOUT = Grid(7)


@pytest.fixture(scope="module")
def observed():
    truth = vseg.stimuli.random_maps(LAYOUT, segments=2, entropy=0.2, seed=4)
    pairs = vseg.designs.covering(LAYOUT, trials=120, seed=1)
    return truth, vseg.simulate(truth, pairs, seed=2)


def test_the_state_does_not_depend_on_batches_and_requests(observed):
    """Answers one by one, with draws and pairs requested in between, or all at once: the same draws and pairs."""
    _, responses = observed
    whole = State(LAYOUT, segments=2, responses=responses, draws=16, seed=5)
    slow = State(LAYOUT, segments=2, draws=16, threads=2, seed=5)
    for t in range(len(responses)):
        slow.add(responses.i[t], responses.j[t], responses.same[t])
        if t in (3, 30, 31, 77):
            next_pairs(slow, 4, seed=1)
    np.testing.assert_array_equal(whole.draws, slow.draws)
    assert next_pairs(whole, 8, seed=9) == next_pairs(slow, 8, seed=9)
    assert whole.trials == slow.trials == 120
    other = State(LAYOUT, segments=2, responses=responses, draws=16, seed=6)
    assert not np.array_equal(whole.draws, other.draws)


def test_a_state_is_close_to_posterior(observed):
    """An updated state is close to a fit from scratch; the margin is that of 64 draws."""
    truth, responses = observed
    state = State(LAYOUT, segments=2, responses=responses, seed=0)
    result = vseg.bayes.posterior(responses, segments=2, seed=0, threads=1)
    assert state.maps.distance_to(result.maps) < 0.12
    assert state.mode.distance_to(result.mode) < 0.1
    assert vseg.metrics.label_accuracy(state.maps, truth) > 0.8
    low, high = state.bounds
    assert (low <= high).all()


def test_a_repeated_session_asks_the_same_pairs(observed):
    """The answers in their order, with choices made after the same counts, give the same pairs."""
    truth, _ = observed

    def session():
        rng = np.random.default_rng(0)
        state, asked = State(LAYOUT, segments=2, draws=16, seed=1), []
        for _ in range(5):
            pairs = next_pairs(state, 8, seed=2)
            asked += list(pairs)
            state.add(pairs.i, pairs.j, rng.random(len(pairs)) < truth.same_probability(pairs))
        return asked

    assert session() == session()


def test_the_expected_error_falls_until_it_stops(observed):
    _, responses = observed
    state = State(LAYOUT, segments=2, seed=0)
    assert state.expected_error == 1
    assert stop_reason(state, target=0.5) is None
    state.add(responses.i[:30], responses.j[:30], responses.same[:30])
    early = state.expected_error
    state.add(responses.i[30:], responses.j[30:], responses.same[30:])
    assert 0 < state.expected_error < early
    assert stop_reason(state, target=early, minimum=500) is None
    assert "as small as wanted" in stop_reason(state, target=early)
    assert stop_reason(state, target=1e-6, maximum=100) == "All 120 trials were asked."


def test_disagreement_adds_to_the_error_of_a_shared_map(observed):
    """The more uncertain the map, the more it adds; the draws, and so the pairs, are the same."""
    _, responses = observed
    own, shared = (
        State(LAYOUT, segments=2, responses=responses, shared=shared, draws=16, seed=0)
        for shared in (False, True)
    )
    np.testing.assert_array_equal(own.draws, shared.draws)
    added = np.sqrt(shared.expected_error**2 - own.expected_error**2)
    assert added == pytest.approx(DISAGREEMENT * np.median(mean_entropies(own.draws)) / 2)
    assert added > 0.01


def test_maps_are_uniform_without_answers():
    state = State(LAYOUT, segments=3, seed=0)
    np.testing.assert_allclose(state.draws, 1 / 3)
    assert len(state.pairs) == 0


def test_lapses_are_estimated(observed):
    truth, _ = observed
    pairs = [vseg.designs.covering(LAYOUT, segments=2, seed=seed) for seed in range(3)]
    certain = vseg.Maps.one_hot(LAYOUT, truth.labels)
    responses = vseg.simulate(certain, pairs, observer=vseg.observers.LapsingObserver(0.15), seed=0)
    state = State(LAYOUT, segments=2, lapses="estimate", responses=responses, draws=16, seed=0)
    assert np.isfinite(state.draws).all()
    assert 0.05 < sum(state.lapses) < 0.25


def test_invalid_answers_are_refused_and_change_nothing(observed):
    _, responses = observed
    state = State(LAYOUT, segments=2, responses=responses, draws=16, seed=0)
    for arguments, message in [
        ((0, 49, True), r"locations 0\.\.49"),
        ((3, 3, True), "with itself"),
        ((0, 1, 2), "0 or 1"),
        (([0, 1], [2, 3], [1]), "an answer for each of 2 pairs, got 1"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            state.add(*arguments)
    assert state.trials == len(responses)
    with pytest.raises(InvalidInput, match="responses lie on a 7x7 grid, expected a 5x5 grid"):
        State(Grid(5), segments=2, responses=responses, seed=0)
    with pytest.raises(InvalidInput, match="from 8 up, got 3"):
        State(LAYOUT, segments=2, draws=3, seed=0)
    with pytest.raises(InvalidInput, match="between 0 and 1, got 0"):
        stop_reason(state, target=0)
