"""Updates of one row at a time: given all other rows, row i minimises a convex function on the simplex.

For the squared error the row's problem is the quadratic xᵀAx - 2bᵀx with
A = Σ w p_j p_jᵀ + λR_ii I and b = Σ w k p_j - λ Σ R_ij p_j, solved in closed form for two and three segments
and by pairwise exchange for more; other losses take a Newton step on it with backtracking. Every update
lowers the objective; the sum of the decreases is returned, so that the objective need not be evaluated.

No array is passed to a function inside the loop over rows, because numba makes that several times slower.
"""

import numpy as np

from vseg._support.numba_cache import compiled
from vseg.reconstruction.losses import SQUARED_ERROR, loss

FLAT = 1e-14  # curvature below this counts as zero
STAY = 1e-8  # weight of the old row, relative to the curvature
EXCHANGES = 2  # pairwise exchanges per row and segment; rows need not be solved exactly
LEVEL = 1e-13  # slopes that differ by less than this share of the curvature count as equal
HALVINGS = 30  # maximum halvings of a step that does not lower the objective
WORTHWHILE = 0.02  # an exchange that gains less than this share of the row's gain ends the row


@compiled
def update_rows(p, tested, code, strength, penalty, relax, rows):
    """Update `rows` of p in place, in that order; return the decrease of the objective."""
    if code == SQUARED_ERROR and p.shape[1] == 2:
        return update_two_segments(p, tested, strength, penalty, relax, rows)
    if code == SQUARED_ERROR and p.shape[1] == 3:
        return update_three_segments(p, tested, strength, penalty, relax, rows)
    return update_any_segments(p, tested, code, strength, penalty, relax, rows)


@compiled
def update_two_segments(p, tested, strength, penalty, relax, rows):
    """Update rows with two segments: p_i = (x, 1-x), a parabola in x on [0, 1]."""
    start, partner, share, weight = tested
    r_start, r_column, r_value, r_diagonal = penalty
    fallen = 0.0
    for i in rows:
        h = 0.0
        c = 0.0
        for e in range(start[i], start[i + 1]):
            u = p[partner[e], 0]
            d = 2.0 * u - 1.0
            wd = weight[e] * d
            h += wd * d
            c += wd * (share[e] - 1.0 + u)
        if strength > 0.0:
            s = 0.0
            for e in range(r_start[i], r_start[i + 1]):
                s += r_value[e] * p[r_column[e], 0]
            h += 2.0 * strength * r_diagonal[i]
            c -= 2.0 * strength * s
        old = p[i, 0]
        if h > FLAT:
            x = old + relax * (c / h - old)
            plain = min(max(c / h, 0.0), 1.0)
            x = plain if x < 0.0 or x > 1.0 else x
            fallen += (x - old) * (2.0 * c - h * (x + old))
            p[i, 0] = x
            p[i, 1] = 1.0 - x
    return fallen


@compiled
def update_three_segments(p, tested, strength, penalty, relax, rows):
    """Update rows with three segments: p_i = (x, y, 1-x-y), a paraboloid on the triangle."""
    start, partner, share, weight = tested
    r_start, r_column, r_value, r_diagonal = penalty
    fallen = 0.0
    for i in rows:
        h00 = 0.0
        h01 = 0.0
        h11 = 0.0
        c0 = 0.0
        c1 = 0.0
        for e in range(start[i], start[i + 1]):
            j = partner[e]
            last = p[j, 2]
            d0 = p[j, 0] - last
            d1 = p[j, 1] - last
            gap = share[e] - last
            w0 = weight[e] * d0
            w1 = weight[e] * d1
            h00 += w0 * d0
            h01 += w0 * d1
            h11 += w1 * d1
            c0 += w0 * gap
            c1 += w1 * gap
        if strength > 0.0:
            s0 = 0.0
            s1 = 0.0
            for e in range(r_start[i], r_start[i + 1]):
                j = r_column[e]
                s0 += r_value[e] * p[j, 0]
                s1 += r_value[e] * p[j, 1]
            stiff = strength * r_diagonal[i]
            h00 += 2.0 * stiff
            h01 += stiff
            h11 += 2.0 * stiff
            # rows of R sum to zero, so the third column's sum is -R_ii - s0 - s1
            c0 -= strength * (2.0 * s0 + s1)
            c1 -= strength * (2.0 * s1 + s0)
        o0 = p[i, 0]
        o1 = p[i, 1]
        near = (
            STAY * (h00 + h11) + FLAT
        )  # where the answers do not determine the row, stay close to the old one
        h00 += 2.0 * near
        h01 += near
        h11 += 2.0 * near
        c0 += near * (2.0 * o0 + o1)
        c1 += near * (2.0 * o1 + o0)
        det = h00 * h11 - h01 * h01
        x = (c0 * h11 - c1 * h01) / det
        y = (c1 * h00 - c0 * h01) / det
        if x < 0.0 or y < 0.0 or x + y > 1.0:  # the best point of the three edges
            u = min(max(c0 / h00, 0.0), 1.0)
            x = u
            y = 0.0
            best = u * (h00 * u - 2.0 * c0)
            u = min(max(c1 / h11, 0.0), 1.0)
            value = u * (h11 * u - 2.0 * c1)
            if value < best:
                best = value
                x = 0.0
                y = u
            h = h00 - 2.0 * h01 + h11
            c = c0 - c1 - h01 + h11
            u = min(max(c / h, 0.0), 1.0)
            value = h11 - 2.0 * c1 + u * (h * u - 2.0 * c)
            if value < best:
                x = u
                y = 1.0 - u
        d0 = x - o0
        d1 = y - o1
        d2 = -d0 - d1
        o2 = max(1.0 - o0 - o1, 0.0)
        step = relax
        if o0 + step * d0 < 0.0:
            step = -o0 / d0
        if o1 + step * d1 < 0.0:
            step = -o1 / d1
        if o2 + step * d2 < 0.0:
            step = -o2 / d2
        step = max(step, 1.0)
        d0 *= step
        d1 *= step
        fallen += d0 * (2.0 * c0 - h00 * (2.0 * o0 + d0) - h01 * (2.0 * o1 + d1))
        fallen += d1 * (2.0 * c1 - h11 * (2.0 * o1 + d1) - h01 * (2.0 * o0 + d0))
        # The term that keeps a row near its old value is not part of the objective.
        fallen += near * (d0 * d0 + d1 * d1 + (d0 + d1) * (d0 + d1))
        x = max(o0 + d0, 0.0)
        y = max(o1 + d1, 0.0)
        p[i, 0] = x
        p[i, 1] = y
        p[i, 2] = max(1.0 - x - y, 0.0)
    return fallen


