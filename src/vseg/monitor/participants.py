"""Summaries of each session: counts, medians, and reasons to check it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vseg.monitor.answers import SESSION_SUMS, Answers, LiveSession
from vseg.monitor.summaries import NO_TIMING, Share, Timing, approximate_session_medians, session_medians
from vseg.store.studies import StudyRow
from vseg.study.sections import TimingSection

# A session is worth checking beyond these limits.
MIN_CATCH_SHARE, MIN_CATCH_TRIALS = 0.75, 4
MIN_MEDIAN_RT_MS = 250
MAX_SAME_SHARE, MIN_ANSWERS = 0.95, 40
MAX_FLAGGED_SHARE = 0.2
MIN_REPEATS, GUESSING_P = 30, 0.05
MAX_CHANCE = 0.9  # above, nearly all answers are the same, and agree whatever was shown
MIN_REFRESH_HZ = 50
TOO_FAST = (
    "All answers arrived in less time than the trials take to be shown, as if a program had sent them; vseg gives no "
    "completion code then."
)


@dataclass(frozen=True)
class ParticipantSummary:
    """One session of a participant; `reasons` are sentences about why it is worth checking, empty if it is fine.

    `minutes` run from the beginning to the end, or to the last answer; `flagged` counts answers to trials that were
    not shown right; `median_rt_ms` and `same_share` are those of the answers that count.
    """

    participant: str
    session: str
    status: str
    simulated: bool
    started_at_ms: int
    finished_at_ms: int | None
    last_at_ms: int
    minutes: float
    images: list[str]
    answers: int
    used: int
    flagged: int
    catch: Share
    practice: Share
    median_rt_ms: float | None
    same_share: float | None
    consistency: Share
    chance: float | None
    timing: Timing
    reasons: list[str]


def summarise_participants(study: StudyRow, answers: Answers) -> list[ParticipantSummary]:
    """Return a summary of each session that is not withdrawn, in the order in which they began."""
    timing = study.study.timing
    return answers.get_or_compute("participants", lambda: list(_summarise_sessions(answers, timing)))


def summarise_participant(study: StudyRow, answers: Answers, participant: str) -> ParticipantSummary:
    """Return the summary of a participant's last session; raise `NotFound` for an unknown participant."""
    return summarise_participants(study, answers)[answers.session_indices(participant)[-1]]


@dataclass(frozen=True)
class SessionSums:
    """Counts and medians of each session, as columns in the order of `Answers.sessions`.

    `repeats` are answers to pairs that were answered before, `alike` those that agree with the earlier ones, and
    `chance` is the agreement expected from guessing.
    """

    answers: NDArray[np.int64]
    used: NDArray[np.int64]
    same: NDArray[np.int64]
    flagged: NDArray[np.int64]
    catch_right: NDArray[np.int64]
    catch: NDArray[np.int64]
    practice_right: NDArray[np.int64]
    practice: NDArray[np.int64]
    alike: NDArray[np.float64]
    repeats: NDArray[np.int64]
    chance: NDArray[np.float64]
    median_rt_ms: NDArray[np.float64]
    median_off_ms: NDArray[np.float64]
    within_half_frame: NDArray[np.int64]
    dropped: NDArray[np.int64]
    refresh_hz: NDArray[np.float64]


def sum_sessions(answers: Answers) -> SessionSums:
    """Return the sums of all sessions; computed once for each version of the answers."""
    return answers.get_or_compute(SESSION_SUMS, lambda: _update_sums(answers))


def _update_sums(answers: Answers) -> SessionSums:
    """Sum only the sessions that have changed since the previous version."""
    if answers.previous is None:
        return _compute_sums(answers)
    previous, changed = answers.previous
    new = _compute_sums(answers.select(np.flatnonzero(changed[answers.session])))
    columns = {}
    for name, values in vars(new).items():
        unchanged = np.zeros(len(values), values.dtype)
        unchanged[: len(previous.answers)] = vars(previous)[name]
        columns[name] = np.where(changed, values, unchanged)
    return SessionSums(**columns)


