"""Summaries of numbers for pages and programs: shares, distributions, timing; `asdict` makes them JSON."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vseg.data.durations import median_ranks

ROUND_STEPS = (1, 2, 2.5, 5, 10)
BINS = 30
STEP = 0.1  # resolution of medians
SORTED_STEPS, COUNTED_STEPS = 1 << 22, 256  # largest values in steps; a counted median is at most 25.5
LAST_EDGE_QUANTILE = 0.99  # of the values lie below the last edge; the last bin contains the rest


@dataclass(frozen=True)
class Share:
    """`right` of `of` cases; `value` is their ratio, None if `of` is 0."""

    right: int
    of: int
    value: float | None

    @classmethod
    def from_counts(cls, right: float, total: float) -> "Share":
        """Return the share of two counts."""
        return cls(round(right), round(total), round(float(right / total), 4) if total else None)


@dataclass(frozen=True)
class Distribution:
    """A histogram and quantiles: counts between `edges`, with values beyond the last edge in the last bin.

    Without values the quantiles are None, and there are no edges.
    """

    edges: list[float]
    counts: list[int]
    median: float | None
    p10: float | None
    p90: float | None
    unit: str

    @classmethod
    def from_values(cls, values: NDArray, unit: str) -> "Distribution":
        """Return the distribution of finite values from 0 up, in bins of a round width."""
        if not len(values):
            return cls([], [], None, None, None, unit)
        # Sorting float32 takes a third of the time of np.quantile and np.histogram.
        ordered = np.sort(values.astype(np.float32))
        p10, median, p90, top = (quantile(ordered, share) for share in (0.1, 0.5, 0.9, LAST_EDGE_QUANTILE))
        step = round_up_step(top / BINS)
        edges = [round(step * number, 6) for number in range((int(np.ceil(top / step)) or 1) + 1)]
        below = [0, *np.searchsorted(ordered, np.array(edges[1:-1], np.float32)).tolist(), len(ordered)]
        counts = np.diff(below).tolist()
        return cls(edges, counts, round(median, 4), round(p10, 4), round(p90, 4), unit)


@dataclass(frozen=True)
class Timing:
    """How accurately trials were shown; all None without trials.

    Attributes
    ----------
    median_off_ms : float or None
        Median of |measured - planned| duration of cue or image, whichever is larger.
    within_half_frame : float or None
        Share of trials whose cue and image lasted as planned, to half a frame.
    late : float or None
        Share of answers that were flagged because their trial was not shown right.
    dropped_per_100 : float or None
        Dropped frames in a hundred trials.
    refresh_hz : float or None
        Median refresh rate.
    """

    median_off_ms: float | None
    within_half_frame: float | None
    late: float | None
    dropped_per_100: float | None
    refresh_hz: float | None


NO_TIMING = Timing(None, None, None, None, None)


def quantile(ordered: NDArray[np.float32], share: float) -> float:
    """Return a quantile of sorted values, linear between neighbours."""
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (ordered[high] - ordered[low]) * (position - low))


def round_up_step(rough: float) -> float:
    """Round up to 1, 2, 2.5 or 5 times a power of ten.

    Examples
    --------
    >>> round_up_step(0.03), round_up_step(61)
    (0.05, 100.0)
    """
    if rough <= 0:
        return 1.0
    scale = 10.0 ** np.floor(np.log10(rough))
    return float(next(step * scale for step in ROUND_STEPS if step * scale >= rough * (1 - 1e-9)))


def session_medians(
    session: NDArray[np.integer], values: NDArray[np.float64], sessions: int
) -> NDArray[np.float64]:
    """Return the median of each session to 0.1, by one sort of session and value; NaN without values."""
    return session_median_intervals(session, values, sessions)[0]


def session_median_intervals(
    session: NDArray[np.integer], values: NDArray[np.float64], sessions: int
) -> NDArray[np.float64]:
    """Return (3, sessions): the median of each session to 0.1 and the ends of its 95 % interval.

    They are NaN without values; the ends also where there are too few (see `vseg.data.durations.median_ranks`).
    """
    key = session.astype(np.int64)
    key *= SORTED_STEPS
    key += np.minimum(values * (1 / STEP) + 0.5, SORTED_STEPS - 1).astype(np.int64)
    key.sort()
    counts = np.bincount(session, minlength=sessions)
    start = np.cumsum(counts) - counts
    has = counts > 0
    estimates = np.full((3, sessions), np.nan)
    low, high = ((start + np.maximum(counts - 1, 0) // 2)[has], (start + counts // 2)[has])
    estimates[0, has] = (key[low] % SORTED_STEPS + key[high] % SORTED_STEPS) / 2 * STEP
    rank = median_ranks(counts)
    has_interval = rank > 0
    first, last = start + rank - 1, start + counts - rank
    estimates[1:, has_interval] = key[np.stack([first, last])[:, has_interval]] % SORTED_STEPS * STEP
    return estimates


def approximate_session_medians(
    session: NDArray[np.int32], values: NDArray[np.float32], sessions: int
) -> NDArray[np.float64]:
    """Return the median of each session to 0.1 up to 25.5, by counting; NaN without values."""
    step = np.minimum(values * np.float32(1 / STEP) + np.float32(0.5), COUNTED_STEPS - 1).astype(np.int32)
    table = np.bincount(session * COUNTED_STEPS + step, minlength=sessions * COUNTED_STEPS).reshape(
        sessions, COUNTED_STEPS
    )
    below = np.cumsum(table, axis=1)
    median = (below * 2 < below[:, -1:]).sum(axis=1) * STEP
    return np.where(below[:, -1] > 0, median, np.nan)
