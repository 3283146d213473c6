"""One fit of a data set: its result with how K was chosen, or the reason why there is none."""

import csv
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vseg._support.progress import Progress
from vseg.bayes.posterior import Posterior
from vseg.bayes.segment_evidence import SegmentsTable
from vseg.data.maps import Maps
from vseg.data.responses import Responses
from vseg.errors import InvalidInput, NotConverged, VsegWarning
from vseg.reconstruction.reconstruct import Reconstruction
from vseg.reconstruction.segment_selection import SegmentsChoice

Pixels = NDArray[np.uint8]
SPATIAL_NUMBERS = (
    "segments", "mean_entropy", "entropy_low", "entropy_high", "expected_error", "evidence", "lapses", "converged",
    "rhat",
)  # fmt: skip
"""What summary.json repeats of the maps without the image, where an image prior was used."""


@dataclass(frozen=True)
class Fit:
    """A result, how its K was chosen, and what there is to know about it.

    Attributes
    ----------
    result : Reconstruction or Posterior
    choice : SegmentsChoice or None
        The candidates, where K was chosen by held-out likelihood.
    table : SegmentsTable or None
        The evidence of each K, where the penalised method took K by evidence.
    details : dict
        Written to summary.json in front of the result's own numbers: whose fit it is, settings, catch trials.
    notes : tuple of str
        Warnings about this fit.
    """

    result: Reconstruction | Posterior
    choice: SegmentsChoice | None = None
    table: SegmentsTable | None = None
    details: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def maps(self) -> Maps:
        """The maps to report."""
        return self.result.maps

    @property
    def spatial(self) -> Posterior | None:
        """The posterior without the image, where an image prior was used."""
        return self.result.spatial if isinstance(self.result, Posterior) else None

    @property
    def message(self) -> str:
        """One or more sentences: how K was chosen, the result, and the catch trials."""
        chosen = self.choice.message if self.choice is not None else ""
        if self.table is not None:
            chosen = f"K = {self.table.chosen} by evidence (plausible: {self.table.plausible_text})."
        parts = (chosen, self.result.message, self._describe_spatial(), self._describe_catch_trials())
        return " ".join(part for part in parts if part)

    def align_to(self, maps: Maps) -> "Fit":
        """Return the same fit with its segments in the order of other maps.

        If the number of segments differs, those that match one of the other maps come first, in their order, the rest
        last; `details` lists for each segment the number of the matching one, or None.
        """
        own_count = self.maps.segments
        if maps.segments == own_count:
            return replace(self, result=self.result.align_to(maps))
        # The order is that of the larger number of maps; indices beyond the smaller number are empty maps.
        pairs = [(own, other) for other, own in enumerate(self.maps.matching_order(maps)) if own < own_count]
        result = self.result.align_to(self.maps.permute([own for own, _ in pairs]))
        matching = [other if other < maps.segments else None for _, other in pairs]
        return replace(self, result=result, details={**self.details, "matching_segments": matching})

    def save(self, folder: Path) -> None:
        """Write maps.npz and summary.json into a folder."""
        details: dict[str, Any] = dict(self.details)
        if self.spatial is not None:
            summary = self.spatial.summary()
            details["spatial"] = {name: summary[name] for name in SPATIAL_NUMBERS}
        if self.table is not None:
            details |= {"segments_table": self.table.rows(), "segments_plausible": self.table.plausible}
        if self.choice is not None:
            details |= {
                "segments_table": self.choice.table(),
                "segments_by_likelihood": self.choice.by_likelihood,
                "segments_by_empty_maps": self.choice.by_empty_maps,
            }
        self.result.save(folder, details)

    def _describe_spatial(self) -> str:
        if self.spatial is None:
            return ""
        low, high = self.spatial.entropy_interval
        return (
            f"Answers alone, without the image: mean entropy {self.spatial.entropy:.3f} nats, "
            f"90 % interval {low:.3f} to {high:.3f}."
        )

    def _describe_catch_trials(self) -> str:
        if "catch_asked" not in self.details:
            return ""
        return f"{self.details['catch_right']} of {self.details['catch_asked']} catch trials were right."


@dataclass(frozen=True)
class FailedFit:
    """The reason why the answers of a participant, or about an image, could not be fitted."""

    reason: str


NamedFits = Iterator[tuple[str, Fit | FailedFit]]


class FitMethod(Protocol):
    """A way to fit answers, with its own table columns and figures."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table of participants or images."""
        ...

    def count_steps(self, counts: list[int]) -> int:
        """Count the progress steps of one fit with these numbers of segments to choose from."""
        ...

    def count_participant_steps(self, counts: list[int]) -> int:
        """Count the progress steps of one participant's fit with these numbers of segments to choose from."""
        ...

    def fit(self, answers: Responses, counts: list[int], progress: Progress, pixels: Pixels | None) -> Fit:
        """Fit all answers as one observer's, with the best of these numbers of segments."""
        ...

    def fit_participants(
        self, answers: Responses, counts: list[int], progress: Progress, pixels: Pixels | None
    ) -> NamedFits:
        """Fit each participant with the best of these numbers of segments."""
        ...

    def table_row(self, fit: Fit) -> dict[str, Any]:
        """Return the row of a fit in the table of participants or images."""
        ...

    def draw(self, folder: Path, fit: Fit, pixels: Pixels | None, *, top: bool) -> None:
        """Write the figures of a fit; the one about the choice of λ only if `top`."""
        ...

    def draw_participants(self, folder: Path, fits: dict[str, Fit], pixels: Pixels | None) -> None:
        """Write the figures that show all participants."""
        ...

    def describe_participants(self, fits: dict[str, Fit]) -> str:
        """Return a sentence about all participants' fits, or nothing."""
        ...


def try_fit(run: Callable[[], Fit]) -> Fit | FailedFit:
    """Run a fit; return it with its warnings as notes, or the reason why it failed."""
    try:
        with collect_warnings() as messages:
            fit = run()
    except (InvalidInput, NotConverged) as error:
        return FailedFit(str(error))
    return replace(fit, notes=tuple(messages))


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the texts of vseg's own warnings instead of showing them; other warnings are shown."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VsegWarning)
        yield messages
    for warning in caught:
        if issubclass(warning.category, VsegWarning):
            messages.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def write_table(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as a CSV file with these columns; None and missing values become empty cells."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
