"""Layouts: the positions of the tested locations and which of them are neighbours.

Locations are numbered 0..n-1. `positions` are (x, y) as fractions of the image's width and height, so a layout fits
any image size. In pixels, the origin is the top-left corner and pixel k covers k..k+1. Only this module deals with
geometry: other modules see positions and pairs of neighbours. A new kind of layout is a class with the members of
`Layout`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.errors import InvalidInput


@runtime_checkable
class Layout(Protocol):
    """Positions in an image and which of them are neighbours; `Grid` and `Scatter` are layouts."""

    def __len__(self) -> int: ...

    def __hash__(self) -> int: ...

    def __str__(self) -> str:
        """Return a description for messages, such as 'a 16x16 grid'."""
        ...

    @property
    def positions(self) -> NDArray[np.float64]:
        """(n, 2) centres as fractions of the image's width and height."""
        ...

    @property
    def neighbours(self) -> NDArray[np.int64]:
        """(m, 2) pairs of neighbouring locations, each pair once, the smaller number first."""
        ...

    def pixels(self, width_px: int, height_px: int) -> NDArray[np.float64]:
        """Return (n, 2) the centres in pixels of an image of this size."""
        ...

    def cells(self, width_px: int, height_px: int) -> NDArray[np.int64]:
        """Return (height_px, width_px) the location to which each pixel belongs."""
        ...


@dataclass(frozen=True)
class Grid:
    """An N×N grid over the image, with locations numbered row by row from the top left.

    Parameters
    ----------
    size : int
        N, at least 3.

    Examples
    --------
    >>> Grid(16).pixels(512, 512)[0]
    array([16., 16.])
    """

    size: int

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, (int, np.integer)) or self.size < 3:
            raise InvalidInput(f"Expected an integer grid size of at least 3, got {self.size!r}.")
        object.__setattr__(self, "size", int(self.size))

    def __len__(self) -> int:
        return self.size**2

    def __str__(self) -> str:
        starts_with_vowel = self.size in (11, 18) or str(self.size).startswith("8")
        return f"{'an' if starts_with_vowel else 'a'} {self.size}x{self.size} grid"

    @cached_property
    def coordinates(self) -> NDArray[np.int64]:
        """(n, 2) integer x, y as in S2: -(N-1)/2..(N-1)/2 for odd N, -N/2..N/2-1 for even N."""
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
        """Return (n, 2) the centres in pixels of an image of this size."""
        return self.positions * check_image_size(width_px, height_px)

    def cells(self, width_px: int, height_px: int) -> NDArray[np.int64]:
        """Return (height_px, width_px) the location to which each pixel belongs."""
        check_image_size(width_px, height_px)
        column = ((np.arange(width_px) + 0.5) * self.size / width_px).astype(np.int64)
        row = ((np.arange(height_px) + 0.5) * self.size / height_px).astype(np.int64)
        return row[:, None] * self.size + column[None, :]


