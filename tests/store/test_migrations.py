"""Databases of earlier versions, stored as SQL dumps, can be opened, updated, exported and continued.

Each migration needs a dump of its revision for SQLite and PostgreSQL in the folder `earlier`.
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
CHANGING_FILES = {
    "README.md",
    "dataset_description.json",
    "software.json",
}  # they contain the time of the export


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/vseg.db"
    else:
        server = request.getfixturevalue("postgres_server")
        url = server.fresh(migrated=False)
        yield url
        server.drop(url)


def load_dump(url: str, version: str) -> None:
    """Load the dump of a version into an empty database."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.executescript((EARLIER / f"{version}-sqlite.sql").read_text())
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute((EARLIER / f"{version}-postgresql.sql").read_text().encode())


def export_tables(db, folder: Path) -> dict[str, str]:
    """Return the text of every file of an export, by its name."""
    folder.mkdir()
    export.write_dataset(db, store.studies.get_study(db, "kept"), folder, identities=True)
    paths = [path for path in folder.rglob("*") if path.suffix in (".csv", ".toml", ".md", ".json")]
    return {
        str(path.relative_to(folder)): path.read_text() for path in paths if path.name not in CHANGING_FILES
    }


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_there_is_a_dump_of_every_revision():
    known = {each.revision for each in ScriptDirectory.from_config(migrate._config()).walk_revisions()}
    assert known == set(VERSIONS)
    assert {path.name[:4] for path in EARLIER.glob("*.sql")} == known


@pytest.mark.parametrize("version", VERSIONS)
def test_data_of_earlier_versions_are_exported(empty_url, version, tmp_path):
    load_dump(empty_url, version)
    with store.open(empty_url) as db:
        files = export_tables(db, tmp_path / "out")
    answers = [
        row
        for name, text in files.items()
        if name.endswith("_data.csv")
        for row in read_csv(text)
        if "rt_ms" in row
    ]
    # Noted when the dumps were made: one completed session with 10 answers, one active session with 1.
    told = [
        (int(row["seq"]), int(row["item"]), row["same"], float(row["rt_ms"]), row["flags"]) for row in answers
    ]
    assert sorted(told) == sorted([
        (0, 0, "1", 412.5, ""), (1, 1, "1", 412.5, ""), (2, 0, "1", 302.25, "cue_late"), (3, 0, "0", 303.25, ""),
        (4, 0, "1", 304.25, ""), (5, 0, "0", 305.25, ""), (6, 0, "1", 306.25, ""), (7, 0, "0", 307.25, ""),
        (8, 0, "1", 308.25, ""), (9, 0, "0", 309.25, ""), (0, 0, "0", 412.5, ""),
    ])  # fmt: skip
    assert {row["chosen"] for row in answers} == ({"0"} if version == "0001" else {"0", "1"})
    (who,) = read_csv(files["identities.csv"])
    assert who["prolific_pid"] == "5f00aa11bb22cc33dd44ee55"
    (sessions,) = (read_csv(text) for name, text in files.items() if "description-sessions" in name)
    assert [row["status"] for row in sessions] == ["completed", "active", "active"]
    comments = [
        row["data"] for text in files.values() for row in read_csv(text) if row.get("kind") == "comment"
    ]
    assert "Très bien" in comments[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_sqlite_and_postgresql_dumps_give_the_same_data(version, tmp_path, postgres_server):
    found = []
    for kind, url in (
        ("sqlite", f"sqlite:///{tmp_path}/vseg.db"),
        ("pg", postgres_server.fresh(migrated=False)),
    ):
        load_dump(url, version)
        with store.open(url) as db, db.reading() as connection:
            tables = {
                table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
                for table in metadata.sorted_tables
            }
            found.append((tables, export_tables(db, tmp_path / kind)))
    postgres_server.drop(url)
    assert found[0] == found[1]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_study_of_an_earlier_version_continues(empty_url, version):
    load_dump(empty_url, version)
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


def test_update_is_logged_once(empty_url, caplog):
    """The user should know, since an older vseg can no longer open the database."""
    load_dump(empty_url, "0001")
    for _ in range(2):
        store.open(empty_url).close()
    (said,) = [each.getMessage() for each in caplog.records if each.name == "vseg.store"]
    assert said.startswith("Brought ")
    assert said.endswith(f" up to date (schema 0001 → {migrate.HEAD}).")


def test_nothing_is_logged_for_a_new_database(empty_url, caplog):
    store.open(empty_url).close()
    assert caplog.text == ""


def test_update_is_reported_even_if_the_command_fails(tmp_path):
    load_dump(f"sqlite:///{tmp_path}/vseg.db", "0001")
    command = [sys.executable, "-m", "vseg", "export", "typo", "--out", "data", "--db", "sqlite:///vseg.db"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    first, second = done.stderr.splitlines()
    assert first == f"Brought vseg.db up to date (schema 0001 → {migrate.HEAD})."
    assert second.startswith("vseg: There is no study 'typo'")
