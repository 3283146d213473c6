"""Faults of the server, its database and its network while participants answer.

Each fault is a function of a Scene that returns whether the fault had an effect on anybody.
"""

import asyncio
import math
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from chaos.disks import Disk
from chaos.participants import Ledger
from chaos.proxy import Proxy
from chaos.serving import RestartablePostgres, Server, in_thread
from proxies import has_reached_server, smuggle
from vseg import store

SQLITE, POSTGRESQL = "SQLite", "PostgreSQL"
BOTH = (SQLITE, POSTGRESQL)
FEW = 5
MOST_TRIES = 20
PATIENCE_S = 5.0  # how long participants wait for a reply
NOTICED_WITHIN_S = 60  # by then participants without a reply have repeated their request

RESCUED = "it has all acknowledged records"
DIED = "The thread that stores records has died"

SMUGGLED = (
    b"POST /s/crowd/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 700\r\n\r\n",  # waits for the next request
    b"GET /pages/researcher.css HTTP/1.1\r\nHost: x\r\nContent-Length: 700\r\n\r\n",  # its reply comes at once
    b"GET /pages/researcher.css HTTP/1.1\r\nHost: x\r\n\r\n",
)
"""Requests of a stranger, which the server must take for the body of another request."""

LOCKING = {
    SQLITE: "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None); "
    "db.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); sys.stdin.read()",
    POSTGRESQL: """
import psycopg, sys
db = psycopg.connect(sys.argv[1])
while True:
    try:
        db.execute(f"LOCK TABLE {sys.argv[2]} IN ACCESS EXCLUSIVE MODE")
        break
    except psycopg.errors.DeadlockDetected:  # the server locked one table and waits for another
        db.rollback()
print("locked", flush=True)
sys.stdin.read()
""",
}
"""Programs that lock the database, or these tables of PostgreSQL, until their input ends."""


