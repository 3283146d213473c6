"""The paper's simulations: one fixed ground truth per condition; each resample has new pairs and answers."""

from functools import cache

import numpy as np

from vseg import designs
from vseg.data.layout import Grid
from vseg.data.maps import Maps
from vseg.data.responses import Responses, Tally
from vseg.stimuli import random_maps


def sample_maps(*, size: int, segments: int, amplitude: float, xi: float, min_area: float, seed: int) -> Maps:
    """Sample maps as in S2, with log-odds fields of standard deviation σ²ξ√π = `amplitude`.

    An infinite amplitude gives one-hot maps. The paper prints neither σ nor ξ nor the maps.

    Examples
    --------
    >>> sample_maps(size=12, segments=3, amplitude=6.0, xi=2.0, min_area=0.2, seed=11).segments
    3
    """
    shape = {"segments": segments, "xi": xi, "min_area": min_area, "seed": seed}
    if np.isinf(amplitude):
        return random_maps(Grid(size), entropy=0, **shape)  # type: ignore[arg-type]
    sigma = float(np.sqrt(amplitude / (xi * np.sqrt(np.pi))))
    return random_maps(Grid(size), sigma=sigma, **shape)  # type: ignore[arg-type]


@cache
def truth(
    *, size: int, segments: int = 3, amplitude: float, xi: float, min_area: float = 0.2, seed: int = 11
) -> Maps:
    """Return the ground truth of a condition: `sample_maps`, cached.

    Examples
    --------
    >>> truth(size=12, amplitude=6.0, xi=2.0) is truth(size=12, amplitude=6.0, xi=2.0)
    True
    """
    return sample_maps(size=size, segments=segments, amplitude=amplitude, xi=xi, min_area=min_area, seed=seed)


def simulate_tally(maps: Maps, *, blocks: int, pairs: int | None = None, seed: int) -> Tally:
    """Simulate one resample: covering random pairs and their answers.

    There are KN² pairs unless `pairs` is given; every block repeats the same pairs.

    Examples
    --------
    >>> simulate_tally(truth(size=12, amplitude=6.0, xi=2.0), blocks=10, seed=0).trials
    4320
    """
    design, answers = np.random.SeedSequence(seed).spawn(2)
    count = maps.segments * len(maps.layout) if pairs is None else pairs
    tested = designs.covering(maps.layout, trials=count, seed=design)
    same = np.random.default_rng(answers).binomial(blocks, maps.same_probability(tested))
    return Tally(tested, same, np.full(len(tested), blocks))


def expand_tally(tally: Tally) -> Responses:
    """Return the answers as one row per trial, the input of models.

    Examples
    --------
    >>> tally = simulate_tally(truth(size=12, amplitude=6.0, xi=2.0), blocks=10, seed=0)
    >>> len(expand_tally(tally))
    4320
    """
    i, j = (np.repeat(end, tally.n) for end in (tally.pairs.i, tally.pairs.j))
    trial = np.arange(tally.trials) - np.repeat(np.cumsum(tally.n) - tally.n, tally.n)
    return Responses(tally.layout, i, j, trial < np.repeat(tally.k, tally.n))
