"""Fisher scoring for models whose logits are linear in their parameters: f = Φθ, p = softmax(f), q = <p_i, p_j>.

The cost is that of `reconstruct` (Eq. 7) plus a Gaussian prior: Σ weight·loss(q, k) + λ‖p - Wp‖² + ½‖θ - centre‖²,
where a prior covariance other than I is absorbed into Φ. A step solves (JᵀVJ + I + damping)·step = -gradient with V
the expected curvature of the loss. About ten steps are enough, and the last matrix gives intervals and the evidence.

All images of a task form one problem, with their locations one after the other. The whole descent is compiled: its
steps are so short that Python would take most of the time and block other threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array

from vseg._support.numba_cache import compiled
from vseg.data.responses import Tally
from vseg.reconstruction.kernels import Smoothness
from vseg.reconstruction.losses import CROSS_ENTROPY, loss
from vseg.stimuli.random_maps import softmax

TOLERANCE, MAX_STEPS = 1e-7, 200
ROWS_PER_BATCH = 64  # rows of J at a time; few enough to stay in the CPU cache

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Derivatives = tuple[float, Floats, Floats]


class FisherScoringProblem(NamedTuple):
    """A problem for the compiled functions.

    Attributes
    ----------
    design : NDArray, shape (n, K, P)
        Φ.
    centre : NDArray, shape (P,)
        The centre of the prior.
    i, j, share, weight : NDArray, shape (m,)
        Pairs, their share of 'same' and their number of trials.
    code : int
        The loss.
    strength : float
        λ.
    start, column, value : NDArray
        The rows of I - W as a CSR matrix; empty if λ = 0.
    """

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

    def scaled(self, width: float) -> "FisherScoringProblem":
        """Return the same problem with a prior of this width."""
        return self._replace(design=width * self.design)


@dataclass(frozen=True, eq=False)
class FisherScoringResult:
    """The minimum that was found. `information` is JᵀVJ without the prior."""

    theta: Floats
    value: float
    information: Floats
    converged: bool
    steps: int

    @property
    def covariance(self) -> Floats:
        """The posterior covariance of the parameters."""
        return np.asarray(np.linalg.inv(self.information + np.eye(len(self.theta))), np.float64)

    @property
    def evidence(self) -> float:
        """Laplace's approximation of log p(answers | prior), comparable between priors of one model."""
        return -self.value - 0.5 * float(np.linalg.slogdet(self.information + np.eye(len(self.theta)))[1])


def build_problem(
    designs: Sequence[Floats],
    tallies: Sequence[Tally],
    *,
    code: int = CROSS_ENTROPY,
    strength: float = 0.0,
    smoothness: Smoothness | None = None,
) -> FisherScoringProblem:
    """Build one problem from the design and the answers of each image.

    Answers are weighted by trials, so that the cross-entropy is a log-likelihood.
    """
    offsets = np.cumsum([0, *(len(design) for design in designs)])
    residual = csr_array((0, 0))
    if strength and smoothness is not None:
        residual = csr_array(block_diag([smoothness.residual] * len(designs)))
    return FisherScoringProblem(
        np.ascontiguousarray(np.concatenate(designs), np.float64),
        np.zeros(designs[0].shape[2]),
        np.concatenate([tally.pairs.i + offset for tally, offset in zip(tallies, offsets, strict=False)]),
        np.concatenate([tally.pairs.j + offset for tally, offset in zip(tallies, offsets, strict=False)]),
        np.concatenate([tally.share for tally in tallies]),
        np.concatenate([tally.n for tally in tallies]).astype(np.float64),
        code,
        float(strength),
        residual.indptr.astype(np.int64),
        residual.indices.astype(np.int64),
        residual.data.astype(np.float64),
    )


def minimise_cost(
    problem: FisherScoringProblem, start: Floats, *, max_steps: int = MAX_STEPS
) -> FisherScoringResult:
    """Descend from a starting point to the nearest minimum."""
    return FisherScoringResult(*_descend(problem, start, max_steps))


def probabilities(design: Floats, theta: Floats) -> Floats:
    """Return the (n, K) maps for these parameters."""
    return softmax(design @ theta)


@compiled
def _descend(
    problem: FisherScoringProblem, start: Floats, max_steps: int
) -> tuple[Floats, float, Floats, bool, int]:
    """Take Levenberg-Marquardt steps; the damping ensures that each lowers the cost."""
    theta, damping = start.copy(), 1e-3
    value, gradient, information = compute_derivatives(problem, theta)
    for step in range(1, max_steps + 1):
        while True:
            matrix = information.copy()
            for r in range(len(theta)):
                matrix[r, r] += 1.0 + damping * (information[r, r] + 1.0)
            move = _solve(matrix, -gradient)
            lower, new_gradient, new_information = compute_derivatives(problem, theta + move)
            if lower <= value or damping > 1e12:
                break
            damping *= 8.0
        gain = value - lower
        if gain < 0.0:
            return theta, value, information, True, step  # no step lowers the cost beyond rounding
        # A step that gains far less than the quadratic model predicts overshoots: shorten the next one.
        predicted_gain = 0.0
        for r in range(len(theta)):
            curved = move[r]
            for c in range(len(theta)):
                curved += information[r, c] * move[c]
            predicted_gain -= move[r] * (gradient[r] + 0.5 * curved)
        damping = max(damping / 6.0, 1e-9) if gain > 0.5 * predicted_gain else max(4.0 * damping, 0.1)
        theta, value, gradient, information = theta + move, lower, new_gradient, new_information
        if gain <= TOLERANCE * (1.0 + abs(value)):
            return theta, value, information, True, step
    return theta, value, information, False, max_steps


