"""What simulated participants see in an image: given maps, a model's output, or maps made from its colours."""

import io
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg._support.user_code import describe_error
from vseg.data.contours import Contours
from vseg.data.layout import Grid, Scatter
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput
from vseg.observers import Observer, draw_contours
from vseg.study.sections import PRACTICE_IMAGE

MAX_FLAT_COLOURS = 12  # a picture with no more colours than this has a segment for each
DEFAULT_SEGMENTS = 5  # for studies that leave the number of segments free
MAX_PIXELS = 4096  # to which a mixture is fitted
POSITION_WEIGHT = 0.5
POSITION_SPREAD = 0.29  # standard deviation of a uniform distribution on [0, 1]
SOFTNESS = 3.0
BORDER_GRID = Grid(128)  # on which a picture's borders are traced
ImageModel = Callable[[NDArray[np.uint8]], Any]
"""A user's function from an image (H, W, 3) to labels (H, W) or probabilities (H, W, K)."""
MapFunction = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""A function from positions (n, 2) to probabilities (n, K)."""
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


class Perception:
    """P(same) of an image's trials for an observer of its maps.

    Parameters
    ----------
    observer : Observer
        How participants answer, given maps.
    truth : Maps, or a mapping from image names to Maps, optional
        The maps they see. A single one is used for every image except the practice picture, which has few colours.
    segments : int, optional
        K of maps made from a picture.
    model : callable, optional
        What they see instead: a function from an image (H, W, 3) as uint8 to labels (H, W) or probabilities (H, W, K).
    borders : mapping from image names to Maps, optional
        Finer true maps, whose borders they draw.
    """

    def __init__(
        self,
        observer: Observer,
        truth: Maps | Mapping[str, Maps] | None = None,
        segments: int | None = None,
        model: ImageModel | None = None,
        borders: Mapping[str, Maps] | None = None,
    ):
        self.observer, self.truth, self.segments, self.model = observer, truth, segments, model
        self.borders = borders or {}
        self._map_functions: dict[str, MapFunction] = {}

    def same_probability(
        self, image: str, png: bytes, columns: Mapping[str, NDArray[Any]], study_segments: int | str
    ) -> NDArray[np.float64]:
        """Return P(same) (m,) of trials with the columns i, j, x1, y1, x2, y2 on the image in this PNG file."""
        pixels = _read_pixels(png)
        maps = self._true_maps(image, pixels)
        if maps is not None:
            _check_locations(image, maps, pixels, columns)
            return _observe(self.observer, maps, columns["i"], columns["j"])
        dots = np.concatenate([np.stack([columns[f"x{n}"], columns[f"y{n}"]], axis=1) for n in (1, 2)])
        height, width = pixels.shape[:2]
        positions, row = np.unique(
            np.concatenate([dots / (width, height), CORNERS]), axis=0, return_inverse=True
        )
        map_function = self._map_function(image, pixels, self._count_segments(study_segments))
        perceived = Maps(Scatter(positions), map_function(positions))
        return _observe(self.observer, perceived, *row[: len(dots)].reshape(2, -1))

    def draw_contours(
        self, image: str, png: bytes, study_segments: int | str, rng: np.random.Generator
    ) -> Contours:
        """Return the lines that a participant draws on the image in this PNG file."""
        pixels = _read_pixels(png)
        height, width = pixels.shape[:2]
        maps = self.borders.get(image) or self._true_maps(image, pixels)
        if maps is None:
            map_function = self._map_function(image, pixels, self._count_segments(study_segments))
            maps = Maps(BORDER_GRID, map_function(BORDER_GRID.positions))
        return draw_contours(maps, width_px=width, height_px=height, image=image, seed=rng)

    def _count_segments(self, study_segments: int | str) -> int:
        return self.segments or (DEFAULT_SEGMENTS if study_segments == "free" else int(study_segments))

    def _true_maps(self, image: str, pixels: NDArray[np.uint8]) -> Maps | None:
        if isinstance(self.truth, Maps):
            return None if _flat_labels(pixels) is not None else self.truth
        return None if self.truth is None else self.truth.get(image)

    def _map_function(self, image: str, pixels: NDArray[np.uint8], segments: int) -> MapFunction:
        if image not in self._map_functions:
            use_model = (
                self.model is not None and image != PRACTICE_IMAGE
            )  # everyone sees the practice picture right
            self._map_functions[image] = (
                _apply_model(self.model, pixels, image) if use_model else _fit_mixture(pixels, segments)
            )
        return self._map_functions[image]


def _observe(observer: Observer, maps: Maps, i: NDArray[Any], j: NDArray[Any]) -> NDArray[np.float64]:
    """Return P(same) of each pair; the observer sees each distinct pair once, since blocks repeat them."""
    n = len(maps.layout)
    key, inverse = np.unique(np.minimum(i, j) * n + np.maximum(i, j), return_inverse=True)
    return observer(maps, Pairs(maps.layout, *np.divmod(key, n)))[inverse]


def _apply_model(model: ImageModel | None, pixels: NDArray[np.uint8], image: str) -> MapFunction:
    """Run a user's model on the picture, and return a function that looks its output up at positions."""
    assert model is not None
    try:
        output = np.asarray(model(pixels.copy()))
    except Exception as error:
        raise InvalidInput(
            f"The model failed on image {image}: {describe_error(error)}. "
            "Its argument is the picture as uint8 (height, width, 3)."
        ) from error
    height, width = pixels.shape[:2]
    if output.shape == (height, width):
        labels = np.unique(output, return_inverse=True)[1].reshape(height, width)
        return lambda positions: np.eye(int(labels.max()) + 1)[labels[_pixel_index(positions, pixels)]]
    if (
        output.ndim != 3
        or output.shape[:2] != (height, width)
        or not np.isfinite(output).all()
        or output.min() < 0
    ):
        raise InvalidInput(
            f"The model returned {output.dtype} {output.shape} for image {image}; expected labels ({height}, {width}) "
            f"or probabilities ({height}, {width}, K), none of them negative."
        )
    sums = output.sum(axis=2, keepdims=True)
    return lambda positions: (output / np.where(sums > 0, sums, 1))[_pixel_index(positions, pixels)]


