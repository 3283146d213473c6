"""Numbers for the charts: what the script draws, and the sentence and the table for those who do not see it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from vseg.monitor import Distribution
from vseg.server import formatting


@dataclass(frozen=True)
class Chart:
    """One chart: bars or dots over x, both axes labelled, and `said`, the same in a sentence."""

    title: str
    kind: str
    x: Sequence[float]
    y: Sequence[float]
    x_label: str
    y_label: str
    said: str
    rows: list[tuple[str, str]]
    is_time: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw yet."""
        return not any(self.y)

    @property
    def json(self) -> str:
        """What the script needs."""
        shown = {
            "kind": self.kind, "x": list(self.x), "y": list(self.y), "xLabel": self.x_label, "yLabel": self.y_label,
            "isTime": self.is_time,
        }  # fmt: skip
        return json.dumps(shown, allow_nan=False, separators=(",", ":"))


def histogram_chart(title: str, found: Distribution, *, counted: str, x_label: str) -> Chart:
    """A distribution as bars."""
    edges = found.edges
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    shown = formatting.format_minutes if found.unit == "minutes" else formatting.format_milliseconds
    said = "Nothing yet."
    if any(found.counts):
        said = f"Half are below {shown(found.median)}; 8 of 10 lie between {shown(found.p10)} and {shown(found.p90)}."
    ranges = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
    rows = [
        (name, formatting.format_number(count))
        for name, count in zip(ranges, found.counts, strict=False)
        if count
    ]
    return Chart(title, "bars", middles, found.counts, f"{x_label} ({found.unit})", counted, said, rows)


def hourly_chart(hours: Sequence[Any]) -> Chart:
    """Answers of each of the last hours."""
    x = [at_ms / 1000 for at_ms, _ in hours]
    y = [count for _, count in hours]
    said = "No answers in the last two days."
    if any(y):
        best = max(range(len(y)), key=y.__getitem__)
        most = f"{formatting.format_number(y[best])} in the hour from {_hour(x[best])}"
        said = f"{formatting.format_count(sum(y), 'answer')} in the last two days, at most {most}."
    rows = [(_hour(at), formatting.format_number(count)) for at, count in zip(x, y, strict=True) if count]
    return Chart("Answers per hour", "bars", x, y, "time (UTC)", "answers", said, rows, is_time=True)


def _hour(at_s: float) -> str:
    return formatting.format_time(at_s * 1000)
