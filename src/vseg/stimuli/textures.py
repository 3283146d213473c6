"""Composite oriented textures: white noise filtered at an orientation that varies over the image (S2).

Angles are in degrees, counter-clockwise as seen on the screen. A texture with the (Fourier) orientation θ₀ has
contours at θ₀ + 90: the paper's ±5° are contours 5° to either side of the vertical.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.seeds import Seed, check_seed
from vseg.data.layout import Grid, Layout, as_floats
from vseg.data.maps import Maps
from vseg.errors import InvalidInput
from vseg.stimuli.random_maps import random_maps

DEGREE_CM = 1 / (2 * np.tan(np.deg2rad(0.5)))
"""57.29 cm: the viewing distance at which 1 cm on the screen spans 1 degree."""

EDGE_PX = 2.5  # s.d. of the smoothing between two areas
TRIES = 1000
WIDEST_OCT = 10
MAX_KERNEL_PX = 4096


@dataclass(frozen=True)
class Texture:
    """The parameters of a composite texture (Table 1) and the geometry that turns degrees into pixels.

    The paper divides cycles per degree by pixels per centimetre, which is correct at the default distance of 57.3 cm,
    where 1 cm spans 1 degree. It does not state a pixel density; 40 px/cm (102 dpi) is our choice. An image has these
    frequencies only if it is shown at this density and distance; `for_width` gives the parameters for another size.

    Parameters
    ----------
    orientations_deg : tuple of float
        θ₀ of each segment.
    spread_deg : float
        σ_θ, the standard deviation of the energy over orientations.
    mode_cpd : float
        m_r in cycles per degree, the mode of the log-normal density of frequencies. The power spectrum printed in S2
        lacks the factor 1/r of that density and peaks at r₀ = m_r (1 + σ_r²), 3.46 cycles per degree for the paper's
        values.
    bandwidth_oct : float
        B_r in octaves.
    rms_contrast, mean_grey : float
        Standard deviation and mean of the image in grey levels, the mean from 0 to 255.
    px_per_cm, distance_cm : float
        Pixel density of the screen and viewing distance.

    Examples
    --------
    >>> LOW.spread_deg, HIGH.spread_deg, round(LOW.px_per_degree, 6)
    (5.0, 7.5, 40.0)
    """

    orientations_deg: tuple[float, ...] = (-5.0, 5.0)
    spread_deg: float = 5.0
    mode_cpd: float = 2.45
    bandwidth_oct: float = 2.0
    rms_contrast: float = 35.0
    mean_grey: float = 128.0
    px_per_cm: float = 40.0
    distance_cm: float = DEGREE_CM

    def __post_init__(self) -> None:
        object.__setattr__(self, "orientations_deg", tuple(float(o) for o in self.orientations_deg))
        for name in ("spread_deg", "mode_cpd", "bandwidth_oct", "rms_contrast", "px_per_cm", "distance_cm"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"Expected a finite {name} above 0, got {value}.")
        if not 0 <= self.mean_grey <= 255:
            raise InvalidInput(f"Expected a mean_grey from 0 to 255, got {self.mean_grey}.")
        if self.bandwidth_oct > WIDEST_OCT:
            raise InvalidInput(
                f"Expected a bandwidth_oct of at most {WIDEST_OCT} octaves, got {self.bandwidth_oct}."
            )
        if len(self.orientations_deg) < 2 or not np.isfinite(self.orientations_deg).all():
            raise InvalidInput(f"Expected two or more finite orientations_deg, got {self.orientations_deg}.")
        if self.peak_cycles_per_px >= 0.5:
            raise InvalidInput(
                f"The texture's peak frequency is {self.peak_cycles_per_px:.2f} cycles/px, but a screen "
                "shows fewer than 0.5; lower mode_cpd, or use more pixels per degree."
            )
        if self.reach_px > MAX_KERNEL_PX:
            raise InvalidInput(
                f"The texture's kernel is {self.reach_px} px long, more than {MAX_KERNEL_PX}; raise "
                f"spread_deg (now {self.spread_deg:g}) or mode_cpd, or use fewer pixels per degree."
            )

    @property
    def px_per_degree(self) -> float:
        """Pixels per degree of visual angle at fixation."""
        return float(self.px_per_cm * self.distance_cm / DEGREE_CM)

    def for_width(self, width_deg: float, size_px: int) -> "Texture":
        """Return these parameters for an image of `size_px` that is shown `width_deg` degrees wide.

        A degree is measured at the centre of the image, as the participant's page does.

        Examples
        --------
        >>> round(LOW.for_width(10, 512).px_per_degree, 2)
        51.07
        """
        if not (np.isfinite(width_deg) and 0 < width_deg < 180):
            raise InvalidInput(f"Expected a width_deg above 0 and below 180 degrees, got {width_deg}.")
        width_cm = 2 * self.distance_cm * np.tan(np.deg2rad(width_deg / 2))
        return replace(self, px_per_cm=float(size_px / width_cm))

    @property
    def log_variance(self) -> float:
        """log(1 + σ_r²) = B_r² ln(2)/8."""
        return float(np.log(2) / 8 * self.bandwidth_oct**2)

    @property
    def peak_cycles_per_px(self) -> float:
        """r₀ of S2."""
        return float(self.mode_cpd / self.px_per_degree * np.exp(self.log_variance))

    @property
    def reach_px(self) -> int:
        """Three standard deviations of the kernel along its contours, at half the modal frequency."""
        cycles_per_px = self.mode_cpd / self.px_per_degree / 2
        across = np.sqrt(2) * np.sin(min(np.deg2rad(self.spread_deg), np.pi / 4))
        return int(np.ceil(3 / max(2 * np.pi * cycles_per_px * across, 1e-9)))


LOW = Texture()
"""The paper's low uncertainty."""
HIGH = Texture(spread_deg=7.5)
"""The paper's high uncertainty: the orientations of the two textures overlap more."""
PRESETS = {"low": LOW, "high": HIGH}


