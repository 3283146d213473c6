"""The short version of `make chaos`: every kind of fault once, in one crowd a database, and what they have found."""

import asyncio
import random
import re
import sqlite3

import pytest

from chaos import page
from chaos.disks import NO_MOUNT, can_mount
from chaos.faults import BOTH, FAULTS, POSTGRESQL, SQLITE, Fault, Scene, requests_spoilt
from chaos.people import Ledger, Person
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
    """With a PostgreSQL of its own, since it is restarted and killed."""
    folder = tmp_path_factory.mktemp("chaos")
    with postgres() as server:
        found = Rounds(CROWD, folder, server, seed=1)
        assert found.undisturbed().well
        yield found


@pytest.mark.parametrize("database", BOTH)
def test_nothing_acknowledged_is_lost_whatever_happens(rounds, database):
    """Each fault once, under load; then the export, row by row, and its map beside that of a quiet day."""
    kinds = [fault for fault in FAULTS if database in fault.databases and not fault.adaptive]
    faults = [fault for fault in kinds if fault.name not in LONG]
    if database == POSTGRESQL:  # by itself below, since it can't be tried everywhere
        faults = [fault for fault in faults if not fault.small_disk]
    outcome = rounds.run("all kinds", database, faults)
    assert outcome.injected == len(faults), outcome.wrong
    assert outcome.stored == CROWD.answers
    assert outcome.requests_spoilt >= 5 * sum("spoilt" in str(fault.inject) for fault in faults)
    assert outcome.returned == len(range(0, CROWD.people, ONE_IN))
    assert outcome.well, outcome


def test_nothing_acknowledged_is_lost_when_postgresql_has_no_room(rounds):
    if not can_mount():
        pytest.skip(f"PostgreSQL's full disk is left out: {NO_MOUNT}")
    full = [fault for fault in FAULTS if fault.small_disk and POSTGRESQL in fault.databases]
    outcome = rounds.run("disk full", POSTGRESQL, full)
    assert outcome.injected == 1
    assert outcome.stored == CROWD.answers
    assert outcome.well, outcome


@pytest.mark.chaos  # long
def test_pairs_that_were_chosen_outlive_the_server(rounds):
    """What the server told people to ask is what it stores the answer to, also after it was killed."""
    fault = next(fault for fault in FAULTS if fault.adaptive)
    outcome = rounds.run(fault.name, SQLITE, [fault] * 2)
    assert outcome.injected == 2
    assert outcome.chosen > 0
    assert outcome.well, outcome


def test_the_document_says_which_kinds_only_make_chaos_runs():
    from chaos.tabs import FAULTS as OF_THE_PAGE
    from chaos.test_tabs import HERE

    elsewhere = {"tab reloaded", "tab crashed", "opened in two tabs"}  # tests/browser/test_nothing_lost.py
    left_out = {*LONG, *(fault.name for fault in FAULTS if fault.adaptive)}
    left_out |= OF_THE_PAGE.keys() - set(HERE) - elsewhere
    said = " ".join(page.DOCUMENT.read_text("utf-8").split()).partition(
        "The following run only in `make chaos`"
    )[2]
    assert set(re.findall(r'"([^"]+)"', said.partition(".")[0])) == left_out


def test_a_fault_that_nobody_feels_is_not_counted(rounds):
    async def nothing(scene: Scene) -> bool:
        felt = await scene.until_more("failures", 1, within=5)
        scene.lifted()
        return felt

    outcome = rounds.run("nothing", SQLITE, [Fault("nothing", nothing, 1)])
    assert (outcome.planned, outcome.injected, outcome.well) == (1, 0, False)
    assert outcome.stored == outcome.responses == CROWD.answers


async def spoilt_crowd(base: str, ways: list[str], patience_s: float) -> tuple[Ledger, int]:
    """Three people whose first requests are spoilt in these ways; and how many were."""
    ledger = Ledger()
    ledger.going.set()
    ledger.over.set()
    async with Proxy.to(int(base.rsplit(":")[-1].strip("/"))) as proxy:
        people = [Person("tiny", proxy.port, ledger, random.Random(seed), patience_s) for seed in range(3)]
        spoiling = asyncio.create_task(proxy.misbehave(ways, random.Random(0)))
        await asyncio.gather(*(person.take_part() for person in people))
        spoiling.cancel()
    return ledger, proxy.spoilt


