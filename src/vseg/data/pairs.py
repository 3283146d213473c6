"""Pairs: the unordered pairs of locations that one block tests."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.data.layout import Layout, as_read_only
from vseg.errors import InvalidInput


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """Distinct unordered pairs of different locations, in the order in which they are shown.

    Parameters
    ----------
    layout : Layout
    i, j : array_like of int, shape (m,)
        The two locations of each pair; stored with the smaller number in `i`.

    Examples
    --------
    >>> from vseg import Grid
    >>> Pairs(Grid(3), [4, 0], [2, 8]).i
    array([2, 0])
    """

    layout: Layout
    i: NDArray[np.int64]
    j: NDArray[np.int64]

    def __init__(self, layout: Layout, i: ArrayLike, j: ArrayLike):
        low, high = check_pairs(layout, i, j)
        key = low * len(layout) + high
        if not (np.diff(key) > 0).all() and len(np.unique(key)) < len(key):
            raise InvalidInput("A block tests each pair once, but some of these pairs occur twice.")
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "i", as_read_only(low))
        object.__setattr__(self, "j", as_read_only(high))

    def __len__(self) -> int:
        return len(self.i)

    def __repr__(self) -> str:
        return f"<Pairs: {len(self)} on {self.layout}>"

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.i.tolist(), self.j.tolist(), strict=True)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Pairs)
            and self.layout == other.layout
            and np.array_equal(self.i, other.i)
            and np.array_equal(self.j, other.j)
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def partners(self) -> NDArray[np.int64]:
        """(n,) the number of pairs that contain each location."""
        ends = np.concatenate([self.i, self.j])
        return as_read_only(np.bincount(ends, minlength=len(self.layout)))

    @property
    def distances(self) -> NDArray[np.float64]:
        """(m,) the distance between the two locations of each pair, as a fraction of the image's side."""
        positions = self.layout.positions
        return np.hypot(*(positions[self.i] - positions[self.j]).T)

    def take(self, index: ArrayLike) -> "Pairs":
        """Return the pairs selected by a boolean mask or by indices."""
        index = as_index(index)
        return Pairs(self.layout, self.i[index], self.j[index])


def check_pairs(layout: Layout, i: ArrayLike, j: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return both ends as int64, the smaller number first; `InvalidInput` if they do not fit the layout."""
    if not isinstance(layout, Layout):
        raise InvalidInput(f"Expected a layout such as vseg.Grid(16), got {layout!r}.")
    first, second = _as_integers(i), _as_integers(j)
    if first.ndim != 1 or first.shape != second.shape:
        raise InvalidInput(
            f"Expected lists i and j of the same length, got shapes {first.shape} and {second.shape}."
        )
    if len(first):
        smallest, largest = min(first.min(), second.min()), max(first.max(), second.max())
        if smallest < 0 or largest >= len(layout):
            raise InvalidInput(
                f"Pairs refer to locations {smallest}..{largest}, "
                f"but {layout} has locations 0..{len(layout) - 1}."
            )
        same = np.flatnonzero(first == second)
        if len(same):
            raise InvalidInput(
                f"A pair joins two different locations; pair {same[0]} joins "
                f"location {first[same[0]]} with itself."
            )
    return np.minimum(first, second), np.maximum(first, second)


def as_index(values: ArrayLike) -> NDArray[Any]:
    """Return a boolean mask or indices as an array; an empty list, a float array for NumPy, becomes integers."""
    index = np.asarray(values)
    return index if index.size else index.astype(np.bool_ if index.dtype == np.bool_ else np.int64)


def _as_integers(values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind == "f" and (np.abs(array) < 2**53).all() and (array == np.rint(array)).all():
        return array.astype(np.int64)
    shown = ", ".join([*map(repr, array.ravel()[:4].tolist()), *(["…"] if array.size > 4 else [])])
    raise InvalidInput(f"Expected whole numbers as locations, got [{shown}].")
