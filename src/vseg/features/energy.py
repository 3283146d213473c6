"""Oriented energy, in the Fourier domain: wedges of orientation times octaves of frequency.

A band's filter is one-sided (half of the frequency plane), so that the squared modulus of what passes is energy that
does not depend on phase. Wedges are cosine-squared in angle and log-cosine-squared in frequency: together they tile the
plane, so that the bands' energies sum to that of the image but for its slowest and finest parts.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Layout
from vseg.errors import InvalidInput
from vseg.features.cells import cell_means, luminance

BANDS = 36  # the paper's number of orientations
OCTAVES = (1 / 4, 1 / 8, 1 / 16, 1 / 32)  # centre frequencies in cycles per pixel


def orientation(
    image: NDArray[np.uint8], layout: Layout, *, bands: int = BANDS, octaves: tuple[float, ...] = OCTAVES
) -> NDArray[np.float64]:
    """(n, bands) energy at each orientation, summed over scales and averaged over each cell (the paper's features).

    Column d is the orientation of the texture's stripes, 180·d/bands degrees counter-clockwise from horizontal.
    """
    total = np.zeros((len(layout), bands))
    for _, band, energy in _energies(image, bands, octaves):
        total[:, band] += cell_means(energy, layout)[:, 0]
    return total


def gabor(
    image: NDArray[np.uint8], layout: Layout, *, bands: int = 6, octaves: tuple[float, ...] = OCTAVES
) -> NDArray[np.float64]:
    """(n, scales·bands) log energy by scale and orientation, averaged over each cell: scale first, then orientation."""
    columns = [
        np.log1p(1e4 * cell_means(energy, layout)[:, 0]) for _, _, energy in _energies(image, bands, octaves)
    ]
    return np.stack(columns, axis=1)


def orientations_deg(bands: int = BANDS) -> NDArray[np.float64]:
    """(bands,) the orientation of each column."""
    return 180 * np.arange(bands) / bands


def _energies(
    image: NDArray[np.uint8], bands: int, octaves: tuple[float, ...]
) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
    """Scale, orientation and the energy of each band: (H, W), or smaller where the band is coarse."""
    from scipy import fft

    if bands < 2:
        raise InvalidInput(f"Expected 2 or more bands of orientation, got {bands}.")
    grey = luminance(image)
    spectrum = fft.fft2(grey - grey.mean())
    for scale, centre in enumerate(octaves):
        passed, radius, angle = _within(spectrum, 2 * centre)
        with np.errstate(divide="ignore"):
            away = np.clip(np.log2(radius) - np.log2(centre), -1, 1)
        passed *= np.sqrt(2) * np.cos(np.pi / 2 * away) * (radius > 0)
        for band in range(bands):
            # Stripes of this orientation have a wave vector at right angles to it.
            turn = np.angle(np.exp(1j * (angle - np.pi * band / bands - np.pi / 2)))
            wedge = np.cos(np.pi / 2 * np.clip(turn * bands / np.pi, -1, 1))
            yield scale, band, np.abs(fft.ifft2(passed * wedge)) ** 2


def _within(
    spectrum: NDArray[np.complex128], most: float
) -> tuple[NDArray[np.complex128], NDArray[np.float64], NDArray[np.float64]]:
    """The frequencies up to `most` cycles per pixel, as the spectrum of a smaller picture; their radius and angle.

    Image rows run downwards; the angle is that of the wave vector, with up as positive.
    """
    rows, columns = (_kept(length, most) for length in spectrum.shape)
    small = spectrum[np.ix_(rows, columns)] * (len(rows) * len(columns) / spectrum.size)
    y, x = (
        np.fft.fftfreq(length)[kept] for length, kept in zip(spectrum.shape, (rows, columns), strict=True)
    )
    frequency_y, frequency_x = np.meshgrid(-y, x, indexing="ij")
    return small, np.hypot(frequency_x, frequency_y), np.arctan2(frequency_y, frequency_x)


def _kept(length: int, most: float) -> NDArray[np.int64]:
    """The places, in FFT order, of the frequencies up to `most`."""
    half = min(int(np.ceil(most * length)), length // 2)
    if 2 * half + 1 >= length:
        return np.arange(length)
    return np.concatenate([np.arange(half + 1), np.arange(length - half, length)])
