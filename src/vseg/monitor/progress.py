"""The progress of a study: sessions, answers, timing and consistency, for all images and each of them."""

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vseg import store
from vseg.data.durations import StudyDurations
from vseg.designs.precision import advised_answers
from vseg.monitor.answers import MAX_CELLS, Answers
from vseg.monitor.maps import count_pairs_needed
from vseg.monitor.participants import SessionSums, sum_sessions, summarise_durations, timing_errors_ms
from vseg.monitor.summaries import NO_TIMING, Distribution, Share, Timing, quantile
from vseg.store.studies import StudyRow

HOURS, HOUR_MS = 48, 3_600_000


@dataclass(frozen=True)
class ImageProgress:
    """One image: completed and active sessions of those wanted, answers that count, and pairs that maps need.

    With K segments on n locations, penalised maps need at least (K-1)n distinct pairs (`needed`); `advised` is the
    number of answers that the posterior of one observer needs. `observers` is the number of participants with answers;
    1 if the study pools them.
    """

    name: str
    condition: str | None
    wanted: int
    completed: int
    active: int
    answers: int
    distinct_pairs: int
    needed: int
    advised: int
    observers: int

    @property
    def answers_each(self) -> int:
        """The mean number of answers of an observer, which is to be compared with `advised`."""
        return round(self.answers / max(self.observers, 1))


@dataclass(frozen=True)
class _SessionSummary:
    """The fields of `StudyProgress` that depend on the study and its sessions."""

    study: str
    status: str
    started: int
    active: int
    silent: int
    completed: int
    left: int
    ended: int
    withdrawn: int
    wanted: int
    places_left: int


@dataclass(frozen=True)
class _AnswerSummary:
    """The fields of `StudyProgress` that depend on the answers alone."""

    simulated: int
    answers: int
    used: int
    minutes: Distribution
    rt_ms: Distribution
    durations: StudyDurations
    timing: Timing
    catch: Share
    practice: Share
    consistency: Share
    chance: float | None


@dataclass(frozen=True)
class StudyProgress(_AnswerSummary, _SessionSummary):  # the fields of the last base come first
    """The progress of one study; counts are sessions unless said otherwise.

    Attributes
    ----------
    started : int
        All sessions that ever began.
    active, silent : int
        Sessions that have not ended, with records lately and without.
    completed, left, ended, withdrawn : int
        How the other sessions ended.
    wanted, places_left : int
        How many are to complete, and how many can still begin.
    simulated : int
        Sessions of simulated participants.
    answers, used : int
        All answers, and those that count.
    minutes : Distribution
        Durations of completed sessions.
    rt_ms : Distribution
        Reaction times of the answers that count.
    durations : StudyDurations
        Medians over participants: reaction time, duration of a trial, engaged and total minutes.
    timing : Timing
        Timing of all trials.
    catch, practice : Share
        Trials with a known right answer that were answered right.
    consistency : Share
        Answers to a pair answered before that agree with the earlier ones.
    chance : float or None
        The consistency expected from guessing.
    per_hour : list of tuple
        Start of the hour (ms since the epoch) and answers in it, for the last 48 hours.
    images : list of ImageProgress
        Each image of the study.
    """

    per_hour: list[tuple[int, int]]
    images: list[ImageProgress]


def compute_progress(db: store.Database, study: StudyRow, answers: Answers) -> StudyProgress:
    """Return the progress of a study; what depends on the answers alone is computed once for each version of them."""
    counts = store.sessions.count_sessions(db, study)
    statuses = {name: getattr(counts, name) for name in ("completed", "left", "ended", "withdrawn")}
    hour = time.time_ns() // 1_000_000 // HOUR_MS
    return StudyProgress(
        study=study.name,
        status=study.status,
        started=counts.active + sum(statuses.values()),
        active=counts.alive,
        silent=counts.active - counts.alive,
        **statuses,
        wanted=study.study.participants,
        places_left=max(study.study.participants - counts.completed - counts.alive, 0),
        per_hour=answers.get_or_compute(("per hour", hour), lambda: _count_per_hour(answers, hour)),
        images=[
            replace(
                image,
                completed=counts.images[image.name]["completed"],
                active=counts.images[image.name]["alive"],
            )
            for image in answers.get_or_compute("images", lambda: _summarise_images(study, answers))
        ],
        **vars(answers.get_or_compute("progress", lambda: _summarise_answers(answers))),
    )


