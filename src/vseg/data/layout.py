"""Where the tested locations are and who neighbours whom: the only geometry in vseg.

Locations are numbered 0..n-1. `positions` are (x, y) as fractions of the image's width and height,
so a layout fits any image size; in pixels, pixel k covers k..k+1 and the origin is the top-left corner.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.errors import InvalidInput


@runtime_checkable
class Layout(Protocol):
    """Positions in an image and their neighbourhood; Grid and Scatter are the two kinds."""

    def __len__(self) -> int: ...

    def __hash__(self) -> int: ...

    def __str__(self) -> str:
        """What it is, for messages: 'a 16x16 grid'."""
        ...

    @property
    def positions(self) -> NDArray[np.float64]:
        """(n, 2) centres as fractions of the image's width and height."""
        ...

    @property
    def neighbours(self) -> NDArray[np.int64]:
        """(m, 2) pairs of adjacent locations, each once, the smaller number first."""
        ...

    def pixels(self, width_px: int, height_px: int) -> NDArray[np.float64]:
        """(n, 2) centres in the pixels of an image of that size."""
        ...

    def cells(self, width_px: int, height_px: int) -> NDArray[np.int64]:
        """(height_px, width_px) location to which each pixel belongs."""
        ...


@dataclass(frozen=True)
class Grid:
    """An N×N grid covering the image, locations numbered row by row from the top left.

    Examples
    --------
    >>> Grid(16).pixels(512, 512)[0]
    array([16., 16.])
    """

    size: int

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, (int, np.integer)) or self.size < 3:
            raise InvalidInput(f"A grid has an integer size N of at least 3, got {self.size!r}.")
        object.__setattr__(self, "size", int(self.size))

    def __len__(self) -> int:
        return self.size**2

    def __str__(self) -> str:
        spoken_with_vowel = self.size in (11, 18) or str(self.size).startswith("8")
        return f"{'an' if spoken_with_vowel else 'a'} {self.size}x{self.size} grid"

    @cached_property
    def coordinates(self) -> NDArray[np.int64]:
        """(n, 2) whole x, y of S2: -(N-1)/2..(N-1)/2 for odd N, -N/2..N/2-1 for even N."""
        axis = np.arange(self.size) - self.size // 2
        return as_read_only(np.stack([np.tile(axis, self.size), np.repeat(axis, self.size)], axis=1))

    @cached_property
    def positions(self) -> NDArray[np.float64]:
        """(n, 2) centres as fractions of the image's width and height."""
        axis = (np.arange(self.size) + 0.5) / self.size
        return as_read_only(np.stack([np.tile(axis, self.size), np.repeat(axis, self.size)], axis=1))

    @cached_property
    def neighbours(self) -> NDArray[np.int64]:
        """(m, 2) pairs of locations that share a side."""
        number = np.arange(len(self)).reshape(self.size, self.size)
        across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
        down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
        return as_read_only(np.concatenate([across, down]))

    def pixels(self, width_px: int, height_px: int) -> NDArray[np.float64]:
        """(n, 2) centres in the pixels of an image of that size."""
        return self.positions * check_image_size(width_px, height_px)

    def cells(self, width_px: int, height_px: int) -> NDArray[np.int64]:
        """(height_px, width_px) location to which each pixel belongs."""
        check_image_size(width_px, height_px)
        column = ((np.arange(width_px) + 0.5) * self.size / width_px).astype(np.int64)
        row = ((np.arange(height_px) + 0.5) * self.size / height_px).astype(np.int64)
        return row[:, None] * self.size + column[None, :]