@dataclass
class Scene:
    """Everything that a fault may change; `lifted_at` is when the last fault ended."""

    database: str
    url: str
    server: Server
    proxy: Proxy | None
    postgres: RestartablePostgres | None
    disk: Disk | None
    ledger: Ledger
    rng: random.Random
    everyone: int
    address: tuple[str, int] | None = None
    """The address of the real proxy in front of the server, if there is one."""
    smuggled: int = 0
    """Number of requests that a stranger sent through it and that reached the server."""
    lifted_at: float = 0.0
    to_spoil: int = 0
    """Number of requests that faults asked the proxy to damage, or a stranger to smuggle."""

    @property
    def file(self) -> str:
        """The file of a SQLite database."""
        return self.url.removeprefix("sqlite:///")

    def lift(self) -> None:
        """Mark the end of a fault: the recovery time is measured from here."""
        self.lifted_at = time.perf_counter()
        self.ledger.recovered_at = None

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds, or until no participant is left."""
        await self.ledger.until(lambda: condition() or self.ledger.gone == self.everyone)

    async def until_more(self, what: str, few: int = FEW, within: float = math.inf) -> bool:
        """Wait until a counter of the ledger has grown by `few`; return False if that did not happen.

        `within` is the number of requests that may be accepted while waiting.
        """
        enough, too_many = getattr(self.ledger, what) + few, self.ledger.accepted + within
        await self.until(lambda: getattr(self.ledger, what) >= enough or self.ledger.accepted >= too_many)
        return bool(getattr(self.ledger, what) >= enough)


async def server_killed(scene: Scene) -> bool:
    scene.server.kill()
    felt = await scene.until_more("failures")
    scene.lift()
    await in_thread(scene.server.start)
    return felt


async def worker_killed(scene: Scene) -> bool:
    """Kill workers until a participant notices: nobody may be connected to one that just started."""
    for _ in range(MOST_TRIES):
        workers = scene.server.workers()
        felt = asyncio.create_task(scene.until_more("failures", 1, within=2 * scene.everyone))
        await asyncio.sleep(0)  # lets the task start counting
        if workers:
            os.kill(scene.rng.choice(workers), signal.SIGKILL)
            scene.lift()
        if await felt:
            return True
    return False


async def network_cut(scene: Scene) -> bool:
    assert scene.proxy is not None
    felt = asyncio.create_task(scene.until_more("failures", 1))
    await asyncio.sleep(0)
    await scene.proxy.cut()
    scene.lift()
    return await felt


async def requests_spoilt(scene: Scene, kinds: Sequence[str]) -> bool:
    """Damage requests in each of these ways in turn; participants who get no reply must notice each time."""
    assert scene.proxy is not None
    wanted = scene.rng.randrange(5, 20)
    scene.to_spoil += wanted
    spoilt = scene.proxy.spoilt + wanted
    ways = [kinds[number % len(kinds)] for number in range(wanted)]
    unanswered = sum(way in scene.proxy.UNANSWERED for way in ways)
    noticed = asyncio.create_task(scene.until_more("failures", unanswered))
    await asyncio.sleep(0)  # lets the task start counting
    spoiling = asyncio.create_task(scene.proxy.misbehave(ways, scene.rng))
    nobody_left = asyncio.create_task(scene.until(lambda: False))
    await asyncio.wait([spoiling, nobody_left], return_when=asyncio.FIRST_COMPLETED)
    for task in (spoiling, nobody_left):
        task.cancel()
    scene.lift()
    await asyncio.wait([noticed], timeout=NOTICED_WITHIN_S)
    return noticed.done() and noticed.result() and scene.proxy.spoilt == spoilt


async def upgrade_smuggled(scene: Scene) -> bool:
    """Offer to upgrade in requests whose bodies are requests, while people answer over the proxy's connections.

    It has no effect on anybody if the server holds; so it counts if each of them reached the server.
    """
    assert scene.address is not None
    wanted = scene.rng.randrange(5, 20)
    scene.to_spoil += wanted
    replied = 0
    for number in range(wanted):
        message = SMUGGLED[number % len(SMUGGLED)]
        padding, path = (
            scene.rng.choice((0, 10_000)),
            scene.rng.choice(("/s/crowd/records", "/s/crowd/sessions")),
        )
        reply = await in_thread(partial(smuggle, scene.address, message, padding=padding, path=path))
        replied += has_reached_server(reply)
        await scene.until_more("accepted")
    scene.smuggled += replied
    scene.lift()
    return replied == wanted


async def disk_full(scene: Scene) -> bool:
    assert scene.disk is not None
    if scene.database == SQLITE:  # truncate the write-ahead log first, whose free space could be reused
        await in_thread(_checkpoint, scene.url)
    await in_thread(scene.disk.fill, scene.server.pid)
    felt = await scene.until_more("told")
    scene.lift()
    scene.disk.free(scene.server.pid)
    return felt


async def database_locked(
    scene: Scene, what: str = "failures", few: int = FEW, tables: str = "responses"
) -> bool:
    command = [sys.executable, "-c", LOCKING[scene.database], scene.file, tables]
    # In a session of its own, so that Ctrl+C does not make it print a traceback; it ends with its input.
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, start_new_session=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert await in_thread(other.stdout.readline) == b"locked\n"
        felt = await scene.until_more(what, few)
        scene.lift()
        other.stdin.close()
    return felt


async def postgres_ended(scene: Scene, number: int) -> bool:
    assert scene.postgres is not None
    await in_thread(scene.postgres.end, number)
    felt = await scene.until_more("failures", 1)
    scene.lift()
    await in_thread(scene.postgres.start)
    return felt


async def postgres_only_reads(scene: Scene) -> bool:
    """Make the database read-only, like a replica after a failover or a provider's database with a nearly full disk."""
    assert scene.postgres is not None
    name = scene.url.removeprefix("postgresql://postgres@/").partition("?")[0]
    execute = scene.postgres.server.execute
    hang_up = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    felt = False
    for setting in ("on", "off"):
        await in_thread(execute, f"ALTER DATABASE {name} SET default_transaction_read_only = {setting}")
        await in_thread(execute, hang_up)
        if setting == "on":
            felt = await scene.until_more("told")
    scene.lift()
    return felt


async def log_deleted(scene: Scene) -> bool:
    """Delete SQLite's log and its index; once the server has rescued the log, kill it: nobody could stop it before."""
    rescued = scene.server.count_in_log(RESCUED)
    for name in ("-wal", "-shm"):
        Path(scene.file + name).unlink(missing_ok=True)
    felt = await scene.until_more("told")
    await in_thread(scene.server.wait_for_log, RESCUED, rescued + 1)
    scene.server.kill()
    scene.lift()
    await in_thread(scene.server.start)
    return felt


async def file_overwritten(scene: Scene) -> bool:
    """Copy an earlier copy over the database; afterwards put back the database as it was just before.

    The server is stopped while the files are copied. What it acknowledges later is not in the files that are put back.
    """
    earlier, before = (scene.server.log.with_name(name) for name in ("earlier.db", "before.db"))
    await in_thread(_checkpoint, scene.url)
    await in_thread(_copy_earlier, scene, earlier)
    await scene.until_more("accepted", scene.everyone)
    await in_thread(_checkpoint, scene.url)  # so that the file itself has changed since
    os.kill(scene.server.pid, signal.SIGSTOP)
    await in_thread(shutil.copyfile, scene.file, before)
    await in_thread(shutil.copyfile, f"{scene.file}-wal", f"{before}-wal")
    await in_thread(shutil.copyfile, earlier, scene.file)
    os.kill(scene.server.pid, signal.SIGCONT)
    felt = await scene.until_more("told")
    scene.server.kill()
    Path(f"{scene.file}-shm").unlink(missing_ok=True)
    await in_thread(shutil.copyfile, before, scene.file)
    await in_thread(shutil.copyfile, f"{before}-wal", f"{scene.file}-wal")
    scene.lift()
    await in_thread(scene.server.start)
    return felt


