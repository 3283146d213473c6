"""Test the discrimination model: gradients, recovery of parameters, and weights of feature blocks."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from strategies import seeds
from vseg import Grid, Responses, designs
from vseg.models import Task, base_rate, chance, discrimination, distance_only
from vseg.models.discrimination import _predict, cost


@given(seeds, st.integers(1, 3))
def test_gradients_equal_finite_differences(seed, blocks):
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(blocks + 3)
    apart, count = rng.gamma(1.0, 1.0, (30, blocks)) + 0.01, rng.integers(1, 5, 30).astype(float)
    given_ = (apart, np.floor(count * rng.random(30)), count, np.zeros(blocks + 3), np.ones(blocks + 3))
    slope, step = cost(theta, *given_)[1], 1e-6
    found = [
        (cost(theta + step * e, *given_)[0] - cost(theta - step * e, *given_)[0]) / (2 * step)
        for e in np.eye(blocks + 3)
    ]
    assert slope == pytest.approx(np.array(found), rel=1e-3, abs=1e-4)


@given(seeds)
def test_predictions_are_probabilities_that_fall_with_distance(seed):
    rng = np.random.default_rng(seed)
    q = _predict(5 * rng.standard_normal(4), np.linspace(0, 100, 50)[:, None])[0]
    assert ((q >= 0) & (q <= 1)).all()
    assert (np.diff(q) <= 1e-12).all()


def observed(x, rule, blocks=12):
    """Simulate answers on an 8x8 grid that follow a rule of the distance of x."""
    rng = np.random.default_rng(0)
    pairs = designs.scattered(Grid(8), segments=3, seed=1)
    i, j = np.tile(pairs.i, blocks), np.tile(pairs.j, blocks)
    q = rule(np.linalg.norm(x[i] - x[j], axis=1))
    return (
        Responses(Grid(8), i, j, rng.random(len(i)) < q),
        pairs,
        rule(np.linalg.norm(x[pairs.i] - x[pairs.j], axis=1)),
    )


def test_a_rule_of_features_is_recovered():
    x = np.random.default_rng(2).standard_normal((64, 2))
    responses, pairs, q = observed(x, lambda d: 0.05 + 0.9 * np.exp(-((d / 1.5) ** 2)))
    fitted = discrimination({"image": x})(Task(responses), seed=0)
    assert np.abs(fitted.same_probability("image", pairs) - q).mean() < 0.03
    assert fitted.parameters["beta"] == pytest.approx(2, abs=0.4)
    assert fitted.parameters["slips"] == pytest.approx([0.05, 0.05], abs=0.03)


def test_a_rule_of_distance_is_recovered():
    responses, pairs, q = observed(Grid(8).positions, lambda d: 0.02 + 0.96 * np.exp(-d / 0.3))
    fitted = distance_only()(Task(responses), seed=0)
    assert np.abs(fitted.same_probability("image", pairs) - q).mean() < 0.03


def test_the_informative_block_has_the_larger_weight(task, nats):
    """The answers depend on colour and not on local contrast."""
    both = discrimination("lab+contrast")(task, seed=0)
    colour, near = both.parameters["weights"]
    assert colour > 5 * near
    order = [discrimination("lab"), distance_only(), base_rate(), chance()]
    costs = [nats(family(task, seed=0)) for family in order]
    assert costs[0] < costs[1] <= costs[2] + 0.01
    assert costs[2] < costs[3]


def test_names_and_seeds(task):
    assert distance_only().__name__ == "distance_only"
    one, two = (discrimination("lab")(task, seed=3) for _ in range(2))
    assert one.theta.tolist() == two.theta.tolist()
