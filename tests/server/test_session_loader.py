"""Sessions that are not cached are loaded together."""

import asyncio

import httpx
import pytest
from sqlalchemy import event as sql, update

from adaptive_participants import ADAPTIVE_STUDY
from servers import STUDY, register_studies, response, run_server
from vseg import store
from vseg.errors import SchemaMismatch
from vseg.server.participant_routes import make_trial_drawer
from vseg.server.session_cache import SessionCache
from vseg.server.session_loader import BATCH_SIZE, SessionLoader, follow_other_workers
from vseg.store.schema import sessions, studies
from vseg.store.tokens import hash_token

LARGE_STUDY = STUDY.replace("participants = 3", "participants = 500")
OTHER = STUDY.replace('"tiny"', '"other"')


@pytest.fixture
def db(database_url):
    with store.open(database_url) as database:
        register_studies(database, LARGE_STUDY)
        yield database


def begin_sessions(db, count, name="tiny"):
    """Begin sessions and return their tokens."""
    study = store.studies.get_study(db, name)
    draw = make_trial_drawer(study)
    return [store.sessions.begin(db, study, draw, now_ms=store.database.now_ms()).token for _ in range(count)]


async def load_together(loader, tokens):
    return await asyncio.gather(*map(loader.load, map(hash_token, tokens)), return_exceptions=True)


def test_many_sessions_are_loaded_in_few_queries(db):
    tokens, queries = begin_sessions(db, 2 * BATCH_SIZE + 1), []
    sql.listen(db._reading, "before_cursor_execute", lambda *arguments: queries.append(arguments[2]))
    loaded = asyncio.run(load_together(SessionLoader(db), tokens))
    rows = [store.sessions.get_by_token(db, token) for token in tokens]
    assert [session.id for session in loaded] == [row.id for row in rows]
    assert [len(session) for session in loaded] == [len(row.trials) for row in rows]
    lookups = [query for query in queries if "token_hash IN" in query]
    assert 3 <= len(lookups) <= 4


def test_unknown_tokens_and_the_same_token_twice(db):
    (token,) = begin_sessions(db, 1)
    first, unknown, again = asyncio.run(load_together(SessionLoader(db), [token, "x" * 32, token]))
    assert unknown is None
    assert first is again
    assert first.study == "tiny"


def test_sessions_of_several_studies_are_loaded_together(db):
    register_studies(db, ADAPTIVE_STUDY)
    tokens = begin_sessions(db, 2) + begin_sessions(db, 2, "ada")
    loaded = asyncio.run(load_together(SessionLoader(db), tokens))
    rows = [store.sessions.get_by_token(db, token) for token in tokens]
    assert [session.study for session in loaded] == ["tiny", "tiny", "ada", "ada"]
    assert [session.choices is None for session in loaded] == [True, True, False, False]
    assert [session.choices.session for session in loaded[2:]] == [row.id for row in rows[2:]]


@pytest.mark.parametrize("damaged", ["study", "trials"])
def test_an_unreadable_session_does_not_affect_the_others(db, damaged):
    register_studies(db, OTHER)
    tokens = begin_sessions(db, 4) + begin_sessions(db, 1, "other") + begin_sessions(db, 4)
    with db.writing() as connection:
        if damaged == "study":
            connection.execute(
                update(studies).where(studies.c.name == "other").values(text="colour = 'blue'")
            )
        else:
            bad = sessions.c.token_hash == hash_token(tokens[4])
            connection.execute(update(sessions).where(bad).values(trials="{"))
    loaded = asyncio.run(load_together(SessionLoader(db), tokens))
    assert isinstance(loaded.pop(4), SchemaMismatch if damaged == "study" else ValueError)
    assert [session.study for session in loaded] == ["tiny"] * 8


