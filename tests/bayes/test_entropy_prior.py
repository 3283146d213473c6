"""The prior of the mean entropy, and estimates without it."""

import numpy as np
import pytest

import vseg
from vseg.bayes.entropy_prior import draw_prior_entropies, flatten_prior
from vseg.evaluation.random_effects import Measurement, compare_measurements

LOG_2 = np.log(2)


def as_entropy(logits):
    return LOG_2 / (1 + np.exp(-np.asarray(logits)))


def measure(rng, error, count, *, truth=-0.2, between=0.3, centre=-2.5, width=1.5):
    """Simulate participants of K = 2: the logit of the entropy has a normal error and a normal prior."""
    prior = as_entropy(centre + width * rng.standard_normal(1000))
    people = []
    for _ in range(count):
        seen = truth + between * rng.standard_normal() + error * rng.standard_normal()
        precision = 1 / error**2 + 1 / width**2
        mean = (seen / error**2 + centre / width**2) / precision
        draws = as_entropy(mean + rng.standard_normal(400) / np.sqrt(precision))
        people.append(
            Measurement(np.median(draws), draws.std(), np.nan, np.nan, *flatten_prior(draws, prior, 2))
        )
    return people


def test_the_pull_of_the_prior_does_not_make_groups_differ():
    """Many participants with few answers against as many with many answers: the truth is the same."""
    rng = np.random.default_rng(0)
    few, many = measure(rng, 1.2, 120), measure(rng, 0.2, 120)
    first = {f"a{at}": one for at, one in enumerate(few)}
    second = {f"b{at}": one for at, one in enumerate(many)}
    found = compare_measurements(first, second)
    pulled = compare_measurements(
        *({name: Measurement(*one[:2]) for name, one in group.items()} for group in (first, second))
    )
    assert pulled.p < 1e-3, "the medians of the posteriors differ"
    assert abs(found.difference.value) < 0.5 * abs(pulled.difference.value)
    assert found.p > 0.05


def test_precise_estimates_do_not_change():
    people = measure(np.random.default_rng(1), 0.05, 20)
    assert [one.flat for one in people] == pytest.approx([one.value for one in people], abs=0.003)
    assert [one.flat_spread for one in people] == pytest.approx([one.spread for one in people], rel=0.05)


def test_numbers_without_a_prior_are_compared_as_they_are():
    assert Measurement(0.3, 0.02).without_prior == (0.3, 0.02)
    assert Measurement(0.3, 0.02, 0.2, 0.4, 0.35, 0.03).without_prior == (0.35, 0.03)


@pytest.mark.filterwarnings("ignore::vseg.errors.VsegWarning")
def test_the_prior_is_that_of_the_chains():
    """One answer says next to nothing, so the draws are those of the prior; without it they are uniform."""
    grid = vseg.Grid(5)
    answer = vseg.simulate(vseg.Maps.one_hot(grid, np.arange(25) % 2, 2), vseg.Pairs(grid, [0], [24]), seed=0)
    result = vseg.posterior(answer, segments=2, seed=0)
    prior = draw_prior_entropies(result.model)
    quantiles = [0.25, 0.5, 0.75]
    assert np.quantile(result.entropies, quantiles) == pytest.approx(np.quantile(prior, quantiles), abs=0.08)
    mean, spread = result.flat_entropy
    assert (mean / LOG_2, spread / LOG_2) == pytest.approx((0.5, 0.289), abs=0.06)
