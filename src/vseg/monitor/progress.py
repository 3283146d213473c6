"""How far a study is, at one glance."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg import store
from vseg.monitor.answers import MOST_CELLS, Answers
from vseg.monitor.maps import pairs_wanted
from vseg.monitor.participants import Sums, off_ms, sums
from vseg.monitor.summaries import NO_TIMING, Distribution, Share, Timing, quantile
from vseg.store.studies import StudyRow

HOURS, HOUR_MS = 48, 3_600_000


@dataclass(frozen=True)
class ImageProgress:
    """One image: completed and active sessions of those wanted, its answers that count, and what maps need.

    With K segments on n locations, maps need (K-1)n distinct pairs at least (`needed`), and Kn are `advised`.
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


@dataclass(frozen=True)
class Progress:
    """One study at a glance; counts are sessions.

    Attributes
    ----------
    started : all there ever were; active : alive, heard of lately; silent : begun, but not heard of lately
    completed, left, ended, withdrawn : how the others ended
    wanted, places_left : how many are to complete, and how many can still begin
    answers, used : all answers, and those that count
    minutes : of completed sessions, from beginning to end
    rt_ms, timing : of the answers that count, of all answers
    catch, practice : trials with a known answer that were answered right
    consistency : answers to a pair asked before that are like the earlier ones; chance : what guessing would reach
    simulated : sessions of simulated participants
    per_hour : [hour as epoch ms, answers] of the last 48 hours
    """

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
    simulated: int
    answers: int
    used: int
    minutes: Distribution
    rt_ms: Distribution
    timing: Timing
    catch: Share
    practice: Share
    consistency: Share
    chance: float | None
    per_hour: list[tuple[int, int]]
    images: list[ImageProgress]


def progress(db: store.Database, study: StudyRow, answers: Answers) -> Progress:
    """How far a study is. What depends on the answers alone is counted once for each version of them."""
    counts = store.sessions.count_sessions(db, study)
    statuses = {name: getattr(counts, name) for name in ("completed", "left", "ended", "withdrawn")}
    hour = time.time_ns() // 1_000_000 // HOUR_MS
    return Progress(
        study=study.name,
        status=study.status,
        started=counts.active + sum(statuses.values()),
        active=counts.alive,
        silent=counts.active - counts.alive,
        **statuses,
        wanted=study.study.participants,
        places_left=max(study.study.participants - counts.completed - counts.alive, 0),
        per_hour=answers.kept(("per hour", hour), lambda: _per_hour(answers, hour)),
        images=[
            replace(
                image,
                completed=counts.images[image.name]["completed"],
                active=counts.images[image.name]["alive"],
            )
            for image in answers.kept("images", lambda: _images(study, answers))
        ],
        **answers.kept("progress", lambda: _of_answers(answers)),
    )


def _of_answers(answers: Answers) -> dict[str, Any]:
    of = sums(answers)
    ended = [
        (head.finished_at_ms, head.started_at_ms) for head in answers.sessions if head.status == "completed"
    ]
    minutes = np.array([(end - start) / 60_000 for end, start in ended if end is not None])
    repeats = int(of.repeats.sum())
    return {
        "simulated": sum(head.simulated for head in answers.sessions),
        "answers": len(answers),
        "used": int(of.used.sum()),
        "minutes": Distribution.of(np.maximum(minutes, 0), "minutes"),
        "rt_ms": Distribution.of(answers.rt_ms[answers.used], "ms"),
        "timing": _timing(answers, of),
        "catch": Share.counted(of.catch_right.sum(), of.catch.sum()),
        "practice": Share.counted(of.practice_right.sum(), of.practice.sum()),
        "consistency": Share.counted(of.alike.sum(), repeats),
        "chance": round(float(np.nansum(of.chance * of.repeats) / repeats), 4) if repeats else None,
    }


def _timing(answers: Answers, of: Sums) -> Timing:
    if not len(answers):
        return NO_TIMING
    total = len(answers)
    return Timing(
        median_off_ms=round(quantile(np.sort(off_ms(answers)), 0.5), 2),
        within_half_frame=round(int(of.within_half_frame.sum()) / total, 4),
        late=round(int(of.flagged.sum()) / total, 4),
        dropped_per_100=round(100 * int(of.dropped.sum()) / total, 2),
        refresh_hz=round(float(np.nanmedian(of.refresh_hz)), 1),
    )


def _per_hour(answers: Answers, hour: int) -> list[tuple[int, int]]:
    """Answers in each of the last hours, by the clocks of those who answered."""
    first = hour - HOURS + 1
    lately = answers.shown_at_ms[answers.shown_at_ms >= first * HOUR_MS]
    hours = lately // HOUR_MS - first
    counts = np.bincount(hours[hours < HOURS], minlength=HOURS).tolist()
    return [((first + number) * HOUR_MS, count) for number, count in enumerate(counts)]


def _images(study: StudyRow, answers: Answers) -> list[ImageProgress]:
    """What depends on the answers; who is active is filled in at each look."""
    wanted = pairs_wanted(answers.layout, study.study.planned_segments)
    counts = np.bincount(answers.image[answers.used], minlength=len(answers.images)).tolist()
    distinct = _distinct_pairs(answers).tolist()
    return [
        ImageProgress(
            name=image.name,
            condition=image.condition,
            wanted=study.study.quota(image.name),
            completed=0,
            active=0,
            answers=counts[answers.images.index(image.name)],
            distinct_pairs=distinct[answers.images.index(image.name)],
            needed=wanted[0],
            advised=wanted[1],
        )
        for image in study.study.images
    ]


def _distinct_pairs(answers: Answers) -> NDArray[np.int64]:
    """How many different pairs of each image have an answer that counts: all images at once."""
    pairs = len(answers.layout) ** 2
    if len(answers.images) * pairs <= MOST_CELLS:
        cell = answers.image[answers.used].astype(np.int32) * pairs + answers.cells[answers.used]
        asked = np.bincount(cell, minlength=len(answers.images) * pairs) > 0
        return asked.reshape(len(answers.images), pairs).sum(axis=1)
    key = answers.image[answers.used].astype(np.int64)
    key *= pairs
    key += answers.cells[answers.used]
    key.sort()
    first = np.flatnonzero(np.diff(key, prepend=-1))
    return np.bincount(key[first] // pairs, minlength=len(answers.images))
