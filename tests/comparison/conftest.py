"""Four people, two pictures of coloured segments."""

import pytest

from vseg import Grid, designs, simulate, stimuli
from vseg.models import Task
from vseg.responses import concatenated


@pytest.fixture(scope="session")
def task():
    parts, pictures = [], {}
    for place, name in enumerate(("one", "two")):
        truth = stimuli.random_maps(Grid(7), segments=2, entropy=0.15, seed=place)
        pictures[name] = stimuli.colour_image(truth, seed=place).rendered(70)
        pairs = designs.scattered(truth.layout, segments=2, seed=place)
        parts += [
            simulate(truth, pairs, blocks=2, participant=f"p{who}", image=name, seed=10 * place + who)
            for who in range(4)
        ]
    return Task(concatenated(parts), pictures, 2)
