"""σ₁² - σ₂² of the texture model as the paper fits it: by σ itself, with the squared error, no penalty and no prior.

With two segments, β = 0 and ω_k = -1/σ_k², the maps depend on ω₁ - ω₂ alone. So σ₁² - σ₂² is not identified: it depends
on where the search starts, which the paper does not print, and on where it stops. `vseg.models.variance` fits what is
identified, with its interval; this is for comparison with the paper, from two starts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.blas import single_blas_thread
from vseg.data.layout import as_floats
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.errors import InvalidInput
from vseg.features import FeatureSource
from vseg.models.task import Task
from vseg.reconstruction.objective import Objective, build_objective
from vseg.stimuli.random_maps import softmax

Array = NDArray[np.float64]
Start = Literal["energies", "ones"]
Parameter = Literal["σ", "log σ"]
STARTS: tuple[Start, ...] = ("energies", "ones")
STEPS = 20  # default of PyTorch's L-BFGS; the paper does not print its number
JITTER_SD = 0.025  # s.d. of the starting log σ; two equal segments would stay equal
MIN_ENERGY = 0.02  # smallest start, as a share of the largest energy


def _exp(log_sigma: Array) -> Array:
    """Return exp(log σ), clipped because a line search may try values that overflow."""
    return np.exp(log_sigma.clip(-30, 30))


PARAMETRISATIONS: dict[str, tuple[Callable[[Array], Array], ...]] = {
    "σ": (np.asarray, np.ones_like, np.asarray),
    "log σ": (_exp, _exp, np.log),
}
"""For each parameter that L-BFGS may optimise: σ of the parameter, its derivative, and the parameter of σ."""


@dataclass(frozen=True, eq=False)
class DifferentialVariance:
    """The texture model as the paper fits it.

    Attributes
    ----------
    variances : NDArray, shape (2, D)
        σ² of both segments, in units of the mean energy.
    maps : dict of Maps
        The maps of each image.
    """

    variances: Array
    maps: dict[str, Maps]

    @property
    def difference(self) -> Array:
        """(D,) the differential variance σ₁² - σ₂² that the paper shows; it depends on the start."""
        return np.asarray(self.variances[0] - self.variances[1])

    @property
    def identified(self) -> Array:
        """(D,) the difference ω₁ - ω₂ = 1/σ₂² - 1/σ₁², on which alone the maps depend."""
        return np.asarray(1 / self.variances[1] - 1 / self.variances[0])

    def align_to(self, maps: Mapping[str, Maps]) -> "DifferentialVariance":
        """Return the fit with its two segments in the order of these maps, since their own order is arbitrary."""
        excess = sum(
            np.sum((own.probabilities - own.probabilities[:, ::-1]) * maps[name].probabilities)
            for name, own in self.maps.items()
        )
        if excess >= 0:
            return self
        swapped = {name: own.permute([1, 0]) for name, own in self.maps.items()}
        return DifferentialVariance(self.variances[::-1], swapped)


def fit_differential_variance(
    task: Task,
    features: FeatureSource = "orientation",
    *,
    start: Start | ArrayLike = "energies",
    parameter: Parameter = "σ",
    steps: int = STEPS,
    seed: int,
) -> DifferentialVariance:
    """Fit σ₁ and σ₂ of the texture model as the paper does: squared error, λ = 0, no prior, one start.

    It is stopped early because nothing keeps σ² finite: after a few hundred steps the variances of single orientations
    diverge. `vseg.models.variance` fits the identified ω₁ - ω₂ instead, with its interval.

    Parameters
    ----------
    task : Task
        The answers and images, with two segments.
    features : str, callable or mapping
        Oriented energies; they are divided by their mean.
    start : "energies", "ones" or array_like
        Where σ² starts, but for a jitter of 2.5 %: at the mean energy of each orientation, at 1, or at these values.
    parameter : "σ" or "log σ"
        What L-BFGS optimises; the paper writes σ.
    steps : int
        Maximum number of steps of L-BFGS.
    seed : int
        Seed of the jitter.

    Returns
    -------
    DifferentialVariance
        With `difference` (σ₁² - σ₂²), `identified` (ω₁ - ω₂) and `maps`.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.Maps.one_hot(vseg.Grid(6), [0] * 18 + [1] * 18)
    >>> pairs = vseg.designs.covering(truth.layout, segments=2, seed=0)
    >>> task = Task(vseg.simulate(truth, pairs, blocks=5, seed=1), segments=2)
    >>> energies = 0.5 + truth.probabilities
    >>> fitted = fit_differential_variance(task, {"image": energies}, seed=0).align_to({"image": truth})
    >>> fitted.difference.round() > 0  # the first segment has more of the first energy
    array([ True, False])
    """
    if task.segments != 2:
        raise InvalidInput(f"The variance model has 2 segments, the task {task.segments}.")
    if parameter not in PARAMETRISATIONS:
        raise InvalidInput(f"Expected the parameter 'σ' or 'log σ', got {parameter!r}.")
    tallies = task.tallies()
    raw = [task.features(features, name) for name in tallies]
    unit = np.concatenate(raw).mean()
    energies = [each / unit for each in raw]
    begin = _find_start(start, np.concatenate(energies).mean(axis=0))
    variances = fit_variances(
        energies, list(tallies.values()), begin, parameter=parameter, steps=steps, seed=seed
    )
    maps = {
        name: Maps(task.layout, softmax(_logits(each, variances)))
        for name, each in zip(tallies, energies, strict=True)
    }
    return DifferentialVariance(variances, maps)


def fit_variances(
    energies: Sequence[Array],
    tallies: Sequence[Tally],
    start: Array,
    *,
    parameter: str = "σ",
    steps: int = STEPS,
    seed: int,
) -> Array:
    """Return (2, D) the variances fitted to energies (n, D) and answers of images, from σ² = `start` plus jitter."""
    sigma_from, sigma_slope, parameter_from = PARAMETRISATIONS[parameter]
    jitter = JITTER_SD * np.random.default_rng(seed).standard_normal((2, len(start)))
    rows, ends = np.concatenate(energies), np.cumsum([len(each) for each in energies])[:-1]

    def logits(theta: Array) -> list[Array]:
        return np.split(_logits(rows, sigma_from(theta) ** 2.0), ends)

    def pull_back(theta: Array, slopes: Sequence[Array]) -> Array:
        slope = np.concatenate(slopes)
        return np.asarray(2 * (slope.T @ rows) * sigma_from(theta) ** -3.0 * sigma_slope(theta))

    problems = [build_objective(tally, 2, weights="pairs") for tally in tallies]
    begin = parameter_from(np.sqrt(start) * np.exp(jitter))
    return np.asarray(sigma_from(minimise(problems, begin, logits, pull_back, steps=steps)) ** 2)


def minimise(
    problems: Sequence[Objective],
    start: Array,
    logits: Callable[[Array], Sequence[Array]],
    pull_back: Callable[[Array, Sequence[Array]], Array],
    *,
    steps: int,
) -> Array:
    """Minimise the sum of the images' objectives by L-BFGS; return the parameters.

    `logits` returns those of each image; `pull_back` converts the gradients in the logits to one in the parameters.
    """
    from scipy.optimize import minimize

    def cost(flat: Array) -> tuple[float, Array]:
        theta, value, slopes = flat.reshape(start.shape), 0.0, []
        for problem, own in zip(problems, logits(theta), strict=True):
            p = np.ascontiguousarray(softmax(own))
            slope = problem.gradient(p)
            value += problem.value(p)
            slopes.append(p * (slope - np.sum(p * slope, axis=1, keepdims=True)))
        return value, pull_back(theta, slopes).ravel()

    with (
        single_blas_thread
    ):  # L-BFGS-B multiplies tiny matrices, on which several threads only wait for each other
        result = minimize(cost, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    return np.asarray(result.x.reshape(start.shape))


def _logits(energies: Array, variances: Array) -> Array:
    return np.asarray(-energies @ (1 / variances.T))


def _find_start(start: Start | ArrayLike, mean: Array) -> Array:
    """Return the starting σ² of each orientation."""
    if isinstance(start, str):
        if start not in STARTS:
            raise InvalidInput(f"Expected the start 'energies' or 'ones', or an array, got {start!r}.")
        return np.ones(len(mean)) if start == "ones" else np.maximum(mean, MIN_ENERGY * mean.max())
    given = as_floats(cast(ArrayLike, start), "start")
    if given.shape != mean.shape or not (given > 0).all():
        raise InvalidInput(f"Expected {len(mean)} variances above 0 to start from, got shape {given.shape}.")
    return given
