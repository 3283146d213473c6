"""One row a session: what it did, and why it may be worth a second look."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vseg.monitor.answers import SUMS, Answers, SessionHead
from vseg.monitor.summaries import NO_TIMING, Share, Timing, median_of_each, rough_median_of_each
from vseg.store.studies import StudyRow

LOWEST_CATCH, FEWEST_CATCH = 0.75, 4
FASTEST_MS = 250
MOST_ALIKE, FEWEST_ANSWERS = 0.95, 40
MOST_FLAGGED = 0.2
FEWEST_REPEATS, GUESSING_P = 30, 0.05
MOST_CHANCE = 0.9  # beyond, nearly all answers are one and the same, and alike whatever was asked
SLOWEST_HZ = 50


@dataclass(frozen=True)
class Person:
    """One participant's session; `reasons` say in plain sentences why it is worth a look, none if it is fine.

    `minutes` run from the beginning to the end, or to the last answer; `flagged` counts answers to trials that were
    not shown right; `median_rt_ms` and `same_share` are of the answers that count.
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


def people(study: StudyRow, answers: Answers) -> list[Person]:
    """Everyone in a study who has not withdrawn, in the order in which they began."""
    del study
    return answers.kept("people", lambda: list(_people(answers)))


def person(study: StudyRow, answers: Answers, participant: str) -> Person:
    """One of them, by the last session; `NotFound` if there is none of that name."""
    return people(study, answers)[answers.places(participant)[-1]]


@dataclass(frozen=True)
class Sums:
    """Counts and medians of each session, as columns in the order of `Answers.sessions`."""

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


def sums(answers: Answers) -> Sums:
    """All sessions at once; made once for each version of the answers."""
    return answers.kept(SUMS, lambda: _brought_up_to_date(answers))


def _brought_up_to_date(answers: Answers) -> Sums:
    """Only sessions that have changed are summed again."""
    if answers.earlier is None:
        return _sums(answers)
    before, changed = answers.earlier
    new = _sums(answers.where(np.flatnonzero(changed[answers.session])))
    columns = {}
    for name, values in vars(new).items():
        kept = np.zeros(len(values), values.dtype)
        kept[: len(before.answers)] = vars(before)[name]
        columns[name] = np.where(changed, values, kept)
    return Sums(**columns)


def off_ms(answers: Answers) -> NDArray[np.float32]:
    """How far the cue or the image, whichever was further, lasted from what was asked."""
    found: NDArray[np.float32] = answers.kept(
        "off", lambda: np.maximum(np.abs(answers.cue_off_ms), np.abs(answers.image_off_ms))
    )
    return found


