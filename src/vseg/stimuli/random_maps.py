"""Random probabilistic maps: the softmax of smooth Gaussian fields (appendix S2)."""

import numpy as np
from numpy.typing import NDArray

from vseg._support.seeds import Seed, check_seed
from vseg.data.layout import Grid, Layout
from vseg.data.maps import Maps
from vseg.errors import InvalidInput

MODERATE_SD = 3.0
"""Standard deviation of the log-odds fields when neither sigma nor entropy is given."""

TRIES = 2000
SMALLEST_XI, LARGEST_XI = 0.25, 1e6
LARGEST_SIGMA = 1e6


def random_maps(
    layout: Layout,
    *,
    segments: int,
    sigma: float | None = None,
    xi: float | None = None,
    entropy: float | None = None,
    min_area: float | None = None,
    seed: Seed,
) -> Maps:
    """Draw probabilistic maps whose segments are smooth random areas (appendix S2).

    p_i[k] = exp(f_i[k]) / Σ_l exp(f_i[l]), where each f[k] is white noise convolved with
    σ² exp(-|i|²/2ξ²), a field of standard deviation σ²ξ√π. Nothing wraps around the edges.

    Parameters
    ----------
    layout : Layout
        A grid, or a scatter of n points, on which a cell is the image's side divided by √n.
    segments : int
        K, at least 2.
    sigma : float, optional
        Large values make the maps certain, small ones uncertain. When neither `sigma` nor `entropy` is
        given, the fields have a standard deviation of 3, a moderate uncertainty.
    xi : float, optional
        Size of the segments in grid cells; N/(2.5 √K) by default, so N/5 for four segments.
    entropy : float, optional
        Instead of `sigma`, the wanted mean entropy in nats: 0 for one-hot maps, towards log K for
        uniform ones. It is reached by scaling the fields, so a seed gives the same areas at any entropy
        (and, for the same xi/N, at any resolution).
    min_area : float, optional
        Smallest share of the locations that each segment must win, held by redrawing; 0.3/K by default,
        about a third of its fair share: no segment is empty, and areas still differ. 0 takes any draw.
    seed : int, SeedSequence or Generator

    Examples
    --------
    >>> from vseg import Grid
    >>> maps = random_maps(Grid(16), segments=3, entropy=0.3, seed=0)
    >>> maps.image.shape, round(maps.mean_entropy, 3)
    ((16, 16, 3), 0.3)
    """
    _check_segments(layout, segments)
    if sigma is not None and entropy is not None:
        raise InvalidInput(f"Give sigma or entropy, not both; got sigma={sigma:g} and entropy={entropy:g}.")
    if entropy is not None and not 0 <= entropy < np.log(segments):
        raise InvalidInput(
            f"The mean entropy of {segments} segments lies from 0 to below log {segments} = "
            f"{np.log(segments):.3f} nats, got {entropy:g}."
        )
    rng = np.random.default_rng(check_seed(seed))
    width = _default_xi(layout, segments) if xi is None else _checked_xi(xi)
    scale = MODERATE_SD if sigma is None else _field_sd(sigma, width)
    share = 0.3 / segments if min_area is None else min_area
    fields = _unit_fields_with_areas(layout, segments, width, share, rng)
    if entropy == 0:
        return Maps.one_hot(layout, fields.argmax(axis=1), segments)
    if entropy is not None:
        return Maps(layout, softmax(_scale_of_entropy(fields, entropy) * fields))
    return Maps(layout, softmax(scale * fields))


def gaussian_fields(
    layout: Layout, *, segments: int, sigma: float, xi: float, seed: Seed
) -> NDArray[np.float64]:
    """Draw the fields f = G ∗ white noise of S2, with G_i = σ² exp(-|i|²/2ξ²); shape (n, K).

    Their standard deviation is σ²ξ√π, and the correlation at a distance d is exp(-d²/4ξ²), both in cells.

    Examples
    --------
    >>> from vseg import Grid
    >>> gaussian_fields(Grid(16), segments=3, sigma=1, xi=3, seed=0).shape
    (256, 3)
    """
    _check_segments(layout, segments)
    rng = np.random.default_rng(check_seed(seed))
    return _field_sd(sigma, _checked_xi(xi)) * _unit_fields(layout, segments, xi, rng)


