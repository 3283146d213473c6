"""Linear algebra, compiled: sums in a fixed order, so that results do not depend on a BLAS and its threads.

A chain of draws amplifies rounding errors, and an adaptive study is replayed from its answers years later, so whatever
these rest on is computed here. All loops run along whole rows, which vectorises.
"""

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled

Floats = NDArray[np.float64]

ROOT_TOLERANCE = 1e-7  # share of a covariance's largest variance that its root may leave out
ORTHOGONALITY_TOLERANCE = 1e-11  # cosine of two rows
MAX_SWEEPS = 30


@compiled
def cholesky_upper(matrix: Floats) -> Floats:
    """Return the upper Cholesky factor U, with UᵀU the positive definite matrix; four rows at a time."""
    d = matrix.shape[0]
    u = matrix.copy()
    for first in range(0, d, 4):
        last = min(first + 4, d)
        for k in range(first, last):
            for e in range(first, k):
                weight = u[e, k]
                for j in range(k, d):
                    u[k, j] -= weight * u[e, j]
            side = np.sqrt(u[k, k])
            for j in range(k, d):
                u[k, j] /= side
            for j in range(k):
                u[k, j] = 0.0
        if last - first < 4:
            break
        for i in range(last, d):
            a = u[first, i]
            b = u[first + 1, i]
            c = u[first + 2, i]
            e = u[first + 3, i]
            for j in range(i, d):
                u[i, j] -= a * u[first, j] + b * u[first + 1, j] + (c * u[first + 2, j] + e * u[first + 3, j])
    return u


@compiled
def orthogonal_root(matrix: Floats) -> Floats:
    """Return orthogonal rows (m, n) with Σ rowᵀrow the matrix: eigenvectors times the roots of their eigenvalues.

    Rows of a pivoted Cholesky decomposition, as many as matter, rotated pairwise until all are orthogonal (one-sided
    Jacobi). This is precise even where eigenvalues coincide, as they do on a square grid.
    """
    n = matrix.shape[0]
    rows = np.empty((n, n))
    left = np.empty(n)
    for i in range(n):
        left[i] = matrix[i, i]
    least = ROOT_TOLERANCE * left.max()
    m = 0
    while m < n:
        at = left.argmax()
        if left[at] <= least:
            break
        row = matrix[at].copy()
        for e in range(m):
            weight = rows[e, at]
            for j in range(n):
                row[j] -= weight * rows[e, j]
        side = np.sqrt(left[at])
        for j in range(n):
            row[j] /= side
            left[j] -= row[j] * row[j]
        left[at] = 0.0
        rows[m] = row
        m += 1
    rows = rows[:m]
    orthogonalise_rows(rows)
    return rows


@compiled
def orthogonalise_rows(rows: Floats) -> None:
    """Rotate pairs of rows, in place, until all rows are orthogonal."""
    m, n = rows.shape
    size = np.empty(m)
    for a in range(m):
        size[a] = dot8(rows[a], rows[a])
    for _ in range(MAX_SWEEPS):
        has_rotated = False
        for a in range(m - 1):
            for b in range(a + 1, m):
                both = dot8(rows[a], rows[b])
                if abs(both) <= ORTHOGONALITY_TOLERANCE * np.sqrt(size[a] * size[b]):
                    continue
                has_rotated = True
                lean = (size[b] - size[a]) / (2.0 * both)
                tangent = 1.0 / (abs(lean) + np.sqrt(1.0 + lean * lean))
                if lean < 0.0:
                    tangent = -tangent
                cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
                sine = cosine * tangent
                for j in range(n):
                    x = rows[a, j]
                    y = rows[b, j]
                    rows[a, j] = cosine * x - sine * y
                    rows[b, j] = sine * x + cosine * y
                size[a] -= tangent * both
                size[b] += tangent * both
        for a in range(m):
            size[a] = dot8(rows[a], rows[a])
        if not has_rotated:
            break


@compiled
def multiply(left: Floats, right: Floats) -> Floats:
    """Return the product of two matrices, four rows of the second at a time.

    `model.compute_fields` adds row by row: slower, but replays of adaptive studies need exactly its sums.
    """
    rows, inner = left.shape
    columns = right.shape[1]
    product = np.zeros((rows, columns))
    whole = inner - inner % 4
    for k in range(0, whole, 4):
        for r in range(rows):
            a = left[r, k]
            b = left[r, k + 1]
            c = left[r, k + 2]
            d = left[r, k + 3]
            for i in range(columns):
                product[r, i] += (a * right[k, i] + b * right[k + 1, i]) + (
                    c * right[k + 2, i] + d * right[k + 3, i]
                )
    for k in range(whole, inner):
        for r in range(rows):
            a = left[r, k]
            for i in range(columns):
                product[r, i] += a * right[k, i]
    return product


@compiled
def combine_rows(weights: Floats, rows: Floats) -> Floats:
    """Return Σ weights[r] · rows[r], four rows at a time."""
    count, columns = rows.shape
    total = np.zeros(columns)
    whole = count - count % 4
    for r in range(0, whole, 4):
        a = weights[r]
        b = weights[r + 1]
        c = weights[r + 2]
        d = weights[r + 3]
        for j in range(columns):
            total[j] += (a * rows[r, j] + b * rows[r + 1, j]) + (c * rows[r + 2, j] + d * rows[r + 3, j])
    for r in range(whole, count):
        a = weights[r]
        for j in range(columns):
            total[j] += a * rows[r, j]
    return total


@compiled
def sum_of_squares(x: Floats) -> float:
    """Return Σ x²."""
    total = 0.0
    for r in range(x.shape[0]):
        total += x[r] * x[r]
    return total


@compiled
def dot4(x: Floats, y: Floats) -> float:
    """Return Σ x·y, by four partial sums so that it vectorises in a fixed order."""
    a = 0.0
    b = 0.0
    c = 0.0
    d = 0.0
    whole = x.shape[0] - x.shape[0] % 4
    for r in range(0, whole, 4):
        a += x[r] * y[r]
        b += x[r + 1] * y[r + 1]
        c += x[r + 2] * y[r + 2]
        d += x[r + 3] * y[r + 3]
    for r in range(whole, x.shape[0]):
        a += x[r] * y[r]
    return (a + b) + (c + d)


@compiled
def dot8(x: Floats, y: Floats) -> float:
    """Return Σ x·y, by eight partial sums so that it vectorises in a fixed order."""
    s = np.zeros(8)
    whole = x.shape[0] - x.shape[0] % 8
    for r in range(0, whole, 8):
        for lane in range(8):
            s[lane] += x[r + lane] * y[r + lane]
    for r in range(whole, x.shape[0]):
        s[0] += x[r] * y[r]
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))


@compiled
def identity_plus_gram(rows: Floats) -> Floats:
    """Return I + JJᵀ for the rows of J."""
    m = rows.shape[0]
    matrix = np.empty((m, m))
    for a in range(m):
        for b in range(a + 1):
            matrix[a, b] = dot8(rows[a], rows[b])
            matrix[b, a] = matrix[a, b]
        matrix[a, a] += 1.0
    return matrix
