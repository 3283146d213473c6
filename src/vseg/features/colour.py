"""Colour: means of each cell in RGB (0 to 1) or CIELAB."""

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Layout
from vseg.features.cells import cell_means


def rgb(image: NDArray[np.uint8], layout: Layout) -> NDArray[np.float64]:
    """(n, 3) mean red, green and blue, from 0 to 1."""
    return cell_means(image / 255, layout)


def lab(image: NDArray[np.uint8], layout: Layout) -> NDArray[np.float64]:
    """(n, 3) mean L*, a*, b* (D65), in which distances are about those that people see."""
    from skimage.color import rgb2lab

    return cell_means(rgb2lab(image), layout)
