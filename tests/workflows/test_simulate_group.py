"""simulate_group(): oracle and two-stage designs of simulated participants."""

import numpy as np
import pytest

import vseg
from vseg import Grid, designs
from vseg.errors import InvalidInput
from vseg.workflows.simulate_group import count_steps, simulate_group

TRUTH = vseg.stimuli.random_maps(Grid(8), segments=3, entropy=0, min_area=0.28, seed=0)


def test_an_oracle_knows_the_true_segments():
    responses = simulate_group(TRUTH, participants=2, blocks=2, design="oracle", seed=0)
    pairs = responses.tally().pairs
    assert len(pairs) == 192
    assert designs.check_independence(pairs, TRUTH).spanning.all()


@pytest.mark.parametrize("fresh", [False, True])
def test_two_stages_have_the_same_number_of_trials(fresh):
    """Half of the pairs in the first blocks, the others, which follow from the answers, in as many later ones."""
    steps = []
    settings = {"participants": 2, "blocks": 2, "fresh": fresh}
    responses = simulate_group(TRUTH, design="two_stage", seed=0, progress=steps.append, **settings)
    assert sum(steps) == count_steps(**settings)
    assert len(responses) == 2 * 2 * 192
    assert np.bincount(responses.block).tolist() == [192, 192, 192, 192]  # of both participants
    for name in ("P1", "P2"):
        own = responses.select(participant=name)
        first, second = (set(own.take(own.block // 2 == stage).tally().pairs) for stage in (0, 1))
        assert not first & second
        assert len(first) == len(second) == (192 if fresh else 96)
    again = simulate_group(TRUTH, design="two_stage", seed=0, **settings)
    np.testing.assert_array_equal(again.i, responses.i)
    np.testing.assert_array_equal(again.same, responses.same)


def test_a_single_participant_does_not_change_with_others():
    alone, among = (
        simulate_group(TRUTH, participants=count, blocks=1, design="two_stage", seed=1) for count in (1, 3)
    )
    first = among.select(participant="P1")
    np.testing.assert_array_equal(first.j, alone.j)
    np.testing.assert_array_equal(first.same, alone.same)


@pytest.mark.parametrize("trials", [1, 63])
def test_two_stages_with_too_few_trials(trials):
    with pytest.raises(
        InvalidInput, match=f"at least 64 trials for two stages on an 8x8 grid, .* trials={trials}"
    ):
        simulate_group(TRUTH, participants=1, blocks=1, design="two_stage", trials=trials, seed=0)


def test_unknown_design():
    with pytest.raises(InvalidInput, match="covering, balanced, scattered, all, oracle, got 'best'"):
        simulate_group(TRUTH, participants=1, blocks=1, design="best", seed=0)