@dataclass(frozen=True, eq=False)
class Scatter:
    """Any positions in the image; neighbours are those joined in the Delaunay triangulation.

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
        points = as_floats(positions, "positions")
        if points.ndim != 2 or points.shape[1] != 2 or len(points) < 4:
            raise InvalidInput(
                f"A scatter needs at least 4 positions (x, y), got an array of shape {points.shape}."
            )
        if not np.isfinite(points).all() or points.min() < 0 or points.max() > 1:
            raise InvalidInput(
                "Positions are fractions of the image's width and height from 0 to 1, got values "
                f"from {points.min():g} to {points.max():g}; Scatter.from_pixels takes pixels."
            )
        if len(np.unique(points, axis=0)) < len(points):
            raise InvalidInput(f"Expected distinct positions; some of these {len(points)} are equal.")
        if np.linalg.matrix_rank(points - points.mean(axis=0), tol=1e-9) < 2:
            raise InvalidInput("All positions lie on one line; a scatter needs positions in two dimensions.")
        object.__setattr__(self, "positions", as_read_only(points))

    @classmethod
    def from_pixels(cls, positions: ArrayLike, width_px: int, height_px: int) -> "Scatter":
        """Return a scatter from x, y in pixels of an image of this size."""
        points, size = as_floats(positions, "positions"), check_image_size(width_px, height_px)
        return cls(points / size if points.ndim == 2 and points.shape[1] == 2 else points)

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
        """Return (n, 2) the centres in pixels of an image of this size."""
        return self.positions * check_image_size(width_px, height_px)

    def cells(self, width_px: int, height_px: int) -> NDArray[np.int64]:
        """Return (height_px, width_px) the nearest location of each pixel."""
        from scipy.spatial import cKDTree

        tree = cKDTree(self.pixels(width_px, height_px))
        y, x = np.mgrid[:height_px, :width_px] + 0.5
        nearest = tree.query(np.stack([x.ravel(), y.ravel()], axis=1))[1]
        return nearest.reshape(height_px, width_px).astype(np.int64)


def refine(layout: Layout, interest: ArrayLike, *, points: int) -> Scatter:
    """Add locations where interest is high; existing locations keep their numbers, so answers remain valid.

    New locations lie half-way between neighbours, where interest times distance is largest. Each new location halves
    the interest around it.

    Parameters
    ----------
    layout : Layout
    interest : array_like, shape (n,)
        How much detail is wanted at each location, from 0 up: for example the width of a posterior's intervals, the
        entropy, or the contrast of the image.
    points : int
        The number of locations to add.

    Returns
    -------
    Scatter
        The old locations, then the new ones.

    Examples
    --------
    >>> edge = [1, 0, 0, 1, 0, 0, 1, 0, 0]
    >>> refine(Grid(3), edge, points=2).positions[9:].round(2).tolist()
    [[0.17, 0.33], [0.33, 0.83]]
    """
    weight = as_floats(interest, "the interest of each location")
    if weight.shape != (len(layout),) or not np.isfinite(weight).all() or weight.min() < 0:
        problem = "" if weight.shape != (len(layout),) else " with negative or infinite values"
        raise InvalidInput(
            f"Expected an interest from 0 up for each of the {len(layout)} locations of {layout}, got "
            f"an array of shape {weight.shape}{problem}."
        )
    if isinstance(points, bool) or not isinstance(points, (int, np.integer)) or points < 1:
        raise InvalidInput(f"Expected a whole number of points from 1 up, got {points!r}.")
    positions, edges = layout.positions, layout.neighbours
    ends = positions[edges]
    score = weight[edges].mean(axis=1) * np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    if np.count_nonzero(score) < points:
        raise InvalidInput(
            f"{layout} has room for {np.count_nonzero(score)} points between neighbours with interest, got {points}."
        )
    chosen = []
    for _ in range(points):
        chosen.append(int(score.argmax()))
        score[np.isin(edges, edges[chosen[-1]]).any(axis=1)] /= 2
        score[chosen] = 0
    return Scatter(np.concatenate([positions, ends[chosen].mean(axis=1)]))


def find_nearest(layout: Layout, positions: ArrayLike) -> NDArray[np.int64]:
    """Return (m,) the location nearest to each position; on a grid, the one whose cell contains it.

    Parameters
    ----------
    layout : Layout
    positions : array_like, shape (m, 2)
        x, y as fractions of the image's width and height.

    Examples
    --------
    >>> find_nearest(Grid(3), [[0.1, 0.1], [0.5, 0.9], [1.0, 1.0]])
    array([0, 7, 8])
    """
    points = as_floats(positions, "positions")
    if isinstance(layout, Grid):
        column, row = np.clip((points * layout.size).astype(np.int64), 0, layout.size - 1).T
        return np.asarray(row * layout.size + column)
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(layout.positions).query(points)[1], np.int64)


def as_read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, contiguous and not writeable."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array


def as_floats(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return a new float64 array; `InvalidInput` names the values if they are not numbers."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"Expected numbers for {name}, got {values!r:.80}.") from error


def check_image_size(width_px: int, height_px: int) -> NDArray[np.float64]:
    """Return width and height as an array; `InvalidInput` if they are not positive integers."""
    if not all(isinstance(side, (int, np.integer)) for side in (width_px, height_px)):
        raise InvalidInput(
            f"Expected whole numbers of pixels, got width {width_px!r} and height {height_px!r}."
        )
    if width_px < 1 or height_px < 1:
        raise InvalidInput(f"Expected an image of at least 1x1 pixels, got {width_px}x{height_px}.")
    return np.array([width_px, height_px], dtype=np.float64)
