"""Simulated data sets in a folder: tables, a picture, and an exported study with catch trials."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vseg
from commands import vseg as run_command
from servers import run_server
from vseg import Grid, Responses
from vseg.cli import main
from vseg.data.responses import concatenate

STUDY = """
name = "two-images"
segments = 2
participants = 4
layout = {grid = 4}
images = [{name = "warm", colours = 2}, {name = "cold", colours = 2, seed = 3}]
design = {blocks = 2}
practice = {trials = 2}
catch = {per_block = 1}
"""


def simulate_participants(entropy: float, names: str) -> Responses:
    """Responses of several participants who see the same maps on a 5x5 grid."""
    truth = vseg.stimuli.random_maps(Grid(5), segments=2, entropy=entropy, seed=0)
    pairs = vseg.designs.covering(truth.layout, segments=2, seed=1)
    return concatenate(
        vseg.simulate(truth, pairs, blocks=4, seed=number, participant=name)
        for number, name in enumerate(names)
    )


def relabel(responses: Responses, **columns: str) -> Responses:
    """The same responses by another participant or about another image."""
    return Responses(responses.layout, responses.i, responses.j, responses.same, **columns)


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    """A folder with tables of responses and a picture."""
    folder = tmp_path_factory.mktemp("data")
    responses = simulate_participants(0.2, "abc")
    responses.save(folder / "responses.csv")
    few = responses.take(responses.participant == "a").take(range(5))
    concatenate([responses, relabel(few, participant="left")]).save(folder / "drop_out.csv")
    concatenate(relabel(responses, image=name) for name in ("../boat", "tree")).save(
        folder / "two_images.csv"
    )
    labels = vseg.stimuli.random_maps(Grid(5), segments=2, entropy=0.2, seed=0).labels.reshape(5, 5)
    Image.fromarray(np.kron(labels * 200, np.ones((16, 16))).astype(np.uint8)).save(folder / "picture.png")
    return folder


@pytest.fixture(scope="session")
def exported(tmp_path_factory) -> Path:
    """A folder written by `vseg export`: two images, two participants each, with catch trials."""
    from vseg import bots

    folder = tmp_path_factory.mktemp("exported")
    with run_server(f"sqlite:///{folder}/vseg.db", STUDY) as running:
        bots.run_bots(f"{running.base}s/two-images/", count=4, observer="ideal", seed=0)
    with pytest.raises(SystemExit) as ended:
        main(["export", "two-images", "--db", f"sqlite:///{folder}/vseg.db", "--out", f"{folder}/exported"])
    assert ended.value.code == 0
    return folder / "exported"


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(here, capsys):
    """A function that runs `vseg ARGUMENTS` and returns what it printed on stdout and stderr."""

    def run(arguments: str) -> tuple[str, str]:
        code, out, err = run_command(arguments, capsys)
        assert code == 0, err
        return out, err

    return run
