"""Sessions that a process does not know yet are looked up together."""

import asyncio

import pytest
from sqlalchemy import event as sql

from servers import STUDY, register
from takers import SOLO
from vseg import store
from vseg.server.participants import study_draw
from vseg.server.recall import AT_ONCE, Recall

CROWDED = STUDY.replace("participants = 3", "participants = 500")


@pytest.fixture
def db(database_url):
    with store.open(database_url) as database:
        register(database, CROWDED)
        yield database


def begun(db, count, name="tiny"):
    """Tokens of people who have begun."""
    study = store.studies.named(db, name)
    draw = study_draw(study)
    return [store.sessions.begin(db, study, draw, now_ms=store.database.now_ms()).token for _ in range(count)]


async def together(recall, tokens):
    return await asyncio.gather(*map(recall.of, tokens), return_exceptions=True)


def test_many_are_looked_up_in_few_queries(db):
    tokens, queries = begun(db, 2 * AT_ONCE + 1), []
    sql.listen(db._reading, "before_cursor_execute", lambda *given: queries.append(given[2]))
    found = asyncio.run(together(Recall(db), tokens))
    rows = [store.sessions.by_token(db, token) for token in tokens]
    assert [each.session for each in found] == [row.id for row in rows]
    assert [len(each) for each in found] == [len(row.trials) for row in rows]
    looked_up = [query for query in queries if "token_hash IN" in query]
    assert 3 <= len(looked_up) <= 4


def test_strangers_are_nobody_and_the_same_token_twice_is_one(db):
    (token,) = begun(db, 1)
    first, stranger, again = asyncio.run(together(Recall(db), [token, "x" * 32, token]))
    assert stranger is None
    assert first is again
    assert first.study == "tiny"


def test_people_of_several_studies_are_looked_up_together_and_those_of_an_adaptive_one_with_what_is_ahead(db):
    register(db, SOLO)
    tokens = begun(db, 2) + begun(db, 2, "ada")
    found = asyncio.run(together(Recall(db), tokens))
    rows = [store.sessions.by_token(db, token) for token in tokens]
    assert [each.study for each in found] == ["tiny", "tiny", "ada", "ada"]
    assert [each.ahead is None for each in found] == [True, True, False, False]
    assert [each.ahead.session for each in found[2:]] == [row.id for row in rows[2:]]


def test_a_database_in_trouble_is_told_to_all_and_asked_again_later(db):
    tokens = begun(db, 3)

    async def asked():
        recall = Recall(db)
        db.outside("ALTER TABLE sessions RENAME TO away")
        troubled = await together(recall, tokens)
        db.outside("ALTER TABLE away RENAME TO sessions")
        return troubled, await together(recall, tokens)

    troubled, found = asyncio.run(asked())
    assert all(isinstance(each, Exception) for each in troubled), "whatever the database makes of it"
    assert [each.session for each in found] == [store.sessions.by_token(db, token).id for token in tokens]