def test_records_of_an_unreadable_study_get_503(database_url):
    """A page discards records that are refused; after 503 it keeps them until the study can be read again."""
    with run_server(database_url, LARGE_STUDY, OTHER) as server:
        participants = [server.begin() for _ in range(3)] + [server.begin("other")]
        with server.db.writing() as connection:
            connection.execute(
                update(studies).where(studies.c.name == "other").values(text="colour = 'blue'")
            )
        assert server.client.get("s/other/study.json").status_code == 503
    with run_server(database_url, LARGE_STUDY) as server:

        async def post(client, participant):
            return await client.post(
                f"s/{participant.study}/records",
                json={"records": [response(0, 0)]},
                headers=participant.headers,
            )

        async def post_at_once():
            async with httpx.AsyncClient(base_url=server.base, trust_env=False) as client:
                return await asyncio.gather(*(post(client, participant) for participant in participants))

        *replies, failed = asyncio.run(post_at_once())
        assert [reply.status_code for reply in replies] == [200] * 3
        assert failed.status_code == 503
        assert "colour" not in failed.text
        assert len(server.begin().state["trials"]["i"]) > 0


def test_a_database_error_is_raised_for_all_and_the_next_load_tries_again(db):
    tokens = begin_sessions(db, 3)

    async def load_twice():
        loader = SessionLoader(db)
        db.run_outside_transaction("ALTER TABLE sessions RENAME TO away")
        failures = await load_together(loader, tokens)
        db.run_outside_transaction("ALTER TABLE away RENAME TO sessions")
        return failures, await load_together(loader, tokens)

    failures, loaded = asyncio.run(load_twice())
    assert all(isinstance(failure, Exception) for failure in failures), (
        "of a type that depends on the database"
    )
    assert [session.id for session in loaded] == [
        store.sessions.get_by_token(db, token).id for token in tokens
    ]


def record_queries(db) -> list[str]:
    """Return a list to which all queries from now on are added."""
    queries: list[str] = []
    sql.listen(db._reading, "before_cursor_execute", lambda *arguments: queries.append(arguments[2]))
    return queries


def count_polls(queries: list[str]) -> int:
    """Count the queries for new sessions."""
    return sum("SELECT sessions.token_hash" in query for query in queries)


async def wait_until(condition):
    while not condition():  # the time limit of a test ends it if that never happens
        await asyncio.sleep(0.05)


def test_sessions_of_other_workers_are_loaded_ahead(db):
    (before,), cache, queries = begin_sessions(db, 1), SessionCache(), record_queries(db)

    async def follow():
        async with follow_other_workers(db, SessionLoader(db), cache):
            await wait_until(lambda: count_polls(queries))
            tokens = await asyncio.to_thread(begin_sessions, db, BATCH_SIZE + 2)
            await wait_until(lambda: all(hash_token(token) in cache for token in tokens))
            return tokens

    tokens = asyncio.run(follow())
    loaded = [cache.get(hash_token(token), "tiny").id for token in tokens]
    assert loaded == [store.sessions.get_by_token(db, token).id for token in tokens]
    assert hash_token(before) not in cache, "its participant may have left long ago"


def test_dropped_sessions_are_not_loaded_again(db):
    cache, queries = SessionCache(max_sessions=2), record_queries(db)

    def polls_since_last_load() -> int:
        last = max(
            (index for index, query in enumerate(queries) if "token_hash IN" in query), default=len(queries)
        )
        return count_polls(queries[last:])

    async def follow():
        async with follow_other_workers(db, SessionLoader(db), cache):
            await wait_until(lambda: count_polls(queries))
            await asyncio.to_thread(begin_sessions, db, 5)
            await wait_until(lambda: polls_since_last_load() >= 3)

    asyncio.run(follow())


def test_polling_continues_after_a_database_error_that_is_logged_once(db, caplog):
    cache, queries = SessionCache(), record_queries(db)

    async def follow():
        async with follow_other_workers(db, SessionLoader(db), cache):
            await wait_until(lambda: count_polls(queries))
            db.run_outside_transaction("ALTER TABLE sessions RENAME TO away")
            try:
                await wait_until(lambda: caplog.messages)
                before = count_polls(queries)
                await wait_until(lambda: count_polls(queries) >= before + 2)
            finally:
                db.run_outside_transaction("ALTER TABLE away RENAME TO sessions")
            (token,) = await asyncio.to_thread(begin_sessions, db, 1)
            await wait_until(lambda: hash_token(token) in cache)

    asyncio.run(follow())
    (message,) = caplog.messages
    assert message.startswith("Cannot load the sessions of other workers now: ")
