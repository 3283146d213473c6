"""Functions to sweep; worker processes import them by name: `from sweeps.studies import noisy`."""

import os
import signal
from pathlib import Path

import numpy as np


def noisy(blocks, seed, where=""):
    """Work for a few milliseconds; write the PID into the folder `where`, if it is given."""
    values = np.random.default_rng(seed).normal(size=100_000)
    if where:
        (Path(where) / str(os.getpid())).touch()
    return {"error": float(np.abs(values).mean() / blocks), "sign": "+" if values[0] > 0 else "-"}


def counted(blocks, where, seed):
    """Write a line for each call."""
    with open(Path(where) / "calls", "a") as file:
        file.write(f"{blocks}\n")
    return {"error": seed % 1000 / blocks}


def several(blocks, seed):
    return [{"method": method, "error": seed % 100 + blocks} for method in ("paper", "ours")]


def raising(blocks, seed):
    if blocks == 3:
        raise ValueError("three is not allowed")
    return {"error": seed % 1000}


def leaving(blocks, seed):
    raise SystemExit("exit called")


def deadly(blocks, seed):
    """Kill the worker at the setting 3."""
    if blocks == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"error": seed % 1000}


def threads(blocks, seed):
    import numba

    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {"numba": numba.get_num_threads(), "others": ",".join(os.environ[name] for name in names)}


class Unpicklable(Exception):  # noqa: N818
    """An error that can be pickled, but not unpickled."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def unpicklable(blocks, seed):
    raise Unpicklable("one", "two")
