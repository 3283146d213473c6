"""Fixtures: a task of four participants and two images, a dataset of two images, and submission files."""

from pathlib import Path

import pytest

from vseg import Grid, designs, simulate, stimuli
from vseg.data.responses import concatenate
from vseg.evaluation import datasets
from vseg.models import Task


@pytest.fixture(scope="session")
def task():
    parts, pictures = [], {}
    for place, name in enumerate(("one", "two")):
        truth = stimuli.random_maps(Grid(7), segments=2, entropy=0.15, seed=place)
        pictures[name] = stimuli.colour_image(truth, seed=place).render(70)
        pairs = designs.scattered(truth.layout, segments=2, seed=place)
        parts += [
            simulate(truth, pairs, blocks=2, participant=f"p{who}", image=name, seed=10 * place + who)
            for who in range(4)
        ]
    return Task(concatenate(parts), pictures, 2)


@pytest.fixture(scope="session")
def samples(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    datasets.write_sample_dataset(
        folder, images=("coffee", "rocket"), observers=2, blocks=2, grid=6, segments=2
    )
    return folder


@pytest.fixture
def submit(tmp_path):
    """Return a function that writes a submission's file and returns its path."""

    def write(body: str, name: str = "mine.py") -> str:
        path = tmp_path / name
        path.write_text(f"import numpy as np\n\n\ndef model(image):\n    {body}\n", encoding="utf-8")
        return str(path)

    return write
