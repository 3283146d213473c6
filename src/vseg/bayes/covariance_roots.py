"""Roots of covariances over the locations: B with BBᵀ close to C, from the directions of largest variance.

On a grid the spatial kernels are decomposed by their symmetry and by `linear_algebra`, so that results do not depend on
how many threads a BLAS has.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vseg.bayes.linear_algebra import orthogonal_root
from vseg.bayes.model import CovarianceRoot
from vseg.data.layout import Grid, Layout, as_read_only

KERNELS = ("rbf", "rough", "matern32", "matern52")
NEGLIGIBLE = 3e-3  # directions with less variance than this share of the largest are left out
MAX_DIRECTIONS = 128
MANY_LOCATIONS = 1500  # above this only the leading directions are computed
ROUGH_SHARE, ROUGH_FACTOR = (
    0.15,
    2.5,
)  # rough kernel: this share of its variance has a length shorter by this factor


def covariance_root(covariance: NDArray[np.float64]) -> CovarianceRoot:
    """Return the root of a covariance (n, n), from its leading eigenvectors."""
    n = len(covariance)
    if n > MANY_LOCATIONS:
        from scipy.sparse.linalg import eigsh

        values, vectors = eigsh(covariance, k=MAX_DIRECTIONS, v0=np.ones(n))
    else:
        values, vectors = np.linalg.eigh(covariance)
    return _root_from_eigenvectors(values[::-1], vectors[:, ::-1])


def _root_from_eigenvectors(values: NDArray[np.float64], vectors: NDArray[np.float64]) -> CovarianceRoot:
    count = min(int((values > NEGLIGIBLE * values[0]).sum()), MAX_DIRECTIONS)
    tall = vectors[:, :count] * np.sqrt(values[:count])
    return CovarianceRoot(as_read_only(tall.T.copy()), as_read_only(tall.copy()))


@lru_cache(maxsize=64)
def spatial_root(layout: Layout, kernel: str, length: float) -> CovarianceRoot:
    """Return the root of a kernel, one of KERNELS, with its length as a fraction of the image's side."""
    if isinstance(layout, Grid) and kernel == "rbf":  # the kernel is a product over the two axes
        axis = np.arange(layout.size)[:, None] / layout.size
        rows = orthogonal_root(np.exp(-squared_distances(axis) / (2 * length**2)))
        size = np.sum(rows**2, axis=1)
        order = np.argsort(-np.multiply.outer(size, size).ravel(), kind="stable")[:MAX_DIRECTIONS]
        down, across = np.divmod(order, len(rows))
        return _keep_largest((rows[down, :, None] * rows[across, None, :]).reshape(len(order), -1))
    covariance = evaluate_kernel(kernel, np.sqrt(squared_distances(layout.positions)) / length)
    if isinstance(layout, Grid) and len(layout) <= MANY_LOCATIONS:
        return _keep_largest(_orthogonal_root_by_symmetry(covariance, layout.size))
    return covariance_root(covariance)


def _orthogonal_root_by_symmetry(covariance: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return `orthogonal_root` of a covariance on a square grid that mirroring does not change.

    Its fields are even or odd along each axis. Four problems with a quarter of the locations take a sixteenth of the
    time of one.
    """
    whole = covariance.reshape(size, size, size, size)
    parts = []
    for down in (1, -1):
        for across in (1, -1):
            part = whole
            for axis, sign in enumerate((down, across, down, across)):
                part = _fold(part, axis, sign)
            height, width = part.shape[:2]
            if part.size:
                rows = orthogonal_root(np.ascontiguousarray(part.reshape(height * width, -1)))
                rows = _unfold(rows.reshape(-1, height, width), 1, down, size)
                parts.append(_unfold(rows, 2, across, size).reshape(-1, size * size))
    return np.concatenate(parts)


def _fold(x: NDArray[np.float64], axis: int, sign: int) -> NDArray[np.float64]:
    """Return the even or odd part along an axis, at half its length; the middle of an odd length is even."""
    x = np.moveaxis(x, axis, 0)
    half = len(x) // 2
    parts = [(x[:half] + sign * x[::-1][:half]) / np.sqrt(2)]
    if sign > 0 and len(x) % 2:
        parts.append(x[half : half + 1])
    return np.moveaxis(np.concatenate(parts), 0, axis)


def _unfold(x: NDArray[np.float64], axis: int, sign: int, size: int) -> NDArray[np.float64]:
    """Return the whole axis from an even or odd part: the inverse of `_fold`."""
    x = np.moveaxis(x, axis, 0)
    half = size // 2
    near = x[:half] / np.sqrt(2)
    middle = x[half:] if sign > 0 else np.zeros((size % 2, *x.shape[1:]))
    return np.moveaxis(np.concatenate([near, middle, sign * near[::-1]]), 0, axis)


def _keep_largest(rows: NDArray[np.float64]) -> CovarianceRoot:
    """Return the root made of orthogonal rows, the largest first; negligible ones are left out."""
    size = np.sum(rows**2, axis=1)
    order = np.argsort(-size, kind="stable")[:MAX_DIRECTIONS]
    order = order[size[order] > NEGLIGIBLE * size[order[0]]]
    return CovarianceRoot(as_read_only(rows[order]), as_read_only(np.ascontiguousarray(rows[order].T)))


def evaluate_kernel(kernel: str, distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the covariance of two locations at a distance given in lengths."""
    if kernel == "rbf":
        return np.exp(-(distance**2) / 2)
    if kernel == "rough":
        return (1 - ROUGH_SHARE) * np.exp(-(distance**2) / 2) + ROUGH_SHARE * np.exp(
            -((ROUGH_FACTOR * distance) ** 2) / 2
        )
    if kernel == "matern32":
        return (1 + np.sqrt(3) * distance) * np.exp(-np.sqrt(3) * distance)
    return (1 + np.sqrt(5) * distance + 5 * distance**2 / 3) * np.exp(-np.sqrt(5) * distance)


def squared_distances(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared distances (n, n) between the rows of x."""
    square = np.sum(x**2, axis=1)
    return np.maximum(square[:, None] + square - 2 * x @ x.T, 0)
