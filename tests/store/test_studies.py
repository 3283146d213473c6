import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from sqlalchemy import update

from stored_sessions import begin_session, make_images, make_study_text, register_study
from strategies import some_maps
from vseg import store
from vseg.errors import Conflict, NotFound, SchemaMismatch
from vseg.store.schema import studies
from vseg.study.schema import parse_study


def register(db, text, shown=None):
    return store.studies.register(db, text, parse_study(text), make_images() if shown is None else shown)


def test_registered_study_is_read_back(db):
    text, shown = make_study_text(), make_images()
    row = register(db, text, shown)
    assert store.studies.get_study(db, "small") == row
    assert row.study == parse_study(text)
    assert (row.text, row.status, row.frozen_at_ms) == (text, "open", None)
    assert {name: image.sha256 for name, image in row.images.items()} == {
        name: shown[name].sha256 for name in "ab"
    }
    png = store.studies.get_image(db, row.id, shown["a"].sha256)
    assert png == shown["a"].png
    assert row.truth("a") is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=6)
@given(maps=some_maps())
def test_truth_is_read_back_on_any_layout(db, maps):
    shown = make_images("a")
    text = make_study_text("a", name=f"truth-{hashlib.sha256(maps.probabilities.tobytes()).hexdigest()[:20]}")
    row = register(db, text, {"a": replace(shown["a"], truth=maps)})
    found = row.truth("a")
    assert found.layout == maps.layout
    np.testing.assert_allclose(found.probabilities, maps.probabilities, rtol=0, atol=1e-15)


def test_an_image_belongs_to_its_study(db):
    first, second = register_study(db, "a", name="first"), register_study(db, "ab", name="second")
    with pytest.raises(NotFound, match="no such image"):
        store.studies.get_image(db, first.id, second.images["b"].sha256)


def test_a_new_study_replaces_none_of_the_same_name(db):
    first = register(db, make_study_text())
    text = make_study_text("abc", participants=9)
    with pytest.raises(Conflict, match="There is already a study 'small'; choose another name") as refused:
        store.studies.register(db, text, parse_study(text), make_images("abc"), must_be_new=True)
    assert refused.value.reason == "exists"
    assert store.studies.get_study(db, "small") == first


def test_of_new_studies_of_the_same_name_created_at_once_one_is_stored(database_url):
    """By several processes: each sees that the name is free, then draws the images, then stores the study."""
    with store.open(database_url) as one, store.open(database_url) as two:
        for number in range(5):
            texts = [make_study_text("a", name=f"new-{number}", participants=2 + k) for k in range(4)]
            ready = threading.Barrier(len(texts))

            def create(k: int, texts=texts, ready=ready) -> str | None:
                study, db = parse_study(texts[k]), (one, two)[k % 2]
                store.studies.check_name_is_free(db, study.name)
                ready.wait()
                try:
                    row = store.studies.register(db, texts[k], study, make_images("a"), must_be_new=True)
                except Conflict:
                    return None
                return row.text

            with ThreadPoolExecutor(len(texts)) as pool:
                created = [text for text in pool.map(create, range(len(texts))) if text is not None]
            assert created == [store.studies.get_study(one, f"new-{number}").text]


def test_study_without_sessions_can_be_replaced(db):
    first = register(db, make_study_text())
    links = store.sessions.create_links(db, first, 1)
    second = register(db, make_study_text("abc", participants=9), make_images("abc", shade=7))
    assert second.id == first.id
    assert second.study.participants == 9
    assert sorted(second.images) == ["a", "b", "c"]
    assert second.images["a"].sha256 != first.images["a"].sha256
    assert begin_session(db, second, link=links[0]).session.study == first.id


def test_the_first_session_freezes_a_study(db):
    study = register(db, make_study_text())
    begin_session(db, study)
    frozen = store.studies.get_study(db, "small")
    assert frozen.frozen_at_ms is not None
    assert register(db, make_study_text()) == frozen
    assert register(db, "# a comment\n" + make_study_text()) == frozen, (
        "comments do not matter, and the text stays"
    )
    with pytest.raises(Conflict, match=r"changed in: participants, timing\. .*another name") as caught:
        register(db, make_study_text(participants=7, more="timing = {cue_ms = 250}"))
    assert caught.value.reason == "frozen"
    with pytest.raises(Conflict, match="changed in: images"):
        register(db, make_study_text("abc"), make_images("abc"))
    assert store.studies.get_study(db, "small") == frozen


def test_frozen_study_keeps_generated_images_and_rejects_changed_files(db):
    text = make_study_text("a") + '[[images]]\nname = "b"\nfile = "b.png"\n'
    begin_session(db, register(db, text))
    other = make_images(shade=9)
    kept = register(db, text, {"a": other["a"], "b": make_images()["b"]})
    assert kept.images["a"].sha256 == make_images()["a"].sha256
    with pytest.raises(Conflict, match="changed in: the picture of image b"):
        register(db, text, other)


def test_simultaneous_workers_register_a_study_once(db):
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda _: register(db, make_study_text()), range(8)))
    assert [row.id for row in rows] == [rows[0].id] * 8
    assert [row.name for row in store.studies.list_studies(db)] == ["small"]


def test_unknown_study_error_lists_the_existing_ones(db):
    with pytest.raises(NotFound, match="it has: none yet"):
        store.studies.get_study(db, "small")
    register_study(db, name="one")
    for act in (store.studies.get_study, store.studies.close, store.studies.reopen):
        with pytest.raises(NotFound, match="no study 'two' in this database; it has: one"):
            act(db, "two")


def test_closing_and_reopening(db):
    register_study(db)
    store.studies.close(db, "small")
    assert store.studies.get_study(db, "small").status == "closed"
    store.studies.reopen(db, "small")
    assert store.studies.get_study(db, "small").status == "open"


def test_unreadable_study_is_skipped_in_the_list(db, caplog):
    for name in ("first", "second"):
        register_study(db, name=name)
    with db.writing() as connection:
        connection.execute(update(studies).where(studies.c.name == "first").values(text="colour = 'blue'"))
    assert [row.name for row in store.studies.list_studies(db)] == ["second"]
    assert "Skipped a study: This vseg cannot read study 'first'" in caplog.text
    with pytest.raises(
        SchemaMismatch, match=r"'first' in its database \(.*colour.*\); use the version that wrote it"
    ):
        store.studies.get_study(db, "first")
