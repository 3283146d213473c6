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


def held(cache: SessionCache) -> list[str]:
    return [token for token in "abcde" if cache.get(token, "tiny") is not None]


def test_so_many_sessions():
    cache = SessionCache(max_sessions=3)
    for number, token in enumerate("abc"):
        cache.add(token, session(number, 1))
    cache.get("a", "tiny")
    cache.add("d", session(3, 1))
    assert held(cache) == ["a", "c", "d"]


def test_so_many_trials():
    cache = SessionCache(max_trials=100)
    for number, token in enumerate("abc"):
        cache.add(token, session(number, 30))
    for _ in range(10):
        cache.add("c", session(2, 30))
    assert held(cache) == ["a", "b", "c"]
    cache.add("d", session(3, 60))
    assert held(cache) == ["c", "d"]
    cache.remove(3)
    cache.add("e", session(4, 70))
    assert held(cache) == ["c", "e"]


def test_one_that_is_larger_than_all_of_it_is_not_held():
    cache = SessionCache(max_trials=100)
    cache.add("a", session(0, 101))
    assert held(cache) == []


def test_who_is_known_already_stays_as_they_are():
    """What was chosen for them may be cache by now."""
    cache, first, second = SessionCache(), session(0, 1), session(0, 1)
    assert cache.add("a", first) is first
    assert cache.add("a", second) is first
    assert cache.get("a", "tiny") is first
