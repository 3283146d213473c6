"""Where a session goes on, for every way of answering."""

from hypothesis import given, strategies as st

from vseg.plan import Trials
from vseg.server.standing import MOST_TRIES, Standing, blocks, standing


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


def after(*answers: tuple[int, str] | int, repeat_block: bool = False) -> Standing:
    each = [answer if isinstance(answer, tuple) else (answer, "") for answer in answers]
    return standing(
        TRIALS, [(seq, item, flags) for seq, (item, flags) in enumerate(each)], repeat_block=repeat_block
    )


def test_catch_trials_belong_to_the_block_around_them():
    assert list(blocks(TRIALS)) == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3]


def test_nothing_yet():
    assert after() == Standing([], [], 0)
    assert after(repeat_block=True) == Standing([], [], 0)


def test_one_after_the_other():
    assert after(0, 1, 2) == Standing([0, 1, 2], [], 3)
    assert after(*range(10)) == Standing(list(range(10)), [], 10)


def test_what_was_not_shown_right_is_asked_again():
    assert after(0, (1, "late"), 2) == Standing([0, 2], [1], 3)
    assert after(0, (1, "late"), 2, 1) == Standing([0, 1, 2], [], 3)


def test_three_tries_are_enough():
    assert after(*[(0, "late")] * (MOST_TRIES - 1)).answered == []
    assert after(*[(0, "late")] * MOST_TRIES).answered == [0]


def test_an_interrupted_block_is_repeated_from_its_first_item():
    assert after(0, 1, 2, 3, repeat_block=True) == Standing([0, 1], [], 2)
    assert after(0, 1, 2, (3, "late"), 4, repeat_block=True) == Standing([0, 1], [], 2)


def test_between_blocks_there_is_nothing_to_repeat():
    assert after(0, 1, 2, 3, 4, repeat_block=True) == Standing([0, 1, 2, 3, 4], [], 5)
    assert after(*range(10), repeat_block=True) == Standing(list(range(10)), [], 10)


def test_a_reload_within_a_repeated_block_goes_on_there():
    """Items 2 and 3 were answered, the block began again with 2: so 3 is open, although it has an answer."""
    assert after(0, 1, 2, 3, 2) == Standing([0, 1, 2], [], 3)
    assert after(0, 1, 2, 3, 2, 3, 4) == Standing([0, 1, 2, 3, 4], [], 5)


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["", "late"]))), st.booleans())
def test_every_item_is_in_one_place(answers, repeat_block):
    """Done, to be asked again, or not asked; the next one is the first that was not asked."""
    found = after(*answers, repeat_block=repeat_block)
    assert not set(found.answered) & set(found.asked_again)
    rest = set(range(10)) - set(found.answered) - set(found.asked_again)
    assert found.next_item == min(rest, default=10)