def test_a_doubled_beginning_shuts_nobody_out(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as server:
        ledger, spoilt = asyncio.run(spoilt_crowd(server.base, ["doubled"] * 3, 20))
    assert (ledger.wrong, ledger.completed, spoilt) == ([], 3, 3)


def test_a_request_that_is_sent_again_while_the_first_is_under_way_does_no_harm(tmp_path):
    """Neither a beginning nor records nor the end; and whoever has sent them has noticed."""
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as server:
        ledger, spoilt = asyncio.run(spoilt_crowd(server.base, ["too slow"] * 6, 0.5))
        with server.db.reading() as connection:
            sessions = connection.exec_driver_sql("SELECT count(*) FROM sessions").scalar()
    assert (ledger.wrong, ledger.completed, spoilt, sessions) == ([], 3, 6, 3)
    assert ledger.failures >= spoilt


def test_a_beginning_that_comes_after_its_sender_has_come_back_is_no_dead_end(tmp_path):
    """It takes the session from the page on which they are; loaded again, that has the same token and goes on."""

    async def returning(port: int) -> Ledger:
        ledger = Ledger()
        ledger.going.set()
        async with Proxy.to(port) as proxy, asyncio.timeout(60):
            person = Person("tiny", proxy.port, ledger, random.Random(0), 0.5, "someone")
            spoiling = asyncio.create_task(proxy.misbehave(["too slow"], random.Random(0)))
            await asyncio.sleep(0)  # so that it meets the first request
            taking_part = asyncio.create_task(person.take_part())
            await ledger.until(lambda: ledger.reloaded or ledger.gone)
            ledger.over.set()
            await asyncio.gather(taking_part, spoiling)
        return ledger

    with run_server(f"sqlite:///{tmp_path}/vseg.db") as server:
        ledger = asyncio.run(returning(int(server.base.rsplit(":")[-1].strip("/"))))
    assert (ledger.wrong, ledger.returned, ledger.reloaded, ledger.completed) == ([], 1, 1, 1)


def test_a_spoilt_request_that_nobody_notices_is_not_felt():
    """The proxy's own count is not enough where people should have got no answer."""

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


def test_a_database_that_only_reads_refuses_no_record_for_good(postgres_server):
    """As a stand-in after a failover does: a page would give up what it is told is wrong with the record."""
    url = postgres_server.fresh()
    name = url.split("/")[3].partition("?")[0]
    with store.open(url) as db:
        session = begin_session(db, register_study(db)).session
        for setting, kind in (("on", VsegError), ("off", type(None))):
            postgres_server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {setting}")
            postgres_server.execute(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            )
            told = store.responses.append(db, session.id, [response(0)], []).exception()
            assert type(told) is kind, told
    postgres_server.drop(url)


def test_a_file_damaged_while_it_is_open_refuses_no_record_for_good(tmp_path):
    file = tmp_path / "vseg.db"
    with store.open(f"sqlite:///{file}") as db:
        session = begin_session(db, register_study(db)).session
        with sqlite3.connect(file) as other:
            other.execute("PRAGMA user_version = 7")  # so that what the writer remembers of the file is void
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        other.close()
        with open(file, "r+b") as raw:
            raw.seek(4096)
            raw.write(b"\xff" * (file.stat().st_size - 4096))
        told = store.responses.append(db, session.id, [response(0)], []).exception()
        assert isinstance(told, VsegError)
        assert not isinstance(told, InvalidInput)


def test_a_commit_is_waited_for_also_where_postgresql_is_set_not_to(postgres_server):
    url = postgres_server.fresh()
    name = url.split("/")[3].partition("?")[0]
    postgres_server.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with store.open(url) as db, db.writing() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    postgres_server.drop(url)
