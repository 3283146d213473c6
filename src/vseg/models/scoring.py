"""Fisher scoring for models whose logits are linear in their parameters: f = Φθ, p = softmax(f), q = <p_i, p_j>.

The cost is that of `reconstruct` (Eq. 7) plus a Gaussian prior: Σ weight·loss(q, k) + λ‖p - Wp‖² + ½θᵀθ, where a prior
covariance other than I is put into Φ. A step solves (JᵀVJ + I + damping)·step = -slope with V the loss' expected
curvature: ten or so are enough, and the last matrix is what intervals and the evidence need.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vseg.losses import CROSS_ENTROPY, EPS
from vseg.responses import Tally
from vseg.smoothness import Smoothness
from vseg.stimuli.maps import softmax

TOLERANCE, MOST_STEPS = 1e-7, 200


@dataclass(frozen=True, eq=False)
class Shown:
    """One image's part: design (n, K, P), and its answers as pairs, shares and weights."""

    design: NDArray[np.float64]
    i: NDArray[np.int64]
    j: NDArray[np.int64]
    share: NDArray[np.float64]
    weight: NDArray[np.float64]

    @cached_property
    def ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The design at the first and at the second location of each pair."""
        return self.design[self.i], self.design[self.j]

    @classmethod
    def of(cls, design: NDArray[np.float64], tally: Tally) -> "Shown":
        """Weighted by the number of trials, so that the cross-entropy is a log-likelihood."""
        return cls(design, tally.pairs.i, tally.pairs.j, tally.share, tally.n.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Fit:
    """Where scoring ended. `information` is JᵀVJ without the prior; `evidence` the Laplace log evidence."""

    theta: NDArray[np.float64]
    value: float
    information: NDArray[np.float64]
    converged: bool
    steps: int

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Of the parameters, given the answers and the prior."""
        return np.asarray(np.linalg.inv(self.information + np.eye(len(self.theta))), np.float64)

    @property
    def evidence(self) -> float:
        """log p(answers | prior), by Laplace's approximation; comparable between priors of one model."""
        return -self.value - 0.5 * float(np.linalg.slogdet(self.information + np.eye(len(self.theta)))[1])


def scored(
    shown: Sequence[Shown],
    start: NDArray[np.float64],
    *,
    code: int = CROSS_ENTROPY,
    strength: float = 0.0,
    smoothness: Smoothness | None = None,
    most_steps: int = MOST_STEPS,
) -> Fit:
    """The minimum that a start leads to (Levenberg's damping keeps every step downhill)."""
    theta, damping = start.copy(), 1e-3
    value, slope, information = _parts(shown, theta, code, strength, smoothness)
    for step in range(1, most_steps + 1):
        while True:
            matrix = information + np.eye(len(theta)) + damping * np.diag(np.diag(information) + 1)
            move = np.linalg.solve(matrix, -slope)
            tried = _parts(shown, theta + move, code, strength, smoothness)
            if tried[0] <= value or damping > 1e12:
                break
            damping *= 8
        gain = value - tried[0]
        if gain < 0:
            return Fit(theta, value, information, True, step)  # no way down: rounding is all that is left
        # Steps that gain far less than the parabola promised overshoot from side to side: shorten the next one.
        promised = -slope @ move - 0.5 * move @ (information @ move + move)
        damping = max(damping / 6, 1e-9) if gain > 0.5 * promised else max(4 * damping, 0.1)
        theta, (value, slope, information) = theta + move, tried
        if gain <= TOLERANCE * (1 + abs(value)):
            return Fit(theta, value, information, True, step)
    return Fit(theta, value, information, False, most_steps)


def probabilities(design: NDArray[np.float64], theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, K) maps of the parameters."""
    return softmax(design @ theta)


def _parts(
    shown: Sequence[Shown],
    theta: NDArray[np.float64],
    code: int,
    strength: float,
    smoothness: Smoothness | None,
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Cost, slope and expected curvature (without the prior's I), summed over images."""
    value, slope = 0.5 * float(theta @ theta), theta.copy()
    information = np.zeros((len(theta), len(theta)))
    for image in shown:
        p = probabilities(image.design, theta)
        q, jacobian = _predicted(image, p)
        loss, bend, curvature = _loss(q, image.share, image.weight, code)
        value += loss
        slope += jacobian.T @ bend
        information += (jacobian * curvature[:, None]).T @ jacobian
        if strength and smoothness is not None:
            rough, turned = _roughness(image.design, p, smoothness)
            value += strength * float(np.sum(rough**2))
            slope += 2 * strength * (turned.T @ rough.ravel())
            information += 2 * strength * (turned.T @ turned)
    return value, slope, information


def _predicted(image: Shown, p: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """q of each pair and its slope in θ: ∂q/∂f_i = p_i∘(p_j - q)."""
    at_i, at_j = p[image.i], p[image.j]
    q = np.einsum("mk,mk->m", at_i, at_j)
    jacobian = np.zeros((len(q), image.design.shape[2]))
    for own, other, design in zip((at_i, at_j), (at_j, at_i), image.ends, strict=True):
        slope = own * (other - q[:, None])
        for k in range(slope.shape[1]):  # a few segments: faster than one product over all of them
            jacobian += slope[:, k, None] * design[:, k]
    return q, jacobian


def _loss(
    q: NDArray[np.float64], share: NDArray[np.float64], weight: NDArray[np.float64], code: int
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """The losses of losses.py over all pairs at once: value, slopes, expected curvatures."""
    if code != CROSS_ENTROPY:
        return float(weight @ (share - q) ** 2), 2 * weight * (q - share), 2 * weight
    q = q.clip(EPS, 1 - EPS)
    fisher = weight / (q * (1 - q))
    value = -float(weight @ (share * np.log(q) + (1 - share) * np.log(1 - q)))
    return value, (q - share) * fisher, fisher


def _roughness(
    design: NDArray[np.float64], p: NDArray[np.float64], smoothness: Smoothness
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """p - Wp, shape (n, K), and its slope in θ, shape (n·K, P)."""
    mean = np.einsum("nk,nkp->np", p, design)
    moved = p[:, :, None] * (design - mean[:, None, :])
    n, K, P = moved.shape
    turned = smoothness.residual @ moved.reshape(n, K * P)
    return smoothness.residual @ p, turned.reshape(n * K, P)
