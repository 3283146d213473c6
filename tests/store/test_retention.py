"""Identities are kept as long as the study file says; answers remain. The tests change stored times."""

import asyncio
import io
import threading

import pytest
from sqlalchemy import select, update

from commands import vseg
from servers import STUDY, register_studies, run_server
from stored_sessions import NOW, answer_all, begin_session, complete_session, draw_trials, register_study
from vseg import store
from vseg.errors import InvalidInput
from vseg.server.retention import enforce_retention
from vseg.store.schema import events, identities, links, participants, responses, sessions
from vseg.store.sessions import retention
from vseg.study.schema import parse_study

DAY = retention.DAY_MS
NOBODY = "There were no identities to delete.\n"
PRIVATE = "[privacy]\nkeep_identities_days = 30\n"


def set_last_activity(db, begun, days: float, now_ms: int = NOW) -> None:
    """Shift all times of a session so that its last activity was so many days ago."""
    at = int(now_ms - days * DAY)
    with db.writing() as connection:
        mine = update(sessions).where(sessions.c.id == begun.session.id)
        connection.execute(mine.values(started_at_ms=at))
        connection.execute(mine.where(sessions.c.finished_at_ms.is_not(None)).values(finished_at_ms=at))
        for table in (responses, events):
            connection.execute(
                update(table).where(table.c.session == begun.session.id).values(received_at_ms=at)
            )


def list_identified(db) -> set[str]:
    """Return the participants who have an identity or a personal link."""
    with db.reading() as connection:
        return {
            name
            for table in (identities, links)
            for name in connection.scalars(
                select(participants.c.name).join(table, table.c.participant == participants.c.id)
            )
        }


def test_identities_are_deleted_after_the_promised_time_and_answers_remain(db):
    study, forever = (
        register_study(db, participants=50, more=PRIVATE),
        register_study(db, name="forever", participants=50),
    )
    people = {days: begin_session(db, study, f"pid-{days}") for days in (0.01, 29.9, 30.1, 400)}
    (link,) = store.sessions.create_links(db, study, 1)
    people[31] = store.sessions.begin(db, study, draw_trials, link=link, now_ms=NOW)
    people[-1] = begin_session(db, forever, "pid-forever")
    for days, begun in people.items():
        complete_session(db, begun)
        set_last_activity(db, begun, abs(days) * (400 if days < 0 else 1))
    before = store.responses.load_responses(db, study)
    gone = store.sessions.apply_retention(db, now_ms=NOW)
    assert {name: (each.identities, each.links) for name, each in gone.items()} == {"small": (2, 1)}
    assert gone["small"].traces
    assert list_identified(db) == {people[days].session.participant for days in (0.01, 29.9, -1)}
    assert store.responses.load_responses(db, study).same.tolist() == before.same.tolist()
    assert store.sessions.apply_retention(db, now_ms=NOW) == {}
    with pytest.raises(Exception, match="has no such personal link"):  # nobody else can use the link
        store.sessions.begin(db, study, draw_trials, link=link, now_ms=NOW)


def test_participants_who_are_taking_part_are_kept(db):
    study = register_study(db, participants=5, more="[privacy]\nkeep_identities_days = 0\n")
    begun = begin_session(db, study, "pid-1")
    answer_all(db, begun)
    set_last_activity(db, begun, 90)
    with db.writing() as connection:
        connection.execute(update(responses).values(received_at_ms=NOW - 10 * 60_000))
    assert store.sessions.apply_retention(db, now_ms=NOW) == {}
    assert begin_session(db, study, "pid-1").resumed
    with db.writing() as connection:
        connection.execute(update(responses).values(received_at_ms=NOW - 61 * 60_000))
    assert store.sessions.apply_retention(db, now_ms=NOW)["small"].identities == 1


def test_finished_participants_are_forgotten_immediately_with_0_days(db):
    """With 0 days only active participants are kept; with more days, the last hour makes no difference."""
    study = register_study(db, participants=50)
    people = {how: begin_session(db, study, f"pid-{how}") for how in ("active", "completed", "left", "ended")}
    (link,) = store.sessions.create_links(db, study, 1)
    people["withdrawn"] = begin_session(db, study, link=link)
    complete_session(db, people["completed"])
    store.sessions.leave(db, people["left"].session, keep=True)
    store.sessions.leave(db, people["withdrawn"].session, keep=False)
    store.sessions.end(db, people["ended"].session)
    gone = store.sessions.forget_identities(db, study, days=1, now_ms=NOW)
    assert (gone.identities, gone.links, gone.kept) == (0, 0, 0)
    gone = store.sessions.forget_identities(db, study, now_ms=NOW)
    assert (gone.identities, gone.links, gone.kept) == (3, 1, 1)
    assert list_identified(db) == {people["active"].session.participant}


