"""Find the locations of imported dots: the nearest ones of a given layout, or the dots' distinct positions."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vseg.data.file_reading import guess_delimiter
from vseg.data.importers.trials import ImportedTrial
from vseg.data.layout import Grid, Layout, Scatter
from vseg.errors import InvalidInput, NotFound

RESOLUTION = 1e-6  # fraction of the image; dots closer than this are one location
FARTHEST = 0.5  # fraction of the distance to the next location
MOST_LOCATIONS = 4096

Size = tuple[float, float]


@dataclass(frozen=True)
class DotLocations:
    """The two locations of every trial, the dots in pixels if the image sizes are known, and remarks for the user."""

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
    """Find the two locations of every trial.

    Parameters
    ----------
    trials : sequence of ImportedTrial
    layout : Layout, optional
        The locations; without it, the distinct positions of the dots are the locations.
    units : {"px", "fraction"}, optional
        Unit of the dots' coordinates; by default "fraction" if all are from 0 to 1, else "px".
    count_from : int
        The number of the first location in the file, 0 or 1.
    sizes : mapping of str to (float, float), optional
        Width and height of each image in pixels, for trials that do not have them.
    """
    size = _image_sizes(trials, sizes or {})
    if trials[0].dots is None:
        return _check_numbered(trials, layout, count_from, size)
    dots = np.array([trial.dots for trial in trials], np.float64)
    remarks = []
    if units not in (None, "px", "fraction"):
        raise InvalidInput(f"The dots' units are px or fraction, got {units!r}.")
    if units is None:
        units = "fraction" if dots.min() >= 0 and dots.max() <= 1 else "px"
        if units == "fraction":
            remarks.append(
                "All coordinates are from 0 to 1, so they are read as fractions of the image's width and height."
            )
    if units == "px":
        _check_sizes(trials, size)
    scale = np.tile(size, 2)
    fractions = dots / scale if units == "px" else dots
    _check_inside(trials, dots, fractions, size, units)
    spots = fractions.reshape(-1, 2)
    if layout is None:
        layout, nearest = _make_layout(spots)
        remarks.append(_describe_layout(layout))
    else:
        nearest, farthest = _find_nearest(trials, layout, spots, size)
        remarks.append(farthest)
    i, j = nearest.reshape(-1, 2).T
    _check_pairs(trials, layout, i, j)
    px = None if np.isnan(scale).any() else fractions * scale
    return DotLocations(layout, i, j, px, remarks)


def _image_sizes(trials: Sequence[ImportedTrial], sizes: Mapping[str, Size]) -> NDArray[np.float64]:
    """Return (m, 2) the size of the image in each trial, NaN if unknown."""
    unknown = (np.nan, np.nan)
    return np.array([trial.size or sizes.get(trial.image, unknown) for trial in trials], np.float64)


def _check_numbered(
    trials: Sequence[ImportedTrial], layout: Layout | None, count_from: int, size: NDArray[np.float64]
) -> DotLocations:
    if layout is None:
        raise InvalidInput(
            "The trials give locations by number, so the layout is needed: a grid, or the points."
        )
    pairs = np.array([trial.pair for trial in trials], np.int64) - count_from
    n = len(layout)
    outside = ((pairs < 0) | (pairs >= n)).any(axis=1)
    if outside.any():
        first = int(np.argmax(outside))
        from_one = pairs.min() == 1 and pairs.max() == n
        advice = (
            "the file counts from 1, so count_from should be 1"
            if from_one
            else "give the layout that was used"
        )
        raise InvalidInput(
            f"{trials[first].row.source}: locations {_join_numbers(pairs[first] + count_from)}, but {layout} has "
            f"{count_from}..{n - 1 + count_from}; {advice}."
        )
    _check_pairs(trials, layout, pairs[:, 0], pairs[:, 1])
    px = (
        None
        if np.isnan(size).any()
        else np.hstack([layout.positions[pairs[:, end]] * size for end in (0, 1)])
    )
    return DotLocations(layout, pairs[:, 0], pairs[:, 1], px, [])


def _join_numbers(values: NDArray[np.int64]) -> str:
    return " and ".join(f"{value:g}" for value in values)


def _check_sizes(trials: Sequence[ImportedTrial], size: NDArray[np.float64]) -> None:
    unknown = np.isnan(size).any(axis=1)
    if unknown.any():
        trial = trials[int(np.argmax(unknown))]
        raise InvalidInput(
            f"{trial.row.source}: the dots are in pixels, but the size of the image {trial.image!r} is unknown; "
            "give the image size or the folder of the images, or map image_width and image_height."
        )


def _check_inside(
    trials: Sequence[ImportedTrial],
    dots: NDArray[np.float64],
    fractions: NDArray[np.float64],
    size: NDArray[np.float64],
    units: str,
) -> None:
    outside = ((fractions < 0) | (fractions > 1)).any(axis=1)
    if outside.any():
        row = int(np.argmax(outside))
        image = "{:g}x{:g} px".format(*size[row]) if units == "px" else "width and height 1"
        raise InvalidInput(
            f"{trials[row].row.source}: the dots {_format_dots(dots[row])} do not both lie in an image of {image}; "
            "coordinates are measured from its top left corner, x to the right and y down."
        )


def _format_dots(dots: Sequence[float] | NDArray[np.float64]) -> str:
    return "({:g}, {:g}) and ({:g}, {:g})".format(*dots)


def _find_nearest(
    trials: Sequence[ImportedTrial],
    layout: Layout,
    spots: NDArray[np.float64],
    size: NDArray[np.float64],
) -> tuple[NDArray[np.int64], str]:
    """Return the nearest location of each dot, and a remark about the largest distance.

    A dot more than half the distance to the next location away from its location is an error.
    """
    from scipy.spatial import cKDTree

    tree = cKDTree(layout.positions)
    distance, nearest = tree.query(spots)
    spacing = tree.query(layout.positions, k=2)[0][:, 1]
    share = distance / spacing[nearest]
    worst = int(np.argmax(share))
    dot_size = np.repeat(size, 2, axis=0)
    px = float(np.linalg.norm((spots[worst] - layout.positions[nearest[worst]]) * dot_size[worst]))
    worst_distance = f"{share[worst]:.2f} of the distance between locations" + (
        "" if np.isnan(px) else f" ({px:.1f} px)"
    )
    if share[worst] > FARTHEST + RESOLUTION:
        trial = trials[worst // 2]
        assert trial.dots is not None
        raise InvalidInput(
            f"{trial.row.source}: the dots {_format_dots(trial.dots)} are not on {layout}: one lies {worst_distance} "
            f"from the nearest location, and {FARTHEST:g} is the most. Give the layout that was used and the right "
            "image size, or no layout to take the dots' positions as the locations."
        )
    return nearest.astype(np.int64), f"Dots lie at most {worst_distance} from the locations of {layout}."


def _make_layout(spots: NDArray[np.float64]) -> tuple[Layout, NDArray[np.int64]]:
    """Return a layout of the dots' distinct positions, row by row from the top left, and each dot's location."""
    rounded = np.round(spots / RESOLUTION).astype(np.int64)[:, ::-1]
    distinct, first, location = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    if len(distinct) > MOST_LOCATIONS:
        raise InvalidInput(
            f"The dots have {len(distinct)} distinct positions, and {MOST_LOCATIONS} is the most; "
            "give a grid, and each dot is assigned to the nearest location."
        )
    try:
        layout: Layout = Scatter(spots[first])
    except InvalidInput as error:
        raise InvalidInput(
            f"The dots' {len(distinct)} distinct positions cannot be a layout: {error} "
            "Give a grid, and each dot is assigned to the nearest location."
        ) from error
    return layout, location.ravel()


def _describe_layout(layout: Layout) -> str:
    side = round(len(layout) ** 0.5)
    if (
        side >= 3
        and side**2 == len(layout)
        and np.allclose(layout.positions, Grid(side).positions, atol=1e-3)
    ):
        return f"The dots lie on a {side}x{side} grid; vseg.Grid({side}) as the layout would keep its neighbours."
    return f"The dots' {len(layout)} distinct positions are the locations."


def _check_pairs(
    trials: Sequence[ImportedTrial], layout: Layout, i: NDArray[np.int64], j: NDArray[np.int64]
) -> None:
    if (i == j).any():
        first = int(np.argmax(i == j))
        raise InvalidInput(
            f"{trials[first].row.source}: both dots are location {i[first]} of {layout}, but a pair joins two "
            "different ones; to skip such rows, map only=COLUMN:VALUE."
        )


def read_points(path: str | Path, size: Size | None = None) -> Scatter:
    """Read a layout from a file of positions: CSV with x, y on each line, or a JSON list of pairs.

    Parameters
    ----------
    path : str or Path
    size : (float, float), optional
        Width and height in pixels, if the file has pixels instead of fractions.

    Returns
    -------
    Scatter
    """
    path = Path(path)
    if not path.is_file():
        raise NotFound(f"No file {path}; expected x, y of one location on each line.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        points = np.array(_parse_points(text), np.float64)
    except (ValueError, TypeError, KeyError, RecursionError, csv.Error) as error:
        raise InvalidInput(
            f"{path} is not a list of points; expected x, y on each line, as fractions of the image's width and height."
        ) from error
    if points.ndim == 2 and points.shape[1] == 2 and points.size and np.nanmax(points) > 1:
        if size is None:
            raise InvalidInput(f"{path} has pixels rather than fractions; give the image size too.")
        points = points / np.array(size)
    try:
        return Scatter(points)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error


def _parse_points(text: str) -> list[list[float]]:
    if text.lstrip().startswith("["):
        return [[point["x"], point["y"]] if isinstance(point, dict) else point for point in json.loads(text)]
    rows = [row for row in csv.reader(text.splitlines(), delimiter=guess_delimiter(text)) if row]
    if rows and [cell.strip().lower() for cell in rows[0]] == ["x", "y"]:
        rows = rows[1:]
    return [[float(cell) for cell in row] for row in rows]
