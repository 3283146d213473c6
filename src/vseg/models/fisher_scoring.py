"""Fisher scoring for models whose logits are linear in their parameters: f = Φθ, p = softmax(f), q = <p_i, p_j>.

The cost is that of `reconstruct` (Eq. 7) plus a Gaussian prior: Σ weight·loss(q, k) + λ‖p - Wp‖² + ½‖θ - centre‖²,
where a prior covariance other than I is put into Φ. A step solves (JᵀVJ + I + damping)·step = -slope with V the loss'
expected curvature: ten or so are enough, and the last matrix is what intervals and the evidence need.

All images of a task are one problem, their locations one after the other. A whole descent is compiled: its steps are so
small that Python would take most of the time, and hold back other threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array

from vseg._support.numba_cache import compiled
from vseg.data.responses import Tally
from vseg.reconstruction.losses import CROSS_ENTROPY, loss
from vseg.reconstruction.smoothness import Smoothness
from vseg.stimuli.random_maps import softmax

TOLERANCE, MOST_STEPS = 1e-7, 200
AT_ONCE = 64  # rows of J: few stay in the cache

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Parts = tuple[float, Floats, Floats]


class Problem(NamedTuple):
    """Design (n, K, P), the prior's centre, answers as pairs, shares and weights, and the rows of I - W if λ > 0."""

    design: Floats
    centre: Floats
    i: Whole
    j: Whole
    share: Floats
    weight: Floats
    code: int
    strength: float
    start: Whole
    column: Whole
    value: Floats

    def scaled(self, width: float) -> "Problem":
        """The same with a prior of this width."""
        return self._replace(design=width * self.design)


@dataclass(frozen=True, eq=False)
class Fit:
    """Where scoring ended. `information` is JᵀVJ without the prior; `evidence` the Laplace log evidence."""

    theta: Floats
    value: float
    information: Floats
    converged: bool
    steps: int

    @property
    def covariance(self) -> Floats:
        """Of the parameters, given the answers and the prior."""
        return np.asarray(np.linalg.inv(self.information + np.eye(len(self.theta))), np.float64)

    @property
    def evidence(self) -> float:
        """log p(answers | prior), by Laplace's approximation; comparable between priors of one model."""
        return -self.value - 0.5 * float(np.linalg.slogdet(self.information + np.eye(len(self.theta)))[1])


def problem(
    designs: Sequence[Floats],
    tallies: Sequence[Tally],
    *,
    code: int = CROSS_ENTROPY,
    strength: float = 0.0,
    smoothness: Smoothness | None = None,
) -> Problem:
    """Each image's design and answers; weighted by trials, so that the cross-entropy is a log-likelihood."""
    before = np.cumsum([0, *(len(design) for design in designs)])
    rough = csr_array((0, 0))
    if strength and smoothness is not None:
        rough = csr_array(block_diag([smoothness.residual] * len(designs)))
    return Problem(
        np.ascontiguousarray(np.concatenate(designs), np.float64),
        np.zeros(designs[0].shape[2]),
        np.concatenate([tally.pairs.i + first for tally, first in zip(tallies, before, strict=False)]),
        np.concatenate([tally.pairs.j + first for tally, first in zip(tallies, before, strict=False)]),
        np.concatenate([tally.share for tally in tallies]),
        np.concatenate([tally.n for tally in tallies]).astype(np.float64),
        code,
        float(strength),
        rough.indptr.astype(np.int64),
        rough.indices.astype(np.int64),
        rough.data.astype(np.float64),
    )


def scored(given: Problem, start: Floats, *, most_steps: int = MOST_STEPS) -> Fit:
    """The minimum that a start leads to."""
    return Fit(*_descended(given, start, most_steps))


def probabilities(design: Floats, theta: Floats) -> Floats:
    """(n, K) maps of the parameters."""
    return softmax(design @ theta)


@compiled
def _descended(given: Problem, start: Floats, most_steps: int) -> tuple[Floats, float, Floats, bool, int]:
    """Levenberg's damping keeps every step downhill."""
    theta, damping = start.copy(), 1e-3
    value, slope, information = _parts(given, theta)
    for step in range(1, most_steps + 1):
        while True:
            matrix = information.copy()
            for r in range(len(theta)):
                matrix[r, r] += 1.0 + damping * (information[r, r] + 1.0)
            move = _solved(matrix, -slope)
            lower, new_slope, new_information = _parts(given, theta + move)
            if lower <= value or damping > 1e12:
                break
            damping *= 8.0
        gain = value - lower
        if gain < 0.0:
            return theta, value, information, True, step  # no way down: rounding is all that is left
        # Steps that gain far less than the parabola promised overshoot from side to side: shorten the next one.
        promised = 0.0
        for r in range(len(theta)):
            bent = move[r]
            for c in range(len(theta)):
                bent += information[r, c] * move[c]
            promised -= move[r] * (slope[r] + 0.5 * bent)
        damping = max(damping / 6.0, 1e-9) if gain > 0.5 * promised else max(4.0 * damping, 0.1)
        theta, value, slope, information = theta + move, lower, new_slope, new_information
        if gain <= TOLERANCE * (1.0 + abs(value)):
            return theta, value, information, True, step
    return theta, value, information, False, most_steps


@compiled
def _parts(given: Problem, theta: Floats) -> Parts:
    """Cost, slope and expected curvature (without the prior's I)."""
    slope, information = theta - given.centre, np.zeros((len(theta), len(theta)))
    p = _maps(given.design, theta)
    value = 0.5 * np.sum(slope**2) + _add_answers(given, p, slope, information)
    if given.strength > 0.0:
        value += _add_roughness(given, p, slope, information)
    for r in range(len(theta)):
        for c in range(r):
            information[c, r] = information[r, c]
    return value, slope, information


