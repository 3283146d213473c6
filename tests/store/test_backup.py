"""Backups made while participants answer hold every acknowledged response and can be restored."""

import errno
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import select

from commands import vseg
from servers import response, run_server
from stored_sessions import answer_all, begin_session, complete_session, draw_trials, event, register_study
from vseg import export, load, store
from vseg._support.progress import no_progress
from vseg.errors import Conflict, InvalidInput, NotFound, SchemaMismatch, VsegError
from vseg.store import checksum
from vseg.store.backup import back_up, check_backup, restore
from vseg.store.schema import logins, metadata, sign_ins
from vseg.store.transfer import copy_rows, new_file

EARLIER = Path(__file__).with_name("earlier")
KILLED = ("moment", "writing")


@contextmanager
def new_database(kind: str, tmp_path: Path, request):
    """Return the URL of an empty database."""
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path}/restored.db"
    else:
        server = request.getfixturevalue("postgres_server")
        url = server.fresh(migrated=False)
        yield url
        server.drop(url)


def tables(db) -> dict[str, list[tuple]]:
    """Return everything that is stored except logins, which do not survive a restore."""
    with db.reading() as connection:
        return {
            table.name: sorted(
                (
                    tuple(v for k, v in row.items() if k != "signed_out_at_ms")
                    for row in connection.execute(select(table)).mappings()
                ),
                key=repr,
            )
            for table in metadata.sorted_tables
            if table.name not in ("sign_ins", "logins", "settings")
        }


def fill_database(db):
    study = register_study(db, participants=20)
    for number in range(3):
        complete_session(db, begin_session(db, study, f"pid-{number}"))
    answer_all(db, begin_session(db, study, link=store.sessions.create_links(db, study, 1)[0]))
    store.researchers.set_password(db, "Ann", "hash")
    store.tokens.create(db, "Ann", "script")
    store.tokens.create_sign_in(db, "Ann")
    store.researchers.log_in(db, "Ann", "a login", 0)
    store.researchers.set_setting(db, store.researchers.SETUP_SETTING, "of a link that is used later")
    return study


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_backup_of_either_database_restores_to_either(database_url, kind, tmp_path, request):
    file = tmp_path / "backup.db"
    with store.open(database_url) as db:
        fill_database(db)
        before = tables(db)
        copied = back_up(db, file)
        signed_out = store.researchers.get_signed_out_at_ms(db, "Ann")
    assert copied.rows["responses"] == len(before["responses"]) == 8
    assert file.stat().st_mode & 0o777 == 0o600
    with new_database(kind, tmp_path, request) as url:
        restore(file, url)
        with store.open(url) as db:
            assert tables(db) == before
            assert store.researchers.get_signed_out_at_ms(db, "Ann") != signed_out
            assert store.researchers.find_logged_in(db, "a login") is None
            assert store.researchers.get_setting(db, store.researchers.SETUP_SETTING) is None
            with db.reading() as connection:
                assert [connection.execute(select(table)).all() for table in (logins, sign_ins)] == [[], []]
            study = store.studies.get_study(db, "small")
            new = begin_session(db, study, "pid-new")  # ids continue after the restored ones
            complete_session(db, new)
            assert not new.resumed
            with pytest.raises(Conflict):
                begin_session(db, study, "pid-0")
    assert {path.name for path in tmp_path.iterdir()} <= {"backup.db", "vseg.db", "restored.db"}


class Crowd:
    """Participants who answer one after the other until stopped, with the records that were acknowledged."""

    def __init__(self, server, people: int):
        self.acknowledged: set[tuple[str, int]] = set()
        self.sent: set[tuple[str, int]] = set()
        self.stopped = threading.Event()
        self.persons = [server.begin() for _ in range(people)]
        self.threads = [threading.Thread(target=self._answer, args=(person,)) for person in self.persons]

    def _answer(self, person) -> None:
        name = person.state["session"]
        for seq in range(900):  # an item may be answered again
            if self.stopped.is_set():
                return
            self.sent.add((name, seq))
            if person.send(response(seq, seq % person.items)).status_code == 200:
                self.acknowledged.add((name, seq))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    def wait_for(self, count: int) -> None:
        for _ in range(6000):
            if len(self.acknowledged) >= count:
                return
            threading.Event().wait(0.01)
        raise AssertionError(f"only {len(self.acknowledged)} answers in a minute")


