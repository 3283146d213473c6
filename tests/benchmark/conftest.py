"""A small dataset of one picture, and files to submit."""

from pathlib import Path

import pytest

from vseg.benchmark import datasets


@pytest.fixture(scope="session")
def samples(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    datasets.from_samples(folder, images=("coffee", "rocket"), people=2, blocks=2, grid=6, segments=2)
    return folder


@pytest.fixture
def submit(tmp_path):
    """A function that writes a submission's file and names it."""

    def written(body: str, name: str = "mine.py") -> str:
        path = tmp_path / name
        path.write_text(f"import numpy as np\n\n\ndef model(image):\n    {body}\n", encoding="utf-8")
        return str(path)

    return written
