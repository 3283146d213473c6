"""Sessions that a process does not know yet are looked up together."""

import asyncio

import httpx
import pytest
from sqlalchemy import event as sql, update

from adaptive_participants import ADAPTIVE_STUDY
from servers import STUDY, register_studies, response, run_server
from vseg import store
from vseg.errors import SchemaMismatch
from vseg.server.participants import make_trial_drawer
from vseg.server.session_cache import SessionCache
from vseg.server.session_loader import BATCH_SIZE, SessionLoader, follow_other_workers
from vseg.store.schema import sessions, studies
from vseg.store.tokens import hash_token

CROWDED = STUDY.replace("participants = 3", "participants = 500")
OTHER = STUDY.replace('"tiny"', '"other"')


@pytest.fixture
def db(database_url):
    with store.open(database_url) as database:
        register_studies(database, CROWDED)
        yield database


def begun(db, count, name="tiny"):
    """Tokens of people who have begun."""
    study = store.studies.get_study(db, name)
    draw = make_trial_drawer(study)
    return [store.sessions.begin(db, study, draw, now_ms=store.database.now_ms()).token for _ in range(count)]


async def together(loader, tokens):
    return await asyncio.gather(*map(loader.load, map(hash_token, tokens)), return_exceptions=True)


def test_many_are_looked_up_in_few_queries(db):
    tokens, queries = begun(db, 2 * BATCH_SIZE + 1), []
    sql.listen(db._reading, "before_cursor_execute", lambda *given: queries.append(given[2]))
    found = asyncio.run(together(SessionLoader(db), tokens))
    rows = [store.sessions.get_by_token(db, token) for token in tokens]
    assert [each.id for each in found] == [row.id for row in rows]
    assert [len(each) for each in found] == [len(row.trials) for row in rows]
    looked_up = [query for query in queries if "token_hash IN" in query]
    assert 3 <= len(looked_up) <= 4


def test_strangers_are_nobody_and_the_same_token_twice_is_one(db):
    (token,) = begun(db, 1)
    first, stranger, again = asyncio.run(together(SessionLoader(db), [token, "x" * 32, token]))
    assert stranger is None
    assert first is again
    assert first.study == "tiny"


def test_people_of_several_studies_are_looked_up_together_and_those_of_an_adaptive_one_with_what_is_ahead(db):
    register_studies(db, ADAPTIVE_STUDY)
    tokens = begun(db, 2) + begun(db, 2, "ada")
    found = asyncio.run(together(SessionLoader(db), tokens))
    rows = [store.sessions.get_by_token(db, token) for token in tokens]
    assert [each.study for each in found] == ["tiny", "tiny", "ada", "ada"]
    assert [each.pending_choices is None for each in found] == [True, True, False, False]
    assert [each.pending_choices.session for each in found[2:]] == [row.id for row in rows[2:]]


@pytest.mark.parametrize("spoilt", ["study", "trials"])
def test_one_that_cannot_be_read_is_no_trouble_of_those_who_ask_beside(db, spoilt):
    register_studies(db, OTHER)
    tokens = begun(db, 4) + begun(db, 1, "other") + begun(db, 4)
    with db.writing() as connection:
        if spoilt == "study":
            connection.execute(
                update(studies).where(studies.c.name == "other").values(text="colour = 'blue'")
            )
        else:
            bad = sessions.c.token_hash == hash_token(tokens[4])
            connection.execute(update(sessions).where(bad).values(trials="{"))
    found = asyncio.run(together(SessionLoader(db), tokens))
    assert isinstance(found.pop(4), SchemaMismatch if spoilt == "study" else ValueError)
    assert [each.study for each in found] == ["tiny"] * 8


