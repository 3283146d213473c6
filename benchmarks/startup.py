"""Start-up times: import, help, a first fit in a new process, and compilation."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tables import table

VSEG = [sys.executable, "-m", "vseg"]


def main(quick: bool = False) -> str:
    repeats = 2 if quick else 5
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        _run([*VSEG, "simulate", "--grid", "16", "--segments", "3", "--out", here / "sim"])
        fit = [*VSEG, "fit", here / "sim" / "responses.csv", "--grid", "16", "--segments", "3"]
        cold = _run([*fit, "--smoothness", "1", "--out", here / "cold"], NUMBA_CACHE_DIR=str(here / "cache"))
        rows = [
            ["import vseg", _median(repeats, lambda _: [sys.executable, "-c", "import vseg"]), ""],
            ["vseg --help", _median(repeats, lambda _: [*VSEG, "--help"]), "0.5"],
            [
                "vseg fit, λ given",
                _median(repeats, lambda n: [*fit, "--smoothness", "1", "--out", here / f"a{n}"]),
                "2",
            ],
            [
                "vseg fit, λ chosen",
                _median(repeats, lambda n: [*fit, "--method", "penalised", "--out", here / f"b{n}"]),
                "",
            ],
            ["vseg fit, posterior", _median(repeats, lambda n: [*fit, "--out", here / f"c{n}"]), ""],
            ["vseg fit, including compilation", f"{cold:.2f}", ""],
        ]
    note = (
        "Wall-clock time of a new process, N = 16, K = 3, including figures; compiled code is loaded from the disk "
        "cache, except in the last row."
    )
    return table("Start-up", ["command", "seconds", "target, under"], rows, note)


def _median(repeats: int, command) -> str:
    _run(command("first"))
    return f"{np.median([_run(command(n)) for n in range(repeats)]):.2f}"


def _run(command: list, **environment: str) -> float:
    began = time.perf_counter()
    subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, env={**os.environ, **environment}
    )
    return time.perf_counter() - began
