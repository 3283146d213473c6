"""What every solver must do, on small problems."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize

import vseg
from strategies import scatters, seeds, some_responses
from vseg import Grid, Maps
from vseg.errors import InvalidInput
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.solvers import (
    SOLVERS,
    coordinate_descent,
    exponentiated_gradient,
    get_solver,
    solve_batch,
)
from vseg.reconstruction.solvers.solution import CONVERGED, ITERATIONS

BOTH = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


def problem(layout=None, segments=3, *, entropy=0.3, blocks=5, seed=0, **terms):
    layout = layout or Grid(10)
    truth = vseg.stimuli.random_maps(layout, segments=segments, entropy=entropy, seed=seed)
    pairs = vseg.designs.covering(layout, segments=segments, seed=seed)
    tally = vseg.simulate(truth, pairs, blocks=blocks, seed=seed).tally()
    return truth, build_objective(tally, segments, **terms)


@BOTH
@settings(max_examples=15)
@given(
    responses=some_responses(),
    segments=st.integers(2, 5),
    strength=st.sampled_from([0.0, 1.0, 30.0]),
    loss=st.sampled_from(["squared_error", "cross_entropy"]),
    kernel=st.sampled_from(["four", "eight", "gaussian:1"]),
)
def test_maps_stay_on_the_simplex_and_the_objective_decreases(
    solver, responses, segments, strength, loss, kernel
):
    """On any data, however few or contradictory, on any layout, with any kernel."""
    target = build_objective(responses.tally(), segments, strength=strength, loss=loss, kernel=kernel)
    solution = solver(target, seed=0, max_iterations=50)
    p = solution.probabilities
    assert np.isfinite(p).all()
    assert p.min() >= 0
    assert p.sum(axis=1) == pytest.approx(1, abs=1e-9)
    scale = max(solution.trace[0], 1e-6)
    assert (np.diff(solution.trace) <= 1e-9 * scale).all()
    assert solution.trace[-1] == pytest.approx(target.value(p), abs=1e-6 * scale)


@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
@pytest.mark.parametrize(("segments", "strength"), [(2, 10.0), (3, 1.0), (3, 0.0), (5, 1.0)])
def test_the_point_reached_is_stationary(segments, strength, loss):
    """First-order condition on the simplex: no exchange between two segments of a location helps."""
    _, target = problem(segments=segments, strength=strength, loss=loss)
    p = coordinate_descent(target, seed=1, tolerance=1e-12).probabilities
    slope = target.gradient(p)
    from_used = np.where(p > 1e-6, slope, -np.inf).max(axis=1)
    # Slopes are of the order of the number of partners; cross-entropy is steep next to the simplex' faces.
    assert (from_used - slope.min(axis=1)).max() < (1e-2 if loss == "squared_error" else 0.3)


@pytest.mark.parametrize("segments", [2, 3, 4])
def test_a_general_optimiser_finds_no_better_point_nearby(segments):
    """scipy's L-BFGS in softmax coordinates, started where coordinate descent stopped."""
    _, target = problem(Grid(6), segments, strength=1.0)
    p = coordinate_descent(target, seed=0, tolerance=1e-10).probabilities

    def value_and_slope(z):
        q = np.exp(z.reshape(p.shape) - z.reshape(p.shape).max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        g = target.gradient(q)
        return target.value(q), (q * (g - (q * g).sum(axis=1, keepdims=True))).ravel()

    start = np.log(np.maximum(p, 1e-9)).ravel()
    found = minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options={"maxiter": 300})
    assert target.value(p) <= found.fun * (1 + 1e-6)


@pytest.mark.parametrize("segments", [2, 3])
def test_closed_forms_and_the_general_kernel_agree(segments):
    """K = 2 and 3 have kernels of their own; the K-generic one must reach the same minimum."""
    from vseg.reconstruction.solvers.row_updates import update_any_segments

    _, target = problem(segments=segments, strength=1.0)
    p = coordinate_descent(target, seed=0, tolerance=1e-11).probabilities
    q, rows = p.copy(), np.arange(len(p))
    for _ in range(200):
        update_any_segments(
            q, target.tested, target.code, target.strength, target.smoothness.matrix, 1.0, rows
        )
    assert q == pytest.approx(p, abs=1e-3)
    rough = np.random.default_rng(0).dirichlet(np.full(segments, 5.0), len(p))
    for _ in range(500):
        update_any_segments(
            rough, target.tested, target.code, target.strength, target.smoothness.matrix, 1.4, rows
        )
    assert target.value(rough) == pytest.approx(target.value(p), rel=0.02)


@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
def test_both_solvers_reach_the_same_objective(loss):
    """With λ ≥ 1 few starts end in another minimum, and those lie within 1 % here; 5 % counts as bad."""
    for seed in range(3):
        _, target = problem(strength=2.0, loss=loss, seed=seed)
        ours = coordinate_descent(target, seed=0)
        paper = exponentiated_gradient(target, seed=0, starts=2, tolerance=1e-6)
        assert target.value(ours.probabilities) == pytest.approx(target.value(paper.probabilities), rel=1e-2)