@dataclass(frozen=True, eq=False)
class TextureImage:
    """A texture image, and its true segments and orientations.

    Attributes
    ----------
    image : NDArray[np.uint8], shape (H, W)
    labels : NDArray[np.int64], shape (H, W)
        The most probable segment of each pixel.
    orientation_deg : NDArray[np.float64], shape (H, W)
        θ₀ of each pixel.
    clipped : float
        The share of the pixels with a grey level outside 0..255, which were clipped.
    parameters : Texture
    """

    image: NDArray[np.uint8]
    labels: NDArray[np.int64]
    orientation_deg: NDArray[np.float64]
    clipped: float
    parameters: Texture

    @cached_property
    def segments(self) -> int:
        """K, the number of textures."""
        return len(self.parameters.orientations_deg)

    @property
    def width_deg(self) -> float:
        """The width in degrees at which the image has the frequency of its parameters."""
        width_cm = self.image.shape[1] / self.parameters.px_per_cm
        return float(2 * np.rad2deg(np.arctan(width_cm / (2 * self.parameters.distance_cm))))

    def truth_maps(self, layout: Layout) -> Maps:
        """Return the one-hot maps on a layout: the label of the pixel at each location."""
        return Maps.one_hot(layout, sample_labels(self.labels, layout), self.segments)


