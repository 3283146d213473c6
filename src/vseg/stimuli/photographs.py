"""Photographs: read image files, crop them, the sample images of scikit-image, and BSDS500."""

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
"""Images that are included in scikit-image and need no download."""
MAX_PIXELS = 80_000_000  # of a file; a few kilobytes can unpack to gigabytes


def crop_square(image: ArrayLike, size_px: int) -> NDArray[np.uint8]:
    """Crop the central square of an image and resize it, with anti-aliasing.

    Parameters
    ----------
    image : array_like, shape (H, W), (H, W, 3) or (H, W, 4)
        uint8, bool, or floats from 0 to 1; transparency is dropped.
    size_px : int
        Side of the result.

    Returns
    -------
    NDArray of uint8
        The square image, (size_px, size_px) or (size_px, size_px, 3).

    Examples
    --------
    >>> crop_square(np.zeros((20, 30, 3), np.uint8), 16).shape
    (16, 16, 3)
    """
    from skimage.transform import resize

    if size_px < 1:
        raise InvalidInput(f"Expected a side of at least 1 px, got {size_px}.")
    crop = _crop_centre(_to_uint8(image))
    if crop.shape[0] == size_px:
        return np.ascontiguousarray(crop)
    resized = resize(crop / 255, (size_px, size_px), anti_aliasing=size_px < crop.shape[0])
    return np.rint(255 * np.clip(resized, 0, 1)).astype(np.uint8)


def load_sample(name: str, size_px: int = 512) -> NDArray[np.uint8]:
    """Return one of the images in SAMPLES, cropped to a square.

    Parameters
    ----------
    name : str
        One of SAMPLES.
    size_px : int
        Side of the image.

    Returns
    -------
    NDArray of uint8
        The image, (size_px, size_px) or (size_px, size_px, 3).

    Examples
    --------
    >>> load_sample("chelsea", 64).shape
    (64, 64, 3)
    """
    if name not in SAMPLES:
        raise InvalidInput(f"Unknown sample {name!r}; expected one of {', '.join(SAMPLES)}.")
    import skimage.data

    return crop_square(getattr(skimage.data, name)(), size_px)


def read_image(path: str | Path) -> NDArray[np.uint8]:
    """Read an image file as an array (H, W) or (H, W, 3), rotated as its EXIF data say.

    Parameters
    ----------
    path : str or Path
        The image file.

    Returns
    -------
    NDArray of uint8
        The image.

    Examples
    --------
    >>> image = crop_square(read_image("holiday.jpg"), 512)  # doctest: +SKIP
    """
    from PIL import Image, ImageOps

    if not Path(path).is_file():
        raise NotFound(f"No image at {path}; expected a file such as a PNG or JPEG.")
    # The errors that Pillow raises for an invalid file.
    invalid = (OSError, SyntaxError, ValueError, OverflowError, MemoryError, struct.error, zlib.error)
    bombs = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        with Image.open(path) as file:
            if file.width * file.height > MAX_PIXELS:
                raise Image.DecompressionBombError(f"{file.width}x{file.height} pixels")
            upright = ImageOps.exif_transpose(file)
            if upright.mode.startswith("I;16"):
                return (np.asarray(upright) >> 8).astype(np.uint8)
            return np.asarray(upright if upright.mode == "L" else upright.convert("RGB"))
    except bombs as error:
        raise InvalidInput(
            f"{path} cannot be read as an image: at most {MAX_PIXELS // 10**6} million pixels are read ({error}); "
            "make it smaller first."
        ) from error
    except invalid as error:
        raise InvalidInput(f"{path} cannot be read as an image ({error}).") from error


