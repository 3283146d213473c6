"""The short version of `make chaos`: every kind of fault once on each database, and tests for bugs it found."""

import asyncio
import os
import random
import re
import sqlite3

import pytest

from chaos import page
from chaos.disks import NO_MOUNT, can_mount
from chaos.faults import BOTH, FAULTS, POSTGRESQL, SQLITE, Fault, Scene, requests_spoilt
from chaos.participants import Ledger, Participant
from chaos.proxy import Proxy
from chaos.rounds import ONE_IN, Crowd, Rounds
from databases import postgres
from servers import run_server
from stored_sessions import begin_session, register_study, response
from vseg import store
from vseg.errors import InvalidInput, VsegError

LONG = ("one of two workers killed (SIGKILL)", "database locked for longer than a write waits")
CROWD = Crowd(people=10, trials=120)


@pytest.fixture(scope="module")
def rounds(tmp_path_factory):
    """Use a separate PostgreSQL server, because it is restarted and killed."""
    folder = tmp_path_factory.mktemp("chaos")
    with postgres() as server:
        found = Rounds(CROWD, folder, server, seed=1)
        assert found.undisturbed().passed
        yield found


@pytest.mark.parametrize("database", BOTH)
def test_no_acknowledged_answer_is_lost(rounds, database):
    """Inject each fault once under load; compare the export row by row, and its map with the one without faults."""
    kinds = [
        fault for fault in FAULTS if database in fault.databases and not (fault.adaptive or fault.behind)
    ]
    faults = [fault for fault in kinds if fault.name not in LONG]
    if database == POSTGRESQL:  # tested separately below, because not every machine allows it
        faults = [fault for fault in faults if not fault.small_disk]
    outcome = rounds.run("all kinds", database, faults)
    assert outcome.injected == len(faults), outcome.wrong
    assert outcome.stored == CROWD.answers
    assert outcome.requests_spoilt >= 5 * sum("spoilt" in str(fault.inject) for fault in faults)
    assert outcome.returned == len(range(0, CROWD.people, ONE_IN))
    assert outcome.passed, outcome


def test_no_acknowledged_answer_is_lost_when_the_disk_of_postgresql_is_full(rounds):
    if not can_mount():
        pytest.skip(f"PostgreSQL's full disk is skipped: {NO_MOUNT}")
    full = [fault for fault in FAULTS if fault.small_disk and POSTGRESQL in fault.databases]
    outcome = rounds.run("disk full", POSTGRESQL, full)
    assert outcome.injected == 1
    assert outcome.stored == CROWD.answers
    assert outcome.passed, outcome


@pytest.mark.chaos  # takes long
def test_chosen_pairs_survive_a_killed_server(rounds):
    """An answer is stored with the pair that the server sent, even if the server was killed in between."""
    fault = next(fault for fault in FAULTS if fault.adaptive)
    outcome = rounds.run(fault.name, SQLITE, [fault] * 2)
    assert outcome.injected == 2
    assert outcome.chosen > 0
    assert outcome.passed, outcome


def test_the_documentation_lists_the_faults_that_only_make_chaos_runs():
    from chaos.tabs import FAULTS as PAGE_FAULTS
    from chaos.test_tabs import HERE

    elsewhere = {"tab reloaded", "tab crashed", "opened in two tabs"}  # tests/browser/test_nothing_lost.py
    only_in_make_chaos = {*LONG, *(fault.name for fault in FAULTS if fault.adaptive or fault.behind)}
    only_in_make_chaos |= PAGE_FAULTS.keys() - set(HERE) - elsewhere
    paragraph = " ".join(page.DOCUMENT.read_text("utf-8").split()).partition(
        "The following run only in `make chaos`"
    )[2]
    assert set(re.findall(r'"([^"]+)"', paragraph.partition(".")[0])) == only_in_make_chaos


def test_a_fault_without_effect_is_not_counted(rounds):
    async def nothing(scene: Scene) -> bool:
        felt = await scene.until_more("failures", 1, within=5)
        scene.lift()
        return felt

    outcome = rounds.run("nothing", SQLITE, [Fault("nothing", nothing, 1)])
    assert (outcome.planned, outcome.injected, outcome.passed) == (1, 0, False)
    assert outcome.stored == outcome.responses == CROWD.answers


async def spoilt_crowd(base: str, ways: list[str], patience_s: float) -> tuple[Ledger, int]:
    """Run three participants whose first requests are damaged in these ways; return the ledger and how many were."""
    ledger = Ledger()
    ledger.going.set()
    ledger.over.set()
    async with Proxy.to(int(base.rsplit(":")[-1].strip("/"))) as proxy:
        people = [
            Participant("tiny", proxy.port, ledger, random.Random(seed), patience_s) for seed in range(3)
        ]
        spoiling = asyncio.create_task(proxy.misbehave(ways, random.Random(0)))
        await asyncio.gather(*(person.take_part() for person in people))
        spoiling.cancel()
    return ledger, proxy.spoilt


