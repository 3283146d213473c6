"""The files of a SQLite database are deleted, replaced or overwritten while it is open; SQLite does not notice it."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stored_sessions import begin_session, register_study, response
from vseg import store
from vseg.errors import Conflict, VsegError

CHECKPOINT = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute(sys.argv[2])"
CRASH = """
import os, sys
sys.path.insert(0, {tests!r})
from stored_sessions import begin_session, register_study, response
from vseg import store

db = store.open("sqlite:///" + sys.argv[1])
session = begin_session(db, register_study(db)).session
for seq in range(40):
    store.responses.append(db, session.id, [response(seq)], []).result()
for name in sys.argv[2:]:
    os.unlink(sys.argv[1] + name)
error = store.responses.append(db, session.id, [response(40)], []).exception()
db._log_rescue.join()
print(error, flush=True)
os._exit(0)  # without closing the database
"""


class Answers:
    """A database with a session that answers can be stored in."""

    def __init__(self, db: store.Database, file: Path):
        self.db, self.file = db, file
        self._session, self._seq = begin_session(db, register_study(db)).session.id, 0

    def store(self, count: int = 1) -> BaseException | None:
        """Store answers; return the error of the last one."""
        error = None
        for _ in range(count):
            error = store.responses.append(self.db, self._session, [response(self._seq)], []).exception()
            self._seq += error is None
        return error


@pytest.fixture
def answers(tmp_path) -> Iterator[Answers]:
    file = tmp_path / "vseg.db"
    with store.open(f"sqlite:///{file}") as db:
        yield Answers(db, file)


@pytest.mark.parametrize("names", [("-wal",), ("-shm",), ("-wal", "-shm")])
def test_nothing_is_acknowledged_after_the_log_was_deleted(answers, names):
    assert answers.store(5) is None
    for name in names:
        Path(f"{answers.file}{name}").unlink()
    error = answers.store()
    assert type(error) is VsegError, "a page sends it again"
    assert str(error).startswith(
        f"The log of the database, {answers.file}-wal or {answers.file}-shm, was deleted"
    )
    for use in (answers.db.check_health, answers.db.check_file_in_place):
        with pytest.raises(VsegError, match="was deleted or replaced while it was in use"):
            use()


@pytest.mark.parametrize("names", [("-wal",), ("-wal", "-shm")])
def test_a_crash_after_the_log_was_deleted_loses_nothing_that_was_acknowledged(tmp_path, names):
    """The process still has the deleted log open, and writes it to the database file as soon as it notices."""
    file, code = tmp_path / "vseg.db", CRASH.format(tests=str(Path(__file__).parents[1]))
    done = subprocess.run(
        [sys.executable, "-c", code, file, *names], check=True, capture_output=True, text=True, timeout=120
    )
    assert "was deleted or replaced" in done.stdout
    assert "it has all acknowledged records" in done.stderr
    with store.open(f"sqlite:///{file}") as db, db.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(DISTINCT seq) FROM responses").scalar() >= 40


def test_a_log_that_was_replaced_is_not_written_to_the_file(answers):
    """Another process has begun a new log, and may have written to the file."""
    assert answers.store(5) is None
    for name in ("-wal", "-shm"):
        Path(f"{answers.file}{name}").unlink()
        Path(f"{answers.file}{name}").touch()
    assert "was deleted or replaced" in str(answers.store())
    assert answers.db._log_rescue is None


def test_a_deleted_log_is_not_written_to_a_file_that_was_copied_over_the_database(answers, tmp_path):
    """As when a backup is restored in place beside a running server, and the log that does not belong to it removed."""
    copy = tmp_path / "copy.db"
    assert answers.store(5) is None
    store.backup.back_up(answers.db, copy)
    assert answers.store(5) is None
    shutil.copyfile(copy, answers.file)
    for name in ("-wal", "-shm"):
        Path(f"{answers.file}{name}").unlink()
    assert "Another program has written to the database file" in str(answers.store())
    assert answers.db._log_rescue is None
    assert answers.file.read_bytes() == copy.read_bytes()


def test_a_file_that_is_copied_over_a_database_reopened_after_a_crash(tmp_path):
    """SQLite then tells nothing about checkpoints before there is one."""
    file, copy, code = (
        tmp_path / "vseg.db",
        tmp_path / "copy.db",
        CRASH.format(tests=str(Path(__file__).parents[1])),
    )
    subprocess.run(
        [sys.executable, "-c", code.replace("db._log_rescue.join()", ""), file], check=True, timeout=120
    )
    assert Path(f"{file}-wal").stat().st_size > 0
    shutil.copyfile(file, copy)
    with store.open(f"sqlite:///{file}") as db:
        reopened = Answers(db, file)
        assert reopened.store(3) is None
        shutil.copyfile(copy, file)
        assert "Another program has written to the database file" in str(reopened.store())


def test_a_log_that_is_put_back_works_again(answers, tmp_path):
    assert answers.store(5) is None
    Path(f"{answers.file}-wal").rename(tmp_path / "away")
    assert answers.store() is not None
    (tmp_path / "away").rename(f"{answers.file}-wal")
    assert answers.store() is None


def test_a_log_that_is_put_back_and_deleted_again_is_rescued_again(answers, tmp_path):
    """The second time, it has answers that were not in it the first time."""
    log = Path(f"{answers.file}-wal")
    for away in ("first", "second"):
        assert answers.store(5) is None
        log.rename(tmp_path / away)
        assert "was deleted or replaced" in str(answers.store())
        answers.db._log_rescue.join()
        shutil.copyfile(answers.file, tmp_path / f"{away}.db")  # what a crash would leave
        (tmp_path / away).rename(log)
    stored = []
    for name in ("first.db", "second.db"):
        with store.open(f"sqlite:///{tmp_path / name}") as db, db.reading() as connection:
            stored.append(connection.exec_driver_sql("SELECT count(*) FROM responses").scalar())
    assert stored == [5, 10]


def test_a_rescue_that_failed_is_repeated(answers):
    """Somebody was reading an earlier state of the database."""
    assert answers.store(5) is None
    with answers.db.reading() as connection:
        connection.exec_driver_sql("SELECT count(*) FROM responses").scalar()
        assert answers.store(5) is None
        answers.db.run_outside_transaction("PRAGMA busy_timeout = 0")
        Path(f"{answers.file}-wal").unlink()
        assert answers.store() is not None
        answers.db._log_rescue.join()
        assert not answers.db._is_log_rescued
    assert answers.store() is not None
    answers.db._log_rescue.join()
    assert answers.db._is_log_rescued


@pytest.mark.parametrize("is_checked", [True, False], ids=["", "right after a checkpoint"])
@pytest.mark.parametrize("how", ["file", "backup", "same size"])
def test_nothing_is_acknowledged_after_another_file_was_copied_over_the_database(
    answers, tmp_path, how, is_checked
):
    """The file keeps its inode; without a check after the checkpoint, its change of the file is expected."""
    copy = tmp_path / "copy.db"
    assert answers.store(5) is None
    if how == "backup":
        store.backup.back_up(answers.db, copy)
    else:
        answers.db.run_outside_transaction("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copyfile(answers.file, copy)
    assert answers.store(5) is None
    answers.db.run_outside_transaction("PRAGMA wal_checkpoint(TRUNCATE)")
    if is_checked:
        answers.db.check_health()
    if how == "same size":
        assert answers.file.stat().st_size == copy.stat().st_size
        with open(answers.file, "r+b") as file:
            file.write(copy.read_bytes())
    else:
        shutil.copyfile(copy, answers.file)
    error = answers.store()
    assert type(error) is VsegError, "a page sends it again"
    assert "Another program has written to the database file" in str(error)
    for use in (answers.db.check_health, answers.db.check_file_in_place):
        with pytest.raises(VsegError, match="stop vseg, keep a copy of the file"):
            use()


def test_an_answer_that_fits_into_its_page_changes_the_header_of_the_file(answers):
    """SQLite itself would leave the header as it was; an earlier state of the file could not be recognised by it."""
    headers = set()
    for _ in range(5):
        assert answers.store() is None
        answers.db.run_outside_transaction("PRAGMA wal_checkpoint(TRUNCATE)")
        headers.add(answers.file.read_bytes()[:100])
    assert len(headers) == 5


def test_two_checkpoints_at_the_same_time_are_not_the_work_of_another_program(answers):
    """The times of many file systems have steps of milliseconds or seconds."""
    for _ in range(2):
        assert answers.store() is None
        answers.db.run_outside_transaction("PRAGMA wal_checkpoint(TRUNCATE)")
        os.utime(answers.file, ns=(0, 0))
        answers.db.check_health()
    assert answers.store() is None


@pytest.mark.parametrize("how", ["touched", "copied"])
def test_a_file_whose_content_is_the_same_stays_in_use(answers, tmp_path, how):
    for _ in range(3):
        assert answers.store(5) is None
        answers.db.run_outside_transaction("PRAGMA wal_checkpoint(TRUNCATE)")
        answers.db.check_health()
        before = answers.file.stat().st_mtime_ns
        if how == "copied":
            content = answers.file.read_bytes()
            with open(answers.file, "r+b") as file:
                file.write(content)
        os.utime(answers.file, ns=(before, before + 10**9))  # its clock may not have gone on
        answers.db.check_health()
    assert answers.store(5) is None


def test_a_backup_that_is_copied_over_the_database_during_a_checkpoint(answers, tmp_path):
    """The index of the log then says that SQLite has written to the file; but a backup has a checksum."""
    store.backup.back_up(answers.db, tmp_path / "copy.db")
    assert answers.store(5) is None
    size = answers.file.stat().st_size
    answers.db.run_outside_transaction("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copyfile(tmp_path / "copy.db", answers.file)
    assert size < answers.file.stat().st_size
    assert "Another program has written to the database file" in str(answers.store())


@pytest.mark.parametrize(
    "statement", ["PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA wal_checkpoint(PASSIVE)", "VACUUM"]
)
def test_checkpoints_of_other_processes_are_no_change(answers, statement):
    for _ in range(5):
        assert answers.store(3) is None
        before = answers.file.stat().st_mtime_ns
        subprocess.run([sys.executable, "-c", CHECKPOINT, answers.file, statement], check=True)
        if "VACUUM" not in statement:
            assert answers.file.stat().st_mtime_ns > before, "it has written to the file"
        answers.db.check_health()


def test_checks_during_checkpoints_report_no_change(answers):
    """Other threads check while this one lets SQLite write to the file, many times."""
    stop, failures = threading.Event(), []

    def check() -> None:
        while not stop.is_set():
            try:
                answers.db.check_file_in_place()
            except VsegError as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=check) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        with answers.db.writing() as connection:
            connection.exec_driver_sql(
                "REPLACE INTO settings (name, value) VALUES ('a', hex(randomblob(50000)))"
            )
        answers.db.run_outside_transaction("PRAGMA wal_checkpoint(PASSIVE)")
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_locks_survive_a_check(answers):
    """On POSIX systems a process loses its locks on a file when it closes any descriptor of the file."""
    with answers.db.writing() as connection:
        connection.exec_driver_sql("INSERT INTO settings (name, value) VALUES ('a', 'b')")
        answers.db._file_watch._seen = None  # so that everything is read
        answers.db.check_file_in_place()
        other = [sys.executable, "-c", CHECKPOINT, answers.file, "BEGIN IMMEDIATE"]
        refused = subprocess.run(
            [*other[:2], other[2].replace("sys.argv[1]", "sys.argv[1], timeout=0"), *other[3:]],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert "database is locked" in refused.stderr
    subprocess.run(other, check=True)


def test_reading_needs_no_log(answers):
    """A database that is only read, such as a backup, has none."""
    answers.db.run_outside_transaction("PRAGMA wal_checkpoint(TRUNCATE)")
    with store.open(f"sqlite:///{answers.file}", update_schema=False) as db:
        with db.reading() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM studies").scalar() == 1
        db.check_file_in_place()


def test_a_database_opened_by_a_link_has_its_log_watched(tmp_path):
    """SQLite keeps the log beside the file itself, not beside the link."""
    (tmp_path / "real").mkdir()
    file, link = tmp_path / "real" / "x.db", tmp_path / "link.db"
    link.symlink_to(file)
    with store.open(f"sqlite:///{link}") as db:
        answers = Answers(db, file)
        assert answers.store(5) is None
        Path(f"{file}-wal").unlink()
        assert f"{file}-wal or {file}-shm, was deleted" in str(answers.store())
        db._log_rescue.join()
        shutil.copyfile(file, tmp_path / "crashed.db")  # what a crash would leave
    with store.open(f"sqlite:///{tmp_path}/crashed.db") as db, db.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM responses").scalar() == 5


@pytest.mark.parametrize("where", ["link", "relative link", "link to a link"])
def test_a_link_to_the_database_in_its_place(answers, tmp_path, where):
    """The link leads to the same inode, but SQLite would look for the log beside the file that it names."""
    moved = tmp_path / "moved.db"
    assert answers.store(5) is None
    answers.file.rename(moved)
    if where == "link to a link":
        (tmp_path / "between.db").symlink_to(moved)
        answers.file.symlink_to(tmp_path / "between.db")
    else:
        answers.file.symlink_to(moved.name if where == "relative link" else moved)
    error = answers.store()
    assert type(error) is VsegError, "a page sends it again"
    assert f"{answers.file} was moved, replaced or deleted" in str(error)
    with pytest.raises(
        Conflict, match=f"{answers.file}-wal lies beside {answers.file}, which is a link to {moved}"
    ):
        store.open(f"sqlite:///{answers.file}")
    answers.file.unlink()
    moved.rename(answers.file)
    assert answers.store() is None


def test_a_link_that_leads_to_another_database_later(answers, tmp_path):
    link, other = tmp_path / "link.db", tmp_path / "other.db"
    link.symlink_to(answers.file)
    store.open(f"sqlite:///{other}").close()
    with store.open(f"sqlite:///{link}") as db:
        link.unlink()
        link.symlink_to(other)
        with pytest.raises(VsegError, match=f"{link} was moved, replaced or deleted"):
            db.check_file_in_place()


def test_a_link_beside_the_log_of_the_file_it_names(answers, tmp_path):
    """Links to the log itself, and to folders, hide nothing."""
    link, folder = tmp_path / "link.db", tmp_path / "folder"
    assert answers.store(5) is None
    link.symlink_to(answers.file)
    Path(f"{link}-wal").symlink_to(f"{answers.file}-wal")
    folder.symlink_to(tmp_path)
    for name in (link, folder / answers.file.name):
        with store.open(f"sqlite:///{name}") as db, db.reading() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM responses").scalar() == 5


def test_a_missing_file_behind_a_link_whose_log_exists(tmp_path):
    file, link = tmp_path / "x.db", tmp_path / "link.db"
    Path(f"{file}-wal").write_bytes(b"answers")
    link.symlink_to(file)
    with pytest.raises(Conflict, match=f"{file}-wal exists, but its database {link} is missing or empty"):
        store.open(f"sqlite:///{link}")


def test_a_file_with_two_names_is_not_opened(tmp_path):
    """Two servers by two names would each have a log, and overwrite the pages of the other."""
    file, second = tmp_path / "vseg.db", tmp_path / "second.db"
    store.open(f"sqlite:///{file}").close()
    second.hardlink_to(file)
    for name in (file, second):
        with pytest.raises(
            Conflict, match=rf"{name} has another name \(a hard link\).*make a copy and use that"
        ):
            store.open(f"sqlite:///{name}")
    second.unlink()
    store.open(f"sqlite:///{file}").close()


def test_nothing_is_acknowledged_while_the_file_has_two_names(answers, tmp_path):
    second = tmp_path / "second.db"
    assert answers.store() is None
    second.hardlink_to(answers.file)
    error = answers.store()
    assert type(error) is VsegError, "a page sends it again"
    assert "has another name (a hard link)" in str(error)
    second.unlink()
    assert answers.store() is None
