"""Contours that participants drew on an image: read from a page's record or a dataset folder, and rasterised."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.data.columns import CONTOURS
from vseg.data.dataset import Dataset
from vseg.data.file_reading import translate_csv_errors
from vseg.data.layout import as_floats, as_read_only, check_image_size
from vseg.errors import InvalidInput

MAX_SIDE_PX = 100_000  # of an image that a page reports

Line = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Contours:
    """The lines that one participant drew on one image.

    Parameters
    ----------
    lines : sequence of array_like, each of shape (m, 2)
        The points x, y of each line, in pixels of the image from its top left corner; at least two each. Points beyond
        the edges are moved onto them.
    width_px, height_px : int
        The size of the image.
    participant, session, image : str
        Names; may be empty.

    Examples
    --------
    >>> Contours([[[0, 4], [8, 4]]], width_px=8, height_px=8).rasterise(4, 4).astype(int)
    array([[0, 0, 0, 0],
           [1, 1, 1, 1],
           [0, 0, 0, 0],
           [0, 0, 0, 0]])
    """

    lines: tuple[Line, ...]
    width_px: int
    height_px: int
    participant: str = ""
    session: str = ""
    image: str = ""

    def __init__(
        self,
        lines: Sequence[ArrayLike],
        width_px: int,
        height_px: int,
        *,
        participant: str = "",
        session: str = "",
        image: str = "",
    ):
        size = check_image_size(width_px, height_px)
        names = {"participant": participant, "session": session, "image": image}
        values = {"lines": tuple(_check_line(line, size) for line in lines), **names}
        for name, value in (values | {"width_px": int(width_px), "height_px": int(height_px)}).items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        whose = f" by {self.participant}" if self.participant else ""
        image = f" on {self.image}" if self.image else ""
        return f"<Contours: {len(self.lines)} lines{whose}{image}>"

    @classmethod
    def from_record(cls, data: Mapping[str, Any], **names: str) -> "Contours | None":
        """Return what a page reported, without lines of one point; None if it is no drawing, or an empty one."""
        try:
            width, height = (int(data[name]) for name in ("width_px", "height_px"))
            lines = [line for line in data["contours"] if len(line) > 1]
            if not lines or not all(0 < side <= MAX_SIDE_PX for side in (width, height)):
                return None
            return cls(lines, width, height, image=str(data["image"]), **names)
        except (InvalidInput, KeyError, TypeError, ValueError, OverflowError):
            return None

    def rasterise(self, width_px: int, height_px: int) -> NDArray[np.bool_]:
        """Return (height_px, width_px) a mask of the lines, each one pixel wide.

        As in the boundaries of labels (`vseg.metrics.find_boundaries`), a pixel stands for its right and lower edge: a
        line that follows the border between two columns marks the left one.
        """
        from skimage.draw import line as pixels_between

        size = check_image_size(width_px, height_px)
        mask = np.zeros((height_px, width_px), np.bool_)
        for line in self.lines:
            scaled = line * size / (self.width_px, self.height_px)
            columns, rows = np.clip(np.floor(scaled - 0.5), 0, size - 1).astype(np.int64).T
            for start in range(len(line) - 1):
                mask[pixels_between(rows[start], columns[start], rows[start + 1], columns[start + 1])] = True
        return mask


def load_contours(folder: str | Path) -> list[Contours]:
    """Read the contours that participants drew from a folder written by `vseg export`.

    Parameters
    ----------
    folder : str or Path
        The dataset folder.

    Returns
    -------
    list of Contours
        One for each session and image with a drawing, in the order of the files; participants who drew nothing are
        left out. Of several drawings of one image in a session, the last counts.

    Examples
    --------
    >>> load_contours("exported")  # doctest: +SKIP
    [<Contours: 2 lines by p7k2 on texture>, <Contours: 1 lines by x9qa on texture>]
    """
    return [drawing for table in Dataset(folder).contours_tables for drawing in _read_table(table)]


def list_contour_rows(contours: Contours) -> Iterator[dict[str, Any]]:
    """Yield the rows of a drawing in a table with the columns `CONTOURS`: one for each point."""
    drawing = {name: getattr(contours, name) for name in DRAWING_COLUMNS}
    for number, line in enumerate(contours.lines):
        for point, (x, y) in enumerate(line.tolist()):
            yield {**drawing, "line": number, "point": point, "x": x, "y": y}


DRAWING_COLUMNS = ("participant", "session", "image", "width_px", "height_px")


def _check_line(line: ArrayLike, size: NDArray[np.float64]) -> Line:
    points = as_floats(line, "the points of a line")
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 2 or not np.isfinite(points).all():
        raise InvalidInput(f"A line has two or more points (x, y), got an array of shape {points.shape}.")
    return as_read_only(np.clip(points, 0, size))


def _read_table(path: Path) -> Iterator[Contours]:
    """Yield the drawings of one table, whose rows are in the order of drawings, lines and points."""
    drawings: dict[tuple[str, ...], dict[int, list[tuple[float, float]]]] = {}
    with translate_csv_errors(path), open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        if missing := [column.name for column in CONTOURS if column.name not in (reader.fieldnames or ())]:
            raise InvalidInput(
                f"{path} has no column {missing[0]!r}; expected a table written by vseg export."
            )
        for row in reader:
            try:
                lines = drawings.setdefault(tuple(row[name] for name in DRAWING_COLUMNS), {})
                lines.setdefault(int(row["line"]), []).append((float(row["x"]), float(row["y"])))
            except (TypeError, ValueError) as error:
                raise InvalidInput(
                    f"{path}, line {reader.line_num}: expected numbers for line, x and y; export the study again."
                ) from error
    for key, lines in drawings.items():
        names = dict(zip(DRAWING_COLUMNS, key, strict=True))
        record = {**names, "contours": list(lines.values())}
        drawing = Contours.from_record(record, participant=names["participant"], session=names["session"])
        if drawing is None:
            raise InvalidInput(
                f"{path} holds a drawing of {names['image']!r} without lines; export the study again."
            )
        yield drawing
