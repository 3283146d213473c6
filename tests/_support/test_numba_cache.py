"""Test that compiled kernels are cached on disk."""

import os
import subprocess
import sys

import pytest

from vseg._support.numba_cache import _fingerprint

pytestmark = pytest.mark.slow

SMALL = """
import numpy as np
from vseg.bayes.linear_algebra import dot8 as kernel
kernel(np.ones(3), np.ones(3))
"""
LARGE = """
from vseg import Grid, Responses
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.solvers.coordinate_descent import _fit as kernel, coordinate_descent
tally = Responses(Grid(4), [0, 1, 2], [5, 6, 7], [1, 0, 1]).tally()
coordinate_descent(build_objective(tally, 2, strength=1.0), seed=0)
"""
COUNTS = "print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))"


def count_cache_hits(program, **environment):
    """Return hits and misses of one kernel in a new process."""
    return subprocess.run(
        [sys.executable, "-c", program + COUNTS],
        env={**os.environ, **environment}, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip


def test_machine_code_is_cached_between_processes(tmp_path):
    """Test that a second process loads what the first compiled, from a folder named after the sources."""
    assert count_cache_hits(SMALL, NUMBA_CACHE_DIR=str(tmp_path)) == ["0", "1"]
    assert count_cache_hits(SMALL, NUMBA_CACHE_DIR=str(tmp_path)) == ["1", "0"]
    assert [path.name for path in tmp_path.iterdir()] == [f"kernels-{_fingerprint()}"]


def test_a_kernel_that_calls_others_is_cached():
    """Test it in the folder that all tests share, since compiling this one takes ten seconds."""
    count_cache_hits(LARGE)
    assert count_cache_hits(LARGE) == ["1", "0"]