def read_stored(db, folder: Path) -> set[tuple[str, int]]:
    """Return the responses in an export, read from its CSV files."""
    folder.mkdir()
    counts = export.write_dataset(db, store.studies.get_study(db, "tiny"), folder)
    rows = [
        row
        for part in store.responses.stream_responses(db, store.studies.get_study(db, "tiny").id)
        for row in part
    ]
    assert counts.responses == len(rows)
    assert len(load(folder)) == counts.used
    return {(row["session"], row["seq"]) for row in rows}


def test_backup_under_load_has_every_acknowledged_response(database_url, tmp_path, request):
    file = tmp_path / "backup.db"
    command = [sys.executable, "-m", "vseg", "backup", "--db", database_url, "--out", str(file)]
    with run_server(database_url) as server:
        with Crowd(server, 3) as crowd:
            crowd.wait_for(30)
            before = set(crowd.acknowledged)
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            after = set(crowd.sent)
            crowd.wait_for(len(before) + 5)
        assert done.returncode == 0, done.stderr
        assert "The file was checked and is complete." in done.stdout
        tokens = [person.state["token"] for person in crowd.persons]
        assert read_stored(server.db, tmp_path / "all") == crowd.acknowledged
    kind = "sqlite" if database_url.startswith("sqlite") else "postgresql"
    with new_database(kind, tmp_path, request) as url:
        restore(file, url)
        with run_server(url) as server:
            found = read_stored(server.db, tmp_path / "restored")
            assert before <= found <= after
            assert found < crowd.acknowledged  # more responses were acknowledged during the backup
            person = crowd.persons[0]
            person.client, person.state["token"] = server.client, tokens[0]
            answer_now = person.get_state().json()
            assert person.send(response(answer_now["next_seq"], 0)).status_code == 200
            assert len(read_stored(server.db, tmp_path / "again")) == len(found) + 1


def test_existing_files_are_not_overwritten(tmp_path, postgres_server, capsys):
    file, url = tmp_path / "backup.db", f"sqlite:///{tmp_path}/vseg.db"
    with store.open(url) as db:
        fill_database(db)
        back_up(db, file)
        with pytest.raises(Conflict, match="exists and is not overwritten"):
            back_up(db, file)
    with pytest.raises(Conflict, match=r"vseg\.db exists"):
        restore(file, url)
    (tmp_path / "other.db-wal").write_bytes(b"a log that some database left behind")
    with pytest.raises(Conflict, match=r"other\.db-wal exists"):
        restore(file, f"sqlite:///{tmp_path}/other.db")
    with postgres_server.borrowed() as taken:
        with store.open(taken) as db:
            register_study(db)
        with pytest.raises(Conflict, match="already has rows in studies"):
            restore(file, taken)
    code, _, err = vseg(f"restore {file} --db {url}", capsys)
    assert (code, "is not overwritten" in err) == (1, True)


