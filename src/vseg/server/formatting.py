"""Numbers and times as people read them: 1,204 · 7.5 min · 412 ms · 93 % · 5 min ago."""

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

NOTHING = "–"


def number(value: float | None) -> str:
    """1,204."""
    return NOTHING if _missing(value) else f"{value:,.0f}"


def minutes(value: float | None) -> str:
    """7.5 min; below a minute, seconds."""
    if value is None or _missing(value):
        return NOTHING
    if value < 1:
        return f"{60 * value:.0f} s"
    return f"{value:.1f} min" if value < 10 else f"{value:,.0f} min"


def milliseconds(value: float | None) -> str:
    """412 ms; small ones with a decimal."""
    if value is None or _missing(value):
        return NOTHING
    return f"{value:.1f} ms" if abs(value) < 20 else f"{value:,.0f} ms"


def percent(value: float | None) -> str:
    """93 %."""
    return NOTHING if value is None or _missing(value) else f"{100 * value:.0f} %"


def share(part: float, of: float) -> float | None:
    """A part of a whole, or None of nothing."""
    return part / of if of else None


def plural(count: int, one: str, many: str | None = None) -> str:
    """1 answer, 2 answers."""
    return f"{number(count)} {one if count == 1 else many or f'{one}s'}"


def ago(at_ms: float | None) -> str:
    """How long ago a moment was, roughly."""
    if at_ms is None or _missing(at_ms):
        return NOTHING
    passed_s = max(0.0, time.time() - at_ms / 1000)
    for most, unit_s, unit in ((60, 0, ""), (3600, 60, "min"), (86_400, 3600, "h")):
        if passed_s < most:
            return f"{passed_s // unit_s:.0f} {unit} ago" if unit_s else "just now"
    return plural(int(passed_s // 86_400), "day") + " ago"


def moment(at_ms: float | None) -> str:
    """16 Nov 2026, 04:18 UTC."""
    if at_ms is None or _missing(at_ms):
        return NOTHING
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{at.day} {at:%b %Y, %H:%M} UTC"


def letter(segment: int) -> str:
    """A, B, C, …: the name of a segment."""
    return chr(ord("A") + segment)


def _missing(value: Any) -> bool:
    return value is None or not math.isfinite(value)


FILTERS: dict[str, Callable[..., str]] = {
    "number": number, "minutes": minutes, "milliseconds": milliseconds, "percent": percent, "ago": ago,
    "moment": moment, "letter": letter, "plural": plural,
}  # fmt: skip
