"""Erasing a participant deletes all their rows and leaves everyone else's unchanged."""

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from stored_sessions import answer_all, begin_session, complete_session, draw_trials, event, register_study
from vseg import store
from vseg.errors import Conflict, NotFound
from vseg.store.schema import PERSONAL_TABLES, RECORD_TABLES, metadata
from vseg.store.sessions import Identity


def read_all_rows(db) -> dict[str, list[tuple]]:
    """Return everything that is stored, table by table."""
    with db.reading() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(table.select())), key=repr)
            for table in metadata.sorted_tables
            if table.name not in ("studies", "images", "alembic_version")
        }


def take_part(db, study, pid, link, how):
    identity = Identity(pid) if pid else None
    begun = store.sessions.begin(
        db, study, draw_trials, identity=identity, link=link, now_ms=1_800_000_000_000
    )
    store.responses.append(db, begun.session.id, [], [event(1000, "comment", text="hello")]).result()
    if how == "finish":
        answer_all(db, begun)
    elif how == "leave":
        answer_all(db, begun)
        store.sessions.leave(db, begun.session, keep=True)
    elif how == "withdraw":
        store.sessions.leave(db, begun.session, keep=False)
    return begun


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
@given(
    how=st.sampled_from(["begin", "finish", "leave", "withdraw"]),
    named=st.booleans(),
    linked=st.booleans(),
    number=st.integers(0, 2**40),
)
def test_erasing_leaves_the_database_as_before(db, how, named, linked, number):
    study = register_study(db, participants=100)
    take_part(db, study, f"other-{number}", None, "finish")
    links = store.sessions.create_links(db, study, 1) if linked else [None]
    before = read_all_rows(db)
    begun = take_part(db, study, f"pid-{number}" if named else None, links[0], how)
    assert read_all_rows(db) != before
    erased = store.sessions.erase(db, study, begun.session.participant)
    after = read_all_rows(db)
    if linked:  # the link, which existed before, is deleted with the participant
        assert len(after["links"]) == len(before["links"]) - 1
        after["links"] = before["links"]
    assert after == before
    assert (erased.sessions, erased.links) == (1, int(linked))
    assert erased.identities == (named and how != "withdraw")
    assert erased.responses == (2 if how in ("finish", "leave") else 0)
    assert erased.events == (how != "withdraw")


def test_erasing_an_unknown_participant(db):
    study, other = register_study(db), register_study(db, name="other")
    one = begin_session(db, study)
    with pytest.raises(NotFound, match="Study 'small' has no participant 'pnobody'"):
        store.sessions.erase(db, study, "pnobody")
    with pytest.raises(NotFound):
        store.sessions.erase(db, other, one.session.participant)
    store.sessions.erase(db, study, one.session.participant)
    with pytest.raises(NotFound, match="or they were erased"):
        store.sessions.erase(db, study, one.session.participant)


def test_records_after_erasure_are_refused(db):
    study = register_study(db)
    one = begin_session(db, study)
    store.sessions.erase(db, study, one.session.participant)
    with pytest.raises(NotFound, match="no such session"):
        answer_all(db, one)


def test_erasing_frees_the_place_but_not_the_link(db):
    study = register_study(db, participants=1, more="personal_links_only = true")
    first, second = store.sessions.create_links(db, study, 2)
    one = begin_session(db, study, link=first)
    complete_session(db, one)
    with pytest.raises(Conflict):
        begin_session(db, study, link=second)
    store.sessions.erase(db, study, one.session.participant)
    with pytest.raises(Conflict) as refused:
        begin_session(db, study, link=first)
    assert refused.value.reason == "link"
    assert not begin_session(db, study, link=second).resumed


def test_paused_study_accepts_nobody_new_and_lets_others_continue(db):
    study = register_study(db)
    one = begin_session(db, study, "pid-1")
    store.studies.pause(db, study.name)
    assert store.studies.get_study(db, study.name).status == "paused"
    assert store.sessions.get_refusal_reason(db, study, now_ms=1_800_000_000_000) == "paused"
    with pytest.raises(Conflict, match="paused") as refused:
        begin_session(db, study, "pid-2")
    assert refused.value.reason == "paused"
    again = begin_session(db, study, "pid-1")
    assert (again.resumed, again.session.name) == (True, one.session.name)
    complete_session(db, again)
    store.studies.reopen(db, study.name)
    assert not begin_session(db, study, "pid-2").resumed


def test_every_table_with_personal_data_is_listed():
    """Every table that refers to a participant, directly or through other tables, is in PERSONAL_TABLES."""
    about = {"participants"}
    while True:
        more = {
            table.name
            for table in metadata.sorted_tables
            if about & {key.column.table.name for key in table.foreign_keys}
        }
        if more <= about:
            break
        about |= more
    assert {table.name for table in PERSONAL_TABLES} == about
    assert {table.name for table in RECORD_TABLES} == about - {
        "participants", "identities", "links", "sessions", "assignments",
    }  # fmt: skip
