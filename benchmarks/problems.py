"""Problems the benchmarks share: moderate uncertainty, KN² covering pairs, five blocks of the same pairs."""

import numpy as np

import vseg
from vseg.reconstruction.objective import Objective, build_objective


def problem(
    size: int, segments: int, strength: float, seed: int, *, blocks: int = 5
) -> tuple[vseg.Maps, Objective]:
    layout = vseg.Grid(size)
    xi = size / 5
    sigma = np.sqrt(3 / (xi * np.sqrt(np.pi)))  # fields with a standard deviation of 3
    truth = vseg.stimuli.random_maps(layout, segments=segments, sigma=sigma, xi=xi, min_area=0.03, seed=seed)
    pairs = vseg.designs.covering(layout, segments=segments, seed=seed)
    responses = vseg.simulate(truth, pairs, blocks=blocks, seed=seed)
    return truth, build_objective(responses.tally(), segments, strength=strength)
