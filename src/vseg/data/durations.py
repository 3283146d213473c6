"""How long trials and sessions take, and reaction times; every rule is here, for Python, export and dashboard.

- The duration of a trial is its presentation (the dots alone, then the image with the dots, as measured) plus the
  reaction time. Pauses between trials are not part of it.
- Medians are those of the answers that count, so that practice and catch trials, and trials that were interrupted or
  not shown correctly, are left out. Their 95 % interval lies between two of the sorted values and assumes nothing about
  the distribution (`median_ranks`); for a participant it is over answers, for a study over participants' medians.
- The engaged time is the number of all answers, those that do not count included, times the median duration of a
  trial. Breaks, calibration, instructions, pauses between trials and a long absence within one trial are not part of
  it. The paper's 27 minutes are 5 x 242 trials of 1.33 s.
- The total time of a session runs from its beginning to its end, or to the last record if it has not ended, by the
  server's clock; breaks and interruptions are part of it.
"""

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.atomic_files import atomic_write
from vseg._support.text import format_count
from vseg.data.dataset import Dataset
from vseg.data.file_reading import read_rows
from vseg.data.responses import Responses
from vseg.data.tables import missing_data_error
from vseg.errors import InvalidInput

LEVEL = 0.95
MIN_VALUES = 6  # below, the smallest and the largest value enclose the median with less than this probability
TRIAL_COLUMNS = ("participant", "used", "rt_ms", "cue_ms", "image_ms")
SESSION_COLUMNS = ("participant", "status", "minutes")
TABLE_COLUMNS = (
    "participant", "answers", "answers_used", "median_rt_ms", "rt_low_ms", "rt_high_ms", "median_trial_ms",
    "trial_low_ms", "trial_high_ms", "engaged_minutes", "minutes",
)  # fmt: skip


@dataclass(frozen=True)
class MedianEstimate:
    """A median and its 95 % interval; all None without values, the ends None below six values."""

    median: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Durations:
    """The times of one participant.

    Attributes
    ----------
    answers, answers_used : int
        All answers, and those that count.
    rt_ms, trial_ms : MedianEstimate
        Reaction time and duration of a trial, in milliseconds.
    engaged_minutes : float or None
        The number of answers times the median duration of a trial.
    minutes : float or None
        The total time of all sessions; None if it is not stored.
    completed : bool
        Whether a session was completed; True if it is not stored.
    """

    answers: int
    answers_used: int
    rt_ms: MedianEstimate
    trial_ms: MedianEstimate
    engaged_minutes: float | None
    minutes: float | None
    completed: bool


@dataclass(frozen=True)
class StudyDurations:
    """Medians over participants, with 95 % intervals over participants.

    Attributes
    ----------
    participants, completed : int
        Participants with answers that count, and those of them who completed a session.
    rt_ms, trial_ms : MedianEstimate
        Of all these participants' medians.
    engaged_minutes, minutes : MedianEstimate
        Of those who completed a session.
    """

    participants: int
    completed: int
    rt_ms: MedianEstimate
    trial_ms: MedianEstimate
    engaged_minutes: MedianEstimate
    minutes: MedianEstimate

    def __str__(self) -> str:
        if self.rt_ms.median is None:
            return ""
        parts = []
        if self.trial_ms.median is not None:
            parts.append(f"trials take {_format_seconds(self.trial_ms)}")
        parts.append(f"reaction times are {_format_seconds(self.rt_ms)}")
        over = f"median of {format_count(self.participants, 'participant')}"
        level = f", {LEVEL:.0%} intervals" if self.rt_ms.low is not None else ""
        text = f"{' and '.join(parts)} ({over}{level})"
        if (engaged := self.engaged_minutes.median) is not None:
            whole = self.minutes.median
            # Simulated participants who do not wait are engaged for longer than their sessions last.
            total = f" of {whole:.3g}" if whole is not None and whole >= engaged else ""
            text += f"; participants were engaged for {engaged:.3g}{total} minutes (medians)"
        return f"{text[0].upper()}{text[1:]}."