def test_a_doubled_request_to_begin_locks_nobody_out(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as server:
        ledger, spoilt = asyncio.run(spoilt_crowd(server.base, ["doubled"] * 3, 20))
    assert (ledger.wrong, ledger.completed, spoilt) == ([], 3, 3)


def test_repeating_a_request_while_the_first_is_on_its_way_does_no_harm(tmp_path):
    """This holds for requests to begin, to store and to complete; and each sender noticed the missing reply."""
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as server:
        ledger, spoilt = asyncio.run(spoilt_crowd(server.base, ["too slow"] * 6, 0.5))
        with server.db.reading() as connection:
            sessions = connection.exec_driver_sql("SELECT count(*) FROM sessions").scalar()
    assert (ledger.wrong, ledger.completed, spoilt, sessions) == ([], 3, 6, 3)
    assert ledger.failures >= spoilt


def test_a_participant_can_continue_after_a_late_request_to_begin(tmp_path):
    """The late request takes the session from the current page; after a reload that page continues with its token."""

    async def returning(port: int) -> Ledger:
        ledger = Ledger()
        ledger.going.set()
        async with Proxy.to(port) as proxy, asyncio.timeout(60):
            person = Participant("tiny", proxy.port, ledger, random.Random(0), 0.5, "someone")
            spoiling = asyncio.create_task(proxy.misbehave(["too slow"], random.Random(0)))
            await asyncio.sleep(0)  # so that it damages the first request
            taking_part = asyncio.create_task(person.take_part())
            await ledger.until(lambda: ledger.reloaded or ledger.gone)
            ledger.over.set()
            await asyncio.gather(taking_part, spoiling)
        return ledger

    with run_server(f"sqlite:///{tmp_path}/vseg.db") as server:
        ledger = asyncio.run(returning(int(server.base.rsplit(":")[-1].strip("/"))))
    assert (ledger.wrong, ledger.returned, ledger.reloaded, ledger.completed) == ([], 1, 1, 1)


def test_damaged_requests_count_only_if_their_senders_notice(monkeypatch):
    """The proxy's own count is not enough if participants should have received no reply."""
    monkeypatch.setattr("chaos.faults.NOTICED_WITHIN_S", 0.5)  # nobody is there to notice

    class Quiet(Proxy):
        async def misbehave(self, kinds, rng):
            self.spoilt += len(kinds)
            ledger.accepted += 10_000
            ledger.changed()

    ledger = Ledger()

    def scene() -> Scene:
        return Scene(SQLITE, "", None, Quiet(0), None, None, ledger, random.Random(0), everyone=1)  # type: ignore[arg-type]

    assert not asyncio.run(requests_spoilt(scene(), ("lost",)))
    assert asyncio.run(requests_spoilt(scene(), ("doubled",)))


def test_a_read_only_database_refuses_no_record_permanently(postgres_server):
    """A page drops records that the server calls invalid, so a read-only replica must not be reported like that."""
    url = postgres_server.fresh()
    name = url.split("/")[3].partition("?")[0]
    with store.open(url) as db:
        session = begin_session(db, register_study(db)).session
        for setting, kind in (("on", VsegError), ("off", type(None))):
            postgres_server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {setting}")
            postgres_server.execute(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            )
            error = store.responses.append(db, session.id, [response(0)], []).exception()
            assert type(error) is kind, error
    postgres_server.drop(url)


def test_a_damaged_database_file_refuses_no_record_permanently(tmp_path):
    file = tmp_path / "vseg.db"
    with store.open(f"sqlite:///{file}") as db:
        session = begin_session(db, register_study(db)).session
        with sqlite3.connect(file) as other:
            other.execute("CREATE TABLE other (x)")  # invalidates the writer's cache
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        other.close()
        db.check_file_in_place()
        written = file.stat().st_mtime_ns
        with open(file, "r+b") as raw:
            raw.seek(4096)
            raw.write(b"\xff" * (file.stat().st_size - 4096))
        os.utime(file, ns=(written, written))  # like a disk that fails, not a program that writes
        error = store.responses.append(db, session.id, [response(0)], []).exception()
        assert isinstance(error, VsegError)
        assert not isinstance(error, InvalidInput)


def test_commits_are_synchronous_even_if_postgresql_is_configured_otherwise(postgres_server):
    url = postgres_server.fresh()
    name = url.split("/")[3].partition("?")[0]
    postgres_server.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with store.open(url) as db, db.writing() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    postgres_server.drop(url)