def texture(
    probabilities: Maps | ArrayLike,
    parameters: Texture = LOW,
    *,
    size_px: int | None = None,
    width_deg: float | None = None,
    seed: Seed,
) -> TextureImage:
    """Fill segments with oriented textures (S2).

    White noise is convolved with the kernel of S2, which has the orientation Σ_k p[k] θ₀[k] at each pixel.

    Parameters
    ----------
    probabilities : Maps, or array_like of shape (H, W, K)
        The probabilities of K segments, as many as `parameters` has orientations.
    parameters : Texture
        Orientations and widths of the textures: LOW, HIGH or your own.
    size_px : int, optional
        Side of the image if `probabilities` are Maps, 512 by default; an array has its own size.
    width_deg : float, optional
        Width in degrees at which the image is shown; by default, it follows from the density and distance of
        `parameters`, 12.75 degrees for 512 px.
    seed : int, SeedSequence or Generator
        Seed of the noise.

    Returns
    -------
    TextureImage
        The image and its true segments.

    Examples
    --------
    >>> from vseg import Grid
    >>> from vseg.stimuli import random_maps
    >>> stimulus = texture(random_maps(Grid(8), segments=2, seed=0), LOW, size_px=128, seed=1)
    >>> stimulus.image.shape, stimulus.image.dtype
    ((128, 128), dtype('uint8'))
    """
    p = _check_probability_image(probabilities, size_px)
    if width_deg is not None:
        parameters = parameters.for_width(width_deg, p.shape[1])
    if p.shape[2] != len(parameters.orientations_deg):
        raise InvalidInput(
            f"Expected one orientation per segment, got {len(parameters.orientations_deg)} orientations_deg "
            f"for {p.shape[2]} segments."
        )
    rng = np.random.default_rng(check_seed(seed))
    orientation_deg = p @ np.array(parameters.orientations_deg)
    noise = _filter_noise(orientation_deg, parameters, rng)
    grey = parameters.mean_grey + parameters.rms_contrast * (noise - noise.mean()) / noise.std()
    image, clipped = round_to_grey_levels(grey)
    return TextureImage(image, p.argmax(axis=2), orientation_deg, clipped, parameters)


def composite(
    *,
    size_px: int = 512,
    width_deg: float | None = None,
    preset: Texture = LOW,
    xi: float | None = None,
    min_area: float = 0.35,
    seed: Seed,
) -> TextureImage:
    """Draw a stimulus of the texture experiment: two random areas, each with its own texture (S2).

    The areas are drawn by `random_maps` at entropy 0 and smoothed with a Gaussian of 2.5 px.

    Parameters
    ----------
    size_px : int
        Side of the image, at least 32.
    width_deg : float, optional
        Width in degrees at which the image is shown; by default, it follows from the density and distance of
        `preset`, 12.75 degrees for 512 px.
    preset : Texture
        LOW, HIGH, or your own parameters with two orientations.
    xi : float, optional
        Width of the areas in pixels, ξ of `random_maps`; a third of the image by default.
    min_area : float
        The smallest share of the image of each area; each is one connected region.
    seed : int, SeedSequence or Generator
        Seed of areas and textures.

    Returns
    -------
    TextureImage
        The image and its true segments.

    Examples
    --------
    >>> from vseg import Grid
    >>> stimulus = composite(size_px=128, preset=HIGH, seed=0)
    >>> stimulus.truth_maps(Grid(11)).segments
    2
    """
    from scipy.ndimage import gaussian_filter

    if size_px < 32:
        raise InvalidInput(f"Expected a size_px of at least 32, got {size_px}.")
    rng = np.random.default_rng(check_seed(seed))
    labels = _draw_two_areas(size_px, size_px / 3 if xi is None else xi, min_area, rng)
    second = gaussian_filter(labels.astype(np.float64), EDGE_PX, mode="nearest")
    stimulus = texture(np.stack([1 - second, second], axis=2), preset, width_deg=width_deg, seed=rng)
    return replace(stimulus, labels=labels)


def round_to_grey_levels(values: NDArray[np.float64]) -> tuple[NDArray[np.uint8], float]:
    """Round and clip to 0..255; return the grey levels and the share of clipped pixels."""
    rounded = np.rint(values)
    clipped = float(np.mean((rounded < 0) | (rounded > 255)))
    return np.clip(rounded, 0, 255).astype(np.uint8), clipped


def sample_labels(labels: NDArray[np.int64], layout: Layout) -> NDArray[np.int64]:
    """Return (n,) the label of the pixel at each location of the layout."""
    height, width = labels.shape
    x, y = layout.pixels(width, height).astype(np.int64).T
    return labels[np.minimum(y, height - 1), np.minimum(x, width - 1)]