@dataclass(frozen=True, eq=False)
class DurationTable:
    """The times of each participant and of the study; `str` describes the study in a sentence.

    Attributes
    ----------
    participants : dict of Durations
        The times of each participant, by name.
    study : StudyDurations
        Medians over participants.
    """

    participants: dict[str, Durations]
    study: StudyDurations

    def __str__(self) -> str:
        return str(self.study)

    def select(self, names: Collection[str]) -> "DurationTable":
        """Return the table of these participants, with the study's medians over them."""
        those = {name: own for name, own in self.participants.items() if name in names}
        return DurationTable(those, summarise_study(those.values()))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each participant: what `save` writes."""
        return [
            {
                "participant": name,
                "answers": own.answers,
                "answers_used": own.answers_used,
                **describe_median("rt", own.rt_ms),
                **describe_median("trial", own.trial_ms),
                "engaged_minutes": own.engaged_minutes,
                "minutes": own.minutes,
            }
            for name, own in self.participants.items()
        ]

    def save(self, path: str | Path) -> None:
        """Write a CSV table with one row per participant; times that are not known are empty cells."""
        with atomic_write(path, newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, TABLE_COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows())


def measure_durations(data: str | Path | Responses, *, presentation_ms: float | None = None) -> DurationTable:
    """Return reaction times, durations of trials, engaged and total time, of each participant and of the study.

    Parameters
    ----------
    data : str, Path or Responses
        A folder written by `vseg export` or `vseg import`, a CSV or Parquet table of responses, or Responses.
    presentation_ms : float, optional
        How long a trial shows something before it asks, such as 600, where the data do not say it. An export has the
        measured durations; without either, durations of trials and engaged times are None.

    Returns
    -------
    DurationTable
        With `participants`, `study`, `rows()` and `save(path)`. See `vseg.data.durations` for what is left out.

    Examples
    --------
    >>> from vseg import Grid
    >>> rt_ms = [700, 710, 720, 730, 740, 750, 2000]
    >>> answers = Responses(Grid(3), [0] * 7, [1] * 7, [1] * 7, participant="Ann", rt_ms=rt_ms)
    >>> table = measure_durations(answers, presentation_ms=600)
    >>> table.participants["Ann"].trial_ms
    MedianEstimate(median=1330.0, low=1300.0, high=2600.0)
    >>> print(table)
    Trials take 1.33 s and reaction times are 0.73 s (median of 1 participant); participants were engaged for 0.155 minutes (medians).
    """  # noqa: E501
    if presentation_ms is not None and not 0 <= presentation_ms < np.inf:
        raise InvalidInput(f"The presentation of a trial takes 0 ms or more, got {presentation_ms!r}.")
    tables, sessions = _open_tables(data)
    counts: dict[str, int] = {}
    times: dict[str, list[NDArray[np.float64]]] = {}
    for participant, answers, used in tables:
        counts[participant] = counts.get(participant, 0) + answers
        times.setdefault(participant, []).append(used)
    participants = {}
    for name in sorted(counts):
        rt_ms, shown_ms = np.concatenate(times[name], axis=1)
        if presentation_ms is not None:
            shown_ms = np.where(np.isnan(shown_ms), presentation_ms, shown_ms)
        minutes, completed = sessions.get(name, (None, True))
        participants[name] = _summarise(counts[name], rt_ms, trial_ms(shown_ms, rt_ms), minutes, completed)
    return DurationTable(participants, summarise_study(participants.values()))


def trial_ms(presentation_ms: ArrayLike, rt_ms: ArrayLike) -> NDArray[np.float64]:
    """Return the duration of each trial: its presentation (the dots alone, then the image) plus the reaction time."""
    return np.asarray(presentation_ms, np.float64) + np.asarray(rt_ms, np.float64)


def engaged_minutes(answers: int, median_trial_ms: float | None) -> float | None:
    """Return the time spent in trials: the number of answers times the median duration of a trial.

    Examples
    --------
    >>> engaged_minutes(5 * 242, 1330)
    26.822
    """
    return None if median_trial_ms is None else round(answers * median_trial_ms / 60_000, 3)


def session_minutes(started_at_ms: int, finished_at_ms: int | None, last_at_ms: int) -> float:
    """Return the total time of a session: to its end, or to its last record if it has not ended."""
    return round(((finished_at_ms or last_at_ms) - started_at_ms) / 60_000, 4)


def median_ranks(counts: ArrayLike) -> NDArray[np.int64]:
    """Return the rank k, from 1, such that the k-th smallest and k-th largest of n values enclose the median.

    With n independent values, this interval contains the median of their distribution with a probability of at least
    95 %, whatever the distribution. The rank is 0 for n below 6, where no such interval exists.

    Examples
    --------
    >>> median_ranks([5, 6, 15, 100])
    array([ 0,  1,  4, 40])
    """
    from scipy.special import bdtr, bdtrik

    n = np.asarray(counts, np.int64)
    tail, enough = (1 - LEVEL) / 2, np.maximum(n, MIN_VALUES)
    rank = np.ceil(bdtrik(tail, enough, 0.5))
    # The number of values below the median is binomial; P(fewer than k) must not exceed the tail, despite rounding.
    rank -= bdtr(rank - 1, enough, 0.5) > tail
    return np.where(n < MIN_VALUES, 0, rank).astype(np.int64)


def estimate_median(values: ArrayLike) -> MedianEstimate:
    """Return the median of the known values and its 95 % interval.

    Examples
    --------
    >>> estimate_median([3, 1, 2, 4, 6, 5])
    MedianEstimate(median=3.5, low=1.0, high=6.0)
    """
    array = np.asarray(values, np.float64)
    ordered = np.sort(array[~np.isnan(array)])
    if not len(ordered):
        return MedianEstimate()
    rank = int(median_ranks(len(ordered)))
    ends = (float(ordered[rank - 1]), float(ordered[-rank])) if rank else (None, None)
    return MedianEstimate(float(np.median(ordered)), *ends)


def describe_median(name: str, estimate: MedianEstimate) -> dict[str, float | None]:
    """Return the columns of a median in milliseconds: median_NAME_ms, NAME_low_ms and NAME_high_ms."""
    return {
        column: None if value is None else round(value, 1)
        for column, value in (
            (f"median_{name}_ms", estimate.median),
            (f"{name}_low_ms", estimate.low),
            (f"{name}_high_ms", estimate.high),
        )
    }


def summarise_study(participants: Iterable[Durations]) -> StudyDurations:
    """Return the medians over participants who have answers that count."""
    those = [own for own in participants if own.answers_used]
    completed = [own for own in those if own.completed]

    def over(values: Iterable[float | None]) -> MedianEstimate:
        return estimate_median([np.nan if value is None else value for value in values])

    return StudyDurations(
        participants=len(those),
        completed=len(completed),
        rt_ms=over(own.rt_ms.median for own in those),
        trial_ms=over(own.trial_ms.median for own in those),
        engaged_minutes=over(own.engaged_minutes for own in completed),
        minutes=over(own.minutes for own in completed),
    )


def _summarise(
    answers: int,
    rt_ms: NDArray[np.float64],
    duration_ms: NDArray[np.float64],
    minutes: float | None,
    completed: bool,
) -> Durations:
    """Return the times of a participant from those of the answers that count."""
    trial = estimate_median(duration_ms)
    return Durations(
        answers, len(rt_ms), estimate_median(rt_ms), trial, engaged_minutes(answers, trial.median), minutes, completed
    )  # fmt: skip


ParticipantTimes = Iterator[tuple[str, int, NDArray[np.float64]]]
"""A participant, their answers in a table, and (2, n) reaction and presentation times of those that count."""


def _open_tables(
    data: str | Path | Responses,
) -> tuple[ParticipantTimes, Mapping[str, tuple[float | None, bool]]]:
    """Return the times in the data, and the total minutes and completion of each participant, where they are stored."""
    if isinstance(data, Responses):
        return _split_responses(data), {}
    path = Path(data)
    if path.is_dir():
        dataset = Dataset(path)
        rows = (each for table in dataset.response_tables for each in _read_times(table))
        return rows, _read_sessions(dataset.sessions_table)
    if not path.is_file():
        raise missing_data_error(path)
    return _read_times(path), {}


def _split_responses(responses: Responses) -> ParticipantTimes:
    for name in responses.participants:
        rt_ms = responses.rt_ms[responses.participant == name]
        yield name, len(rt_ms), np.stack([rt_ms, np.full(len(rt_ms), np.nan)])


def _read_times(path: Path) -> ParticipantTimes:
    """Yield the times of each participant in a table; without a column `used`, all rows count."""
    counts: dict[str, int] = {}
    used: dict[str, list[tuple[float, float]]] = {}
    for row in read_rows(path, TRIAL_COLUMNS, required=()):
        name = row.get("participant", "anonymous")
        counts[name] = counts.get(name, 0) + 1
        own = used.setdefault(name, [])
        if row.get("used", "1").strip().lower() in ("1", "true", "1.0"):
            own.append(
                (_read_number(row, "rt_ms"), _read_number(row, "cue_ms") + _read_number(row, "image_ms"))
            )
    for name, times in used.items():
        yield name, counts[name], np.array(times, np.float64).reshape(-1, 2).T


def _read_sessions(path: Path | None) -> dict[str, tuple[float | None, bool]]:
    """Return the total minutes of each participant's sessions, and whether one was completed."""
    sessions: dict[str, tuple[float | None, bool]] = {}
    for row in read_rows(path, SESSION_COLUMNS) if path is not None else ():
        earlier, completed = sessions.get(row["participant"], (0.0, False))
        minutes = (earlier or 0.0) + _read_number(row, "minutes")
        sessions[row["participant"]] = minutes, completed or row["status"] == "completed"
    return sessions


def _read_number(row: Mapping[str, str], name: str) -> float:
    """Return a number of a row; NaN if there is no such column, or no number in it."""
    try:
        return float(row.get(name, ""))
    except ValueError:
        return np.nan


def _format_seconds(estimate: MedianEstimate) -> str:
    ends = "" if estimate.low is None else f" [{estimate.low / 1000:.2f}, {(estimate.high or 0) / 1000:.2f}]"
    return f"{(estimate.median or 0) / 1000:.2f} s{ends}"
