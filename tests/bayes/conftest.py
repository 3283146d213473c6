import pytest

import vseg


@pytest.fixture(scope="session")
def observed():
    """True maps of three segments on a 9×9 grid, and two blocks of answers to fresh pairs."""
    truth = vseg.stimuli.random_maps(vseg.Grid(9), segments=3, entropy=0.3, seed=5)
    pairs = [vseg.designs.covering(truth.layout, segments=3, seed=seed) for seed in (1, 2)]
    return truth, vseg.simulate(truth, pairs, seed=3)
