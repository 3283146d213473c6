"""Posteriors with a prior from the other participants: no answer counts twice, and fewer answers are needed."""

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
    """Maps that seven participants share, those of an eighth who sees something else, and the answers of all."""
    shared, other = (
        vseg.stimuli.random_maps(GRID, segments=2, entropy=0.15, xi=2.0, seed=seed) for seed in (3, 11)
    )
    parts = [answers(shared, f"P{number}", number) for number in range(7)]
    return shared, other, vseg.data.responses.concatenate([*parts, answers(other, "other", 99)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::vseg.errors.VsegWarning")
def test_a_group_prior_helps_participants_who_agree_and_does_not_harm_one_who_differs(seen):
    """Half a block each. Measured: error 0.6 of the spatial prior's for the seven; for the eighth about the same."""
    shared, other, responses = seen
    together = posteriors(responses, segments=2, seed=0)
    alone = posteriors(responses, segments=2, prior="spatial", seed=0)
    assert list(together) == responses.participants
    error = {
        prior: np.mean([mae_per_entry(own.maps, shared) for name, own in results.items() if name != "other"])
        for prior, results in (("group", together), ("spatial", alone))
    }
    assert error["group"] < 0.85 * error["spatial"]
    with_group, without = (mae_per_entry(results["other"].maps, other) for results in (together, alone))
    assert with_group < without + 0.03


@pytest.mark.filterwarnings("ignore::vseg.errors.VsegWarning")
def test_results_do_not_depend_on_threads(seen):
    responses = seen[2].take(np.isin(seen[2].participant, ["P0", "P1", "P2"]))
    done = []
    one = posteriors(responses, segments=2, seed=5, threads=1, progress=done.append)
    two = posteriors(responses, segments=2, seed=5, threads=2)
    assert done == [1, 1, 1]
    for name, result in one.items():
        np.testing.assert_array_equal(result.draws, two[name].draws)


@pytest.mark.filterwarnings("ignore::vseg.errors.VsegWarning")
def test_a_prior_does_not_depend_on_the_participants_own_answers(seen):
    """With P0's answers reversed, P0's prior is exactly the same, and P1's is not."""
    responses = seen[2].take(np.isin(seen[2].participant, ["P0", "P1", "P2"]))
    same = responses.same ^ (responses.participant == "P0")
    reversed_ = vseg.Responses(GRID, responses.i, responses.j, same, participant=responses.participant)

    def tall(answers, name):
        return prior_from_others(answers, name, catch={}, segments=2, seed=5).families[0][0].root.tall

    np.testing.assert_array_equal(tall(responses, "P0"), tall(reversed_, "P0"))
    assert not np.array_equal(tall(responses, "P1"), tall(reversed_, "P1"))


def test_the_group_covariance_follows_the_log_odds_of_the_others():
    halves = vseg.Maps.one_hot(vseg.Grid(4), [0] * 8 + [1] * 8)
    prior = priors.group(halves.layout, halves)
    root = prior.families[0][0].root  # the shortest length: hardly anything but the group
    matrix = root.tall @ root.wide
    assert matrix[0, 7] > 0.5  # the same half, far apart
    assert matrix[0, 8] < -0.3  # the other half
    assert np.mean(np.diag(matrix)) == pytest.approx(1, abs=0.05)


@pytest.mark.filterwarnings("ignore::vseg.errors.VsegWarning")
def test_a_single_participant_has_the_spatial_prior_and_k_is_chosen_once(seen):
    alone = posteriors(seen[2].select(participant="P0"), segments=2, seed=0)
    assert alone["P0"].prior == "spatial"
    two = seen[2].take(np.isin(seen[2].participant, ["P0", "P1"]))
    assert {result.segments for result in posteriors(two, segments=[2, 3], seed=0).values()} == {2}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::vseg.errors.VsegWarning")
@pytest.mark.parametrize("prior", ["spatial", "group"])
def test_each_participant_may_have_a_k_of_their_own(prior):
    halves = vseg.Maps.one_hot(GRID, [0] * 32 + [1] * 32)
    quarters = vseg.Maps.one_hot(GRID, ([0] * 4 + [1] * 4) * 4 + ([2] * 4 + [3] * 4) * 4)
    both = vseg.data.responses.concatenate(
        [answers(halves, "halves", 1, 400), answers(quarters, "quarters", 2, 400)]
    )
    settings = {"segments": [2, 3, 4, 5], "prior": prior, "budget": 50, "seed": 0}
    own = posteriors(both, segments_by="participant", **settings)
    assert {name: result.segments for name, result in own.items()} == {"halves": 2, "quarters": 4}
    assert all(result.table.chosen == result.segments for result in own.values())
    assert len({result.segments for result in posteriors(both, **settings).values()}) == 1


def test_k_is_chosen_for_all_or_for_each_participant(seen):
    with pytest.raises(InvalidInput, match="K is chosen by 'all' or by 'participant', got 'image'"):
        posteriors(seen[2], segments=2, segments_by="image", seed=0)


@pytest.mark.filterwarnings("ignore::vseg.errors.VsegWarning")
def test_catch_trials_of_each_participant_affect_their_lapses(seen):
    """Forty catch trials, of which one participant missed ten.

    Lapses are estimated before any draw; whether the chains of so few answers agree differs between processors.
    """
    two = seen[2].take(np.isin(seen[2].participant, ["P0", "P1"]))
    results = posteriors(
        two, segments=2, lapses="estimate", prior="spatial", catch={"P0": (30, 40), "P1": (40, 40)}, seed=0
    )
    assert sum(results["P0"].lapses) > sum(results["P1"].lapses) + 0.05


def test_groups_with_the_same_names_are_compared_in_pairs():
    low = {name: Measurement(value, 0.02) for name, value in zip("abcd", [0.1, 0.2, 0.3, 0.4], strict=True)}
    other = {name * 2: one for name, one in low.items()}
    more = {
        name: Measurement(one.value + 0.05 + at / 1000, 0.02) for at, (name, one) in enumerate(low.items())
    }
    paired, unpaired = compare_entropies(low, more), compare_entropies(other, more)
    assert (paired.paired, unpaired.paired) == (True, False)
    assert paired.difference.value == pytest.approx(unpaired.difference.value, abs=1e-3)
    assert (
        paired.difference.low > 0 > unpaired.difference.low
    )  # participants differ more than their differences
    with pytest.warns(VsegWarning, match="3 participants are in both groups"):
        compare_entropies({name: low[name] for name in "abc"}, more)


def test_the_entropy_of_a_posterior_is_measured_by_its_draws(seen):
    result = vseg.posterior(seen[2].select(participant="P0"), segments=2, seed=0)
    measured = measure_entropy(result)
    assert (measured.value, measured.low, measured.high) == (result.entropy, *result.entropy_interval)
    assert measured.spread == pytest.approx(result.entropies.std(ddof=1))


def test_anything_but_responses_is_refused(seen):
    with pytest.raises(InvalidInput, match="Expected the Responses of several participants"):
        posteriors(seen[2].tally(), segments=2, seed=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::vseg.errors.VsegWarning")
@pytest.mark.parametrize("seed", range(3))
def test_participants_who_see_the_same_come_out_the_same(seed):
    """Four people with one map, 120 answers each: 90 % intervals overlap, and all but one at most hold the truth."""
    truth = vseg.stimuli.random_maps(GRID, segments=3, entropy=0.4, seed=seed)
    responses = vseg.data.responses.concatenate([answers(truth, f"P{n}", n, trials=120) for n in range(4)])
    found = posteriors(responses, segments=3, budget=150, seed=0)
    low, high = np.array([result.entropy_interval for result in found.values()]).T
    assert low.max() < high.min()
    assert np.sum((low <= truth.mean_entropy) & (truth.mean_entropy <= high)) >= 3