def test_existing_files_are_not_overwritten_without_hard_links(tmp_path, monkeypatch):
    """Some file systems, such as those of USB sticks, have no hard links."""

    def no_links(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with new_file(tmp_path / "good.db") as temporary:
        temporary.write_bytes(b"whole")
    assert (tmp_path / "good.db").read_bytes() == b"whole"
    with pytest.raises(Conflict, match="was created meanwhile"), new_file(tmp_path / "late.db") as temporary:
        (tmp_path / "late.db").write_bytes(b"somebody was faster")
    assert (tmp_path / "late.db").read_bytes() == b"somebody was faster"
    assert {path.name for path in tmp_path.iterdir()} == {"good.db", "late.db"}


def test_incomplete_copy_is_rejected(tmp_path):
    """Here a trigger of the target database drops the rows."""
    with (
        store.open(f"sqlite:///{tmp_path}/vseg.db") as source,
        store.open(f"sqlite:///{tmp_path}/copy.db") as target,
    ):
        fill_database(source)
        with target.writing() as connection:
            connection.exec_driver_sql(
                "CREATE TRIGGER swallowed BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END"
            )
        someone = begin_session(source, store.studies.get_study(source, "small"), "pid-more")
        store.responses.append(source, someone.session.id, [], [event(900)]).result()
        with (
            pytest.raises(VsegError, match="has 0 rows in events, expected 1"),
            source.reading() as rows,
            target.writing() as connection,
        ):
            copy_rows(rows, connection, no_progress)
        assert tables(target)["responses"] == []


def test_back_up_rejects_other_files(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("Dear diary, " * 100)
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as connection:
        connection.execute("CREATE TABLE recipes (name)")
    for name, said in {
        "typo.db": "There is no database",
        "notes.txt": "notes.txt is not a database of vseg",
        "foreign.db": "foreign.db is not a database of vseg",
    }.items():
        code, _, err = vseg(f"backup --db sqlite:///{tmp_path}/{name} --out {tmp_path}/backup.db", capsys)
        assert (code, said in err) == (1, True), err
    assert {path.name for path in tmp_path.iterdir()} == {"notes.txt", "foreign.db"}


def test_restore_rejects_other_files(tmp_path):
    target = f"sqlite:///{tmp_path}/restored.db"
    with pytest.raises(NotFound, match="no file"):
        restore(tmp_path / "typo.db", target)
    (tmp_path / "notes.txt").write_text("Dear diary, " * 100)
    with pytest.raises(InvalidInput, match="not a backup of vseg"):
        restore(tmp_path / "notes.txt", target)
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as connection:
        connection.execute("CREATE TABLE recipes (name)")
    with pytest.raises(InvalidInput, match="not a backup of vseg"):
        restore(tmp_path / "foreign.db", target)
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        fill_database(db)
        back_up(db, tmp_path / "newer.db")
        back_up(db, tmp_path / "damaged.db")
    with closing(sqlite3.connect(tmp_path / "newer.db")) as connection, connection:
        checksum.clear_checksum(connection)
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaMismatch, match="newer vseg"):
        restore(tmp_path / "newer.db", target)
    whole = (tmp_path / "damaged.db").read_bytes()
    (tmp_path / "damaged.db").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(VsegError, match="damaged"):
        restore(tmp_path / "damaged.db", target)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"notes.txt", "foreign.db", "vseg.db", "newer.db", "damaged.db"}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_any_changed_bit_is_detected(kind, tmp_path, request):
    """SQLite itself detects few of these changes, since most are in the responses."""
    with new_database(kind, tmp_path, request) as url, store.open(url) as db:
        fill_database(db)
        back_up(db, tmp_path / "backup.db")
    whole = (tmp_path / "backup.db").read_bytes()
    places = [*range(100), *(len(whole) * part // 199 for part in range(1, 199)), len(whole) - 1]
    for place in places:
        spoilt = bytearray(whole)
        spoilt[place] ^= 1 << place % 8
        (tmp_path / "spoilt.db").write_bytes(spoilt)
        with pytest.raises(VsegError, match=r"spoilt\.db (is|was)"):
            restore(tmp_path / "spoilt.db", f"sqlite:///{tmp_path}/never.db")
    with (
        pytest.raises(InvalidInput, match=r"spoilt\.db is damaged"),
        store.open(f"sqlite:///{tmp_path}/spoilt.db", update_schema=False) as db,
    ):
        back_up(db, tmp_path / "never.db")  # a new backup would give it a new checksum
    assert not (tmp_path / "never.db").exists()


def test_backup_can_be_restored_after_erasing_a_participant_in_it(tmp_path):
    """Writing with vseg clears the checksum, a new backup has a new one, and reading leaves it unchanged."""
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        study = fill_database(db)
        back_up(db, tmp_path / "backup.db")
    sealed = (tmp_path / "backup.db").read_bytes()
    with store.open(f"sqlite:///{tmp_path}/backup.db") as db:
        whom = store.sessions.list_sessions(db, study)[0]["participant"]
        back_up(db, tmp_path / "second.db")
        assert (tmp_path / "backup.db").read_bytes() == sealed
        store.sessions.erase(db, store.studies.get_study(db, "small"), whom)
        for suffix in ("", "-wal", "-shm"):  # as if the process were killed here
            (tmp_path / f"killed.db{suffix}").write_bytes((tmp_path / f"backup.db{suffix}").read_bytes())
        for number, name in enumerate(("backup.db", "killed.db")):
            restore(tmp_path / name, f"sqlite:///{tmp_path}/{number}.db")
    assert "responses" in check_backup(tmp_path / "second.db").rows
    copied = restore(tmp_path / "backup.db", f"sqlite:///{tmp_path}/restored.db")
    assert copied.rows["participants"] == check_backup(tmp_path / "second.db").rows["participants"] - 1


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("version", ["0001", "0002", "0003"])
def test_backup_of_an_earlier_version_is_updated_when_restored(version, kind, tmp_path, request):
    """Making a backup does not update the source database."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript((EARLIER / f"{version}-sqlite.sql").read_text())
    with store.open(f"sqlite:///{tmp_path}/old.db", update_schema=False) as db:
        back_up(db, tmp_path / "backup.db")
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(version,)]
    with new_database(kind, tmp_path, request) as url:
        assert restore(tmp_path / "backup.db", url).rows["responses"] == 11
        with store.open(url) as db:
            study = store.studies.get_study(db, "kept")
            assert store.sessions.begin(
                db, study, draw_trials, entry="a-secret-of-the-page", now_ms=1
            ).resumed


def test_failed_backup_leaves_no_file(tmp_path):
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        fill_database(db)

        @contextmanager
        def cut(total):
            raise KeyboardInterrupt
            yield

        with pytest.raises(KeyboardInterrupt):
            back_up(db, tmp_path / "backup.db", progress=cut)
        with pytest.raises(InvalidInput, match="no folder"):
            back_up(db, tmp_path / "missing" / "backup.db")
    assert [path.name for path in tmp_path.iterdir()] == ["vseg.db"]


@pytest.mark.chaos
def test_killed_backup_is_complete_or_absent(database_url, tmp_path):
    """Killed at any time between start and end; a partial file has a name that says it is unfinished."""
    with store.open(database_url) as db:
        study = register_study(db, participants=400)
        for number in range(300):
            answer_all(db, begin_session(db, study, f"pid-{number}"))
    folder = tmp_path / "backups"
    folder.mkdir()

    def backing_up(name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "vseg", "backup", "--db", database_url, "--out", str(folder / name)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    began = time.perf_counter()
    assert backing_up("whole.db").wait() == 0
    took_s = time.perf_counter() - began
    for number in range(8):
        process = backing_up(f"moment-{number}.db")
        with suppress(subprocess.TimeoutExpired):
            process.wait(took_s * number / 8)
        process.kill()
        process.wait()
    for number in range(3):
        process = backing_up(f"writing-{number}.db")
        while process.poll() is None and not list(folder.glob(f".writing-{number}.db-unfinished-*")):
            threading.Event().wait(0.002)
        process.kill()
        process.wait()
    names = {path.name for path in folder.iterdir()}
    left = {name for name in names if re.match(r"\.(moment|writing)-\d\.db-unfinished-", name)}
    assert left, "at least one was killed while it wrote"
    assert all((folder / name).stat().st_mode & 0o077 == 0 for name in left), "it holds who people are"
    assert "whole.db" in names
    assert names - left <= {"whole.db", *(f"{kind}-{n}.db" for kind in KILLED for n in range(8))}
    assert {check_backup(folder / name).rows["responses"] for name in names - left} == {600}
