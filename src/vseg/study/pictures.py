"""The pictures of a study as they are shown: PNG files, and the truth of those that vseg generated."""

import hashlib
import io
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vseg import stimuli
from vseg.data.layout import Grid, Layout
from vseg.data.maps import Maps
from vseg.errors import InvalidInput, NotFound
from vseg.study.schema import Image, Study

PRACTICE = "practice"
PRACTICE_PX = 512
GENERATED_PX = 512
SHARPEST_PX = 1024  # a side; larger files are reduced, since nobody sees more and everybody downloads it
SMALLEST_CELL_PX = 4
COLOUR_CELLS = 64  # a side, of an image of colour patches
CLEAR = 0.03  # of the image's side: so far from a border, a location's colour is beyond doubt

# Light blue, yellow, dark grey: told apart with any kind of colour vision, and red dots stand out from each.
PRACTICE_COLOURS = np.array([[115, 178, 242], [250, 230, 115], [77, 77, 77]], np.uint8)


@dataclass(frozen=True, eq=False)
class Shown:
    """One picture: its PNG file, its size, and what is true of it where that is known."""

    name: str
    png: bytes
    sha256: str
    width_px: int
    height_px: int
    truth: Maps | None


def shown(study: Study, folder: str | Path) -> dict[str, Shown]:
    """Every picture of a study by its name; files are looked for from `folder`, the study file's.

    With practice or catch trials there is one more, called "practice": coloured areas whose truth is known.

    Examples
    --------
    >>> from vseg.study.schema import parsed
    >>> study = parsed('''
    ... name = "cat"
    ... segments = 3
    ... participants = 10
    ... layout = {grid = 16}
    ... images = [{name = "cat", sample = "chelsea"}]
    ... ''')
    >>> list(shown(study, "."))
    ['cat', 'practice']
    """
    layout = study.layout.build()
    pictures = {image.name: _shown(study, image, layout, Path(folder)) for image in study.images}
    if study.practice.trials or study.catch.per_block:
        labels, _ = practice_labels(layout)
        truth = Maps.one_hot(layout, labels, len(PRACTICE_COLOURS))
        pictures[PRACTICE] = _as_png(PRACTICE, _practice_picture(layout), truth)
    return pictures


def _shown(study: Study, image: Image, layout: Layout, folder: Path) -> Shown:
    pixels, truth = _drawn(study, image, layout, folder)
    height, width = pixels.shape[:2]
    closest = _closest_px(layout, width, height)
    if closest < SMALLEST_CELL_PX:
        raise InvalidInput(
            f"Study {study.name}: image {image.name!r} has {width}x{height} px, so that locations of {layout} "
            f"lie {closest:.1f} px apart; {SMALLEST_CELL_PX} px are needed: take a larger image or fewer locations."
        )
    return _as_png(image.name, pixels, truth)


def _drawn(study: Study, image: Image, layout: Layout, folder: Path) -> tuple[NDArray[np.uint8], Maps | None]:
    """The pixels of an image, and its truth if vseg makes it."""
    if image.file is not None:
        return _from_file(study, image, folder / image.file), None
    if image.sample is not None:
        if image.sample not in stimuli.SAMPLES:
            raise InvalidInput(
                f"Study {study.name}: image {image.name!r} asks for the sample {image.sample!r}; "
                f"there are {', '.join(stimuli.SAMPLES)}."
            )
        return stimuli.sample(image.sample, GENERATED_PX), None
    if image.texture is not None:
        texture = stimuli.composite(
            preset=stimuli.PRESETS[image.texture], size_px=GENERATED_PX, seed=image.seed
        )
        return texture.image, texture.truth_maps(layout)
    assert image.colours is not None
    areas = stimuli.random_maps(Grid(COLOUR_CELLS), segments=image.colours, entropy=0, seed=image.seed)
    colours = stimuli.colour_image(areas, seed=image.seed + 1)
    cell = layout.pixels(COLOUR_CELLS, COLOUR_CELLS).astype(np.int64).clip(0, COLOUR_CELLS - 1)
    labels = colours.labels.reshape(COLOUR_CELLS, COLOUR_CELLS)[cell[:, 1], cell[:, 0]]
    return colours.rendered(GENERATED_PX), Maps.one_hot(layout, labels, image.colours)


