"""The order in which answers are taken: by batch, then by session, then by record."""

from vseg.adaptive.history import AdaptiveAnswer, AnswerHistory, order_answers


def answer(seq: int, image: str = "a", *, item: int | None = None, good: bool = True) -> AdaptiveAnswer:
    return AdaptiveAnswer(seq, seq if item is None else item, image, 0, 1, True, good=good, chosen=False)


def test_answers_are_ordered_by_batch_session_and_record():
    """Session 1 began first, but a first batch has taken only one of its records."""
    answers = {1: [answer(seq, item=10 + seq) for seq in range(3)], 2: [answer(seq) for seq in range(2)]}
    ordered = order_answers("a", [{1: 1, 2: 1}, {1: 3, 2: 1}, {1: 3, 2: 2}], answers)
    assert [each.item for each in ordered] == [10, 0, 11, 12, 1]


def test_flagged_answers_and_other_images_are_not_taken():
    history = AnswerHistory[str]("a")
    answers = [answer(0), answer(1, good=False), answer(2, "b"), answer(3)]
    assert [each.seq for each in history.take("s1", answers, 4)] == [0, 3]
    assert history.take("s1", answers, 4) == []
    session = history.sessions["s1"]
    assert (session.records, session.answered, session.last_item) == (4, {0, 3}, 3)


def test_sessions_without_answers_are_skipped():
    """They were withdrawn or erased; a session with no records yet is still noted."""
    history = AnswerHistory[int]("a")
    assert history.take_basis({1: 5, 2: 0}, {2: []}) == []
    assert {session: own.records for session, own in history.sessions.items()} == {2: 0}


def test_pairs_that_are_still_to_be_answered():
    """A chosen pair replaces the fixed one of its item; a flagged answer does not count, but its item is over."""
    history = AnswerHistory[str]("a")
    history.add_choices("s1", {2: (5, 6), 4: (7, 8)})
    history.take("s1", [answer(0), answer(1, good=False), answer(2)], 3)
    fixed = [(item, (0, item)) for item in range(4)]
    assert history.sessions["s1"].list_unanswered(fixed) == [(0, 1), (0, 3)]
    assert history.sessions["s1"].get_open_choices() == {4: (7, 8)}
