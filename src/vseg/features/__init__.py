"""Features: what a model may look at, as numbers (n, D) at each location of an image.

extraction   extract(): features by name, function or array; the cache on disk
pixels       colour (rgb, lab) and contrast, averaged over each location's cell
energy       oriented energy in D bands summed over scales, and Gabor energy by scale and orientation
networks     activations of any torch network at the locations

Examples
--------
>>> from vseg import Grid, stimuli
>>> extract("lab+contrast", stimuli.load_sample("coffee", 128), Grid(8)).shape
(64, 4)
"""

from vseg.features.energy import gabor, orientation
from vseg.features.extraction import (
    FEATURES,
    Feature,
    FeatureSource,
    cache_feature,
    extract,
    get_feature,
    standardise,
)
from vseg.features.pixels import as_image, cell_means, contrast, lab, rgb

__all__ = [
    "FEATURES",
    "Feature",
    "FeatureSource",
    "as_image",
    "cache_feature",
    "cell_means",
    "contrast",
    "extract",
    "gabor",
    "get_feature",
    "lab",
    "orientation",
    "rgb",
    "standardise",
]
