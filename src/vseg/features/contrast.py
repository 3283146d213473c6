"""Local contrast: how much luminance varies around a location."""

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Layout
from vseg.features.cells import cell_means, luminance

# Of the image's smaller side: the scales between which contrast is taken.
FINE_SHARE, WIDE_SHARE = 1 / 128, 1 / 32


def contrast(image: NDArray[np.uint8], layout: Layout) -> NDArray[np.float64]:
    """(n, 1) log(1 + 100·s.d.) of luminance within a Gaussian window, averaged over the cell."""
    from scipy.ndimage import gaussian_filter

    grey = luminance(image)
    side = min(grey.shape)
    detail = grey - gaussian_filter(grey, max(1.0, FINE_SHARE * side * 2), mode="nearest")
    local = np.sqrt(gaussian_filter(detail**2, max(1.0, WIDE_SHARE * side), mode="nearest"))
    return cell_means(np.log1p(100 * local), layout)