@compiled
def compute_derivatives(problem: FisherScoringProblem, theta: Floats) -> Derivatives:
    """Return the cost, its gradient and its expected curvature (without the prior's I)."""
    gradient, information = theta - problem.centre, np.zeros((len(theta), len(theta)))
    p = _softmax_maps(problem.design, theta)
    value = 0.5 * np.sum(gradient**2) + _add_answers(problem, p, gradient, information)
    if problem.strength > 0.0:
        value += _add_roughness(problem, p, gradient, information)
    for r in range(len(theta)):
        for c in range(r):
            information[c, r] = information[r, c]
    return value, gradient, information


@compiled
def _softmax_maps(design: Floats, theta: Floats) -> Floats:
    """Return the softmax of the logits, (n, K)."""
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
def _add_answers(problem: FisherScoringProblem, p: Floats, gradient: Floats, information: Floats) -> float:
    """Add the terms of each pair, with q and its derivatives: ∂q/∂f_i = p_i∘(p_j - q)."""
    design, (K, P) = problem.design, problem.design.shape[1:]
    rows, residual, curvature = (
        np.empty((ROWS_PER_BATCH, P)),
        np.empty(ROWS_PER_BATCH),
        np.empty(ROWS_PER_BATCH),
    )
    value, filled = 0.0, 0
    for e in range(len(problem.i)):
        a, b = problem.i[e], problem.j[e]
        q = 0.0
        for k in range(K):
            q += p[a, k] * p[b, k]
        cost, first, second = loss(problem.code, q, problem.share[e])
        value += problem.weight[e] * cost
        residual[filled], curvature[filled] = problem.weight[e] * first, problem.weight[e] * second
        for r in range(P):
            rows[filled, r] = 0.0
        for k in range(K):
            at_a, at_b = p[a, k] * (p[b, k] - q), p[b, k] * (p[a, k] - q)
            for r in range(P):
                rows[filled, r] += at_a * design[a, k, r] + at_b * design[b, k, r]
        filled += 1
        if filled == ROWS_PER_BATCH or e == len(problem.i) - 1:
            _add_rows(rows[:filled], residual[:filled], curvature[:filled], gradient, information)
            filled = 0
    return value


@compiled
def _add_roughness(problem: FisherScoringProblem, p: Floats, gradient: Floats, information: Floats) -> float:
    """Add the terms of each location and segment, with p - Wp and its derivatives: ∂p_k/∂θ = p_k(φ_k - Σ p_l φ_l)."""
    design, (n, K, P) = problem.design, problem.design.shape
    mean = np.zeros((n, P))
    for a in range(n):
        for k in range(K):
            for r in range(P):
                mean[a, r] += p[a, k] * design[a, k, r]
    capacity = K * ROWS_PER_BATCH
    rows, residual, curvature = (
        np.empty((capacity, P)),
        np.empty(capacity),
        np.full(capacity, 2.0 * problem.strength),
    )
    value, filled = 0.0, 0
    for a in range(n):
        for k in range(K):
            rough = 0.0
            for r in range(P):
                rows[filled, r] = 0.0
            for e in range(problem.start[a], problem.start[a + 1]):
                c = problem.column[e]
                share = problem.value[e] * p[c, k]
                rough += share
                for r in range(P):
                    rows[filled, r] += share * (design[c, k, r] - mean[c, r])
            value += problem.strength * rough**2
            residual[filled] = 2.0 * problem.strength * rough
            filled += 1
        if filled == capacity or a == n - 1:
            _add_rows(rows[:filled], residual[:filled], curvature[:filled], gradient, information)
            filled = 0
    return value


@compiled
def _add_rows(
    rows: Floats, residual: Floats, curvature: Floats, gradient: Floats, information: Floats
) -> None:
    """Add Jᵀ·residual to the gradient and the lower half of JᵀVJ to the information, four rows at a time.

    Not by BLAS, whose threads would compete with those of the caller.
    """
    P, whole = rows.shape[1], len(rows) // 4 * 4
    for e in range(len(rows)):
        for r in range(P):
            gradient[r] += residual[e] * rows[e, r]
    for r in range(P):
        for e in range(0, whole, 4):
            s0, s1 = curvature[e] * rows[e, r], curvature[e + 1] * rows[e + 1, r]
            s2, s3 = curvature[e + 2] * rows[e + 2, r], curvature[e + 3] * rows[e + 3, r]
            for c in range(r + 1):
                information[r, c] += (
                    s0 * rows[e, c] + s1 * rows[e + 1, c] + s2 * rows[e + 2, c] + s3 * rows[e + 3, c]
                )
        for e in range(whole, len(rows)):
            s0 = curvature[e] * rows[e, r]
            for c in range(r + 1):
                information[r, c] += s0 * rows[e, c]


@compiled
def _solve(matrix: Floats, right: Floats) -> Floats:
    """Solve a symmetric positive definite system by Gaussian elimination; overwrites the matrix's upper half."""
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
