"""From pixels to locations: means over each location's cell."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.data.layout import Layout
from vseg.errors import InvalidInput


def as_image(image: ArrayLike) -> NDArray[np.uint8]:
    """The image as (H, W, 3) bytes; grey ones have three equal channels."""
    found = np.asarray(image)
    if found.ndim == 2:
        found = np.repeat(found[:, :, None], 3, axis=2)
    if found.ndim != 3 or found.shape[2] not in (3, 4) or found.dtype != np.uint8:
        raise InvalidInput(
            f"An image is uint8 of shape (H, W) or (H, W, 3), got {found.dtype} {np.asarray(image).shape}."
        )
    return np.ascontiguousarray(found[:, :, :3])


def cell_means(values: ArrayLike, layout: Layout) -> NDArray[np.float64]:
    """(n, D) the mean of (H, W, D) values over the pixels of each location's cell.

    A cell without a pixel (more locations than pixels) takes the pixel it lies in.
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
    """(H, W) luma from 0 to 1 (Rec. 709 weights on the pixel values)."""
    return image.astype(np.float64) @ np.array([0.2126, 0.7152, 0.0722]) / 255
