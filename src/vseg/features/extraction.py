"""Extract features by name, by function or from an array, and cache them on disk.

A feature is a function `(image, layout) -> (n, D)`; the user's own functions are used like the built-in ones.
The cache key covers the image's pixels, the layout, the feature, its settings and vseg's version. Cache files are
replaced atomically, so several processes may share a folder; a file that cannot be read is computed again.
"""

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg import __version__
from vseg._support.atomic_files import atomic_write
from vseg.data.layout import Layout
from vseg.errors import InvalidInput, NotFound
from vseg.features.energy import gabor, orientation
from vseg.features.pixels import as_image, cell_means, contrast, lab, rgb

Feature: TypeAlias = Callable[[NDArray[np.uint8], Layout], NDArray[np.float64]]
FeatureSource: TypeAlias = str | Feature | Mapping[str, ArrayLike]
"""What models accept as features: names joined by +, a function, or an array for each image name."""

FEATURES: Mapping[str, Feature] = {
    "rgb": rgb,
    "lab": lab,
    "orientation": orientation,
    "gabor": gabor,
    "contrast": contrast,
}


def extract(source: "str | Feature | ArrayLike", image: ArrayLike, layout: Layout) -> NDArray[np.float64]:
    """Return the features (n, D) of an image at each location.

    Parameters
    ----------
    source : str, callable or array_like
        A name or several joined by + ("lab+contrast"), a function `(image, layout) -> (n, D)`, an array (n, D), or
        an array (H, W, D) of the image's size, which is averaged over each location's cell.
    image : array_like, shape (H, W) or (H, W, 3)
        The image, as uint8.
    layout : Layout
        The locations.

    Returns
    -------
    NDArray, shape (n, D)
        D values for each location.

    Examples
    --------
    >>> from vseg import Grid, stimuli
    >>> extract("lab", stimuli.load_sample("coffee", 128), Grid(8)).shape
    (64, 3)
    """
    pixels = as_image(image)
    if isinstance(source, str):
        columns = [
            _check_features(get_feature(name)(pixels, layout), layout, name) for name in source.split("+")
        ]
        return np.concatenate(columns, axis=1)
    if callable(source):
        return _check_features(source(pixels, layout), layout, getattr(source, "__name__", "the function"))
    values = np.asarray(source)
    if values.ndim == 3:
        if values.shape[:2] != pixels.shape[:2]:
            raise InvalidInput(
                f"Features of shape {values.shape} do not fit an image of {pixels.shape[0]} x {pixels.shape[1]} "
                "pixels; expected (H, W, D) of the same size, or (n, D) with a row for each location."
            )
        return cell_means(values, layout)
    return _check_features(values, layout, "the array")


def get_feature(name: str) -> Feature:
    """Return the feature with this name; `orientation:18` has 18 bands.

    Parameters
    ----------
    name : str
        The name of a feature, such as "lab"; "orientation:18" sets the number of bands.

    Returns
    -------
    Feature
        A function `(image, layout) -> (n, D)`.

    Examples
    --------
    >>> get_feature("orientation:18")  # doctest: +ELLIPSIS
    functools.partial(...)
    """
    kind, colon, number = name.strip().partition(":")
    if kind not in FEATURES:
        raise InvalidInput(
            f"There are no features {name!r}; there are {', '.join(FEATURES)}, and several joined by +."
        )
    if not colon:
        return FEATURES[kind]
    if kind not in ("orientation", "gabor") or not number.isdecimal() or not 2 <= int(number) <= 360:
        raise InvalidInput(f"Only orientation and gabor take a number of bands, from 2 to 360, got {name!r}.")
    return partial(FEATURES[kind], bands=int(number))  # type: ignore[call-arg]


def describe_features(source: FeatureSource) -> str:
    """Return the name by which a model's name mentions these features."""
    if isinstance(source, str):
        return source
    if isinstance(source, Mapping):
        return "given"
    if not callable(source):
        raise NotFound(f"Expected features by name, by function or by image, got {type(source).__name__}.")
    return getattr(source, "__name__", None) or "function"


