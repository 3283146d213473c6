"""Time and memory of exporting a million responses with `vseg export`, and of loading them.

`python benchmarks/exporting.py [--quick]` runs it by itself.
"""

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tables import table

STUDY = """
name = "many"
segments = 3
participants = 100000
layout = {grid = 16}
images = [{name = "patches", colours = 3}]
design = {blocks = 1, trials = 980}
practice = {trials = 10}
catch = {per_block = 10}
"""
NOW = 1_800_000_000_000
# The child reports its own peak: the kernel's number for children includes this process's memory before exec.
PEAK = """
import atexit, sys, time

@atexit.register
def report():
    lines = open("/proc/self/status").read().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    print(f"{time.process_time():.1f}", int(kilobytes) // 1024, file=sys.stderr)

if sys.argv[1] == "load":
    import vseg
    assert len(vseg.load(sys.argv[2])) > 0
else:
    from vseg.cli import main
    main(sys.argv[1:])
"""


def main(quick: bool = False) -> str:
    responses = 50_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        url, out = f"sqlite:///{folder}/many.db", f"{folder}/out"
        fill(url, responses)
        rows = [
            _measure("vseg export", ["export", "many", "--db", url, "--out", out], "30", "500"),
            _measure("vseg.load of Parquet", ["load", out]),
        ]
        Path(out, "responses.parquet").unlink()
        rows.append(_measure("vseg.load of CSV", ["load", out]))
    note = (
        f"{responses} responses of {responses // 1000} sessions in SQLite; wall-clock time of a new process "
        "for each row."
    )
    return table(
        "Exporting",
        ["command", "seconds", "CPU seconds", "peak MB", "target, under: seconds", "MB"],
        rows,
        note,
    )


def fill(url: str, responses: int) -> None:
    """Create a database with so many responses, a thousand per session; every fiftieth is flagged and repeated."""
    from vseg import store
    from vseg.store.schema import responses as response_table
    from vseg.study import pictures
    from vseg.study.schema import parse_study
    from vseg.study.trials import Unit, draw_trials

    study = parse_study(STUDY)
    with store.open(url) as db:
        number = store.studies.register(db, STUDY, study, pictures.render_pictures(study, Path())).id
    trials = draw_trials(study, [Unit("patches", 0)], {"patches": (512, 512)})
    answers = _answers(trials, np.random.default_rng(0))
    names = ["session", *answers]
    assert set(names) == {column.name for column in response_table.c}
    rows = list(zip(*answers.values(), strict=True))
    software = json.dumps({"vseg": "benchmark"})
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        for one in range(1, responses // 1000 + 1):
            who = (one, number, f"p{one:09d}", NOW)
            connection.execute(
                "INSERT INTO participants (id, study, name, created_at_ms) VALUES (?, ?, ?, ?)", who
            )
            session = (
                one,
                number,
                one,
                f"s{one:09d}",
                f"{one}",
                "completed",
                trials.to_json(),
                software,
                NOW,
                NOW,
            )
            connection.execute(
                "INSERT INTO sessions (id, study, participant, name, token_hash, status, trials, software, "
                f"started_at_ms, finished_at_ms) VALUES ({', '.join('?' * 10)})", session,
            )  # fmt: skip
            connection.execute("INSERT INTO assignments VALUES (?, ?, 0, 'patches', ?)", (one, number, one))
            connection.executemany(
                f"INSERT INTO responses ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
                ((one, *row) for row in rows),
            )
    connection.close()


def _answers(trials, rng: np.random.Generator) -> dict[str, list]:
    items = np.arange(len(trials))
    flagged = items % 50 == 49
    items = np.concatenate([items, items[flagged]])[:1000]
    flags = np.where(np.arange(len(items)) % 50 == 49, "late", "")[:1000]
    count, onset = len(items), 1300 * np.arange(len(items)) + rng.random(len(items))
    floats = {
        "rt_ms": rng.gamma(4, 180, count), "cue_onset_ms": onset, "cue_ms": rng.normal(300, 0.05, count),
        "image_onset_ms": onset + 300, "image_ms": rng.normal(300, 0.05, count), "response_onset_ms": onset + 600,
        "longest_gap_ms": rng.normal(16.7, 0.05, count), "refresh_hz": rng.normal(60, 0.01, count),
    }  # fmt: skip
    columns = {name: values.round(3).tolist() for name, values in floats.items()}
    for name in ("image", "block", "trial", "i", "j", "practice", "catch"):
        columns[name] = [getattr(trials, name)[item] for item in items]
    fixed = {"key": "f", "cue_asked_ms": 300.0, "cue_frames": 18, "image_asked_ms": 300.0, "image_frames": 18,
             "frames_dropped": 0, "visible": 1, "focused": 1, "full_screen": 1, "received_at_ms": NOW}  # fmt: skip
    return columns | {name: [value] * count for name, value in fixed.items()} | {
        "seq": list(range(count)), "item": items.tolist(), "same": rng.integers(0, 2, count).tolist(),
        "shown_at_ms": [NOW + 1300 * n for n in range(count)], "flags": flags.tolist(),
    }  # fmt: skip


def _measure(what: str, command: list[str], seconds: str = "", megabytes: str = "") -> list[str]:
    """Measure wall-clock time, CPU time and peak memory of a new process, which reports the latter two itself."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", PEAK, *command], check=True, capture_output=True, text=True)
    return [what, f"{time.perf_counter() - began:.1f}", *done.stderr.split()[-2:], seconds, megabytes]


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
