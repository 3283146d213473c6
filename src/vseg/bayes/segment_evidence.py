"""The evidence of each number of segments K, and the choice among them.

The chosen K is the smallest within 2 nats of the best; those within 4 nats are plausible. From one block of answers a
third of the choices are wrong, from ten hardly any (docs/benchmarks.md): report the plausible set.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

import numpy as np

from vseg.bayes.evidence import LaplaceFit
from vseg.data.layout import Layout
from vseg.errors import InvalidInput

CHOSEN_WITHIN = 2.0
PLAUSIBLE_WITHIN = 4.0
AUTO_COUNTS = range(2, 9)  # tried with "auto"

SegmentOption: TypeAlias = int | str | Iterable[int]
"""What users give as the number of segments: K, "auto", or several K to choose from."""


class SegmentsRow(TypedDict):
    """One K in `SegmentsTable.rows`, as written to summary.json."""

    segments: int
    evidence: float
    below_best: float
    segments_won: int
    scale: float
    length: float | None


@dataclass(frozen=True, eq=False, repr=False)
class SegmentsTable:
    """The best fit for each K that was tried, in increasing order of K; prints as a small table."""

    fits: tuple[LaplaceFit, ...]

    @property
    def best(self) -> float:
        """The highest log evidence."""
        return max(fit.evidence for fit in self.fits)

    @property
    def chosen(self) -> int:
        """The smallest K within 2 nats of the best."""
        return self._within(CHOSEN_WITHIN)[0]

    @property
    def plausible(self) -> list[int]:
        """All K within 4 nats of the best, of those that were tried."""
        return self._within(PLAUSIBLE_WITHIN)

    @property
    def has_untried(self) -> bool:
        """Whether the largest K that was tried is plausible, so that larger ones may be too."""
        return self.fits[-1].segments in self.plausible

    @property
    def plausible_text(self) -> str:
        """The plausible K as text: "2, 3", or "2, 3; more than 3 were not tried"."""
        listed = ", ".join(map(str, self.plausible))
        return f"{listed}; more than {self.fits[-1].segments} were not tried" if self.has_untried else listed

    def rows(self) -> list[SegmentsRow]:
        """Return a row for each K: its log evidence, the difference to the best, how many segments win a location."""
        return [
            {
                "segments": fit.segments,
                "evidence": fit.evidence,
                "below_best": self.best - fit.evidence,
                "segments_won": len(np.unique(fit.probabilities.argmax(axis=1))),
                "scale": fit.scale,
                "length": None if np.isnan(fit.length) else fit.length,
            }
            for fit in self.fits
        ]

    def __repr__(self) -> str:
        lines = [f"  {'K':>2}  {'log evidence':>12}  {'below the best':>14}"]
        for fit in self.fits:
            below = self.best - fit.evidence
            mark = "  chosen" if fit.segments == self.chosen else "  plausible" * (below <= PLAUSIBLE_WITHIN)
            lines.append(f"  {fit.segments:>2}  {fit.evidence:>12.1f}  {below:>14.1f}{mark}")
        return (
            "\n".join([f"<SegmentsTable: K = {self.chosen} (plausible: {self.plausible_text})", *lines]) + ">"
        )

    def _within(self, nats: float) -> list[int]:
        return [fit.segments for fit in self.fits if self.best - fit.evidence <= nats]


def check_segment_counts(segments: SegmentOption, layout: Layout) -> list[int]:
    """Return the numbers of segments to try, in increasing order, or raise `InvalidInput`."""
    if isinstance(segments, str) and segments == "auto":
        return [count for count in AUTO_COUNTS if count <= len(layout)]
    listed = (
        list(segments) if isinstance(segments, Iterable) and not isinstance(segments, str) else [segments]
    )
    for count in listed:
        if (
            isinstance(count, bool)
            or not isinstance(count, (int, np.integer))
            or not 2 <= count <= len(layout)
        ):
            raise InvalidInput(
                f"The number of segments is 'auto' or a whole number from 2 to {len(layout)} on {layout}, "
                f"got {count!r}."
            )
    if not listed:
        raise InvalidInput("Expected one or more numbers of segments to try, got none.")
    return sorted({int(count) for count in listed})


def is_past_peak(fits: list[LaplaceFit]) -> bool:
    """Return whether the last two K are implausible: more segments will not help, and only cost time."""
    best = max(fit.evidence for fit in fits)
    return len(fits) > 2 and all(best - fit.evidence > PLAUSIBLE_WITHIN for fit in fits[-2:])
