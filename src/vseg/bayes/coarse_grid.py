"""Large layouts: fields are sums of functions on a coarse grid, interpolated to the locations of the answers.

choose_layout       the layout on which a prior is made: the layout itself, or a coarse grid if there are many locations
coarsen             answers about the cells of the coarse grid, for the search by evidence
make_interpolation  bicubic splines from the coarse grid to the locations of a layout

The fields of a prior vary over a tenth of the image's side or more, so a coarse grid describes them, however many
locations there are. Answers keep their locations where maps are sampled: at sharp borders, answers that are moved by
half a cell look like uncertainty. What is interpolated are log-odds, not probabilities.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg.bayes.model import AnswerCounts
from vseg.data.layout import Grid, Layout, find_nearest
from vseg.data.pairs import Pairs
from vseg.data.responses import Tally

MANY_LOCATIONS = 600  # above this, fields are interpolated from a coarse grid
COARSE = Grid(20)
FINE_SIZE = 128  # locations of a scatter are rounded to a grid of this size
LOG2_E = 1.4426950408889634
LOG_2_HIGH = 0.693147180369123816490  # log 2 in two parts, the first with few binary digits
LOG_2_LOW = 1.90821492927058770002e-10
ROUNDING = 1.5 * 2.0**52

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Interpolation(NamedTuple):
    """Bicubic splines on the coarse grid at n locations of a fine one; of size 0 if nothing is interpolated.

    Attributes
    ----------
    size : int
        Of the coarse grid.
    row, column : (n,)
        The locations, as rows and columns of the fine grid.
    first, weights : (N,), (N, 4)
        For each row or column of the fine grid, the first of the four of the coarse grid that it depends on, and their
        weights.
    """

    size: int
    row: Integers
    column: Integers
    first: Integers
    weights: Floats

    def take(self, locations: NDArray[np.integer[Any]]) -> "Interpolation":
        """Return the interpolation to some of the locations."""
        return self._replace(row=self.row[locations], column=self.column[locations])


NO_INTERPOLATION = Interpolation(
    0, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 4))
)


def choose_layout(layout: Layout) -> Layout:
    """Return the layout for a prior: a coarse grid if there are many locations, else the layout itself."""
    return layout if len(layout) <= MANY_LOCATIONS else COARSE


def coarsen(tally: Tally) -> tuple[Tally, AnswerCounts]:
    """Return answers about the cells of the coarse grid: without, and with, the pairs of two locations in one cell.

    By the model, two locations with the same probabilities p are called 'same' with probability Σ p², so answers about
    one cell tell how certain it is.
    """
    cell = find_nearest(COARSE, tally.layout.positions)
    ends = np.sort(np.stack([cell[tally.pairs.i], cell[tally.pairs.j]]), axis=0)
    key, pair = np.unique(ends[0] * len(COARSE) + ends[1], return_inverse=True)
    i, j = np.divmod(key, len(COARSE))
    same, trials = (np.bincount(pair, weights=counts).astype(np.float64) for counts in (tally.k, tally.n))
    apart = i != j
    k, n = (counts[apart].astype(np.int64) for counts in (same, trials))
    counts = AnswerCounts(i.astype(np.uint32), j.astype(np.uint32), same, trials, 0.0, 0.0)
    return Tally(Pairs(COARSE, i[apart], j[apart]), k, n), counts


def make_interpolation(layout: Layout) -> Interpolation:
    """Return the interpolation from the coarse grid to the locations of a layout."""
    from scipy.interpolate import BSpline

    fine = layout if isinstance(layout, Grid) else Grid(FINE_SIZE)
    row, column = np.divmod(find_nearest(fine, layout.positions), fine.size)
    knots, _ = _axis_spline()
    axis = (np.arange(fine.size) + 0.5) / fine.size
    # Beyond the outermost centres, the outermost polynomials go on.
    first = np.clip(np.searchsorted(knots, axis, side="right") - 4, 0, COARSE.size - 4)
    each = BSpline(knots, np.eye(COARSE.size), 3)(axis)
    weights = np.take_along_axis(each, first[:, None] + np.arange(4), axis=1)
    return Interpolation(COARSE.size, row, column, first, weights)


def spline_coefficients(functions: Floats) -> Floats:
    """Return the coefficients (m, N²) of bicubic splines through functions given at the cells of the coarse grid."""
    _, inverse = _axis_spline()
    values = functions.reshape(-1, COARSE.size, COARSE.size)
    return np.asarray(inverse @ values @ inverse.T).reshape(len(functions), -1)


def _axis_spline() -> tuple[Floats, Floats]:
    """Return the knots of cubic splines along an axis, and the matrix (N, N) from values to coefficients."""
    from scipy.interpolate import make_interp_spline

    centres = (np.arange(COARSE.size) + 0.5) / COARSE.size
    spline = make_interp_spline(centres, np.eye(COARSE.size), k=3)
    return spline.t, spline.c


@compiled
def interpolate(coefficients, to):
    """Return fields (C, n) at the locations, for the coefficients (C, N²) of splines.

    The fields are computed on the whole fine grid, along whole rows, and then taken where the locations are.
    """
    C, n, S, size = coefficients.shape[0], to.row.shape[0], to.size, to.first.shape[0]
    fields = np.empty((C, n))
    across = np.empty((S, size))
    line = np.empty((size, size))
    for c in range(C):
        # Along columns of the coarse grid first, so that the loops over fine columns run along rows.
        for s in range(S):
            for r in range(size):
                at = to.first[r]
                across[s, r] = (
                    to.weights[r, 0] * coefficients[c, s * S + at]
                    + to.weights[r, 1] * coefficients[c, s * S + at + 1]
                    + to.weights[r, 2] * coefficients[c, s * S + at + 2]
                    + to.weights[r, 3] * coefficients[c, s * S + at + 3]
                )
        for r in range(size):
            at = to.first[r]
            a, b, d, e = to.weights[r, 0], to.weights[r, 1], to.weights[r, 2], to.weights[r, 3]
            for j in range(size):
                line[r, j] = (a * across[at, j] + b * across[at + 1, j]) + (
                    d * across[at + 2, j] + e * across[at + 3, j]
                )
        for i in range(n):
            fields[c, i] = line[to.row[i], to.column[i]]
    return fields


@compiled
def interpolate_back(slopes, to):
    """Return derivatives (C, N²) by the coefficients, from those (C, n) by the fields: `interpolate` transposed."""
    C, n, S, size = slopes.shape[0], to.row.shape[0], to.size, to.first.shape[0]
    by_coefficient = np.zeros((C, S * S))
    across = np.empty((S, size))
    line = np.empty((size, size))
    for c in range(C):
        line[:] = 0.0
        across[:] = 0.0
        for i in range(n):
            line[to.row[i], to.column[i]] += slopes[c, i]
        for r in range(size):
            for a in range(4):
                weight = to.weights[r, a]
                at = to.first[r] + a
                for j in range(size):
                    across[at, j] += weight * line[r, j]
        for s in range(S):
            for r in range(size):
                at = s * S + to.first[r]
                for b in range(4):
                    by_coefficient[c, at + b] += to.weights[r, b] * across[s, r]
    return by_coefficient


@compiled
def softmax_columns(h, contrasts):
    """Return the maps (n, K) for fields h, (K-1, n): `model.softmax_fields`, two to three times as fast."""
    C, n = h.shape
    K = contrasts.shape[0]
    f = np.zeros((K, n))
    total = np.full(n, -np.inf)
    for k in range(K):
        for c in range(C):
            for i in range(n):
                f[k, i] += contrasts[k, c] * h[c, i]
        for i in range(n):
            total[i] = max(total[i], f[k, i])
    for k in range(K):
        for i in range(n):
            f[k, i] -= total[i]
    total[:] = 0.0
    for k in range(K):
        exponentials(f[k])
        for i in range(n):
            total[i] += f[k, i]
    for i in range(n):
        total[i] = 1.0 / total[i]
    p = np.empty((n, K))
    for i in range(n):
        for k in range(K):
            p[i, k] = f[k, i] * total[i]
    return p


@compiled
def exponentials(x):
    """Replace numbers x up to 700 by exp(x), to 15 digits, in loops that vectorise; below -700 by exp(-700).

    x = k log 2 + r with |r| ≤ ½ log 2, so exp(x) is 2ᵏ times a short power series. Adding ROUNDING, whose last binary
    digit stands for 1, rounds to k; its bits then become the exponent of 2ᵏ.
    """
    n = x.shape[0]
    power = np.empty(n)
    bits = power.view(np.int64)
    for i in range(n):
        x[i] = max(x[i], -700.0)
        power[i] = x[i] * LOG2_E + ROUNDING
    for i in range(n):
        k = power[i] - ROUNDING
        r = x[i] - k * LOG_2_HIGH - k * LOG_2_LOW
        s = 1.0 / 39916800.0
        for factorial in (3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0):
            s = s * r + 1.0 / factorial
        x[i] = s
    for i in range(n):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(n):
        x[i] *= power[i]