def test_one_hot_maps_are_recovered_exactly():
    """From random starts at λ = 0 the paper's algorithm finds none of these perfectly."""
    for seed in range(4):
        truth = vseg.stimuli.random_maps(Grid(16), segments=3, entropy=0.0, xi=3.2, min_area=0.15, seed=seed)
        pairs = vseg.designs.scattered(truth.layout, segments=3, seed=seed)
        target = build_objective(vseg.simulate(truth, pairs, seed=seed).tally(), 3)
        found = Maps(truth.layout, coordinate_descent(target, seed=seed).probabilities)
        assert vseg.metrics.label_accuracy(found, truth) == 1


def test_locations_without_answers_are_filled_in_smoothly():
    """An untested location has no data; at λ = 0 it takes after its neighbours, not after the start."""
    truth = Maps.one_hot(Grid(8), np.repeat([0, 1], 32))
    pairs = vseg.designs.all_pairs(truth.layout)
    untested = 8 * 1 + 3
    pairs = pairs.take((pairs.i != untested) & (pairs.j != untested))
    target = build_objective(vseg.simulate(truth, pairs, seed=0).tally(), 2)
    found = Maps(truth.layout, coordinate_descent(target, seed=0).probabilities).align_to(truth)
    assert np.array_equal(found.labels, truth.labels)


@settings(max_examples=10)
@given(layout=scatters(), seed=seeds)
def test_a_free_layout_is_fitted_like_a_grid(layout, seed):
    truth = vseg.stimuli.random_maps(layout, segments=2, entropy=0.05, min_area=0.2, seed=seed)
    tally = vseg.simulate(truth, vseg.designs.all_pairs(layout), blocks=3, seed=seed).tally()
    solution = coordinate_descent(build_objective(tally, 2, strength=0.1), seed=seed)
    assert vseg.metrics.label_accuracy(Maps(layout, solution.probabilities), truth) > 0.8


def test_large_scatters_have_several_levels():
    from vseg.reconstruction.kernels import build_smoothness
    from vseg.reconstruction.solvers.coarse_to_fine import build_levels

    layout = vseg.Scatter(np.random.default_rng(0).random((400, 2)))
    level = build_levels(build_smoothness(layout, "gaussian:1"))
    assert len(level.size) >= 3
    assert 16 <= level.size[-1] <= 40
    truth, target = problem(layout, 3, entropy=0.2, strength=1.0)
    found = Maps(layout, coordinate_descent(target, seed=0).probabilities)
    assert vseg.metrics.label_accuracy(found, truth) > 0.9


@pytest.mark.parametrize("kernel", ["four", "eight", "gaussian:1", "gaussian:2"])
def test_a_slow_wave_costs_the_same_on_every_level(kernel):
    """Each level's penalty is scaled to that, whatever the kernel: coarse fits are as smooth as fine."""
    from vseg.reconstruction.kernels import build_smoothness
    from vseg.reconstruction.solvers.coarse_to_fine import build_levels

    level = build_levels(build_smoothness(Grid(32), kernel))
    cost = []
    for depth, n in enumerate(level.size):
        x = (np.arange(int(np.sqrt(n))) + 0.5) / np.sqrt(n)
        wave = np.cos(np.pi * np.tile(x, len(x)))
        at = level.at[depth]
        start = level.r_start[at + depth : at + depth + n + 1]
        total = level.diagonal[at : at + n] @ wave**2
        for i in range(n):
            row = slice(start[i], start[i + 1])
            total += wave[i] * level.r_value[row] @ wave[level.r_column[row]]
        cost.append(total)
    assert cost == pytest.approx([cost[0]] * len(cost), rel=0.05)


@BOTH
def test_same_seed_same_maps(solver):
    _, target = problem(strength=0.5)
    first, second = (solver(target, seed=4, max_iterations=30).probabilities for _ in range(2))
    assert np.array_equal(first, second)


@BOTH
def test_a_warm_start_continues_from_the_given_maps(solver):
    _, target = problem(strength=1.0)
    done = solver(target, seed=0)
    again = solver(target, done.probabilities, seed=1)
    assert again.iterations < done.iterations
    assert again.trace[-1] <= done.trace[-1] * (1 + 1e-9)


def test_coordinate_descent_uses_a_start_as_given():
    """At a minimum, which it does not leave, nothing changes; certain rows included."""
    _, target = problem(strength=0.0, entropy=0.0)
    done = coordinate_descent(target, seed=0, tolerance=1e-12)
    again = coordinate_descent(target, done.probabilities, seed=1, max_iterations=1)
    np.testing.assert_allclose(again.probabilities, done.probabilities, atol=1e-4)
    assert again.trace[0] <= target.value(done.probabilities) + 1e-12


