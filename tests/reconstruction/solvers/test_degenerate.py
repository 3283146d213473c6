"""Data that no one would plan and settings that no one should give: an answer or a sentence, never NaN or a hang."""

import numpy as np
import pytest

import vseg
from vseg import Grid, Maps, Pairs
from vseg.data.responses import Tally
from vseg.errors import InvalidInput, NotConverged
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.online import OnlineReconstruction
from vseg.reconstruction.solvers import SOLVERS, coordinate_descent, exponentiated_gradient, solve_batch
from vseg.reconstruction.solvers.solution import DIVERGED

BOTH = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


def tally_of(layout, same, n=1, **design):
    pairs = vseg.designs.covering(layout, seed=0, **(design or {"segments": 2}))
    k = np.broadcast_to(same(pairs) if callable(same) else same, len(pairs))
    return Tally(pairs, np.round(k * n), np.full(len(pairs), n))


def coin(pairs):
    return np.random.default_rng(0).integers(0, 2, len(pairs))


CASES = {
    "all same": tally_of(Grid(8), 1),
    "all different": tally_of(Grid(8), 0),
    "coin flips": tally_of(Grid(8), coin),
    "always half": tally_of(Grid(8), 0.5, n=2),
    "one pair": Tally(Pairs(Grid(8), [0], [63]), [1], [1]),
    "a million repeats of one pair": Tally(Pairs(Grid(8), [0, 1], [63, 2]), [400_000, 1], [1_000_000, 1]),
    "two parts that never meet": Tally(Pairs(Grid(4), [0, 1, 8, 9], [1, 2, 9, 10]), [1, 0, 1, 0], [1] * 4),
    "smallest grid": tally_of(Grid(3), coin),
}


@pytest.mark.parametrize("strength", [0.0, 1e-12, 1.0, 10.0, 1e8])
@pytest.mark.parametrize("segments", [2, 3, 4, 20])
@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
@pytest.mark.parametrize("name", CASES)
def test_any_data_converges_with_the_defaults(name, loss, segments, strength):
    """Someone who always answers 'same' fits perfectly: an objective of zero must not keep the solver going."""
    target = build_objective(CASES[name], segments, strength=strength, loss=loss)
    solution = coordinate_descent(target, seed=0)
    assert solution.converged
    assert solution.probabilities.min() >= 0
    assert solution.probabilities.sum(axis=1) == pytest.approx(1, abs=1e-9)
    assert solution.trace[-1] == pytest.approx(target.value(solution.probabilities), rel=1e-6, abs=1e-6)


@BOTH
@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
def test_the_solver_leaves_a_certain_but_wrong_start(solver, loss):
    """At one-hot maps the cross-entropy is so curved that plain Newton steps never get away."""
    target = build_objective(CASES["coin flips"], 3, strength=0.5, loss=loss)
    wrong = Maps.one_hot(Grid(8), np.zeros(64, int), 3).probabilities
    cold = solver(target, seed=0).trace[-1]
    assert solver(target, wrong, seed=0).trace[-1] <= 1.2 * cold


def test_live_cross_entropy_follows_contradicting_answers():
    """Sixty answers against everything before: the maps must not stay where they were."""
    truth = Maps.one_hot(Grid(8), np.repeat([0, 1], 32))
    pairs = vseg.designs.covering(truth.layout, segments=2, seed=0)
    first = vseg.simulate(truth, pairs, seed=0)
    live = OnlineReconstruction(
        Grid(8), segments=3, smoothness=0.1, loss="cross_entropy", responses=first, seed=0
    )
    live.add(first.i[:60], first.j[:60], ~first.same[:60])
    live.settle()
    every = vseg.data.responses.concatenate(
        [first, vseg.Responses(Grid(8), first.i[:60], first.j[:60], ~first.same[:60])]
    )
    target = build_objective(every.tally(), 3, strength=0.1, loss="cross_entropy")
    cold = coordinate_descent(target, seed=0).trace[-1]
    assert target.value(live.maps.probabilities) <= 1.1 * cold


@pytest.mark.parametrize("rate", [4.0, 50.0, 1e300])
def test_divergence_with_too_large_a_learning_rate_is_reported(rate):
    target = build_objective(CASES["coin flips"], 3, strength=1.0)
    with np.errstate(all="ignore"):
        run = exponentiated_gradient(target, seed=0, learning_rate=rate)
    assert run.status == DIVERGED
    responses = vseg.simulate(
        vseg.stimuli.random_maps(Grid(8), segments=3, seed=0),
        vseg.designs.covering(Grid(8), segments=3, seed=0), seed=0,
    )  # fmt: skip
    with np.errstate(all="ignore"), pytest.raises(NotConverged, match="smaller learning rate"):
        vseg.reconstruct(
            responses, segments=3, smoothness=1.0, solver="exponentiated_gradient", learning_rate=rate, seed=0
        )


@BOTH
def test_seeds_of_any_whole_number(solver):
    target = build_objective(CASES["coin flips"], 3, strength=1.0)
    for seed in (np.int64(3), np.uint8(3), 3, 2**70):
        assert solver(target, seed=seed, max_iterations=3).iterations <= 3
    for seed in (-1, 1.5, None, "one"):
        with pytest.raises(InvalidInput, match="A seed is a whole number from 0 up, got"):
            solver(target, seed=seed)


@BOTH
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"starts": 0}, "number of starts is a whole number from 1 up, got 0"),
        ({"starts": 1.5}, "got 1.5"),
        ({"max_iterations": 0}, "number of iterations is a whole number from 1 up, got 0"),
        ({"max_iterations": "many"}, "got 'many'"),
        ({"tolerance": -1}, "tolerance is a number from 0 up, got -1"),
        ({"tolerance": np.nan}, "got nan"),
        ({"start": np.zeros((63, 3))}, r"has shape \(64, 3\), got \(63, 3\)"),
        ({"start": np.full((64, 2), 0.5)}, r"got \(64, 2\)"),
        ({"start": np.full((64, 3), 0.5)}, "sums to 1 at every location"),
        ({"start": np.full((64, 3), np.nan)}, "sums to 1 at every location"),
    ],
)
def test_invalid_settings_are_rejected(solver, settings, sentence):
    target = build_objective(CASES["coin flips"], 3, strength=1.0)
    with pytest.raises(InvalidInput, match=sentence):
        solver(target, seed=0, **settings)


def test_an_empty_batch_is_empty():
    assert solve_batch([], seed=0) == []
    with pytest.raises(InvalidInput, match="number of threads is a whole number from 1 up, got -1"):
        solve_batch([], seed=0, threads=-1)


def test_more_starts_find_no_worse_objective():
    target = build_objective(CASES["coin flips"], 4, strength=0.0)
    one, many = (coordinate_descent(target, seed=0, starts=starts).trace[-1] for starts in (1, 8))
    assert many <= one
