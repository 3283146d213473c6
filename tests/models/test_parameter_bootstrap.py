from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from vseg import Grid, Responses, designs, simulate, stimuli
from vseg.data.responses import concatenate
from vseg.errors import InvalidInput
from vseg.models import Task, base_rate, logistic
from vseg.models.parameter_bootstrap import bootstrap

GRID = Grid(6)


def rate(fitted):
    return fitted.parameters["image"]


@pytest.fixture(scope="module")
def people():
    """Six participants whose bias to 'same' differs widely, 72 answers each."""
    pairs = designs.scattered(GRID, segments=2, seed=0)
    rng, parts = np.random.default_rng(1), []
    for place, bias in enumerate(np.linspace(0.1, 0.9, 6)):
        same = rng.random(len(pairs)) < bias
        parts.append(Responses(GRID, pairs.i, pairs.j, same, participant=f"p{place}"))
    return Task(concatenate(parts))


@pytest.mark.parametrize("over", ["trials", "model"])
def test_the_error_of_a_rate_is_binomial(over):
    """√(q(1 - q)/n) for 720 answers; its standard error with 400 resamples is 3.5 %."""
    pairs = designs.scattered(GRID, segments=2, seed=0)
    same = np.random.default_rng(1).random((10, len(pairs))) < 0.3
    task = Task(Responses(GRID, np.tile(pairs.i, 10), np.tile(pairs.j, 10), same.ravel()))
    drawn = bootstrap(base_rate(), task, rate, over=over, count=400, seed=2)
    q, n = drawn.fitted, len(task.responses)
    assert drawn.standard_error == pytest.approx(np.sqrt(q * (1 - q) / n), rel=0.12)
    low, high = drawn.interval(0.9)
    assert (high - low) / 2 == pytest.approx(1.645 * np.sqrt(q * (1 - q) / n), rel=0.15)


def test_resampling_participants_gives_wider_intervals(people):
    """The mean of six participants depends on who took part, and little on their trials."""
    by_trials, by_people = (
        bootstrap(base_rate(), people, rate, over=over, count=200, seed=0).standard_error
        for over in ("trials", "participants")
    )
    own = [people.responses.select(participant=name).same.mean() for name in people.responses.participants]
    assert by_people == pytest.approx(np.std(own) / np.sqrt(6), rel=0.2)
    assert by_people > 3 * by_trials


def test_a_participant_drawn_twice_counts_as_two(people):
    counts = bootstrap(
        lambda task, *, seed: task, people, lambda task: len(task.responses.participants),
        over="participants", count=5, seed=0,
    )  # fmt: skip
    assert counts.values.tolist() == [6] * 5


def test_trials_are_drawn_within_each_participant(people):
    counts = bootstrap(
        lambda task, *, seed: task, people,
        lambda task: np.unique(task.responses.participant, return_counts=True)[1], count=5, seed=0,
    )  # fmt: skip
    assert (counts.values == 72).all()


def test_intervals_of_weights_agree_with_the_curvature():
    """With enough answers, both give the same standard error of one contrast of a two-segment logistic model."""
    truth = stimuli.random_maps(GRID, segments=2, entropy=0.2, seed=0)
    x = np.log(truth.probabilities[:, :1] / truth.probabilities[:, 1:])
    pairs = designs.scattered(GRID, segments=3, seed=1)
    task = Task(simulate(truth, pairs, blocks=10, seed=2), segments=2)
    family = logistic({"image": x}, prior_width=4.0, starts=3)

    def slope(fitted):
        logits = fitted.design(np.array([[0.0], [1.0]])) @ fitted.theta
        return abs((logits[1] - logits[0]) @ [1, -1])

    drawn = bootstrap(family, task, slope, over="model", count=100, seed=3)
    fitted = family(task, seed=0)
    contrast = np.array([1, -1]) @ np.diff(fitted.design(np.array([[0.0], [1.0]])), axis=0)[0]
    assert drawn.standard_error == pytest.approx(np.sqrt(contrast @ fitted.covariance @ contrast), rel=0.25)
    low, high = drawn.interval(0.99)
    assert low < 1 < high  # the logits are the feature itself


def test_draws_do_not_depend_on_workers(people):
    done = []
    alone = bootstrap(base_rate(), people, rate, count=8, seed=5, progress=done.append)
    with ThreadPoolExecutor(2) as threads:
        together = bootstrap(base_rate(), people, rate, count=8, seed=5, executor=threads)
    assert alone.values.tolist() == together.values.tolist()
    assert done == [1] * 8


def test_invalid_arguments_are_refused(people):
    with pytest.raises(
        InvalidInput, match="Cannot resample over 'pears'; choose one of trials, participants"
    ):
        bootstrap(base_rate(), people, rate, over="pears", seed=0)
    with pytest.raises(InvalidInput, match="whole number from 2 up, got 1"):
        bootstrap(base_rate(), people, rate, count=1, seed=0)
    alone = Task(people.responses.select(participant="p0"))
    with pytest.raises(InvalidInput, match="needs at least 2 of them, got 1; choose trials"):
        bootstrap(base_rate(), alone, rate, over="participants", seed=0)
    with pytest.raises(InvalidInput, match=r"between 0 and 1, such as 0\.95, got 90"):
        bootstrap(base_rate(), people, rate, count=2, seed=0).interval(90)
