"""Databases of earlier versions, kept here as SQL text, open for good: brought up to date, exported, gone on with.

A new migration comes with a dump of the version before it, of both kinds, in the folder `earlier`.
"""

import csv
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import select

from stored_sessions import answer_all, begin_session, draw_trials
from vseg import export, store
from vseg.store import migrate
from vseg.store.schema import metadata

EARLIER = Path(__file__).with_name("earlier")
VERSIONS = ("0001", "0002", "0003")
CHANGING = {"README.md", "dataset_description.json", "software.json"}  # they say when they were written


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/vseg.db"
    else:
        server = request.getfixturevalue("postgres_server")
        url = server.fresh(migrated=False)
        yield url
        server.drop(url)


def load(url: str, version: str) -> None:
    """The database as that version left it."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.executescript((EARLIER / f"{version}-sqlite.sql").read_text())
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute((EARLIER / f"{version}-postgresql.sql").read_text().encode())


def exported(db, folder: Path) -> dict[str, str]:
    """Every table of an export, by name."""
    folder.mkdir()
    export.write_dataset(db, store.studies.get_study(db, "kept"), folder, identities=True)
    paths = [path for path in folder.rglob("*") if path.suffix in (".csv", ".toml", ".md", ".json")]
    return {str(path.relative_to(folder)): path.read_text() for path in paths if path.name not in CHANGING}


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_there_is_a_dump_of_every_version():
    known = {each.revision for each in ScriptDirectory.from_config(migrate._config()).walk_revisions()}
    assert known == set(VERSIONS)
    assert {path.name[:4] for path in EARLIER.glob("*.sql")} == known


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_collected_then_is_exported_now(empty_url, version, tmp_path):
    load(empty_url, version)
    with store.open(empty_url) as db:
        files = exported(db, tmp_path / "out")
    answers = [
        row
        for name, text in files.items()
        if name.endswith("_data.csv")
        for row in rows(text)
        if "rt_ms" in row
    ]
    # Written down when the dumps were made: one completed session of 10 answers, one active of 1; see the dumps.
    told = [
        (int(row["seq"]), int(row["item"]), row["same"], float(row["rt_ms"]), row["flags"]) for row in answers
    ]
    assert sorted(told) == sorted([
        (0, 0, "1", 412.5, ""), (1, 1, "1", 412.5, ""), (2, 0, "1", 302.25, "cue_late"), (3, 0, "0", 303.25, ""),
        (4, 0, "1", 304.25, ""), (5, 0, "0", 305.25, ""), (6, 0, "1", 306.25, ""), (7, 0, "0", 307.25, ""),
        (8, 0, "1", 308.25, ""), (9, 0, "0", 309.25, ""), (0, 0, "0", 412.5, ""),
    ])  # fmt: skip
    assert {row["chosen"] for row in answers} == ({"0"} if version == "0001" else {"0", "1"})
    (who,) = rows(files["identities.csv"])
    assert who["prolific_pid"] == "5f00aa11bb22cc33dd44ee55"
    (sessions,) = (rows(text) for name, text in files.items() if "description-sessions" in name)
    assert [row["status"] for row in sessions] == ["completed", "active", "active"]
    comments = [row["data"] for text in files.values() for row in rows(text) if row.get("kind") == "comment"]
    assert "Très bien" in comments[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_both_kinds_come_to_the_same(version, tmp_path, postgres_server):
    found = []
    for kind, url in (
        ("sqlite", f"sqlite:///{tmp_path}/vseg.db"),
        ("pg", postgres_server.fresh(migrated=False)),
    ):
        load(url, version)
        with store.open(url) as db, db.reading() as connection:
            tables = {
                table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
                for table in metadata.sorted_tables
            }
            found.append((tables, exported(db, tmp_path / kind)))
    postgres_server.drop(url)
    assert found[0] == found[1]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_study_of_then_goes_on(empty_url, version):
    load(empty_url, version)
    with store.open(empty_url) as db:
        study = store.studies.get_study(db, "kept")
        newcomer = begin_session(db, study, "7f00aa11bb22cc33dd44ee77")
        assert not newcomer.resumed
        answer_all(db, newcomer)
        nameless = store.sessions.begin(
            db, study, draw_trials, entry="a-secret-of-the-page", now_ms=1_800_000_100_000
        )
        assert nameless.resumed
        counts = store.sessions.count_sessions(db, study, now_ms=1_800_000_100_000)
        assert (counts.completed, counts.withdrawn, counts.active) == (1, 1, 3)


def test_that_it_was_brought_up_to_date_is_said_once(empty_url, caplog):
    """Whoever has an older vseg as well can no longer open it; of a new database there is nothing to say."""
    load(empty_url, "0001")
    for _ in range(2):
        store.open(empty_url).close()
    (said,) = [each.getMessage() for each in caplog.records if each.name == "vseg.store"]
    assert said.startswith("Brought ")
    assert said.endswith(f" up to date (schema 0001 → {migrate.HEAD}).")


def test_nothing_is_said_of_a_new_database(empty_url, caplog):
    store.open(empty_url).close()
    assert caplog.text == ""


def test_a_command_says_it_also_when_it_fails(tmp_path):
    load(f"sqlite:///{tmp_path}/vseg.db", "0001")
    command = [sys.executable, "-m", "vseg", "export", "typo", "--out", "data", "--db", "sqlite:///vseg.db"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    first, second = done.stderr.splitlines()
    assert first == f"Brought vseg.db up to date (schema 0001 → {migrate.HEAD})."
    assert second.startswith("vseg: There is no study 'typo'")