@BOTH
def test_the_status_tells_that_the_iteration_limit_was_reached(solver):
    _, target = problem(strength=1.0)
    solution = solver(target, seed=0, tolerance=1e-15, max_iterations=3)
    assert solution.status == ITERATIONS
    assert not solution.converged
    assert solution.iterations == 3


def test_batches_do_not_depend_on_threads():
    targets = [problem(Grid(7), seed=s, strength=1.0)[1] for s in range(6)]
    one, two = (solve_batch(targets, seed=5, threads=threads) for threads in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.probabilities, b.probabilities)
    warm = solve_batch(targets, [a.probabilities for a in one], seed=5)
    assert all(after.iterations <= before.iterations for after, before in zip(warm, one, strict=True))


class TestExponentiatedGradient:
    def test_the_papers_rule_stops_on_one_small_change(self):
        _, target = problem(strength=1.0)
        run = exponentiated_gradient(target, seed=0, learning_rate=0.1, epsilon=1e-3)
        changes = np.abs(np.diff(run.trace))
        assert run.status == CONVERGED
        assert changes[-1] < 1e-3
        assert (changes[:-1] >= 1e-3).all()

    def test_uniform_maps_are_a_fixed_point(self):
        """Why the start is random: Algorithm 1 never leaves p = 1/K."""
        _, target = problem(strength=1.0)
        uniform = np.full((100, 3), 1 / 3)
        run = exponentiated_gradient(target, uniform, seed=0, max_iterations=5, learning_rate=0.1)
        assert run.probabilities == pytest.approx(uniform)

    def test_a_start_is_used_as_given(self):
        """The first step of Algorithm 1 from the given maps, not from maps moved towards 1/K."""
        _, target = problem(strength=1.0)
        start = np.random.default_rng(0).dirichlet(np.full(3, 0.3), 100)
        start[start < 1e-9] = 1e-9
        start /= start.sum(axis=1, keepdims=True)
        run = exponentiated_gradient(target, start, seed=0, max_iterations=1, learning_rate=0.1)
        step = start * np.exp(-0.1 * target.gradient(start))
        np.testing.assert_allclose(run.probabilities, step / step.sum(axis=1, keepdims=True), rtol=1e-9)

    def test_only_locations_with_zeros_are_moved(self):
        """Multiplication never leaves zero: those rows start 0.1 % towards 1/K, the others as given."""
        _, target = problem(strength=1.0)
        start = np.full((100, 3), [0.5, 0.3, 0.2])
        start[::2] = [1, 0, 0]
        begin = start.copy()
        begin[::2] = 0.999 * start[::2] + 0.001 / 3
        run = exponentiated_gradient(target, start, seed=0, max_iterations=1, learning_rate=0.1)
        step = begin * np.exp(-0.1 * target.gradient(begin))
        np.testing.assert_allclose(run.probabilities, step / step.sum(axis=1, keepdims=True), rtol=1e-9)

    def test_cross_entropy_on_one_hot_answers_stays_finite(self):
        """Without a floor and the log domain, five of six such fits turned NaN."""
        _, target = problem(entropy=0.0, blocks=1, loss="cross_entropy")
        run = exponentiated_gradient(target, seed=0, max_iterations=300)
        assert np.isfinite(run.trace).all()

    def test_the_distance_to_a_truth_is_traced(self):
        truth, target = problem(strength=3.0)
        run = exponentiated_gradient(target, seed=0, truth=truth)
        assert len(run.errors) == run.iterations
        assert run.errors[-1] < run.errors[0]
        found = Maps(truth.layout, run.probabilities)
        assert run.errors[-1] == pytest.approx(vseg.metrics.mae(found, truth))

    def test_more_starts_are_never_worse(self):
        _, target = problem(Grid(6), entropy=0.1, strength=0.0)
        values = [exponentiated_gradient(target, seed=0, starts=n).trace[-1] for n in (1, 4)]
        assert values[1] <= values[0]

    def test_invalid_learning_rate_is_rejected(self):
        _, target = problem(Grid(4))
        with pytest.raises(InvalidInput, match="learning rate is a positive number, got -1"):
            exponentiated_gradient(target, seed=0, learning_rate=-1)
        for epsilon in (-1, np.nan):
            with pytest.raises(InvalidInput, match=f"epsilon is a number from 0 up, got {epsilon}"):
                exponentiated_gradient(target, seed=0, epsilon=epsilon)


def test_unknown_solver():
    with pytest.raises(InvalidInput, match="Unknown solver 'newton'; choose one of coordinate_descent"):
        get_solver("newton")


def test_smoothness_of_zero_is_the_limit_of_small_ones():
    _, target = problem(strength=0.0)
    exact = coordinate_descent(target, seed=0)
    near = coordinate_descent(replace(target, strength=1e-9), seed=0)
    assert near.trace[-1] == pytest.approx(exact.trace[-1], rel=1e-3)