@dataclass(frozen=True, eq=False)
class Scatter:
    """A free layout: any positions in the image, neighbours from their Delaunay triangulation.

    Parameters
    ----------
    positions : array_like, shape (n, 2)
        x, y as fractions of the image's width and height, all distinct, n ≥ 4.

    Examples
    --------
    >>> len(Scatter([[0.1, 0.1], [0.9, 0.2], [0.5, 0.5], [0.2, 0.9]]).neighbours)
    6
    """

    positions: NDArray[np.float64]

    def __init__(self, positions: ArrayLike):
        given = as_floats(positions, "positions")
        if given.ndim != 2 or given.shape[1] != 2 or len(given) < 4:
            raise InvalidInput(
                f"A scatter needs at least 4 positions (x, y), got an array of shape {given.shape}."
            )
        if not np.isfinite(given).all() or given.min() < 0 or given.max() > 1:
            raise InvalidInput(
                "Positions are fractions of the image's width and height from 0 to 1, got values "
                f"from {given.min():g} to {given.max():g}; Scatter.from_pixels takes pixels."
            )
        if len(np.unique(given, axis=0)) < len(given):
            raise InvalidInput(f"Positions must differ from each other; {len(given)} were given, some twice.")
        if np.linalg.matrix_rank(given - given.mean(axis=0), tol=1e-9) < 2:
            raise InvalidInput("All positions lie on one line; a scatter needs positions in two dimensions.")
        object.__setattr__(self, "positions", as_read_only(given))

    @classmethod
    def from_pixels(cls, positions: ArrayLike, width_px: int, height_px: int) -> "Scatter":
        """A scatter from x, y in the pixels of an image of that size."""
        given, size = as_floats(positions, "positions"), check_image_size(width_px, height_px)
        return cls(given / size if given.ndim == 2 and given.shape[1] == 2 else given)

    def __len__(self) -> int:
        return len(self.positions)

    def __str__(self) -> str:
        return f"a scatter of {len(self)} points"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scatter) and np.array_equal(self.positions, other.positions)

    def __hash__(self) -> int:
        return hash(self.positions.tobytes())

    @cached_property
    def neighbours(self) -> NDArray[np.int64]:
        """(m, 2) pairs of locations joined by an edge of the Delaunay triangulation."""
        from scipy.spatial import Delaunay

        triangles = Delaunay(self.positions).simplices
        edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [0, 2]]])
        return as_read_only(np.unique(np.sort(edges, axis=1), axis=0).astype(np.int64))

    def pixels(self, width_px: int, height_px: int) -> NDArray[np.float64]:
        """(n, 2) centres in the pixels of an image of that size."""
        return self.positions * check_image_size(width_px, height_px)

    def cells(self, width_px: int, height_px: int) -> NDArray[np.int64]:
        """(height_px, width_px) nearest location of each pixel."""
        from scipy.spatial import cKDTree

        tree = cKDTree(self.pixels(width_px, height_px))
        y, x = np.mgrid[:height_px, :width_px] + 0.5
        nearest = tree.query(np.stack([x.ravel(), y.ravel()], axis=1))[1]
        return nearest.reshape(height_px, width_px).astype(np.int64)


def refine(layout: Layout, interest: ArrayLike, *, points: int) -> Scatter:
    """More locations where there is more to see; those of before keep their numbers, and so do answers about them.

    New ones lie half-way between neighbours, where interest times distance is largest, each taking half of the
    interest around it.

    Parameters
    ----------
    layout : Layout
    interest : array_like, shape (n,)
        From 0 up, for each location: the width of a posterior's intervals, an entropy, the contrast of the image.
    points : int
        How many to add.

    Examples
    --------
    >>> edge = [1, 0, 0, 1, 0, 0, 1, 0, 0]
    >>> refine(Grid(3), edge, points=2).positions[9:].round(2).tolist()
    [[0.17, 0.33], [0.33, 0.83]]
    """
    wanted = as_floats(interest, "the interest of each location")
    if wanted.shape != (len(layout),) or not np.isfinite(wanted).all() or wanted.min() < 0:
        raise InvalidInput(
            f"Interest is a number from 0 up for each of the {len(layout)} locations of {layout}, got "
            f"an array of shape {wanted.shape}{'' if wanted.shape != (len(layout),) else ' with others'}."
        )
    if isinstance(points, bool) or not isinstance(points, (int, np.integer)) or points < 1:
        raise InvalidInput(f"The number of points to add is a whole number from 1 up, got {points!r}.")
    positions, edges = layout.positions, layout.neighbours
    ends = positions[edges]
    score = wanted[edges].mean(axis=1) * np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    if np.count_nonzero(score) < points:
        raise InvalidInput(
            f"{layout} has room for {np.count_nonzero(score)} points between neighbours of interest, got {points}."
        )
    chosen = []
    for _ in range(points):
        chosen.append(int(score.argmax()))
        score[np.isin(edges, edges[chosen[-1]]).any(axis=1)] /= 2
        score[chosen] = 0
    return Scatter(np.concatenate([positions, ends[chosen].mean(axis=1)]))


def as_read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself, contiguous and no longer writeable."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array


def as_floats(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """A new float64 array, or a sentence that names what could not be read as numbers."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"Expected numbers for {what}, got {values!r:.80}.") from error


def check_image_size(width_px: int, height_px: int) -> NDArray[np.float64]:
    """Width and height, or a sentence for what is no number of pixels."""
    if not all(isinstance(side, (int, np.integer)) for side in (width_px, height_px)):
        raise InvalidInput(
            f"An image has a whole number of pixels each way, got width {width_px!r} and height {height_px!r}."
        )
    if width_px < 1 or height_px < 1:
        raise InvalidInput(f"An image has at least one pixel each way, got {width_px}x{height_px}.")
    return np.array([width_px, height_px], dtype=np.float64)