def test_the_server_applies_retention(database_url, caplog):
    kind = database_url.partition(":")[0]  # a different study name, since equal log messages are throttled
    text = (STUDY + PRIVATE).replace('"tiny"', f'"{kind}"')
    with store.open(database_url) as db:
        register_studies(db, text)
        study = store.studies.get_study(db, kind)
        now = store.database.now_ms()
        old, new = (begin_session(db, study, name, now_ms=now) for name in ("pid-old", "pid-new"))
        set_last_activity(db, old, 31, now)
    with run_server(database_url, text) as server:
        for _ in range(3000):
            if "deleted 1 identity" in caplog.text:
                break
            threading.Event().wait(0.01)
        assert list_identified(server.db) == {new.session.participant}
    (said,) = [each for each in caplog.records if each.name == "vseg.server"]
    assert said.levelname == "WARNING"  # the lowest level in the server's log
    assert said.getMessage() == (
        f"Study {kind}: deleted 1 identity and 0 personal links, as keep_identities_days = 30 requires."
    )


def test_forget_command(database_url, capsys):
    with store.open(database_url) as db:
        study = register_study(db, participants=50)
        now = store.database.now_ms()
        for days in (0, 3, 10):
            set_last_activity(db, begin_session(db, study, f"pid-{days}", now_ms=now), days, now)
    command = f"erase small --identities --yes --db {database_url}"
    code, out, err = vseg(f"{command} --older-than-days 5", capsys)
    assert (code, err) == (0, "")
    assert "Rows deleted: identities 1, links 0." in out
    assert vseg(f"{command} --older-than-days 5", capsys) == (0, NOBODY, "")
    for said in ("identities 1, links 0", NOBODY):  # one of the other two is still taking part
        code, out, err = vseg(command, capsys)
        assert (code, err) == (1, "")
        assert said in out
        assert (store.vacuum.OUT_OF_REACH in out) == (said != NOBODY)
        assert (
            "Kept the identities of 1 participant still taking part (not finished, active within the last hour)"
            in out
        )


def test_forget_command_asks_for_confirmation(tmp_path, capsys, monkeypatch):
    """Without a terminal nobody can confirm, so nothing is deleted; the input of a script is empty or closed."""
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        complete_session(db, begin_session(db, register_study(db), "pid-1"))
        command = f"erase small --identities --db sqlite:///{tmp_path}/vseg.db"
        code, out, _ = vseg(f"{command} --older-than-days 1", capsys)
        assert code == 1
        assert out.startswith(
            "Permanently delete the identities of participants of small inactive for 1 day? "
        )
        code, out, err = vseg(command, capsys)
        assert (code, err.startswith("vseg: Nothing was deleted"), "use --yes" in err) == (1, True, True)
        assert out.startswith("Permanently delete the identities of participants of small? Answers are kept.")
        monkeypatch.setattr("sys.stdin", None)
        assert vseg(command, capsys) == (1, "", err)
        assert len(list_identified(db)) == 1


def test_invalid_setting_is_reported_with_its_line():
    with pytest.raises(InvalidInput, match="keep_identities_days should be a whole number from 0 to 36500"):
        parse_study(STUDY + "[privacy]\nkeep_identities_days = -1\n")
    assert parse_study(STUDY).privacy.keep_identities_days is None


def test_failure_of_retention_does_not_stop_the_server(caplog):
    """Any exception, not only a VsegError, is logged, and retention runs again the next day."""

    class Broken:
        def reading(self):
            asked.set()
            raise RuntimeError("nobody has foreseen this")

    asked, closed = threading.Event(), []

    async def day() -> bool:
        async with enforce_retention(Broken()):
            (task,) = asyncio.all_tasks() - {asyncio.current_task()}
            while "the next attempt is tomorrow" not in caplog.text and not task.done():
                await asyncio.sleep(0)
            is_over = task.done()
        closed.append("the others")
        return is_over

    assert asyncio.run(day()) is False
    assert asked.is_set()
    assert closed == ["the others"]
    assert "nobody has foreseen this" in caplog.text
