"""The paper's parametric fits: squared error and smoothness of Eq. 7, minimised by L-BFGS from one random start."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.reconstruction.objective import Objective, build_objective
from vseg.stimuli.random_maps import softmax

Array = NDArray[np.float64]
LONGEST = 300
PYTORCHS = 20  # steps of PyTorch's L-BFGS unless told otherwise; the paper does not say how many it takes
LITTLE = 0.1  # s.d. of the logistic model's starting weights
JITTER = 0.025  # s.d. of the starting log σ: two equal segments would never part


def _exp(log_sigma: Array) -> Array:
    """Within what a double holds: a line search may try anything."""
    return np.exp(log_sigma.clip(-30, 30))


WAYS: dict[str, tuple[Callable[[Array], Array], ...]] = {
    "σ": (np.asarray, np.ones_like, np.asarray),
    "log σ": (_exp, _exp, np.log),
}
"""Of what L-BFGS may move: σ, its slope, and the way back from σ."""


class Logistic(NamedTuple):
    """Weights ω (K, D) and β (K,) of Eq. 10, and their maps."""

    weights: Array
    offsets: Array
    maps: Maps


class Variances(NamedTuple):
    """σ² of both segments, (2, D), with ω_k = -1/σ_k² and β = 0, and their maps."""

    variances: Array
    maps: Maps

    @property
    def difference(self) -> Array:
        """σ₁² - σ₂², what the paper shows."""
        return np.asarray(self.variances[0] - self.variances[1])

    @property
    def identified(self) -> Array:
        """ω₁ - ω₂, all that the maps depend on."""
        return np.asarray(1 / self.variances[1] - 1 / self.variances[0])


def logistic(features: Array, tally: Tally, segments: int, *, strength: float = 1.0, seed: int) -> Logistic:
    """The multinomial logistic model of Eq. 10.

    Examples
    --------
    >>> from vseg import Grid, designs, observers
    >>> truth = Maps.one_hot(Grid(8), [0] * 32 + [1] * 32)
    >>> tally = observers.simulate(truth, designs.covering(Grid(8), segments=2, seed=0), seed=1).tally()
    >>> found = logistic(truth.probabilities[:, :1], tally, 2, seed=2)
    >>> found.maps.distance_to(truth) < 0.1
    True
    """
    x = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    start = LITTLE * np.random.default_rng(seed).standard_normal((segments, x.shape[1]))
    start[:, -1] = 0
    problem = build_objective(tally, segments, strength=strength, weights="pairs")
    theta = _minimised(problem, start, lambda theta: x @ theta.T, lambda _, slope: slope.T @ x)
    return Logistic(theta[:, :-1], theta[:, -1], Maps(tally.layout, softmax(x @ theta.T)))


def variances(energies: Array, tally: Tally, start: Array, *, over: str = "σ", seed: int) -> Variances:
    """The K = 2 model of the texture experiment, λ = 0, from σ² = `start` in both segments but for a jitter.

    `over` is what L-BFGS moves, "σ" as the paper writes it or "log σ". It is stopped early: nothing keeps σ² finite,
    and after a few hundred steps single orientations have run away.
    """
    sigma_of, slope_of, back = WAYS[over]
    jitter = JITTER * np.random.default_rng(seed).standard_normal((2, len(start)))

    def logits(theta: Array) -> Array:
        return np.asarray(-energies @ (sigma_of(theta).T ** -2.0))

    def pulled(theta: Array, slope: Array) -> Array:
        return np.asarray(2 * (slope.T @ energies) * sigma_of(theta) ** -3.0 * slope_of(theta))

    problem = build_objective(tally, 2, weights="pairs")
    begin = back(np.sqrt(start) * np.exp(jitter))
    theta = _minimised(problem, begin, logits, pulled, longest=PYTORCHS)
    return Variances(sigma_of(theta) ** 2, Maps(tally.layout, softmax(logits(theta))))


def _minimised(
    problem: Objective,
    start: Array,
    logits: Callable[[Array], Array],
    pulled: Callable[[Array, Array], Array],
    longest: int = LONGEST,
) -> Array:
    """Parameters of the lowest cost; `pulled` takes the slope in the logits back to the parameters."""
    from scipy.optimize import minimize

    def cost(flat: Array) -> tuple[float, Array]:
        theta = flat.reshape(start.shape)
        p = np.ascontiguousarray(softmax(logits(theta)))
        slope = problem.gradient(p)
        by_logit = p * (slope - np.sum(p * slope, axis=1, keepdims=True))
        return problem.value(p), pulled(theta, by_logit).ravel()

    found = minimize(cost, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": longest})
    return np.asarray(found.x.reshape(start.shape))
