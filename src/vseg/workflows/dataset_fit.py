"""DatasetFit: the fits of a data set, and the folder they are written to."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vseg._support.text import format_count
from vseg.data.maps import Maps
from vseg.errors import Conflict, InvalidInput
from vseg.workflows.data_source import ReadImage
from vseg.workflows.fits import Fit, FitMethod

GROUPINGS = ("all", "participant", "image")
Grouping = Literal["all", "participant", "image"]
MOST_DRAWN_TOGETHER = 60  # participants in one figure


@dataclass(frozen=True, eq=False, repr=False)
class DatasetFit:
    """The fits of a data set, as `fit_dataset` returns them.

    Attributes
    ----------
    by : "all", "participant" or "image"
    together : Fit or None
        All answers taken as one observer's; None where each image was fitted separately.
    each : dict of Fit
        The fit of every participant, with segments in the order of the maps of all, or of every image. `fit.result` is
        a Reconstruction or a Posterior, `fit.maps` its maps, `fit.notes` what to watch out for.
    skipped : dict of str
        Participants or images that could not be fitted, with the reason.
    rows : list of dict
        A row a participant or image: what `save` writes to participants.csv or images.csv.
    method : PenalisedMethod or PosteriorMethod
    read_image : function
        Returns the pixels of an image by its name, or None.
    image : str
        The name of the image, where all answers are about one.
    """

    by: Grouping
    together: Fit | None
    each: dict[str, Fit]
    skipped: dict[str, str]
    rows: list[dict[str, Any]]
    method: FitMethod
    read_image: ReadImage
    image: str

    @property
    def maps(self) -> Maps:
        """The maps of all answers taken together."""
        if self.together is None:
            raise InvalidInput("Each image was fitted separately; the maps of one are fits.each[NAME].maps.")
        return self.together.maps

    @property
    def segments(self) -> int:
        """The number of segments K of all answers taken together, chosen or given."""
        return self.maps.segments

    @property
    def message(self) -> str:
        """One or more sentences about all fits."""
        parts = [self.together.message] if self.together is not None else []
        if self.by != "all":
            total = len(self.each) + len(self.skipped)
            some = f"{len(self.each)} of " if self.skipped else ""
            parts.append(f"{some}{format_count(total, self.by)} fitted separately, in {self.by}s.csv.")
        if self.by == "participant":
            parts.append(self.method.describe_participants(self.each))
        return " ".join(part for part in parts if part)

    def __repr__(self) -> str:
        return f"<DatasetFit: {self.message}>"

    def save(self, folder: str | Path) -> None:
        """Write maps, numbers and figures into a new or empty folder: what `vseg fit` writes.

        maps.npz, summary.json, maps.png and the other figures of all answers; participants.csv with a folder in
        participants/ for each participant, or images.csv with a folder in images/ for each image.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist; a Conflict if it holds anything.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise Conflict(f"{folder} is not empty; choose a new folder for a fit.")
        if self.together is not None:
            self._save_top(folder, self.together, self.image)
        for row in self.rows:
            if "folder" not in row:
                continue
            name, own = row[self.by], folder / row["folder"]
            own.mkdir(parents=True)
            if self.by == "image":
                self._save_top(own, self.each[name], name)
            else:
                self.each[name].save(own)
                self.method.draw(own, self.each[name], self.read_image(self.image), top=False)
        if self.by == "image" and len(self.each) == 1 and not self.skipped:
            [(name, fit)] = self.each.items()
            self._save_top(folder, fit, name)
        if self.by != "all":
            columns = [self.by, "folder", *self.method.columns, "note"]
            _write_table(folder / f"{self.by}s.csv", columns, self.rows)
        if self.by == "participant" and len(self.each) <= MOST_DRAWN_TOGETHER:
            self.method.draw_participants(folder, self.each, self.read_image(self.image))

    def _save_top(self, folder: Path, fit: Fit, image: str) -> None:
        """Write maps, numbers and all figures of one fit."""
        from vseg import figures

        pixels = self.read_image(image)
        fit.save(folder)
        self.method.draw(folder, fit, pixels, top=True)
        if pixels is not None:
            figures.boundaries(fit.maps, pixels).savefig(folder / "boundaries.png")


def _write_table(path: Path, columns: list[str], rows: list[dict[str, Any]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