def _copy_earlier(scene: Scene, file: Path) -> None:
    """Copy the database as it is: the file itself, or as `vseg backup` does."""
    file.unlink(missing_ok=True)
    if scene.rng.random() < 0.5:
        shutil.copyfile(scene.file, file)
        return
    with store.open(scene.url, update_schema=False) as db:
        store.backup.back_up(db, file)


async def writer_ended(scene: Scene) -> bool:
    """End the thread that stores records, until the server has noticed that it has died and somebody was told."""
    died = scene.server.count_in_log(DIED)
    for _ in range(MOST_TRIES):
        felt = asyncio.create_task(scene.until_more("told", 1, within=2 * scene.everyone))
        await asyncio.sleep(0)  # lets the task start counting
        os.kill(scene.server.pid, signal.SIGUSR1)
        scene.lift()
        if await felt and scene.server.count_in_log(DIED) > died:
            return True
    return False


@dataclass(frozen=True)
class Fault:
    """A fault and what it needs; `times` is how often a complete run injects it in a round.

    `inject` returns whether the fault had an effect; faults without one are not counted.
    """

    name: str
    inject: Callable[[Scene], Awaitable[bool]]
    times: int
    databases: tuple[str, ...] = BOTH
    proxied: bool = False
    small_disk: bool = False
    patience_s: float = PATIENCE_S
    options: tuple[str, ...] = ()
    adaptive: bool = False
    """Whether the study chooses pairs from the answers so far."""
    kills_server: bool = False
    """Whether the server or a worker is killed; targets.py limits the recovery time."""
    ends_writer: bool = False
    """Whether the server must end its writer at a signal (serving.py)."""
    behind: str = ""
    """The real proxy (tests/proxies.py) through which participants reach the server; empty if there is none."""


def _spoilt(name: str, *kinds: str, patience_s: float = PATIENCE_S) -> Fault:
    return Fault(name, partial(requests_spoilt, kinds=kinds), 8, proxied=True, patience_s=patience_s)


def _smuggled(program: str, proxy: str) -> Fault:
    return Fault(f"upgrade smuggled through {program}", upgrade_smuggled, 8, ONLY["sqlite"], behind=proxy)


ONLY = {"sqlite": (SQLITE,), "postgresql": (POSTGRESQL,)}
FAULTS = (
    Fault("server killed (SIGKILL)", server_killed, 25, kills_server=True),
    Fault("server killed (SIGKILL) while it chooses pairs", server_killed, 8, adaptive=True, kills_server=True),
    Fault(
        "one of two workers killed (SIGKILL)", worker_killed, 10, ONLY["postgresql"], options=("--workers", "2"),
        kills_server=True,
    ),
    Fault(
        "one of two workers killed (SIGKILL) while they choose pairs", worker_killed, 8, ONLY["postgresql"],
        options=("--workers", "2"), adaptive=True, kills_server=True,
    ),
    Fault("network cut", network_cut, 12, proxied=True),
    _spoilt("network slow", "too slow", "slow", "slow", patience_s=2.0),
    _spoilt("cut in mid-request", "half request"),
    _spoilt("cut in mid-response", "half reply"),
    _spoilt("reply lost after the commit", "lost"),
    _spoilt("requests doubled", "doubled"),
    _spoilt("requests late, overtaken by others", "late"),
    _smuggled("nginx", "nginx, unbuffered"),
    _smuggled("Caddy", "caddy"),
    _smuggled("HAProxy", "haproxy"),
    Fault("disk full", disk_full, 6, small_disk=True),
    Fault("database locked by another process", database_locked, 6, patience_s=1.0),
    Fault(
        "database locked by another process, for reading as well",
        partial(database_locked, tables="studies, sessions, responses"), 6, ONLY["postgresql"], patience_s=1.0,
    ),
    Fault(
        "database locked for longer than a write waits", partial(database_locked, what="told", few=1), 1,
        patience_s=60.0,
    ),
    Fault("log of the database deleted", log_deleted, 6, ONLY["sqlite"]),
    Fault("earlier copy copied over the database", file_overwritten, 6, ONLY["sqlite"]),
    Fault("writer ended", writer_ended, 6, ends_writer=True),
    Fault("PostgreSQL restarted (fast)", partial(postgres_ended, number=signal.SIGINT), 8, ONLY["postgresql"]),
    Fault("PostgreSQL restarted (immediate)", partial(postgres_ended, number=signal.SIGQUIT), 8, ONLY["postgresql"]),
    Fault("PostgreSQL killed (SIGKILL)", partial(postgres_ended, number=signal.SIGKILL), 8, ONLY["postgresql"]),
    Fault("PostgreSQL only reads for a while", postgres_only_reads, 4, ONLY["postgresql"]),
)  # fmt: skip


def _checkpoint(url: str) -> None:
    with sqlite3.connect(Path(url.removeprefix("sqlite:///")), timeout=30) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
