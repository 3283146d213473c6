import os
import re
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, inspect, make_url, text

import vseg.store
from vseg import store
from vseg.errors import Conflict, InvalidInput, NotFound, SchemaMismatch, VsegError
from vseg.store import database
from vseg.store.database import FairLock
from vseg.store.schema import metadata


@pytest.fixture(params=["sqlite", "postgresql"])
def bare_url(request, tmp_path):
    """The URL of a database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/bare.db"
    else:
        server = request.getfixturevalue("postgres_server")
        url = server.fresh(migrated=False)
        yield url
        server.drop(url)


def create_test_engine(url: str):
    return create_engine(
        make_url(url).set(drivername="sqlite" if url.startswith("sqlite") else "postgresql+psycopg")
    )


def describe_tables(url: str) -> dict:
    """Return the columns, keys and indexes of every table, by its name."""
    engine = create_test_engine(url)
    found = inspect(engine)
    tables = {
        table: {
            "columns": [(c["name"], str(c["type"]), c["nullable"]) for c in found.get_columns(table)],
            "primary key": found.get_pk_constraint(table),
            "foreign keys": sorted(found.get_foreign_keys(table), key=lambda key: key["name"]),
            "unique": sorted(found.get_unique_constraints(table), key=lambda key: key["name"]),
            "indexes": sorted(found.get_indexes(table), key=lambda index: index["name"]),
        }
        for table in metadata.tables
    }
    engine.dispose()
    return tables


def test_migrations_create_the_tables_of_the_schema(bare_url, request, tmp_path):
    store.open(bare_url).close()
    engine = create_test_engine(bare_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    migrated = describe_tables(bare_url)
    with engine.begin() as connection:
        metadata.drop_all(connection)
        metadata.create_all(connection)
    engine.dispose()
    assert migrated == describe_tables(bare_url)


def test_simultaneous_starts_migrate_once(bare_url):
    gate = threading.Barrier(4)

    def start(_):
        gate.wait()
        with store.open(bare_url) as db:
            return store.studies.list_studies(db)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(start, range(4))) == [[]] * 4


def execute(url: str, statement: str) -> None:
    engine = create_test_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def test_newer_database_is_rejected_and_unchanged(bare_url):
    store.open(bare_url).close()
    execute(bare_url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(
        SchemaMismatch, match=r"newer vseg \(its schema is 9999, .*use that version or a newer one"
    ):
        store.open(bare_url)


def test_database_with_foreign_tables_is_rejected(bare_url):
    execute(bare_url, "CREATE TABLE sessions (whatever INTEGER)")
    with pytest.raises(SchemaMismatch, match="'sessions' that vseg did not create"):
        store.open(bare_url)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_database_without_utf8_is_rejected(postgres_server, encoding):
    postgres_server.execute(f"CREATE DATABASE narrow TEMPLATE template0 ENCODING '{encoding}'")
    with pytest.raises(
        InvalidInput, match=rf"/narrow has the encoding {encoding}, but vseg needs UTF8; create another"
    ):
        store.open(postgres_server.url("narrow"))
    postgres_server.drop(postgres_server.url("narrow"))


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_common_forms_of_postgresql_urls(postgres_url, scheme):
    with store.open(postgres_url.replace("postgresql", scheme, 1)) as db:
        assert not db.is_sqlite


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("vseg.db", "not a URL; expected sqlite:///FILE or postgresql://USER@HOST/DATABASE, got 'vseg.db'."),
        ("host=localhost password=hunter2", "not a URL"),
        ("mysql://root:hunter2@host/db", "'mysql'"),
        ("postgresql://user:hunter2@host:port/db", "not a URL"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite://hunter2/vseg.db", "names no file"),
        ("sqlite:////no/such/folder/vseg.db", "no folder for /no/such/folder/vseg.db"),
    ],
)
def test_wrong_url_gives_an_error_without_the_password(url, said):
    with pytest.raises(InvalidInput, match=re.escape(said)) as caught:
        store.open(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("query", ["", "&password=hunter2"])
def test_unreachable_postgresql(tmp_path, query):
    with pytest.raises(VsegError, match="does not answer") as caught:
        store.open(f"postgresql://someone:hunter2@/vseg?host={tmp_path}{query}")
    assert "hunter2" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_file_that_is_not_a_database(tmp_path):
    (tmp_path / "notes.db").write_text("Dear diary, " * 100)
    with pytest.raises(InvalidInput, match="not a database of vseg"):
        store.open(f"sqlite:///{tmp_path}/notes.db")


def test_must_exist_creates_no_file(tmp_path):
    with pytest.raises(NotFound, match="no database"):
        store.open(f"sqlite:///{tmp_path}/typo.db", must_exist=True)
    assert list(tmp_path.iterdir()) == []
    store.open(f"sqlite:///{tmp_path}/vseg.db").close()
    store.open(f"sqlite:///{tmp_path}/vseg.db", must_exist=True).close()


def test_new_file_is_private(tmp_path):
    with store.open(f"sqlite:///{tmp_path}/vseg.db"):
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(["vseg.db", "vseg.db-wal", "vseg.db-shm"], 0o600)


def test_writers_take_turns_in_order():
    turn, order = FairLock(), []

    def wait():
        with turn:
            order.append("waited")

    waiter = threading.Thread(target=wait)
    with turn:
        waiter.start()
        while len(turn._waiting) < 2:
            threading.Event().wait(0.001)
    with turn:
        order.append("again")
    waiter.join()
    assert order == ["waited", "again"]


def test_folder_instead_of_a_file(tmp_path):
    with pytest.raises(VsegError, match="does not answer"):
        store.open(f"sqlite:///{tmp_path}")


def test_database_locked_by_another_program(tmp_path, monkeypatch, caplog):
    """A file that is not in WAL mode, such as a backup, cannot even be read while it is locked."""
    with closing(sqlite3.connect(tmp_path / "vseg.db", isolation_level=None)) as other:
        other.execute("CREATE TABLE alembic_version (version_num)")
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(database, "LOCK_TIMEOUT_S", 0.5)
        monkeypatch.setattr(database, "LOG_WAIT_AFTER_S", 0)
        with pytest.raises(
            VsegError, match=r"vseg\.db is locked by another program; close that program, or try again"
        ):
            store.open(f"sqlite:///{tmp_path}/vseg.db")
    assert caplog.messages == [
        f"Still waiting for the database {tmp_path}/vseg.db; another program may have locked it."
    ]


def test_sqlite_settings_are_durable(tmp_path):
    wanted = {
        "journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000, "secure_delete": 1,
    }  # fmt: skip
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        for transaction in (db.writing, db.reading):
            with transaction() as connection:
                # SQLite knows the settings of a file only after it has read something.
                connection.execute(text("SELECT count(*) FROM studies"))
                found = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in wanted}
                assert found == wanted


@pytest.mark.parametrize("how", ["gone", "replaced"])
def test_nothing_is_stored_in_a_moved_or_deleted_file(tmp_path, how):
    """Such data would be lost with the last process that has the file open; once put back, the file works again."""
    file, away = tmp_path / "vseg.db", tmp_path / "away.db"
    with store.open(f"sqlite:///{file}") as db:
        os.link(file, away)
        file.unlink()
        if how == "replaced":
            file.write_bytes(b"")
        for use in (db.reading, db.writing, lambda: closing(db.run_outside_transaction("VACUUM"))):
            with (
                pytest.raises(VsegError, match=r"vseg\.db was moved, replaced or deleted .* put it back"),
                use(),
            ):
                raise AssertionError("used")
        away.replace(file)
        with db.writing() as connection:
            connection.execute(text("INSERT INTO settings (name, value) VALUES ('a', 'b')"))
        db.check_file_in_place()


@pytest.mark.parametrize("empty", [False, True])
def test_log_of_a_missing_database_is_not_discarded(tmp_path, empty):
    """All responses may be in the log, and SQLite would silently start a new one."""
    file, log = tmp_path / "vseg.db", tmp_path / "vseg.db-wal"
    log.write_bytes(b"answers")
    if empty:
        file.touch()
    with pytest.raises(Conflict, match=r"vseg\.db-wal exists, but its database .* is missing or empty"):
        store.open(f"sqlite:///{file}")
    assert log.read_bytes() == b"answers"
    assert file.exists() == empty


def test_reading_leaves_the_file_unchanged(tmp_path):
    """It may be a backup whose checksum someone has noted."""
    url = f"sqlite:///{tmp_path}/vseg.db"
    with store.open(url) as db:
        store.backup.back_up(db, tmp_path / "backup.db")
    before = (tmp_path / "backup.db").read_bytes()
    with store.open(f"sqlite:///{tmp_path}/backup.db", must_exist=True) as db:
        assert store.studies.list_studies(db) == []
    assert (tmp_path / "backup.db").read_bytes() == before
    assert not (tmp_path / "backup.db-wal").exists()


def test_waiting_for_a_locked_postgresql_table_ends(postgres_server, monkeypatch):
    monkeypatch.setattr(database, "SET_LOCK_TIMEOUT", database.SET_LOCK_TIMEOUT.replace("30s", "100ms"))
    url = postgres_server.fresh()
    with store.open(url) as db, psycopg.connect(url) as other:
        other.execute("LOCK TABLE settings IN ACCESS EXCLUSIVE MODE")
        wanted = text("SELECT count(*) FROM settings")
        for use in (db.reading, db.writing):
            with pytest.raises(VsegError, match="locked by another program"), use() as connection:
                connection.execute(wanted)
        other.rollback()
        with db.writing() as connection:
            assert connection.scalar(wanted) is not None
    postgres_server.drop(url)


def test_reading_cannot_write(tmp_path):
    db = store.open(f"sqlite:///{tmp_path}/vseg.db")
    with pytest.raises(VsegError, match="readonly"), db, db.reading() as connection:
        connection.execute(text("DELETE FROM studies"))


def test_failed_transaction_is_rolled_back(db):
    def half_way():
        with db.writing() as connection:
            connection.execute(text("INSERT INTO settings (name, value) VALUES ('a', 'b')"))
            raise InvalidInput("stop")

    with pytest.raises(InvalidInput, match="stop"):
        half_way()
    assert store.researchers.get_setting(db, "a") is None


def test_readers_see_one_moment_while_others_write(tmp_path):
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db, db.reading() as connection:
        before = connection.scalar(text("SELECT count(*) FROM settings"))
        store.researchers.set_setting(db, "a", "b")
        assert connection.scalar(text("SELECT count(*) FROM settings")) == before == 0


@pytest.mark.parametrize("transaction", ["reading", "writing"])
def test_unfinished_result_does_not_keep_old_data_visible(db, transaction):
    """An exception that is kept holds its frames, their results and, on SQLite, an old read transaction."""
    store.researchers.set_setting(db, "a", "b")
    store.researchers.set_setting(db, "c", "d")

    def half_way():
        with getattr(db, transaction)() as connection:
            unread = connection.execute(text("SELECT * FROM settings"))
            raise InvalidInput(f"stop after {next(iter(unread))}")

    with pytest.raises(InvalidInput, match="stop") as kept:
        half_way()
    store.researchers.set_setting(db, "a", "new")
    assert store.researchers.get_setting(db, "a") == "new"
    assert kept.value


@pytest.mark.parametrize("transaction", ["reading", "writing"])
def test_connection_in_use_while_the_database_is_closed_is_closed_afterwards(database_url, transaction):
    """A thread that the server has abandoned may still read while the database is closed."""
    db = store.open(database_url)
    with getattr(db, transaction)() as connection:
        driver = connection.connection.dbapi_connection
        db.close()
        assert connection.execute(text("SELECT 1")).scalar() == 1
    with pytest.raises((psycopg.OperationalError, sqlite3.ProgrammingError), match="closed"):
        driver.execute("SELECT 1")


def test_no_sql_statement_is_built_from_strings():
    """Values are passed as parameters; text() and raw SQL are constants, all of which are listed here."""
    sources = {path.name: path.read_text() for path in Path(vseg.store.__file__).parent.rglob("*.py")}
    raw = [
        call
        for source in sources.values()
        for call in re.findall(r"(?:\btext|exec_driver_sql|\.run_outside_transaction)\((.*?)[,)]", source)
    ]
    assert sorted(raw) == [
        '"PRAGMA user_version"', '"SELECT pg_advisory_xact_lock(:lock',
        '"SELECT version_num FROM alembic_version"', '"SHOW server_encoding"',
        '"VACUUM"', "VACUUM_PERSONAL_TABLES", "begin",
        'f"PRAGMA busy_timeout = {1000 * LOCK_TIMEOUT_S}"', 'f"PRAGMA user_version = {stamp}"',
        "set_timeout", "statement",
    ]  # fmt: skip
    assert not [name for name, source in sources.items() if re.search(r"\.format\(|% \(", source)]


HOSTILE = ["'; DROP TABLE sessions; --", '" OR "1"="1', "\\'; SELECT 1", "%(name)s", ":name", "ünï\u202ecode"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_stored_as_text(db, name):
    store.researchers.set_password(db, name, "hash")
    store.researchers.set_setting(db, name, name)
    assert store.researchers.get_password_hash(db, name) == "hash"
    assert store.researchers.get_setting(db, name) == name
    with pytest.raises(VsegError, match="no study"):
        store.studies.get_study(db, name)
    assert store.studies.list_studies(db) == []


def test_sqlite_backup_of_an_open_database_works(tmp_path):
    """A copy made by SQLite's own backup function opens like the original."""
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        store.researchers.set_setting(db, "a", "b")
        source, target = sqlite3.connect(tmp_path / "vseg.db"), sqlite3.connect(tmp_path / "copy.db")
        source.backup(target)
        source.close()
        target.close()
    with store.open(f"sqlite:///{tmp_path}/copy.db") as db:
        assert store.researchers.get_setting(db, "a") == "b"
