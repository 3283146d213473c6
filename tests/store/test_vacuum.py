"""Erased participants leave no byte in the database's files or in later exports."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select

from commands import vseg
from researchers import run_server_with_api_client
from stored_sessions import answer_all, begin_session, draw_trials, event, register_study, response
from vseg import export, store
from vseg.cli import main
from vseg.errors import NotFound
from vseg.store import vacuum
from vseg.store.schema import links, sessions

PID = "5f2c9d1e8a7b6c5d4e3f2a1b"


@pytest.fixture
def db(tmp_path):
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as opened:
        yield opened


def read_all_bytes(db) -> bytes:
    """Return every byte of the database: the file, its log and the index of the log."""
    file = Path(db.address)
    return b"".join(path.read_bytes() for path in sorted(file.parent.glob(f"{file.name}*")))


def add_participants(db, study, count=40):
    """Add participants, so that database pages are shared and split."""
    for number in range(count):
        answer_all(db, begin_session(db, study, f"other-{number}"))


def add_recognisable_participant(db, study):
    """Add a participant with all kinds of data; return the session and everything by which they can be recognised."""
    link = store.sessions.create_links(db, study, 1)[0]
    identity = store.sessions.Identity(PID, "prolific-study-4711", "prolific-session-0815")
    begun = store.sessions.begin(
        db, study, draw_trials, identity=identity, link=link, now_ms=1_800_000_000_000
    )
    answer_all(db, begun)
    more = [response(500 + k, 0, key="Zq7key") for k in range(50)]
    comment = [event(900, "comment", text="My name is Rumpelstiltskin.")]
    store.responses.append(db, begun.session.id, more, comment).result()
    with db.reading() as connection:
        mine = select(sessions.c.token_hash).where(sessions.c.name == begun.session.name)
        hashes = [connection.scalar(mine), connection.scalars(select(links.c.token_hash)).all()[-1]]
    told = (PID, "prolific-study-4711", "prolific-session-0815", "Rumpelstiltskin", "Zq7key", *hashes)
    return begun, [text.encode() for text in (*told, begun.session.participant, begun.session.name)]


def test_erasing_leaves_no_byte_in_the_files(db):
    study = register_study(db, participants=1000)
    add_participants(db, study)
    begun, secrets = add_recognisable_participant(db, study)
    add_participants(db, study)
    assert all(secret in read_all_bytes(db) for secret in secrets)
    erased = store.sessions.erase(db, study, begun.session.participant)
    assert [secret for secret in secrets if secret in read_all_bytes(db)] == []
    assert erased.traces == vacuum.TRACES_REMOVED
    assert (erased.participants, erased.identities, erased.links, erased.sessions) == (1, 1, 1, 1)
    assert (erased.responses, erased.events, erased.assignments) == (52, 1, 1)
    assert b"other-39" in read_all_bytes(db)


def test_erasing_an_anonymous_participant_leaves_no_byte(db):
    study = register_study(db, participants=1000)
    begun = begin_session(db, study, entry="the-entry-of-one-page-alone")
    with db.reading() as connection:
        hashes = connection.execute(select(sessions.c.token_hash, sessions.c.entry_hash)).one()
    secrets = [text.encode() for text in (*hashes, begun.session.participant, begun.session.name)]
    assert all(secret in read_all_bytes(db) for secret in secrets)
    store.sessions.erase(db, study, begun.session.participant)
    assert [secret for secret in secrets if secret in read_all_bytes(db)] == []


def test_withdrawing_leaves_no_byte_after_the_daily_sweep(db):
    study = register_study(db, participants=1000)
    begun, secrets = add_recognisable_participant(db, study)
    store.sessions.leave(db, begun.session, keep=False)
    assert vacuum.is_due(db)
    store.sessions.apply_retention(db)
    assert not vacuum.is_due(db)
    kept = {
        begun.session.participant.encode(),
        begun.session.name.encode(),
    }  # withdrawn sessions are still counted
    left = {secret for secret in secrets if secret in read_all_bytes(db)}
    assert left - kept == set(secrets[5:7])  # so that the page and the link still get the answer "withdrawn"


def test_sweep_removes_traces_of_earlier_deletions(db):
    """Rows are deleted without secure_delete, the default of SQLite."""
    study = register_study(db, participants=1000)
    _gone, secrets = add_recognisable_participant(db, study)
    with closing(sqlite3.connect(db.address)) as careless:
        careless.execute("PRAGMA foreign_keys = ON")
        careless.execute("PRAGMA secure_delete = OFF")
        careless.execute("DELETE FROM links")
        careless.execute("DELETE FROM participants")
        careless.commit()
    assert any(secret in read_all_bytes(db) for secret in secrets)
    other = begin_session(db, study, "other")
    store.sessions.erase(db, study, other.session.participant)
    assert [secret for secret in secrets if secret in read_all_bytes(db)] == []


def test_log_is_kept_while_someone_reads_and_this_is_reported(db, monkeypatch):
    monkeypatch.setattr(vacuum, "MAX_READER_WAIT_S", 0)
    study = register_study(db, participants=1000)
    begun, secrets = add_recognisable_participant(db, study)
    with db.reading() as connection:
        connection.scalar(select(sessions.c.id))
        erased = store.sessions.erase(db, study, begun.session.participant)
        assert erased.traces == vacuum.LOG_KEPT
        assert vacuum.is_due(db)
    assert vacuum.remove_traces(db) == vacuum.TRACES_REMOVED
    assert [secret for secret in secrets if secret in read_all_bytes(db)] == []


def test_sweep_command_removes_remaining_traces(db, monkeypatch, capsys):
    monkeypatch.setattr(vacuum, "MAX_READER_WAIT_S", 0)
    study = register_study(db, participants=1000)
    begun, secrets = add_recognisable_participant(db, study)
    command = f"erase small --sweep --db sqlite:///{db.address}"
    erase = f"erase small {begun.session.participant} --yes --db sqlite:///{db.address}"
    db.run_outside_transaction("PRAGMA wal_checkpoint(TRUNCATE)")
    with db.reading() as connection:
        connection.scalar(select(sessions.c.id))
        code, out, _ = vseg(erase, capsys)
        assert (code, vacuum.LOG_KEPT in out, "batches" in out) == (1, True, False)
        code, out, _ = vseg(command, capsys)
        assert (code, vacuum.LOG_KEPT in out) == (1, True)
        # The traces are in the file too, not only in the log.
        assert any(secret in Path(db.address).read_bytes() for secret in secrets)
    code, out, _ = vseg(command, capsys)
    assert (code, vacuum.TRACES_REMOVED in out) == (0, True)
    assert [secret for secret in secrets if secret in read_all_bytes(db)] == []
    assert not vacuum.is_due(db)


def test_postgresql_message_says_what_remains(postgres_server):
    with postgres_server.borrowed() as url, store.open(url) as db:
        study = register_study(db)
        begun = begin_session(db, study, PID)
        erased = store.sessions.erase(db, study, begun.session.participant)
        assert re.search("VACUUM FULL.*write-ahead log.*archives.*replicas", erased.traces)
        assert not vacuum.is_due(db)


def test_erase_command_and_later_exports(database_url, tmp_path, capsys):
    with store.open(database_url) as db:
        study = register_study(db, participants=1000)
        answer_all(db, begin_session(db, study, "other"))
        begun, secrets = add_recognisable_participant(db, study)
        command = f"erase small --prolific-id {PID} --yes --db {database_url}"
        code, out, err = vseg(command, capsys)
        assert (code, err) == (0, "")
        assert f"Erased {begun.session.participant}. Rows deleted: participants 1, " in out
        assert "responses 52" in out
        assert "identities 1, links 1, sessions 1" in out
        assert out.splitlines()[-1] == vacuum.OUT_OF_REACH
        folder = tmp_path / "exported"
        folder.mkdir()
        export.write_dataset(db, study, folder, identities=True)
        if db.is_sqlite:
            assert [secret for secret in secrets if secret in read_all_bytes(db)] == []
    written = {path: path.read_bytes() + path.name.encode() for path in folder.rglob("*") if path.is_file()}
    assert [(path, secret) for path, text in written.items() for secret in secrets if secret in text] == []
    code, _, err = vseg(command, capsys)
    assert code == 1
    assert "No participant of study 'small' has the Prolific ID or code" in err
    assert "or use the participant's random name: the dashboard and" in err


def test_erase_command_with_a_personal_link(database_url, tmp_path, capsys):
    with store.open(database_url) as db:
        study, other = register_study(db, participants=9), register_study(db, name="other")
        first, second, unused = store.sessions.create_links(db, study, 3)
        people = [begin_session(db, study, link=link).session.participant for link in (first, second)]
        (tmp_path / "small.toml").write_text(study.text)
    command = f"erase {tmp_path}/small.toml --yes --db {database_url} --link"
    address = f"https://lab.example.org/vseg/s/small/?link={first}&PROLIFIC_PID=07"
    for given, who in zip((address, second), people, strict=True):
        code, out, err = vseg(f"{command} {given}", capsys)
        assert (code, err) == (0, "")
        assert f"Erased {who}." in out
        assert "links 1" in out
    for given in (unused, first, "https://lab.example.org/[?link="):
        code, _, err = vseg(f"{command} {given}", capsys)
        assert (code, "has used this personal link" in err) == (1, True)
    with store.open(database_url) as db:
        with pytest.raises(NotFound, match="study 'other'"):
            store.sessions.find_by_link(db, other, second)
        begin_session(db, study, link=unused)  # the unused link is still valid


def test_erase_command_with_a_lab_code(database_url, capsys):
    with store.open(database_url) as db:
        who = begin_session(db, register_study(db), "07").session.participant
    code, out, _ = vseg(f"erase small --code 07 --yes --db {database_url}", capsys)
    assert (code, f"Erased {who}." in out) == (0, True)


def test_erase_command_asks_nothing_for_an_unknown_participant(db, capsys):
    register_study(db)
    code, out, err = vseg(f"erase small pnotthere1 --db sqlite:///{db.address}", capsys)
    assert (code, out) == (1, "")
    assert "Study 'small' has no participant 'pnotthere1'" in err
    assert "the file names of an export show the names of all participants" in err


def test_erasing_while_the_server_runs(tmp_path):
    with run_server_with_api_client(f"sqlite:///{tmp_path}/vseg.db") as api:
        for number in range(2):
            api.take_part(prolific_pid=f"other-{number}")
        person = api.take_part(prolific_pid=PID)
        (name,) = [each["participant"] for each in api.get("studies/tiny/progress").json()["people"]][-1:]
        assert PID.encode() in read_all_bytes(api.server.db)
        erased = api.delete(f"studies/tiny/participants/{name}").json()
        assert erased["traces"] == vacuum.TRACES_REMOVED
        assert (erased["responses"], erased["events"]) == (person.items, 1)
        assert [word for word in (PID, name) if word.encode() in read_all_bytes(api.server.db)] == []


def test_erase_command_requires_one_participant(tmp_path, capsys):
    for more in ("", "p1 --identities", "p1 --prolific-id x", "--link x --code x", "p1 --sweep"):
        arguments = f"erase small {more}"
        code, _, err = vseg(f"{arguments} --yes --db sqlite:///{tmp_path}/none.db", capsys)
        assert code == 1
        assert "one of the five" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["small", ""], "is empty"),
        (["small", "--prolific-id", ""], "is empty"),
        (["small", "--link", ""], "is empty"),
        (["small", "p1", "--older-than-days", "30"], "goes with --identities"),
        (["small", "--prolific-id", "x", "--older-than-days", "0"], "goes with --identities"),
    ],
)
def test_erase_command_rejects_ambiguous_values(tmp_path, capsys, arguments, said):
    """For example from a script with an empty variable, or a user who misread --days."""
    with pytest.raises(SystemExit) as ended:
        main(["erase", *arguments, "--yes", "--db", f"sqlite:///{tmp_path}/none.db"])
    assert (ended.value.code, said in capsys.readouterr().err) == (1, True)


def test_lock_after_the_sweep_is_no_error(db, monkeypatch):
    """The rows are deleted and the file is rewritten; the remaining mark only costs another rewriting."""
    study = register_study(db, participants=1000)
    begun, _ = add_recognisable_participant(db, study)
    monkeypatch.setattr(vacuum, "LOCK_TIMEOUT_S", 0)
    with closing(sqlite3.connect(db.address, isolation_level=None)) as other:
        run = db.run_outside_transaction

        def locked_afterwards(*statements):
            rows = run(*statements)
            if statements == ("PRAGMA busy_timeout = 0",):  # the last step of rewriting
                other.execute("BEGIN IMMEDIATE")
            return rows

        monkeypatch.setattr(db, "run_outside_transaction", locked_afterwards)
        erased = store.sessions.erase(db, study, begun.session.participant)
        assert other.in_transaction
    monkeypatch.undo()
    assert erased.participants == 1
    assert "the server tries again within a day" in erased.traces
    assert vacuum.is_due(db)
    assert vacuum.remove_traces(db) == vacuum.TRACES_REMOVED


def test_failed_sweep_is_reported_and_repeated(db):
    study = register_study(db, participants=1000)
    begun, secrets = add_recognisable_participant(db, study)
    store.sessions.leave(db, begun.session, keep=False)
    db.run_outside_transaction("PRAGMA busy_timeout = 0")
    with closing(sqlite3.connect(db.address, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        said = vacuum.remove_traces(db)
        assert "not removed yet; the server tries again" in said
        assert "locked" in said
        assert vacuum.is_due(db)
    assert vacuum.remove_traces(db) == vacuum.TRACES_REMOVED
    assert [secret for secret in secrets[:5] if secret in read_all_bytes(db)] == []
