"""The commands in docs/data-care.md, run in order on a database with the participants that it names."""

import re
import shlex
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import update

from stored_sessions import begin_session, complete_session, register_study
from vseg import store
from vseg.cli import main
from vseg.store.backup import check_backup
from vseg.store.schema import participants

PAGE = Path(__file__).parents[2] / "docs" / "data-care.md"
NAMED, PROLIFIC_ID = "p3f6kq2mzxa", "5f2c9d1e8a7b6c5d4e3f2a1b"
DAY_MS = 86_400_000


def commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines()]


def test_every_command_of_the_page_is_in_a_tested_block():
    outside = re.sub(r"^```.*?^```", "", PAGE.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"^ +vseg .*", outside, flags=re.MULTILINE) == []
    shown = {line.split()[1] for line in commands() if line.startswith("vseg ")}
    assert shown == {"backup", "restore", "erase"}


def test_the_commands_of_the_page(tmp_path, monkeypatch, capsys, postgres_server):
    """Only the name of the PostgreSQL database differs, and questions are answered by --yes."""
    monkeypatch.chdir(tmp_path)
    now = int(time.time() * 1000)
    with store.open("sqlite:///vseg.db") as db:
        study = register_study(db, name="my-study", participants=20)
        begun = [begin_session(db, study, pid, now_ms=now) for pid in ("pid-0", PROLIFIC_ID)]
        old = begin_session(db, study, "pid-old", now_ms=now - 31 * DAY_MS)
        complete_session(db, old)
        named = update(participants).where(participants.c.name == begun[0].session.participant)
        with db.writing() as connection:
            assert connection.execute(named.values(name=NAMED)).rowcount == 1
    url = postgres_server.fresh(migrated=False)
    for line in commands():
        if line == "createdb vseg":
            continue
        program, *arguments = shlex.split(line, comments=True)
        if program == "sqlite3":
            with closing(sqlite3.connect(arguments[0])) as connection:
                connection.executescript(arguments[1])
                # Without its checksum the file can be changed and this is not detected.
                connection.executescript("UPDATE participants SET created_at_ms = 0")
            assert check_backup(Path(arguments[0])).rows["participants"] == 3
            continue
        assert program == "vseg", line
        arguments = [url if each.startswith("postgresql://") else each for each in arguments]
        with pytest.raises(SystemExit) as left:
            main([*arguments, *(["--yes"] if arguments[0] == "erase" else [])])
        assert left.value.code == 0, (line, capsys.readouterr())
    for place, people in (("sqlite:///vseg.db", 1), ("sqlite:///vseg-restored.db", 3), (url, 3)):
        with store.open(place) as db, db.reading() as connection:
            assert len(connection.execute(participants.select()).all()) == people, place
    postgres_server.drop(url)
