"""Sampling of maps and hyper-parameters together."""

import numpy as np
import pytest
from scipy import stats

import vseg
from vseg import Grid, Responses, Scatter
from vseg.bayes import priors
from vseg.bayes.evidence import initial_fields, search
from vseg.bayes.joint_model import (
    BIAS,
    FLOOR,
    HYPERPARAMETERS,
    LAPSES,
    LENGTH,
    SCALE,
    SHARE,
    joint_cost,
    update_hyperparameters,
)
from vseg.bayes.joint_sampling import (
    draw_maps,
    prepare_starts,
    sample_joint,
)
from vseg.bayes.lapses import CatchCounts
from vseg.bayes.model import count_answers

CATCH = CatchCounts(38, 40)


@pytest.fixture(scope="module")
def start():
    """Return a start for 48 answers about a 4x4 grid, with all hyper-parameters free."""
    truth = vseg.stimuli.random_maps(Grid(4), segments=3, entropy=0.4, min_area=0.0, seed=0)
    pairs = vseg.designs.covering(truth.layout, segments=3, seed=1)
    return make_start(vseg.simulate(truth, pairs, seed=2), 3, priors.spatial(truth.layout))


def make_start(responses, segments, prior, *, estimate_lapses=True):
    tally = responses.tally()
    answers = count_answers(tally)
    best = search(answers, prior, initial_fields(tally, segments, np.random.default_rng(0)))[0]
    return prepare_starts(answers, best, prior, estimate_lapses=estimate_lapses, catch=CATCH)[0]


def without_answers(start):
    """Return the start with no answers and no catch trials, where the posterior is the prior."""
    none, zeros = np.zeros(0, np.uint32), np.zeros(0)
    model = start.model._replace(
        i=none, j=none, same=zeros, trials=zeros,
        prior=start.model.prior._replace(catch_right=0.0, catch_wrong=0.0),
    )  # fmt: skip
    return start._replace(model=model)


@pytest.mark.parametrize("point", range(3))
def test_the_gradient_is_that_of_the_cost(start, point):
    x = start.centre + 0.5 * np.random.default_rng(point).standard_normal(len(start.centre))
    _, gradient = joint_cost(x, start.model)
    for k in [0, 7, *range(len(x) - HYPERPARAMETERS, len(x))]:
        step = np.zeros(len(x))
        step[k] = 1e-5
        numeric = (joint_cost(x + step, start.model)[0] - joint_cost(x - step, start.model)[0]) / 2e-5
        assert gradient[k] == pytest.approx(numeric, rel=1e-5, abs=1e-5)


@pytest.mark.slow
def test_without_answers_chains_sample_the_prior(start):
    """Means and spreads of the hyper-parameters, and the lapses' Beta distribution; limits are 4 standard errors."""
    prior = start.model.prior
    draws = sample_joint([without_answers(start)] * 4, draws=8, seeds=np.random.SeedSequence(0), budget=800)
    ess = draws.convergence.ess
    for values, k in (
        (np.log(draws.scale), SCALE),
        (np.log(draws.length), LENGTH),
        (np.log(draws.share / (prior.max_share - draws.share)), SHARE),
        (np.log(draws.bias / (1 - draws.bias)), BIAS),
        (np.log(draws.floor / (1 - draws.floor)), FLOOR),
    ):
        assert values.mean() == pytest.approx(prior.centre[k], abs=4 * prior.spread[k] / np.sqrt(ess))
        assert values.std() == pytest.approx(prior.spread[k], rel=4 / np.sqrt(2 * ess))
    lapses = stats.beta(1, prior.lapse_beta)
    assert draws.lapses.mean() == pytest.approx(lapses.mean(), abs=4 * lapses.std() / np.sqrt(ess))


