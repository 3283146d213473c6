import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from strategies import seeds, some_responses
from vseg import Grid
from vseg.bayes import priors
from vseg.bayes.evidence import find_mode, log_odds_contrasts, project_fields
from vseg.bayes.linear_algebra import dot4
from vseg.bayes.model import compute_maps, cost_and_gradient, count_answers, curvature, helmert_contrasts

GAMMAS = (0.03, 0.02)


def problem(responses, segments, seed, scale=2.0):
    tally = responses.tally()
    root = priors.spatial(tally.layout).families[0][2].root.rescale(scale)
    u = np.random.default_rng(seed).standard_normal((segments - 1, len(root.wide)))
    return tally, root, helmert_contrasts(segments), u


@pytest.mark.parametrize("segments", [2, 3, 5])
def test_contrasts_are_orthonormal_and_sum_to_zero(segments):
    q = helmert_contrasts(segments)
    np.testing.assert_allclose(q.T @ q, np.eye(segments - 1), atol=1e-12)
    np.testing.assert_allclose(q.sum(axis=0), 0, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(responses=some_responses(), segments=st.integers(2, 5), seed=seeds)
def test_the_gradient_equals_finite_differences(responses, segments, seed):
    tally, root, contrasts, u = problem(responses, segments, seed)
    answers = count_answers(tally, *GAMMAS)
    _, gradient = cost_and_gradient(u, root, contrasts, answers, True)
    direction = np.random.default_rng(seed + 1).standard_normal(u.shape)
    step = 1e-5
    ahead, behind = (
        cost_and_gradient(u + sign * step * direction, root, contrasts, answers, True)[0] for sign in (1, -1)
    )
    assert (ahead - behind) / (2 * step) == pytest.approx(np.sum(gradient * direction), rel=1e-4, abs=1e-5)
    np.testing.assert_array_equal(cost_and_gradient(u, root, contrasts, answers, False)[1], gradient)


@settings(max_examples=20, deadline=None)
@given(responses=some_responses(), segments=st.integers(2, 4), seed=seeds)
def test_the_cost_equals_the_formula(responses, segments, seed):
    """The formula in NumPy: q = γ₀ + (1-γ₀-γ₁)<p_i, p_j>, the answers' log-likelihood, ½|u|²."""
    tally, root, contrasts, u = problem(responses, segments, seed)
    f = (contrasts @ (u @ root.wide)).T
    p = np.exp(f - f.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(compute_maps(u, root, contrasts), p, atol=1e-12)
    q = GAMMAS[0] + (1 - sum(GAMMAS)) * np.sum(p[tally.pairs.i] * p[tally.pairs.j], axis=1)
    expected = -np.sum(tally.k * np.log(q) + (tally.n - tally.k) * np.log(1 - q)) + 0.5 * np.sum(u**2)
    assert cost_and_gradient(u, root, contrasts, count_answers(tally, *GAMMAS), True)[0] == pytest.approx(
        expected, rel=1e-6
    )


@settings(max_examples=10, deadline=None)
@given(responses=some_responses(), segments=st.integers(2, 4), seed=seeds)
def test_the_curvature_is_fisher_information_plus_prior(responses, segments, seed):
    """I + JᵀWJ with J = ∂q/∂u by finite differences and W = n/(q(1-q))."""
    tally, root, contrasts, u = problem(responses, segments, seed)

    def q(flat):
        p = compute_maps(flat.reshape(u.shape), root, contrasts)
        return GAMMAS[0] + (1 - sum(GAMMAS)) * np.sum(p[tally.pairs.i] * p[tally.pairs.j], axis=1)

    flat, step = u.ravel(), 1e-5
    J = np.stack([(q(flat + step * e) - q(flat - step * e)) / (2 * step) for e in np.eye(u.size)], axis=1)
    weight = tally.n / (q(flat) * (1 - q(flat)))
    expected = np.eye(u.size) + J.T @ (weight[:, None] * J)
    found = curvature(u, root, contrasts, count_answers(tally, *GAMMAS))
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


@settings(max_examples=20, deadline=None)
@given(responses=some_responses(), seed=seeds)
def test_labels_do_not_matter(responses, seed):
    """Permuted maps have rotated weights, the same cost, and the same evidence."""
    tally, root, contrasts, u = problem(responses, 3, seed)
    rotated = contrasts.T @ np.eye(3)[[2, 0, 1]] @ contrasts @ u
    p = compute_maps(u, root, contrasts)
    np.testing.assert_allclose(compute_maps(rotated, root, contrasts), p[:, [2, 0, 1]], atol=1e-10)
    answers = count_answers(tally)
    values = [cost_and_gradient(weights, root, contrasts, answers, True)[0] for weights in (u, rotated)]
    assert values[0] == pytest.approx(values[1], rel=1e-9)


@settings(max_examples=15, deadline=None)
@given(responses=some_responses(), segments=st.integers(2, 4), seed=seeds)
def test_the_mode_is_a_minimum(responses, segments, seed):
    """The gradient vanishes there, and the cost is not above that of the start."""
    tally, root, contrasts, u = problem(responses, segments, seed)
    answers = count_answers(tally)
    found = find_mode(answers, root, [u], tolerance=1e-10)
    value, gradient = cost_and_gradient(found.weights, root, contrasts, answers, True)
    assert value == found.cost <= cost_and_gradient(u, root, contrasts, answers, True)[0]
    assert np.abs(gradient).max() < 0.02 * (1 + abs(value))


def test_projected_fields_give_the_fields_back():
    """Up to the noise that is assumed in them, which matters little for smooth fields."""
    root = priors.spatial(Grid(8)).families[0][1].root.rescale(5.0)
    u = np.random.default_rng(0).standard_normal((2, len(root.wide)))
    fields = u @ root.wide
    again = project_fields(fields, root) @ root.wide
    assert np.corrcoef(fields.ravel(), again.ravel())[0, 1] > 0.98
    p = compute_maps(u, root, helmert_contrasts(3))
    np.testing.assert_allclose(log_odds_contrasts(p, 1e-300), fields, atol=1e-8)


@given(size=st.integers(0, 40), seed=seeds)
def test_dot4(size, seed):
    x, y = np.random.default_rng(seed).standard_normal((2, size))
    assert dot4(x, y) == pytest.approx(float(x @ y), abs=1e-12)
