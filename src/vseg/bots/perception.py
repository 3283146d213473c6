"""What simulated participants see in an image: maps they are given, what a model says, or maps of its colours."""

import io
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg._support import user_code
from vseg.data.layout import Scatter
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput
from vseg.observers import Observer
from vseg.study.schema import RESERVED

FLAT_COLOURS = 12  # a picture of no more colours than this has a segment for each
FREE_SEGMENTS = 5
MOST_PIXELS = 4096  # to fit a mixture to
POSITION_WEIGHT = 0.5
SOFTNESS = 3.0
Model = Callable[[NDArray[np.uint8]], Any]
Seen = Callable[[NDArray[np.float64]], NDArray[np.float64]]
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


class Sight:
    """P(same) of an image's trials, by an observer of its maps.

    Parameters
    ----------
    observer : Observer
    truth : Maps, or a mapping from image names to Maps, optional
        A single one stands for every image but the practice picture, which has few colours.
    segments : int, optional
        K of maps made from a picture.
    model : callable, optional
        What they see instead: an image (H, W, 3) as uint8 -> labels (H, W), or probabilities (H, W, K).
    """

    def __init__(
        self,
        observer: Observer,
        truth: Maps | Mapping[str, Maps] | None = None,
        segments: int | None = None,
        model: Model | None = None,
    ):
        self.observer, self.truth, self.segments, self.model = observer, truth, segments, model
        self._sights: dict[str, Seen] = {}

    def same_probability(
        self, image: str, png: bytes, columns: Mapping[str, NDArray[Any]], study_segments: int | str
    ) -> NDArray[np.float64]:
        """(m,) for trials with the columns i, j, x1, y1, x2, y2 on the image in this file."""
        pixels = _pixels(png)
        maps = self._given(image, pixels)
        if maps is not None:
            _check_places(image, maps, pixels, columns)
            return _asked(self.observer, maps, columns["i"], columns["j"])
        dots = np.concatenate([np.stack([columns[f"x{n}"], columns[f"y{n}"]], axis=1) for n in (1, 2)])
        height, width = pixels.shape[:2]
        where, row = np.unique(np.concatenate([dots / (width, height), CORNERS]), axis=0, return_inverse=True)
        count = self.segments or (FREE_SEGMENTS if study_segments == "free" else int(study_segments))
        own = Maps(Scatter(where), self._seen(image, pixels, count)(where))
        return _asked(self.observer, own, *row[: len(dots)].reshape(2, -1))

    def _given(self, image: str, pixels: NDArray[np.uint8]) -> Maps | None:
        if isinstance(self.truth, Maps):
            return None if _flat(pixels) is not None else self.truth
        return None if self.truth is None else self.truth.get(image)

    def _seen(self, image: str, pixels: NDArray[np.uint8], segments: int) -> Seen:
        if image not in self._sights:
            modelled = self.model is not None and image != RESERVED  # anyone sees the practice picture right
            self._sights[image] = (
                _said_by(self.model, pixels, image) if modelled else _mixture_of(pixels, segments)
            )
        return self._sights[image]


def _asked(observer: Observer, maps: Maps, i: NDArray[Any], j: NDArray[Any]) -> NDArray[np.float64]:
    """Each distinct pair is asked once; blocks repeat them."""
    n = len(maps.layout)
    key, again = np.unique(np.minimum(i, j) * n + np.maximum(i, j), return_inverse=True)
    return observer(maps, Pairs(maps.layout, *np.divmod(key, n)))[again]


def _said_by(model: Model | None, pixels: NDArray[np.uint8], image: str) -> Seen:
    """What a user's model says of the picture, looked up at each position."""
    assert model is not None
    try:
        said = np.asarray(model(pixels.copy()))
    except Exception as error:
        raise InvalidInput(
            f"The model failed on image {image}: {user_code.describe_error(error)}. "
            "It is given the picture as uint8 (height, width, 3)."
        ) from error
    height, width = pixels.shape[:2]
    if said.shape == (height, width):
        labels = np.unique(said, return_inverse=True)[1].reshape(height, width)
        return lambda where: np.eye(int(labels.max()) + 1)[labels[_at(where, pixels)]]
    if said.ndim != 3 or said.shape[:2] != (height, width) or not np.isfinite(said).all() or said.min() < 0:
        raise InvalidInput(
            f"The model said {said.dtype} {said.shape} of image {image}; expected labels ({height}, {width}) or "
            f"probabilities ({height}, {width}, K), none of them negative."
        )
    sums = said.sum(axis=2, keepdims=True)
    return lambda where: (said / np.where(sums > 0, sums, 1))[_at(where, pixels)]


def _at(where: NDArray[np.float64], pixels: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    height, width = pixels.shape[:2]
    x, y = (where * (width, height)).astype(np.int64).T
    return y.clip(0, height - 1), x.clip(0, width - 1)


def _mixture_of(pixels: NDArray[np.uint8], segments: int) -> Seen:
    """A function (n, 2) positions -> (n, K): who of K Gaussians in colour and place made each."""
    flat = _flat(pixels)
    height, width = pixels.shape[:2]
    if flat is not None:
        return lambda where: np.eye(int(flat.max()) + 1)[flat[_at(where, pixels)]]
    from skimage.color import rgb2lab
    from skimage.filters import gaussian
    from sklearn.mixture import GaussianMixture

    smooth = gaussian(rgb2lab(pixels / 255), sigma=min(height, width) / 100, channel_axis=2)

    def features(where: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([smooth[_at(where, pixels)] / spread, POSITION_WEIGHT * where / 0.29], axis=1)

    spread = smooth.std() + 1e-9
    side = int(MOST_PIXELS**0.5)
    seen = features(((np.mgrid[:side, :side] + 0.5) / side).reshape(2, -1).T)
    mixture = GaussianMixture(segments, covariance_type="full", reg_covar=0.01, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mixture that has not settled still makes someone's maps
        mixture.fit(seen)

    def posterior(where: NDArray[np.float64]) -> NDArray[np.float64]:
        p = mixture.predict_proba(features(where)) ** (1 / SOFTNESS)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    return posterior


def _flat(pixels: NDArray[np.uint8]) -> NDArray[np.int64] | None:
    """(H, W) which of a few colours each pixel has, or nothing for a picture of many."""
    packed = pixels.astype(np.int64) @ (65536, 256, 1)
    colours, label = np.unique(packed, return_inverse=True)
    return label.reshape(packed.shape) if len(colours) <= FLAT_COLOURS else None


def _pixels(png: bytes) -> NDArray[np.uint8]:
    from PIL import Image

    with Image.open(io.BytesIO(png)) as file:
        return np.asarray(file.convert("RGB"))


def _check_places(
    image: str, maps: Maps, pixels: NDArray[np.uint8], columns: Mapping[str, NDArray[Any]]
) -> None:
    """The truth's locations must be those of the study: the same numbers at the same places."""
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
