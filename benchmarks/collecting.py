"""Thousands of simultaneous participants: load `vseg serve`, kill it, and look for every acknowledged answer.

Each participant answers every 1.3 s, the paper's pace, over a connection of its own. Then the server is killed
(SIGKILL) during the traffic, and the answers that it acknowledged are looked up in the database. The maximal
throughput is compared with that of the usual design: FastAPI with one ORM session and one commit per answer.

`soak` (`make soak`) runs a thousand participants for a quarter of an hour and reports how much the server's memory
grows.
"""

import asyncio
import contextlib
import gc
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # last: it has a folder `reproduction`, too

from chaos.connection import Connection
from tables import verdict

PACE_S = 1.3
WANTED_P99_MS, WANTED_GROWTH = 100, 5
STOLEN = 7  # index in /proc/stat
# Database and number of workers; SQLite has one writer.
SETTINGS = (
    ("SQLite", 1),
    ("PostgreSQL", 1),
    ("PostgreSQL", 2),
)
STUDY = """
name = "crowd"
segments = 3
participants = 100000
layout = {grid = 16}
images = [{name = "patches", colours = 3}]
design = {blocks = 1}
practice = {trials = 0}
catch = {per_block = 0}
"""
RESPONSE = {
    "kind": "response", "rt_ms": 731.25, "key": "f", "shown_at_ms": 1_760_000_000_000, "cue_onset_ms": 1000.5,
    "cue_asked_ms": 300, "cue_ms": 300.02, "cue_frames": 18, "image_onset_ms": 1300.5, "image_asked_ms": 300,
    "image_ms": 299.98, "image_frames": 18, "response_onset_ms": 1600.5, "frames_dropped": 0, "longest_gap_ms": 16.7,
    "refresh_hz": 60.0, "visible": True, "focused": True, "full_screen": True, "flags": "",
}  # fmt: skip