def timing_errors_ms(answers: Answers) -> NDArray[np.float32]:
    """Return |measured - planned| duration of cue or image of each trial, whichever is larger."""
    errors: NDArray[np.float32] = answers.get_or_compute(
        "timing errors", lambda: np.maximum(np.abs(answers.cue_off_ms), np.abs(answers.image_off_ms))
    )
    return errors


def _compute_sums(answers: Answers) -> SessionSums:
    sessions = len(answers.sessions)

    def count(rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(answers.session[rows], minlength=sessions)

    session, errors_ms = answers.session, timing_errors_ms(answers)
    total, used, same = (
        np.bincount(session, minlength=sessions),
        count(answers.used),
        count(answers.used & answers.same),
    )
    right = answers.correct == 1
    has_right_answer = answers.correct >= 0
    catch = answers.catch & ~answers.flagged  # one that was not shown right says nothing about attention
    alike, repeats = _count_repeats(answers, sessions)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = same / used
        refresh = np.bincount(session, weights=answers.refresh_hz, minlength=sessions) / total
    dropped = np.flatnonzero(answers.frames_dropped)
    return SessionSums(
        answers=total,
        used=used,
        same=same,
        flagged=count(answers.flagged),
        catch_right=count(catch & right),
        catch=count(catch & has_right_answer),
        practice_right=count(answers.practice & right),
        practice=count(answers.practice & has_right_answer),
        alike=alike,
        repeats=repeats,
        chance=share**2 + (1 - share) ** 2,
        median_rt_ms=session_medians(session[answers.used], answers.rt_ms[answers.used], sessions),
        median_off_ms=approximate_session_medians(session, errors_ms, sessions),
        within_half_frame=count(errors_ms * answers.refresh_hz <= 500),
        dropped=np.bincount(
            session[dropped], weights=answers.frames_dropped[dropped], minlength=sessions
        ).astype(np.int64),
        refresh_hz=refresh,
    )


def _count_repeats(answers: Answers, sessions: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return for each session how many repeats agree with earlier answers to the same pair, and how many there are.

    Of n answers to a pair, k of them 'same', n-1 are repeats. Their agreement is the probability that two of the n
    answers agree, so that the order of the answers does not matter.
    """
    rows = answers.used
    key = answers.session[rows].astype(np.int64)
    key *= len(answers.images)
    key += answers.image[rows]
    key *= len(answers.layout) ** 2
    key += answers.cells[rows]
    key <<= 1
    key += answers.same[rows]
    key.sort()
    pair = key >> 1
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    n = np.diff(first, append=len(pair))
    repeated = np.flatnonzero(n > 1)
    if not len(repeated):
        return np.zeros(sessions), np.zeros(sessions, np.int64)
    k = np.add.reduceat(key & 1, first)[repeated]
    n = n[repeated]
    session = pair[first[repeated]] // (len(answers.images) * len(answers.layout) ** 2)
    agreement = (k * (k - 1) + (n - k) * (n - k - 1)) / (n * (n - 1))
    alike = np.bincount(session, weights=(n - 1) * agreement, minlength=sessions).astype(np.float64)
    return alike, np.bincount(session, weights=n - 1, minlength=sessions).astype(np.int64)


def _summarise_sessions(answers: Answers, timing: TimingSection) -> Iterator[ParticipantSummary]:
    columns = {name: column.tolist() for name, column in vars(sum_sessions(answers)).items()}
    guessing = _detect_guessing(sum_sessions(answers)).tolist()
    for index, session in enumerate(answers.sessions):
        sums = {name: column[index] for name, column in columns.items()}
        summary = _summarise_session(session, sums)
        if not session.simulated and timing.is_too_fast(
            summary.answers, session.started_at_ms, session.answered_at_ms
        ):
            summary.reasons.append(TOO_FAST)
        summary.reasons.extend(_reasons_to_check(summary, guessing[index]))
        yield summary


def _summarise_session(session: LiveSession, sums: dict[str, float]) -> ParticipantSummary:
    total, used = int(sums["answers"]), int(sums["used"])
    timing = NO_TIMING
    if total:
        timing = Timing(
            median_off_ms=round(sums["median_off_ms"], 1),
            within_half_frame=round(sums["within_half_frame"] / total, 4),
            late=round(sums["flagged"] / total, 4),
            dropped_per_100=round(100 * sums["dropped"] / total, 2),
            refresh_hz=round(sums["refresh_hz"], 1),
        )
    return ParticipantSummary(
        participant=session.participant,
        session=session.name,
        status=session.status,
        simulated=session.simulated,
        started_at_ms=session.started_at_ms,
        finished_at_ms=session.finished_at_ms,
        last_at_ms=session.last_at_ms,
        minutes=round(((session.finished_at_ms or session.last_at_ms) - session.started_at_ms) / 60_000, 4),
        images=[unit.image for unit in session.units],
        answers=total,
        used=used,
        flagged=int(sums["flagged"]),
        catch=Share.from_counts(sums["catch_right"], sums["catch"]),
        practice=Share.from_counts(sums["practice_right"], sums["practice"]),
        median_rt_ms=round(sums["median_rt_ms"], 1) if used else None,
        same_share=round(sums["same"] / used, 4) if used else None,
        consistency=Share.from_counts(sums["alike"], sums["repeats"]),
        chance=round(sums["chance"], 4) if used else None,
        timing=timing,
        reasons=[],
    )


def _reasons_to_check(summary: ParticipantSummary, is_guessing: bool) -> Iterator[str]:
    catch, median, same = summary.catch, summary.median_rt_ms, summary.same_share
    if catch.value is not None and catch.of >= MIN_CATCH_TRIALS and catch.value < MIN_CATCH_SHARE:
        yield f"Only {catch.right} of {catch.of} attention checks (catch trials) were answered right."
    if median is not None and median < MIN_MEDIAN_RT_MS:
        yield f"Half of the answers came within {median:.0f} ms, faster than people can look and decide."
    if same is not None and summary.used >= MIN_ANSWERS:
        if same > MAX_SAME_SHARE:
            yield f"{same:.0%} of the answers were “same”."
        elif same < 1 - MAX_SAME_SHARE:
            yield f"{1 - same:.0%} of the answers were “different”."
    if summary.timing.late is not None and summary.timing.late > MAX_FLAGGED_SHARE:
        yield f"{summary.timing.late:.0%} of the trials were not shown right (late, hidden or in a small window)."
    if is_guessing:
        yield (
            f"Repeated pairs were answered alike {summary.consistency.right} of {summary.consistency.of} times, "
            f"no better than guessing ({summary.chance:.0%})."
        )
    if summary.timing.refresh_hz is not None and summary.timing.refresh_hz < MIN_REFRESH_HZ:
        yield f"The screen showed only {summary.timing.refresh_hz:.0f} pictures a second."


def _detect_guessing(sums: SessionSums) -> NDArray[np.bool_]:
    """Return for each session whether its repeats agree no better than by guessing (binomial test, one-sided)."""
    from scipy.special import bdtrc

    testable = (sums.repeats >= MIN_REPEATS) & (sums.chance <= MAX_CHANCE)
    guessing = np.zeros(len(testable), np.bool_)
    alike = np.rint(sums.alike[testable])
    # P(X >= alike) = P(X > alike - 1); it is 1 if none are alike.
    p = np.where(alike > 0, bdtrc(alike - 1, sums.repeats[testable], sums.chance[testable]), 1.0)
    guessing[testable] = p > GUESSING_P
    return guessing
