"""Images of coloured locations: the colours of a segment have a Gaussian distribution (the paper's simulation)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.seeds import Seed, check_seed
from vseg.data.layout import Grid, Layout, as_floats
from vseg.data.maps import Maps
from vseg.errors import InvalidInput

PALETTE = np.array(
    [[0.7, 0.3, 0.3], [0.3, 0.7, 0.3], [0.3, 0.3, 0.7], [0.7, 0.7, 0.7],
     [0.7, 0.7, 0.3], [0.7, 0.3, 0.7], [0.3, 0.7, 0.7], [0.3, 0.3, 0.3]]
)  # fmt: skip
"""Default mean colours: the corners of a cube inside the RGB cube; the first four are the farthest apart."""


@dataclass(frozen=True, eq=False)
class ColourImage:
    """A colour for every location, and the segment from which it was drawn.

    Attributes
    ----------
    layout : Layout
    features : NDArray[np.float64], shape (n, 3)
        Red, green and blue of each location, from 0 to 1.
    labels : NDArray[np.int64], shape (n,)
        The segment from which each location's colour was drawn.
    clipped : float
        The share of the values outside 0..1, which were clipped.
    """

    layout: Layout
    features: NDArray[np.float64]
    labels: NDArray[np.int64]
    clipped: float

    @property
    def image(self) -> NDArray[np.float64]:
        """(N, N, 3) colours on a grid, one pixel per location."""
        if not isinstance(self.layout, Grid):
            raise InvalidInput(
                f"An image with one pixel per location needs a grid, got {self.layout}; use render(size_px)."
            )
        return self.features.reshape(self.layout.size, self.layout.size, 3)

    def render(self, size_px: int) -> NDArray[np.uint8]:
        """Return a (size_px, size_px, 3) image in which the cell of each location has its colour."""
        return np.rint(255 * self.features[self.layout.cells(size_px, size_px)]).astype(np.uint8)


def colour_image(
    maps: Maps, *, means: ArrayLike | None = None, spread: ArrayLike = 0.1, seed: Seed
) -> ColourImage:
    """Draw a label for each location from its probabilities, and a colour from that segment's Gaussian.

    The paper does not specify how its colours were generated; this method is ours.

    Parameters
    ----------
    maps : Maps
        The probabilities of the segments.
    means : array_like, shape (K, 3), optional
        Mean colour of each segment: red, green and blue from 0 to 1; PALETTE by default.
    spread : float or array_like, optional
        Standard deviation around the mean: one for all, or an array of shape (K, 3).
    seed : int, SeedSequence or Generator
        Seed of labels and colours.

    Returns
    -------
    ColourImage
        The colour and label of each location; `image` is the image.

    Examples
    --------
    >>> from vseg import Grid
    >>> from vseg.stimuli import random_maps
    >>> picture = colour_image(random_maps(Grid(48), segments=3, entropy=0.1, seed=0), seed=1)
    >>> picture.image.shape, picture.features.shape
    ((48, 48, 3), (2304, 3))
    """
    centres, width = _check_means(means, maps.segments), _check_spread(spread, maps.segments)
    rng = np.random.default_rng(check_seed(seed))
    cumulative = maps.probabilities.cumsum(axis=1)[:, :-1]
    labels = (rng.random((len(cumulative), 1)) >= cumulative).sum(axis=1)
    colours = centres[labels] + width[labels] * rng.standard_normal((len(labels), 3))
    clipped = float(np.mean((colours < 0) | (colours > 1)))
    return ColourImage(maps.layout, np.clip(colours, 0, 1), labels, clipped)


def _check_means(means: ArrayLike | None, segments: int) -> NDArray[np.float64]:
    if means is None:
        if segments > len(PALETTE):
            raise InvalidInput(
                f"There are default colours for at most {len(PALETTE)} segments, got {segments}; give `means`."
            )
        return PALETTE[:segments]
    array = as_floats(means, "means")
    if array.shape != (segments, 3) or not ((array >= 0) & (array <= 1)).all():
        raise InvalidInput(
            f"Expected {segments} mean colours of 3 values from 0 to 1, got an array of shape {array.shape}."
        )
    return array


def _check_spread(spread: ArrayLike, segments: int) -> NDArray[np.float64]:
    array = as_floats(spread, "spread")
    if array.shape not in ((), (segments, 3)) or not (np.isfinite(array) & (array >= 0)).all():
        raise InvalidInput(
            f"Expected one spread from 0 up, or an array of shape ({segments}, 3), got {spread!r:.80}."
        )
    return np.broadcast_to(array, (segments, 3))