def standardise(features: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return columns with mean 0 and s.d. 1, the means and the s.d.s; a constant column becomes 0.

    Parameters
    ----------
    features : array_like, shape (n, D)
        The features.

    Returns
    -------
    tuple of NDArray of float
        The standardised features (n, D), the means (D,) and the standard deviations (D,).
    """
    x = np.asarray(features, np.float64)
    mean, spread = x.mean(axis=0), x.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    return (x - mean) / scale, mean, scale


def cache_feature(source: str | Feature, *, settings: str = "", folder: str | Path | None = None) -> Feature:
    """Return the same feature with its values cached on disk for each image and layout.

    Parameters
    ----------
    source : str or callable
        A name as for `extract`, or a function `(image, layout) -> (n, D)`.
    settings : str
        Whatever else the values of a function depend on, such as the name of a network's weights. The function's
        source code is part of the cache key; variables it closes over are not.
    folder : path, optional
        The cache folder; by default vseg's folder in the user's cache.

    Returns
    -------
    Feature
        A function `(image, layout) -> (n, D)` with the name of the source.

    Examples
    --------
    >>> from vseg import Grid, stimuli
    >>> fast = cache_feature("orientation", folder="cache")
    >>> fast(stimuli.load_sample("coffee", 64), Grid(4)).shape, fast.__name__
    ((16, 36), 'orientation')
    """
    if isinstance(source, str):
        function, definition = _join_features(source), f"{source} {_hash_source_files()}"
    elif callable(source):
        function, definition = source, _describe_function(source)
    else:
        raise InvalidInput(f"Expected a feature by name or as a function, got {type(source).__name__}.")
    identity = f"{__version__}\n{definition}\n{settings}"

    def read_or_compute(image: NDArray[np.uint8], layout: Layout) -> NDArray[np.float64]:
        base = cache_folder() if folder is None else Path(folder)
        file = base / f"{_cache_key(identity, image, layout)}.npy"
        values = _read_cache(file, len(layout))
        if values is None:
            values = np.asarray(function(image, layout), np.float64)
            _write_cache(file, values)
        return values

    read_or_compute.__name__ = (
        source if isinstance(source, str) else getattr(function, "__name__", "function")
    )
    return read_or_compute


def cache_folder() -> Path:
    """Return the folder for cached features in the user's cache."""
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "vseg" / "features"


def _check_features(features: ArrayLike, layout: Layout, name: str) -> NDArray[np.float64]:
    values = np.asarray(features, np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != len(layout) or values.shape[1] < 1:
        raise InvalidInput(
            f"Features are (n, D) with a row for each of the {len(layout)} locations; {name} gave {values.shape}."
        )
    if not np.isfinite(values).all():
        raise InvalidInput(
            f"Features are finite numbers; {name} gave {np.sum(~np.isfinite(values))} that are not."
        )
    return np.ascontiguousarray(values)


@cache
def _hash_source_files() -> str:
    """Hash the source of vseg's own features, so that a change of them invalidates the cache."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _join_features(names: str) -> Feature:
    parts = [get_feature(name) for name in names.split("+")]

    def extract_all(image: NDArray[np.uint8], layout: Layout) -> NDArray[np.float64]:
        return np.concatenate([part(image, layout) for part in parts], axis=1)

    return extract_all


def _describe_function(function: Feature) -> str:
    """Return the name, the source code and any bound arguments of a function."""
    if isinstance(function, partial):
        return f"{_describe_function(function.func)} {function.args} {sorted(function.keywords.items())}"
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = ""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(type(function)))}\n{source}"


def _cache_key(identity: str, image: NDArray[np.uint8], layout: Layout) -> str:
    digest = hashlib.sha256(identity.encode())
    pixels = np.ascontiguousarray(image)
    digest.update(f"{pixels.shape} {pixels.dtype} {type(layout).__name__}".encode())
    digest.update(pixels.tobytes())
    digest.update(np.ascontiguousarray(layout.positions).tobytes())
    return digest.hexdigest()[:40]


def _read_cache(file: Path, rows: int) -> NDArray[np.float64] | None:
    try:
        values = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if values.dtype != np.float64 or values.ndim not in (1, 2) or len(values) != rows:
        return None
    return np.asarray(values)


def _write_cache(file: Path, values: NDArray[np.float64]) -> None:
    """Store the values; if the folder cannot be written, nothing is cached."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(file, "wb") as stored:
            np.save(stored, values)
    except OSError:
        return
