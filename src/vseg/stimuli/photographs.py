"""Photographs as stimuli: any picture's central square, the samples of scikit-image, BSDS500."""

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.errors import InvalidInput, NotFound
from vseg.stimuli.textures import sample_labels

SAMPLES = (
    "astronaut", "brick", "camera", "cell", "chelsea", "coffee", "coins", "grass", "gravel", "horse",
    "hubble_deep_field", "immunohistochemistry", "moon", "page", "rocket",
)  # fmt: skip
"""Pictures that come with scikit-image itself and need no download."""
MOST_PIXELS = 80_000_000  # of a file; more is a quarter of a gigabyte, perhaps packed into a few kilobytes


def crop_square(image: ArrayLike, size_px: int) -> NDArray[np.uint8]:
    """Cut out the central square and resize it, smoothed against aliasing.

    Parameters
    ----------
    image : array_like, shape (H, W), (H, W, 3) or (H, W, 4)
        uint8, bool, or floats from 0 to 1; transparency is dropped.
    size_px : int
        Side of the result.

    Examples
    --------
    >>> square(np.zeros((20, 30, 3), np.uint8), 16).shape
    (16, 16, 3)
    """
    from skimage.transform import resize

    if size_px < 1:
        raise InvalidInput(f"A square has a side of at least 1 px, got {size_px}.")
    crop = _central(_as_bytes(image))
    if crop.shape[0] == size_px:
        return np.ascontiguousarray(crop)
    resized = resize(crop / 255, (size_px, size_px), anti_aliasing=size_px < crop.shape[0])
    return np.rint(255 * np.clip(resized, 0, 1)).astype(np.uint8)


def load_sample(name: str, size_px: int = 512) -> NDArray[np.uint8]:
    """One of the pictures in SAMPLES, as a square.

    Examples
    --------
    >>> sample("chelsea", 64).shape
    (64, 64, 3)
    """
    if name not in SAMPLES:
        raise InvalidInput(f"There is no sample {name!r}; there are: {', '.join(SAMPLES)}.")
    import skimage.data

    return crop_square(getattr(skimage.data, name)(), size_px)


def read_image(path: str | Path) -> NDArray[np.uint8]:
    """Read a picture as (H, W) or (H, W, 3), turned upright as its camera noted it.

    Examples
    --------
    >>> picture = square(read("holiday.jpg"), 512)  # doctest: +SKIP
    """
    from PIL import Image, ImageOps

    if not Path(path).is_file():
        raise NotFound(f"No picture at {path}; expected a file such as a PNG or JPEG.")
    # What Pillow's readers raise where a file is not what it says it is.
    broken = (OSError, SyntaxError, ValueError, OverflowError, MemoryError, struct.error, zlib.error)
    bombs = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        with Image.open(path) as file:
            if file.width * file.height > MOST_PIXELS:
                raise Image.DecompressionBombError(f"{file.width}x{file.height} pixels")
            upright = ImageOps.exif_transpose(file)
            if upright.mode.startswith("I;16"):
                return (np.asarray(upright) >> 8).astype(np.uint8)
            return np.asarray(upright if upright.mode == "L" else upright.convert("RGB"))
    except bombs as error:
        raise InvalidInput(
            f"{path} cannot be read as a picture: at most {MOST_PIXELS // 10**6} million pixels are read ({error}); "
            "make it smaller first."
        ) from error
    except broken as error:
        raise InvalidInput(f"{path} cannot be read as a picture ({error}).") from error


