import os
import subprocess
import sys

from vseg._support.numba_cache import _fingerprint

CHECK = """
import numpy as np, vseg
from vseg.reconstruction.solvers.coordinate_descent import _fit
tally = vseg.Responses(vseg.Grid(4), [0, 1, 2], [5, 6, 7], [1, 0, 1]).tally()
vseg.reconstruction.solvers.coordinate_descent(vseg.reconstruction.objective.objective(tally, 2, strength=1.0), seed=0)
print(sum(_fit.stats.cache_hits.values()), sum(_fit.stats.cache_misses.values()))
"""


def run(folder):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", CHECK], env=env, capture_output=True, text=True, check=True
    ).stdout.split()


def test_machine_code_is_kept_between_processes(tmp_path):
    """Compilation takes seconds; a second process must find the first one's work.

    numba does not notice a change in an imported function; the folder's name, made from the sources, does.
    """
    assert run(tmp_path) == ["0", "1"]
    assert run(tmp_path) == ["1", "0"]
    assert [path.name for path in tmp_path.iterdir()] == [f"kernels-{_fingerprint()}"]