def _sums(answers: Answers) -> Sums:
    number = len(answers.sessions)

    def count(chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(answers.session[chosen], minlength=number)

    session, off = answers.session, off_ms(answers)
    total, used, same = (
        np.bincount(session, minlength=number),
        count(answers.used),
        count(answers.used & answers.same),
    )
    right = answers.correct == 1
    known = answers.correct >= 0
    alike, repeats = _repeats(answers, number)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = same / used
        refresh = np.bincount(session, weights=answers.refresh_hz, minlength=number) / total
    dropped = np.flatnonzero(answers.frames_dropped)
    return Sums(
        answers=total,
        used=used,
        same=same,
        flagged=count(answers.flagged),
        catch_right=count(answers.catch & right),
        catch=count(answers.catch & known),
        practice_right=count(answers.practice & right),
        practice=count(answers.practice & known),
        alike=alike,
        repeats=repeats,
        chance=share**2 + (1 - share) ** 2,
        median_rt_ms=median_of_each(session[answers.used], answers.rt_ms[answers.used], number),
        median_off_ms=rough_median_of_each(session, off, number),
        within_half_frame=count(off * answers.refresh_hz <= 500),
        dropped=np.bincount(
            session[dropped], weights=answers.frames_dropped[dropped], minlength=number
        ).astype(np.int64),
        refresh_hz=refresh,
    )


def _repeats(answers: Answers, number: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each session, answers to pairs that were asked before, and how many of them were like those before.

    Of n answers to a pair, k of them 'same', n-1 are repeats; as many as two answers drawn from the n agree on average
    count as alike. So the order in which a pair was answered does not matter.
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
    again = np.flatnonzero(n > 1)
    if not len(again):
        return np.zeros(number), np.zeros(number, np.int64)
    k = np.add.reduceat(key & 1, first)[again]
    n = n[again]
    whose = pair[first[again]] // (len(answers.images) * len(answers.layout) ** 2)
    agree = (k * (k - 1) + (n - k) * (n - k - 1)) / (n * (n - 1))
    alike = np.bincount(whose, weights=(n - 1) * agree, minlength=number).astype(np.float64)
    return alike, np.bincount(whose, weights=n - 1, minlength=number).astype(np.int64)


def _people(answers: Answers) -> Iterator[Person]:
    table = {name: column.tolist() for name, column in vars(sums(answers)).items()}
    guessing = _guessing(sums(answers)).tolist()
    for place, head in enumerate(answers.sessions):
        numbers = {name: column[place] for name, column in table.items()}
        yield _person(head, numbers, guessing[place])


def _person(head: SessionHead, of: dict[str, float], guessing: bool) -> Person:
    total, used = int(of["answers"]), int(of["used"])
    timing = NO_TIMING
    if total:
        timing = Timing(
            median_off_ms=round(of["median_off_ms"], 1),
            within_half_frame=round(of["within_half_frame"] / total, 4),
            late=round(of["flagged"] / total, 4),
            dropped_per_100=round(100 * of["dropped"] / total, 2),
            refresh_hz=round(of["refresh_hz"], 1),
        )
    person = Person(
        participant=head.participant,
        session=head.name,
        status=head.status,
        simulated=head.simulated,
        started_at_ms=head.started_at_ms,
        finished_at_ms=head.finished_at_ms,
        last_at_ms=head.last_at_ms,
        minutes=round(((head.finished_at_ms or head.last_at_ms) - head.started_at_ms) / 60_000, 4),
        images=[unit.image for unit in head.units],
        answers=total,
        used=used,
        flagged=int(of["flagged"]),
        catch=Share.counted(of["catch_right"], of["catch"]),
        practice=Share.counted(of["practice_right"], of["practice"]),
        median_rt_ms=round(of["median_rt_ms"], 1) if used else None,
        same_share=round(of["same"] / used, 4) if used else None,
        consistency=Share.counted(of["alike"], of["repeats"]),
        chance=round(of["chance"], 4) if used else None,
        timing=timing,
        reasons=[],
    )
    person.reasons.extend(_reasons(person, guessing))
    return person


def _reasons(person: Person, guessing: bool) -> Iterator[str]:
    catch, median, same = person.catch, person.median_rt_ms, person.same_share
    if catch.value is not None and catch.of >= FEWEST_CATCH and catch.value < LOWEST_CATCH:
        yield f"Only {catch.right} of {catch.of} attention checks (catch trials) were answered right."
    if median is not None and median < FASTEST_MS:
        yield f"Half of the answers came within {median:.0f} ms, faster than people can look and decide."
    if same is not None and person.used >= FEWEST_ANSWERS:
        if same > MOST_ALIKE:
            yield f"{same:.0%} of the answers were “same”."
        elif same < 1 - MOST_ALIKE:
            yield f"{1 - same:.0%} of the answers were “different”."
    if person.timing.late is not None and person.timing.late > MOST_FLAGGED:
        yield f"{person.timing.late:.0%} of the trials were not shown right (late, hidden or in a small window)."
    if guessing:
        yield (
            f"Pairs asked again were answered alike {person.consistency.right} of {person.consistency.of} times, "
            f"no better than guessing ({person.chance:.0%})."
        )
    if person.timing.refresh_hz is not None and person.timing.refresh_hz < SLOWEST_HZ:
        yield f"The screen showed only {person.timing.refresh_hz:.0f} pictures a second."


def _guessing(of: Sums) -> NDArray[np.bool_]:
    """Whether so many alike would not surprise in someone who guesses (binomial, one-sided)."""
    from scipy.special import bdtrc

    enough = (of.repeats >= FEWEST_REPEATS) & (of.chance <= MOST_CHANCE)
    found = np.zeros(len(enough), np.bool_)
    alike = np.rint(of.alike[enough])
    # P(at least as many alike) = P(more than one less); with none alike it is certain.
    p = np.where(alike > 0, bdtrc(alike - 1, of.repeats[enough], of.chance[enough]), 1.0)
    found[enough] = p > GUESSING_P
    return found
