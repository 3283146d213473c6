"""Choices of an adaptive study: stored once and in order, based on records without gaps; and older databases."""

from dataclasses import replace

import pytest
from alembic import command
from sqlalchemy import text

from stored_sessions import answer_all, begin_session, complete_session, event, register_study, response
from vseg import store
from vseg.errors import Conflict
from vseg.store.choices import ChoiceBatch, EarlyStop, SessionBasis
from vseg.store.migrate import _config
from vseg.store.schema import metadata


@pytest.fixture
def begun(db):
    return begin_session(db, register_study(db, images="a"))


def batch(begun, items, *, records=0, image="a") -> ChoiceBatch:
    number = begun.session.id
    return ChoiceBatch(
        number, begun.session.name, image, "bald", 2**62, records, 0.25, {number: SessionBasis(records, items[0])},
        items, [1] * len(items), [2] * len(items),
    )  # fmt: skip


def record(db, begun, items, *, after=0, **options) -> int | None:
    return store.choices.save_batch(
        db, batch(begun, items, **options), after=after, session_ids=[begun.session.id]
    )


def test_stored_choices_are_read_back(db, begun):
    number = record(db, begun, [0, 1], records=3)
    assert store.choices.get_chosen_pairs(db, begun.session.id) == {0: (1, 2), 1: (1, 2)}
    with db.reading() as connection:
        rows = store.choices.list_choices(connection, begun.session.id)
    assert [row["item"] for row in rows] == [0, 1]
    assert (rows[0]["rule"], rows[0]["seed"], rows[0]["expected_error"]) == ("bald", 2**62, 0.25)
    assert rows[0]["taken"] == [(begun.session.name, 3, 0)]
    assert rows[0]["batch"] == number


def test_second_batch_without_knowledge_of_the_first_is_too_late(db, begun):
    first = record(db, begun, [0])
    assert first is not None
    assert record(db, begun, [0]) is None
    assert record(db, begun, [1]) is None
    assert record(db, begun, [1, 0], after=first) is None, "the batch is known, but not what it chose"
    assert record(db, begun, [1], after=first) is not None


def stops(db, begun):
    with db.reading() as connection:
        return store.choices.list_stops(connection, begun.session.id)


def test_no_choices_are_stored_for_a_finished_session(db, begun):
    complete_session(db, begun)
    assert record(db, begun, [0]) is None
    store.choices.save_stop(db, begun.session.id, begun.session.name, EarlyStop("a", 1, 2, 1, 0.04))
    assert stops(db, begun) == []


def test_late_choices_for_an_erased_session_are_not_given_to_another(db):
    """SQLite gives the id of an erased session to the next one."""
    study = register_study(db, images="a")
    gone = begin_session(db, study)
    late = batch(gone, [0])
    store.sessions.erase(db, study, gone.session.participant)
    following = begin_session(db, study)
    number = following.session.id
    assert store.choices.save_batch(db, replace(late, session=number), after=0, session_ids=[number]) is None
    store.choices.save_stop(db, number, gone.session.name, EarlyStop("a", 1, 2, 1, 0.04))
    assert stops(db, following) == []
    assert record(db, following, [0]) is not None


def test_answers_are_read_up_to_the_first_missing_record(db, begun):
    number = begun.session.id
    rows = [response(0, 0), response(2, 1, flags="late"), response(4, 1, same=False, chosen=True)]
    store.responses.append(db, number, rows, [event(1)]).result()
    with db.reading() as connection:
        heard = store.choices.read_answers(connection, number)
    assert heard.records == 3
    assert [(each.seq, each.good) for each in heard.answers] == [(0, True), (2, False)]
    store.responses.append(db, number, [response(3, 0, practice=True)], []).result()
    with db.reading() as connection:
        heard = store.choices.read_answers(connection, number, 3)
    assert heard.records == 5
    assert [(each.seq, each.same, each.chosen) for each in heard.answers] == [(4, False, True)]


def test_a_stopped_session_can_be_completed_without_the_skipped_items(db, begun):
    store.responses.append(db, begun.session.id, [response(0, 0)], []).result()
    with pytest.raises(Conflict, match="1 of 2 trials have no answer yet"):
        store.sessions.complete(db, begun.session, 1)
    store.choices.save_stop(db, begun.session.id, begun.session.name, EarlyStop("a", 1, 2, 1, 0.04))
    # A second stop of the same image is ignored.
    store.choices.save_stop(db, begun.session.id, begun.session.name, EarlyStop("a", 0, 2, 9, 0.01))
    assert store.sessions.complete(db, begun.session, 1) == []
    with db.reading() as connection:
        assert store.choices.list_stops(connection, begun.session.id) == [EarlyStop("a", 1, 2, 1, 0.04)]


def test_withdrawing_deletes_choices(db, begun):
    answer_all(db, begun)
    record(db, begun, [0, 1])
    store.choices.save_stop(db, begun.session.id, begun.session.name, EarlyStop("a", 1, 2, 1, 0.04))
    store.sessions.leave(db, begun.session, keep=False)
    with db.reading() as connection:
        for name in ("choices", "batches", "takings", "stops"):
            assert connection.execute(text(f"SELECT count(*) FROM {name}")).scalar() == 0


def test_database_without_choices_keeps_its_answers_when_updated(db, begun, database_url):
    """An earlier version is imitated by dropping the tables of the newer migrations and setting the old revision."""
    answer_all(db, begun)
    with db.writing() as connection:
        for name in ("takings", "choices", "batches", "stops", "logins"):
            metadata.tables[name].drop(connection)
        connection.execute(text("ALTER TABLE responses DROP COLUMN chosen"))
        config = _config()
        config.attributes["connection"] = connection
        command.stamp(config, "0001")
    with store.open(database_url) as again:
        study = store.studies.list_studies(again)[0]
        rows = [row for rows in store.responses.stream_responses(again, study.id) for row in rows]
        assert [row["chosen"] for row in rows] == [False, False]
        assert store.sessions.complete(again, begun.session, 2) == []