def _check_probability_image(probabilities: Maps | ArrayLike, size_px: int | None) -> NDArray[np.float64]:
    if isinstance(probabilities, Maps):
        side = 512 if size_px is None else size_px
        return probabilities.render(side, side)
    p = as_floats(probabilities, "a probability image")
    if p.ndim != 3 or min(p.shape) < 2:
        raise InvalidInput(f"Expected a probability image of shape (height, width, K), got {p.shape}.")
    if size_px is not None and p.shape[:2] != (size_px, size_px):
        raise InvalidInput(
            f"size_px is {size_px}, but the probability image has {p.shape[1]}x{p.shape[0]} px; leave size_px out."
        )
    if not np.isfinite(p).all() or p.min() < -1e-6 or np.abs(p.sum(axis=2) - 1).max() > 1e-6:
        raise InvalidInput("Expected probabilities that are non-negative and sum to 1 at every pixel.")
    return p


def _draw_two_areas(size_px: int, xi: float, min_area: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw (size_px, size_px) labels 0 and 1 until each is one connected region."""
    from scipy.ndimage import label

    for _ in range(TRIES):
        maps = random_maps(Grid(size_px), segments=2, entropy=0, xi=xi, min_area=min_area, seed=rng)
        labels = maps.labels.reshape(size_px, size_px)
        if label(labels)[1] == label(1 - labels)[1] == 1:
            return np.array(labels)
    raise InvalidInput(f"In {TRIES} draws, none had two connected areas at xi = {xi:g} px; use a larger xi.")


def _filter_noise(
    orientation_deg: NDArray[np.float64], parameters: Texture, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Filter white noise at each pixel's orientation; the standard deviation is 1 on average.

    The whole noise is filtered at a few orientations, a quarter of the spread apart, and each pixel interpolates
    linearly between the two nearest, which changes its standard deviation by at most 0.2 %. The noise is larger than
    the image by the length of the kernel, so nothing wraps around.
    """
    from scipy.fft import irfft2, next_fast_len, rfft2

    height, width = orientation_deg.shape
    reach = parameters.reach_px
    shape = next_fast_len(height + reach, real=True), next_fast_len(width + reach, real=True)
    spectrum = rfft2(rng.standard_normal(shape))
    angles, position = _filter_orientations(orientation_deg, parameters)
    total = np.zeros((height, width))
    for number, kernel in enumerate(_make_kernels(shape, angles, parameters)):
        weight = np.maximum(1 - np.abs(position - number), 0)
        total += weight * irfft2(spectrum * kernel, s=shape)[:height, :width]
    return total


def _filter_orientations(
    orientation_deg: NDArray[np.float64], parameters: Texture
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the orientations at which to filter, and each pixel's position among them (0 for the first)."""
    low, high = min(parameters.orientations_deg), max(parameters.orientations_deg)
    count = max(int(np.ceil(4 * (high - low) / parameters.spread_deg)), 1) + 1
    step = max((high - low) / (count - 1), 1e-9)
    return np.linspace(low, high, count), (orientation_deg - low) / step


def _make_kernels(
    shape: tuple[int, int], angles_deg: NDArray[np.float64], parameters: Texture
) -> Iterator[NDArray[np.float64]]:
    """Yield κ̂ of S2 at each angle, on the half plane of a real FFT, with a mean power of 1."""
    fy, fx = -np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None, :]
    r = np.hypot(fx, fy)
    inside = (r > 0) & (r <= 0.5)
    r[~inside] = 1
    radial = -(np.log(r / parameters.peak_cycles_per_px) ** 2) / (2 * parameters.log_variance)
    radial[~inside] = -np.inf
    cos_2theta, sin_2theta = (fx**2 - fy**2) / r**2, 2 * fx * fy / r**2
    width = 4 * np.deg2rad(parameters.spread_deg) ** 2
    for angle in np.deg2rad(angles_deg):
        # Minus 1, unlike the paper's cos(2(θ - θ₀)), so that the peak is 1 for any spread.
        angular = cos_2theta * np.cos(2 * angle) + sin_2theta * np.sin(2 * angle) - 1
        kernel = np.exp((angular / width + radial) / 2)
        yield kernel / np.sqrt(2 * np.sum(kernel**2) / np.prod(shape))
