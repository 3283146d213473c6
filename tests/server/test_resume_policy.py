"""Where a session continues, for all sequences of answers and restarts."""

from dataclasses import dataclass

from hypothesis import given, strategies as st

from vseg.server.resume_policy import ResumePoint, find_resume_point, number_blocks
from vseg.study.trials import MAX_ATTEMPTS, Trials


def make_trials(*rows: tuple[bool, str, int, bool]) -> Trials:
    """Return trials with the columns that define blocks: practice, image, block, catch."""
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
TRIALS = make_trials(*PRACTICE, *FIRST, *SECOND, *OTHER)  # items 0-1, 2-4, 5-7, 8-9


@dataclass(frozen=True)
class Restart:
    """The page restarts the block of this item."""

    item: int


def resume_after(
    *records: tuple[int, str] | int | Restart, trials: Trials = TRIALS, repeat_block: bool = False
) -> ResumePoint:
    answers, restarts = [], []
    for seq, record in enumerate(records):
        if isinstance(record, Restart):
            restarts.append((seq, record.item))
        else:
            answers.append((seq, *(record if isinstance(record, tuple) else (record, ""))))
    return find_resume_point(trials, answers, restarts, repeat_block=repeat_block)


def test_catch_trials_belong_to_the_block_around_them():
    assert list(number_blocks(TRIALS)) == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3]


def test_a_session_without_answers():
    assert resume_after() == ResumePoint([], [], 0)
    assert resume_after(repeat_block=True) == ResumePoint([], [], 0)


def test_answers_in_order():
    assert resume_after(0, 1, 2) == ResumePoint([0, 1, 2], [], 3)
    assert resume_after(*range(10)) == ResumePoint(list(range(10)), [], 10)


def test_flagged_items_are_asked_again():
    assert resume_after(0, (1, "late"), 2) == ResumePoint([0, 2], [1], 3)
    assert resume_after(0, (1, "late"), 2, 1) == ResumePoint([0, 1, 2], [], 3)


def test_an_item_is_done_after_the_maximum_number_of_attempts():
    assert resume_after(*[(0, "late")] * (MAX_ATTEMPTS - 1)).answered == []
    assert resume_after(*[(0, "late")] * MAX_ATTEMPTS).answered == [0]


def test_an_interrupted_block_is_repeated_from_its_first_item():
    assert resume_after(0, 1, 2, 3, repeat_block=True) == ResumePoint([0, 1], [], 2)
    assert resume_after(0, 1, 2, (3, "late"), 4, repeat_block=True) == ResumePoint([0, 1], [], 2)


def test_nothing_is_repeated_between_blocks():
    assert resume_after(0, 1, 2, 3, 4, repeat_block=True) == ResumePoint([0, 1, 2, 3, 4], [], 5)
    assert resume_after(*range(10), repeat_block=True) == ResumePoint(list(range(10)), [], 10)


def test_a_reload_within_a_restarted_block_continues_there():
    """Items 2 and 3 were answered and the block restarted at 2, so 3 is open although it has an answer."""
    assert resume_after(0, 1, 2, 3, Restart(2), 2) == ResumePoint([0, 1, 2], [], 3)
    assert resume_after(0, 1, 2, 3, Restart(2), 2, 3, 4) == ResumePoint([0, 1, 2, 3, 4], [], 5)


def test_flagged_answers_before_a_restart_do_not_count():
    """After a reload the block continues where it was, not at its beginning."""
    one_block = make_trials(*[(False, "a", 0, False)] * 8)
    before = [(0, "late"), 1, 2]
    assert resume_after(*before, Restart(0), trials=one_block) == ResumePoint([], [], 0)
    assert resume_after(*before, Restart(0), 0, 1, 2, 3, trials=one_block) == ResumePoint([0, 1, 2, 3], [], 4)
    assert resume_after(*before, Restart(0), 0, 1, 2, 3, 4, 5, trials=one_block) == ResumePoint(
        list(range(6)), [], 6
    )


def test_a_second_answer_does_not_reopen_an_item():
    assert resume_after(0, 1, 2, 3, 2, (3, "late")) == ResumePoint([0, 1, 2, 3], [], 4)


def test_a_restart_reopens_only_its_own_block():
    assert resume_after(*range(7), Restart(5)) == ResumePoint([0, 1, 2, 3, 4], [], 5)
    assert resume_after(*range(7), Restart(7)) == ResumePoint([0, 1, 2, 3, 4], [], 5)


ITEMS = st.integers(0, 9)
RECORDS = st.lists(st.tuples(ITEMS, st.sampled_from(["", "late"])) | ITEMS.map(Restart))


@given(RECORDS, st.booleans())
def test_every_item_is_done_asked_again_or_open(records, repeat_block):
    """The next item is the first that was not asked."""
    found = resume_after(*records, repeat_block=repeat_block)
    assert not set(found.answered) & set(found.asked_again)
    rest = set(range(10)) - set(found.answered) - set(found.asked_again)
    assert found.next_item == min(rest, default=10)


@given(RECORDS)
def test_items_answered_since_the_last_restart_are_done(records):
    """Items without an answer since the restart of their block are not."""
    block, found = number_blocks(TRIALS), resume_after(*records)
    for item in range(10):
        starts = [
            position
            for position, record in enumerate(records)
            if isinstance(record, Restart) and block[record.item] == block[item]
        ]
        since = [
            record for record in records[max(starts, default=-1) + 1 :] if not isinstance(record, Restart)
        ]
        flags = [flags for answered, flags in since if answered == item]
        assert (item in found.answered) == ("" in flags or len(flags) >= MAX_ATTEMPTS)
        assert (item in found.asked_again) == (bool(flags) and item not in found.answered)
