"""The paper's parametric fits: L-BFGS on the squared error and the penalty of Eq. 7, from one random start."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.models import differential_variance
from vseg.reconstruction.objective import build_objective
from vseg.stimuli.random_maps import softmax

Array = NDArray[np.float64]
MAX_STEPS = 300
START_SD = 0.1  # s.d. of the logistic model's starting weights


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
    theta = differential_variance.minimise(
        [problem], start, lambda theta: [x @ theta.T], lambda _, slopes: slopes[0].T @ x, steps=MAX_STEPS
    )
    return LogisticFit(theta[:, :-1], theta[:, -1], Maps(tally.layout, softmax(x @ theta.T)))


def fit_variances(
    energies: Array, tally: Tally, start: Array, *, parameter: str = "σ", seed: int
) -> VarianceFit:
    """Fit the K = 2 model of the texture experiment with λ = 0, starting at σ² = `start` plus jitter.

    `parameter` is what L-BFGS optimises: "σ", as the paper writes it, or "log σ".
    """
    variances = differential_variance.fit_variances(
        [energies], [tally], start, parameter=parameter, seed=seed
    )
    return VarianceFit(variances, Maps(tally.layout, softmax(-energies @ (1 / variances.T))))
