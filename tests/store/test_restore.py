"""A restored database is complete or absent, and a refused target is unchanged."""

import os
import re
import resource
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from commands import vseg
from stored_sessions import register_study
from vseg import store
from vseg.errors import Conflict, InvalidInput, SchemaMismatch, VsegError
from vseg.store import checksum, migrate, transfer
from vseg.store.backup import back_up, check_backup, restore
from vseg.store.transfer import new_file

EARLIER = Path(__file__).with_name("earlier")


@pytest.fixture
def old_backup(tmp_path) -> Path:
    """A backup of the first version; restoring it writes more than a mere copy."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript((EARLIER / "0001-sqlite.sql").read_text(encoding="utf-8"))
    with store.open(f"sqlite:///{tmp_path}/old.db", update_schema=False) as db:
        back_up(db, tmp_path / "old-backup.db")
    return tmp_path / "old-backup.db"


def test_restore_to_a_full_disk_leaves_nothing(old_backup, tmp_path):
    """The maximum file size of the process varies from too little for a copy to enough for everything."""
    folder = tmp_path / "restored"
    folder.mkdir()
    size = old_backup.stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    outcomes = []
    for most in range(size - 8192, 4 * size, 8192):
        file = folder / f"{most}.db"
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        try:
            restore(old_backup, f"sqlite:///{file}")
        except VsegError:
            outcomes.append("refused")
            assert list(folder.iterdir()) == []
            continue
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        outcomes.append("whole")
        assert [each.name for each in folder.iterdir()] == [file.name]
        assert check_backup(file).rows["responses"] == check_backup(old_backup).rows["responses"] > 0
        with store.open(f"sqlite:///{file}", update_schema=False) as db:
            assert migrate.is_up_to_date(db)
        file.unlink()
        if outcomes[-3:] == ["whole"] * 3:
            break
    assert outcomes[0] == "refused"
    assert outcomes[-1] == "whole"


def test_new_file_with_a_remaining_log_is_rejected(tmp_path):
    with (
        pytest.raises(VsegError, match="SQLite still needs its -wal file"),
        new_file(tmp_path / "a.db") as temporary,
    ):
        Path(f"{temporary}-wal").write_bytes(b"pages that the file does not have yet")
    assert list(tmp_path.iterdir()) == []


def test_refused_restore_does_not_update_the_target(tmp_path, postgres_server):
    """If a restore is refused, the tables of the target are not updated either."""
    import psycopg

    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        register_study(db)
        back_up(db, tmp_path / "backup.db")
    url = postgres_server.fresh(migrated=False)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((EARLIER / "0001-postgresql.sql").read_bytes())
    with pytest.raises(Conflict, match=r"already has rows in \w+"):
        restore(tmp_path / "backup.db", url)
    with store.open(url, update_schema=False) as db, db.reading() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "0001"
    postgres_server.drop(url)


def test_error_for_a_newer_backup_names_the_backup(tmp_path, postgres_server):
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        back_up(db, tmp_path / "newer.db")
    with closing(sqlite3.connect(tmp_path / "newer.db")) as connection, connection:
        checksum.clear_checksum(connection)
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with postgres_server.borrowed() as postgresql:
        for url in (f"sqlite:///{tmp_path}/restored.db", postgresql):
            with pytest.raises(SchemaMismatch, match=rf"^{tmp_path}/newer\.db was written by a newer vseg"):
                restore(tmp_path / "newer.db", url)


def test_abandoned_unfinished_files_are_removed(tmp_path):
    """Only files for the same path, and none that may still be in use."""
    long_ago = time.time() - transfer.ABANDONED_S - 60
    gone = [".a.db-unfinished-0123abcd", ".a.db-unfinished-0123abcd-journal"]
    kept = [
        ".b.db-unfinished-0123abcd",
        ".a.db-unfinished-mine",
        "a.db-unfinished-0123abcd",
        ".aXdb-unfinished-0123abcd",
    ]
    for name in (*gone, *kept):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (long_ago, long_ago))
    (tmp_path / ".a.db-unfinished-4567cdef").touch()
    with new_file(tmp_path / "a.db"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"a.db", ".a.db-unfinished-4567cdef", *kept}


def test_file_name_that_is_too_long(tmp_path):
    """It is too long only for the temporary file, whose name the user has not chosen."""
    path = tmp_path / ("x" * 240)
    said = re.escape(f"{path} cannot be written (")
    with pytest.raises(InvalidInput, match=rf"^{said}[^-]+\); choose another file\.$"), new_file(path):
        raise AssertionError("there is no such file")


def test_locked_file_is_not_reported_as_damaged(tmp_path, monkeypatch):
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        back_up(db, tmp_path / "backup.db")

    def impatient(file: Path) -> sqlite3.Connection:
        return sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=0)

    monkeypatch.setattr("vseg.store.backup.open_read_only", impatient)
    with closing(sqlite3.connect(tmp_path / "backup.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for use in (lambda: check_backup(tmp_path / "backup.db"), lambda: back_up_again(tmp_path)):
            with pytest.raises(VsegError, match=r"backup\.db is locked by another program"):
                use()
    assert {path.name for path in tmp_path.iterdir()} == {"vseg.db", "backup.db"}


def back_up_again(folder: Path) -> None:
    """Return a backup of a restored or copied database."""
    with store.open(f"sqlite:///{folder}/backup.db", update_schema=False) as db:
        back_up(db, folder / "again.db")


def test_restore_command_reports_the_target_and_ended_logins(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with store.open("sqlite:///first.db") as db:
        register_study(db)
        store.researchers.set_setting(db, store.researchers.SETUP_SETTING, "of a link that is used later")
        rows = sum(back_up(db, Path("backup.db")).rows.values())
    code, out, err = vseg("restore backup.db", capsys)
    assert (code, err) == (0, "")
    assert out.startswith("Restored backup.db into vseg.db: studies 1, ")
    assert f"{rows - 1} rows in " in out
    assert "Logins and one-time links were not restored." in out.splitlines()[0]
    assert Path("vseg.db").is_file()
