"""Linear algebra, compiled: the same to the last digit whatever the number of a BLAS's threads.

A chain of draws amplifies last digits, and a choice of pairs is replayed from the answers years later, so what both
rest on is computed here in a fixed order. All loops run along whole rows, which vectorises.
"""

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled

Floats = NDArray[np.float64]

SAME = 1e-7  # of a covariance's largest variance: what is left when its root stops growing
AT_RIGHT_ANGLES = 1e-11  # cosine of two rows
SWEEPS = 30


@compiled
def upper(matrix: Floats) -> Floats:
    """U with UᵀU the matrix, symmetric and positive: Cholesky's, four rows at a time."""
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
def principal(matrix: Floats) -> Floats:
    """(m, n) rows at right angles with Σ rowᵀrow the matrix: eigenvectors, each times the root of its eigenvalue.

    Cholesky's rows with the largest pivot first, as many as matter, turned pairwise until all are at right angles
    (one-sided Jacobi): precise, also where eigenvalues coincide, as they do on a square.
    """
    n = matrix.shape[0]
    rows = np.empty((n, n))
    left = np.empty(n)
    for i in range(n):
        left[i] = matrix[i, i]
    least = SAME * left.max()
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
    turn(rows)
    return rows


@compiled
def turn(rows: Floats) -> None:
    """Turn rows pairwise, in place, until all are at right angles."""
    m, n = rows.shape
    size = np.empty(m)
    for a in range(m):
        size[a] = product(rows[a], rows[a])
    for _ in range(SWEEPS):
        turned = False
        for a in range(m - 1):
            for b in range(a + 1, m):
                both = product(rows[a], rows[b])
                if abs(both) <= AT_RIGHT_ANGLES * np.sqrt(size[a] * size[b]):
                    continue
                turned = True
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
            size[a] = product(rows[a], rows[a])
        if not turned:
            break


@compiled
def product(x: Floats, y: Floats) -> float:
    """Σ x·y, eight sums side by side so that it vectorises in a fixed order."""
    s = np.zeros(8)
    whole = x.shape[0] - x.shape[0] % 8
    for r in range(0, whole, 8):
        for lane in range(8):
            s[lane] += x[r + lane] * y[r + lane]
    for r in range(whole, x.shape[0]):
        s[0] += x[r] * y[r]
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))


@compiled
def products(rows: Floats) -> Floats:
    """I + JJᵀ of the rows of J."""
    m = rows.shape[0]
    found = np.empty((m, m))
    for a in range(m):
        for b in range(a + 1):
            found[a, b] = product(rows[a], rows[b])
            found[b, a] = found[a, b]
        found[a, a] += 1.0
    return found
