"""A mixture model: K components in feature space, fitted in each image separately and smoothed over space.

The components (Gaussian, or Student-t with heavier tails) are fitted by expectation maximisation without any answers.
Their log posteriors are averaged over a neighbourhood and divided by a temperature. Only the width of the
neighbourhood and the temperature are fitted to the answers: two numbers shared by all images.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput
from vseg.features import FeatureSource, standardise
from vseg.features.extraction import describe_features
from vseg.models.black_box import negative_log_likelihood
from vseg.models.model_interface import picklable
from vseg.models.task import Task
from vseg.stimuli.random_maps import softmax

if TYPE_CHECKING:
    from scipy.sparse import csr_array

WIDTHS_CELLS = (0.0, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5)
LOG_TEMPERATURES = (-3.0, 4.0)
STUDENT_DEGREES_OF_FREEDOM = 4.0
STARTS, ROUNDS = 4, 100
TOLERANCE = 1e-6  # of the log-likelihood per location
RIDGE = 1e-3  # added to each component's variance, in units of the features' variance


@dataclass(frozen=True, eq=False)
class MixtureModel:
    """A fitted mixture: the width of smoothing in cells, the temperature and the cost in nats."""

    get_maps: Callable[[str], Maps]
    width_cells: float
    temperature: float
    cost: float

    @property
    def parameters(self) -> dict[str, float]:
        """The two parameters that were fitted to the answers."""
        return {"width_cells": self.width_cells, "temperature": self.temperature}

    def maps(self, image: str) -> Maps:
        """Return the maps of an image."""
        return self.get_maps(image)

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """Return P(same) of pairs on an image (Eq. 2)."""
        return self.get_maps(image).same_probability(pairs)


@picklable
def mixture(
    features: FeatureSource = "lab", *, tails: str = "gaussian", starts: int = STARTS
) -> Callable[..., MixtureModel]:
    """Return a family of mixtures of Gaussian or Student-t components on any features.

    Parameters
    ----------
    features : str, callable or mapping
        The features.
    tails : "gaussian" or "student"
        The components' distribution.
    starts : int
        Number of random starting points of the expectation maximisation.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> FittedModel`.

    Examples
    --------
    >>> mixture("lab", tails="student").__name__
    'mixture[lab, student]'
    """
    if tails not in ("gaussian", "student"):
        raise InvalidInput(f"The tails of a mixture are gaussian or student, got {tails!r}.")
    freedom = np.inf if tails == "gaussian" else STUDENT_DEGREES_OF_FREEDOM

    def fit(task: Task, *, seed: int) -> MixtureModel:
        def posterior(image: str) -> NDArray[np.float64]:
            # Fitted without answers and with a seed from the image's name, so it is the same in every fold.
            rng = np.random.default_rng(zlib.crc32(image.encode()))
            return task.compute_once(
                (fit, "mixture", describe_features(features), task.segments, image),
                lambda: log_posterior(
                    task.features(features, image), task.segments, freedom, starts=starts, rng=rng
                ),
            )

        def get_maps(image: str, width: float, temperature: float) -> Maps:
            smooth = smoothing(task.layout, width) @ posterior(image)
            return Maps(task.layout, softmax(smooth / temperature))

        value, width, temperature = min(_fit_temperature(width, task, posterior) for width in WIDTHS_CELLS)
        return MixtureModel(
            partial(get_maps, width=width, temperature=temperature), width, temperature, value
        )

    fit.__name__ = f"mixture[{describe_features(features)}{', student' if tails == 'student' else ''}]"
    return fit


def _fit_temperature(
    width: float, task: Task, posterior: Callable[[str], NDArray[np.float64]]
) -> tuple[float, float, float]:
    """Return the cost, the width and the best temperature at that width."""
    from scipy.optimize import minimize_scalar

    tallies = task.tallies()
    smooth = {name: smoothing(task.layout, width) @ posterior(name) for name in tallies}

    def cost(log_temperature: float) -> float:
        total = 0.0
        for name, tally in tallies.items():
            maps = Maps(task.layout, softmax(smooth[name] / np.exp(log_temperature)))
            total += negative_log_likelihood(maps.same_probability(tally.pairs), tally.k, tally.n)
        return total

    result = minimize_scalar(cost, bounds=LOG_TEMPERATURES, method="bounded")
    return float(result.fun), width, float(np.exp(result.x))


def smoothing(layout: Layout, width_cells: float) -> "csr_array":
    """Return (n, n) sparse Gaussian weights of neighbouring locations that sum to 1; a cell is the side over √n."""
    from scipy.sparse import csr_array, diags_array, eye_array
    from scipy.spatial import cKDTree

    if not width_cells:
        return eye_array(len(layout), format="csr")
    tree = cKDTree(layout.positions * np.sqrt(len(layout)))
    near = tree.sparse_distance_matrix(tree, 3 * width_cells, output_type="coo_matrix")
    weight = csr_array((np.exp(-(near.data**2) / (2 * width_cells**2)), (near.row, near.col)), near.shape)
    return diags_array(1 / weight.sum(axis=1)) @ weight


def log_posterior(
    features: NDArray[np.float64],
    segments: int,
    freedom: float = np.inf,
    *,
    starts: int = STARTS,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return (n, K) log p(segment | features) of the most likely mixture from several starts."""
    x = standardise(features)[0]
    x = x[:, x.std(axis=0) > 0] if (x.std(axis=0) > 0).any() else x[:, :1]
    results = [_run_em(x, segments, freedom, rng) for _ in range(starts)]
    return max(results, key=lambda each: each[0])[1]


def _run_em(
    x: NDArray[np.float64], segments: int, freedom: float, rng: np.random.Generator
) -> tuple[float, NDArray[np.float64]]:
    """Run expectation maximisation from a k-means++ start; return the log-likelihood and the log posterior."""
    share = np.eye(segments)[_initial_labels(x, segments, rng)] * 0.9 + 0.1 / segments
    weight = np.ones_like(share)
    previous, total, log_share = -np.inf, -np.inf, np.log(share)
    for _ in range(ROUNDS):
        joint, squared = _log_joint(x, share, weight, freedom)
        top = joint.max(axis=1, keepdims=True)
        log_total = top + np.log(np.exp(joint - top).sum(axis=1, keepdims=True))
        log_share, total = joint - log_total, float(log_total.sum())
        share = np.exp(log_share)
        if np.isfinite(freedom):
            weight = (freedom + x.shape[1]) / (freedom + squared)
        if total - previous <= TOLERANCE * len(x):
            break
        previous = total
    return total, log_share


def _log_joint(
    x: NDArray[np.float64], share: NDArray[np.float64], weight: NDArray[np.float64], freedom: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Maximise, then return (n, K) log p(x, segment) and squared Mahalanobis distances."""
    from scipy.special import gammaln

    n, D = x.shape
    joint, squared = np.empty_like(share), np.empty_like(share)
    for k in range(share.shape[1]):
        mass = share[:, k].sum() + 1e-9
        weighted = share[:, k] * weight[:, k]
        mean = weighted @ x / (weighted.sum() + 1e-12)
        off = x - mean
        covariance = (off * weighted[:, None]).T @ off / mass + RIDGE * np.eye(D)
        root = np.linalg.cholesky(covariance)
        squared[:, k] = np.sum(np.linalg.solve(root, off.T) ** 2, axis=0)
        scale = np.log(mass / n) - np.log(np.diag(root)).sum()
        if np.isfinite(freedom):
            norm = gammaln((freedom + D) / 2) - gammaln(freedom / 2) - D / 2 * np.log(freedom * np.pi)
            joint[:, k] = scale + norm - (freedom + D) / 2 * np.log1p(squared[:, k] / freedom)
        else:
            joint[:, k] = scale - D / 2 * np.log(2 * np.pi) - squared[:, k] / 2
    return joint, squared


def _initial_labels(x: NDArray[np.float64], segments: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return (n,) the nearest of K centres, drawn with probability proportional to squared distance (k-means++)."""
    centres = [x[rng.integers(len(x))]]
    while len(centres) < segments:
        apart = np.min([np.sum((x - each) ** 2, axis=1) for each in centres], axis=0)
        total = apart.sum()
        centres.append(x[rng.choice(len(x), p=apart / total) if total > 0 else rng.integers(len(x))])
    return np.argmin([np.sum((x - each) ** 2, axis=1) for each in centres], axis=0)