def test_hyperparameter_steps_keep_the_maps_or_rescale_them(start):
    """Steps leave a valid position: the cost is finite, and fixed hyper-parameters stay."""
    rng = np.random.default_rng(0)
    is_free = np.arange(HYPERPARAMETERS) != SCALE
    is_free[[LAPSES, BIAS]] = False
    fixed = start.model._replace(prior=start.model.prior._replace(is_free=is_free))
    x = start.centre.copy()
    for _ in range(20):
        x = update_hyperparameters(
            x,
            fixed,
            rng.standard_normal(16),
            rng.random((16, 3)),
            rng.standard_normal((8, 3)),
            rng.random((8, 3)),
        )
    assert np.isfinite(joint_cost(x, fixed)[0])
    moved = x[-HYPERPARAMETERS:] != start.centre[-HYPERPARAMETERS:]
    np.testing.assert_array_equal(moved, is_free)


def test_draws_depend_on_the_seed_and_not_on_threads(start):
    once, threaded, other = (
        sample_joint([start] * 4, draws=12, seeds=np.random.SeedSequence(seed), threads=threads, budget=20)
        for seed, threads in ((1, 1), (1, 3), (2, 1))
    )
    np.testing.assert_array_equal(once.maps, threaded.maps)
    np.testing.assert_array_equal(once.entropies, threaded.entropies)
    assert not np.array_equal(once.maps, other.maps)
    assert once.maps.shape == (12, 16, 3)
    assert once.entropies.shape == once.lapses.shape == (4, 20)
    np.testing.assert_allclose(once.maps.sum(axis=2), 1, atol=1e-12)


@pytest.mark.parametrize(
    "prior",
    [
        priors.spatial(Grid(4), kernel="rbf", lengths=[0.3], scales=[2.0]),
        priors.spatial(Grid(4), kernel="matern32"),
        priors.from_covariance(Grid(4), np.eye(16), scales=[2.0]),
        priors.group(Grid(4), vseg.Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)),
    ],
    ids=["fixed", "matern", "identity", "group"],
)
def test_priors(prior):
    """What a prior fixes stays fixed, and what it leaves open varies."""
    pairs = vseg.designs.covering(Grid(4), segments=2, seed=0)
    responses = Responses(Grid(4), pairs.i, pairs.j, pairs.i // 8 == pairs.j // 8)
    start = make_start(responses, 2, prior, estimate_lapses=False)
    draws = sample_joint([start] * 4, draws=8, seeds=np.random.SeedSequence(0), budget=20)
    assert (draws.lapses == 0).all()
    assert (np.ptp(draws.scale) > 0) == (len(prior.scales) > 1)
    assert (np.ptp(draws.length) > 0) == (prior.has_length and len(prior.families[0]) > 1)
    if len(prior.scales) == 1:
        assert draws.scale[0, 0] == pytest.approx(2.0)


def test_an_identity_covariance_keeps_every_location():
    """On 40 scattered locations the identity has 40 directions, none of which may be left out."""
    layout = Scatter(np.random.default_rng(0).random((40, 2)))
    basis = priors.from_covariance(layout, np.eye(40)).make_basis(1.0)
    assert basis.functions == 40
    np.testing.assert_allclose(
        basis.tall @ np.diag(basis.variances(0.0, 0.0)) @ basis.wide, np.eye(40), atol=1e-9
    )


@pytest.mark.parametrize(("length", "margin"), [(0.14, 0.13), (0.21, 0.001), (0.31, 0.13)])
def test_a_spatial_basis_approximates_its_kernel(length, margin):
    """Exact at the reference length; within a factor of 1.5, correlations differ by less than 0.13."""
    layout = Grid(10)
    basis = priors.spatial(layout).make_basis(0.21)
    covariance = basis.tall @ np.diag(basis.variances(np.log(length), 0.0)) @ basis.wide
    deviation = np.sqrt(np.diag(covariance))
    distances = np.sum((layout.positions[:, None] - layout.positions) ** 2, axis=2)
    expected = np.exp(-distances / (2 * length**2))
    assert np.abs(covariance / np.outer(deviation, deviation) - expected).max() < margin


def test_maps_are_those_of_the_positions(start):
    maps = draw_maps(start.centre[None], start.model)
    assert maps.shape == (1, 16, 3)