@dataclass(frozen=True)
class Bsds:
    """A folder of BSDS500: photographs with the segmentations that several people drew.

    Photographs (.jpg) and segmentations (.mat) lie side by side, or in the official tree of
    images/{train,val,test} and groundTruth/{train,val,test}, at any depth. Everything is cut to the
    central square.

    Examples
    --------
    >>> bsds = Bsds("BSDS500/data")                      # doctest: +SKIP
    >>> picture = bsds.image("112082", 512)              # doctest: +SKIP
    >>> truth = bsds.annotator_maps("112082", Grid(16))  # doctest: +SKIP
    """

    folder: Path

    def __init__(self, folder: str | Path):
        object.__setattr__(self, "folder", Path(folder))
        if not self.folder.is_dir():
            raise NotFound(f"No folder {folder}; expected one with the .jpg and .mat files of BSDS500.")
        if not self._files:
            raise NotFound(
                f"{folder} holds no .jpg with its .mat; expected them side by side, or in the folders "
                "images and groundTruth."
            )

    @property
    def ids(self) -> list[str]:
        """The photographs' names, sorted."""
        return list(self._files)

    def image(self, name: str, size_px: int | None = None) -> NDArray[np.uint8]:
        """The central square of a photograph, in its own resolution or resized."""
        whole = read_image(self._paths(name)[0])
        return crop_square(whole, min(whole.shape[:2]) if size_px is None else size_px)

    def labels(self, name: str, size_px: int | None = None) -> list[NDArray[np.int64]]:
        """The annotators' label images, each cut to the same square as `image`."""
        return [_nearest(_central(labels), size_px) for labels in _segmentations(self._paths(name)[1])]

    def annotator_maps(self, name: str, layout: Layout) -> list[Maps]:
        """One-hot maps, an annotator each: the labels at the locations, renumbered 0..K-1."""
        at_locations = [sample_labels(labels, layout) for labels in self.labels(name)]
        return [Maps.one_hot(layout, np.unique(found, return_inverse=True)[1]) for found in at_locations]

    @cached_property
    def _files(self) -> Mapping[str, tuple[Path, Path]]:
        found = [(path, _truth_of(path)) for path in sorted(self.folder.rglob("*.jpg"))]
        named = {path.stem: (path, truth) for path, truth in found if truth is not None}
        return dict(sorted(named.items()))

    def _paths(self, name: str) -> tuple[Path, Path]:
        if name not in self._files:
            some = ", ".join(self.ids[:5])
            raise NotFound(f"{self.folder} has no photograph {name!r}; it has {len(self.ids)}: {some}….")
        return self._files[name]


def _truth_of(path: Path) -> Path | None:
    """The .mat beside a photograph, or in groundTruth/… where the photograph is in images/…."""
    folders = ["groundTruth" if part == "images" else part for part in path.parts]
    places = [path.with_suffix(".mat"), Path(*folders).with_suffix(".mat")]
    return next((place for place in places if place.is_file()), None)


def _segmentations(path: Path) -> list[NDArray[np.int64]]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        annotators = loadmat(path)["groundTruth"][0]
        return [annotator["Segmentation"][0, 0].astype(np.int64) for annotator in annotators]
    except (MatReadError, KeyError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        raise InvalidInput(f"{path} is not a segmentation file of BSDS500 ({error}).") from error


def _as_bytes(image: ArrayLike) -> NDArray[np.uint8]:
    given = np.asarray(image)
    if given.ndim not in (2, 3) or (given.ndim == 3 and given.shape[2] not in (3, 4)) or not given.size:
        raise InvalidInput(f"An image has shape (H, W), (H, W, 3) or (H, W, 4), got {given.shape}.")
    if given.ndim == 3:
        given = given[:, :, :3]
    if given.dtype == np.uint8:
        return given
    if given.dtype.kind not in "fb" or not ((given >= 0) & (given <= 1)).all():
        raise InvalidInput(
            f"An image is uint8, or floats from 0 to 1, got {given.dtype} of {given.min()} to {given.max()}."
        )
    return np.rint(255 * given.astype(np.float64)).astype(np.uint8)


def _central(image: NDArray[Any]) -> NDArray[Any]:
    height, width = image.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return image[top : top + side, left : left + side]


def _nearest(labels: NDArray[np.int64], size_px: int | None) -> NDArray[np.int64]:
    size = len(labels) if size_px is None else size_px
    rows = ((np.arange(size) + 0.5) * len(labels) / size).astype(np.int64)
    return labels[np.ix_(rows, rows)]
