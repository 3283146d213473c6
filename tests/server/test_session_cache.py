"""The memory of the hot route: what is held, and what makes room."""

from vseg.server.session_cache import CachedSession, SessionCache
from vseg.study.trials import Trials


def session(number: int, items: int) -> CachedSession:
    names = ("block", "trial", "i", "j", "x1", "y1", "x2", "y2")
    columns = {name: [0] * items for name in names}
    no = [False] * items
    return CachedSession(
        number, "tiny", Trials(**columns, image=["a"] * items, practice=no, catch=no, answer=[None] * items)
    )


def held(known: SessionCache) -> list[str]:
    return [token for token in "abcde" if known.of(token, "tiny") is not None]


def test_so_many_sessions():
    known = SessionCache(most=3)
    for number, token in enumerate("abc"):
        known.remember(token, session(number, 1))
    known.of("a", "tiny")
    known.remember("d", session(3, 1))
    assert held(known) == ["a", "c", "d"]


def test_so_many_trials():
    known = SessionCache(most_trials=100)
    for number, token in enumerate("abc"):
        known.remember(token, session(number, 30))
    for _ in range(10):
        known.remember("c", session(2, 30))
    assert held(known) == ["a", "b", "c"]
    known.remember("d", session(3, 60))
    assert held(known) == ["c", "d"]
    known.forget(3)
    known.remember("e", session(4, 70))
    assert held(known) == ["c", "e"]


def test_one_that_is_larger_than_all_of_it_is_not_held():
    known = SessionCache(most_trials=100)
    known.remember("a", session(0, 101))
    assert held(known) == []


def test_who_is_known_already_stays_as_they_are():
    """What was chosen for them may be known by now."""
    known, first, second = SessionCache(), session(0, 1), session(0, 1)
    assert known.remember("a", first) is first
    assert known.remember("a", second) is first
    assert known.of("a", "tiny") is first
