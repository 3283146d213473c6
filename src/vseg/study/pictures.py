"""The pictures of a study: its images as PNG files, with the true maps of generated ones."""

import hashlib
import io
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vseg import stimuli
from vseg.data.layout import Grid, Layout, find_nearest
from vseg.data.maps import Maps
from vseg.errors import InvalidInput, NotFound
from vseg.study.schema import Study, parse_study, read_study_text
from vseg.study.sections import PRACTICE_IMAGE, ImageSection, TextureSection

PRACTICE_PX = 512
GENERATED_PX = 512
SHARPEST_PX = 1024  # side; larger files are reduced, since participants download them and see no more detail
SMALLEST_SPACING_PX = 4  # between two locations
COLOUR_CELLS = 64  # per side of an image of colour patches
TRUTH_GRID = Grid(256)  # on which the segments of generated images are compared with drawn contours
SAME_SEGMENTS = 0.95  # share of locations with the stored label from which segments count as generated again
CLEAR_MARGIN = 0.03  # fraction of the side; locations this far from any border have an unmistakable colour

# Light blue, yellow, dark grey: distinguishable with any kind of colour vision, and red dots stand out on each.
PRACTICE_COLOURS = np.array([[115, 178, 242], [250, 230, 115], [77, 77, 77]], np.uint8)


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture: its PNG file, its size, and its true maps if vseg generated it."""

    name: str
    png: bytes
    sha256: str
    width_px: int
    height_px: int
    truth: Maps | None


def render_pictures(
    study: Study, folder: str | Path, *, before_each: Callable[[], None] = lambda: None
) -> dict[str, Picture]:
    """Render every picture of a study.

    With practice or catch trials there is an additional picture called "practice": coloured areas with known maps.

    Parameters
    ----------
    study : Study
    folder : str or Path
        The folder of the study file, to which the paths of image files are relative.
    before_each : callable
        Called before each picture, which takes up to half a second; it may raise to give up.

    Returns
    -------
    dict of str to Picture
        The pictures by name.

    Examples
    --------
    >>> from vseg.study.schema import parse_study
    >>> study = parse_study('''
    ... name = "cat"
    ... segments = 3
    ... participants = 10
    ... layout = {grid = 16}
    ... images = [{name = "cat", sample = "chelsea"}]
    ... ''')
    >>> list(render_pictures(study, "."))
    ['cat', 'practice']
    """
    layout = study.layout.build()
    _check_files(study, Path(folder))
    pictures = {}
    for image in study.images:
        before_each()
        pictures[image.name] = _render_picture(study, image, layout, Path(folder))
    if study.practice.trials or study.catch.per_block:
        labels, _ = practice_labels(layout)
        truth = Maps.one_hot(layout, labels, len(PRACTICE_COLOURS))
        pictures[PRACTICE_IMAGE] = _encode_png(PRACTICE_IMAGE, _draw_practice_image(layout), truth)
    return pictures


def refine_truth(study: Study, image: str, truth: Maps | None) -> Maps | None:
    """Return the true maps of an image as finely as they are known, to compare contours with.

    A generated image is generated again. If its segments are not those of `truth`, as after a change of the
    generator, and for all other images, `truth` is returned as it is.

    Parameters
    ----------
    study : Study
    image : str
        The name of an image.
    truth : Maps or None
        The known maps on the study's locations.
    """
    section = next((each for each in study.images if each.name == image), None)
    if truth is None or section is None or (section.texture is None and section.colours is None):
        return truth
    fine = _make_pixels(study, section, TRUTH_GRID, Path())[1]
    assert fine is not None
    agree = fine.labels[find_nearest(TRUTH_GRID, truth.layout.positions)] == truth.labels
    return fine if agree.mean() >= SAME_SEGMENTS else truth


def load_study_with_pictures(path: str | Path) -> tuple[str, Study, dict[str, Picture]]:
    """Read a study file; return its text, the study, and its rendered pictures."""
    text = read_study_text(path)
    study = parse_study(text, str(path))
    return text, study, render_pictures(study, Path(path).parent)


def _check_files(study: Study, folder: Path) -> None:
    missing = [
        image for image in study.images if image.file is not None and not (folder / image.file).is_file()
    ]
    if len(missing) == 1:
        raise NotFound(
            f"Study {study.name}: there is no file {folder / str(missing[0].file)} for image {missing[0].name!r}; "
            "paths are relative to the folder of the study file."
        )
    if missing:
        raise NotFound(
            f"Study {study.name}: {len(missing)} image files are missing, from {folder / str(missing[0].file)} to "
            f"{folder / str(missing[-1].file)}; put your images there, or change the paths in the study file."
        )


def _render_picture(study: Study, image: ImageSection, layout: Layout, folder: Path) -> Picture:
    pixels, truth = _make_pixels(study, image, layout, folder)
    height, width = pixels.shape[:2]
    spacing = _smallest_spacing_px(layout, width, height)
    if spacing < SMALLEST_SPACING_PX:
        raise InvalidInput(
            f"Study {study.name}: image {image.name!r} has {width}x{height} px, so that locations of {layout} "
            f"lie {spacing:.1f} px apart; {SMALLEST_SPACING_PX} px are needed: use a larger image or fewer locations."
        )
    return _encode_png(image.name, pixels, truth)


def _make_pixels(
    study: Study, image: ImageSection, layout: Layout, folder: Path
) -> tuple[NDArray[np.uint8], Maps | None]:
    """Return the pixels of an image, and its true maps if vseg generates it."""
    if image.file is not None:
        return _read_image_file(study, image, folder / image.file), None
    if image.sample is not None:
        if image.sample not in stimuli.SAMPLES:
            raise InvalidInput(
                f"Study {study.name}: image {image.name!r} has the unknown sample {image.sample!r}; "
                f"expected one of {', '.join(stimuli.SAMPLES)}."
            )
        return stimuli.load_sample(image.sample, GENERATED_PX), None
    if image.texture is not None:
        texture = _draw_texture(study, image)
        return texture.image, texture.truth_maps(layout)
    assert image.colours is not None
    areas = stimuli.random_maps(Grid(COLOUR_CELLS), segments=image.colours, entropy=0, seed=image.seed)
    colours = stimuli.colour_image(areas, seed=image.seed + 1)
    cell = layout.pixels(COLOUR_CELLS, COLOUR_CELLS).astype(np.int64).clip(0, COLOUR_CELLS - 1)
    labels = colours.labels.reshape(COLOUR_CELLS, COLOUR_CELLS)[cell[:, 1], cell[:, 0]]
    return colours.render(GENERATED_PX), Maps.one_hot(layout, labels, image.colours)


def get_texture(image: ImageSection) -> stimuli.Texture:
    """Return the parameters of an image's texture: those of its preset, with the changes of the study file."""
    given = image.texture
    settings = given if isinstance(given, TextureSection) else TextureSection(preset=given or "low")
    changes = settings.model_dump(exclude={"preset"}, exclude_none=True)
    return replace(stimuli.PRESETS[settings.preset], **changes)


