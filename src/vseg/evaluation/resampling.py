"""The bootstrap over participants and images: who else, and which other pictures, might have been there."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vseg.data.responses import Responses
from vseg.evaluation.folds import pair_keys

LEAST_UNITS = 3  # fewer are not resampled: an interval from two people would be a fiction


@dataclass(frozen=True, eq=False)
class Resamples:
    """How often each row and column unit is in each resample; an answer belongs to one of each.

    `what` says in words what was resampled.
    """

    rows: NDArray[np.float64]
    columns: NDArray[np.float64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    what: str

    def means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(count,) the mean of one value an answer in each resample; NaN are passed over."""
        there = np.isfinite(values)
        shape = self.rows.shape[1], self.columns.shape[1]
        cell = self.row[there] * shape[1] + self.column[there]
        total = np.bincount(cell, values[there], shape[0] * shape[1]).reshape(shape)
        count = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
        sums, counts = (np.sum((self.rows @ each) * self.columns, axis=1) for each in (total, count))
        return np.asarray(np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0))


def resamples(responses: Responses, count: int, *, seed: int) -> Resamples:
    """Participants and images drawn independently, each with replacement; pairs where there are too few of both."""
    rng = np.random.default_rng(seed)
    units = {
        name: np.unique(getattr(responses, name), return_inverse=True)[1] for name in ("participant", "image")
    }
    drawn = {name: place.max() + 1 >= LEAST_UNITS for name, place in units.items()}
    if not any(drawn.values()):
        pair, one = (
            np.unique(pair_keys(responses), return_inverse=True)[1],
            np.zeros(len(responses), np.int64),
        )
        return Resamples(_draw(rng, int(pair.max()) + 1, count), np.ones((count, 1)), pair, one, "pairs")
    weights = {
        name: _draw(rng, int(place.max()) + 1, count)
        if drawn[name]
        else np.ones((count, int(place.max()) + 1))
        for name, place in units.items()
    }
    what = " and ".join(f"{name}s" for name, is_drawn in drawn.items() if is_drawn)
    return Resamples(weights["participant"], weights["image"], units["participant"], units["image"], what)


def _draw(rng: np.random.Generator, units: int, count: int) -> NDArray[np.float64]:
    return rng.multinomial(units, np.full(units, 1 / units), count).astype(np.float64)
