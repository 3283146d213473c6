"""Which sessions the cache keeps, and which it drops."""

from vseg.server.session_cache import CachedSession, SessionCache
from vseg.study.trials import Trials


def make_session(number: int, items: int) -> CachedSession:
    names = ("block", "trial", "i", "j", "x1", "y1", "x2", "y2")
    columns = {name: [0] * items for name in names}
    no = [False] * items
    return CachedSession(
        number, "tiny", Trials(**columns, image=["a"] * items, practice=no, catch=no, answer=[None] * items)
    )


def list_cached(cache: SessionCache) -> list[str]:
    return [token for token in "abcde" if cache.get(token, "tiny") is not None]


def test_the_number_of_sessions_is_limited():
    cache = SessionCache(max_sessions=3)
    for number, token in enumerate("abc"):
        cache.add(token, make_session(number, 1))
    cache.get("a", "tiny")
    cache.add("d", make_session(3, 1))
    assert list_cached(cache) == ["a", "c", "d"]


def test_the_number_of_trials_is_limited():
    cache = SessionCache(max_trials=100)
    for number, token in enumerate("abc"):
        cache.add(token, make_session(number, 30))
    for _ in range(10):
        cache.add("c", make_session(2, 30))
    assert list_cached(cache) == ["a", "b", "c"]
    cache.add("d", make_session(3, 60))
    assert list_cached(cache) == ["c", "d"]
    cache.remove(3)
    cache.add("e", make_session(4, 70))
    assert list_cached(cache) == ["c", "e"]


def test_a_session_larger_than_the_cache_is_not_kept():
    cache = SessionCache(max_trials=100)
    cache.add("a", make_session(0, 101))
    assert list_cached(cache) == []


def test_a_cached_session_is_not_replaced():
    """It may have loaded the pairs chosen for it."""
    cache, first, second = SessionCache(), make_session(0, 1), make_session(0, 1)
    assert cache.add("a", first) is first
    assert cache.add("a", second) is first
    assert cache.get("a", "tiny") is first
