"""A restored database is whole, or it is not there; and what is refused is as it was."""

import resource
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from taking_part import study_of
from vseg import store
from vseg.errors import Conflict, VsegError
from vseg.store import migrate
from vseg.store.backup import back_up, checked, restore
from vseg.store.copying import new_file

EARLIER = Path(__file__).with_name("earlier")


@pytest.fixture
def old_backup(tmp_path) -> Path:
    """Of a database of the first version: restoring it writes more than a copy."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript((EARLIER / "0001-sqlite.sql").read_text(encoding="utf-8"))
    with store.open(f"sqlite:///{tmp_path}/old.db", as_it_is=True) as db:
        back_up(db, tmp_path / "old-backup.db")
    return tmp_path / "old-backup.db"


def test_a_disk_that_is_full_at_any_moment(old_backup, tmp_path):
    """Files of this process may grow to so many bytes, from too few for a copy to enough for all."""
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
        assert checked(file).rows["responses"] == checked(old_backup).rows["responses"] > 0
        with store.open(f"sqlite:///{file}", as_it_is=True) as db:
            assert migrate.is_up_to_date(db)
        file.unlink()
        if outcomes[-3:] == ["whole"] * 3:
            break
    assert outcomes[0] == "refused"
    assert outcomes[-1] == "whole"


def test_a_file_whose_log_is_still_needed_gets_no_name(tmp_path):
    with pytest.raises(VsegError, match="-wal is still needed"), new_file(tmp_path / "a.db") as temporary:
        Path(f"{temporary}-wal").write_bytes(b"pages that the file does not have yet")
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_holds_something_stays_of_its_version(tmp_path, postgres_server):
    """Where restoring is refused, nothing is brought up to date either."""
    import psycopg

    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        study_of(db)
        back_up(db, tmp_path / "backup.db")
    url = postgres_server.fresh(migrated=False)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((EARLIER / "0001-postgresql.sql").read_bytes())
    with pytest.raises(Conflict, match=r"has rows in \w+ already"):
        restore(tmp_path / "backup.db", url)
    with store.open(url, as_it_is=True) as db, db.reading() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "0001"
    postgres_server.drop(url)
