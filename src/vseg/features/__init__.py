"""Features: what a model may look at, as numbers at each location: (n, D) from an image and a layout.

colour     rgb, lab: means over each location's cell
energy     oriented energy in D bands over scales (own Fourier wedges), and Gabor energy by scale and orientation
contrast   local contrast of luminance
cache      features kept on disk by the content of the image, the layout and the settings
networks   activations of any torch network at the locations

A feature is a function `(image, layout) -> (n, D)`, so that a user's own is as good as ours; `of` takes names,
functions and arrays alike.

Examples
--------
>>> from vseg import Grid, stimuli
>>> of("lab", stimuli.sample("coffee", 128), Grid(8)).shape
(64, 3)
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.data.layout import Layout
from vseg.errors import InvalidInput
from vseg.features.cells import as_image, cell_means
from vseg.features.colour import lab, rgb
from vseg.features.contrast import contrast
from vseg.features.energy import gabor, orientation

Feature = Callable[[NDArray[np.uint8], Layout], NDArray[np.float64]]
NAMES: Mapping[str, Feature] = {
    "rgb": rgb,
    "lab": lab,
    "orientation": orientation,
    "gabor": gabor,
    "contrast": contrast,
}

__all__ = [
    "NAMES",
    "Feature",
    "as_image",
    "cell_means",
    "contrast",
    "gabor",
    "lab",
    "named",
    "of",
    "orientation",
    "rgb",
    "standardised",
]


def of(what: "str | Feature | ArrayLike", image: ArrayLike, layout: Layout) -> NDArray[np.float64]:
    """The features at each location: by name (several with +, as in "lab+contrast"), by function, or given.

    Parameters
    ----------
    what : str, callable or array_like
        A name, a function `(image, layout) -> (n, D)`, an array (n, D), or an array (H, W, D) of the image's own size,
        which is averaged over each location's cell.
    image : array_like, shape (H, W) or (H, W, 3)
    layout : Layout
    """
    picture = as_image(image)
    if isinstance(what, str):
        columns = [_checked(named(name)(picture, layout), layout, name) for name in what.split("+")]
        return np.concatenate(columns, axis=1)
    if callable(what):
        return _checked(what(picture, layout), layout, getattr(what, "__name__", "the function"))
    given = np.asarray(what)
    if given.ndim == 3:
        if given.shape[:2] != picture.shape[:2]:
            raise InvalidInput(
                f"Features of shape {given.shape} do not fit an image of {picture.shape[0]} x {picture.shape[1]} "
                "pixels; expected (H, W, D) of the same size, or (n, D), a row a location."
            )
        return cell_means(given, layout)
    return _checked(given, layout, "the array")


def named(name: str) -> Feature:
    """The feature of that name; `orientation:18` has 18 bands.

    Examples
    --------
    >>> named("orientation:18")  # doctest: +ELLIPSIS
    functools.partial(...)
    """
    kind, colon, number = name.strip().partition(":")
    if kind not in NAMES:
        raise InvalidInput(
            f"There are no features {name!r}; there are {', '.join(NAMES)}, several with a + between."
        )
    if not colon:
        return NAMES[kind]
    if kind not in ("orientation", "gabor") or not number.isdecimal() or not 2 <= int(number) <= 360:
        raise InvalidInput(f"Only orientation and gabor have a number, of bands from 2 to 360, got {name!r}.")
    return partial(NAMES[kind], bands=int(number))  # type: ignore[call-arg]


def standardised(features: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Columns of mean 0 and s.d. 1, with the means and s.d.s; a constant column becomes 0."""
    x = np.asarray(features, np.float64)
    mean, spread = x.mean(axis=0), x.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    return (x - mean) / scale, mean, scale


def _checked(features: Any, layout: Layout, name: str) -> NDArray[np.float64]:
    found = np.asarray(features, np.float64)
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or len(found) != len(layout) or found.shape[1] < 1:
        raise InvalidInput(
            f"Features are (n, D), a row for each of the {len(layout)} locations; {name} gave {found.shape}."
        )
    if not np.isfinite(found).all():
        raise InvalidInput(
            f"Features are finite numbers; {name} gave {np.sum(~np.isfinite(found))} that are not."
        )
    return np.ascontiguousarray(found)
