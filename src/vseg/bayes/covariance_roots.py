"""Roots of covariances over the locations: B with BBᵀ close to C, from the directions that matter.

On a grid the spatial kernels are taken apart by their symmetry and by our own compiled kernels (`factors.py`), so that
last digits do not depend on how many threads a BLAS has.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vseg.bayes.linear_algebra import principal
from vseg.bayes.model import Root
from vseg.data.layout import Grid, Layout, as_read_only

KERNELS = ("rbf", "rough", "matern32", "matern52")
NEGLIGIBLE = 3e-3  # directions with less variance than this share of the largest are left out
MOST = 128  # directions at most
LARGE = 1500  # from here on only the leading directions are computed
ROUGH_SHARE, ROUGHER = 0.15, 2.5  # of a rough kernel: so much of its variance has a length so much shorter


def root_of(covariance: NDArray[np.float64]) -> Root:
    """B with BBᵀ close to the covariance, from its eigenvectors that matter."""
    n = len(covariance)
    if n > LARGE:
        from scipy.sparse.linalg import eigsh

        size, vectors = eigsh(covariance, k=MOST, v0=np.ones(n))
    else:
        size, vectors = np.linalg.eigh(covariance)
    return _kept(size[::-1], vectors[:, ::-1])


def _kept(size: NDArray[np.float64], vectors: NDArray[np.float64]) -> Root:
    count = min(int((size > NEGLIGIBLE * size[0]).sum()), MOST)
    tall = vectors[:, :count] * np.sqrt(size[:count])
    return Root(as_read_only(tall.T.copy()), as_read_only(tall.copy()))


@lru_cache(maxsize=64)
def spatial_root(layout: Layout, kernel: str, length: float) -> Root:
    """Of one of the KERNELS, with a length in sides of the image."""
    if isinstance(layout, Grid) and kernel == "rbf":  # the kernel is a product over the two axes
        axis = np.arange(layout.size)[:, None] / layout.size
        rows = principal(np.exp(-squared_distances(axis) / (2 * length**2)))
        size = np.sum(rows**2, axis=1)
        order = np.argsort(-np.multiply.outer(size, size).ravel(), kind="stable")[:MOST]
        down, across = np.divmod(order, len(rows))
        return _largest((rows[down, :, None] * rows[across, None, :]).reshape(len(order), -1))
    covariance = _kernel(kernel, np.sqrt(squared_distances(layout.positions)) / length)
    if isinstance(layout, Grid) and len(layout) <= LARGE:
        return _largest(_mirrored(covariance, layout.size))
    return root_of(covariance)


def _mirrored(covariance: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """`principal` of a covariance that a mirror does not change, on a square: fields are even or odd along each axis.

    Four problems of a quarter of the locations take a sixteenth of the time.
    """
    whole = covariance.reshape(size, size, size, size)
    found = []
    for down in (1, -1):
        for across in (1, -1):
            part = whole
            for axis, sign in enumerate((down, across, down, across)):
                part = _folded(part, axis, sign)
            rows, columns = part.shape[:2]
            if part.size:
                some = principal(np.ascontiguousarray(part.reshape(rows * columns, -1)))
                some = _unfolded(some.reshape(-1, rows, columns), 1, down, size)
                found.append(_unfolded(some, 2, across, size).reshape(-1, size * size))
    return np.concatenate(found)


def _folded(x: NDArray[np.float64], axis: int, sign: int) -> NDArray[np.float64]:
    """The even or odd part along an axis, as half of it; the middle of an odd length is even."""
    x = np.moveaxis(x, axis, 0)
    half = len(x) // 2
    parts = [(x[:half] + sign * x[::-1][:half]) / np.sqrt(2)]
    if sign > 0 and len(x) % 2:
        parts.append(x[half : half + 1])
    return np.moveaxis(np.concatenate(parts), 0, axis)


def _unfolded(x: NDArray[np.float64], axis: int, sign: int, size: int) -> NDArray[np.float64]:
    """Back to the whole axis."""
    x = np.moveaxis(x, axis, 0)
    half = size // 2
    near = x[:half] / np.sqrt(2)
    middle = x[half:] if sign > 0 else np.zeros((size % 2, *x.shape[1:]))
    return np.moveaxis(np.concatenate([near, middle, sign * near[::-1]]), 0, axis)


def _largest(rows: NDArray[np.float64]) -> Root:
    """The root of rows at right angles, those that matter, the largest first."""
    size = np.sum(rows**2, axis=1)
    order = np.argsort(-size, kind="stable")[:MOST]
    order = order[size[order] > NEGLIGIBLE * size[order[0]]]
    return Root(as_read_only(rows[order]), as_read_only(np.ascontiguousarray(rows[order].T)))


def _kernel(kernel: str, away: NDArray[np.float64]) -> NDArray[np.float64]:
    """The covariance of two locations so many lengths apart."""
    if kernel == "rbf":
        return np.exp(-(away**2) / 2)
    if kernel == "rough":
        return (1 - ROUGH_SHARE) * np.exp(-(away**2) / 2) + ROUGH_SHARE * np.exp(-((ROUGHER * away) ** 2) / 2)
    if kernel == "matern32":
        return (1 + np.sqrt(3) * away) * np.exp(-np.sqrt(3) * away)
    return (1 + np.sqrt(5) * away + 5 * away**2 / 3) * np.exp(-np.sqrt(5) * away)


def squared_distances(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, n) between the rows of x."""
    square = np.sum(x**2, axis=1)
    return np.maximum(square[:, None] + square - 2 * x @ x.T, 0)
