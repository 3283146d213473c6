"""How good predictions are: bits, Brier score, calibration. Pure functions of P(same) and answers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEAST = 0.005
"""Predictions are scored as if one answer in a hundred were a slip: nobody is charged infinitely for one."""


def bits(q: ArrayLike, same: ArrayLike) -> NDArray[np.float64]:
    """log2 of the probability given to each answer: 0 at best, -1 for a coin.

    Examples
    --------
    >>> bits([0.5, 1.0], [True, True]).round(3)
    array([-1.   , -0.007])
    """
    said = np.clip(np.asarray(q, np.float64), LEAST, 1 - LEAST)
    return np.log2(np.where(np.asarray(same, bool), said, 1 - said))


def brier(q: ArrayLike, same: ArrayLike) -> NDArray[np.float64]:
    """(q - answer)² of each answer: 0 at best, 0.25 for a coin."""
    return (np.asarray(q, np.float64) - np.asarray(same, np.float64)) ** 2


@dataclass(frozen=True)
class Calibration:
    """Predictions in bins of equal count: their mean, the share of 'same' among the answers, how many."""

    predicted: list[float]
    observed: list[float]
    count: list[int]


def calibration(q: ArrayLike, same: ArrayLike, bins: int = 10) -> Calibration:
    """Whether 70 % means 70 %.

    Examples
    --------
    >>> calibration([0.1, 0.1, 0.9, 0.9], [0, 0, 1, 1], bins=2)
    Calibration(predicted=[0.1, 0.9], observed=[0.0, 1.0], count=[2, 2])
    """
    said, answer = np.asarray(q, np.float64), np.asarray(same, np.float64)
    order = np.argsort(said, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    return Calibration(
        [float(said[part].mean()) for part in parts],
        [float(answer[part].mean()) for part in parts],
        [len(part) for part in parts],
    )