@dataclass
class Load:
    """Measurements of one run."""

    latencies_s: list[float] = field(default_factory=list)
    """Latency of every answer that was due; without a reply, the waiting time until the server was killed."""
    unanswered: int = 0
    """Number of answers without a reply."""
    acknowledged: set[tuple[str, int]] = field(default_factory=set)
    memory_mb: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the first answer was due, and the memory of all server processes together."""
    stolen: float | None = None
    """Share of CPU time taken by other virtual machines on the same hardware; None if unknown."""
    lost: int = 0
    """Number of answers that were acknowledged but not stored."""
    doubled: int = 0
    """Number of answers that are stored twice."""


def main(quick: bool = False) -> str:
    # Participants and number of runs; a shared machine is sometimes slow for a minute.
    crowds, seconds = (((100, 1),), 10) if quick else (((1000, 3), (3000, 1)), 60)
    rows, missed = [], []
    with _databases() as (folder, url_of):
        for people, times in crowds:
            for name, workers in SETTINGS:
                setting, loads = f"{people} on {name}, {workers} workers", []
                for _ in range(times):
                    url = url_of(name)
                    load = _crowd(url, folder, people, seconds, workers)
                    load.lost, load.doubled = _compare(url, load.acknowledged)
                    missed += _losses(setting, load)
                    loads.append(load)
                middle = sorted(loads, key=_p99)[times // 2]
                rows.append(_row(f"{people} | {name} | {workers}", middle, loads, seconds))
                print(rows[-1], flush=True)
                late = people <= 1000 and (p99 := _p99(middle)) >= WANTED_P99_MS
                missed += [f"p99 {p99:.0f} ms ({setting})"] if late else []
        speeds = [_flat_out(folder, kind, 4 if quick else 15) for kind in ("ours", "usual")]
    ratio = speeds[0] / speeds[1]
    return "\n".join([
        "## Many simultaneous participants", "",
        "| participants | database | workers | answers | per second | p50, ms | p99, ms | worst, ms | memory, MB | "
        "CPU stolen | without reply | acknowledged, not stored | stored twice |",
        f"|{'---|' * 13}", *rows, "",
        f"Each participant answers every {PACE_S} s for {seconds} s over loopback, client and server on one machine; "
        "then the server is killed during the traffic and its database is read. Rows with brackets are the run with "
        "the median p99 of three runs; the brackets give the smallest and largest p99, and the last three columns are "
        "sums over the runs. Memory is the largest total of all server processes. CPU stolen is the mean share of CPU "
        "time that other virtual machines on the same hardware took. SQLite has one writer, so vseg serve uses one "
        f"worker. Target: p99 under {WANTED_P99_MS} ms at 1000, and 0 in the last three columns. {verdict(missed)}",
        "",
        f"64 connections at full speed, SQLite with `synchronous=FULL`: **{speeds[0]:.0f}** answers per second, "
        f"against {speeds[1]:.0f} with FastAPI, one ORM session and one commit per answer: **{ratio:.1f}×**.", "",
    ])  # fmt: skip


def soak(quick: bool = False) -> str:
    """Run the same load for longer and measure the growth of memory."""
    people, seconds, warm_up_s, last_s = (100, 60, 20, 10) if quick else (1000, 15 * 60, 180, 60)
    rows, missed = [], []
    with _databases() as (folder, url_of):
        for name, workers in SETTINGS:
            url = url_of(name)
            load = _crowd(url, folder, people, seconds, workers)
            first = [mb for at, mb in load.memory_mb if warm_up_s <= at < warm_up_s + last_s]
            last = [mb for at, mb in load.memory_mb if seconds - last_s <= at < seconds]
            before, after = (sum(each) / len(each) for each in (first, last))
            growth = 100 * (after / before - 1)
            load.lost, load.doubled = _compare(url, load.acknowledged)
            setting = f"{name}, {workers} workers"
            missed += [f"memory grew by {growth:.1f} % ({setting})"] if growth >= WANTED_GROWTH else []
            missed += _losses(setting, load)
            rows.append(
                f"| {name} | {workers} | {len(load.latencies_s)} | {_p99(load):.1f} | {before:.0f} | "
                f"{after:.0f} | **{growth:+.1f} %** | **{load.unanswered}** | **{load.lost}** | "
                f"**{load.doubled}** |"
            )
            print(rows[-1], flush=True)
    return "\n".join([
        f"## {people} participants for {seconds / 60:g} minutes", "",
        "| database | workers | answers | p99, ms | memory after warm-up, MB | at the end, MB | growth | "
        "without reply | acknowledged, not stored | stored twice |",
        f"|{'---|' * 10}", *rows, "",
        f"Means over {last_s} s; the first mean starts after a warm-up of {warm_up_s} s, in which code and caches are "
        f"loaded. Target: growth under {WANTED_GROWTH} %, and 0 in the last three columns. {verdict(missed)}",
    ])  # fmt: skip


def _losses(setting: str, load: Load) -> list[str]:
    """Describe lost, unanswered and duplicated answers."""
    counts = {
        "without reply": load.unanswered,
        "acknowledged, not stored": load.lost,
        "stored twice": load.doubled,
    }
    return [f"{count} {what} ({setting})" for what, count in counts.items() if count]


@contextlib.contextmanager
def _databases() -> Iterator[tuple[Path, Callable[[str], str]]]:
    """Yield a folder and a function that creates a database of a kind and returns its URL."""
    from databases import postgres
    from vseg.server.runner import raise_open_file_limit

    raise_open_file_limit()  # one connection per participant; the server inherits the limit
    # On a new machine the first server would otherwise compile during the measurement. The process ends with its
    # input, which may be empty here (in a background job), so it gets a pipe.
    with subprocess.Popen(
        [sys.executable, "-m", "vseg.server.precompile"], stdin=subprocess.PIPE
    ) as compiling:
        if compiling.wait():
            raise SystemExit("The kernels could not be compiled; see above.")
    gc.disable()  # pauses of the client would count as latency of the server
    numbers = itertools.count()
    with tempfile.TemporaryDirectory() as name, postgres(fsync="on") as server:
        folder = Path(name)
        yield (
            folder,
            lambda kind: (
                f"sqlite:///{folder}/crowd-{next(numbers)}.db" if kind == "SQLite" else server.fresh()
            ),
        )


def _row(setting: str, middle: Load, loads: list[Load], seconds: float) -> str:
    """Return the table row: the median run, the range of all runs, and the sums of their losses."""
    answers, most_mb = len(middle.latencies_s), max((mb for _, mb in middle.memory_mb), default=0.0)
    p99s = [_p99(each) for each in loads]
    span = f" ({min(p99s):.1f} to {max(p99s):.1f})" if len(loads) > 1 else ""
    return (
        f"| {setting} | {answers} | {answers / seconds:.0f} | {_percentile(middle, 0.5):.1f} | "
        f"**{_p99(middle):.1f}**{span} | {1000 * max(middle.latencies_s):.0f} | {most_mb:.0f} | {_stolen(loads)} | "
        f"**{sum(each.unanswered for each in loads)}** | **{sum(each.lost for each in loads)}** | "
        f"**{sum(each.doubled for each in loads)}** |"
    )


def _stolen(loads: list[Load]) -> str:
    shares = [load.stolen for load in loads if load.stolen is not None]
    return f"{100 * sum(shares) / len(shares):.1f} %" if shares else "unknown"


def _p99(load: Load) -> float:
    return _percentile(load, 0.99)


def _percentile(load: Load, share: float) -> float:
    """Return a percentile of the latencies in milliseconds."""
    ordered = sorted(load.latencies_s)
    return 1000 * ordered[int(share * len(ordered))]


def _crowd(url: str, folder: Path, people: int, seconds: float, workers: int) -> Load:
    options = ["--workers", str(workers)] if workers > 1 else []
    with _served(url, folder, *options) as (port, server):
        entered = asyncio.run(_enter(port, people))
        return asyncio.run(_answer(port, entered, seconds, server))


@contextlib.contextmanager
def _served(url: str, folder: Path, *options: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    study = folder / "crowd.toml"
    study.write_text(STUDY, encoding="utf-8")
    port = _free_port()
    command = [sys.executable, "-m", "vseg", "serve", str(study), "--db", url, "--port", str(port)]
    with _running([*command, *options], port) as server:
        yield port, server


@contextlib.contextmanager
def _running(command: list[str], port: int, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, **environment})
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if server.poll() is not None:
                raise SystemExit(f"{' '.join(command)} stopped with exit code {server.returncode}.")
            time.sleep(0.1)
        yield server
    finally:
        server.kill()
        server.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


async def _enter(port: int, people: int) -> dict[str, str]:
    """Create sessions, eight at a time; return tokens by session."""
    entered: dict[str, str] = {}

    async def door(count: int) -> None:
        connection = await Connection.open(port)
        for _ in range(count):
            status, body = await connection.post("/s/crowd/sessions", {"consented": True})
            assert status == 201, body
            state = json.loads(body)
            entered[state["session"]] = state["token"]
        connection.close()

    await asyncio.gather(*(door(people // 8 + (number < people % 8)) for number in range(8)))
    return entered


async def _answer(port: int, people: dict[str, str], seconds: float, server: subprocess.Popen[bytes]) -> Load:
    """Send answers; record the latency of each from when it was due, and (session, seq) of all acknowledged ones.

    A connection that breaks before the server is killed is an error.
    """
    load, killed, before = Load(), False, _processor_times()
    began = time.perf_counter() + 1

    async def person(number: int, session: str, token: str) -> None:
        connection = await Connection.open(port, token)
        seq, due = 0, began + PACE_S * number / len(people)
        try:
            while True:
                await asyncio.sleep(due - time.perf_counter())
                record = {**RESPONSE, "seq": seq, "item": seq, "same": (number * 31 + seq) % 2 == 0}
                status, body = await connection.post("/s/crowd/records", {"records": [record]})
                assert status == 200 or killed, body
                if status == 200:
                    load.acknowledged.add((session, seq))
                if due - began <= seconds:
                    load.latencies_s.append(time.perf_counter() - due)
                seq, due = seq + 1, due + PACE_S
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            if not killed:
                message = (
                    f"Participant {number} was disconnected at answer {seq}, before the server was killed."
                )
                raise RuntimeError(message) from error
            while due - began <= seconds:
                load.latencies_s.append(time.perf_counter() - due)
                load.unanswered, due = load.unanswered + 1, due + PACE_S

    async def killer() -> None:
        nonlocal killed
        while (at := time.perf_counter() - began) < seconds + 2:
            load.memory_mb.append((at, sum(map(_resident_mb, _processes(server.pid)))))
            await asyncio.sleep(1)
        if before and (now := _processor_times()):
            passed = [last - first for first, last in zip(before, now, strict=True)]
            load.stolen = passed[STOLEN] / sum(passed)
        processes, killed = _processes(server.pid), True
        for pid in processes:
            os.kill(pid, signal.SIGKILL)

    persons = (person(number, *entry) for number, entry in enumerate(people.items()))
    await asyncio.gather(killer(), *persons)
    return load


def _processes(pid: int) -> list[int]:
    """Return the process ids of the server and its workers."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return [pid, *map(int, children.read_text().split())] if children.exists() else [pid]


