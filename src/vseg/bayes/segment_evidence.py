"""How many segments: the evidence of each K.

The chosen K is the smallest within 2 nats of the best, the plausible ones lie within 4. From one block of answers a
third of the choices are wrong, from ten hardly any (docs/benchmarks.md): report the plausible set.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vseg.bayes.evidence import Cell
from vseg.data.layout import Layout
from vseg.errors import InvalidInput

CHOSEN_WITHIN = 2.0
PLAUSIBLE_WITHIN = 4.0
TRIED = range(2, 9)


@dataclass(frozen=True, eq=False, repr=False)
class SegmentsTable:
    """The best cell of each K that was tried, K rising; prints as a small table."""

    cells: tuple[Cell, ...]

    @property
    def best(self) -> float:
        """The highest log evidence."""
        return max(cell.evidence for cell in self.cells)

    @property
    def chosen(self) -> int:
        """The smallest K within 2 nats of the best."""
        return self._within(CHOSEN_WITHIN)[0]

    @property
    def plausible(self) -> list[int]:
        """All K within 4 nats of the best, of those that were tried."""
        return self._within(PLAUSIBLE_WITHIN)

    @property
    def more_untried(self) -> bool:
        """Whether the largest K that was tried is plausible, so that larger ones may be too."""
        return self.cells[-1].segments in self.plausible

    @property
    def said(self) -> str:
        """The plausible K for a person: "2, 3", or "2, 3; more than 3 were not tried"."""
        listed = ", ".join(map(str, self.plausible))
        return (
            f"{listed}; more than {self.cells[-1].segments} were not tried" if self.more_untried else listed
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row for each K: its log evidence, how far below the best it is, and how many maps win a location."""
        return [
            {
                "segments": cell.segments,
                "evidence": cell.evidence,
                "below_best": self.best - cell.evidence,
                "segments_won": len(np.unique(cell.probabilities.argmax(axis=1))),
                "scale": cell.scale,
                "length": None if np.isnan(cell.length) else cell.length,
            }
            for cell in self.cells
        ]

    def __repr__(self) -> str:
        lines = [f"  {'K':>2}  {'log evidence':>12}  {'below the best':>14}"]
        for cell in self.cells:
            below = self.best - cell.evidence
            mark = "  chosen" if cell.segments == self.chosen else "  plausible" * (below <= PLAUSIBLE_WITHIN)
            lines.append(f"  {cell.segments:>2}  {cell.evidence:>12.1f}  {below:>14.1f}{mark}")
        return "\n".join([f"<SegmentsTable: K = {self.chosen} (plausible: {self.said})", *lines]) + ">"

    def _within(self, nats: float) -> list[int]:
        return [cell.segments for cell in self.cells if self.best - cell.evidence <= nats]


def counts_of(segments: Any, layout: Layout) -> list[int]:
    """The numbers of segments to try, rising: one, several, or those of "auto"."""
    if isinstance(segments, str) and segments == "auto":
        return [count for count in TRIED if count <= len(layout)]
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


def enough(cells: list[Cell]) -> bool:
    """Whether the last two K are implausible: more segments will not help, and only cost time."""
    best = max(cell.evidence for cell in cells)
    return len(cells) > 2 and all(best - cell.evidence > PLAUSIBLE_WITHIN for cell in cells[-2:])
