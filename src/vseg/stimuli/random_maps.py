"""Random probabilistic maps: the softmax of smooth Gaussian fields (appendix S2)."""

import numpy as np
from numpy.typing import NDArray

from vseg._support.seeds import Seed, check_seed
from vseg.data.layout import Grid, Layout
from vseg.data.maps import Maps
from vseg.errors import InvalidInput

MODERATE_SD = 3.0
"""Standard deviation of the fields if neither sigma nor entropy is given."""

TRIES = 2000
MIN_XI, MAX_XI = 1e-3, 1e6
MIN_SCATTER_XI = 0.25  # cells; the noise of a scatter has points every ξ/2
DISCRETE_XI = 1.0  # below this ξ, in cells, the fields of a grid are made of one noise value per location
MAX_SIGMA = 1e6


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
    """Draw probabilistic maps with smooth random segments (appendix S2).

    p_i[k] = exp(f_i[k]) / Σ_l exp(f_i[l]), where each f[k] is white noise convolved with
    σ² exp(-|i|²/2ξ²), a field of standard deviation σ²ξ√π, or σ² if ξ is much smaller than a cell
    (`gaussian_fields`). Nothing wraps around the edges.

    Parameters
    ----------
    layout : Layout
        A grid, or a scatter of n points, in which a cell is the image's side divided by √n.
    segments : int
        K, at least 2.
    sigma : float, optional
        Large values give certain maps, small ones uncertain maps. If neither `sigma` nor `entropy` is given, the
        fields have a standard deviation of 3, a moderate uncertainty.
    xi : float, optional
        Size of the segments in grid cells; N/(2.5 √K) by default, so N/5 for four segments.
    entropy : float, optional
        The mean entropy in nats, instead of `sigma`: 0 for one-hot maps, close to log K for uniform ones. The fields
        are scaled to reach it, so a seed gives the same areas at any entropy (and, for the same xi/N, at any
        resolution at which xi is at least 1).
    min_area : float, optional
        The smallest share of the locations at which each segment must be the most probable; maps are redrawn until it
        is reached. 0.3/K by default, so that no segment is empty and areas still differ; 0 accepts any draw.
    seed : int, SeedSequence or Generator
        Seed of the noise.

    Returns
    -------
    Maps
        The maps, whose mean entropy is `entropy` if that is given.

    Examples
    --------
    >>> from vseg import Grid
    >>> maps = random_maps(Grid(16), segments=3, entropy=0.3, seed=0)
    >>> maps.image.shape, round(maps.mean_entropy, 3)
    ((16, 16, 3), 0.3)
    """
    _check_segments(layout, segments)
    if sigma is not None and entropy is not None:
        raise InvalidInput(
            f"Expected sigma or entropy, not both, got sigma={sigma:g} and entropy={entropy:g}."
        )
    if entropy is not None and not 0 <= entropy < np.log(segments):
        raise InvalidInput(
            f"Expected a mean entropy of {segments} segments from 0 to below log {segments} = "
            f"{np.log(segments):.3f} nats, got {entropy:g}."
        )
    rng = np.random.default_rng(check_seed(seed))
    width = _default_xi(layout, segments) if xi is None else _check_xi(layout, xi)
    scale = MODERATE_SD if sigma is None else _field_sd(sigma, width)
    share = 0.3 / segments if min_area is None else min_area
    fields = _draw_fields_with_areas(layout, segments, width, share, rng)
    if entropy == 0:
        return Maps.one_hot(layout, fields.argmax(axis=1), segments)
    if entropy is not None:
        return Maps(layout, softmax(_find_scale(fields, entropy) * fields))
    return Maps(layout, softmax(scale * fields))


def gaussian_fields(
    layout: Layout, *, segments: int, sigma: float, xi: float, seed: Seed
) -> NDArray[np.float64]:
    """Draw the fields of S2: white noise convolved with G_i = σ² exp(-|i|²/2ξ²).

    The noise has one value per cell, as in the paper. So the standard deviation is σ² Σ_m exp(-m²/ξ²): σ² for ξ towards
    0, where the fields are white noise, and σ²ξ√π from ξ = 1 on (to 2e-4, and to 1e-16 at 2), where the correlation
    at a distance of d cells is exp(-d²/4ξ²). Locations of a scatter have no cells; there the standard deviation is the
    same, and the correlation exp(-d²/4ξ²) for any ξ.

    Parameters
    ----------
    layout : Layout
        The locations.
    segments : int
        K, the number of fields.
    sigma, xi : float
        σ and ξ, the latter in cells, from 0.001, or 0.25 on a scatter.
    seed : int, SeedSequence or Generator
        Seed of the noise.

    Returns
    -------
    NDArray of float, shape (n, K)
        The value of each field at each location.

    Examples
    --------
    >>> from vseg import Grid
    >>> gaussian_fields(Grid(16), segments=3, sigma=1, xi=3, seed=0).shape
    (256, 3)
    """
    _check_segments(layout, segments)
    rng = np.random.default_rng(check_seed(seed))
    return _field_sd(sigma, _check_xi(layout, xi)) * _draw_fields(layout, segments, xi, rng)


