"""Colour and contrast of each location, averaged over the pixels of its cell."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.data.layout import Layout
from vseg.errors import InvalidInput

# The two scales of contrast, as fractions of the image's smaller side.
FINE_SCALE, COARSE_SCALE = 1 / 128, 1 / 32


def as_image(image: ArrayLike) -> NDArray[np.uint8]:
    """Return the image as an array (H, W, 3); a grey image gets three equal channels.

    Parameters
    ----------
    image : array_like, shape (H, W) or (H, W, 3)
        The image, as uint8.

    Returns
    -------
    NDArray of uint8, shape (H, W, 3)
        The image with three channels.
    """
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[:, :, None], 3, axis=2)
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or pixels.dtype != np.uint8:
        raise InvalidInput(
            f"An image is uint8 of shape (H, W) or (H, W, 3), got {pixels.dtype} {np.asarray(image).shape}."
        )
    return np.ascontiguousarray(pixels[:, :, :3])


def cell_means(values: ArrayLike, layout: Layout) -> NDArray[np.float64]:
    """Return (n, D), the mean of (H, W, D) values over the pixels of each location's cell.

    A cell without a pixel (more locations than pixels) takes the value of the pixel it lies in.

    Parameters
    ----------
    values : array_like, shape (H, W, D)
        D values for each pixel.
    layout : Layout
        The locations.

    Returns
    -------
    NDArray of float, shape (n, D)
        The mean values of each location.
    """
    pixels = np.asarray(values, np.float64)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    height, width, depth = pixels.shape
    cells = layout.cells(width, height).ravel()
    count = np.bincount(cells, minlength=len(layout))
    flat = pixels.reshape(-1, depth)
    sums = np.stack([np.bincount(cells, column, len(layout)) for column in flat.T], axis=1)
    means = sums / np.maximum(count, 1)[:, None]
    if not count.all():
        x, y = layout.pixels(width, height)[count == 0].astype(np.int64).T
        means[count == 0] = pixels[y.clip(0, height - 1), x.clip(0, width - 1)]
    return means


def luminance(image: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return (H, W) luma from 0 to 1 (Rec. 709 weights applied to the pixel values)."""
    return image.astype(np.float64) @ np.array([0.2126, 0.7152, 0.0722]) / 255


def rgb(image: NDArray[np.uint8], layout: Layout) -> NDArray[np.float64]:
    """Return (n, 3) mean red, green and blue, from 0 to 1.

    Parameters
    ----------
    image : NDArray of uint8, shape (H, W, 3)
        The image.
    layout : Layout
        The locations.

    Returns
    -------
    NDArray of float, shape (n, 3)
        The mean red, green and blue at each location.
    """
    return cell_means(image / 255, layout)


def lab(image: NDArray[np.uint8], layout: Layout) -> NDArray[np.float64]:
    """Return (n, 3) mean L*, a*, b* (CIELAB, D65); distances in it are close to perceived differences.

    Parameters
    ----------
    image : NDArray of uint8, shape (H, W, 3)
        The image.
    layout : Layout
        The locations.

    Returns
    -------
    NDArray of float, shape (n, 3)
        The mean L*, a* and b* at each location.
    """
    from skimage.color import rgb2lab

    return cell_means(rgb2lab(image), layout)


def contrast(image: NDArray[np.uint8], layout: Layout) -> NDArray[np.float64]:
    """Return (n, 1) local contrast: log(1 + 100·s.d.) of luminance in a Gaussian window, averaged over the cell.

    Parameters
    ----------
    image : NDArray of uint8, shape (H, W, 3)
        The image.
    layout : Layout
        The locations.

    Returns
    -------
    NDArray of float, shape (n, 1)
        The local contrast at each location.
    """
    from scipy.ndimage import gaussian_filter

    grey = luminance(image)
    side = min(grey.shape)
    detail = grey - gaussian_filter(grey, max(1.0, FINE_SCALE * side * 2), mode="nearest")
    local = np.sqrt(gaussian_filter(detail**2, max(1.0, COARSE_SCALE * side), mode="nearest"))
    return cell_means(np.log1p(100 * local), layout)
