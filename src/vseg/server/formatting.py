"""Format numbers and times for people to read: 1,204 · 7.5 min · 412 ms · 93 % · 5 min ago."""

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeGuard

MISSING = "–"  # what is shown for None, NaN and infinity


def format_number(value: float | None) -> str:
    """Return a whole number with thousands separators, such as 1,204."""
    return f"{value:,.0f}" if _is_finite(value) else MISSING


def format_minutes(value: float | None) -> str:
    """Return a duration such as 7.5 min, below a minute in seconds, and below a tenth of a second in milliseconds."""
    if not _is_finite(value):
        return MISSING
    seconds = 60 * value
    if value < 1 and (seconds >= 10 or value == 0):
        return f"{seconds:.0f} s"
    if value < 1:
        return f"{seconds:.1f} s" if seconds >= 0.1 else format_milliseconds(1000 * seconds)
    return f"{value:.1f} min" if value < 10 else f"{value:,.0f} min"


def format_milliseconds(value: float | None) -> str:
    """Return a duration such as 412 ms, with one decimal if it is below 20 ms."""
    if not _is_finite(value):
        return MISSING
    return f"{value:.1f} ms" if abs(value) < 20 else f"{value:,.0f} ms"


def format_seconds(milliseconds: float | None) -> str:
    """Return a duration in milliseconds as seconds, such as 1.33 s."""
    return f"{milliseconds / 1000:.2f} s" if _is_finite(milliseconds) else MISSING


def format_percent(value: float | None) -> str:
    """Return a fraction as a percentage, such as 93 %."""
    return f"{100 * value:.0f} %" if _is_finite(value) else MISSING


def format_grouped_count(count: int, singular: str, plural: str | None = None) -> str:
    """Return a count with its noun: 1 answer, 2 answers; the default plural adds an s."""
    return f"{format_number(count)} {singular if count == 1 else plural or singular + 's'}"


def format_age(at_ms: float | None) -> str:
    """Return roughly how long ago a time was, such as 5 min ago."""
    if not _is_finite(at_ms):
        return MISSING
    age_s = max(0.0, time.time() - at_ms / 1000)
    if age_s < 60:
        return "just now"
    for limit_s, unit_s, unit in ((3600, 60, "min"), (86_400, 3600, "h")):
        if age_s < limit_s:
            return f"{age_s // unit_s:.0f} {unit} ago"
    return format_grouped_count(int(age_s // 86_400), "day") + " ago"


def format_time(at_ms: float | None) -> str:
    """Return a date and time such as 16 Nov 2026, 04:18 UTC."""
    if not _is_finite(at_ms):
        return MISSING
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{at.day} {at:%b %Y, %H:%M} UTC"


def segment_letter(segment: int) -> str:
    """Return the letter by which pages name a segment: A for 0, B for 1, and so on."""
    return chr(ord("A") + segment)


def _is_finite(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


FILTERS: dict[str, Callable[..., str]] = {
    "number": format_number,
    "minutes": format_minutes,
    "milliseconds": format_milliseconds,
    "seconds": format_seconds,
    "percent": format_percent,
    "age": format_age,
    "time": format_time,
    "letter": segment_letter,
    "count_of": format_grouped_count,
}
"""The filters of the page templates."""
