"""Researchers: passwords, logins and one-time tokens."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, update

from vseg.errors import Conflict, NotFound
from vseg.store import researchers, tokens
from vseg.store.database import now_ms
from vseg.store.schema import logins, sign_ins, tokens as token_rows


def test_a_researcher_is_added_once(db):
    assert researchers.count_researchers(db) == 0
    researchers.set_password(db, "ada", "hash")
    assert researchers.get_password_hash(db, "ada") == "hash"
    assert researchers.get_password_hash(db, "bob") is None
    assert researchers.count_researchers(db) == 1


def test_new_password_ends_all_logins_of_this_researcher_only(db):
    for name in ("ada", "bob"):
        researchers.set_password(db, name, "hash")
    researchers.set_password(db, "ada", "new")
    assert researchers.get_password_hash(db, "ada") == "new"
    assert researchers.get_signed_out_at_ms(db, "ada") > 0
    assert (researchers.get_signed_out_at_ms(db, "bob"), researchers.get_password_hash(db, "bob")) == (
        0,
        "hash",
    )
    assert researchers.count_researchers(db) == 2


def test_every_sign_out_has_a_new_time(db):
    """Even two within a millisecond, or by computers with different clocks."""
    researchers.set_password(db, "ada", "hash")
    seen = []
    for _ in range(5):
        seen.append(researchers.get_signed_out_at_ms(db, "ada"))
        researchers.log_out(db, "ada")
    assert sorted(set(seen)) == seen
    researchers.log_out(db, "nobody")
    assert researchers.get_signed_out_at_ms(db, "nobody") is None


def test_ending_a_login_deletes_its_row(db):
    for name in ("ada", "bob"):
        researchers.set_password(db, name, "hash")
    for name, token in (("ada", "one"), ("ada", "two"), ("bob", "three")):
        assert researchers.log_in(db, name, token, 0)
    assert [researchers.find_logged_in(db, token) for token in ("one", "two", "three", "four")] == [
        "ada", "ada", "bob", None,
    ]  # fmt: skip
    researchers.log_out(db, "ada")
    assert [researchers.find_logged_in(db, token) for token in ("one", "two", "three")] == [None, None, "bob"]
    researchers.set_password(db, "bob", "new")
    assert researchers.find_logged_in(db, "three") is None
    with db.reading() as connection:
        assert connection.execute(select(logins)).all() == []


def test_login_fails_if_all_logins_were_ended_meanwhile(db):
    """The password was changed, or all logins ended, while the password was being checked."""
    researchers.set_password(db, "ada", "hash")
    before = researchers.get_signed_out_at_ms(db, "ada")
    researchers.set_password(db, "ada", "new")
    assert not researchers.log_in(db, "ada", "late", before)
    assert not researchers.log_in(db, "nobody", "late", None)
    assert researchers.find_logged_in(db, "late") is None


def test_a_login_lasts_twelve_hours(db):
    researchers.set_password(db, "ada", "hash")
    researchers.log_in(db, "ada", "old", 0)
    for age_h, name in ((11.99, "ada"), (12.01, None)):
        with db.writing() as connection:
            connection.execute(update(logins).values(made_at_ms=now_ms() - int(age_h * 3_600_000)))
        assert researchers.find_logged_in(db, "old") == name
    researchers.log_in(db, "ada", "new", 0)
    with db.reading() as connection:
        assert len(connection.execute(select(logins)).all()) == 1, "the old row is gone"


def test_removing_a_researcher_deletes_all_their_rows(db):
    for name in ("ada", "bob"):
        researchers.set_password(db, name, "hash")
        researchers.log_in(db, name, f"login of {name}", 0)
        tokens.create(db, name, "script")
        tokens.create_sign_in(db, name)
    researchers.set_setting(db, researchers.SETUP_SETTING, "a link that waits")
    researchers.remove(db, "bob")
    assert [each.name for each in researchers.list_researchers(db)] == ["ada"]
    assert researchers.find_logged_in(db, "login of ada") == "ada"
    with db.reading() as connection:
        assert [len(connection.execute(select(table)).all()) for table in (logins, token_rows, sign_ins)] == [
            1,
            1,
            1,
        ]
    assert researchers.get_setting(db, researchers.SETUP_SETTING) is None
    with pytest.raises(NotFound, match="no researcher 'bob'"):
        researchers.remove(db, "bob")
    with pytest.raises(NotFound):
        researchers.change_password(db, "bob", "who was comparing passwords when they were removed")
    assert researchers.count_researchers(db) == 1


def test_of_two_researchers_removing_each_other_one_remains(db):
    for name in ("ada", "bob"):
        researchers.set_password(db, name, "hash")

    def remove(name: str) -> bool:
        try:
            researchers.remove(db, name)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(remove, ("ada", "bob"))) == 1
    assert researchers.count_researchers(db) == 1


def test_a_setting_is_consumed_once(db):
    researchers.set_setting(db, "token", "old")
    researchers.set_setting(db, "token", "secret")
    assert not researchers.consume_setting(db, "token", "guess")
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda _: researchers.consume_setting(db, "token", "secret"), range(8)))
    assert sum(taken) == 1
    assert researchers.get_setting(db, "token") is None
