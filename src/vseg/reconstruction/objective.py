"""The objective of Eq. 7: Σ over pairs of weight·loss(<p_i, p_j>, k_ij) + λ·‖p - Wp‖²."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.numba_cache import compiled
from vseg.data.layout import Layout, as_floats
from vseg.data.responses import Tally
from vseg.errors import InvalidInput
from vseg.reconstruction.kernels import Kernel, Smoothness, build_smoothness
from vseg.reconstruction.losses import get_loss_code, loss

WEIGHTS = ("trials", "pairs")
STRONGEST = 1e12  # largest λ: above it rounding errors exceed the data term, and squares may overflow


class PairRows(NamedTuple):
    """The tested pairs, listed by location: row i holds its partners, with their shares and weights.

    Row numbers are unsigned, which saves compiled code the check for negative indices.
    """

    start: NDArray[np.int64]
    partner: NDArray[np.uint32]
    share: NDArray[np.float64]
    weight: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Objective:
    """What a fit minimises, as flat arrays; `objective(...)` builds it from a Tally."""

    layout: Layout
    segments: int
    code: int
    strength: float
    smoothness: Smoothness
    tested: PairRows

    def check_start(self, start: ArrayLike) -> NDArray[np.float64]:
        """Check the shape of a warm start and that it lies on the simplex; return it as a new array."""
        p, shape = as_floats(start, "a start"), (len(self.layout), self.segments)
        if p.shape != shape:
            wanted = f"A start for {self.segments} segments on {self.layout} has shape {shape}"
            raise InvalidInput(f"{wanted}, got {p.shape}.")
        if not (p >= 0).all() or not (np.abs(p.sum(axis=1) - 1) < 1e-6).all():
            raise InvalidInput("A start is non-negative and sums to 1 at every location; this one is not.")
        return np.ascontiguousarray(p)

    def with_strength(self, strength: float) -> "Objective":
        """Return the same objective with another λ ≥ 0."""
        if not isinstance(strength, (int, float, np.number)) or not 0 <= strength <= STRONGEST:
            raise InvalidInput(f"The smoothness λ is a number from 0 up to {STRONGEST:g}, got {strength!r}.")
        return replace(self, strength=float(strength))

    def terms(self, p: NDArray[np.float64]) -> tuple[float, float]:
        """Return the data term and λ times the penalty of maps p, shape (n, K)."""
        data = data_term(p, self.tested, self.code)
        return data, self.strength * self.smoothness.penalty(p) if self.strength else 0.0

    def value(self, p: NDArray[np.float64]) -> float:
        """Return the objective of maps p, shape (n, K)."""
        return sum(self.terms(p))

    def gradient(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (n, K) gradient of the objective; S1 prints it for the squared error without its minus sign."""
        slope = _data_gradient(p, self.tested, self.code)
        if self.strength:
            residual = self.smoothness.residual
            slope += 2 * self.strength * (residual.T @ (residual @ p))
        return slope


def build_objective(
    tally: Tally,
    segments: int,
    *,
    strength: float = 0.0,
    loss: str = "squared_error",
    kernel: Kernel | Smoothness = "four",
    weights: str = "trials",
) -> Objective:
    """Build the objective of a tally.

    Parameters
    ----------
    tally : Tally
    segments : int
        K ≥ 2.
    strength : float
        λ ≥ 0, on the scale of the paper: plain sums over pairs and over locations.
    loss : "squared_error" (Eq. 6) or "cross_entropy" (Eq. 1-3)
    kernel : str, tuple, matrix or Smoothness
        As in `build_smoothness`, or its result.
    weights : "trials" or "pairs"
        Weight a pair by n_ij / mean n (the default), or every pair by 1 (the paper's Eq. 6).
    """
    if isinstance(segments, bool) or not isinstance(segments, (int, np.integer)) or segments < 2:
        raise InvalidInput(f"The number of segments is a whole number from 2 up, got {segments!r}.")
    if weights not in WEIGHTS:
        raise InvalidInput(f"Unknown weights {weights!r}; choose one of {', '.join(WEIGHTS)}.")
    if not len(tally):
        raise InvalidInput("There are no responses to fit; expected at least one tested pair.")
    penalty = kernel if isinstance(kernel, Smoothness) else build_smoothness(tally.layout, kernel)
    if penalty.layout != tally.layout:
        raise InvalidInput(f"The kernel is for {penalty.layout}, but the pairs lie on {tally.layout}.")
    weight = tally.n / tally.n.mean() if weights == "trials" else np.ones(len(tally))
    tested = PairRows(*_list_both_ends(len(tally.layout), tally.pairs.i, tally.pairs.j, tally.share, weight))
    return Objective(tally.layout, int(segments), get_loss_code(loss), 0.0, penalty, tested).with_strength(
        strength
    )


@compiled
def _list_both_ends(n, i, j, share, weight):
    start = np.zeros(n + 1, np.int64)
    for e in range(i.size):
        start[i[e] + 1] += 1
        start[j[e] + 1] += 1
    for a in range(n):
        start[a + 1] += start[a]
    at = start[:-1].copy()
    partner = np.empty(2 * i.size, np.uint32)
    shares = np.empty(2 * i.size)
    weights = np.empty(2 * i.size)
    for e in range(i.size):
        for a, b in ((i[e], j[e]), (j[e], i[e])):
            partner[at[a]], shares[at[a]], weights[at[a]] = b, share[e], weight[e]
            at[a] += 1
    return start, partner, shares, weights


@compiled
def data_term(p, tested, code):
    """Return Σ weight·loss over the tested pairs, each counted once."""
    start, partner, share, weight = tested
    total = 0.0
    for i in range(p.shape[0]):
        for e in range(start[i], start[i + 1]):
            if partner[e] > i:
                q = 0.0
                for c in range(p.shape[1]):
                    q += p[i, c] * p[partner[e], c]
                total += weight[e] * loss(code, q, share[e])[0]
    return total


@compiled
def _data_gradient(p, tested, code):
    start, partner, share, weight = tested
    gradient = np.zeros_like(p)
    for i in range(p.shape[0]):
        for e in range(start[i], start[i + 1]):
            q = 0.0
            for c in range(p.shape[1]):
                q += p[i, c] * p[partner[e], c]
            slope = weight[e] * loss(code, q, share[e])[1]
            for c in range(p.shape[1]):
                gradient[i, c] += slope * p[partner[e], c]
    return gradient
