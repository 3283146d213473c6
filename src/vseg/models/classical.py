"""Classical segmentation algorithms as black boxes: functions from an image to labels, and ranges of their settings.

Images are reduced to at most 96 pixels a side, which is finer than any layout and keeps the search fast.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.features.pixels import luminance
from vseg.models.search import Ranges

SIDE_PX, WALKER_SIDE_PX = 96, 64


def kmeans(image: NDArray[np.uint8], *, clusters: int = 3, nearness: float = 0.3) -> NDArray[np.int64]:
    """Cluster pixels by colour (L*a*b*) and, weighted by `nearness`, by position."""
    return _upscale(_kmeans(_downscale(image, SIDE_PX), clusters, nearness)[0], image)


def slic(image: NDArray[np.uint8], *, pieces: int = 10, compactness: float = 10.0) -> NDArray[np.int64]:
    """Compute superpixels by k-means within neighbourhoods (SLIC, Achanta et al. 2012)."""
    from skimage.segmentation import slic as _slic

    small = _downscale(image, SIDE_PX)
    return _upscale(_slic(small, n_segments=pieces, compactness=compactness, start_label=0), image)


def felzenszwalb(
    image: NDArray[np.uint8], *, scale: float = 200.0, blur_px: float = 0.8, least_px: int = 50
) -> NDArray[np.int64]:
    """Merge regions of a graph (Felzenszwalb and Huttenlocher 2004)."""
    from skimage.segmentation import felzenszwalb as _felzenszwalb

    small = _downscale(image, SIDE_PX)
    return _upscale(_felzenszwalb(small, scale=scale, sigma=blur_px, min_size=least_px), image)


def watershed(image: NDArray[np.uint8], *, basins: int = 8, blur_px: float = 2.0) -> NDArray[np.int64]:
    """Flood the magnitude of the gradient from regularly placed minima."""
    from scipy.ndimage import gaussian_gradient_magnitude
    from skimage.segmentation import watershed as _watershed

    edges = gaussian_gradient_magnitude(luminance(_downscale(image, SIDE_PX)), blur_px)
    return _upscale(_watershed(edges, markers=basins), image)


def random_walker(image: NDArray[np.uint8], *, segments: int = 2, beta: float = 100.0) -> NDArray[np.float64]:
    """Return the probability that a walk from a pixel first reaches a seed of each of K colours (Grady 2006).

    The seeds of a colour are the fifth of its pixels closest to the centre of its cluster.
    """
    from skimage.color import rgb2lab
    from skimage.segmentation import random_walker as _random_walker

    small = _downscale(image, WALKER_SIDE_PX)
    labels, distance = _kmeans(small, segments, 0.1)
    colour = rgb2lab(small) / 100
    if labels.max() == 0 or colour.std() == 0:  # a single colour has no seeds to walk to
        return np.ones((*image.shape[:2], 1))
    markers = np.zeros(labels.shape, np.int64)
    for each in range(int(labels.max()) + 1):
        inside = labels == each
        markers[inside & (distance <= np.quantile(distance[inside], 0.2))] = each + 1
    p = _random_walker(colour, markers, beta=beta, mode="bf", return_full_prob=True, channel_axis=2)
    p = np.moveaxis(np.clip(p, 0, None), 0, 2)
    total = p.sum(axis=2, keepdims=True)
    return _upscale(np.divide(p, total, out=np.full_like(p, 1 / p.shape[2]), where=total > 0), image)


CLASSICAL: Mapping[str, tuple[Callable[..., Any], Ranges]] = {
    "kmeans": (kmeans, {"clusters": (2, 12), "nearness": (0.0, 1.5)}),
    "slic": (slic, {"pieces": (2, 40), "compactness": (0.3, 100.0)}),
    "felzenszwalb": (felzenszwalb, {"scale": (10.0, 3000.0), "blur_px": (0.3, 3.0), "least_px": (10, 1000)}),
    "watershed": (watershed, {"basins": (2, 40), "blur_px": (0.7, 7.0)}),
    "random_walker": (random_walker, {"beta": (5.0, 5000.0)}),
}


def _kmeans(
    small: NDArray[np.uint8], clusters: int, nearness: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return labels and each pixel's distance from its cluster's centre; the random state is fixed."""
    from skimage.color import rgb2lab
    from sklearn.cluster import KMeans

    height, width = small.shape[:2]
    y, x = np.mgrid[:height, :width] / max(height, width)
    colour = rgb2lab(small) / 25
    rows = np.dstack([colour, nearness * 4 * x, nearness * 4 * y]).reshape(-1, 5)
    clusters = min(clusters, len(np.unique(rows.round(6), axis=0)))
    result = KMeans(clusters, n_init=1, random_state=0).fit(rows)
    distance = np.linalg.norm(rows - result.cluster_centers_[result.labels_], axis=1)
    return result.labels_.reshape(height, width).astype(np.int64), distance.reshape(height, width)


def _downscale(image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    from skimage.transform import resize

    height, width = image.shape[:2]
    ratio = side / max(height, width)
    if ratio >= 1:
        return image
    shape = max(1, round(height * ratio)), max(1, round(width * ratio))
    return np.asarray(np.rint(255 * resize(image, shape, anti_aliasing=True)), np.uint8)


def _upscale(small: NDArray[Any], image: NDArray[np.uint8]) -> NDArray[Any]:
    """Copy the values of a smaller image to every pixel of the image (nearest neighbour)."""
    rows, columns = (
        np.minimum((np.arange(target) + 0.5) * source / target, source - 1).astype(np.int64)
        for target, source in zip(image.shape[:2], small.shape[:2], strict=True)
    )
    return small[np.ix_(rows, columns)]
