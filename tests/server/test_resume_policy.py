"""Where a session goes on, for every way of answering."""

from dataclasses import dataclass

from hypothesis import given, strategies as st

from vseg.server.resume_policy import MAX_ATTEMPTS, ResumePoint, find_resume_point, number_blocks
from vseg.study.trials import Trials


def trials(*rows: tuple[bool, str, int, bool]) -> Trials:
    """Only what a block is told by: practice, image, block, catch."""
    count = range(len(rows))
    columns = {name: [0 for _ in count] for name in ("trial", "i", "j", "x1", "y1", "x2", "y2")}
    practice, image, block, catch = (list(column) for column in zip(*rows, strict=True))
    return Trials(
        **columns, practice=practice, image=image, block=block, catch=catch, answer=[None for _ in count]
    )


PRACTICE = [(True, "practice", 0, False)] * 2
FIRST = [(False, "a", 0, False), (False, "practice", 0, True), (False, "a", 0, False)]
SECOND = [(False, "a", 1, False), (False, "a", 1, False), (False, "practice", 1, True)]
OTHER = [(False, "b", 1, False), (False, "b", 1, False)]
TRIALS = trials(*PRACTICE, *FIRST, *SECOND, *OTHER)  # items 0-1, 2-4, 5-7, 8-9


@dataclass(frozen=True)
class Again:
    """The page says that the block of this item begins again."""

    item: int


def after(
    *records: tuple[int, str] | int | Again, of: Trials = TRIALS, repeat_block: bool = False
) -> ResumePoint:
    answers, restarts = [], []
    for seq, record in enumerate(records):
        if isinstance(record, Again):
            restarts.append((seq, record.item))
        else:
            answers.append((seq, *(record if isinstance(record, tuple) else (record, ""))))
    return find_resume_point(of, answers, restarts, repeat_block=repeat_block)


def test_catch_trials_belong_to_the_block_around_them():
    assert list(number_blocks(TRIALS)) == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3]


def test_nothing_yet():
    assert after() == ResumePoint([], [], 0)
    assert after(repeat_block=True) == ResumePoint([], [], 0)


def test_one_after_the_other():
    assert after(0, 1, 2) == ResumePoint([0, 1, 2], [], 3)
    assert after(*range(10)) == ResumePoint(list(range(10)), [], 10)


def test_what_was_not_shown_right_is_asked_again():
    assert after(0, (1, "late"), 2) == ResumePoint([0, 2], [1], 3)
    assert after(0, (1, "late"), 2, 1) == ResumePoint([0, 1, 2], [], 3)


def test_three_tries_are_enough():
    assert after(*[(0, "late")] * (MAX_ATTEMPTS - 1)).answered == []
    assert after(*[(0, "late")] * MAX_ATTEMPTS).answered == [0]


def test_an_interrupted_block_is_repeated_from_its_first_item():
    assert after(0, 1, 2, 3, repeat_block=True) == ResumePoint([0, 1], [], 2)
    assert after(0, 1, 2, (3, "late"), 4, repeat_block=True) == ResumePoint([0, 1], [], 2)


def test_between_blocks_there_is_nothing_to_repeat():
    assert after(0, 1, 2, 3, 4, repeat_block=True) == ResumePoint([0, 1, 2, 3, 4], [], 5)
    assert after(*range(10), repeat_block=True) == ResumePoint(list(range(10)), [], 10)


def test_a_reload_within_a_repeated_block_goes_on_there():
    """Items 2 and 3 were answered, the block began again with 2: so 3 is open, although it has an answer."""
    assert after(0, 1, 2, 3, Again(2), 2) == ResumePoint([0, 1, 2], [], 3)
    assert after(0, 1, 2, 3, Again(2), 2, 3, 4) == ResumePoint([0, 1, 2, 3, 4], [], 5)


def test_a_flagged_answer_before_the_block_began_again_is_forgotten():
    """And the block goes on after a reload where it was, not at its beginning."""
    one_block = trials(*[(False, "a", 0, False)] * 8)
    before = [(0, "late"), 1, 2]
    assert after(*before, Again(0), of=one_block) == ResumePoint([], [], 0)
    assert after(*before, Again(0), 0, 1, 2, 3, of=one_block) == ResumePoint([0, 1, 2, 3], [], 4)
    assert after(*before, Again(0), 0, 1, 2, 3, 4, 5, of=one_block) == ResumePoint(list(range(6)), [], 6)


def test_a_second_answer_alone_opens_nothing():
    assert after(0, 1, 2, 3, 2, (3, "late")) == ResumePoint([0, 1, 2, 3], [], 4)


def test_only_its_own_block_begins_again():
    assert after(*range(7), Again(5)) == ResumePoint([0, 1, 2, 3, 4], [], 5)
    assert after(*range(7), Again(7)) == ResumePoint([0, 1, 2, 3, 4], [], 5)


items = st.integers(0, 9)
record = st.tuples(items, st.sampled_from(["", "late"])) | items.map(Again)


@given(st.lists(record), st.booleans())
def test_every_item_is_in_one_place(records, repeat_block):
    """Done, to be asked again, or not asked; the next one is the first that was not asked."""
    found = after(*records, repeat_block=repeat_block)
    assert not set(found.answered) & set(found.asked_again)
    rest = set(range(10)) - set(found.answered) - set(found.asked_again)
    assert found.next_item == min(rest, default=10)


@given(st.lists(record))
def test_what_was_answered_right_since_its_block_began_again_is_done(records):
    """And what has had no answer at all since is not."""
    block, found = number_blocks(TRIALS), after(*records)
    for item in range(10):
        starts = [
            at
            for at, each in enumerate(records)
            if isinstance(each, Again) and block[each.item] == block[item]
        ]
        since = [each for each in records[max(starts, default=-1) + 1 :] if not isinstance(each, Again)]
        flags = [flags for asked, flags in since if asked == item]
        assert (item in found.answered) == ("" in flags or len(flags) >= MAX_ATTEMPTS)
        assert (item in found.asked_again) == (bool(flags) and item not in found.answered)
