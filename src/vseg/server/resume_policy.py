"""Where a session goes on: from the answers so far, by the study's policy on interruptions. Pure.

An item is good once it has an answer without flags, or MOST_TRIES flagged ones; before, it is asked again at
the end of its block. When the page says that a block begins again, all of it is open again.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from vseg.study.trials import Trials

MOST_TRIES = 3


@dataclass(frozen=True)
class Standing:
    """The items that are done, those to ask again, and the first one never asked (or their number)."""

    answered: list[int]
    asked_again: list[int]
    next_item: int
    is_over: bool = field(default=False, compare=False)
    """Whether nothing is left to ask."""


Answers = Iterable[tuple[int, int, str]]


def standing(
    trials: Trials,
    answers: Answers,
    restarts: Iterable[tuple[int, int]] = (),
    *,
    repeat_block: bool = False,
    skipped: Collection[int] = (),
) -> Standing:
    """Where a session stands.

    Parameters
    ----------
    answers : (seq, item, flags) of each
    restarts : (seq, item), where the page began the block of that item again
    repeat_block : whether the block that was interrupted is to be asked from its first item
    skipped : items that are not asked, since their image is known well enough
    """
    block = blocks(trials)
    good: set[int] = set()
    tries: Counter[int] = Counter()
    begins_again = [(seq, item, None) for seq, item in restarts]
    for _, item, flags in sorted([*answers, *begins_again], key=lambda record: record[0]):
        if flags is None:
            _reopen(block[item], block, good, tries)
            continue
        tries[item] += 1
        if not flags or tries[item] >= MOST_TRIES:
            good.add(item)
    asked = [item for item in range(len(block)) if item not in skipped]
    pending = next((item for item in asked if item not in good), None)
    if repeat_block and pending is not None:
        _reopen(block[pending], block, good, tries)
    return Standing(
        answered=sorted(good),
        asked_again=sorted(item for item in tries if item not in good and item not in skipped),
        next_item=next((item for item in asked if item not in tries), len(block)),
        is_over=pending is None,
    )


def blocks(trials: Trials) -> Sequence[int]:
    """For each item the running number of its block over practice and all images.

    A catch trial is shown on another image but belongs to the block around it.
    """
    numbers: list[int] = []
    before: tuple[bool, str, int] | None = None
    columns = zip(trials.practice, trials.image, trials.block, trials.catch, strict=True)
    for practice, image, block, catch in columns:
        if catch and before is not None:
            numbers.append(numbers[-1])
            continue
        here = (practice, image, block)
        numbers.append(0 if before is None else numbers[-1] + (here != before))
        before = here
    return numbers


def _reopen(number: int, block: Sequence[int], good: set[int], tries: Counter[int]) -> None:
    for item in [item for item in tries if block[item] == number]:
        good.discard(item)
        del tries[item]