def _from_file(study: Study, image: Image, path: Path) -> NDArray[np.uint8]:
    from PIL import Image as Picture

    if not path.is_file():
        raise NotFound(
            f"Study {study.name}: there is no file {path} for image {image.name!r}; "
            "paths count from the folder of the study file."
        )
    try:
        pixels = stimuli.read(path)
    except (InvalidInput, Picture.DecompressionBombError, SyntaxError, ValueError, struct.error) as error:
        raise InvalidInput(
            f"Study {study.name}: {path} cannot be read as a picture; expected a PNG or JPEG file."
        ) from error
    sharpest = max(SHARPEST_PX, study.display.width_px)
    if image.square:
        return stimuli.square(pixels, min(*pixels.shape[:2], sharpest))
    height, width = pixels.shape[:2]
    scale = min(1.0, sharpest / max(width, height))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return (
        pixels
        if scale == 1
        else np.asarray(Picture.fromarray(pixels).resize(size, Picture.Resampling.LANCZOS))
    )


def _closest_px(layout: Layout, width: int, height: int) -> float:
    """The distance between the two closest locations."""
    centres = layout.pixels(width, height)
    if isinstance(layout, Grid):  # without scipy.spatial or numpy.ma, a fifth of a server's start
        return min(float(np.diff(sorted(set(axis.tolist()))).min()) for axis in centres.T)
    from scipy.spatial import cKDTree

    return float(cKDTree(centres).query(centres, k=2)[0][:, 1].min())


def _as_png(name: str, pixels: NDArray[np.uint8], truth: Maps | None) -> Shown:
    from PIL import Image as Picture

    file = io.BytesIO()
    Picture.fromarray(pixels).save(file, "PNG")
    png = file.getvalue()
    return Shown(name, png, hashlib.sha256(png).hexdigest(), pixels.shape[1], pixels.shape[0], truth)


# ── the practice picture: nine cells around random centres, three of each colour ──


@lru_cache(maxsize=16)
def practice_labels(layout: Layout) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(n,) the colour at each location, and (n,) whether it lies clear of any border."""
    labels, margin = _labels_and_margin(layout, _practice_centres(layout))
    return labels, margin >= CLEAR


def _practice_picture(layout: Layout) -> NDArray[np.uint8]:
    y, x = np.mgrid[:PRACTICE_PX, :PRACTICE_PX] + 0.5
    where = np.stack([x.ravel(), y.ravel()], axis=1) / PRACTICE_PX
    distance = np.linalg.norm(where[:, None] - _practice_centres(layout), axis=2)
    labels = distance.argmin(axis=1) // 3
    return PRACTICE_COLOURS[labels].reshape(PRACTICE_PX, PRACTICE_PX, 3)


@lru_cache(maxsize=16)
def _practice_centres(layout: Layout) -> NDArray[np.float64]:
    """(9, 2) centres, three a colour: the first draw in which both answers occur clear of the borders."""
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        columns_rows = np.stack(np.divmod(np.arange(9), 3), axis=1)
        centres = rng.permutation((columns_rows + rng.uniform(0.15, 0.85, (9, 2))) / 3)
        labels, margin = _labels_and_margin(layout, centres)
        counts = np.bincount(labels[margin >= CLEAR], minlength=3)
        if counts.max() >= 2 and (counts > 0).sum() >= 2:
            break
    return centres


def _labels_and_margin(
    layout: Layout, centres: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(n,) the colour of each location and its distance from the nearest other colour."""
    distance = np.linalg.norm(layout.positions[:, None] - centres, axis=2)
    by_colour = np.sort(distance.reshape(-1, 3, 3).min(axis=2), axis=1)
    return distance.argmin(axis=1) // 3, (by_colour[:, 1] - by_colour[:, 0]) / 2
