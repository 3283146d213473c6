"""The paper's simulations: one fixed ground truth a condition, pairs and answers drawn anew for each resample."""

from functools import cache

import numpy as np

from vseg import designs
from vseg.data.layout import Grid
from vseg.data.maps import Maps
from vseg.data.responses import Responses, Tally
from vseg.stimuli import random_maps


def drawn(*, size: int, segments: int, amplitude: float, xi: float, min_area: float, seed: int) -> Maps:
    """Maps of S2 whose log-odds fields have the standard deviation σ²ξ√π = `amplitude`.

    An infinite amplitude gives one-hot maps. The paper prints neither σ nor ξ nor the maps.

    Examples
    --------
    >>> drawn(size=12, segments=3, amplitude=6.0, xi=2.0, min_area=0.2, seed=11).segments
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
    """The same, drawn once: the one ground truth of a condition.

    Examples
    --------
    >>> truth(size=12, amplitude=6.0, xi=2.0) is truth(size=12, amplitude=6.0, xi=2.0)
    True
    """
    return drawn(size=size, segments=segments, amplitude=amplitude, xi=xi, min_area=min_area, seed=seed)


def answered(maps: Maps, *, blocks: int, pairs: int | None = None, seed: int) -> Tally:
    """One resample: covering random pairs (KN² unless given), the same in every block, and their answers.

    Examples
    --------
    >>> answered(truth(size=12, amplitude=6.0, xi=2.0), blocks=10, seed=0).trials
    4320
    """
    design, answers = np.random.SeedSequence(seed).spawn(2)
    count = maps.segments * len(maps.layout) if pairs is None else pairs
    asked = designs.covering(maps.layout, trials=count, seed=design)
    same = np.random.default_rng(answers).binomial(blocks, maps.same_probability(asked))
    return Tally(asked, same, np.full(len(asked), blocks))


def one_by_one(tally: Tally) -> Responses:
    """The same answers a trial a row, as models are fitted to them.

    Examples
    --------
    >>> tally = answered(truth(size=12, amplitude=6.0, xi=2.0), blocks=10, seed=0)
    >>> len(one_by_one(tally))
    4320
    """
    i, j = (np.repeat(end, tally.n) for end in (tally.pairs.i, tally.pairs.j))
    place = np.arange(tally.trials) - np.repeat(np.cumsum(tally.n) - tally.n, tally.n)
    return Responses(tally.layout, i, j, place < np.repeat(tally.k, tally.n))
