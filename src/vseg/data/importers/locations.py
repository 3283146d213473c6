"""From where the dots were to locations: snapped to a layout that is known, or making one."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.data.importers.trials import ImportedTrial
from vseg.data.layout import Grid, Layout, Scatter
from vseg.errors import InvalidInput, NotFound

APART = 1e-6  # fractions of the image: dots closer than this are one location
FARTHEST = 0.5  # of the way to the next location
MOST_LOCATIONS = 4096

Size = tuple[float, float]


@dataclass(frozen=True)
class DotLocations:
    """The two locations of every trial, the dots in pixels where that is known, and what there is to say of it."""

    layout: Layout
    i: NDArray[np.int64]
    j: NDArray[np.int64]
    dots_px: NDArray[np.float64] | None
    remarks: list[str]


def locate_dots(
    trials: Sequence[ImportedTrial],
    layout: Layout | None,
    *,
    units: str | None = None,
    count_from: int = 0,
    sizes: Mapping[str, Size] | None = None,
) -> DotLocations:
    """Locations for all trials.

    Parameters
    ----------
    units : px or fraction; fraction if nothing is said and no coordinate is above 1
    count_from : the number of the first location in the file, 0 or 1
    sizes : width and height of each image in pixels, where a row itself does not say it
    """
    size = _sizes(trials, sizes or {})
    if trials[0].dots is None:
        return _numbered(trials, layout, count_from, size)
    dots = np.array([trial.dots for trial in trials], np.float64)
    remarks = []
    if units is None:
        units = "fraction" if dots.min() >= 0 and dots.max() <= 1 else "px"
        if units == "fraction":
            remarks.append(
                "All coordinates are from 0 to 1: taken as fractions of the image's width and height."
            )
    if units == "px":
        _check_sizes(trials, size)
    scale = np.tile(size, 2)
    at = dots / scale if units == "px" else dots
    _check_inside(trials, dots, at, size, units)
    spots = at.reshape(-1, 2)
    if layout is None:
        layout, where = _made(spots)
        remarks.append(_about_made(layout))
    else:
        where, farthest = _snapped(trials, layout, spots, size, units)
        remarks.append(farthest)
    i, j = where.reshape(-1, 2).T
    _check_pairs(trials, layout, i, j)
    px = None if np.isnan(scale).any() else at * scale
    return DotLocations(layout, i, j, px, remarks)


def _sizes(trials: Sequence[ImportedTrial], sizes: Mapping[str, Size]) -> NDArray[np.float64]:
    """(m, 2) the image's size in each trial, NaN where it is not known."""
    unknown = (np.nan, np.nan)
    return np.array([trial.size or sizes.get(trial.image, unknown) for trial in trials], np.float64)


def _numbered(
    trials: Sequence[ImportedTrial], layout: Layout | None, count_from: int, size: NDArray[np.float64]
) -> DotLocations:
    if layout is None:
        raise InvalidInput(
            "The dots are given as numbers of locations: say where these are, with --grid N or --points FILE."
        )
    pairs = np.array([trial.pair for trial in trials], np.int64) - count_from
    n = len(layout)
    outside = ((pairs < 0) | (pairs >= n)).any(axis=1)
    if outside.any():
        at = int(np.argmax(outside))
        from_one = pairs.min() == 1 and pairs.max() == n
        advice = "pass --count-from 1" if from_one else "give the --grid or the --points that were used"
        raise InvalidInput(
            f"{trials[at].row.where}: locations {_joined(pairs[at] + count_from)}, but {layout} has "
            f"{count_from}..{n - 1 + count_from}; {advice}."
        )
    _check_pairs(trials, layout, pairs[:, 0], pairs[:, 1])
    px = (
        None
        if np.isnan(size).any()
        else np.hstack([layout.positions[pairs[:, end]] * size for end in (0, 1)])
    )
    return DotLocations(layout, pairs[:, 0], pairs[:, 1], px, [])


def _joined(values: Any) -> str:
    return " and ".join(f"{value:g}" for value in values)


def _check_sizes(trials: Sequence[ImportedTrial], size: NDArray[np.float64]) -> None:
    unknown = np.isnan(size).any(axis=1)
    if unknown.any():
        at = int(np.argmax(unknown))
        raise InvalidInput(
            f"{trials[at].row.where}: the dots are in pixels, but how large the image {trials[at].image!r} is was "
            "not said; pass --image-size WIDTHxHEIGHT or --images FOLDER, or map image_width and image_height."
        )


def _check_inside(
    trials: Sequence[ImportedTrial],
    dots: NDArray[np.float64],
    at: NDArray[np.float64],
    size: NDArray[np.float64],
    units: str,
) -> None:
    outside = ((at < 0) | (at > 1)).any(axis=1)
    if outside.any():
        row = int(np.argmax(outside))
        image = "{:g}x{:g} px".format(*size[row]) if units == "px" else "width and height 1"
        raise InvalidInput(
            f"{trials[row].row.where}: the dots {_spots(dots[row])} do not both lie in an image of {image}; "
            "coordinates count from its top left corner, x to the right and y down."
        )