def _draw_texture(study: Study, image: ImageSection) -> stimuli.TextureImage:
    """Draw a texture for the width in degrees at which the study shows it."""
    size_px = min(max(GENERATED_PX, study.display.width_px), SHARPEST_PX)
    try:
        return stimuli.composite(
            preset=get_texture(image),
            size_px=size_px,
            width_deg=study.display.width_deg,
            seed=image.seed,
        )
    except InvalidInput as error:
        raise InvalidInput(
            f"Study {study.name}: image {image.name!r} cannot be drawn with {size_px} px over "
            f"{study.display.width_deg:g} degrees (display.width_deg): {error}"
        ) from error


def _read_image_file(study: Study, image: ImageSection, path: Path) -> NDArray[np.uint8]:
    from PIL import Image

    try:
        pixels = stimuli.read_image(path)
    except (InvalidInput, Image.DecompressionBombError, SyntaxError, ValueError, struct.error) as error:
        raise InvalidInput(
            f"Study {study.name}: {path} cannot be read as an image; expected a PNG or JPEG file."
        ) from error
    sharpest = max(SHARPEST_PX, study.display.width_px)
    if image.square:
        return stimuli.crop_square(pixels, min(*pixels.shape[:2], sharpest))
    height, width = pixels.shape[:2]
    scale = min(1.0, sharpest / max(width, height))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return (
        pixels if scale == 1 else np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS))
    )


def _smallest_spacing_px(layout: Layout, width: int, height: int) -> float:
    """Return the distance between the two closest locations."""
    centres = layout.pixels(width, height)
    if isinstance(layout, Grid):  # importing scipy.spatial would take a fifth of a server's start
        return min(float(np.diff(sorted(set(axis.tolist()))).min()) for axis in centres.T)
    from scipy.spatial import cKDTree

    return float(cKDTree(centres).query(centres, k=2)[0][:, 1].min())


def _encode_png(name: str, pixels: NDArray[np.uint8], truth: Maps | None) -> Picture:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    png = file.getvalue()
    return Picture(name, png, hashlib.sha256(png).hexdigest(), pixels.shape[1], pixels.shape[0], truth)


# ── the practice image: nine cells around random centres, three of each colour ──


@lru_cache(maxsize=16)
def practice_labels(layout: Layout) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return (n,) the colour label of each location in the practice image, and (n,) whether it is far from borders."""
    labels, margin = _measure_margins(layout, _practice_centres(layout))
    return labels, margin >= CLEAR_MARGIN


def _draw_practice_image(layout: Layout) -> NDArray[np.uint8]:
    y, x = np.mgrid[:PRACTICE_PX, :PRACTICE_PX] + 0.5
    positions = np.stack([x.ravel(), y.ravel()], axis=1) / PRACTICE_PX
    distance = np.linalg.norm(positions[:, None] - _practice_centres(layout), axis=2)
    labels = distance.argmin(axis=1) // 3
    return PRACTICE_COLOURS[labels].reshape(PRACTICE_PX, PRACTICE_PX, 3)


@lru_cache(maxsize=16)
def _practice_centres(layout: Layout) -> NDArray[np.float64]:
    """Return (9, 2) centres, three per colour: the first draw in which both answers occur away from borders."""
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        columns_rows = np.stack(np.divmod(np.arange(9), 3), axis=1)
        centres = rng.permutation((columns_rows + rng.uniform(0.15, 0.85, (9, 2))) / 3)
        labels, margin = _measure_margins(layout, centres)
        counts = np.bincount(labels[margin >= CLEAR_MARGIN], minlength=3)
        if counts.max() >= 2 and (counts > 0).sum() >= 2:
            break
    return centres


def _measure_margins(
    layout: Layout, centres: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return (n,) the colour label of each location, and (n,) its distance from the nearest other colour."""
    distance = np.linalg.norm(layout.positions[:, None] - centres, axis=2)
    by_colour = np.sort(distance.reshape(-1, 3, 3).min(axis=2), axis=1)
    return distance.argmin(axis=1) // 3, (by_colour[:, 1] - by_colour[:, 0]) / 2