@dataclass(frozen=True)
class Bsds:
    """A folder of BSDS500: photographs with the segmentations of several annotators.

    Photographs (.jpg) and segmentations (.mat) are in the same folder, or in the official folders
    images/{train,val,test} and groundTruth/{train,val,test}, at any depth. Everything is cropped to the central square.

    Parameters
    ----------
    folder : str or Path

    Examples
    --------
    >>> bsds = Bsds("BSDS500/data")                      # doctest: +SKIP
    >>> image = bsds.image("112082", 512)                # doctest: +SKIP
    >>> truth = bsds.annotator_maps("112082", Grid(16))  # doctest: +SKIP
    """

    folder: Path

    def __init__(self, folder: str | Path):
        object.__setattr__(self, "folder", Path(folder))
        if not self.folder.is_dir():
            raise NotFound(f"No folder {folder}; expected one with the .jpg and .mat files of BSDS500.")
        if not self._files:
            raise NotFound(
                f"{folder} holds no .jpg with its .mat; expected them in the same folder, or in the folders "
                "images and groundTruth."
            )

    @property
    def ids(self) -> list[str]:
        """The names of the photographs, sorted."""
        return list(self._files)

    def image(self, name: str, size_px: int | None = None) -> NDArray[np.uint8]:
        """Return the central square of a photograph, resized to `size_px` if that is given."""
        photograph = read_image(self._paths(name)[0])
        return crop_square(photograph, min(photograph.shape[:2]) if size_px is None else size_px)

    def labels(self, name: str, size_px: int | None = None) -> list[NDArray[np.int64]]:
        """Return the label image of each annotator, cropped to the same square as `image`."""
        return [
            _resize_nearest(_crop_centre(labels), size_px)
            for labels in _read_segmentations(self._paths(name)[1])
        ]

    def annotator_maps(self, name: str, layout: Layout) -> list[Maps]:
        """Return the one-hot maps of each annotator: the labels at the locations, renumbered 0..K-1."""
        at_locations = [sample_labels(labels, layout) for labels in self.labels(name)]
        return [Maps.one_hot(layout, np.unique(labels, return_inverse=True)[1]) for labels in at_locations]

    @cached_property
    def _files(self) -> Mapping[str, tuple[Path, Path]]:
        files = [(path, _find_segmentations(path)) for path in sorted(self.folder.rglob("*.jpg"))]
        by_name = {path.stem: (path, mat) for path, mat in files if mat is not None}
        return dict(sorted(by_name.items()))

    def _paths(self, name: str) -> tuple[Path, Path]:
        if name not in self._files:
            some = ", ".join(self.ids[:5])
            raise NotFound(f"{self.folder} has no photograph {name!r}; it has {len(self.ids)}: {some}….")
        return self._files[name]


def _find_segmentations(path: Path) -> Path | None:
    """Return the .mat file of a photograph: in the same folder, or in groundTruth/… for images/…."""
    folders = ["groundTruth" if part == "images" else part for part in path.parts]
    candidates = [path.with_suffix(".mat"), Path(*folders).with_suffix(".mat")]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _read_segmentations(path: Path) -> list[NDArray[np.int64]]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        annotators = loadmat(path)["groundTruth"][0]
        return [annotator["Segmentation"][0, 0].astype(np.int64) for annotator in annotators]
    except (MatReadError, KeyError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        raise InvalidInput(f"{path} is not a segmentation file of BSDS500 ({error}).") from error


def _to_uint8(image: ArrayLike) -> NDArray[np.uint8]:
    pixels = np.asarray(image)
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (3, 4)) or not pixels.size:
        raise InvalidInput(f"Expected an image of shape (H, W), (H, W, 3) or (H, W, 4), got {pixels.shape}.")
    if pixels.ndim == 3:
        pixels = pixels[:, :, :3]
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype.kind not in "fb" or not ((pixels >= 0) & (pixels <= 1)).all():
        raise InvalidInput(
            "Expected an image of uint8, or of floats from 0 to 1, got "
            f"{pixels.dtype} from {pixels.min()} to {pixels.max()}."
        )
    return np.rint(255 * pixels.astype(np.float64)).astype(np.uint8)


def _crop_centre(image: NDArray[Any]) -> NDArray[Any]:
    height, width = image.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return image[top : top + side, left : left + side]


def _resize_nearest(labels: NDArray[np.int64], size_px: int | None) -> NDArray[np.int64]:
    size = len(labels) if size_px is None else size_px
    rows = ((np.arange(size) + 0.5) * len(labels) / size).astype(np.int64)
    return labels[np.ix_(rows, rows)]
