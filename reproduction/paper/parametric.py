"""The paper's parametric fits: L-BFGS on the squared error and the penalty of Eq. 7, from one random start."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg._support.blas import single_blas_thread
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.reconstruction.objective import Objective, build_objective
from vseg.stimuli.random_maps import softmax

Array = NDArray[np.float64]
MAX_STEPS = 300
PYTORCH_STEPS = 20  # default of PyTorch's L-BFGS; the paper does not print its number
START_SD = 0.1  # s.d. of the logistic model's starting weights
JITTER_SD = 0.025  # s.d. of the starting log σ; two equal segments would stay equal


def _exp(log_sigma: Array) -> Array:
    """Return exp(log σ), clipped because a line search may try values that overflow."""
    return np.exp(log_sigma.clip(-30, 30))


PARAMETRISATIONS: dict[str, tuple[Callable[[Array], Array], ...]] = {
    "σ": (np.asarray, np.ones_like, np.asarray),
    "log σ": (_exp, _exp, np.log),
}
"""For each parameter that L-BFGS may optimise: σ of the parameter, its derivative, and the parameter of σ."""


class LogisticFit(NamedTuple):
    """Weights ω (K, D) and offsets β (K,) of Eq. 10, and their maps."""

    weights: Array
    offsets: Array
    maps: Maps


class VarianceFit(NamedTuple):
    """Variances σ² of both segments, (2, D), with ω_k = -1/σ_k² and β = 0, and their maps."""

    variances: Array
    maps: Maps

    @property
    def difference(self) -> Array:
        """The differential variance σ₁² - σ₂² that the paper shows."""
        return np.asarray(self.variances[0] - self.variances[1])

    @property
    def identified(self) -> Array:
        """The difference ω₁ - ω₂, on which alone the maps depend."""
        return np.asarray(1 / self.variances[1] - 1 / self.variances[0])


def fit_logistic(
    features: Array, tally: Tally, segments: int, *, strength: float = 1.0, seed: int
) -> LogisticFit:
    """Fit the multinomial logistic model of Eq. 10.

    Examples
    --------
    >>> from vseg import Grid, designs, observers
    >>> truth = Maps.one_hot(Grid(8), [0] * 32 + [1] * 32)
    >>> tally = observers.simulate(truth, designs.covering(Grid(8), segments=2, seed=0), seed=1).tally()
    >>> fit = fit_logistic(truth.probabilities[:, :1], tally, 2, seed=2)
    >>> fit.maps.distance_to(truth) < 0.1
    True
    """
    x = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    start = START_SD * np.random.default_rng(seed).standard_normal((segments, x.shape[1]))
    start[:, -1] = 0
    problem = build_objective(tally, segments, strength=strength, weights="pairs")
    theta = _minimise(problem, start, lambda theta: x @ theta.T, lambda _, slope: slope.T @ x)
    return LogisticFit(theta[:, :-1], theta[:, -1], Maps(tally.layout, softmax(x @ theta.T)))


def fit_variances(
    energies: Array, tally: Tally, start: Array, *, parameter: str = "σ", seed: int
) -> VarianceFit:
    """Fit the K = 2 model of the texture experiment with λ = 0, starting at σ² = `start` plus jitter.

    `parameter` is what L-BFGS optimises: "σ", as the paper writes it, or "log σ". It is stopped early because nothing
    keeps σ² finite: after a few hundred steps the variances of single orientations diverge.
    """
    sigma_from, sigma_slope, parameter_from = PARAMETRISATIONS[parameter]
    jitter = JITTER_SD * np.random.default_rng(seed).standard_normal((2, len(start)))

    def logits(theta: Array) -> Array:
        return np.asarray(-energies @ (sigma_from(theta).T ** -2.0))

    def pull_back(theta: Array, slope: Array) -> Array:
        return np.asarray(2 * (slope.T @ energies) * sigma_from(theta) ** -3.0 * sigma_slope(theta))

    problem = build_objective(tally, 2, weights="pairs")
    begin = parameter_from(np.sqrt(start) * np.exp(jitter))
    theta = _minimise(problem, begin, logits, pull_back, max_steps=PYTORCH_STEPS)
    return VarianceFit(sigma_from(theta) ** 2, Maps(tally.layout, softmax(logits(theta))))


def _minimise(
    problem: Objective,
    start: Array,
    logits: Callable[[Array], Array],
    pull_back: Callable[[Array, Array], Array],
    max_steps: int = MAX_STEPS,
) -> Array:
    """Return the parameters of the lowest cost; `pull_back` converts a gradient in the logits to the parameters."""
    from scipy.optimize import minimize

    def cost(flat: Array) -> tuple[float, Array]:
        theta = flat.reshape(start.shape)
        p = np.ascontiguousarray(softmax(logits(theta)))
        slope = problem.gradient(p)
        by_logit = p * (slope - np.sum(p * slope, axis=1, keepdims=True))
        return problem.value(p), pull_back(theta, by_logit).ravel()

    with (
        single_blas_thread
    ):  # L-BFGS-B multiplies tiny matrices, on which several threads only wait for each other
        result = minimize(cost, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": max_steps})
    return np.asarray(result.x.reshape(start.shape))