def _summarise_answers(answers: Answers) -> _AnswerSummary:
    sums = sum_sessions(answers)
    completed = [session for session in answers.sessions if session.status == "completed"]
    minutes = np.array(
        [
            (session.finished_at_ms - session.started_at_ms) / 60_000
            for session in completed
            if session.finished_at_ms is not None
        ]
    )
    repeats = int(sums.repeats.sum())
    return _AnswerSummary(
        simulated=sum(session.simulated for session in answers.sessions),
        answers=len(answers),
        used=int(sums.used.sum()),
        minutes=Distribution.from_values(np.maximum(minutes, 0), "minutes"),
        rt_ms=Distribution.from_values(answers.rt_ms[answers.used], "ms"),
        durations=summarise_durations(answers),
        timing=_summarise_timing(answers, sums),
        catch=Share.from_counts(sums.catch_right.sum(), sums.catch.sum()),
        practice=Share.from_counts(sums.practice_right.sum(), sums.practice.sum()),
        consistency=Share.from_counts(sums.alike.sum(), repeats),
        chance=round(float(np.nansum(sums.chance * sums.repeats) / repeats), 4) if repeats else None,
    )


def _summarise_timing(answers: Answers, sums: SessionSums) -> Timing:
    if not len(answers):
        return NO_TIMING
    total = len(answers)
    return Timing(
        median_off_ms=round(quantile(np.sort(timing_errors_ms(answers)), 0.5), 2),
        within_half_frame=round(int(sums.within_half_frame.sum()) / total, 4),
        late=round(int(sums.flagged.sum()) / total, 4),
        dropped_per_100=round(100 * int(sums.dropped.sum()) / total, 2),
        refresh_hz=round(float(np.nanmedian(sums.refresh_hz)), 1),
    )


def _count_per_hour(answers: Answers, hour: int) -> list[tuple[int, int]]:
    """Count the answers in each of the last hours, by the clocks of the participants."""
    first = hour - HOURS + 1
    recent = answers.shown_at_ms[answers.shown_at_ms >= first * HOUR_MS]
    hours = recent // HOUR_MS - first
    counts = np.bincount(hours[hours < HOURS], minlength=HOURS).tolist()
    return [((first + number) * HOUR_MS, count) for number, count in enumerate(counts)]


def _summarise_images(study: StudyRow, answers: Answers) -> list[ImageProgress]:
    """Return what depends on the answers; the counts of sessions are filled in later."""
    segments = study.study.planned_segments
    counts = np.bincount(answers.image[answers.used], minlength=len(answers.images)).tolist()
    distinct = _count_distinct_pairs(answers).tolist()
    return [
        ImageProgress(
            name=image.name,
            condition=image.condition,
            wanted=study.study.quota(image.name),
            completed=0,
            active=0,
            answers=counts[answers.images.index(image.name)],
            distinct_pairs=distinct[answers.images.index(image.name)],
            needed=count_pairs_needed(answers.layout, segments),
            advised=advised_answers(segments),
            observers=1 if study.study.design.is_pooled else len(answers.list_participants(image.name)),
        )
        for image in study.study.images
    ]


def _count_distinct_pairs(answers: Answers) -> NDArray[np.int64]:
    """Return for each image how many different pairs have an answer that counts."""
    pairs = len(answers.layout) ** 2
    if len(answers.images) * pairs <= MAX_CELLS:
        cell = answers.image[answers.used].astype(np.int32) * pairs + answers.cells[answers.used]
        is_answered = np.bincount(cell, minlength=len(answers.images) * pairs) > 0
        return is_answered.reshape(len(answers.images), pairs).sum(axis=1)
    key = answers.image[answers.used].astype(np.int64)
    key *= pairs
    key += answers.cells[answers.used]
    key.sort()
    first = np.flatnonzero(np.diff(key, prepend=-1))
    return np.bincount(key[first] // pairs, minlength=len(answers.images))


@dataclass(frozen=True)
class ChoiceCounts:
    """How the pairs of an adaptive study came about, in answers that count.

    Attributes
    ----------
    chosen : int
        Answers to chosen pairs.
    fixed : int
        Answers to the fixed pairs at the beginning.
    fallen_back : int
        Answers to fixed pairs that were shown because no choice was ready.
    """

    chosen: int
    fixed: int
    fallen_back: int


def count_choices(study: StudyRow, answers: Answers) -> ChoiceCounts | None:
    """Count the answers to chosen and to fixed pairs; None unless the study is adaptive."""
    if not study.study.design.is_adaptive:
        return None
    return answers.get_or_compute("choice counts", lambda: _count_choices(study, answers))


def _count_choices(study: StudyRow, answers: Answers) -> ChoiceCounts:
    rows = answers.used & ~answers.chosen
    # Each session begins with fixed pairs about each image; sessions that share their answers do so once.
    group = 0 if study.study.design.shared else answers.session[rows].astype(np.int64)
    _, unchosen = np.unique(group * len(answers.images) + answers.image[rows], return_counts=True)
    fixed = int(np.minimum(unchosen, study.study.initial_pairs).sum())
    return ChoiceCounts(int((answers.used & answers.chosen).sum()), fixed, int(unchosen.sum()) - fixed)