@compiled
def _maps(design: Floats, theta: Floats) -> Floats:
    """Softmax of the logits, (n, K)."""
    n, K, P = design.shape
    p = np.empty((n, K))
    for a in range(n):
        highest, total = -np.inf, 0.0
        for k in range(K):
            logit = 0.0
            for r in range(P):
                logit += design[a, k, r] * theta[r]
            p[a, k] = logit
            highest = max(highest, logit)
        for k in range(K):
            p[a, k] = np.exp(p[a, k] - highest)
            total += p[a, k]
        for k in range(K):
            p[a, k] /= total
    return p


@compiled
def _add_answers(given: Problem, p: Floats, slope: Floats, information: Floats) -> float:
    """Of each pair, q and its slope in θ: ∂q/∂f_i = p_i∘(p_j - q)."""
    design, (K, P) = given.design, given.design.shape[1:]
    rows, bend, stiff = np.empty((AT_ONCE, P)), np.empty(AT_ONCE), np.empty(AT_ONCE)
    value, filled = 0.0, 0
    for e in range(len(given.i)):
        a, b = given.i[e], given.j[e]
        q = 0.0
        for k in range(K):
            q += p[a, k] * p[b, k]
        cost, first, second = loss(given.code, q, given.share[e])
        value += given.weight[e] * cost
        bend[filled], stiff[filled] = given.weight[e] * first, given.weight[e] * second
        for r in range(P):
            rows[filled, r] = 0.0
        for k in range(K):
            at_a, at_b = p[a, k] * (p[b, k] - q), p[b, k] * (p[a, k] - q)
            for r in range(P):
                rows[filled, r] += at_a * design[a, k, r] + at_b * design[b, k, r]
        filled += 1
        if filled == AT_ONCE or e == len(given.i) - 1:
            _add_rows(rows[:filled], bend[:filled], stiff[:filled], slope, information)
            filled = 0
    return value


@compiled
def _add_roughness(given: Problem, p: Floats, slope: Floats, information: Floats) -> float:
    """Of each location and segment, p - Wp and its slope in θ: ∂p_k/∂θ = p_k(φ_k - Σ p_l φ_l)."""
    design, (n, K, P) = given.design, given.design.shape
    mean = np.zeros((n, P))
    for a in range(n):
        for k in range(K):
            for r in range(P):
                mean[a, r] += p[a, k] * design[a, k, r]
    most = K * AT_ONCE
    rows, bend, stiff = np.empty((most, P)), np.empty(most), np.full(most, 2.0 * given.strength)
    value, filled = 0.0, 0
    for a in range(n):
        for k in range(K):
            rough = 0.0
            for r in range(P):
                rows[filled, r] = 0.0
            for e in range(given.start[a], given.start[a + 1]):
                c = given.column[e]
                share = given.value[e] * p[c, k]
                rough += share
                for r in range(P):
                    rows[filled, r] += share * (design[c, k, r] - mean[c, r])
            value += given.strength * rough**2
            bend[filled] = 2.0 * given.strength * rough
            filled += 1
        if filled == most or a == n - 1:
            _add_rows(rows[:filled], bend[:filled], stiff[:filled], slope, information)
            filled = 0
    return value


@compiled
def _add_rows(rows: Floats, bend: Floats, stiff: Floats, slope: Floats, information: Floats) -> None:
    """Jᵀ·bend, and the lower half of JᵀVJ, four rows at a time. Not by BLAS: its threads would be in our own way."""
    P, whole = rows.shape[1], len(rows) // 4 * 4
    for e in range(len(rows)):
        for r in range(P):
            slope[r] += bend[e] * rows[e, r]
    for r in range(P):
        for e in range(0, whole, 4):
            s0, s1 = stiff[e] * rows[e, r], stiff[e + 1] * rows[e + 1, r]
            s2, s3 = stiff[e + 2] * rows[e + 2, r], stiff[e + 3] * rows[e + 3, r]
            for c in range(r + 1):
                information[r, c] += (
                    s0 * rows[e, c] + s1 * rows[e + 1, c] + s2 * rows[e + 2, c] + s3 * rows[e + 3, c]
                )
        for e in range(whole, len(rows)):
            s0 = stiff[e] * rows[e, r]
            for c in range(r + 1):
                information[r, c] += s0 * rows[e, c]


@compiled
def _solved(matrix: Floats, right: Floats) -> Floats:
    """Gauss' elimination of a symmetric positive matrix, of which the upper half is read and written over."""
    P, x = len(right), right.copy()
    for r in range(P):
        whole = r // 4 * 4
        for k in range(0, whole, 4):
            s0, s1 = matrix[k, r] / matrix[k, k], matrix[k + 1, r] / matrix[k + 1, k + 1]
            s2, s3 = matrix[k + 2, r] / matrix[k + 2, k + 2], matrix[k + 3, r] / matrix[k + 3, k + 3]
            x[r] -= s0 * x[k] + s1 * x[k + 1] + s2 * x[k + 2] + s3 * x[k + 3]
            for c in range(r, P):
                matrix[r, c] -= (
                    s0 * matrix[k, c] + s1 * matrix[k + 1, c] + s2 * matrix[k + 2, c] + s3 * matrix[k + 3, c]
                )
        for k in range(whole, r):
            s0 = matrix[k, r] / matrix[k, k]
            x[r] -= s0 * x[k]
            for c in range(r, P):
                matrix[r, c] -= s0 * matrix[k, c]
    for r in range(P - 1, -1, -1):
        for c in range(r + 1, P):
            x[r] -= matrix[r, c] * x[c]
        x[r] /= matrix[r, r]
    return x