def softmax(fields: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(f_k) / Σ exp(f_l) over the last axis, without overflow."""
    e = np.exp(fields - fields.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _check_segments(layout: Layout, segments: int) -> None:
    if not isinstance(segments, (int, np.integer)) or not 2 <= segments <= len(layout):
        raise InvalidInput(
            f"Expected a whole number of segments from 2 to {len(layout)} on {layout}, got {segments!r}."
        )


def _default_xi(layout: Layout, segments: int) -> float:
    """An area of a segment goes with 1/K, so its width goes with 1/√K."""
    return max(float(np.sqrt(len(layout) / segments) / 2.5), 2 * SMALLEST_XI)


def _field_sd(sigma: float, xi: float) -> float:
    if not 0 < sigma <= LARGEST_SIGMA:
        raise InvalidInput(
            f"sigma is a finite number above 0, {LARGEST_SIGMA:g} at most, got {sigma:g}; "
            "entropy=0 gives one-hot maps."
        )
    return float(sigma**2 * xi * np.sqrt(np.pi))


def _checked_xi(xi: float) -> float:
    if not SMALLEST_XI <= xi <= LARGEST_XI:
        raise InvalidInput(f"xi is a number of cells from {SMALLEST_XI} up to {LARGEST_XI:g}, got {xi}.")
    return xi


def _unit_fields_with_areas(
    layout: Layout, segments: int, xi: float, min_area: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Fields of standard deviation 1, redrawn until each is the largest on its share of locations."""
    if not 0 <= min_area <= 1 / segments:
        raise InvalidInput(
            f"min_area is a share of the locations from 0 to 1/K = {1 / segments:.3f}, got {min_area}."
        )
    for _ in range(TRIES):
        fields = _unit_fields(layout, segments, xi, rng)
        areas = np.bincount(fields.argmax(axis=1), minlength=segments) / len(layout)
        if areas.min() >= min_area:
            return fields
    raise InvalidInput(
        f"In {TRIES} draws, no map on {layout} gave each of {segments} segments {min_area:.1%} of the "
        f"locations at xi = {xi:g} cells; take a smaller min_area or xi."
    )


def _unit_fields(layout: Layout, segments: int, xi: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """(n, K) smoothed white noise of standard deviation 1, evaluated at the locations.

    The noise lives on a lattice that reaches 5ξ beyond the image, so nothing wraps around. Its spacing of
    ξ/2 gives the same covariance as the continuum to 1e-16 (the Poisson sum of a Gaussian) at a cost that
    does not grow with ξ, and lets any location be evaluated, on the grid or off it.
    """
    side = float(np.sqrt(len(layout)))
    points = int(np.ceil(2 * side / xi - 1e-9)) + 21
    lattice = xi * (np.arange(points) / 2 - 5)
    noise = rng.standard_normal((segments, len(lattice), len(lattice)))
    if isinstance(layout, Grid):
        weights = _weights(np.arange(layout.size, dtype=np.float64) + 0.5, lattice, xi)
        return np.reshape(weights @ noise @ weights.T, (segments, -1)).T
    x, y = (_weights(layout.positions[:, axis] * side, lattice, xi) for axis in (0, 1))
    return np.stack([np.sum((y @ field) * x, axis=1) for field in noise], axis=1)


def _weights(at: NDArray[np.float64], lattice: NDArray[np.float64], xi: float) -> NDArray[np.float64]:
    """exp(-d²/2ξ²) of one axis, scaled so that the field's variance is 1."""
    weights = np.exp(-((at[:, None] - lattice) ** 2) / (2 * xi**2))
    return weights / np.sqrt(2 * np.sqrt(np.pi))


def _scale_of_entropy(fields: NDArray[np.float64], entropy: float) -> float:
    """The factor at which softmax(factor · f) has that mean entropy, which falls as the factor grows."""
    low, high = -14.0, 14.0
    for _ in range(50):
        middle = (low + high) / 2
        p = softmax(np.exp(middle) * fields)
        reached = -np.sum(p * np.log(np.where(p > 0, p, 1)), axis=1).mean()
        low, high = (middle, high) if reached > entropy else (low, middle)
    return float(np.exp(high))
