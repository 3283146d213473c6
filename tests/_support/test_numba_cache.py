"""Test that compiled kernels are cached on disk."""

import os
import subprocess
import sys

import pytest

from vseg._support.numba_cache import _fingerprint

pytestmark = pytest.mark.slow

CHECK = """
from vseg import Grid, Responses
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.solvers.coordinate_descent import _fit, coordinate_descent
tally = Responses(Grid(4), [0, 1, 2], [5, 6, 7], [1, 0, 1]).tally()
coordinate_descent(build_objective(tally, 2, strength=1.0), seed=0)
print(sum(_fit.stats.cache_hits.values()), sum(_fit.stats.cache_misses.values()))
"""


def count_cache_hits(folder):
    """Return hits and misses of one kernel in a new process."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", CHECK], env=env, capture_output=True, text=True, check=True
    ).stdout.split()


def test_machine_code_is_cached_between_processes(tmp_path):
    """Test that a second process loads what the first compiled, from a folder named after the sources."""
    assert count_cache_hits(tmp_path) == ["0", "1"]
    assert count_cache_hits(tmp_path) == ["1", "0"]
    assert [path.name for path in tmp_path.iterdir()] == [f"kernels-{_fingerprint()}"]
