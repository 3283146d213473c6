"""The shapes in which numbers reach pages and programs: shares, distributions, timing. JSON by `asdict`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NICE = (1, 2, 2.5, 5, 10)
BINS = 30
STEP = 0.1  # of medians
SORTED_STEPS, COUNTED_STEPS = 1 << 22, 256  # counted ones are told as 25.5 beyond
ALMOST_ALL = 0.99  # of the values lie below the last edge; the last bin takes the rest


@dataclass(frozen=True)
class Share:
    """`right` of `of`; `value` is None where there was nothing to count."""

    right: int
    of: int
    value: float | None

    @classmethod
    def counted(cls, right: float, of: float) -> "Share":
        """From two counts."""
        return cls(round(right), round(of), round(float(right / of), 4) if of else None)


@dataclass(frozen=True)
class Distribution:
    """Counts between `edges` (one more than counts); values beyond the last edge are in the last bin.

    The quantiles are None where there are no values, and there are no edges then.
    """

    edges: list[float]
    counts: list[int]
    median: float | None
    p10: float | None
    p90: float | None
    unit: str

    @classmethod
    def of(cls, values: NDArray, unit: str) -> "Distribution":
        """Of finite values from 0 up, in bins of a round width."""
        if not len(values):
            return cls([], [], None, None, None, unit)
        # A sort of short floats takes a third of the time of quantiles and counts.
        ordered = np.sort(values.astype(np.float32))
        p10, median, p90, top = (quantile(ordered, share) for share in (0.1, 0.5, 0.9, ALMOST_ALL))
        step = round_step(top / BINS)
        edges = [round(step * number, 6) for number in range((int(np.ceil(top / step)) or 1) + 1)]
        below = [0, *np.searchsorted(ordered, np.array(edges[1:-1], np.float32)).tolist(), len(ordered)]
        counts = np.diff(below).tolist()
        return cls(edges, counts, round(median, 4), round(p10, 4), round(p90, 4), unit)


@dataclass(frozen=True)
class Timing:
    """How well trials were shown; None throughout where there are none.

    Attributes
    ----------
    median_off_ms : the median of |achieved - asked|, of cue or image, whichever was further off
    within_half_frame : share of trials whose cue and image lasted as asked, to half a frame
    late : share of answers that were flagged, since their trial was not shown right
    dropped_per_100 : frames dropped in a hundred trials
    refresh_hz : the median refresh rate
    """

    median_off_ms: float | None
    within_half_frame: float | None
    late: float | None
    dropped_per_100: float | None
    refresh_hz: float | None


NO_TIMING = Timing(None, None, None, None, None)


def quantile(ordered: NDArray[np.float32], share: float) -> float:
    """The value below which a share of sorted values lies, between two neighbours by their distance."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (ordered[high] - ordered[low]) * (place - low))


def round_step(rough: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten.

    Examples
    --------
    >>> round_step(0.03), round_step(61)
    (0.05, 100.0)
    """
    if rough <= 0:
        return 1.0
    scale = 10.0 ** np.floor(np.log10(rough))
    return float(next(nice * scale for nice in NICE if nice * scale >= rough * (1 - 1e-9)))


def median_of_each(
    session: NDArray[np.int32], values: NDArray[np.float64], number: int
) -> NDArray[np.float64]:
    """Medians to a tenth, by one sort of session and value together; NaN for a session without values."""
    key = session.astype(np.int64)
    key *= SORTED_STEPS
    key += np.minimum(values * (1 / STEP) + 0.5, SORTED_STEPS - 1).astype(np.int64)
    key.sort()
    counts = np.bincount(session, minlength=number)
    start = np.cumsum(counts) - counts
    has = counts > 0
    medians = np.full(number, np.nan)
    low, high = ((start + np.maximum(counts - 1, 0) // 2)[has], (start + counts // 2)[has])
    medians[has] = (key[low] % SORTED_STEPS + key[high] % SORTED_STEPS) / 2 * STEP
    return medians


def rough_median_of_each(
    session: NDArray[np.int32], values: NDArray[np.float32], number: int
) -> NDArray[np.float64]:
    """Medians to a tenth up to a limit, by counting; NaN for a session without values."""
    step = np.minimum(values * np.float32(1 / STEP) + np.float32(0.5), COUNTED_STEPS - 1).astype(np.int32)
    table = np.bincount(session * COUNTED_STEPS + step, minlength=number * COUNTED_STEPS).reshape(
        number, COUNTED_STEPS
    )
    below = np.cumsum(table, axis=1)
    median = (below * 2 < below[:, -1:]).sum(axis=1) * STEP
    return np.where(below[:, -1] > 0, median, np.nan)
