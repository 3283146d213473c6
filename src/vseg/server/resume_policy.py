"""Where a session continues after an interruption, from its answers so far. Pure functions.

An item is done once it has an answer without flags, or MAX_ATTEMPTS flagged ones; until then it is asked again at the
end of its block. When the page reports that it restarts a block, all items of the block are open again.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from vseg.study.trials import MAX_ATTEMPTS, Trials

Answers = Iterable[tuple[int, int, str]]
"""(seq, item, flags) of each answer."""


@dataclass(frozen=True)
class ResumePoint:
    """Where a session continues.

    Attributes
    ----------
    answered : list of int
        The items that are done.
    asked_again : list of int
        The items that were asked and are not done.
    next_item : int
        The first item that was never asked, or the number of items.
    is_over : bool
        Whether nothing is left to ask.
    """

    answered: list[int]
    asked_again: list[int]
    next_item: int
    is_over: bool = field(default=False, compare=False)


def find_resume_point(
    trials: Trials,
    answers: Answers,
    restarts: Iterable[tuple[int, int]] = (),
    *,
    repeat_block: bool = False,
    skipped: Collection[int] = (),
) -> ResumePoint:
    """Return where a session continues.

    Parameters
    ----------
    trials : Trials
        The trials of the session.
    answers : iterable of (seq, item, flags)
        The answers so far.
    restarts : iterable of (seq, item)
        Where the page restarted the block of an item.
    repeat_block : bool
        Whether to ask the interrupted block again from its first item.
    skipped : collection of int
        Items that are not asked because their image is known well enough.
    """
    block = number_blocks(trials)
    done: set[int] = set()
    attempts: Counter[int] = Counter()
    restart_records = [(seq, item, None) for seq, item in restarts]
    for _, item, flags in sorted([*answers, *restart_records], key=lambda record: record[0]):
        if flags is None:
            _reopen_block(block[item], block, done, attempts)
            continue
        attempts[item] += 1
        if not flags or attempts[item] >= MAX_ATTEMPTS:
            done.add(item)
    items = [item for item in range(len(block)) if item not in skipped]
    first_open = next((item for item in items if item not in done), None)
    if repeat_block and first_open is not None:
        _reopen_block(block[first_open], block, done, attempts)
    return ResumePoint(
        answered=sorted(done),
        asked_again=sorted(item for item in attempts if item not in done and item not in skipped),
        next_item=next((item for item in items if item not in attempts), len(block)),
        is_over=first_open is None,
    )


def number_blocks(trials: Trials) -> Sequence[int]:
    """Return for each item the number of its block, counted through practice and all images.

    A catch trial shows another image but belongs to the block around it.
    """
    numbers: list[int] = []
    previous: tuple[bool, str, int] | None = None
    columns = zip(trials.practice, trials.image, trials.block, trials.catch, strict=True)
    for practice, image, block, catch in columns:
        if catch and previous is not None:
            numbers.append(numbers[-1])
            continue
        current = (practice, image, block)
        numbers.append(0 if previous is None else numbers[-1] + (current != previous))
        previous = current
    return numbers


def _reopen_block(number: int, block: Sequence[int], done: set[int], attempts: Counter[int]) -> None:
    for item in [item for item in attempts if block[item] == number]:
        done.discard(item)
        del attempts[item]
