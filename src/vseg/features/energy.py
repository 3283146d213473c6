"""Oriented energy, computed in the Fourier domain: wedges of orientation times octaves of frequency.

The filter of a band is one-sided (half of the frequency plane), so the squared modulus of its output is energy that
does not depend on phase. Wedges are cosine-squared in angle and log-cosine-squared in frequency. Together they tile
the plane: the energies of all bands sum to that of the image, except for its lowest and highest frequencies.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Layout
from vseg.errors import InvalidInput
from vseg.features.pixels import cell_means, luminance

BANDS = 36  # the paper's number of orientations
OCTAVES = (1 / 4, 1 / 8, 1 / 16, 1 / 32)  # centre frequencies in cycles per pixel


def orientation(
    image: NDArray[np.uint8], layout: Layout, *, bands: int = BANDS, octaves: tuple[float, ...] = OCTAVES
) -> NDArray[np.float64]:
    """Return (n, bands) energy at each orientation, summed over scales and averaged over each cell (as in the paper).

    Column d is the orientation of the texture's stripes, 180·d/bands degrees counter-clockwise from horizontal.

    Parameters
    ----------
    image : NDArray of uint8, shape (H, W, 3)
        The image.
    layout : Layout
        The locations.
    bands : int
        Number of orientations.
    octaves : tuple of float
        The spatial scales of the filters.

    Returns
    -------
    NDArray of float, shape (n, bands)
        The energy at each location.
    """
    total = np.zeros((len(layout), bands))
    for _, band, energy in _energies(image, bands, octaves):
        total[:, band] += cell_means(energy, layout)[:, 0]
    return total


def gabor(
    image: NDArray[np.uint8], layout: Layout, *, bands: int = 6, octaves: tuple[float, ...] = OCTAVES
) -> NDArray[np.float64]:
    """Return (n, scales·bands) log energy averaged over each cell; columns run over scales, then orientations.

    Parameters
    ----------
    image : NDArray of uint8, shape (H, W, 3)
        The image.
    layout : Layout
        The locations.
    bands : int
        Number of orientations.
    octaves : tuple of float
        The spatial scales of the filters.

    Returns
    -------
    NDArray of float, shape (n, scales * bands)
        The log energy at each location.
    """
    columns = [
        np.log1p(1e4 * cell_means(energy, layout)[:, 0]) for _, _, energy in _energies(image, bands, octaves)
    ]
    return np.stack(columns, axis=1)


def orientations_deg(bands: int = BANDS) -> NDArray[np.float64]:
    """Return (bands,) the orientation of each column in degrees."""
    return 180 * np.arange(bands) / bands


def _energies(
    image: NDArray[np.uint8], bands: int, octaves: tuple[float, ...]
) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
    """Yield scale, orientation and energy of each band: (H, W), or smaller for a coarse scale."""
    from scipy import fft

    if bands < 2:
        raise InvalidInput(f"Expected 2 or more orientation bands, got {bands}.")
    grey = luminance(image)
    spectrum = fft.fft2(grey - grey.mean())
    for scale, centre in enumerate(octaves):
        filtered, radius, angle = _crop_spectrum(spectrum, 2 * centre)
        with np.errstate(divide="ignore"):
            away = np.clip(np.log2(radius) - np.log2(centre), -1, 1)
        filtered *= np.sqrt(2) * np.cos(np.pi / 2 * away) * (radius > 0)
        for band in range(bands):
            # Stripes of this orientation have a wave vector at right angles to it.
            turn = np.angle(np.exp(1j * (angle - np.pi * band / bands - np.pi / 2)))
            wedge = np.cos(np.pi / 2 * np.clip(turn * bands / np.pi, -1, 1))
            yield scale, band, np.abs(fft.ifft2(filtered * wedge)) ** 2


def _crop_spectrum(
    spectrum: NDArray[np.complex128], max_frequency: float
) -> tuple[NDArray[np.complex128], NDArray[np.float64], NDArray[np.float64]]:
    """Return the spectrum up to a frequency in cycles per pixel, as that of a smaller image, with radius and angle.

    The angle is that of the wave vector, with up as positive although image rows run downwards.
    """
    rows, columns = (_low_frequencies(length, max_frequency) for length in spectrum.shape)
    small = spectrum[np.ix_(rows, columns)] * (len(rows) * len(columns) / spectrum.size)
    y, x = (
        np.fft.fftfreq(length)[indices]
        for length, indices in zip(spectrum.shape, (rows, columns), strict=True)
    )
    frequency_y, frequency_x = np.meshgrid(-y, x, indexing="ij")
    return small, np.hypot(frequency_x, frequency_y), np.arctan2(frequency_y, frequency_x)


def _low_frequencies(length: int, max_frequency: float) -> NDArray[np.int64]:
    """Return the FFT indices of the frequencies up to `max_frequency`."""
    half = min(int(np.ceil(max_frequency * length)), length // 2)
    if 2 * half + 1 >= length:
        return np.arange(length)
    return np.concatenate([np.arange(half + 1), np.arange(length - half, length)])
