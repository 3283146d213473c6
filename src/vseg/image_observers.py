"""Simulated observers who see an image rather than maps: what they believe is computed from its pixels."""

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.stimuli import TextureImage
from vseg.stimuli.random_maps import softmax

# How an observer sees a texture: the finest detail, and the window over which orientation is pooled.
DETAIL_PX, WINDOW_PX = 4.0, 8.0
# The median and log s.d. of the gain over observers, and the s.d. of their noise.
GAIN, GAIN_SPREAD, NOISE = 0.7, 0.35, 0.7


def measure_orientations_deg(image: NDArray[np.uint8], layout: Layout) -> NDArray[np.float64]:
    """Return (n,) the orientation at each location: the doubled-angle mean of the gradients around it."""
    from scipy.ndimage import gaussian_filter

    grey = image.astype(np.float64)
    across = gaussian_filter(grey, DETAIL_PX, order=(0, 1))
    up = -gaussian_filter(grey, DETAIL_PX, order=(1, 0))
    x, y = layout.pixels(image.shape[1], image.shape[0]).astype(np.int64).T
    sine = gaussian_filter(2 * across * up, WINDOW_PX)[y, x]
    cosine = gaussian_filter(across**2 - up**2, WINDOW_PX)[y, x]
    return np.rad2deg(np.arctan2(sine, cosine)) / 2


def estimate_spread_deg(measured: NDArray[np.float64], means: NDArray[np.float64]) -> float:
    """Estimate the s.d. of measured orientations around those of the textures, with unknown labels (EM)."""
    squares, variance = (measured[:, None] - means) ** 2, float(measured.var())
    for _ in range(50):
        weights = softmax(-squares / (2 * variance))
        variance = float((weights * squares).sum() / len(measured))
    return float(np.sqrt(variance))


def simulate_beliefs(stimulus: TextureImage, layout: Layout, *, seed: np.random.SeedSequence) -> Maps:
    """Simulate the maps of one observer: Gaussian log-likelihoods of what they see, with their own gain and noise."""
    rng = np.random.default_rng(seed)
    means = np.array(stimulus.parameters.orientations_deg)
    measured = measure_orientations_deg(stimulus.image, layout)
    evidence = -((measured[:, None] - means) ** 2) / (2 * estimate_spread_deg(measured, means) ** 2)
    gain = GAIN * np.exp(GAIN_SPREAD * rng.standard_normal())
    # Only the difference between the evidence for the two textures matters: its noise has the s.d. NOISE.
    noise = NOISE / np.sqrt(2) * rng.standard_normal(evidence.shape)
    return Maps(layout, softmax(gain * evidence + noise))


def simulate_annotation(
    image: NDArray[np.uint8],
    layout: Layout,
    segments: int,
    position_weight: float,
    seed: np.random.SeedSequence,
) -> Maps:
    """Simulate the maps of one annotator: k-means over the colours (CIELAB) and positions of the locations.

    Parameters
    ----------
    image : NDArray of uint8
    layout : Layout
    segments : int
        The number of segments.
    position_weight : float
        The weight of the position: 0 for colour alone, about 1 for compact areas.
    seed : SeedSequence

    Returns
    -------
    Maps
    """
    from skimage.color import rgb2lab
    from sklearn.cluster import KMeans

    cells = layout.cells(image.shape[1], image.shape[0]).ravel()
    count = np.bincount(cells, minlength=len(layout))
    channels = rgb2lab(image).reshape(-1, 3).T
    colours = np.stack([np.bincount(cells, channel, len(layout)) / count for channel in channels], axis=1)
    features = np.hstack(
        [colours / colours.std(), position_weight * layout.positions / layout.positions.std()]
    )
    kmeans = KMeans(segments, n_init=5, random_state=int(seed.generate_state(1)[0]))
    return Maps.one_hot(layout, kmeans.fit_predict(features), segments)
