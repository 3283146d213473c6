"""The data of charts: what the script draws, and a sentence and a table for readers who do not see it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from vseg.monitor import Distribution
from vseg.server.formatting import (
    format_grouped_count,
    format_milliseconds,
    format_minutes,
    format_number,
    format_time,
)


@dataclass(frozen=True)
class Chart:
    """One chart; `summary` describes it in a sentence, and `rows` are its numbers as a table."""

    title: str
    kind: Literal["bars", "dots"]
    x: Sequence[float]
    y: Sequence[float]
    x_label: str
    y_label: str
    summary: str
    rows: list[tuple[str, str]]
    is_time: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw yet."""
        return not any(self.y)

    @property
    def json(self) -> str:
        """The chart as the script reads it."""
        data = {
            "kind": self.kind, "x": list(self.x), "y": list(self.y), "xLabel": self.x_label, "yLabel": self.y_label,
            "isTime": self.is_time,
        }  # fmt: skip
        return json.dumps(data, allow_nan=False, separators=(",", ":"))


def histogram_chart(title: str, distribution: Distribution, *, x_label: str, y_label: str) -> Chart:
    """Return a distribution as a bar chart."""
    bins = list(pairwise(distribution.edges))
    format_value = format_minutes if distribution.unit == "minutes" else format_milliseconds
    summary = "No data yet."
    if any(distribution.counts):
        median, p10, p90 = map(format_value, (distribution.median, distribution.p10, distribution.p90))
        summary = f"The median is {median}; 80 % of the values are between {p10} and {p90}."
    return Chart(
        title,
        "bars",
        x=[(low + high) / 2 for low, high in bins],
        y=distribution.counts,
        x_label=f"{x_label} ({distribution.unit})",
        y_label=y_label,
        summary=summary,
        rows=[
            (
                f"{low:g} {f'to {high:g}' if high < distribution.edges[-1] else 'and more'}",
                format_number(count),
            )
            for (low, high), count in zip(bins, distribution.counts, strict=True)
            if count
        ],
    )


def hourly_chart(hours: Sequence[tuple[int, int]]) -> Chart:
    """Return the number of answers in each hour as a bar chart; `hours` are times in ms and counts."""
    counts = [count for _, count in hours]
    summary = "No answers in the last two days."
    if any(counts):
        at_ms, count = max(hours, key=lambda hour: hour[1])
        peak = f"{format_number(count)} in the hour from {format_time(at_ms)}"
        summary = f"{format_grouped_count(sum(counts), 'answer')} in the last two days, at most {peak}."
    return Chart(
        "Answers per hour",
        "bars",
        x=[at_ms / 1000 for at_ms, _ in hours],
        y=counts,
        x_label="time (UTC)",
        y_label="answers",
        summary=summary,
        rows=[(format_time(at_ms), format_number(count)) for at_ms, count in hours if count],
        is_time=True,
    )
