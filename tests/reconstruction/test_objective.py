import numpy as np
import pytest
from hypothesis import given, strategies as st

from strategies import seeds, some_responses
from vseg import Grid, Pairs, Responses
from vseg.data.responses import Tally
from vseg.errors import InvalidInput
from vseg.reconstruction.kernels import build_smoothness
from vseg.reconstruction.objective import build_objective

terms = st.fixed_dictionaries(
    {
        "loss": st.sampled_from(["squared_error", "cross_entropy"]),
        "weights": st.sampled_from(["trials", "pairs"]),
        "kernel": st.sampled_from(["four", "eight", "gaussian:1"]),
        "strength": st.sampled_from([0.0, 0.5, 10.0]),
    }
)


def inner_maps(n: int, K: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(K, 5.0), n)


@given(responses=some_responses(), terms=terms, seed=seeds)
def test_gradient_is_the_finite_difference(responses, terms, seed):
    """S1 prints the squared error's gradient without its minus sign; this is the right one."""
    problem = build_objective(responses.tally(), 3, **terms)
    p = inner_maps(len(responses.layout), 3, seed)
    direction = np.random.default_rng(seed + 1).standard_normal(p.shape)
    step = 1e-6
    numeric = (problem.value(p + step * direction) - problem.value(p - step * direction)) / (2 * step)
    assert np.sum(problem.gradient(p) * direction) == pytest.approx(numeric, rel=1e-4, abs=1e-5)


@given(responses=some_responses(), terms=terms, seed=seeds, order=st.permutations([0, 1, 2]))
def test_objective_does_not_depend_on_segment_order(responses, terms, seed, order):
    """Labels are arbitrary (Eq. 4), so no result may depend on their order."""
    problem = build_objective(responses.tally(), 3, **terms)
    p = inner_maps(len(responses.layout), 3, seed)
    assert problem.value(p[:, order]) == pytest.approx(problem.value(p))


def test_the_sums_of_equation_7_by_hand():
    responses = Responses(Grid(3), [0, 0, 0, 4], [1, 1, 1, 8], [1, 1, 0, 0])
    p = inner_maps(9, 2, seed=0)
    q = p[0] @ p[1], p[4] @ p[8]
    penalty = build_smoothness(Grid(3)).penalty(p)
    by_pair = build_objective(responses.tally(), 2, strength=3.0, weights="pairs")
    assert by_pair.terms(p) == pytest.approx(((2 / 3 - q[0]) ** 2 + q[1] ** 2, 3 * penalty))
    by_trial = build_objective(responses.tally(), 2, strength=3.0)
    assert by_trial.terms(p)[0] == pytest.approx((3 * (2 / 3 - q[0]) ** 2 + q[1] ** 2) / 2)
    likelihood = build_objective(responses.tally(), 2, loss="cross_entropy")
    nll = -(2 * np.log(q[0]) + np.log(1 - q[0]) + np.log(1 - q[1]))
    assert likelihood.value(p) == pytest.approx(nll / 2)  # mean n = 2


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"segments": 1}, "number of segments is a whole number from 2 up, got 1"),
        ({"segments": 2.5}, "got 2.5"),
        ({"strength": -1.0}, "λ is a number from 0 up to 1e\\+12, got -1.0"),
        ({"strength": np.nan}, "got nan"),
        ({"loss": "hinge"}, "Unknown loss 'hinge'"),
        ({"weights": "rows"}, "Unknown weights 'rows'; choose one of trials, pairs"),
        (
            {"kernel": build_smoothness(Grid(4))},
            "The kernel is for a 4x4 grid, but the pairs lie on a 3x3 grid",
        ),
    ],
)
def test_bad_settings(settings, sentence):
    tally = Tally(Pairs(Grid(3), [0], [1]), [1], [1])
    with pytest.raises(InvalidInput, match=sentence):
        build_objective(tally, **{"segments": 2, **settings})


def test_no_responses():
    with pytest.raises(InvalidInput, match="no responses to fit"):
        build_objective(Tally(Pairs(Grid(3), [], []), [], []), 2)
