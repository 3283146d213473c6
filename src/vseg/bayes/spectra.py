"""Spectral bases: fields over the locations in a fixed basis, with variances that depend on length and share.

A field is f = s Σ_j √v_j u_j φ_j with standard normal weights u. The functions φ_j do not depend on the length ξ, only
their variances v_j(ξ, ρ) do, so scale, length and share can be sampled together with the weights. The functions are the
leading eigenvectors of the kernel at a reference length, and v_j(ξ) is the variance of the kernel of length ξ along
φ_j: exact at the reference, and close to it within a factor of 1.5. A share ρ of the variance belongs to a second
component: to detail of a shorter length (spatial prior), or to the fields of other participants (group prior).
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg.bayes.covariance_roots import MANY_LOCATIONS, evaluate_kernel, squared_distances
from vseg.data.layout import Grid, Layout, as_read_only

LOG_LENGTHS = np.log(np.geomspace(0.05, 0.7, 14))  # nodes of the tables of variances, in image sides
DETAIL_FACTOR = 2.5  # detail is shorter by this factor
MAX_DETAIL = 0.3  # largest share of the variance that is detail
MAX_GROUP_SHARE = 0.95
SPATIAL_DETAIL = 0.05  # share of detail in the spatial part of a group prior
MAX_FUNCTIONS = 160  # of a spatial basis
NEGLIGIBLE_SHARE = 0.003  # share of the variance that functions left out may have together
NEGLIGIBLE_VARIANCE = 0.02  # and the variance of each of them, relative to the largest
SMALLEST_VARIANCE = 1e-9

Floats = NDArray[np.float64]


class SpectralBasis(NamedTuple):
    """A basis over the locations, and the variances of its two components by length.

    Attributes
    ----------
    wide, tall : (m, n), (n, m)
        The basis and its transpose, both contiguous.
    first, second : (G, m)
        Logarithms of the variances of the two components at the lengths exp(LOG_LENGTHS); each row of a spatial basis
        has a mean variance of 1 per location. Without a length, all rows are the same.
    max_share : float
        The largest share of the second component.
    """

    wide: Floats
    tall: Floats
    first: Floats
    second: Floats
    max_share: float

    @property
    def functions(self) -> int:
        """m."""
        return len(self.wide)

    def variances(self, log_length: float, share: float) -> Floats:
        """Return the variance (m,) of each function at a length, in image sides, and a share."""
        at = np.clip(
            (log_length - LOG_LENGTHS[0]) / (LOG_LENGTHS[1] - LOG_LENGTHS[0]), 0, len(LOG_LENGTHS) - 1
        )
        low = min(int(at), len(LOG_LENGTHS) - 2)
        first, second = (
            np.exp((1 - (at - low)) * table[low] + (at - low) * table[low + 1])
            for table in (self.first, self.second)
        )
        return np.asarray((1 - share) * first + share * second)

    def truncate(self, log_length: float, share: float) -> "SpectralBasis":
        """Return the basis without the functions that have next to no variance at this length and share."""
        variances = self.variances(log_length, share)
        order = np.argsort(-variances, kind="stable")
        kept_share = np.cumsum(variances[order]) / variances.sum()
        count = int(np.searchsorted(kept_share, 1 - NEGLIGIBLE_SHARE)) + 1
        count = max(count, int(np.sum(variances >= NEGLIGIBLE_VARIANCE * variances.max())))
        kept = np.sort(order[:count])
        first, second = np.exp(self.first[:, kept]), np.exp(self.second[:, kept])
        return _make_basis(self.tall[:, kept], first, second, self.max_share, normalise=self.max_share > 0)


@lru_cache(maxsize=16)
def spatial_basis(layout: Layout, kernel: str, reference: float) -> SpectralBasis:
    """Return the basis of a kernel of `covariance_roots`, and of detail of the same kind, around a reference length."""
    if isinstance(layout, Grid) and kernel == "rbf":
        return _grid_basis(layout.size, reference)
    distances = np.sqrt(squared_distances(layout.positions))
    tall = _leading_eigenvectors(
        evaluate_kernel(kernel, distances / reference), min(MAX_FUNCTIONS, len(layout))
    )
    first, second = (
        np.array([
            np.einsum("nj,nj->j", tall, evaluate_kernel(kernel, distances / (np.exp(length) / factor)) @ tall)
            for length in LOG_LENGTHS
        ])
        for factor in (1.0, DETAIL_FACTOR)
    )  # fmt: skip
    return _make_basis(tall, first, second, MAX_DETAIL)


def _grid_basis(size: int, reference: float) -> SpectralBasis:
    """Return the basis of the rbf kernel on a grid, where it is a product over the two axes."""
    squared = squared_distances(np.arange(size)[:, None] / size)
    axis = _leading_eigenvectors(np.exp(-squared / (2 * reference**2)), size)

    def axis_variances(length: float) -> Floats:
        return np.einsum("nj,nj->j", axis, np.exp(-squared / (2 * length**2)) @ axis)

    short = axis_variances(reference / DETAIL_FACTOR)
    order = np.argsort(-np.multiply.outer(short, short).ravel(), kind="stable")
    down, across = np.divmod(order[:MAX_FUNCTIONS], size)

    def table(factor: float) -> Floats:
        rows = [axis_variances(np.exp(length) / factor) for length in LOG_LENGTHS]
        return np.array([row[down] * row[across] for row in rows])

    tall = (axis[:, None, down] * axis[None, :, across]).reshape(size * size, -1)
    return _make_basis(tall, table(1.0), table(DETAIL_FACTOR), MAX_DETAIL)


def fixed_basis(covariance: Floats) -> SpectralBasis:
    """Return the basis of a covariance (n, n) without a length and a second component."""
    values, vectors = np.linalg.eigh(covariance)
    kept = np.cumsum(values[::-1]) <= (1 - 1e-4) * values.sum()
    count = min(int(kept.sum()) + 1, len(values))
    variances = np.tile(np.maximum(values[::-1][:count], SMALLEST_VARIANCE), (len(LOG_LENGTHS), 1))
    return _make_basis(vectors[:, ::-1][:, :count], variances, variances, 0.0, normalise=False)


def add_group(basis: SpectralBasis, fields: Floats) -> SpectralBasis:
    """Return a spatial basis with the fields (n, r) of other participants as its second component."""
    spatial = (1 - SPATIAL_DETAIL) * np.exp(basis.first) + SPATIAL_DETAIL * np.exp(basis.second)
    left, sizes, _ = np.linalg.svd(fields, full_matrices=False)
    left, variances = left[:, sizes > 1e-6 * sizes[0]], sizes[sizes > 1e-6 * sizes[0]] ** 2
    none, rows = SMALLEST_VARIANCE, len(LOG_LENGTHS)
    first = np.hstack([spatial, np.full((rows, len(variances)), none)])
    second = np.hstack([np.full_like(spatial, none), np.tile(variances, (rows, 1))])
    return _make_basis(np.hstack([basis.tall, left]), first, second, MAX_GROUP_SHARE)


def _make_basis(
    tall: Floats, first: Floats, second: Floats, max_share: float, *, normalise: bool = True
) -> SpectralBasis:
    """Return a basis; normalised, its components have a mean variance of 1 per location at every length."""
    if normalise:
        first, second = (table * (len(tall) / table.sum(axis=1, keepdims=True)) for table in (first, second))
    wide, log_first, log_second = (
        as_read_only(np.ascontiguousarray(tall.T)),
        *(as_read_only(np.log(np.maximum(table, SMALLEST_VARIANCE))) for table in (first, second)),
    )
    return SpectralBasis(wide, as_read_only(np.ascontiguousarray(tall)), log_first, log_second, max_share)


def _leading_eigenvectors(covariance: Floats, count: int) -> Floats:
    """Return up to `count` leading eigenvectors (n, count) of a covariance."""
    n = len(covariance)
    if n > MANY_LOCATIONS:
        from scipy.sparse.linalg import eigsh

        values, vectors = eigsh(covariance, k=count, v0=np.ones(n))
        return np.asarray(vectors[:, np.argsort(-values)])
    return np.asarray(np.linalg.eigh(covariance)[1][:, ::-1][:, :count])
