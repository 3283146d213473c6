from concurrent.futures import ThreadPoolExecutor

from vseg.store import researchers


def test_a_researcher_is_added_once(db):
    assert researchers.count(db) == 0
    researchers.set_password(db, "ada", "hash")
    assert researchers.password_hash(db, "ada") == "hash"
    assert researchers.password_hash(db, "bob") is None
    assert researchers.count(db) == 1


def test_a_new_password_ends_every_login_and_that_of_nobody_else(db):
    for name in ("ada", "bob"):
        researchers.set_password(db, name, "hash")
    researchers.set_password(db, "ada", "new")
    assert researchers.password_hash(db, "ada") == "new"
    assert researchers.signed_out_at_ms(db, "ada") > 0
    assert (researchers.signed_out_at_ms(db, "bob"), researchers.password_hash(db, "bob")) == (0, "hash")
    assert researchers.count(db) == 2


def test_each_sign_out_is_another_moment(db):
    """Also two within a millisecond, or by computers whose clocks differ."""
    researchers.set_password(db, "ada", "hash")
    seen = []
    for _ in range(5):
        seen.append(researchers.signed_out_at_ms(db, "ada"))
        researchers.sign_out(db, "ada")
    assert sorted(set(seen)) == seen
    researchers.sign_out(db, "nobody")
    assert researchers.signed_out_at_ms(db, "nobody") is None


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
