"""Personal tokens and sign-in links: only hashes are stored, and used or revoked tokens are invalid."""

import threading

import pytest

from vseg import store
from vseg.errors import Conflict, InvalidInput, NotFound
from vseg.store import tokens
from vseg.store.schema import sign_ins, tokens as table

NOW = 1_800_000_000_000


@pytest.fixture
def ann(db):
    store.researchers.set_password(db, "Ann", "hash")
    store.researchers.set_password(db, "Bob", "hash")
    return "Ann"


def read_stored(db, which) -> str:
    with db.reading() as connection:
        return str(connection.execute(which.select()).all())


def test_a_token_belongs_to_its_researcher(db, ann):
    token = tokens.create(db, ann, " notebook ")
    assert token.startswith("vseg_")
    assert tokens.find_researcher(db, token) == "Ann"
    assert tokens.find_researcher(db, token + "x") is None
    assert tokens.find_researcher(db, "") is None
    assert token not in read_stored(db, table)
    (row,) = tokens.list_tokens(db, ann)
    assert row.label == "notebook"
    assert tokens.list_tokens(db, "Bob") == []


def test_use_is_recorded_once_a_minute(db, ann):
    token = tokens.create(db, ann, "script")
    assert tokens.list_tokens(db, ann)[0].last_used_at_ms is None
    noted = []
    for now_ms in (NOW, NOW + 59_999, NOW + 60_000):
        tokens.find_researcher(db, token, now_ms=now_ms)
        noted.append(tokens.list_tokens(db, ann)[0].last_used_at_ms)
    assert noted == [NOW, NOW, NOW + 60_000]


def test_a_token_ends_after_a_year(db, ann):
    token = tokens.create(db, ann, "notebook")
    (row,) = tokens.list_tokens(db, ann)
    assert row.ends_at_ms == row.created_at_ms + 365 * 24 * 60 * 60 * 1000
    assert tokens.find_researcher(db, token, now_ms=row.ends_at_ms - 1) == "Ann"
    assert tokens.find_researcher(db, token, now_ms=row.ends_at_ms) is None


def test_revoked_token_is_invalid(db, ann):
    kept, gone = tokens.create(db, ann, "kept"), tokens.create(db, ann, "gone")
    number = tokens.list_tokens(db, ann)[1].id
    with pytest.raises(NotFound, match=f"no token {number}"):
        tokens.revoke(db, "Bob", number)
    tokens.revoke(db, ann, number)
    assert tokens.find_researcher(db, gone) is None
    assert tokens.find_researcher(db, kept) == ann
    with pytest.raises(NotFound, match="may have been revoked"):
        tokens.revoke(db, ann, number)


@pytest.mark.parametrize("label", ["", "  ", "x" * 65, "a\nb"])
def test_invalid_labels(db, ann, label):
    with pytest.raises(InvalidInput, match="in 1 to 64 printable characters"):
        tokens.create(db, ann, label)


def test_tokens_need_a_researcher_and_are_limited(db, ann, monkeypatch):
    with pytest.raises(NotFound, match="no researcher 'Eve'"):
        tokens.create(db, "Eve", "script")
    monkeypatch.setattr(tokens, "MAX_TOKENS", 2)
    for label in "ab":
        tokens.create(db, ann, label)
    with pytest.raises(Conflict, match="at most 2 tokens"):
        tokens.create(db, ann, "c")


def test_sign_in_link_works_once(db, ann):
    token = tokens.create_sign_in(db, ann, now_ms=NOW)
    assert token not in read_stored(db, sign_ins)
    assert tokens.consume_sign_in(db, "other", now_ms=NOW) is None
    assert tokens.consume_sign_in(db, token, now_ms=NOW + 599_999) == ann
    assert tokens.consume_sign_in(db, token, now_ms=NOW) is None


def test_sign_in_link_expires(db, ann):
    token = tokens.create_sign_in(db, ann, now_ms=NOW)
    assert tokens.consume_sign_in(db, token, now_ms=NOW + 600_000) is None
    tokens.create_sign_in(db, ann, now_ms=NOW)
    tokens.create_sign_in(db, ann, now_ms=NOW + 600_001)
    assert read_stored(db, sign_ins).count("18000") == 1, "old ones are swept out"


def test_simultaneous_use_of_a_sign_in_link_succeeds_once(db, ann):
    token, let_in, start = tokens.create_sign_in(db, ann), [], threading.Barrier(6)

    def follow() -> None:
        start.wait()
        let_in.append(tokens.consume_sign_in(db, token))

    threads = [threading.Thread(target=follow) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(let_in, key=str) == ["Ann", *[None] * 5]


def test_researchers_are_listed(db, ann):
    assert [each.name for each in store.researchers.list_researchers(db)] == ["Ann", "Bob"]
