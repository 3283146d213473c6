"""Fixtures: an image of three colours, and simulated answers about its segments."""

import numpy as np
import pytest

from vseg import Grid, designs, simulate, stimuli
from vseg.models import Task


@pytest.fixture(scope="session")
def truth():
    return stimuli.random_maps(Grid(9), segments=3, entropy=0.05, seed=0)


@pytest.fixture(scope="session")
def task(truth):
    image = stimuli.colour_image(truth, spread=0.04, seed=1).render(90)
    pairs = designs.scattered(truth.layout, segments=3, seed=2)
    return Task(simulate(truth, pairs, blocks=3, seed=3), {"image": image}, 3)


@pytest.fixture(scope="session")
def nats(task):
    """Return a function that computes the negative log-likelihood per answer of a fitted model."""
    tally = task.tallies()["image"]

    def compute_nats(fitted):
        q = np.clip(fitted.same_probability("image", tally.pairs), 1e-3, 1 - 1e-3)
        return -np.sum(tally.k * np.log(q) + (tally.n - tally.k) * np.log(1 - q)) / tally.trials

    return compute_nats