def _pixel_index(
    positions: NDArray[np.float64], pixels: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row and column of the pixel at each position."""
    height, width = pixels.shape[:2]
    x, y = (positions * (width, height)).astype(np.int64).T
    return y.clip(0, height - 1), x.clip(0, width - 1)


def _fit_mixture(pixels: NDArray[np.uint8], segments: int) -> MapFunction:
    """Fit K Gaussians in colour and position; return their posterior probabilities as a function of position."""
    flat = _flat_labels(pixels)
    height, width = pixels.shape[:2]
    if flat is not None:
        return lambda positions: np.eye(int(flat.max()) + 1)[flat[_pixel_index(positions, pixels)]]
    from skimage.color import rgb2lab
    from skimage.filters import gaussian
    from sklearn.mixture import GaussianMixture

    smooth = gaussian(rgb2lab(pixels / 255), sigma=min(height, width) / 100, channel_axis=2)

    def features(positions: NDArray[np.float64]) -> NDArray[np.float64]:
        colours = smooth[_pixel_index(positions, pixels)] / spread
        return np.concatenate([colours, POSITION_WEIGHT * positions / POSITION_SPREAD], axis=1)

    spread = smooth.std() + 1e-9
    side = int(MAX_PIXELS**0.5)
    samples = features(((np.mgrid[:side, :side] + 0.5) / side).reshape(2, -1).T)
    mixture = GaussianMixture(segments, covariance_type="full", reg_covar=0.01, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mixture that has not converged is still a plausible percept
        mixture.fit(samples)

    def posterior(positions: NDArray[np.float64]) -> NDArray[np.float64]:
        p = mixture.predict_proba(features(positions)) ** (1 / SOFTNESS)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    return posterior


def _flat_labels(pixels: NDArray[np.uint8]) -> NDArray[np.int64] | None:
    """Return the number of each pixel's colour (H, W), or None for a picture with many colours."""
    packed = pixels.astype(np.int64) @ (65536, 256, 1)
    colours, label = np.unique(packed, return_inverse=True)
    return label.reshape(packed.shape) if len(colours) <= MAX_FLAT_COLOURS else None


def _read_pixels(png: bytes) -> NDArray[np.uint8]:
    from PIL import Image

    with Image.open(io.BytesIO(png)) as file:
        return np.asarray(file.convert("RGB"))


def _check_locations(
    image: str, maps: Maps, pixels: NDArray[np.uint8], columns: Mapping[str, NDArray[Any]]
) -> None:
    """Check that the true maps have the study's locations: the same numbers at the same positions."""
    height, width = pixels.shape[:2]
    centres = maps.layout.pixels(width, height)
    largest = int(max(columns["i"].max(), columns["j"].max()))
    if largest < len(centres):
        ends = ((columns["i"], columns["x1"], columns["y1"]), (columns["j"], columns["x2"], columns["y2"]))
        if all(np.abs(centres[n] - np.stack([x, y], axis=1)).max() <= 1 for n, x, y in ends):
            return
    raise InvalidInput(
        f"The truth of image {image!r} lies on {maps.layout}, but the study asks about other locations; "
        "give maps on the study's own layout."
    )