def _resident_mb(pid: int) -> float:
    """Return the resident memory of a process; 0 if unknown or if the process has ended."""
    with contextlib.suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return 0.0


def _processor_times() -> list[int]:
    """Return the CPU times of /proc/stat in their order; empty if not available."""
    with contextlib.suppress(OSError):
        return [int(ticks) for ticks in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return []


def _compare(url: str, acknowledged: set[tuple[str, int]]) -> tuple[int, int]:
    """Count acknowledged answers that are not stored, and answers that are stored twice."""
    from vseg import store

    with store.open(url) as database:
        study = store.studies.get_study(database, "crowd")
        batches = store.responses.stream_responses(database, study.id)
        rows = [row for batch in batches for row in batch]
    stored = {(row["session"], row["seq"]) for row in rows}
    items = {(row["session"], row["item"]) for row in rows}  # each participant answers each item once
    return len(acknowledged - stored), len(rows) - len(items)


def _flat_out(folder: Path, kind: str, seconds: float) -> float:
    """Return the answers per second over 64 connections."""
    if kind == "ours":
        with _served(f"sqlite:///{folder}/fast.db", folder) as (port, _):
            tokens = list(asyncio.run(_enter(port, 64)).values())
            return asyncio.run(_rush(port, "/s/crowd/records", tokens, seconds))
    port = _free_port()
    command = [
        sys.executable,
        str(Path(__file__).parent / "usual_server.py"),
        f"{folder}/usual.db",
        str(port),
    ]
    with _running(command, port):
        return asyncio.run(_rush(port, "/records", [str(number) for number in range(64)], seconds))


async def _rush(port: int, path: str, tokens: list[str], seconds: float) -> float:
    done, began = 0, time.perf_counter()

    async def person(token: str) -> None:
        nonlocal done
        connection, seq = await Connection.open(port, token), 0
        while time.perf_counter() - began < seconds and seq < 3000:
            record = {**RESPONSE, "seq": seq, "item": seq % 768, "same": True}
            status, body = await connection.post(path, {"records": [record]})
            assert status == 200, body
            seq, done = seq + 1, done + 1

    await asyncio.gather(*map(person, tokens))
    return done / (time.perf_counter() - began)
