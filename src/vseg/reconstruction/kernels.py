"""The smoothness penalty as a matrix: λ‖p - G∗p‖² of Eq. 7 is λ·pᵀRp with R = (I-W)ᵀ(I-W).

W is a sparse row-stochastic matrix: row i holds the weights with which other locations predict location i. Every
kernel on every layout is such a matrix, so that no solver depends on the grid or the kernel.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array, eye_array, issparse

from vseg.data.layout import Grid, Layout, as_floats
from vseg.errors import InvalidInput

Kernel = Any  # a name, ("gaussian", width), a local kernel as an array, or a row-stochastic matrix, dense or sparse
NARROWEST, WIDEST_WIDTH = 1e-3, 1e4
WIDEST = 3.0  # a Gaussian kernel is cut at this many standard deviations


class Penalty(NamedTuple):
    """R in flat arrays for compiled code: its diagonal, and the rows of its off-diagonal entries."""

    start: NDArray[np.int64]
    column: NDArray[np.uint32]
    value: NDArray[np.float64]
    diagonal: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Smoothness:
    """The penalty of one layout: W, and R = (I-W)ᵀ(I-W)."""

    layout: Layout
    weights: csr_array

    @cached_property
    def residual(self) -> csr_array:
        """I - W: maps the maps to the part that other locations do not predict."""
        return csr_array(eye_array(len(self.layout)) - self.weights)

    @cached_property
    def matrix(self) -> Penalty:
        """R in the form the solvers use."""
        return flat_penalty(csr_array(self.residual.T @ self.residual))

    def penalty(self, p: NDArray[np.float64]) -> float:
        """Return ‖p - Wp‖², summed over locations and segments."""
        return float(np.sum((self.residual @ p) ** 2))


def build_smoothness(layout: Layout, kernel: Kernel = "four") -> Smoothness:
    """Build the smoothness penalty of a layout.

    Parameters
    ----------
    layout : Layout
    kernel : "four", "eight", ("gaussian", width) or "gaussian:WIDTH", array, or a row-stochastic matrix
        The paper's Laplacian is "four": a location against the mean of its four neighbours. On a scatter, "four" and
        "eight" both take the Delaunay neighbours. The width is in grid cells, and the Gaussian has no weight at its
        centre (see `gaussian`). An array is a local kernel G on a grid: its sides are odd, at most 2N-1, its weights
        are non-negative and are divided by their sum. Wp is then the convolution G∗p with repeated edges, with the
        weight of the centre as it is given.

    Examples
    --------
    >>> from vseg import Grid
    >>> build_smoothness(Grid(5), "four").weights[[0]].toarray()[0, :6]
    array([0.5 , 0.25, 0.  , 0.  , 0.  , 0.25])
    >>> same = build_smoothness(Grid(5), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> abs(same.weights - build_smoothness(Grid(5), "four").weights).max()
    np.float64(0.0)
    """
    if isinstance(kernel, str) or (isinstance(kernel, tuple) and kernel and isinstance(kernel[0], str)):
        return _named_smoothness(layout, kernel)
    if not issparse(kernel):
        kernel = as_floats(kernel, "a kernel")
    if issparse(kernel) or kernel.shape == (len(layout), len(layout)):
        return Smoothness(layout, _check_matrix(layout, kernel))
    return Smoothness(layout, local(layout, kernel))


@lru_cache(maxsize=32)
def _named_smoothness(layout: Layout, kernel: str | tuple[str, float]) -> Smoothness:
    name, width = _parse_kernel(kernel)
    if name == "gaussian":
        return Smoothness(layout, gaussian(layout, width))
    return Smoothness(layout, neighbour_mean(layout, diagonals=name == "eight"))


def neighbour_mean(layout: Layout, *, diagonals: bool = False) -> csr_array:
    """Return W of Eq. 7: the mean of the four (or eight) neighbours, with edge values repeated."""
    if isinstance(layout, Grid):
        around = [(-1, 0), (1, 0), (0, -1), (0, 1)]
        if diagonals:
            around += [(-1, -1), (-1, 1), (1, -1), (1, 1)]
        return _stencil(layout.size, np.array(around), np.ones(len(around)))
    edges = layout.neighbours
    both = np.concatenate([edges, edges[:, ::-1]])
    return _row_stochastic(len(layout), both[:, 0], both[:, 1], np.ones(len(both)))


def gaussian(layout: Layout, width: float) -> csr_array:
    """Return W of a Gaussian kernel; the width is in grid cells, or on a scatter in units of 1/√n of the image.

    A location does not predict itself: the weight of the centre is left out. With the centre, of weight c if all
    weights sum to 1, the penalty would be (1-c)² times as large, since p - (cp + (1-c)Wp) = (1-c)(p - Wp). Both are
    the same penalty at another λ: λ with the centre corresponds to (1-c)²λ here.
    """
    if isinstance(layout, Grid):
        reach = int(min(np.ceil(WIDEST * width), layout.size - 1))
        y, x = (axis.ravel() for axis in np.mgrid[-reach : reach + 1, -reach : reach + 1])
        square = x**2 + y**2
        near = (square > 0) & (square <= max((WIDEST * width) ** 2, 1))  # a location never predicts itself
        offsets = np.stack([y[near], x[near]], axis=1)
        return _stencil(layout.size, offsets, np.exp((1 - square[near]) / (2 * width**2)))
    from scipy.spatial import cKDTree

    unit = width / np.sqrt(len(layout))
    tree = cKDTree(layout.positions)
    near = tree.query_pairs(WIDEST * unit, output_type="ndarray")
    edges = np.unique(np.concatenate([near, layout.neighbours]), axis=0)
    row, column = np.concatenate([edges, edges[:, ::-1]]).T
    square = ((layout.positions[row] - layout.positions[column]) ** 2).sum(axis=1)
    nearest = np.full(len(layout), np.inf)
    np.minimum.at(nearest, row, square)  # weights are relative to the nearest, so that none vanish in a row
    return _row_stochastic(len(layout), row, column, np.exp((nearest[row] - square) / (2 * unit**2)))


def local(layout: Layout, kernel: ArrayLike) -> csr_array:
    """Return W of a local kernel on a grid, an array with odd sides: the convolution G∗p of Eq. 7, edges repeated."""
    weights = as_floats(kernel, "a kernel")
    n = len(layout)
    most = 2 * layout.size - 1 if isinstance(layout, Grid) else 0
    if weights.ndim != 2 or not all(side % 2 and side <= most for side in weights.shape):
        local_kernel = (
            f"an array with two odd sides up to {most}, or a matrix that" if most else "a matrix that"
        )
        raise InvalidInput(
            f"A kernel for {layout} is {local_kernel} has shape ({n}, {n}), got {weights.shape}."
        )
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise InvalidInput(
            f"The weights of a kernel are numbers from 0 up, the smallest is {weights.min():g}; the Laplacian with the "
            "weights 1, -4, 1 is the kernel 'four'."
        )
    row, column = (
        axis.ravel() - side // 2 for axis, side in zip(np.indices(weights.shape), weights.shape, strict=True)
    )
    if not weights.ravel()[(row != 0) | (column != 0)].any():
        raise InvalidInput("A kernel has weight outside its centre; this one smooths nothing.")
    used = weights.ravel() > 0
    # A convolution takes location i - j with weight G_j.
    return _stencil(layout.size, -np.stack([row, column], axis=1)[used], weights.ravel()[used])  # type: ignore[attr-defined]


def flat_penalty(matrix: csr_array) -> Penalty:
    """Convert a symmetric matrix to the form the solvers use."""
    rest = without_diagonal(matrix)
    return Penalty(
        rest.indptr.astype(np.int64), rest.indices.astype(np.uint32), rest.data, np.array(matrix.diagonal())
    )


def without_diagonal(matrix: csr_array) -> csr_array:
    """Remove the diagonal of a matrix and sort its rows."""
    entries = coo_array(matrix)
    kept = (entries.row != entries.col) & (entries.data != 0)
    rest = csr_array((entries.data[kept], (entries.row[kept], entries.col[kept])), shape=matrix.shape)
    rest.sort_indices()
    return rest


def _stencil(size: int, offsets: NDArray[np.int64], weights: NDArray[np.float64]) -> csr_array:
    """Build W from a kernel on a grid; beyond the edge the value at the edge is repeated."""
    row, column = (axis.ravel() for axis in np.mgrid[:size, :size])
    to_row = np.clip(row[:, None] + offsets[:, 0], 0, size - 1)
    to_column = np.clip(column[:, None] + offsets[:, 1], 0, size - 1)
    here = np.repeat(np.arange(size**2), len(offsets))
    return _row_stochastic(size**2, here, (to_row * size + to_column).ravel(), np.tile(weights, size**2))


def _row_stochastic(
    n: int, row: NDArray[np.int64], column: NDArray[np.int64], weight: NDArray[np.float64]
) -> csr_array:
    total = np.bincount(row, weights=weight, minlength=n)
    return csr_array((weight / total[row], (row, column)), shape=(n, n))


def _parse_kernel(kernel: str | tuple[str, float]) -> tuple[str, float]:
    if kernel in ("four", "eight"):
        return str(kernel), 0.0
    parts = kernel.split(":") if isinstance(kernel, str) else kernel
    try:
        name, width = parts[0], float(parts[1])
    except (IndexError, TypeError, ValueError):
        name, width = "", np.nan
    if name != "gaussian" or not NARROWEST <= width <= WIDEST_WIDTH:
        raise InvalidInput(
            f"Unknown kernel {kernel!r}; choose four, eight, gaussian:WIDTH, or give an array or a matrix."
        )
    return name, width


def _check_matrix(layout: Layout, matrix: Any) -> csr_array:
    weights = csr_array(matrix) if issparse(matrix) else csr_array(np.atleast_2d(np.asarray(matrix, float)))
    n = len(layout)
    if weights.shape != (n, n):
        raise InvalidInput(f"A kernel matrix for {layout} has shape ({n}, {n}), got {weights.shape}.")
    sums = np.asarray(weights.sum(axis=1)).ravel()
    if (
        not np.isfinite(weights.data).all()
        or weights.data.min(initial=0) < 0
        or np.abs(sums - 1).max() > 1e-6
    ):
        raise InvalidInput(
            "A kernel matrix is non-negative with rows summing to 1; "
            f"its smallest entry is {weights.data.min(initial=0):g}, its rows sum to "
            f"{sums.min():g}..{sums.max():g}."
        )
    return csr_array(weights / sums[:, None])