def softmax(fields: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return exp(f_k) / Σ exp(f_l) over the last axis, without overflow."""
    e = np.exp(fields - fields.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _check_segments(layout: Layout, segments: int) -> None:
    if not isinstance(segments, (int, np.integer)) or not 2 <= segments <= len(layout):
        raise InvalidInput(
            f"Expected a whole number of segments from 2 to {len(layout)} on {layout}, got {segments!r}."
        )


def _default_xi(layout: Layout, segments: int) -> float:
    """Return ξ in proportion to the width of a segment, 1/√K of the image's side."""
    return max(float(np.sqrt(len(layout) / segments) / 2.5), 0.5)


def _field_sd(sigma: float, xi: float) -> float:
    if not 0 < sigma <= MAX_SIGMA:
        raise InvalidInput(
            f"Expected sigma above 0 and at most {MAX_SIGMA:g}, got {sigma:g}; entropy=0 gives one-hot maps."
        )
    return float(sigma**2 * _sum_of_squares(xi))


def _sum_of_squares(xi: float) -> float:
    """Return Σ_m exp(-m²/ξ²) over all whole numbers m: the sum of the squared weights along one axis."""
    if xi > 3:  # ξ√π, the integral, to 1e-16; the sum would be long
        return float(xi * np.sqrt(np.pi))
    return float(np.sum(np.exp(-((np.arange(-20, 21) / xi) ** 2))))


def _check_xi(layout: Layout, xi: float) -> float:
    least = MIN_XI if isinstance(layout, Grid) else MIN_SCATTER_XI
    if not least <= xi <= MAX_XI:
        raise InvalidInput(f"Expected xi from {least:g} to {MAX_XI:g} cells on {layout}, got {xi}.")
    return xi


def _draw_fields_with_areas(
    layout: Layout, segments: int, xi: float, min_area: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw fields of standard deviation 1 until each is the largest at a share `min_area` of the locations."""
    if not 0 <= min_area <= 1 / segments:
        raise InvalidInput(f"Expected min_area from 0 to 1/K = {1 / segments:.3f}, got {min_area}.")
    for _ in range(TRIES):
        fields = _draw_fields(layout, segments, xi, rng)
        areas = np.bincount(fields.argmax(axis=1), minlength=segments) / len(layout)
        if areas.min() >= min_area:
            return fields
    raise InvalidInput(
        f"In {TRIES} draws, no map on {layout} gave each of {segments} segments {min_area:.1%} of the "
        f"locations at xi = {xi:g} cells; use a smaller min_area or xi."
    )


def _draw_fields(layout: Layout, segments: int, xi: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw (n, K) smoothed white noise of standard deviation 1 at the locations.

    The noise is drawn on a lattice that reaches 5ξ beyond the image, so nothing wraps around. Its spacing of ξ/2 gives
    the same covariance as the continuum to 1e-16 (the Poisson sum of a Gaussian), at a cost that does not grow with
    ξ, and for locations on a grid or anywhere else. From ξ = 1 on, the continuum is the paper's discrete convolution
    (to 2e-4); below, the lattice is that of the cells.
    """
    if isinstance(layout, Grid) and xi < DISCRETE_XI:
        return _draw_discrete_fields(layout.size, segments, xi, rng)
    side = float(np.sqrt(len(layout)))
    points = int(np.ceil(2 * side / xi - 1e-9)) + 21
    lattice = xi * (np.arange(points) / 2 - 5)
    noise = rng.standard_normal((segments, len(lattice), len(lattice)))
    if isinstance(layout, Grid):
        weights = _weights(np.arange(layout.size, dtype=np.float64) + 0.5, lattice, xi)
        return np.reshape(weights @ noise @ weights.T, (segments, -1)).T
    x, y = (_weights(layout.positions[:, axis] * side, lattice, xi) for axis in (0, 1))
    return np.stack([np.sum((y @ field) * x, axis=1) for field in noise], axis=1)


def _draw_discrete_fields(
    size: int, segments: int, xi: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw (n, K) fields of standard deviation 1 from noise with one value per cell of a grid and around it."""
    beyond = int(np.ceil(6 * xi))
    offset = np.arange(size)[:, None] - np.arange(-beyond, size + beyond)
    weights = np.exp(-((offset / xi) ** 2) / 2) / np.sqrt(_sum_of_squares(xi))
    noise = rng.standard_normal((segments, size + 2 * beyond, size + 2 * beyond))
    return np.reshape(weights @ noise @ weights.T, (segments, -1)).T


def _weights(positions: NDArray[np.float64], lattice: NDArray[np.float64], xi: float) -> NDArray[np.float64]:
    """Return exp(-d²/2ξ²) along one axis, scaled so that the variance of the field is 1."""
    weights = np.exp(-((positions[:, None] - lattice) ** 2) / (2 * xi**2))
    return weights / np.sqrt(2 * np.sqrt(np.pi))


def _find_scale(fields: NDArray[np.float64], entropy: float) -> float:
    """Return the factor at which softmax(factor · f) has this mean entropy, which decreases with the factor."""
    low, high = -14.0, 14.0
    for _ in range(50):
        middle = (low + high) / 2
        p = softmax(np.exp(middle) * fields)
        reached = -np.sum(p * np.log(np.where(p > 0, p, 1)), axis=1).mean()
        low, high = (middle, high) if reached > entropy else (low, middle)
    return float(np.exp(high))
