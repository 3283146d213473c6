from concurrent.futures import ThreadPoolExecutor

import pytest

from vseg.errors import Conflict, NotFound
from vseg.store import researchers


def test_a_researcher_is_added_once(db):
    assert researchers.count(db) == 0
    researchers.add(db, "ada", "hash")
    with pytest.raises(Conflict, match="'ada'"):
        researchers.add(db, "ada", "other")
    assert researchers.password_hash(db, "ada") == "hash"
    assert researchers.password_hash(db, "bob") is None
    assert researchers.count(db) == 1


def test_a_password_can_be_changed(db):
    researchers.add(db, "ada", "hash")
    researchers.change(db, "ada", "new")
    assert researchers.password_hash(db, "ada") == "new"
    with pytest.raises(NotFound, match="'bob'"):
        researchers.change(db, "bob", "new")


def test_workers_that_start_together_agree(db):
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda number: researchers.agreed_setting(db, "key", str(number)), range(8)))
    assert found == {researchers.setting(db, "key")}


def test_a_one_time_token_is_taken_once(db):
    researchers.set_setting(db, "token", "old")
    researchers.set_setting(db, "token", "secret")
    assert not researchers.take_setting(db, "token", "guess")
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda _: researchers.take_setting(db, "token", "secret"), range(8)))
    assert sum(taken) == 1
    assert researchers.setting(db, "token") is None