def _spots(dots: NDArray[np.float64]) -> str:
    return "({:g}, {:g}) and ({:g}, {:g})".format(*dots)


def _snapped(
    trials: Sequence[ImportedTrial],
    layout: Layout,
    spots: NDArray[np.float64],
    size: NDArray[np.float64],
    units: str,
) -> tuple[NDArray[np.int64], str]:
    """The nearest location of each dot, none farther off than half the way to the next location."""
    from scipy.spatial import cKDTree

    tree = cKDTree(layout.positions)
    off, where = tree.query(spots)
    spacing = tree.query(layout.positions, k=2)[0][:, 1]
    share = off / spacing[where]
    worst = int(np.argmax(share))
    each = np.repeat(size, 2, axis=0)
    off_px = float(np.linalg.norm((spots[worst] - layout.positions[where[worst]]) * each[worst]))
    how_far = f"{share[worst]:.2f} of the way to the next location" + (
        "" if np.isnan(off_px) else f", {off_px:.1f} px"
    )
    if share[worst] > FARTHEST + APART:
        trial = trials[worst // 2]
        assert trial.dots is not None
        raise InvalidInput(
            f"{trial.row.where}: the dots {_spots(np.array(trial.dots))} are not those of {layout}: one lies "
            f"{how_far}, from the nearest; half is the most. Give the --grid or --points that were used and "
            "the right --image-size, or no --grid to take the dots as they are."
        )
    return where.astype(np.int64), f"Dots lie at most {how_far}, from the locations of {layout}."


def _made(spots: NDArray[np.float64]) -> tuple[Layout, NDArray[np.int64]]:
    """The distinct dots as a layout, from the top left row by row, and which of them each is."""
    rounded = np.round(spots / APART).astype(np.int64)[:, ::-1]
    distinct, first, which = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    if len(distinct) > MOST_LOCATIONS:
        raise InvalidInput(
            f"The dots are at {len(distinct)} distinct positions, and {MOST_LOCATIONS} is the most; "
            "with --grid N each goes to the nearest location."
        )
    try:
        layout: Layout = Scatter(spots[first])
    except InvalidInput as error:
        raise InvalidInput(
            f"The dots' {len(distinct)} distinct positions make no layout: {error} "
            "With --grid N each goes to the nearest location."
        ) from error
    return layout, which.ravel()


def _about_made(layout: Layout) -> str:
    side = round(len(layout) ** 0.5)
    if (
        side >= 3
        and side**2 == len(layout)
        and np.allclose(layout.positions, Grid(side).positions, atol=1e-3)
    ):
        return f"The dots lie on a {side}x{side} grid: --grid {side} would say so."
    return f"The dots' {len(layout)} distinct positions are the locations."


def _check_pairs(
    trials: Sequence[ImportedTrial], layout: Layout, i: NDArray[np.int64], j: NDArray[np.int64]
) -> None:
    if (i == j).any():
        at = int(np.argmax(i == j))
        raise InvalidInput(
            f"{trials[at].row.where}: both dots are location {i[at]} of {layout}, but a pair joins two different "
            "ones; leave such rows out with --map only=COLUMN:VALUE."
        )


def read_points(path: str | Path, size: Size | None = None) -> Scatter:
    """A layout from a file of x, y, a line a location: CSV with or without a header, or a JSON list of pairs.

    Parameters
    ----------
    size : width and height in pixels, where the file has pixels instead of fractions
    """
    path = Path(path)
    if not path.is_file():
        raise NotFound(f"No file {path}; expected the x, y of the locations, a line each.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        points = np.array(_point_rows(text), np.float64)
    except (ValueError, TypeError, KeyError, RecursionError, csv.Error) as error:
        raise InvalidInput(
            f"{path} is no list of points; expected x,y on each line, as fractions of the image's width and height."
        ) from error
    if points.ndim == 2 and points.shape[1] == 2 and points.size and np.nanmax(points) > 1:
        if size is None:
            raise InvalidInput(
                f"{path} has pixels rather than fractions; pass --image-size WIDTHxHEIGHT too."
            )
        points = points / np.array(size)
    try:
        return Scatter(points)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error


def _point_rows(text: str) -> Any:
    if text.lstrip().startswith("["):
        return [[point["x"], point["y"]] if isinstance(point, dict) else point for point in json.loads(text)]
    rows = [row for row in csv.reader(text.splitlines(), delimiter=max(",;\t", key=text.count)) if row]
    if rows and [cell.strip().lower() for cell in rows[0]] == ["x", "y"]:
        rows = rows[1:]
    return [[float(cell) for cell in row] for row in rows]