def test_what_people_of_an_unreadable_study_send_is_not_refused_for_good(database_url):
    """A page gives up what is refused; with 503 it keeps it until the study can be read again."""
    with run_server(database_url, CROWDED, OTHER) as server:
        people = [server.begin() for _ in range(3)] + [server.begin("other")]
        with server.db.writing() as connection:
            connection.execute(
                update(studies).where(studies.c.name == "other").values(text="colour = 'blue'")
            )
        assert server.client.get("s/other/study.json").status_code == 503
    with run_server(database_url, CROWDED) as server:

        async def post(client, person):
            return await client.post(
                f"s/{person.study}/records", json={"records": [response(0, 0)]}, headers=person.headers
            )

        async def all_at_once():
            async with httpx.AsyncClient(base_url=server.base, trust_env=False) as client:
                return await asyncio.gather(*(post(client, person) for person in people))

        *good, bad = asyncio.run(all_at_once())
        assert [answer.status_code for answer in good] == [200] * 3
        assert bad.status_code == 503
        assert "colour" not in bad.text
        assert len(server.begin().state["trials"]["i"]) > 0


def test_a_database_in_trouble_is_told_to_all_and_asked_again_later(db):
    tokens = begun(db, 3)

    async def asked():
        loader = SessionLoader(db)
        db.run_outside_transaction("ALTER TABLE sessions RENAME TO away")
        troubled = await together(loader, tokens)
        db.run_outside_transaction("ALTER TABLE away RENAME TO sessions")
        return troubled, await together(loader, tokens)

    troubled, found = asyncio.run(asked())
    assert all(isinstance(each, Exception) for each in troubled), "whatever the database makes of it"
    assert [each.id for each in found] == [store.sessions.get_by_token(db, token).id for token in tokens]


def heard(db) -> list[str]:
    """What the database is asked from now on."""
    queries: list[str] = []
    sql.listen(db._reading, "before_cursor_execute", lambda *given: queries.append(given[2]))
    return queries


def looks(queries: list[str]) -> int:
    """How often it was asked who is new."""
    return sum("SELECT sessions.token_hash" in query for query in queries)


async def until(is_so):
    for _ in range(400):
        if is_so():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("not within 20 s")


def test_those_who_begin_elsewhere_are_known_before_they_come(db):
    (before,), cache, queries = begun(db, 1), SessionCache(), heard(db)

    async def meet():
        async with follow_other_workers(db, SessionLoader(db), cache):
            await until(lambda: looks(queries))
            tokens = await asyncio.to_thread(begun, db, BATCH_SIZE + 2)
            await until(lambda: all(hash_token(token) in cache for token in tokens))
            return tokens

    tokens = asyncio.run(meet())
    found = [cache.get(hash_token(token), "tiny").id for token in tokens]
    assert found == [store.sessions.get_by_token(db, token).id for token in tokens]
    assert hash_token(before) not in cache, "they may be long gone"


def test_who_has_made_room_for_others_is_not_met_again(db):
    cache, queries = SessionCache(max_sessions=2), heard(db)

    def looks_since_one_was_read() -> int:
        last = max((at for at, query in enumerate(queries) if "token_hash IN" in query), default=len(queries))
        return looks(queries[last:])

    async def meet():
        async with follow_other_workers(db, SessionLoader(db), cache):
            await until(lambda: looks(queries))
            await asyncio.to_thread(begun, db, 5)
            await until(lambda: looks_since_one_was_read() >= 3)

    asyncio.run(meet())


def test_a_database_in_trouble_does_not_end_the_looks_and_is_told_once(db, caplog):
    cache, queries = SessionCache(), heard(db)

    async def meet():
        async with follow_other_workers(db, SessionLoader(db), cache):
            await until(lambda: looks(queries))
            db.run_outside_transaction("ALTER TABLE sessions RENAME TO away")
            try:
                await until(lambda: caplog.messages)
                so_far = looks(queries)
                await until(lambda: looks(queries) >= so_far + 2)
            finally:
                db.run_outside_transaction("ALTER TABLE away RENAME TO sessions")
            (token,) = await asyncio.to_thread(begun, db, 1)
            await until(lambda: hash_token(token) in cache)

    asyncio.run(meet())
    (told,) = caplog.messages
    assert told.startswith("Cannot load the sessions of other workers now: ")
