"""The compiled Algorithm 1 takes the same steps as the solver and as PyTorch."""

import numpy as np
import pytest

from reproduction.paper import simulation
from reproduction.paper.algorithm import descend, random_start
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.solvers import exponentiated_gradient

TRUTH = simulation.truth(size=10, amplitude=3.0, xi=2.0)
TALLY = simulation.simulate_tally(TRUTH, blocks=4, seed=0)


def problem(strength, loss="squared_error", kernel="four"):
    return build_objective(TALLY, 3, strength=strength, loss=loss, kernel=kernel, weights="pairs")


@pytest.mark.parametrize(
    ("strength", "rate", "loss", "kernel"),
    [
        (0.0, 0.3, "squared_error", "four"),
        (10.0, 0.05, "squared_error", "four"),
        (10.0, 0.05, "squared_error", "gaussian:2"),
        (0.0, 0.1, "cross_entropy", "four"),
    ],
)
def test_it_takes_the_steps_of_the_solver(strength, rate, loss, kernel):
    target = problem(strength, loss, kernel)
    start = random_start(target, 5)
    p, took = descend(target, start, rate, epsilon=0.0, max_iterations=40)
    theirs = exponentiated_gradient(target, start, seed=0, learning_rate=rate, epsilon=0.0, max_iterations=40)
    assert took == 40
    np.testing.assert_allclose(p, theirs.probabilities, atol=1e-9)
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_it_stops_when_the_loss_hardly_changes():
    target = problem(10.0)
    p, took = descend(target, random_start(target, 0), 0.05, epsilon=1e-3)
    further, _ = descend(target, p, 0.05, epsilon=0.0, max_iterations=1)
    assert 10 < took < 5000
    assert abs(target.value(p) - target.value(further)) < 1e-3


def test_the_start_is_not_modified():
    target = problem(0.0)
    start = random_start(target, 1)
    before = start.copy()
    descend(target, start, 0.3, max_iterations=5)
    assert np.array_equal(start, before)


def test_pytorch_takes_the_same_steps():
    """Single precision: after 30 steps the losses agree to 1e-4 of themselves."""
    pytest.importorskip("torch")
    from reproduction.paper.pytorch import PyTorchDescent, time_fit

    target = problem(10.0)
    start = random_start(target, 2)
    run = PyTorchDescent(target, start, 0.05)
    losses = [run.step() for _ in range(31)]
    ours, _ = descend(target, start, 0.05, epsilon=0.0, max_iterations=30)
    assert losses[0] == pytest.approx(target.value(start), rel=1e-4)
    assert losses[30] == pytest.approx(target.value(ours), rel=1e-4)
    assert min(time_fit(target, 0.05, seed=0)) > 0


def test_pytorch_rejects_weighted_pairs():
    pytest.importorskip("torch")
    from reproduction.paper.pytorch import PyTorchDescent
    from vseg.data.responses import Tally
    from vseg.errors import InvalidInput

    uneven = Tally(TALLY.pairs, np.minimum(TALLY.k, 1), 1 + np.arange(len(TALLY)) % 3)
    target = build_objective(uneven, 3)
    with pytest.raises(InvalidInput, match="does not weight pairs"):
        PyTorchDescent(target, random_start(target, 0), 0.1)
