"""score_contours(): the contours that participants drew against the truth, their own maps, and each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vseg._support.text import format_count
from vseg.data.contours import Contours, load_contours
from vseg.data.dataset import Dataset
from vseg.data.maps import Maps
from vseg.errors import InvalidInput
from vseg.evaluation.contours import (
    PairAgreement,
    Quartiles,
    compare_contours,
    score_contours_on_maps,
    spacing_tolerance,
    summarise_quartiles,
)
from vseg.evaluation.metrics import BSDS_TOLERANCE, RENDERED_PX
from vseg.study.pictures import refine_truth
from vseg.workflows.fits import Pixels, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCORES = ("precision", "recall", "f", "tolerance")
COLUMNS = (
    "participant", "session", "image", "lines", *(f"truth_{score}" for score in SCORES), "map",
    *(f"map_{score}" for score in SCORES), "others_f",
)  # fmt: skip
MAX_DRAWN_TOGETHER = 60  # participants in one figure

FittedMaps = Mapping[tuple[str, str], Maps]
"""The maps to compare drawings with, by participant and image; a participant called "" stands for all together."""


@dataclass(frozen=True, eq=False, repr=False)
class ContourAgreement:
    """How well drawn contours agree with the truth, with the participants' maps, and with each other.

    Attributes
    ----------
    contours : list of Contours
        The drawings, one for each row.
    rows : list of dict
        For each drawing precision, recall and F against the truth (`truth_f`, …) and against maps (`map_f`, …; `map`
        says whether these are the participant's "own" or those of "all"), the tolerances, and `others_f`, the median
        F with the drawings of the others. None where there is nothing to compare with.
    pairs : list of PairAgreement
        The F of every two participants.
    maps : list of Maps or None
        The maps that each drawing was compared with.
    """

    contours: list[Contours]
    rows: list[dict[str, Any]]
    pairs: list[PairAgreement]
    maps: list[Maps | None]

    def __repr__(self) -> str:
        return f"<ContourAgreement: {self.message}>"

    @property
    def truth_f(self) -> Quartiles:
        """F against the truth: median and quartiles over drawings."""
        return self._summarise_column("truth_f")

    @property
    def map_f(self) -> Quartiles:
        """F against the participants' maps: median and quartiles over drawings."""
        return self._summarise_column("map_f")

    @property
    def between_f(self) -> Quartiles:
        """F between people: median and quartiles over all pairs."""
        return summarise_quartiles([pair.f for pair in self.pairs])

    @property
    def message(self) -> str:
        """A sentence with the three medians."""
        parts = []
        if self.truth_f.count:
            parts.append(f"{self.truth_f} against the truth")
        if self.map_f.count:
            own = all(row["map"] != "all" for row in self.rows)
            parts.append(f"{self.map_f} against {'their own maps' if own else 'the maps of all'}")
        if self.pairs:
            parts.append(f"{self.between_f} between people ({format_count(len(self.pairs), 'pair')})")
        people = len({drawing.participant for drawing in self.contours})
        scores = ", ".join(parts) or "there is nothing to compare them with"
        return f"{format_count(people, 'participant')} drew contours; their F: {scores}."

    def select(self, image: str) -> "ContourAgreement":
        """Return the part about one image."""
        at = [number for number, row in enumerate(self.rows) if row["image"] == image]
        pairs = [pair for pair in self.pairs if pair.image == image]
        return ContourAgreement(
            [self.contours[n] for n in at], [self.rows[n] for n in at], pairs, [self.maps[n] for n in at]
        )

    def draw(self, pixels: Pixels | None = None) -> "Figure":
        """Draw the lines over each participant's map, with F, and the distributions of F (S5).

        Parameters
        ----------
        pixels : array, optional
            The image; shown first, and below the lines of participants without a map.
        """
        from vseg import figures

        shown = range(min(len(self.contours), MAX_DRAWN_TOGETHER))
        captions = [_format_scores(self.rows[n]) for n in shown]
        distributions = {
            "truth": self._list_column("truth_f"),
            "map": self._list_column("map_f"),
            "others": [pair.f for pair in self.pairs],
        }
        return figures.contours(
            [self.contours[n] for n in shown], [self.maps[n] for n in shown], pixels, captions=captions,
            distributions={name: values for name, values in distributions.items() if values},
        )  # fmt: skip

    def save(self, folder: str | Path) -> None:
        """Write contours.csv, a row per drawing, and contour_pairs.csv, a row per two participants.

        Parameters
        ----------
        folder : str or Path
            An existing folder.
        """
        write_table(Path(folder) / "contours.csv", COLUMNS, self.rows)
        pairs = [pair._asdict() for pair in self.pairs]
        write_table(Path(folder) / "contour_pairs.csv", PairAgreement._fields, pairs)

    def _list_column(self, name: str) -> list[float]:
        return [row[name] for row in self.rows if row[name] is not None]

    def _summarise_column(self, name: str) -> Quartiles:
        return summarise_quartiles(self._list_column(name))


def score_contours(
    data: str | Path,
    maps: FittedMaps | None = None,
    *,
    image: str | None = None,
    tolerance: float = BSDS_TOLERANCE,
    resolution_px: int = RENDERED_PX,
    seed: int,
) -> ContourAgreement:
    """Compare the contours that participants drew with the truth, with their maps, and with each other.

    F is that of the BSDS benchmark, see `vseg.metrics.boundary_scores`. The tolerance for the truth and between people
    is `tolerance`; for maps, and for a truth that is known only at the study's locations, it is at least the distance
    between neighbouring locations, since maps do not say where between two locations a border runs.

    Parameters
    ----------
    data : str or Path
        A folder written by `vseg export` from a study with `contours = {draw = true}`.
    maps : mapping from (participant, image) to Maps, optional
        The maps of each participant; ("", image) for those of all answers together. `vseg.fit_dataset` gives its own.
    image : str, optional
        Only the drawings on this image.
    tolerance : float
        Largest distance of a match, as a fraction of the image's diagonal.
    resolution_px : int
        The longer side of the raster on which lines are compared.
    seed : int
        Seed of the choice of pairs, if an image has more than 5000 of them.

    Returns
    -------
    ContourAgreement
        With `rows`, `pairs`, `message`, the medians and quartiles `truth_f`, `map_f` and `between_f`, `draw()` and
        `save(folder)`.

    Examples
    --------
    >>> score_contours("exported", seed=0).between_f  # doctest: +SKIP
    Quartiles(count=105, lower=0.69, median=0.79, upper=0.88)
    """
    dataset = Dataset(data)
    drawings = [each for each in load_contours(data) if image is None or each.image == image]
    if not drawings:
        raise InvalidInput(
            f"{data} holds no drawn contours{f' of {image}' if image else ''}; the study file asks for them with "
            "contours = {draw = true}."
        )
    truths = {name: _load_truth(dataset, name) for name in dict.fromkeys(each.image for each in drawings)}
    pairs = compare_contours(drawings, tolerance=tolerance, resolution_px=resolution_px, seed=seed)
    rows, fitted = [], []
    for drawing in drawings:
        own = (maps or {}).get((drawing.participant, drawing.image))
        fit = own if own is not None else (maps or {}).get(("", drawing.image))
        fitted.append(fit)
        others = [
            pair.f for pair in pairs if drawing.image == pair.image and drawing.participant in pair[1:3]
        ]
        rows.append(
            {
                "participant": drawing.participant, "session": drawing.session, "image": drawing.image,
                "lines": len(drawing.lines),
                **_score("truth", drawing, truths[drawing.image], tolerance, resolution_px),
                "map": None if fit is None else "all" if own is None else "own",
                **_score("map", drawing, fit, tolerance, resolution_px),
                "others_f": float(np.median(others)) if others else None,
            }
        )  # fmt: skip
    return ContourAgreement(drawings, rows, pairs, fitted)


def _load_truth(dataset: Dataset, image: str) -> Maps | None:
    """Return the true maps of an image, as finely as they are known."""
    path = dataset.truth_file(image)
    return refine_truth(dataset.study, image, Maps.load(path) if path.is_file() else None)


def _score(
    name: str, drawing: Contours, maps: Maps | None, tolerance: float, resolution_px: int
) -> dict[str, float | None]:
    """Return the four columns about these maps."""
    if maps is None:
        return {f"{name}_{score}": None for score in SCORES}
    own = spacing_tolerance(maps.layout, drawing, tolerance)
    found = score_contours_on_maps(drawing, maps, tolerance=own, resolution_px=resolution_px)
    return {f"{name}_{score}": value for score, value in zip(SCORES, (*found, own), strict=True)}


def _format_scores(row: Mapping[str, Any]) -> str:
    """Return the F of a drawing for the line below it."""
    found = {name: row[f"{name}_f"] for name in ("truth", "map") if row[f"{name}_f"] is not None}
    return ", ".join(f"{name} {value:.2f}" for name, value in found.items())