@compiled
def update_any_segments(p, tested, code, strength, penalty, relax, rows):
    """Update rows with any number of segments and any loss, by exchanges between the two segments that gain most."""
    start, partner, share, weight = tested
    r_start, r_column, r_value, r_diagonal = penalty
    K = p.shape[1]
    A = np.empty((K, K))
    b = np.empty(K)
    s = np.empty(K)
    x = np.empty(K)
    slope = np.empty(K)
    fallen = 0.0
    for i in rows:
        for r in range(K):
            b[r] = 0.0
            s[r] = 0.0
            for c in range(K):
                A[r, c] = 0.0
        for e in range(start[i], start[i + 1]):
            j = partner[e]
            if code == SQUARED_ERROR:
                bend = weight[e]
                pull = weight[e] * share[e]
            else:
                q = 0.0
                for r in range(K):
                    q += p[i, r] * p[j, r]
                _, first, second = loss(code, q, share[e])
                bend = 0.5 * weight[e] * second
                pull = bend * q - 0.5 * weight[e] * first
            for r in range(K):
                v = p[j, r]
                b[r] += pull * v
                v *= bend
                for c in range(r + 1):
                    A[r, c] += v * p[j, c]
        if strength > 0.0:
            for e in range(r_start[i], r_start[i + 1]):
                for r in range(K):
                    s[r] += r_value[e] * p[r_column[e], r]
            for r in range(K):
                b[r] -= strength * s[r]
                A[r, r] += strength * r_diagonal[i]
        scale = 0.0
        for r in range(K):
            scale += A[r, r]
            x[r] = p[i, r]
            for c in range(r):
                A[c, r] = A[r, c]
        for r in range(K):
            g = -b[r]
            for c in range(K):
                g += A[r, c] * p[i, c]
            slope[r] = g
        gained = 0.0
        for _ in range(EXCHANGES * K):
            to = 0
            for r in range(1, K):
                if slope[r] < slope[to]:
                    to = r
            source = -1
            best = 0.0
            for r in range(K):
                drop = slope[r] - slope[to]
                if x[r] > 0.0 and drop > LEVEL * scale:
                    gain = drop * drop / max(A[r, r] + A[to, to] - 2.0 * A[r, to], FLAT)
                    if gain > best:
                        best = gain
                        source = r
            gained += best
            if source < 0 or best < WORTHWHILE * gained:
                break
            amount = (slope[source] - slope[to]) / max(
                A[source, source] + A[to, to] - 2.0 * A[source, to], FLAT
            )
            if amount >= x[source]:
                amount = x[source]
                x[source] = 0.0
            else:
                x[source] -= amount
            x[to] += amount
            for r in range(K):
                slope[r] += amount * (A[to, r] - A[source, r])
        if code == SQUARED_ERROR:
            step = relax
            for r in range(K):
                x[r] -= p[i, r]
                if p[i, r] + step * x[r] < 0.0:
                    step = -p[i, r] / x[r]
            step = max(step, 1.0)
            for r in range(K):
                v = 2.0 * b[r]
                for c in range(K):
                    v -= A[r, c] * (2.0 * p[i, c] + step * x[c])
                fallen += step * x[r] * v
            for r in range(K):
                p[i, r] = max(p[i, r] + step * x[r], 0.0)
            continue
        expected = 0.0
        for r in range(K):
            x[r] -= p[i, r]
        for r in range(K):
            v = b[r]
            for c in range(K):
                v -= A[r, c] * p[i, c]
            expected += 2.0 * x[r] * v
        if expected <= 0.0:
            continue
        step = 1.0
        for _ in range(HALVINGS):
            lower = 0.0
            for e in range(start[i], start[i + 1]):
                q = 0.0
                d = 0.0
                for r in range(K):
                    q += p[i, r] * p[partner[e], r]
                    d += x[r] * p[partner[e], r]
                lower += weight[e] * (loss(code, q, share[e])[0] - loss(code, q + step * d, share[e])[0])
            if strength > 0.0:
                for r in range(K):
                    lower -= (
                        step * x[r] * strength * (r_diagonal[i] * (2.0 * p[i, r] + step * x[r]) + 2.0 * s[r])
                    )
            if lower >= 0.05 * step * expected:
                for r in range(K):
                    p[i, r] = max(p[i, r] + step * x[r], 0.0)
                fallen += lower
                break
            step *= 0.5
    return fallen
