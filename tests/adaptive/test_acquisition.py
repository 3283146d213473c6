import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import vseg
from strategies import seeds
from vseg import Grid, Pairs
from vseg.adaptive import RULES, State, next_pairs, select_candidates
from vseg.errors import InvalidInput

LAYOUT = Grid(6)


def make_state(trials, seed=0, segments=2):
    """Return a state after this many answers, and the answers."""
    truth = vseg.stimuli.random_maps(LAYOUT, segments=segments, entropy=0.2, seed=4)
    pairs = vseg.designs.covering(LAYOUT, trials=trials, seed=1)
    responses = vseg.simulate(truth, pairs, seed=2)
    return State(LAYOUT, segments=segments, responses=responses, draws=16, seed=seed), responses


@pytest.fixture(scope="module")
def state():
    return make_state(60)[0]


def as_set(pairs):
    return set(pairs)


@pytest.mark.parametrize("rule", RULES)
def test_chosen_pairs_are_new_and_reproducible(state, rule):
    chosen = next_pairs(state, 10, rule=rule, seed=3)
    assert len(chosen) == 10
    assert not as_set(chosen) & as_set(state.pairs)
    assert chosen == next_pairs(state, 10, rule=rule, seed=3)


def test_random_pairs_depend_on_the_seed(state):
    """On so small a grid every pair is a candidate, so only the random rule depends on the seed."""
    assert next_pairs(state, 10, rule="random", seed=3) != next_pairs(state, 10, rule="random", seed=4)


def test_rules_choose_differently(state):
    chosen = [as_set(next_pairs(state, 10, rule=rule, seed=3)) for rule in RULES]
    assert chosen[0] != chosen[1] != chosen[2] != chosen[0]


def test_a_session_opens_with_covering_pairs():
    """n/3 of them, in the same order for any seed and any batch size; then come the pairs that the rule chooses."""
    empty = State(LAYOUT, segments=2, seed=0)
    first = next_pairs(empty, 5, seed=0)
    assert first.partners.max() == 1
    more = next_pairs(empty, 12, pending=first, seed=1)
    assert not as_set(first) & as_set(more)
    opening = next_pairs(empty, 12, seed=2)
    assert opening.partners.max() == 1
    assert list(opening)[:5] == list(first)
    assert list(opening)[5:] == list(more)[:7]


def test_pending_pairs_count_as_asked(state):
    first = next_pairs(state, 6, seed=0)
    second = next_pairs(state, 6, pending=first, seed=0)
    assert not as_set(first) & as_set(second)


def test_pairs_are_repeated_only_after_all_were_asked():
    layout = Grid(3)
    i, j = np.triu_indices(9, 1)
    state = State(layout, segments=2, draws=8, seed=0)
    state.add(i[:-3], j[:-3], i[:-3] % 2)
    assert as_set(next_pairs(state, 3, seed=0)) == set(zip(i[-3:].tolist(), j[-3:].tolist(), strict=True))
    assert len(next_pairs(state, 5, seed=0)) == 3
    state.add(i[-3:], j[-3:], [1, 0, 1])
    assert len(next_pairs(state, 5, seed=0)) == 5


@settings(max_examples=20, deadline=None)
@given(seed=seeds, target=st.sampled_from(["maps", "pairs"]))
def test_the_first_choice_reduces_the_variance_most(seed, target):
    """Against the formula: Σ_y Cov(y, q)² / (Var q + E[q(1-q)])."""
    rng = np.random.default_rng(seed)
    draws = rng.dirichlet(np.full(3, 0.5), (20, 9))
    i, j = np.triu_indices(9, 1)
    candidates = np.stack([i, j], axis=1)
    chosen = select_candidates(draws, candidates, 3, target=target, rng=np.random.default_rng(1))
    q = np.einsum("smk,smk->sm", draws[:, i], draws[:, j])
    if target == "maps":
        Y = draws.reshape(20, -1)
    else:
        rng = np.random.default_rng(1)  # the pairs of the target, drawn as in `select_candidates`
        a = rng.integers(9, size=800)
        b = (a + rng.integers(1, 9, size=800)) % 9
        Y = np.einsum("smk,smk->sm", draws[:, a], draws[:, b])
    cov = (Y - Y.mean(axis=0)).T @ (q - q.mean(axis=0)) / 20
    score = np.sum(cov**2, axis=0) / (q.var(axis=0) + np.maximum((q * (1 - q)).mean(axis=0), 1e-3))
    assert score[chosen[0]] == pytest.approx(score.max(), rel=1e-9)
    assert len(set(chosen.tolist())) == 3


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_the_second_choice_takes_the_first_into_account(seed):
    """C ← C - C_t k_tᵀ/(V + R): the covariance of target and candidates after the first pair."""
    rng = np.random.default_rng(seed)
    draws = rng.dirichlet(np.full(2, 0.5), (30, 9))
    i, j = np.triu_indices(9, 1)
    first, second = select_candidates(draws, np.stack([i, j], axis=1), 2, rng=rng)
    q = np.einsum("smk,smk->sm", draws[:, i], draws[:, j])
    noise = np.maximum((q * (1 - q)).mean(axis=0), 1e-3)
    Y, Q = draws.reshape(30, -1) - draws.reshape(30, -1).mean(axis=0), q - q.mean(axis=0)
    cov, among = Y.T @ Q / 30, Q.T @ Q / 30
    total = among[first, first] + noise[first]
    cov = cov - np.outer(cov[:, first], among[first]) / total
    variance = np.diag(among) - among[first] ** 2 / total
    score = np.sum(cov**2, axis=0) / (variance + noise)
    score[first] = -np.inf
    assert score[second] == pytest.approx(score.max(), rel=1e-9)


def test_invalid_input_is_reported(state):
    for call, message in [
        (
            lambda: next_pairs(state, 2, rule="best", seed=0),
            "Unknown rule 'best'; choose one of variance_reduction",
        ),
        (lambda: next_pairs(state, 0, seed=0), "from 1 up, got 0"),
        (
            lambda: next_pairs(state, 2, pending=Pairs(Grid(3), [0], [1]), seed=0),
            "pending pairs lie on a 3x3 grid",
        ),
        (
            lambda: select_candidates(state.draws, np.array([[0, 1]]), 1, target="all", rng=None),
            "Unknown target 'all'",
        ),
    ]:
        with pytest.raises(InvalidInput, match=message):
            call()
