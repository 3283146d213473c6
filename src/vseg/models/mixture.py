"""A probabilistic mixture: K clouds in the space of features, found in each image by itself, smoothed over space.

The clouds (Gaussian, or Student-t with heavier tails) are found by expectation maximisation without any answers; the
logarithms of their posteriors are averaged over a neighbourhood and divided by a temperature. Only the width of the
neighbourhood and the temperature are fitted to the answers: two numbers that any image shares.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput
from vseg.features import standardised
from vseg.models.black_box import nats
from vseg.models.families import sendable
from vseg.models.linear import name_of
from vseg.models.task import Task
from vseg.stimuli.random_maps import softmax

WIDTHS_CELLS = (0.0, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5)
LOG_TEMPERATURES = (-3.0, 4.0)
TAIL = 4.0  # degrees of freedom of Student's t
STARTS, ROUNDS = 4, 100
TOLERANCE = 1e-6  # of the log-likelihood a location
RIDGE = 1e-3  # of each cloud's variance, in units of the features' own


@dataclass(frozen=True, eq=False)
class Mixture:
    """A fitted mixture: the width of smoothing in cells and the temperature."""

    drawn: Callable[[str], Maps]
    width_cells: float
    temperature: float
    cost: float

    @property
    def parameters(self) -> dict[str, Any]:
        """The two numbers that were fitted to the answers."""
        return {"width_cells": self.width_cells, "temperature": self.temperature}

    def maps(self, image: str) -> Maps:
        """What it predicts of an image."""
        return self.drawn(image)

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """P(same) of pairs on an image (Eq. 2)."""
        return self.drawn(image).same_probability(pairs)


@sendable
def mixture(
    features: Any = "lab", *, tails: str = "gaussian", starts: int = STARTS
) -> Callable[..., Mixture]:
    """A mixture of Gaussians (`tails="gaussian"`) or of Student's t (`tails="student"`) on any features.

    Examples
    --------
    >>> mixture("lab", tails="student").__name__
    'mixture[lab, student]'
    """
    if tails not in ("gaussian", "student"):
        raise InvalidInput(f"The tails of a mixture are gaussian or student, got {tails!r}.")
    freedom = np.inf if tails == "gaussian" else TAIL

    def fit(task: Task, *, seed: int) -> Mixture:
        def posterior(image: str) -> NDArray[np.float64]:
            # Found without answers, and from a seed of the image's own: the same in every fold.
            rng = np.random.default_rng(zlib.crc32(image.encode()))
            return task.once(
                (fit, "mixture", name_of(features), task.segments, image),
                lambda: log_posterior(
                    task.features(features, image), task.segments, freedom, starts=starts, rng=rng
                ),
            )

        def drawn(image: str, width: float, temperature: float) -> Maps:
            smooth = smoothing(task.layout, width) @ posterior(image)
            return Maps(task.layout, softmax(smooth / temperature))

        value, width, temperature = min(_best_at(width, task, posterior) for width in WIDTHS_CELLS)
        return Mixture(partial(drawn, width=width, temperature=temperature), width, temperature, value)

    fit.__name__ = f"mixture[{name_of(features)}{', student' if tails == 'student' else ''}]"
    return fit


def _best_at(
    width: float, task: Task, posterior: Callable[[str], NDArray[np.float64]]
) -> tuple[float, float, float]:
    """Cost, width and the best temperature at that width."""
    from scipy.optimize import minimize_scalar

    tallies = task.tallies()
    smooth = {name: smoothing(task.layout, width) @ posterior(name) for name in tallies}

    def cost(log_temperature: float) -> float:
        total = 0.0
        for name, tally in tallies.items():
            maps = Maps(task.layout, softmax(smooth[name] / np.exp(log_temperature)))
            total += nats(maps.same_probability(tally.pairs), tally.k, tally.n)
        return total

    found = minimize_scalar(cost, bounds=LOG_TEMPERATURES, method="bounded")
    return float(found.fun), width, float(np.exp(found.x))


def smoothing(layout: Layout, width_cells: float) -> Any:
    """(n, n) sparse Gaussian weights of the locations around each, summing to 1; a cell is the image's side over √n."""
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
    """(n, K) log p(segment | features) of the likeliest mixture found from several starts."""
    x = standardised(features)[0]
    x = x[:, x.std(axis=0) > 0] if (x.std(axis=0) > 0).any() else x[:, :1]
    found = [_maximised(x, segments, freedom, rng) for _ in range(starts)]
    return max(found, key=lambda each: each[0])[1]


def _maximised(
    x: NDArray[np.float64], segments: int, freedom: float, rng: np.random.Generator
) -> tuple[float, NDArray[np.float64]]:
    """Expectation maximisation from K locations far apart (k-means++): log-likelihood and log posterior."""
    share = np.eye(segments)[_nearest(x, segments, rng)] * 0.9 + 0.1 / segments
    weight = np.ones_like(share)
    before, total, log_share = -np.inf, -np.inf, np.log(share)
    for _ in range(ROUNDS):
        joint, squared = _log_joint(x, share, weight, freedom)
        top = joint.max(axis=1, keepdims=True)
        log_total = top + np.log(np.exp(joint - top).sum(axis=1, keepdims=True))
        log_share, total = joint - log_total, float(log_total.sum())
        share = np.exp(log_share)
        if np.isfinite(freedom):
            weight = (freedom + x.shape[1]) / (freedom + squared)
        if total - before <= TOLERANCE * len(x):
            break
        before = total
    return total, log_share


def _log_joint(
    x: NDArray[np.float64], share: NDArray[np.float64], weight: NDArray[np.float64], freedom: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n, K) log p(x, segment) after the maximisation, and Mahalanobis distances squared."""
    from scipy.special import gammaln

    n, D = x.shape
    joint, squared = np.empty_like(share), np.empty_like(share)
    for k in range(share.shape[1]):
        mass = share[:, k].sum() + 1e-9
        pulled = share[:, k] * weight[:, k]
        mean = pulled @ x / (pulled.sum() + 1e-12)
        off = x - mean
        covariance = (off * pulled[:, None]).T @ off / mass + RIDGE * np.eye(D)
        root = np.linalg.cholesky(covariance)
        squared[:, k] = np.sum(np.linalg.solve(root, off.T) ** 2, axis=0)
        scale = np.log(mass / n) - np.log(np.diag(root)).sum()
        if np.isfinite(freedom):
            norm = gammaln((freedom + D) / 2) - gammaln(freedom / 2) - D / 2 * np.log(freedom * np.pi)
            joint[:, k] = scale + norm - (freedom + D) / 2 * np.log1p(squared[:, k] / freedom)
        else:
            joint[:, k] = scale - D / 2 * np.log(2 * np.pi) - squared[:, k] / 2
    return joint, squared


def _nearest(x: NDArray[np.float64], segments: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(n,) the nearest of K locations, each drawn the more probably the farther it is from the others."""
    centres = [x[rng.integers(len(x))]]
    while len(centres) < segments:
        apart = np.min([np.sum((x - each) ** 2, axis=1) for each in centres], axis=0)
        total = apart.sum()
        centres.append(x[rng.choice(len(x), p=apart / total) if total > 0 else rng.integers(len(x))])
    return np.argmin([np.sum((x - each) ** 2, axis=1) for each in centres], axis=0)
