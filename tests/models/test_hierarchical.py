"""Test hierarchical models on twelve participants with individual weights of three features."""

from functools import cache

import numpy as np
import pytest

from vseg import Grid, Maps, designs, simulate
from vseg.data.responses import concatenate
from vseg.errors import InvalidInput
from vseg.models import Task, base_rate, logistic
from vseg.models.hierarchical import hierarchical
from vseg.stimuli.random_maps import softmax

GRID, PARTICIPANTS, SEGMENTS = Grid(10), 12, 2
FAMILY = {"starts": 6}


@cache
def simulate_task(spread, trials, seed):
    """Return features, the true maps of each participant, and their answers."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((len(GRID), 3))
    shared = 1.5 * rng.standard_normal((3, SEGMENTS))
    truths = [
        Maps(GRID, softmax(x @ (shared + spread * rng.standard_normal(shared.shape))))
        for _ in range(PARTICIPANTS)
    ]
    parts = [
        simulate(
            truth, designs.scattered(GRID, segments=2, trials=trials, seed=seed + place), blocks=1,
            participant=f"p{place:02}", seed=seed + place,
        )
        for place, truth in enumerate(truths)
    ]  # fmt: skip
    return x, truths, Task(concatenate(parts), segments=SEGMENTS)


def bits_lost(truth, maps):
    """Return the mean bits per answer that maps lose against the true maps, over all pairs."""
    i, j = np.triu_indices(len(GRID), 1)
    q, predicted = (np.sum(each.probabilities[i] * each.probabilities[j], axis=1) for each in (truth, maps))
    q, predicted = q.clip(0.005, 0.995), predicted.clip(0.005, 0.995)
    return np.mean(q * np.log2(q / predicted) + (1 - q) * np.log2((1 - q) / (1 - predicted)))


def losses(spread, trials, seed):
    """Return the bits lost by separate fits, by one pooled fit, and by the hierarchical fit, and that fit."""
    x, truths, task = simulate_task(spread, trials, seed)
    family = logistic({"image": x}, **FAMILY)
    pooled, both = family(task, seed=0), hierarchical(family)(task, seed=0)
    assert both.converged
    rows = []
    for name, truth in zip(task.responses.participants, truths, strict=True):
        alone = family(task.take(task.responses.participant == name), seed=0)
        rows.append(
            [bits_lost(truth, each.maps("image")) for each in (alone, pooled, both.for_participant(name))]
        )
    return np.mean(rows, axis=0), both


def test_few_answers_gain_from_those_of_others():
    """60 trials each, five groups: it loses 0.5 of the bits that separate fits, or a pooled fit, lose."""
    alone, pooled, both = np.mean([losses(0.4, 60, seed)[0] for seed in range(100, 300, 40)], axis=0)
    assert both < 0.75 * alone
    assert both < 0.75 * pooled


def test_participants_who_differ_much_lose_nothing():
    """150 trials each: it loses 0.9 of the bits that separate fits lose."""
    alone, pooled, both = np.mean([losses(0.8, 150, seed)[0] for seed in range(100, 300, 40)], axis=0)
    assert both < 1.05 * alone < pooled


def test_participants_who_do_not_differ_share_their_weights():
    (alone, pooled, both), fitted = losses(0.0, 60, 1)
    assert both < 1.5 * pooled < alone
    assert fitted.width < 0.3


def test_individual_intervals_include_the_uncertainty_of_the_shared_weights():
    """Without differences, all 90 % intervals of log-odds cover; 0.82 would if the shared weights were exact."""
    x, truths, task = simulate_task(0.0, 60, 140)
    fitted = hierarchical(logistic({"image": x}, **FAMILY))(task, seed=0)
    covered = []
    for name, truth in zip(task.responses.participants, truths, strict=True):
        mean, spread = log_odds(fitted.for_participant(name), x)
        wanted = np.log(truth.probabilities[:, 0] / truth.probabilities[:, 1])
        turned = fitted.for_participant(name).maps("image").matching_order(truth)[0] == 1
        covered.append(np.abs(mean - (-wanted if turned else wanted)) < 1.645 * spread)
    assert np.mean(covered) > 0.9
    assert np.median(log_odds(fitted.for_participant("p00"), x)[1] / log_odds(fitted.shared, x)[1]) > 0.8


def log_odds(linear, x):
    """Return mean and standard deviation of the log-odds of the first segment at every location."""
    first, second = linear.design(x).swapaxes(0, 1)
    contrast = first - second
    variance = np.einsum("np,pq,nq->n", contrast, linear.covariance, contrast)
    return contrast @ linear.theta, np.sqrt(variance)


def test_a_new_participant_is_predicted_by_the_shared_weights():
    _, fitted = losses(0.8, 60, 0)
    shared = fitted.maps("image").probabilities
    assert fitted.for_participant("someone").maps("image").probabilities.tolist() == shared.tolist()
    assert not np.allclose(fitted.for_participant("p00").maps("image").probabilities, shared, atol=1e-3)


def test_other_than_linear_families_are_refused():
    _, _, task = simulate_task(0.8, 60, 0)
    with pytest.raises(InvalidInput, match="Expected a linear family, such as logistic, got Constant"):
        hierarchical(base_rate())(task, seed=0)
