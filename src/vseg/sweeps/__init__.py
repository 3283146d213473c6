"""Simulation studies: run a function at each setting several times, anywhere, and get a tidy table.

run           sweep(), the public function
repetitions   one repetition: its setting, repeat, seed and plain result
scheduler     send repetitions to workers in tasks, and again when a worker is lost
checkpoint    finished repetitions in a folder, from which an interrupted sweep continues
executors     open_workers(): from the argument `executor` to workers
workers       the base class of workers, and the one that works in this thread
processes     worker processes
clusters      the workers of a Dask cluster
table         Table, the result
"""

from vseg.sweeps.executors import open_workers
from vseg.sweeps.run import sweep
from vseg.sweeps.table import Table

__all__ = ["Table", "open_workers", "sweep"]
