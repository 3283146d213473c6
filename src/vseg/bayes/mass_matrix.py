"""The mass matrix of a chain: along few informed directions its own values, along all others that of the prior, 1.

mass_from_curvature   the matrix at a mode
reduce_mass           less mass along directions in which draws of a pilot run varied more
multiply_by_mass      products with the matrix or a power of it, compiled
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg.bayes.linear_algebra import combine_rows

INFORMED_ABOVE = 1.5  # curvature above which a direction has a mass of its own; that of the prior is 1
MIN_EXCESS = 1.5  # variance in the pilot run above which the mass along a direction is reduced
MAX_EXCESS = 16.0  # labels that change in the pilot run look like more

Floats = NDArray[np.float64]


class Mass(NamedTuple):
    """A mass matrix M = I + Σ (λ_r - 1) e_r e_rᵀ: few directions, so that products with it stay in a processor's cache.

    Attributes
    ----------
    wide, tall : (r, D), (D, r)
        The directions e_r, which are orthonormal, and the transposed matrix; both are contiguous.
    values : (r,)
        λ_r.
    """

    wide: Floats
    tall: Floats
    values: Floats


def mass_from_curvature(curvature: Floats, hyperparameters: int) -> Mass:
    """Return the mass matrix: the curvature along its informed directions and along the last, the hyper-parameters."""
    from scipy.linalg import eigh

    size = len(curvature) - hyperparameters
    _, informed = eigh(curvature[:size, :size], subset_by_value=(INFORMED_ABOVE, np.inf))
    directions = np.zeros((informed.shape[1] + hyperparameters, len(curvature)))
    directions[:-hyperparameters, :size] = informed.T
    directions[-hyperparameters:, size:] = np.eye(hyperparameters)
    return _diagonalise(directions, directions @ curvature @ directions.T)


def _diagonalise(directions: Floats, block: Floats) -> Mass:
    """Return the mass matrix that is `block` (r, r) between these directions (r, D), and 1 along all others."""
    values, vectors = np.linalg.eigh(block)
    wide = np.ascontiguousarray(vectors.T @ directions)
    return Mass(wide, np.ascontiguousarray(wide.T), values)


def reduce_mass(mass: Mass, positions: Floats) -> Mass:
    """Return less mass along directions in which draws (n, D) varied more than the mass matrix tells.

    Only combinations of its directions are looked at: along all others, the prior limits the variance. Even so there
    are about as many directions as draws, and by chance the variance along some is several times the true one. Those
    that stand out are shrunk to what is expected of the true variance along the direction found (a spiked covariance:
    Donoho, Gavish and Johnstone, 2018).
    """
    v = (positions - positions.mean(axis=0)) @ (mass.tall * np.sqrt(mass.values))
    variances, vectors = np.linalg.eigh(v.T @ v / (len(v) - 1))
    true = shrink_variances(variances, len(variances) / (len(v) - 1))
    across = np.sqrt(mass.values)[:, None] * vectors
    return _diagonalise(mass.wide, (across / true) @ across.T)


def shrink_variances(variances: Floats, ratio: float) -> Floats:
    """Return the expected variances along sample eigenvectors, for a `ratio` of dimensions to draws; 1 if not above 1.

    A variance of ℓ among the draws comes from one of λ, with ℓ = λ + λ·ratio/(λ - 1). The cosine of the angle between
    the eigenvector and the true direction is c, with c² = (1 - ratio/(λ - 1)²)/(1 + ratio/(λ - 1)).
    """
    stands_out = variances > max((1 + np.sqrt(ratio)) ** 2, MIN_EXCESS)
    both = np.where(stands_out, variances + 1 - ratio, 4.0)
    source = 0.5 * (both + np.sqrt(np.maximum(both**2 - 4 * np.where(stands_out, variances, 1.0), 0.0)))
    cosine2 = np.clip((1 - ratio / (source - 1) ** 2) / (1 + ratio / (source - 1)), 0.0, 1.0)
    return np.where(stands_out, np.minimum(1 + (source - 1) * cosine2, MAX_EXCESS), 1.0)


@compiled
def multiply_by_mass(x, mass, values):
    """Return the product of x and a mass matrix, or a power of it: that with these values (r,) instead of its own."""
    along = combine_rows(x, mass.tall)
    for r in range(along.shape[0]):
        along[r] *= values[r] - 1.0
    return x + combine_rows(along, mass.wide)
