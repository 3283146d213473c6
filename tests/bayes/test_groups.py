"""Everyone with the prior of the others: nobody counts twice, few answers go further, and who differs may differ."""

import numpy as np
import pytest

import vseg
from vseg.bayes import posteriors, priors
from vseg.bayes.groups import prior_from_others
from vseg.errors import InvalidInput, VsegWarning
from vseg.evaluation.metrics import mae_per_entry
from vseg.evaluation.random_effects import Measurement, compare_entropies, measure_entropy

GRID, EACH = vseg.Grid(8), 64


def answers(truth, name, seed, trials=EACH):
    pairs = vseg.designs.covering(truth.layout, trials=trials, seed=seed)
    return vseg.simulate(truth, pairs, seed=seed, participant=name)


@pytest.fixture(scope="module")
def seen():
    """Maps that seven people share, and those of an eighth, who sees something else."""
    shared, other = (
        vseg.stimuli.random_maps(GRID, segments=2, entropy=0.15, xi=2.0, seed=seed) for seed in (3, 11)
    )
    parts = [answers(shared, f"P{number}", number) for number in range(7)]
    return shared, other, vseg.data.responses.concatenate([*parts, answers(other, "other", 99)])


@pytest.mark.filterwarnings("ignore::vseg.errors.VsegWarning")
def test_few_answers_go_further_and_who_differs_is_left_to_differ(seen):
    """Half a block each. Measured: error 0.6 of the spatial prior's for the seven; for the eighth about the same."""
    shared, other, responses = seen
    together = posteriors(responses, segments=2, seed=0)
    alone = posteriors(responses, segments=2, prior="spatial", seed=0)
    assert list(together) == responses.participants
    error = {
        how: np.mean([mae_per_entry(one.maps, shared) for name, one in people.items() if name != "other"])
        for how, people in (("group", together), ("spatial", alone))
    }
    assert error["group"] < 0.85 * error["spatial"]
    apart = mae_per_entry(together["other"].maps, other), mae_per_entry(alone["other"].maps, other)
    assert apart[0] < apart[1] + 0.03


@pytest.mark.filterwarnings("ignore::vseg.errors.VsegWarning")
def test_threads_change_nothing(seen):
    responses = seen[2].take(np.isin(seen[2].participant, ["P0", "P1", "P2"]))
    done = []
    one = posteriors(responses, segments=2, seed=5, threads=1, progress=done.append)
    two = posteriors(responses, segments=2, seed=5, threads=2)
    assert done == [1, 1, 1]
    for name, found in one.items():
        np.testing.assert_array_equal(found.draws, two[name].draws)


@pytest.mark.filterwarnings("ignore::vseg.errors.VsegWarning")
def test_a_prior_comes_from_the_others_alone(seen):
    """With P0's answers turned around, P0's prior is the same to the bit, and P1's is not."""
    responses = seen[2].take(np.isin(seen[2].participant, ["P0", "P1", "P2"]))
    same = responses.same ^ (responses.participant == "P0")
    turned = vseg.Responses(GRID, responses.i, responses.j, same, participant=responses.participant)

    def tall(answers, name):
        return prior_from_others(answers, name, catch={}, segments=2, seed=5).families[0][0].root.tall

    np.testing.assert_array_equal(tall(responses, "P0"), tall(turned, "P0"))
    assert not np.array_equal(tall(responses, "P1"), tall(turned, "P1"))


def test_the_group_s_covariance_follows_the_others_log_odds():
    halves = vseg.Maps.one_hot(vseg.Grid(4), [0] * 8 + [1] * 8)
    prior = priors.group(halves.layout, halves)
    root = prior.families[0][0].root  # the shortest length: hardly anything but the group
    matrix = root.tall @ root.wide
    assert matrix[0, 7] > 0.5  # the same half, far apart
    assert matrix[0, 8] < -0.3  # the other half
    assert np.mean(np.diag(matrix)) == pytest.approx(1, abs=0.05)


@pytest.mark.filterwarnings("ignore::vseg.errors.VsegWarning")
def test_one_person_has_the_spatial_prior_and_k_is_chosen_once(seen):
    alone = posteriors(seen[2].select(participant="P0"), segments=2, seed=0)
    assert alone["P0"].prior == "spatial"
    two = seen[2].take(np.isin(seen[2].participant, ["P0", "P1"]))
    assert {one.segments for one in posteriors(two, segments=[2, 3], seed=0).values()} == {2}


@pytest.mark.filterwarnings("ignore::vseg.errors.VsegWarning")
def test_catch_trials_of_everyone_reach_their_lapses(seen):
    """Forty catch trials, of which one person missed ten.

    Lapses come before any draw; whether the chains of so few answers agree differs between processors.
    """
    two = seen[2].take(np.isin(seen[2].participant, ["P0", "P1"]))
    found = posteriors(
        two, segments=2, lapses="estimate", prior="spatial", catch={"P0": (30, 40), "P1": (40, 40)}, seed=0
    )
    assert sum(found["P0"].lapses) > sum(found["P1"].lapses) + 0.05


def test_groups_are_compared_by_name():
    low = {name: Measurement(value, 0.02) for name, value in zip("abcd", [0.1, 0.2, 0.3, 0.4], strict=True)}
    other = {name * 2: one for name, one in low.items()}
    more = {
        name: Measurement(one.value + 0.05 + at / 1000, 0.02) for at, (name, one) in enumerate(low.items())
    }
    paired, unpaired = compare_entropies(low, more), compare_entropies(other, more)
    assert (paired.paired, unpaired.paired) == (True, False)
    assert paired.difference.value == pytest.approx(unpaired.difference.value, abs=1e-3)
    assert paired.difference.low > 0 > unpaired.difference.low  # people differ more than their differences
    with pytest.warns(VsegWarning, match="3 people are in both groups"):
        compare_entropies({name: low[name] for name in "abc"}, more)


def test_a_posterior_is_known_by_its_draws(seen):
    found = vseg.posterior(seen[2].select(participant="P0"), segments=2, seed=0)
    known = measure_entropy(found)
    assert (known.value, known.low, known.high) == (found.entropy, *found.entropy_interval)
    assert known.spread == pytest.approx(found.entropies.std(ddof=1))


def test_what_is_no_responses_is_refused(seen):
    with pytest.raises(InvalidInput, match="Expected the Responses of several participants"):
        posteriors(seen[2].tally(), segments=2, seed=0)
