"""Chains that were warmed up on earlier answers: their coordinates, and that they draw from the posterior."""

import numpy as np
import pytest

import vseg
from vseg import Grid
from vseg.adaptive.state import draw_maps, warm_up_chains
from vseg.bayes import priors
from vseg.bayes.evidence import fit_laplace, initial_fields
from vseg.bayes.hmc import add_low_rank, whiten_low_rank
from vseg.bayes.joint_model import HYPERPARAMETERS
from vseg.bayes.joint_sampling import prepare_starts, sample_joint
from vseg.bayes.lapses import CatchCounts
from vseg.bayes.model import count_answers, curvature, helmert_contrasts

LAYOUT, SEGMENTS = Grid(6), 3


@pytest.fixture(scope="module")
def fitted():
    """Ninety answers, the first sixty of them, and a fit to these."""
    truth = vseg.stimuli.random_maps(LAYOUT, segments=SEGMENTS, entropy=0.4, seed=4)
    pairs = vseg.designs.covering(LAYOUT, trials=90, seed=1)
    responses = vseg.simulate(truth, pairs, seed=2)
    some = vseg.Responses(LAYOUT, responses.i[:60], responses.j[:60], responses.same[:60])
    prior = priors.spatial(LAYOUT, kernel="rbf", lengths=[0.25], scales=[2.0])
    first = initial_fields(some.tally(), SEGMENTS, np.random.default_rng(0))
    fit = fit_laplace(count_answers(some.tally()), prior, prior.start, first)
    return count_answers(responses.tally()), count_answers(some.tally()), fit


def test_whitened_coordinates_have_unit_curvature(fitted):
    """Exactly within the basis; elsewhere the answers tell next to nothing. The two maps are each other's transpose."""
    _, answers, fit = fitted
    whitening = whiten_low_rank(answers, fit)
    basis, shrink = whitening.basis, whitening.shrink
    d = fit.mode.weights.size
    W = np.array([add_low_rank(x, shrink, basis) for x in np.eye(d)]).T
    H = curvature(fit.mode.weights, fit.root, helmert_contrasts(SEGMENTS), answers)
    within = np.linalg.eigvalsh(W.T @ H @ W)
    assert np.linalg.eigvalsh(H)[-1] > 3
    assert within[0] > 0.9
    assert within[-1] < 1.2
    np.testing.assert_allclose([add_low_rank(x, basis, shrink) for x in np.eye(d)], W, atol=1e-12)


def test_dependent_or_vanishing_gradients_give_no_nan(fitted):
    """Repeated pairs have dependent gradients; those of uniform maps vanish."""
    _, answers, fit = fitted
    twice = answers._replace(**{
        name: np.concatenate([getattr(answers, name)] * 2) for name in ("i", "j", "same", "trials")
    })  # fmt: skip
    flat = vseg.bayes.evidence.LaplaceFit(
        **{**vars(fit), "mode": fit.mode._replace(weights=0 * fit.mode.weights)}
    )
    for counts, at in [(twice, fit), (answers, flat)]:
        for part in whiten_low_rank(counts, at):
            assert np.isfinite(part).all()


def test_warm_chains_draw_from_the_posterior(fitted):
    """Chains warmed up on two thirds of the answers have the means and spreads of `joint_sampling` with all of them.

    The hyper-parameters are fixed there, too. The margins are five times the difference between two seeds.
    """
    answers, some, fit = fitted
    chains = warm_up_chains(some, [fit] * 4, np.random.SeedSequence(1))
    followed = draw_maps(answers, chains, 1000, np.random.SeedSequence(2))
    prior = priors.from_covariance(LAYOUT, fit.root.tall @ fit.root.wide, scales=[1.0])
    same = fit_laplace(answers, prior, prior.start, [fit.fields])
    [start] = prepare_starts(answers, same, prior, estimate_lapses=False, catch=CatchCounts(0, 0))
    fixed = np.zeros(HYPERPARAMETERS, bool)  # the floor too, which adaptive studies do not have
    start = start._replace(model=start.model._replace(prior=start.model.prior._replace(is_free=fixed)))
    anew = sample_joint([start] * 4, draws=1000, seeds=np.random.SeedSequence(3), budget=800).maps
    i, j = np.random.default_rng(0).integers(len(LAYOUT), size=(2, 60))
    one, other = (np.sum(maps[:, i] * maps[:, j], axis=2) for maps in (followed, anew))
    assert np.abs(one.mean(axis=0) - other.mean(axis=0)).mean() < 0.03
    assert abs(one.std(axis=0).mean() / other.std(axis=0).mean() - 1) < 0.1


def test_draws_do_not_depend_on_threads(fitted):
    answers, some, fit = fitted
    found = []
    for threads in (1, 3):
        chains = warm_up_chains(some, [fit] * 4, np.random.SeedSequence(1), threads)
        found.append(draw_maps(answers, chains, 8, np.random.SeedSequence(2), threads))
    np.testing.assert_array_equal(*found)
