"""Summaries of draws of the maps: their median, intervals, entropy and expected error."""

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.9

Floats = NDArray[np.float64]


def interval(draws: Floats, confidence: float = CONFIDENCE) -> Floats:
    """Return the ends, (2, …), of intervals of probabilities that hold a further draw with this probability.

    For each probability, over the first axis of `draws`, this is the shortest of three intervals: from 0 up, with equal
    tails, or up to 1. In the middle of a segment the other segments' probabilities are close to 0 or exactly 0; an
    interval with equal tails leaves out the smallest draws and could not contain them.

    Examples
    --------
    >>> piled, apart = np.linspace(0, 0.2, 39) ** 2, np.linspace(0.3, 0.5, 39)
    >>> interval(np.stack([piled, apart], axis=1)).round(2)
    array([[0.  , 0.31],
           [0.03, 0.49]])
    """
    low, high = equal_tailed(draws, confidence)
    from_zero, to_one = np.quantile(draws, [confidence, 1 - confidence], axis=0, method="weibull")
    shortest = np.argmin([high - low, from_zero, 1 - to_one], axis=0)
    return np.stack([np.choose(shortest, [low, 0.0, to_one]), np.choose(shortest, [high, from_zero, 1.0])])


def equal_tailed(draws: Floats, confidence: float = CONFIDENCE) -> Floats:
    """Return the ends, (2, …), of intervals over the first axis with equal probability below and above."""
    tail = (1 - confidence) / 2
    return np.quantile(draws, [tail, 1 - tail], axis=0, method="weibull")


def median_maps(draws: Floats) -> Floats:
    """Return the median of every probability over draws (S, n, K), renormalised to maps (n, K)."""
    p = np.median(draws, axis=0)
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0.01, p / np.maximum(total, 0.01), draws.mean(axis=0))


def expected_error(draws: Floats, centre: Floats) -> float:
    """Return the mean of |p - centre| over draws, locations and segments."""
    return float(np.abs(draws - centre).mean())


def mean_entropies(maps: Floats) -> Floats:
    """Return the entropy of maps (…, n, K), averaged over locations, in nats.

    Examples
    --------
    >>> mean_entropies(np.array([[[1.0, 0.0], [0.5, 0.5]]])).round(3)
    array([0.347])
    """
    return -np.sum(maps * np.log(np.maximum(maps, 1e-300)), axis=-1).mean(axis=-1)
