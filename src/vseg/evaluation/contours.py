"""Drawn contours against maps, and against each other: precision, recall and boundary F (S5, Arbeláez et al. 2011)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg._support.seeds import Seed, check_seed
from vseg.data.contours import Contours
from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.errors import InvalidInput
from vseg.evaluation.metrics import (
    BSDS_TOLERANCE,
    RENDERED_PX,
    BoundaryScores,
    boundary_scores,
    find_boundaries,
)

MAX_PAIRS = 5000  # of people who drew on one image: about 15 s


class PairAgreement(NamedTuple):
    """The F of two participants' contours on one image."""

    image: str
    participant: str
    other: str
    f: float


@dataclass(frozen=True)
class Quartiles:
    """The median and the quartiles of some values, and how many there are; NaN if there are none."""

    count: int
    lower: float
    median: float
    upper: float

    def __str__(self) -> str:
        return f"{self.median:.2f} (quartiles {self.lower:.2f} to {self.upper:.2f})"


def summarise_quartiles(values: Sequence[float] | NDArray[np.float64]) -> Quartiles:
    """Return the median and the quartiles of some values.

    Examples
    --------
    >>> summarise_quartiles([0.5, 0.7, 0.8, 0.9, 1.0])
    Quartiles(count=5, lower=0.7, median=0.8, upper=0.9)
    """
    if not len(values):
        return Quartiles(0, np.nan, np.nan, np.nan)
    return Quartiles(len(values), *np.quantile(np.asarray(values, np.float64), [0.25, 0.5, 0.75]).tolist())


def spacing_tolerance(layout: Layout, contours: Contours, tolerance: float = BSDS_TOLERANCE) -> float:
    """Return the tolerance for the boundaries of maps: not less than the distance between neighbouring locations.

    Maps do not say where between two locations a boundary runs.

    Parameters
    ----------
    layout : Layout
        The locations of the maps.
    contours : Contours
        The drawing, for the size of its image.
    tolerance : float
        The smallest tolerance, as a fraction of the image's diagonal.

    Returns
    -------
    float
        As a fraction of the image's diagonal.

    Examples
    --------
    >>> from vseg import Grid
    >>> drawing = Contours([[[0, 0], [512, 512]]], width_px=512, height_px=512)
    >>> round(spacing_tolerance(Grid(11), drawing), 4), spacing_tolerance(Grid(128), drawing)
    (0.0643, 0.0075)
    """
    width, height = contours.width_px, contours.height_px
    spacing_px = np.sqrt(width * height / len(layout))
    return max(tolerance, float(spacing_px / np.hypot(width, height)))


def score_contours_on_maps(
    contours: Contours, maps: Maps, *, tolerance: float = BSDS_TOLERANCE, resolution_px: int = RENDERED_PX
) -> BoundaryScores:
    """Return precision, recall and F of drawn contours against the boundaries of a segmentation.

    Lines and boundaries are rasterised, one pixel wide, and matched one to one as in `vseg.metrics.boundary_scores`.
    The boundaries are those between the most probable segments of the maps, interpolated to the same resolution.

    Parameters
    ----------
    contours : Contours
        The drawing.
    maps : Maps
        The truth, or the maps fitted to the participant's answers.
    tolerance : float
        Largest distance of a match, as a fraction of the image's diagonal; `spacing_tolerance` finds one for maps on
        few locations.
    resolution_px : int
        The longer side of the raster.

    Returns
    -------
    BoundaryScores
        Precision, the share of the drawing near a boundary; recall, the share of the boundaries near the drawing; F,
        their harmonic mean.

    Examples
    --------
    >>> from vseg import Grid
    >>> halves = Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)
    >>> score_contours_on_maps(Contours([[[0, 50], [50, 50]]], width_px=100, height_px=100), halves)
    BoundaryScores(precision=1.0, recall=0.5, f=0.6666666666666666)
    """
    size = _raster_size(contours, resolution_px)
    borders = find_boundaries(maps.render(*size).argmax(axis=2))
    return boundary_scores(contours.rasterise(*size), borders, tolerance=tolerance)


def compare_contours(
    contours: Sequence[Contours],
    *,
    tolerance: float = BSDS_TOLERANCE,
    resolution_px: int = RENDERED_PX,
    max_pairs: int = MAX_PAIRS,
    seed: Seed,
) -> list[PairAgreement]:
    """Return the F of every two participants who drew on the same image.

    F does not depend on which of the two is taken as the truth. Drawings that report other proportions of the image are
    not compared: a page may report anything.

    Parameters
    ----------
    contours : sequence of Contours
        The drawings, about one image or several.
    tolerance : float
        Largest distance of a match, as a fraction of the image's diagonal.
    resolution_px : int
        The longer side of the raster.
    max_pairs : int
        If an image has more pairs than this, so many of them are drawn at random.
    seed : int, SeedSequence or Generator
        Seed of that draw.

    Returns
    -------
    list of PairAgreement
        In the order of the drawings.

    Examples
    --------
    >>> drawings = [Contours([[[0, y], [9, y]]], 9, 9, participant=f"P{y}", image="a") for y in (3, 3.05, 8)]
    >>> [(pair.participant, pair.other, pair.f) for pair in compare_contours(drawings, seed=0)]
    [('P3', 'P3.05', 1.0), ('P3', 'P8', 0.0), ('P3.05', 'P8', 0.0)]
    """
    rng = np.random.default_rng(check_seed(seed))
    by_image: dict[str, list[Contours]] = {}
    for drawing in contours:
        by_image.setdefault(drawing.image, []).append(drawing)
    found: list[PairAgreement] = []
    for image, drawings in by_image.items():
        masks = [drawing.rasterise(*_raster_size(drawing, resolution_px)) for drawing in drawings]
        pairs = [
            (one, other)
            for one, other in combinations(range(len(drawings)), 2)
            if drawings[one].participant != drawings[other].participant
            and masks[one].shape == masks[other].shape
        ]
        if len(pairs) > max_pairs:
            pairs = [pairs[at] for at in sorted(rng.choice(len(pairs), max_pairs, replace=False))]
        for one, other in pairs:
            f = boundary_scores(masks[one], masks[other], tolerance=tolerance).f
            found.append(PairAgreement(image, drawings[one].participant, drawings[other].participant, f))
    return found


def _raster_size(contours: Contours, resolution_px: int) -> tuple[int, int]:
    """Return width and height of the raster of an image, whose longer side has `resolution_px`."""
    if (
        isinstance(resolution_px, bool)
        or not isinstance(resolution_px, (int, np.integer))
        or resolution_px < 8
    ):
        raise InvalidInput(f"Expected a resolution of at least 8 whole pixels, got {resolution_px!r}.")
    longest = max(contours.width_px, contours.height_px)
    width, height = (
        round(side * resolution_px / longest) for side in (contours.width_px, contours.height_px)
    )
    return max(width, 1), max(height, 1)
